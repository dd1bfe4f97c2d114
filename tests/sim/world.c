/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - one run: time that jumps from event to event, turns of two cores, checks after each,
 * and what must be true when all is quiet.
 *
 * A core's turn is due when a packet has arrived, a deadline has passed, a connection is to be
 * opened, or its last turn did something. It happens a random while after the core's last turn, so
 * bursts form. When nothing is due on either side and nothing is under way the run is over: no
 * connection, record, chunk, frame, port or handle may be left.
 */
#include "ep.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TURNS    3000000u
#define MAX_QUIET_NS (4 * 3600 * CORQ_NS_PER_S)
#define POLL_NS      CORQ_NS_PER_MS

void
sim_fail(struct world *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (w->failed)
		return; /* the first word counts */
	w->failed = true;
	n = snprintf(w->msg, sizeof(w->msg), "%.6f s: ", (double)(w->now_ns - w->start_ns) / 1e9);
	va_start(ap, fmt);
	vsnprintf(w->msg + n, sizeof(w->msg) - (size_t)n, fmt, ap);
	va_end(ap);
}

void
sim_say(const struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->opt->verbose)
		return;
	printf("%12.6f ", (double)(w->now_ns - w->start_ns) / 1e9);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- opening connections, closing listeners: the hook of each core ---- */

static void
listen_on(struct sim_side *s, int i)
{
	struct corq_listen_opts o = {.port = (uint16_t)(SIM_PORT_LISTEN + i),
		.backlog = 0,
		.ops = i == 3 ? &sim_proxy_ops : &sim_ops};
	int rc;

	if (s->w->p.tight)
		o.backlog = 2 + i;
	rc = corq_core_listen(s->tc.core, &o, &s->listener[i]);
	if (rc != 0)
		sim_fail(s->w, "listen: %s", strerrorname_np(-rc));
}

static void
toggle_listener(struct sim_side *s, uint64_t now)
{
	int i = (int)sim_below(&s->w->plan, CORQ_ARRAY_LEN(s->listener));

	s->next_listen_ns = now + 1 + sim_below(&s->w->plan, CORQ_NS_PER_S);
	if (s->listener[i]) {
		sim_say(s->w, "%c stops listening on %d", (int)('A' + (s - s->w->side)),
			SIM_PORT_LISTEN + i);
		corq_listener_close(s->tc.core, s->listener[i]);
		s->listener[i] = NULL;
		s->w->listener_closed = true;
	} else {
		listen_on(s, i);
	}
}

/* Both sides open the same tuple, at nearly the same time. */
static void
plan_dual(struct world *w, uint64_t now)
{
	uint64_t near = CORQ_MAX(w->p.link[0].delay_ns, w->p.link[1].delay_ns);

	w->dual_port++;
	for (int i = 0; i < 2; i++)
		w->dual_at_ns[i] = now + 1 + sim_below(&w->plan, near + near / 4 + 2);
}

static void
open_one(struct sim_side *s, uint64_t now)
{
	struct world *w = s->w;
	uint16_t port = (uint16_t)(SIM_PORT_LISTEN + sim_below(&w->plan, 3));

	w->n_open_calls++;
	w->last_open_ns = now;
	if (w->p.dual && sim_below(&w->plan, 5) == 0 && w->dual_at_ns[0] <= now &&
		w->dual_at_ns[1] <= now) {
		plan_dual(w, now);
		return;
	}
	if (sim_below(&w->plan, 40) == 0)
		port = SIM_PORT_CLOSED;
	else if (w->p.proxies && sim_below(&w->plan, 4) == 0)
		port = SIM_PORT_PROXY;
	sim_ep_connect(s, port, 0, SIM_KIND_USUAL);
}

static uint64_t
hook(struct corq_core *core, void *arg, uint64_t now)
{
	struct sim_side *s = arg;
	struct world *w = s->w;
	int i = (int)(s - w->side);
	uint64_t next = UINT64_MAX;

	(void)core;
	s->in_cb = true;
	if (w->dual_at_ns[i] != 0 && w->dual_at_ns[i] <= now && s->dual_port != w->dual_port) {
		uint16_t at = (uint16_t)(SIM_PORT_DUAL + 2 * w->dual_port);

		s->dual_port = w->dual_port;
		sim_ep_connect(s, (uint16_t)(at + !i), (uint16_t)(at + i), SIM_KIND_DUAL);
	}
	while (w->n_open_calls < w->p.n_conns && s->next_open_ns <= now) {
		open_one(s, now);
		s->next_open_ns = now;
		if (sim_below(&w->plan, 4) != 0)
			s->next_open_ns += 1 + sim_below(&w->plan, 4 * w->p.open_gap_ns);
	}
	if (w->n_open_calls < w->p.n_conns) {
		if (w->p.refuse && s->next_listen_ns <= now)
			toggle_listener(s, now);
		next = s->next_open_ns;
	}
	if (s->dual_port != w->dual_port)
		next = CORQ_MIN(next, CORQ_MAX(w->dual_at_ns[i], now + 1));
	s->in_cb = false;
	return next == UINT64_MAX ? 0 : next;
}

/* ---- turns ---- */

static void
check_turn(struct sim_side *s)
{
	struct world *w = s->w;
	bool full = s->turn % w->p.check_every == 0;
	const char *v = memport_violation(s->tc.mp);

	if (s->cb_ran != s->batch_ended)
		sim_fail(w, "%c: callbacks ran, on_batch_end did not", (int)('A' + (s - w->side)));
	s->cb_ran = s->batch_ended = false;
	if (v)
		sim_fail(w, "%c: the device says: %s", (int)('A' + (s - w->side)), v);
	if (!s->again && !full)
		return; /* it did nothing */
	if (corq_check_engine(
		    &s->check, &s->tc.core->eng, full ? CORQ_CHECK_FULL : CORQ_CHECK_QUICK) != 0)
		sim_fail(w, "%c: %s", (int)('A' + (s - w->side)), s->check.msg);
}

/* In one part, or cut behind the headers; at least 128 bytes are in the first, as ports promise. */
static void
arrive(struct sim_side *s, const struct memport_pkt *p)
{
	uint16_t split[2];
	struct memport_how how = {.split = split};

	if (sim_chance(&s->w->plan, s->w->p.split))
		how.n_split = 1 + (unsigned)sim_below(&s->w->plan, 2);
	for (unsigned i = 0; i < how.n_split; i++)
		split[i] = (uint16_t)(128 + sim_below(&s->w->plan, 400));
	memport_inject_as(s->tc.mp, p->bytes, p->len, &how);
}

static void
run_turn(struct sim_side *s)
{
	struct world *w = s->w;
	int i = (int)(s - w->side);
	struct memport_counts n;
	struct memport_pkt *p;

	memport_set_clock(s->tc.mp, w->now_ns);
	while ((p = sim_link_take(&w->link[!i], w->now_ns)) != NULL) {
		arrive(s, p);
		free(p);
	}
	if (w->p.tx_room)
		memport_set_tx_room(s->tc.mp, (uint32_t)sim_below(&w->plan, w->p.tx_room));
	s->turn++;
	s->again = testcore_turn(&s->tc);
	while ((p = testcore_take(&s->tc)) != NULL)
		sim_link_send(&w->link[i], p, w->now_ns);
	memport_counts(s->tc.mp, &n);
	/* Events marked by the hook are told in the next turn; an idle core would not sleep. */
	s->again |= n.rx_queued > 0 || s->tc.core->eng.events.n > 0;
	s->idle_turns = s->again ? 0 : s->idle_turns + 1;
	check_turn(s);
	s->busy_until_ns = w->now_ns + 1 + sim_below(&w->plan, w->p.gap_ns);
	if (sim_chance(&w->plan, w->p.pause))
		s->busy_until_ns += sim_below(&w->plan, w->p.pause_ns);
	s->next_ns = testcore_next(&s->tc);
}

/* When the side's next turn is. */
static uint64_t
due(const struct sim_side *s)
{
	const struct world *w = s->w;
	int i = (int)(s - w->side);
	uint64_t at = CORQ_MIN(s->next_ns, sim_link_next(&w->link[!i]));

	if (s->again)
		at = 0;
	/* An idle core polls: releases may wait for completion, packets for room in the device. */
	if (s->n_out > 0 || s->tc.core->n_tx > 0)
		at = CORQ_MIN(at, s->busy_until_ns + (POLL_NS << CORQ_MIN(s->idle_turns, 10u)));
	if (at == UINT64_MAX)
		return at;
	if (w->dual_at_ns[i] != 0 && s->dual_port != w->dual_port)
		at = CORQ_MIN(at, w->dual_at_ns[i]);
	return CORQ_MAX(CORQ_MAX(at, s->busy_until_ns), w->now_ns);
}

static void
run_to_quiet(struct world *w)
{
	for (uint32_t turns = 0; !w->failed; turns++) {
		uint64_t a = due(&w->side[0]), b = due(&w->side[1]);
		uint64_t t = CORQ_MIN(a, b);

		if (t == UINT64_MAX)
			return;
		if (t - w->start_ns > MAX_QUIET_NS) {
			sim_fail(w, "not quiet after %llu s; %u ends open",
				(unsigned long long)((t - w->start_ns) / CORQ_NS_PER_S), w->n_live);
			return;
		}
		if (turns == MAX_TURNS) {
			sim_fail(w, "%u turns and no end", turns);
			return;
		}
		w->now_ns = t;
		run_turn(a <= b ? &w->side[0] : &w->side[1]);
	}
}

/* ---- the end ---- */

static void
check_quiet(struct sim_side *s)
{
	struct world *w = s->w;
	int c = (int)('A' + (s - w->side));
	unsigned leaks = testcore_leaks(&s->tc, stderr);

	if (leaks)
		sim_fail(w, "%c: %u kinds of leaks at the end", c, leaks);
	if (s->n_out)
		sim_fail(w, "%c: %u borrowed pieces never released", c, s->n_out);
	if (w->p.refuse)
		for (unsigned i = 0; i < CORQ_ARRAY_LEN(s->listener); i++)
			if (s->listener[i])
				corq_listener_close(s->tc.core, s->listener[i]);
	if (corq_check_empty(&s->check, &s->tc.core->eng) != 0)
		sim_fail(w, "%c: at the end: %s", c, s->check.msg);
	for (uint32_t i = 0; i < w->n_ep; i++)
		if (w->ep[i].side == s - w->side &&
			corq_conn_of(s->tc.core, w->ep[i].handle) != NULL)
			sim_fail(w, "end %u: its handle lives on", i);
}

/* Nothing was lost, so nothing is sent twice. Two kinds of SYN are, and are right: one that crosses
 * the peer's goes again with an ACK; one to a tuple that the peer still knows is asked again at
 * once, and what that doubles may come as duplicate ACKs later. */
static void
check_clean(struct world *w)
{
	bool doubled = w->p.dual;
	struct corq_stats st[2];

	for (int i = 0; i < 2; i++) {
		corq_core_usage(w->side[i].tc.core, &st[i]);
		doubled |= w->p.few_ports && st[i].syn_retransmitted;
	}
	for (int i = 0; i < 2; i++)
		if (st[i].rto_fired || (st[i].segs_retransmitted && !doubled) ||
			(!w->p.few_ports && st[i].segs_retransmitted != st[i].syn_retransmitted))
			sim_fail(w,
				"%c: nothing was lost, but %llu segments (%llu SYN, %llu FIN) were "
				"sent "
				"again, %llu timeouts",
				'A' + i, (unsigned long long)st[i].segs_retransmitted,
				(unsigned long long)st[i].syn_retransmitted,
				(unsigned long long)st[i].fin_retransmitted,
				(unsigned long long)st[i].rto_fired);
}

static void
check_end(struct world *w)
{
	if (w->n_live)
		sim_fail(w, "all is quiet, but %u ends are open", w->n_live);
	if (w->n_open_calls != w->p.n_conns)
		sim_fail(w, "all is quiet, but only %u of %u connections were opened",
			w->n_open_calls, w->p.n_conns);
	for (int i = 0; i < 2; i++)
		check_quiet(&w->side[i]);
	if (w->p.clean)
		check_clean(w);
	sim_check_ends(w);
}

/* ---- set-up ---- */

static int
side_init(struct world *w, int i)
{
	struct sim_side *s = &w->side[i];
	uint8_t *arena = s->arena;
	struct testcore_opts o = {
		.cfg = w->p.cfg[i],
		.port = w->p.port[i],
		.addr = i ? TESTCORE_PEER : TESTCORE_ADDR,
		.no_arp = true,
		.seed = w->p.cfg[i].seed,
	};
	char err[256];

	memset(s, 0, sizeof(*s));
	s->w = w;
	s->arena = arena ? arena : malloc((size_t)SIM_SLOTS * SIM_SLOT_BYTES);
	if (!s->arena || testcore_init(&s->tc, &o, err, sizeof(err)) != 0) {
		sim_fail(w, "no core: %s", err);
		return -1;
	}
	if (!corq_check_init(&s->check, &s->tc.core->eng))
		abort();
	if (w->p.clean) /* while ARP is unresolved only the first packets are kept */
		testcore_neighbour(&s->tc, i ? TESTCORE_ADDR : TESTCORE_PEER, w->p.port[!i].mac);
	corq_core_set_user(s->tc.core, s);
	s->region = testcore_region(
		&s->tc, s->arena, (size_t)SIM_SLOTS * SIM_SLOT_BYTES, sim_mem_release, s);
	corq_core_set_hook(s->tc.core, hook, s);
	if (w->pcap && i == 0)
		memport_set_pcap(s->tc.mp, w->pcap, true, true);
	for (int k = 0; k < (int)CORQ_ARRAY_LEN(s->listener); k++)
		listen_on(s, k);
	s->next_open_ns = w->start_ns + 1 + sim_below(&w->plan, w->p.open_gap_ns);
	s->next_listen_ns = w->start_ns + sim_below(&w->plan, CORQ_NS_PER_S);
	s->again = true;
	return 0;
}

static void
world_init(struct world *w, const struct sim_options *o, uint64_t seed, struct pcapbuf *pcap)
{
	struct sim_ep *ep = w->ep;
	uint8_t *arena[2] = {w->side[0].arena, w->side[1].arena};

	memset(w, 0, sizeof(*w));
	w->ep = ep ? ep : malloc(SIM_MAX_EPS * sizeof(*ep));
	if (!w->ep)
		abort();
	w->opt = o;
	w->pcap = pcap;
	sim_params_draw(&w->p, o, seed);
	corq_rand_seed(&w->rand, seed ^ 0x70726f67);
	corq_rand_seed(&w->plan, seed ^ 0x706c616e);
	w->start_ns = w->now_ns = w->p.port[0].start_ns;
	for (int i = 0; i < 2; i++) {
		w->side[i].arena = arena[i];
		sim_link_init(&w->link[i], &w->p.link[i], seed ^ (0x6c696e6bu + (unsigned)i));
		if (side_init(w, i) != 0)
			return;
	}
}

static void
add_totals(struct world *w, struct sim_totals *t)
{
	t->seeds++;
	t->conns += w->n_open_calls;
	t->bytes += w->bytes_read;
	t->turns += w->side[0].turn + w->side[1].turn;
	t->packets += w->link[0].n_sent + w->link[1].n_sent;
	t->virtual_ns += w->now_ns - w->start_ns;
	for (uint32_t i = 0; i < w->n_ep; i++) {
		t->in_order += w->ep[i].reason == 0;
		t->reset += w->ep[i].reason == -ECONNRESET;
		t->refused += w->ep[i].reason == -ECONNREFUSED;
		t->timed_out += w->ep[i].reason == -ETIMEDOUT;
	}
}

int
sim_run(struct world *w, const struct sim_options *o, uint64_t seed, struct pcapbuf *pcap,
	struct sim_totals *t)
{
	world_init(w, o, seed, pcap);
	if (o->verbose)
		sim_params_print(&w->p);
	if (!w->failed)
		run_to_quiet(w);
	if (!w->failed)
		check_end(w);
	add_totals(w, t);
	for (int i = 0; i < 2; i++) {
		sim_link_end(&w->link[i]);
		if (w->side[i].tc.mp)
			testcore_end(&w->side[i].tc);
		corq_check_end(&w->side[i].check);
	}
	return w->failed ? -1 : 0;
}

void
sim_end(struct world *w)
{
	free(w->ep);
	free(w->side[0].arena);
	free(w->side[1].arena);
}
