/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_recycler.c - bounds of what many connections cost at once, on virtual time: the ceilings of
 * 100 k corked connections (SEMANTICS K10), and TIME_WAIT under load (T9, T10): work a turn,
 * numbers kept, order of expiry and of eviction, our own tuples that come back (ISN cache), and
 * that nothing is left.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "mkseg.h"
#include "net/wire.h"
#include "testcore.h"

#include <corq/core.h>
#include <stdlib.h>
#include <string.h>

#define PORT        80
#define CORKED      100000u
#define BATCH       64u
#define PORTS_EACH  50000u /* a peer address */
#define BUDGET      512u   /* timers a turn (core.h) */
#define WHEEL_LEVEL 4u     /* an entry moves at most three times, then it is taken */

static struct testcore tc;
static struct corq_conn **conns;
static uint32_t n_conns;
static uint64_t n_data, first_data_at, last_data_at;
static uint32_t *isn_of; /* a peer's index: what its ACK names */
static bool cork_all;

static void
on_open(struct corq_core *core, struct corq_conn *conn)
{
	if (!cork_all)
		return;
	corq_conn_set_cork(core, conn, true);
	assert_int_equal(corq_conn_write(core, conn, "0123456789", 10, 0), 10);
	conns[n_conns++] = conn;
}

/* TIME_WAIT cases: the peer's FIN was ours to answer, so we close first. */
static void
on_open_close(struct corq_core *core, struct corq_conn *conn)
{
	corq_conn_close(core, conn);
}

static const struct corq_ops cork_ops = {.on_open = on_open};
static const struct corq_ops close_ops = {.on_open = on_open_close};

static void
inject(uint32_t i, uint8_t flags, uint32_t seq, uint32_t ack)
{
	struct mkseg m = {.smac = {2, 0, 0, 0, 0, 2}, .dmac = {2, 0, 0, 0, 0, 1}};
	uint8_t frame[MKSEG_MAX];

	m.src = testcore_addr(TESTCORE_PEER);
	m.src.b[15] = (uint8_t)(m.src.b[15] + i / PORTS_EACH);
	m.dst = testcore_addr(TESTCORE_ADDR);
	m.sport = (uint16_t)(1024 + i % PORTS_EACH);
	m.dport = PORT;
	m.flags = flags;
	m.wnd = 65535;
	m.seq = seq;
	m.ack = ack;
	if (flags & CORQ_TH_SYN)
		mkseg_opt_mss(&m, 1460);
	assert_true(memport_inject(tc.mp, frame, mkseg_build(&m, frame)));
}

/* Takes what was sent: ISNs are learned, data counted. Plain IPv4 headers of 20 bytes. */
static void
take_all(void)
{
	struct memport_pkt *p;

	while ((p = testcore_take(&tc)) != NULL) {
		const uint8_t *tcp = p->bytes + 34;
		uint32_t to = (uint32_t)(tcp[2] << 8 | tcp[3]) - 1024 +
			      (uint32_t)(p->bytes[33] - 2) * PORTS_EACH;
		uint32_t seq = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 |
			       (uint32_t)tcp[6] << 8 | tcp[7];
		unsigned len =
			(unsigned)(p->bytes[16] << 8 | p->bytes[17]) - 20 - (tcp[12] >> 4) * 4u;

		if (tcp[13] & CORQ_TH_SYN)
			isn_of[to] = seq;
		if (len) {
			first_data_at = n_data++ ? first_data_at : p->at_ns;
			last_data_at = p->at_ns;
		}
		free(p);
	}
}

static void
start(const struct corq_config *cfg, const struct corq_ops *ops, bool cork)
{
	struct corq_listen_opts l = {.port = PORT, .backlog = 4096, .ops = ops};
	struct testcore_opts o = {.cfg = *cfg};
	struct corq_listener *listener;
	char err[200] = "";

	cork_all = cork;
	n_conns = 0;
	n_data = first_data_at = last_data_at = 0;
	conns = calloc(CORKED, sizeof(*conns));
	isn_of = calloc(CORKED, sizeof(*isn_of));
	o.port.rx_frames = o.port.tx_frames = 4096;
	assert_int_equal(testcore_init(&tc, &o, err, sizeof(err)), 0);
	for (unsigned i = 0; i < CORKED / PORTS_EACH; i++) {
		char peer[32];

		snprintf(peer, sizeof(peer), "10.0.0.%u", 2 + i);
		testcore_neighbour(&tc, peer, TESTCORE_PEER_MAC);
	}
	assert_int_equal(corq_core_listen(tc.core, &l, &listener), 0);
	testcore_settle(&tc);
}

static void
finish(void)
{
	assert_int_equal(testcore_leaks(&tc, stderr), 0);
	assert_null(memport_violation(tc.mp));
	testcore_end(&tc);
	free(conns);
	free(isn_of);
}

/* Peers [from, from + n) shake hands. */
static void
open_batch(uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		inject(i, CORQ_TH_SYN, 0, 0);
	testcore_settle(&tc);
	take_all();
	for (uint32_t i = from; i < from + n; i++)
		inject(i, CORQ_TH_ACK, 1, isn_of[i] + 1);
	testcore_settle(&tc);
	take_all();
}

/* Turns, once a millisecond, as long as the core has something to do (a wheel that moves entries
 * down fires none meanwhile). */
static void
go_to(uint64_t ns)
{
	while (memport_now(tc.mp) < ns) {
		memport_set_clock(
			tc.mp, CORQ_MIN(ns, memport_now(tc.mp) + (uint64_t)CORQ_NS_PER_MS));
		while (corq_core_turn(tc.core) || corq_tcp_next_deadline(&tc.core->eng) == 0)
			;
		while (testcore_turn(&tc))
			;
		take_all();
	}
}

/*
 * All tails were written at one moment, so all ceilings are one. Until it comes no turn fires one;
 * then each is taken once. A call of the wheel takes at most 64 entries and moves 128, and an entry
 * moves at most three times; so a bound on the number of turns is a bound on what was touched. A
 * scan would touch 100 k connections in each.
 */
static void
ceilings_cost_no_scan(void **state)
{
	struct corq_config cfg = {.max_conns = 131072,
		.max_half_open = 4096,
		.max_time_wait = 1024,
		.max_fin_wait2 = 1024,
		.chunk_bytes_mb = 256,
		.rto_init_ms = 200}; /* a handshake without a pause has no RTT to learn */
	struct corq_engine *e;
	uint64_t turns, busy, t0;

	(void)state;
	start(&cfg, &cork_ops, true);
	e = &tc.core->eng;
	t0 = memport_now(tc.mp);
	for (uint32_t i = 0; i < CORKED; i += BATCH)
		open_batch(i, CORQ_MIN(BATCH, CORKED - i));
	assert_int_equal(n_conns, CORKED);
	assert_int_equal(n_data, 0);
	assert_int_equal(e->wheel.n_armed, CORKED);

	/* A thousand turns in which time passes and nothing is due fire nothing. */
	turns = e->stats.turns;
	busy = e->stats.turns_busy;
	for (unsigned i = 0; i < 1000; i++) {
		memport_advance(tc.mp, 150 * CORQ_NS_PER_MS / 1000);
		corq_core_turn(tc.core);
	}
	assert_int_equal(e->stats.turns - turns, 1000);
	assert_int_equal(e->stats.turns_busy - busy, 0);
	assert_int_equal(e->wheel.n_armed, CORKED);

	/* On to the ceiling, with a stop wherever the core wants one. */
	turns = e->stats.turns;
	go_to(t0 + 199 * CORQ_NS_PER_MS);
	assert_int_equal(n_data, 0);
	assert_true(e->stats.turns - turns <= WHEEL_LEVEL * CORKED / BATCH);
	go_to(t0 + 210 * CORQ_NS_PER_MS);
	assert_int_equal(n_data, CORKED); /* each once */
	assert_true(first_data_at >= t0 + 200 * CORQ_NS_PER_MS);
	print_message("k10: %u ceilings in %llu turns\n", CORKED,
		(unsigned long long)(e->stats.turns - turns));
	assert_true(e->stats.turns - turns <= WHEEL_LEVEL * CORKED / BATCH);
	for (uint32_t i = 0; i < n_conns; i++) {
		corq_conn_abort(tc.core, conns[i]);
		if (i % BATCH == 0) {
			testcore_settle(&tc);
			take_all();
		}
	}
	testcore_settle(&tc);
	take_all();
	finish();
}

/* A connection comes and goes: we close first, the tuple rests. */
static void
rest_batch(uint32_t from, uint32_t n)
{
	open_batch(from, n);
	for (uint32_t i = from; i < from + n; i++)
		inject(i, CORQ_TH_FIN | CORQ_TH_ACK, 1, isn_of[i] + 2);
	testcore_settle(&tc);
	take_all();
}

/* Expiry a turn is bounded by the budget, and in the order of entering; nothing is left. */
static void
expiry_is_bounded(void **state)
{
	struct corq_config cfg = {.max_conns = 1024,
		.max_half_open = 1024,
		.max_time_wait = 32768,
		.max_fin_wait2 = 256};
	uint64_t t0, seen = 0, most = 0;
	struct corq_engine *e;
	uint32_t n = 20000;

	(void)state;
	start(&cfg, &close_ops, false);
	e = &tc.core->eng;
	t0 = memport_now(tc.mp);
	for (uint32_t i = 0; i < n; i += BATCH)
		rest_batch(i, CORQ_MIN(BATCH, n - i));
	assert_int_equal(e->stats.time_wait_live, n);
	assert_int_equal(e->stats.tw_entered, n);
	/* all at one tick: the worst that can come */
	memport_set_clock(tc.mp, t0 + 60001 * CORQ_NS_PER_MS);
	while (e->stats.time_wait_live) {
		corq_core_turn(tc.core);
		most = CORQ_MAX(most, e->stats.tw_expired - seen);
		assert_true(e->stats.tw_expired > seen); /* each turn goes on */
		seen = e->stats.tw_expired;
	}
	assert_int_equal(most, BUDGET);
	assert_int_equal(e->stats.tw_expired, n);
	assert_int_equal(e->stats.tw_evicted, 0);
	finish();
}

/* 30 k connections/s against a bound of 8000 records: the number stays at the bound, the one
 * nearest its end goes, each eviction is counted, and the others keep their full time. */
static void
pressure_evicts_the_oldest(void **state)
{
	struct corq_config cfg = {.max_conns = 1024,
		.max_half_open = 1024,
		.max_time_wait = 8000,
		.max_fin_wait2 = 256};
	struct corq_engine *e;
	uint32_t n = 30000;
	uint64_t last;

	(void)state;
	start(&cfg, &close_ops, false);
	e = &tc.core->eng;
	for (uint32_t i = 0; i < n; i += BATCH) {
		uint32_t kept = CORQ_MIN(i, 8000u);

		assert_int_equal(e->stats.time_wait_live, kept);
		rest_batch(i, CORQ_MIN(BATCH, n - i));
		memport_advance(tc.mp, BATCH * 1000000000ull / 30000);
		assert_true(e->rec_n[CORQ_REC_TIME_WAIT] <= 8000);
	}
	assert_int_equal(e->stats.tw_entered, n);
	assert_int_equal(e->stats.tw_evicted, n - 8000);
	assert_int_equal(e->reasons[CORQ_R_TCP_TW_EVICTED], n - 8000);
	assert_int_equal(e->reasons[CORQ_R_TCP_TW_FORGOTTEN], 0);
	last = memport_now(tc.mp);
	/* who is left are the newest: peer n - 8000 is there, the one before it is not */
	inject(n - 8001, CORQ_TH_FIN | CORQ_TH_ACK, 1, isn_of[n - 8001] + 2);
	testcore_settle(&tc);
	assert_int_equal(e->reasons[CORQ_R_TCP_NO_CONN], 1);
	inject(n - 8000, CORQ_TH_FIN | CORQ_TH_ACK, 1, isn_of[n - 8000] + 2);
	testcore_settle(&tc);
	assert_int_equal(e->reasons[CORQ_R_TCP_TW_RESTARTED], 1);
	take_all();
	testcore_run_to(&tc, last + 61000 * CORQ_NS_PER_MS, false);
	assert_int_equal(e->stats.time_wait_live, 0);
	assert_int_equal(e->stats.tw_expired, 8000);
	finish();
}

/* ---- our own tuples that come back ---- */

static int closed;

static void
on_peer_fin_close(struct corq_core *core, struct corq_conn *conn)
{
	corq_conn_close(core, conn);
}

static void
on_close_count(struct corq_core *core, struct corq_conn *conn, int reason)
{
	(void)core;
	(void)conn;
	closed += reason == 0;
}

static void
write_some(struct corq_core *core, struct corq_conn *conn)
{
	assert_int_equal(corq_conn_write(core, conn, isn_of, 1000, 0), 1000);
}

static const struct corq_ops own_ops = {
	.on_open = write_some, .on_peer_fin = on_peer_fin_close, .on_close = on_close_count};

/* The peer's answer to our connection from port 5000. */
static void
answer(uint8_t flags, uint32_t seq, uint32_t ack)
{
	struct mkseg m = {.smac = {2, 0, 0, 0, 0, 2}, .dmac = {2, 0, 0, 0, 0, 1}};
	uint8_t frame[MKSEG_MAX];

	m.src = testcore_addr(TESTCORE_PEER);
	m.dst = testcore_addr(TESTCORE_ADDR);
	m.sport = PORT;
	m.dport = 5000;
	m.flags = flags;
	m.wnd = 65535;
	m.seq = seq;
	m.ack = ack;
	if (flags & CORQ_TH_SYN)
		mkseg_opt_mss(&m, 1460);
	assert_true(memport_inject(tc.mp, frame, mkseg_build(&m, frame)));
	testcore_settle(&tc);
}

/* Sequence number of the SYN of a new connection from port 5000; all else that waited is dropped.
 */
static uint32_t
connect_5000(uint16_t lport)
{
	struct corq_connect_opts o = {.rport = PORT, .lport = lport, .ops = &own_ops};
	struct memport_pkt *p;
	struct corq_conn *conn;
	uint32_t seq = 0;

	o.raddr = testcore_addr(TESTCORE_PEER);
	while ((p = testcore_take(&tc)) != NULL)
		free(p);
	assert_int_equal(corq_core_connect(tc.core, &o, &conn), 0);
	testcore_settle(&tc);
	while ((p = testcore_take(&tc)) != NULL) {
		const uint8_t *tcp = p->bytes + 34;

		assert_int_equal(tcp[0] << 8 | tcp[1], 5000);
		seq = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 | (uint32_t)tcp[6] << 8 |
		      tcp[7];
		free(p);
	}
	return seq;
}

/* The peer closes first and holds the TIME_WAIT; we use the tuple again within one tick of the ISN
 * clock: we begin above the old connection's last number, so that it takes our SYN. */
static void
a_tuple_comes_back_above(uint16_t lport)
{
	struct corq_config cfg = {.max_conns = 1024,
		.max_half_open = 256,
		.max_time_wait = 256,
		.max_fin_wait2 = 256,
		.port_first = 5000,
		.port_last = 5000};
	uint32_t first, next;

	start(&cfg, &close_ops, false);
	closed = 0;
	first = connect_5000(lport);
	for (int i = 1; i <= 3; i++) {
		answer(CORQ_TH_SYN | CORQ_TH_ACK, 0, first + 1);
		answer(CORQ_TH_FIN | CORQ_TH_ACK, 1, first + 1001);
		answer(CORQ_TH_ACK, 2, first + 1002);
		assert_int_equal(closed, i);
		next = connect_5000(lport);
		assert_true(next - (first + 1002) >= 65537);
		assert_true(next - (first + 1002) < 1u << 20);
		first = next;
	}
	answer(CORQ_TH_RST | CORQ_TH_ACK, 0, first + 1);
	take_all();
	finish();
}

static void
a_chosen_port_comes_back_above(void **state)
{
	(void)state;
	a_tuple_comes_back_above(0);
}

static void
a_named_port_comes_back_above(void **state)
{
	(void)state;
	a_tuple_comes_back_above(5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ceilings_cost_no_scan),
		cmocka_unit_test(expiry_is_bounded),
		cmocka_unit_test(pressure_evicts_the_oldest),
		cmocka_unit_test(a_chosen_port_comes_back_above),
		cmocka_unit_test(a_named_port_comes_back_above),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
