/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * burst.c - sequences of segments, taken by twin cores as one burst and one by one; see burst.h.
 *
 * A sequence is a few rounds. A round: frames go in, both cores do steps 4 to 10 once, everything
 * is compared; then the programs may be made to do something (write, close, ...) and time moves.
 * Some rounds are one of the bursts that are most easily got wrong, between whatever else there is.
 */
#include "burst.h"

#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static sigjmp_buf after_abort; /* the handler knows nothing else */

static void
on_abort(int sig)
{
	(void)sig;
	siglongjmp(after_abort, 1);
}

void
burst_fail(struct burst *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (b->failed)
		return;
	b->failed = true;
	n = snprintf(b->msg, sizeof(b->msg), "round %u: ", b->round);
	va_start(ap, fmt);
	vsnprintf(b->msg + n, sizeof(b->msg) - (size_t)n, fmt, ap);
	va_end(ap);
}

/* ---- a round ---- */

static void
say(const struct burst *b, const char *what)
{
	if (b->verbose)
		printf("  %2u %s\n", b->round, what);
}

struct round {
	struct burst_frame f[BURST_FRAMES];
	unsigned n;
};

/* Generates a frame and gives it to the core that takes them one by one (and the spread one). */
static void
feed(struct burst *b, struct round *r, int special, uint16_t rport, uint16_t lport)
{
	struct burst_frame *f;

	if (r->n == BURST_FRAMES || b->failed)
		return;
	f = &r->f[r->n++];
	if (special < 0)
		burst_gen(b, f);
	else
		burst_gen_special(b, (enum burst_special)special, 0, rport, lport, f);
	say(b, f->what);
	b->n_frames++;
	memport_inject(b->t[ONE_BY_ONE].tc.mp, f->bytes, f->len);
	if (corq_core_input_burst(b->t[ONE_BY_ONE].tc.core) != 1)
		burst_fail(b, "a frame was not received");
	if (b->spread) {
		memport_inject(b->t[SPREAD].tc.mp, f->bytes, f->len);
		testcore_turn(&b->t[SPREAD].tc);
	}
}

/* testcore collects what was sent in testcore_turn; here the turn comes in halves. */
static void
collect(struct testcore *tc)
{
	struct memport_pkt *p;

	while ((p = memport_take_tx(tc->mp)) != NULL) {
		if (tc->tx_last)
			tc->tx_last->next = p;
		else
			tc->tx_first = p;
		tc->tx_last = p;
	}
}

static int
check_twin(struct burst *b, int i)
{
	struct burst_twin *t = &b->t[i];

	if (corq_check_engine(&t->check, &t->tc.core->eng, CORQ_CHECK_FULL) != 0)
		burst_fail(b, "core %d: %s", i, t->check.msg);
	if (memport_violation(t->tc.mp))
		burst_fail(b, "core %d: the device says: %s", i, memport_violation(t->tc.mp));
	if (t->bad_byte && !b->shifted)
		burst_fail(b, "core %d: a byte that its peer did not send", i);
	if (t->n_ev >= BURST_EVENTS)
		burst_fail(b, "core %d: %u callbacks", i, t->n_ev);
	return b->failed ? -1 : 0;
}

/* The frames of r as one burst into the first core; tails; comparison. */
static void
end_round(struct burst *b, struct round *r)
{
	struct burst_twin *x = &b->t[ONE_BURST], *y = &b->t[ONE_BY_ONE];
	unsigned n;

	for (unsigned i = 0; i < r->n; i++)
		memport_inject(x->tc.mp, r->f[i].bytes, r->f[i].len);
	n = corq_core_input_burst(x->tc.core);
	if (r->n == 0) /* the clock moves here too */
		corq_core_input_burst(y->tc.core);
	if (n != r->n)
		burst_fail(b, "%u of %u frames received in the burst", n, r->n);
	corq_core_turn_tail(x->tc.core, n);
	corq_core_turn_tail(y->tc.core, n);
	collect(&x->tc);
	collect(&y->tc);
	if (b->spread)
		testcore_turn(&b->t[SPREAD].tc);
	r->n = 0;
	for (int i = 0; i < (b->spread ? TWINS : SPREAD); i++)
		if (check_twin(b, i) != 0)
			return;
	if (burst_compare(b, x, y) == 0 && b->spread)
		burst_compare_spread(b, y, &b->t[SPREAD]);
	for (int i = 0; i < TWINS; i++)
		b->t[i].n_ev = 0;
}

/* ---- the bursts most easily got wrong; each on a tuple of its own ---- */

static void
open_tuple(struct burst *b, struct round *r, uint16_t rport)
{
	feed(b, r, BURST_SYN, rport, BURST_LISTEN);
	end_round(b, r);
	feed(b, r, BURST_ACK, rport, BURST_LISTEN);
	end_round(b, r);
}

static void
noise(struct burst *b, struct round *r, unsigned max)
{
	for (uint64_t n = burst_below(b, max); n > 0; n--)
		feed(b, r, -1, 0, 0);
}

static void
special_round(struct burst *b, struct round *r, unsigned which)
{
	/* Port 6005 + 8k: closes when the peer's FIN comes. 6003: answers and closes. */
	uint16_t p = (uint16_t)(6005 + 8 * burst_below(b, 4));
	static const int8_t seq[][5] = {
		{BURST_SYN, BURST_ACK, BURST_DATA, BURST_FIN, -1}, /* a listener's, at once */
		{BURST_SYN, BURST_SYN, BURST_ACK, BURST_DATA_FIN, -1},
		{BURST_SYN, BURST_RST, BURST_SYN, BURST_ACK, -1},
		{BURST_RST, BURST_SYN, -1, -1, -1}, /* of an open connection */
		{BURST_FIN, BURST_DATA, -1, -1, -1},
		{BURST_DATA_FIN, BURST_OLD_FIN, BURST_DATA, BURST_RST, BURST_SYN},
		{BURST_ACK, BURST_SYN, BURST_ACK, BURST_DATA, -1}, /* last ACK, then new SYN */
		{BURST_ACK, BURST_OLD_FIN, BURST_SYN, BURST_ACK, BURST_DATA},
		{BURST_FIN, BURST_OLD_FIN, BURST_SYN, BURST_ACK, -1}, /* into TIME_WAIT and out */
	};

	b->done[which]++;
	if (which >= 8)
		p -= 2;
	if (which >= 3)
		open_tuple(b, r, p);
	if (which == 6 || which == 7) { /* LAST_ACK: the peer closed, we did */
		feed(b, r, BURST_FIN, p, BURST_LISTEN);
		end_round(b, r);
	} else if (which == 8) { /* FIN_WAIT_2: we answered and closed */
		feed(b, r, BURST_DATA, p, BURST_LISTEN);
		end_round(b, r);
		feed(b, r, BURST_ACK, p, BURST_LISTEN);
		end_round(b, r);
	}
	noise(b, r, 6);
	for (unsigned i = 0; i < 5 && seq[which][i] >= 0; i++)
		feed(b, r, seq[which][i], p, BURST_LISTEN);
	noise(b, r, 6);
	end_round(b, r);
}

/* ---- what else happens between rounds, to all cores alike ---- */

static void
call(struct burst *b, int twin, uint32_t idx, uint64_t what, uint32_t arg)
{
	struct corq_core *core = b->t[twin].tc.core;
	struct corq_conn *c = corq_conn_at(&core->eng, idx);

	if (idx >= core->eng.conns.n_fresh || c->state < CORQ_ESTABLISHED ||
		c->state > CORQ_LAST_ACK || (c->flags & (CORQ_CF_ORPHAN | CORQ_CF_DETACHED)))
		return;
	switch (what) {
	case 0:
	case 1:
		burst_write(core, c, arg % 6000, arg & 1 ? CORQ_MORE : 0);
		break;
	case 2:
		corq_conn_consume(core, c, corq_conn_readable(c) / 2);
		break;
	case 3:
		corq_conn_shutdown(core, c);
		break;
	case 4:
		corq_conn_close(core, c);
		break;
	case 5:
		corq_conn_abort(core, c);
		break;
	case 6:
		corq_conn_set_cork(core, c, arg & 1);
		break;
	case 7:
		corq_conn_set_deadline(core, c, corq_core_now(core) + arg % 1000000000u);
		break;
	}
}

static void
open_active(struct burst *b, int twin, uint32_t arg)
{
	struct corq_connect_opts o = {.raddr = burst_peer(arg % BURST_PEERS),
		.rport = (uint16_t)(7000 + arg % 13),
		.ops = &burst_ops};
	struct corq_conn *c;

	corq_core_connect(b->t[twin].tc.core, &o, &c);
}

static void
between(struct burst *b)
{
	static const uint64_t step_ns[] = {
		0, 1000, 20000, 1000000, 45000000, 300000000, 3000000000, 61000000000};
	uint64_t ns = step_ns[burst_below(b, CORQ_ARRAY_LEN(step_ns))];
	uint64_t calls = b->spread ? 0 : burst_below(b, 4);

	while (calls-- > 0) {
		uint64_t what = burst_below(b, 10);
		uint32_t idx = (uint32_t)burst_below(b, 12),
			 arg = (uint32_t)corq_rand_u64(&b->rand);

		for (int i = 0; i < SPREAD; i++)
			if (what < 8)
				call(b, i, idx, what, arg);
			else
				open_active(b, i, arg);
	}
	for (int i = 0; i < TWINS; i++)
		if (b->t[i].tc.core)
			memport_advance(b->t[i].tc.mp, ns);
}

/* ---- a sequence ---- */

static int
twin_init(struct burst *b, int i, const struct testcore_opts *o)
{
	static const char *const peers[BURST_PEERS] = {"10.0.0.2", "10.0.0.3", "10.0.0.4"};
	struct burst_twin *t = &b->t[i];
	struct corq_listen_opts l = {.ops = &burst_ops};
	struct corq_listener *out;
	char err[256];

	if (testcore_init(&t->tc, o, err, sizeof(err)) != 0) {
		burst_fail(b, "no core: %s", err);
		return -1;
	}
	if (!corq_check_init(&t->check, &t->tc.core->eng))
		abort();
	corq_core_set_user(t->tc.core, t);
	t->plain = b->spread;
	for (unsigned k = 0; k < BURST_PEERS; k++)
		testcore_neighbour(&t->tc, peers[k], (const uint8_t[6]){2, 0, 0, 0, 1, (uint8_t)k});
	for (uint16_t k = 0; k < 2; k++) {
		l.port = (uint16_t)(BURST_LISTEN + k);
		if (corq_core_listen(t->tc.core, &l, &out) != 0)
			burst_fail(b, "listen");
	}
	if (b->pcap && i == ONE_BY_ONE)
		memport_set_pcap(t->tc.mp, b->pcap, true, true);
	return b->failed ? -1 : 0;
}

static void
draw_opts(struct burst *b, struct testcore_opts *o)
{
	struct corq_config *c = &o->cfg;

	memset(o, 0, sizeof(*o));
	c->max_conns = b->spread ? 64 : 16 + (uint32_t)burst_below(b, 16);
	c->max_time_wait = b->spread ? 64 : 2 + (uint32_t)burst_below(b, 30);
	c->max_half_open = c->max_fin_wait2 = b->spread ? 64 : 2 + (uint32_t)burst_below(b, 30);
	c->chunk_bytes_mb = 1;
	c->port_first = 20000; /* few: set-up is most of a sequence's time */
	c->port_last = 20255;
	c->timewait = (enum corq_timewait)burst_below(b, 3);
	c->no_rfc1337 = burst_below(b, 4) == 0;
	c->no_timestamps = burst_below(b, 4) == 0;
	c->no_sack = burst_below(b, 4) == 0;
	c->rcv_buf = b->spread ? 65536 : 4096 << burst_below(b, 5);
	c->delack_ms = burst_below(b, 2) ? 40 : 1;
	c->seed = corq_rand_u64(&b->rand) | 1;
	o->seed = c->seed;
	if (burst_below(b, 2))
		o->port.caps = CORQ_PORT_CAP_CHAIN | CORQ_PORT_CAP_L4_CSUM;
	if (burst_below(b, 4) == 0)
		o->port.caps |= CORQ_PORT_CAP_CHAIN | CORQ_PORT_CAP_L4_CSUM |
				CORQ_PORT_CAP_IP_CSUM | CORQ_PORT_CAP_TSO;
}

static void
run_rounds(struct burst *b)
{
	struct round *r = calloc(1, sizeof(*r));
	uint64_t n = 1 + burst_below(b, 5);

	if (!r)
		abort();
	for (b->round = 0; b->round < n && !b->failed; b->round++) {
		b->budget = 20000;
		if (burst_below(b, 3) == 0)
			special_round(b, r, (unsigned)burst_below(b, 9));
		else
			noise(b, r, b->spread ? 25 : 50);
		end_round(b, r);
		between(b);
		end_round(b, r); /* timers */
	}
	free(r);
	if (!b->failed && b->seed % 8 == 0)
		burst_compare_isn(b, &b->t[ONE_BURST], &b->t[ONE_BY_ONE]);
}

static void
end_twins(struct burst *b)
{
	for (int i = 0; i < TWINS; i++) {
		struct burst_twin *t = &b->t[i];

		if (t->tc.mp)
			testcore_end(&t->tc);
		corq_check_end(&t->check);
		t->n_ev = t->n_stream = 0;
		t->bad_byte = false;
	}
}

static int
run_sequence(struct burst *b, uint64_t seed, struct pcapbuf *pcap, bool verbose)
{
	struct testcore_opts o;

	b->seed = seed;
	b->failed = b->shifted = false;
	b->verbose = verbose;
	b->pcap = pcap;
	b->round = 0;
	corq_rand_seed(&b->rand, seed);
	if (sigsetjmp(after_abort, 1) != 0) {
		b->failed = false;
		burst_fail(b, "an assertion failed (above)");
		memset(b->t, 0, sizeof(b->t)); /* in any shape: leave it */
		return -1;
	}
	b->spread = burst_below(b, 4) == 0;
	draw_opts(b, &o);
	for (int i = 0; i < (b->spread ? TWINS : SPREAD) && !b->failed; i++)
		twin_init(b, i, &o);
	if (!b->failed)
		run_rounds(b);
	for (int i = 0; i < SPREAD && b->t[i].tc.core; i++)
		b->taken += b->t[i].tc.core->eng.reasons[CORQ_R_NONE];
	end_twins(b);
	return b->failed ? -1 : 0;
}

static void
tell_failure(struct burst *b, const char *argv0, uint64_t seed)
{
	struct pcapbuf *pb = pcapbuf_new(2000);
	char path[64];

	printf("FAIL seed %llu: %s\n", (unsigned long long)seed, b->msg);
	run_sequence(b, seed, pb, false);
	snprintf(path, sizeof(path), "burst-%llu.pcap", (unsigned long long)seed);
	if (pcapbuf_write(pb, path) == 0)
		printf("  capture of the core that takes frames one by one: %s\n", path);
	printf("  again: %s --seed %llu -v\n", argv0, (unsigned long long)seed);
	pcapbuf_free(pb);
}

int
main(int argc, char **argv)
{
	static const struct option opts[] = {
		{"seed", 1, NULL, 's'}, {"seeds", 1, NULL, 'S'}, {NULL, 0, NULL, 0}};
	struct burst *b = calloc(1, sizeof(*b));
	uint64_t first = 1, last = 1000, n = 0;
	unsigned failed = 0;
	bool verbose = false;
	clock_t start = clock();
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "v", opts, NULL)) != -1) {
		if (c == 's') {
			first = last = strtoull(optarg, NULL, 0);
		} else if (c == 'S') {
			first = strtoull(optarg, &end, 0);
			last = *end == '-' ? strtoull(end + 1, NULL, 0) : first;
		} else if (c == 'v') {
			verbose = true;
		} else {
			fputs("usage: burst [--seed N | --seeds A-B] [-v]\n", stderr);
			return 2;
		}
	}
	signal(SIGABRT, on_abort);
	for (uint64_t seed = first; seed <= last && failed < 10 && b; seed++, n++)
		if (run_sequence(b, seed, NULL, verbose) != 0) {
			failed++;
			tell_failure(b, argv[0], seed);
		}
	printf("%llu sequences, %u failed; %llu frames in, %llu sent frames compared; special "
	       "bursts",
		(unsigned long long)n, failed, (unsigned long long)b->n_frames,
		(unsigned long long)b->n_compared);
	for (int i = 0; i < 9; i++)
		printf(" %llu", (unsigned long long)b->done[i]);
	printf("; %.2f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
	free(b);
	return failed ? 1 : 0;
}
