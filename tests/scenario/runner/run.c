/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - carries out a script statement by statement, on virtual time. See world.h. */
#include "world.h"
#include "net/seg.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TOL_NS   CORQ_NS_PER_MS
#define DEFAULT_PEER_ISN 0x20000000u
#define DEFAULT_PPORT    40000
/* Longest life of a record, SYN-ACK retries and 60 s waits included, and some more. */
#define CLEAN_NS         (400 * CORQ_NS_PER_S)

static struct world *world_now; /* for the signal handler of main.c */

uint64_t
world_time(const struct world *w)
{
	return memport_now(w->tc.mp) - w->start_ns;
}

/* ---- trace and failure ---- */

void
world_trace(struct world *w, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "%12.6f  ", w->up ? (double)world_time(w) / 1e9 : 0.0);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (w->verbose)
		printf("%s\n", line);
	if (w->n_trace == WORLD_TRACE_MAX) {
		w->dropped_trace++;
		free(w->trace[0]);
		memmove(w->trace, w->trace + 1, (w->n_trace - 1) * sizeof(*w->trace));
		w->n_trace--;
	}
	w->trace[w->n_trace] = strdup(line);
	if (w->trace[w->n_trace++] == NULL)
		abort();
}

static void
dump(struct world *w)
{
	char path[512];
	const char *base = strrchr(w->script->name, '/');

	if (!w->verbose) {
		if (w->dropped_trace)
			printf("  (%llu older lines)\n", (unsigned long long)w->dropped_trace);
		for (unsigned i = 0; i < w->n_trace; i++)
			printf("%s\n", w->trace[i]);
	}
	snprintf(path, sizeof(path), "%s/%s.pcap", w->pcap_dir, base ? base + 1 : w->script->name);
	if (pcapbuf_write(w->pcap, path) == 0)
		printf("  capture: %s\n", path);
	fflush(stdout);
}

void
world_dump_now(void)
{
	if (world_now == NULL)
		return;
	if (world_now->at != NULL)
		printf("%s:%d: the core died in: %s\n", world_now->at->file, world_now->at->line,
			world_now->at->text);
	dump(world_now);
}

_Noreturn void
world_fail(struct world *w, const struct stmt *st, const char *fmt, ...)
{
	va_list ap;

	if (st != NULL)
		printf("%s:%d: failed: %s\n", st->file, st->line, st->text);
	else
		printf("%s: failed at the end\n", w->script->name);
	printf("  %.6f: ", w->up ? (double)world_time(w) / 1e9 : 0.0);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	dump(w);
	longjmp(w->fail, 1);
}

/* ---- flows ---- */

struct flow *
world_flow_of(struct world *w, const struct corq_addr *peer, uint16_t pport,
	const struct corq_addr *local, uint16_t lport)
{
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		if (f->pport == pport && f->lport == lport && corq_addr_eq(&f->paddr, peer) &&
			corq_addr_eq(&f->laddr, local))
			return f;
	return NULL;
}

static struct flow *
flow_new(struct world *w, const char *name)
{
	struct flow *f = calloc(1, sizeof(*f)), **link = &w->flows;

	if (f == NULL)
		abort();
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->paddr = testcore_addr(TESTCORE_PEER);
	f->laddr = testcore_addr(TESTCORE_ADDR);
	f->pport = DEFAULT_PPORT;
	if (w->flows != NULL)
		f->lport = w->flows->lport;
	while (*link != NULL)
		link = &(*link)->next;
	*link = f;
	return f;
}

/* flow NAME [pport N] [lport N] [peer ADDRESS]: the statements after it are about NAME. */
static void
do_flow(struct world *w, const struct stmt *st)
{
	struct flow *f = w->flows;

	while (f != NULL && strcmp(f->name, st->words[0]) != 0)
		f = f->next;
	if (f == NULL)
		f = flow_new(w, st->words[0]);
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

/* ---- packets of the core ---- */

static void
learn(struct flow *f, const struct packet *p)
{
	const struct opt *ts = NULL;

	for (unsigned i = 0; i < p->n_opts; i++)
		if (p->opts[i].kind == OPT_TS)
			ts = &p->opts[i];
	if (ts != NULL) {
		if (!f->have_our_ts)
			f->our_ts_base = (uint32_t)ts->v[0].lo;
		f->have_our_ts = true;
		f->our_ts_last = (uint32_t)ts->v[0].lo;
	}
	if (!(p->flags & CORQ_TH_SYN))
		return;
	if (!f->have_our_isn)
		f->our_isn = p->seq;
	f->have_our_isn = true;
	f->our_syn = p->seq;
	f->our_ts = ts != NULL;
}

/* Bytes must be those that the program wrote there. */
static void
check_payload(struct world *w, const struct flow *f, const struct packet *p)
{
	uint32_t off = p->seq - f->our_syn - 1;

	for (uint32_t i = 0; i < p->payload_len; i++)
		if (p->payload[i] != wire_pattern_out(off + i))
			world_fail(w, w->at, "sent byte %u is 0x%02x, the program wrote 0x%02x",
				off + i, p->payload[i], wire_pattern_out(off + i));
}

/* Sees every packet first: whatever the script expects, it must be a good packet. */
static void
on_tx(void *arg, const struct memport_pkt *pkt)
{
	struct world *w = arg;
	struct packet p;
	struct flow *f = NULL;
	const char *bad = wire_decode(pkt->bytes, pkt->len, pkt->at_ns, &p);
	char line[400];

	if (bad != NULL)
		world_fail(w, w->at, "a packet was sent that is wrong: %s", bad);
	if (p.kind == PACKET_TCP) {
		f = world_flow_of(w, &p.dst, p.dport, &p.src, p.sport);
		if (f != NULL)
			learn(f, &p);
	}
	wire_format(&p, f, true, line, sizeof(line));
	world_trace(w, "  ->  %s", line);
	if (p.kind != PACKET_TCP)
		return;
	if (memcmp(pkt->bytes, TESTCORE_PEER_MAC, 6) != 0)
		world_fail(w, w->at, "sent to another Ethernet address than the peer's");
	if (p.urg != 0 || (p.flags & CORQ_TH_URG))
		world_fail(w, w->at, "an urgent pointer was sent");
	if (f != NULL && f->have_our_isn && p.payload_len != 0)
		check_payload(w, f, &p);
}

static void
fail_unexpected(struct world *w, const struct stmt *st)
{
	const struct memport_pkt *pkt = w->tc.tx_first;
	struct packet p;
	char line[400];

	wire_decode(pkt->bytes, pkt->len, pkt->at_ns, &p);
	wire_format(
		&p, world_flow_of(w, &p.dst, p.dport, &p.src, p.sport), true, line, sizeof(line));
	world_fail(w, st, "a packet was sent at %.6f that nothing expected:\n    %s",
		(double)(pkt->at_ns - w->start_ns) / 1e9, line);
}

/* ---- time ---- */

static void
settle(struct world *w, const struct stmt *st)
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
		fail_unexpected(w, st);
	if (at < world_time(w))
		world_fail(w, st, "that moment is over");
	if (testcore_run_to(&w->tc, w->start_ns + at, true))
		fail_unexpected(w, st);
	settle(w, st);
	if (w->tc.tx_first != NULL)
		fail_unexpected(w, st);
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
	settle(w, st);
	w->prev_ns = world_time(w);
}

static void
do_call(struct world *w, const struct stmt *st)
{
	go(w, st, moment(w, st, st->at_ns));
	w->calls = st;
	w->batch = false;
	testcore_turn(&w->tc);
	settle(w, st);
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
	settle(w, st);
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
	settle(w, st);
}

static void
do_drain(struct world *w)
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
		do_drain(w);
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
release(struct corq_core *core, void *arg, uint64_t cookie)
{
	struct world *w = arg;

	(void)core;
	(void)cookie;
	w->released++;
}

static void
start_core(struct world *w, const struct stmt *st)
{
	char err[256] = "";

	w->at = st;
	if (testcore_init(&w->tc, &w->opts, err, sizeof(err)) != 0)
		world_fail(w, st, "no core: %s", err);
	w->up = true;
	w->start_ns = memport_now(w->tc.mp);
	memport_set_pcap(w->tc.mp, w->pcap, true, true);
	w->tc.on_tx = on_tx;
	w->tc.on_tx_arg = w;
	if (!corq_check_init(&w->check, &w->tc.core->eng))
		abort();
	corq_core_set_user(w->tc.core, w);
	corq_core_set_hook(w->tc.core, world_hook, w);
	w->region = testcore_region(&w->tc, w->pattern, WORLD_PATTERN + 251, release, w);
	if (w->arp_static)
		testcore_neighbour(&w->tc, TESTCORE_PEER, TESTCORE_PEER_MAC);
	w->cur = flow_new(w, "main");
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
			start_core(w, st);
		do_stmt(w, st);
		if (corq_check_engine(&w->check, &w->tc.core->eng, CORQ_CHECK_QUICK) != 0)
			world_fail(w, st, "the engine is inconsistent: %s", w->check.msg);
	}
}

/* ---- the end: nothing may be left over ---- */

static void
check_end(struct world *w)
{
	w->at = NULL;
	if (w->tc.tx_first != NULL)
		fail_unexpected(w, NULL);
	for (unsigned i = 0; i < w->n_events; i++) {
		const struct event *e = &w->events[i];

		if (!e->taken && e->kind == EVENT_CLOSE && e->arg != 0)
			world_fail(w, NULL, "on_close (%s) of flow '%s' was not expected",
				strerrorname_np(-e->arg), e->flow->name);
	}
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		for (int k = 0; k < EVENT_COUNT; k++)
			if (f->on[k] != NULL)
				world_fail(w, f->on[k], "the callback never came");
}

static uint64_t
clean_hook(struct corq_core *core, void *arg, uint64_t now_ns)
{
	struct world *w = arg;

	(void)now_ns;
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		if (f->conn != NULL)
			corq_conn_abort(core, f->conn);
	for (unsigned i = 0; i < WORLD_LISTENERS; i++)
		if (w->listeners[i] != NULL)
			corq_listener_close(core, w->listeners[i]);
	memset(w->listeners, 0, sizeof(w->listeners));
	corq_core_set_hook(core, NULL, NULL);
	return 0;
}

static void
clean_up(struct world *w)
{
	uint64_t end = memport_now(w->tc.mp) + CLEAN_NS;

	w->cleaning = true;
	world_trace(w, "the script is over: abort all, wait, count");
	memport_set_tx_room(w->tc.mp, UINT32_MAX);
	memport_limit_tx(w->tc.mp, UINT32_MAX);
	memport_limit_rx(w->tc.mp, UINT32_MAX);
	memport_set_backlog(w->tc.mp, 0);
	corq_core_set_hook(w->tc.core, clean_hook, w);
	testcore_turn(&w->tc);
	settle(w, NULL);
	testcore_run_to(&w->tc, end, false);
	do_drain(w);
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		if (f->conn != NULL)
			world_fail(w, NULL, "flow '%s' was aborted and had no on_close", f->name);
	if (corq_check_engine(&w->check, &w->tc.core->eng, CORQ_CHECK_FULL) != 0 ||
		corq_check_empty(&w->check, &w->tc.core->eng) != 0)
		world_fail(w, NULL, "the engine at the end: %s", w->check.msg);
	if (testcore_leaks(&w->tc, stdout) != 0)
		world_fail(w, NULL, "something leaked (see above)");
	if (memport_violation(w->tc.mp) != NULL)
		world_fail(w, NULL, "the device was misused: %s", memport_violation(w->tc.mp));
}

static void
world_init(struct world *w, struct script *s, bool verbose, const char *pcap_dir)
{
	memset(w, 0, sizeof(*w));
	w->script = s;
	w->verbose = verbose;
	w->pcap_dir = pcap_dir;
	w->win = 65535;
	w->peer_isn = DEFAULT_PEER_ISN;
	w->arp_static = w->auto_ts = true;
	w->pcap = pcapbuf_new(65536);
	w->trace = calloc(WORLD_TRACE_MAX, sizeof(*w->trace));
	w->pattern = malloc(WORLD_PATTERN + 251);
	if (w->trace == NULL || w->pattern == NULL)
		abort();
	for (uint32_t i = 0; i < WORLD_PATTERN + 251; i++)
		w->pattern[i] = wire_pattern_out(i);
}

static void
world_free(struct world *w)
{
	struct flow *f;

	while ((f = w->flows) != NULL) {
		w->flows = f->next;
		free(f);
	}
	if (w->up) {
		corq_check_end(&w->check);
		testcore_end(&w->tc);
	}
	for (unsigned i = 0; i < w->n_trace; i++)
		free(w->trace[i]);
	free(w->trace);
	free(w->events);
	free(w->pattern);
	pcapbuf_free(w->pcap);
}

bool
world_run(struct script *s, bool verbose, const char *pcap_dir)
{
	static struct world w;
	volatile bool held = false;

	world_init(&w, s, verbose, pcap_dir);
	world_now = &w;
	if (setjmp(w.fail) == 0) {
		do_list(&w, s->first);
		if (w.up) {
			check_end(&w);
			clean_up(&w);
		}
		held = true;
	}
	world_now = NULL;
	world_free(&w);
	return held;
}
