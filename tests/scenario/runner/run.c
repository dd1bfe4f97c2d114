/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - carries out a script statement by statement, on virtual time. See world.h. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_TOL_NS CORQ_NS_PER_MS

/* flow NAME [pport N] [lport N] [peer ADDRESS]: the statements after it are about NAME. */
static void
do_flow(struct world *w, const struct stmt *st)
{
	struct flow *f = w->flows;

	while (f != NULL && strcmp(f->name, st->words[0]) != 0)
		f = f->next;
	if (f == NULL)
		f = world_flow_new(w, st->words[0]);
	w->cur = f;
	for (unsigned i = 1; i + 1 < st->n_words; i += 2) {
		if (!strcmp(st->words[i], "pport"))
			f->pport = (uint16_t)atoi(st->words[i + 1]);
		else if (!strcmp(st->words[i], "lport"))
			f->lport = (uint16_t)atoi(st->words[i + 1]);
		else if (!strcmp(st->words[i], "peer"))
			f->paddr = testcore_addr(st->words[i + 1]);
		else
			world_fail(w, st, "'%s' means nothing here", st->words[i]);
	}
	if (w->arp_static) {
		char a[CORQ_ADDR_STRLEN];

		testcore_neighbour(
			&w->tc, corq_addr_format(&f->paddr, a, sizeof(a)), TESTCORE_PEER_MAC);
	}
}

/* ---- time ---- */

void
world_settle(struct world *w, const struct stmt *st)
{
	if (!testcore_settle(&w->tc))
		world_fail(w, st, "the core is busy for a thousand turns at one moment");
}

/* The moment that a statement asks for, script time; the present when it asks for none. */
static uint64_t
moment(struct world *w, const struct stmt *st, int64_t at)
{
	if (!st->has_time)
		return world_time(w);
	return (st->relative ? w->prev_ns : 0) + (uint64_t)at;
}

/* Moves to the moment of a statement; nothing may be sent on the way. */
static void
go(struct world *w, const struct stmt *st, uint64_t at)
{
	if (w->tc.tx_first != NULL)
		world_fail_unexpected(w, st);
	if (at < world_time(w))
		world_fail(w, st, "that moment is over");
	if (testcore_run_to(&w->tc, w->start_ns + at, true))
		world_fail_unexpected(w, st);
	world_settle(w, st);
	if (w->tc.tx_first != NULL)
		world_fail_unexpected(w, st);
}

/* ---- statements ---- */

static void
put_packet(struct world *w, const struct stmt *st)
{
	static uint8_t frame[WIRE_MAX];
	struct memport_how how = {0};
	struct packet p;
	const char *why;
	char line[400];
	uint32_t len = wire_build(w, w->cur, st->packet, frame, &why);

	if (why != NULL)
		world_fail(w, st, "%s", why);
	if (st->packet->kind == PACKET_TCP) {
		how.split = st->packet->tcp.split;
		how.n_split = st->packet->tcp.n_split;
		how.flags = st->packet->tcp.rx_flags;
	}
	wire_decode(frame, len, memport_now(w->tc.mp), &p);
	wire_format(&p, p.kind == PACKET_TCP && p.sport == w->cur->pport ? w->cur : NULL, false,
		line, sizeof(line));
	world_trace(w, "<-    %s", line);
	if (!memport_inject_as(w->tc.mp, frame, len, &how))
		world_trace(w, "      (the device had no buffer)");
}

static void
do_inject(struct world *w, const struct stmt *st)
{
	go(w, st, moment(w, st, st->at_ns));
	put_packet(w, st);
	testcore_turn(&w->tc);
	world_settle(w, st);
	w->prev_ns = world_time(w);
}

static void
do_call(struct world *w, const struct stmt *st)
{
	go(w, st, moment(w, st, st->at_ns));
	w->calls = st;
	w->batch = false;
	testcore_turn(&w->tc);
	world_settle(w, st);
	w->prev_ns = world_time(w);
}

/* All packets of the block come in one burst, its calls are made in that turn. */
static void
do_batch(struct world *w, const struct stmt *st)
{
	go(w, st, moment(w, st, st->at_ns));
	for (const struct stmt *b = st->body; b != NULL; b = b->next) {
		if (b->kind == STMT_INJECT)
			put_packet(w, b);
		else if (b->kind != STMT_CALL)
			world_fail(w, b, "a batch has inject and call");
	}
	w->calls = st->body;
	w->batch = true;
	testcore_turn(&w->tc);
	world_settle(w, st);
	w->prev_ns = world_time(w);
}

static void
window_of_time(struct world *w, const struct stmt *st, uint64_t *lo, uint64_t *hi)
{
	uint64_t tol = st->tol_ns >= 0                                     ? (uint64_t)st->tol_ns
		       : st->has_time && !(st->relative && st->at_ns == 0) ? DEFAULT_TOL_NS
									   : 0;

	*lo = moment(w, st, st->at_ns);
	*hi = st->until_ns >= 0 ? moment(w, st, st->until_ns) : *lo;
	*lo = *lo > tol ? *lo - tol : 0;
	*hi += tol;
	if (!st->has_time) {
		/* At once: at the moment of the line before. */
		*lo = w->prev_ns;
		*hi = CORQ_MAX(w->prev_ns, world_time(w));
	}
}

static void
do_expect(struct world *w, const struct stmt *st)
{
	uint64_t lo, hi, at;
	struct memport_pkt *pkt;
	struct packet p;
	char why[256], line[400];

	window_of_time(w, st, &lo, &hi);
	if (w->tc.tx_first == NULL && w->start_ns + hi > memport_now(w->tc.mp))
		testcore_run_to(&w->tc, w->start_ns + hi, true);
	pkt = testcore_take(&w->tc);
	if (pkt == NULL)
		world_fail(w, st, "nothing was sent (expected between %.6f and %.6f)",
			(double)lo / 1e9, (double)hi / 1e9);
	wire_decode(pkt->bytes, pkt->len, pkt->at_ns, &p);
	if (!wire_match(w->cur, st->packet, &p, why, sizeof(why))) {
		wire_format(&p, world_flow_of(w, &p.dst, p.dport, &p.src, p.sport), true, line,
			sizeof(line));
		world_fail(w, st, "sent instead: %s\n    %s", line, why);
	}
	at = pkt->at_ns - w->start_ns;
	free(pkt);
	if (at < lo || at > hi)
		world_fail(w, st, "sent at %.6f, expected between %.6f and %.6f", (double)at / 1e9,
			(double)lo / 1e9, (double)hi / 1e9);
	w->prev_ns = at;
}

static void
do_wait(struct world *w, const struct stmt *st)
{
	uint64_t at = moment(w, st, st->at_ns) + (uint64_t)st->dur_ns;

	go(w, st, at);
	w->prev_ns = world_time(w);
}

/* Takes whatever is sent, now or until the time is over. */
static void
do_drain(struct world *w, const struct stmt *st)
{
	world_drain(w);
	if (st->dur_ns == 0)
		return;
	testcore_run_to(&w->tc, w->start_ns + world_time(w) + (uint64_t)st->dur_ns, false);
	world_settle(w, st);
	world_drain(w);
	w->prev_ns = world_time(w);
}

static void
do_device(struct world *w, const struct stmt *st)
{
	uint32_t n = !strcmp(st->words[1], "all") ? UINT32_MAX
						  : (uint32_t)strtoul(st->words[1], NULL, 0);

	if (!strcmp(st->words[0], "room"))
		memport_set_tx_room(w->tc.mp, n);
	else if (!strcmp(st->words[0], "backlog"))
		memport_set_backlog(w->tc.mp, n);
	else if (!strcmp(st->words[0], "tx_frames"))
		memport_limit_tx(w->tc.mp, n);
	else if (!strcmp(st->words[0], "rx_frames"))
		memport_limit_rx(w->tc.mp, n);
	else
		world_fail(w, st, "device knows room, backlog, tx_frames, rx_frames");
	world_settle(w, st);
}

void
world_drain(struct world *w)
{
	struct memport_pkt *pkt;

	while ((pkt = testcore_take(&w->tc)) != NULL)
		free(pkt);
	w->prev_ns = world_time(w);
}

static void
do_on(struct world *w, const struct stmt *st)
{
	enum event_kind k = world_event_kind(st->words[0]);

	if (k == EVENT_COUNT)
		world_fail(w, st, "no such callback");
	for (const struct stmt *b = st->body; b != NULL; b = b->next)
		if (b->kind != STMT_CALL)
			world_fail(w, b, "a callback makes calls only");
	w->cur->on[k] = st;
}

static void do_list(struct world *w, const struct stmt *st);

/* Numbers count from the newest SYNs from now on: the tuple's next connection. */
static void
do_rebase(struct world *w)
{
	w->cur->our_isn = w->cur->our_syn;
	w->cur->peer_isn = w->cur->peer_syn;
	w->cur->wrote = w->cur->read = 0;
}

static void
do_check(struct world *w, const struct stmt *st)
{
	if (st->has_time)
		go(w, st, moment(w, st, st->at_ns));
	switch (st->kind) {
	case STMT_STATE:
		world_check_state(w, st);
		break;
	case STMT_FIELD:
		world_check_field(w, st);
		break;
	case STMT_COUNTER:
		world_check_counter(w, st);
		break;
	default:
		world_check_event(w, st);
		break;
	}
}

static void
do_stmt(struct world *w, const struct stmt *st)
{
	switch (st->kind) {
	case STMT_FLOW:
		do_flow(w, st);
		break;
	case STMT_INJECT:
		do_inject(w, st);
		break;
	case STMT_EXPECT:
		do_expect(w, st);
		break;
	case STMT_CALL:
		do_call(w, st);
		break;
	case STMT_BATCH:
		do_batch(w, st);
		break;
	case STMT_ON:
		do_on(w, st);
		break;
	case STMT_REPEAT:
		for (unsigned i = 0; i < st->count; i++)
			do_list(w, st->body);
		break;
	case STMT_EXPECT_NONE:
	case STMT_WAIT:
		do_wait(w, st);
		break;
	case STMT_DEVICE:
		do_device(w, st);
		break;
	case STMT_DRAIN:
		do_drain(w, st);
		break;
	case STMT_REBASE:
		do_rebase(w);
		break;
	default:
		do_check(w, st);
		break;
	}
}

static void
do_list(struct world *w, const struct stmt *st)
{
	for (; st != NULL; st = st->next) {
		w->at = st;
		if (st->kind == STMT_OPTION) {
			world_option(w, st);
			continue;
		}
		if (!w->up)
			world_start(w, st);
		do_stmt(w, st);
		if (corq_check_engine(&w->check, &w->tc.core->eng, CORQ_CHECK_QUICK) != 0)
			world_fail(w, st, "the engine is inconsistent: %s", w->check.msg);
	}
}

bool
world_run(struct script *s, bool verbose, const char *pcap_dir)
{
	static struct world w;
	volatile bool held = false;

	world_init(&w, s, verbose, pcap_dir);
	if (setjmp(w.fail) == 0) {
		do_list(&w, s->first);
		if (w.up) {
			world_check_end(&w);
			world_clean_up(&w);
		}
		held = true;
	}
	world_free(&w);
	return held;
}
