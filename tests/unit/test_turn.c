/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_turn.c - the budgets of a turn: while much waits in the receive ring, connections
 * send half of a burst, so that what comes back for it cannot outgrow what is taken in; replies are
 * not held by that, and nobody waits for ever. And the time in which the device took nothing.
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

#define CONNS 20
#define PORT  80
#define BYTES 14480 /* an initial window */

struct peer {
	struct corq_conn *conn;
	uint32_t seq, ack; /* what it sends next */
	unsigned data;     /* packets with data that came for it */
};

static struct testcore tc;
static struct peer peers[CONNS];
static unsigned n_open;
static unsigned syn_acks, pure;

static void
on_open(struct corq_core *core, struct corq_conn *conn)
{
	(void)core;
	peers[n_open++].conn = conn;
}

static const struct corq_ops ops = {.on_open = on_open};

/* A segment of peer i; peers from CONNS on only ever send a SYN. */
static void
inject(unsigned i, uint8_t flags)
{
	struct mkseg m = {.smac = {2, 0, 0, 0, 0, 2}, .dmac = {2, 0, 0, 0, 0, 1}};
	uint8_t frame[MKSEG_MAX];

	m.src = testcore_addr(TESTCORE_PEER);
	m.dst = testcore_addr(TESTCORE_ADDR);
	m.sport = (uint16_t)(1000 + i);
	m.dport = PORT;
	m.flags = flags;
	m.wnd = 65535;
	m.seq = i < CONNS ? peers[i].seq : 1;
	m.ack = i < CONNS && (flags & CORQ_TH_ACK) ? peers[i].ack : 0;
	if (flags & CORQ_TH_SYN)
		mkseg_opt_mss(&m, 1460);
	assert_true(memport_inject(tc.mp, frame, mkseg_build(&m, frame)));
}

/* Counts what left, in this turn: packets with data. Plain IPv4 headers of 20 bytes. */
static unsigned
sent(void)
{
	struct memport_pkt *p;
	unsigned n = 0;

	while ((p = testcore_take(&tc)) != NULL) {
		const uint8_t *tcp = p->bytes + 34;
		unsigned to = (unsigned)(tcp[2] << 8 | tcp[3]) - 1000;
		uint32_t seq = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 |
			       (uint32_t)tcp[6] << 8 | tcp[7];
		unsigned len =
			(unsigned)(p->bytes[16] << 8 | p->bytes[17]) - 20 - (tcp[12] >> 4) * 4u;

		if (tcp[13] & CORQ_TH_SYN) {
			syn_acks++;
			if (to < CONNS)
				peers[to].ack = seq + 1;
		} else if (len != 0) {
			n++;
			peers[to].data++;
		} else {
			pure++;
		}
		free(p);
	}
	return n;
}

static int
open_all(void **state)
{
	struct testcore_opts o = {.cfg = {.max_half_open = 512, .max_conns = 1024}};
	struct corq_listen_opts l = {.port = PORT, .backlog = 512, .ops = &ops};
	struct corq_listener *listener;
	char err[200];

	(void)state;
	n_open = syn_acks = pure = 0;
	memset(peers, 0, sizeof(peers));
	o.port.rx_frames = o.port.tx_frames = 4096;
	assert_int_equal(testcore_init(&tc, &o, err, sizeof(err)), 0);
	testcore_neighbour(&tc, TESTCORE_PEER, TESTCORE_PEER_MAC);
	assert_int_equal(corq_core_listen(tc.core, &l, &listener), 0);
	for (unsigned i = 0; i < CONNS; i++)
		inject(i, CORQ_TH_SYN);
	testcore_settle(&tc);
	sent();
	for (unsigned i = 0; i < CONNS; i++) {
		peers[i].seq = 1;
		inject(i, CORQ_TH_ACK);
	}
	testcore_settle(&tc);
	assert_int_equal(n_open, CONNS);
	sent();
	syn_acks = pure = 0;
	return 0;
}

static int
close_all(void **state)
{
	(void)state;
	testcore_end(&tc);
	return 0;
}

static void
write_all(unsigned first)
{
	static const char bytes[BYTES];

	for (unsigned i = first; i < CONNS; i++)
		assert_int_equal(corq_conn_write(tc.core, peers[i].conn, bytes, BYTES, 0), BYTES);
}

/* ACKs that say nothing new, so that the ring has `n` packets. */
static void
fill(unsigned n)
{
	while (n-- != 0)
		inject(0, CORQ_TH_ACK);
}

static void
a_deep_ring_halves_what_connections_send(void **state)
{
	unsigned n, turns = 0, total = 0;

	(void)state;
	memport_set_backlog(tc.mp, CORQ_RX_DEEP);
	write_all(1);
	while (total < 19 * 10) {
		fill(CORQ_BURST_MAX);
		testcore_turn(&tc);
		n = sent();
		assert_true(n > 0 && n <= CORQ_BURST_MAX / 2);
		total += n;
		turns++;
	}
	assert_int_equal(total, 19 * 10);
	assert_int_equal(turns, (190 + 31) / 32);
}

static void
a_ring_that_is_not_deep_holds_nothing(void **state)
{
	(void)state;
	write_all(1);
	memport_set_backlog(tc.mp, CORQ_RX_DEEP - 1);
	fill(CORQ_BURST_MAX);
	testcore_turn(&tc);
	assert_int_equal(sent(), 19 * 10);
}

/* SYN-ACKs for a whole burst of SYNs leave in its turn, beside half a burst of data. */
static void
replies_are_not_held(void **state)
{
	(void)state;
	memport_set_backlog(tc.mp, CORQ_RX_DEEP);
	write_all(1);
	for (unsigned i = 0; i < CORQ_BURST_MAX; i++)
		inject(CONNS + i, CORQ_TH_SYN);
	testcore_turn(&tc);
	assert_int_equal(sent(), CORQ_BURST_MAX / 2);
	assert_int_equal(syn_acks, CORQ_BURST_MAX);
}

/* One whose window is never used up does not keep the others from sending. */
static void
nobody_waits_behind_a_long_one(void **state)
{
	static const char bytes[200000];

	(void)state;
	memport_set_backlog(tc.mp, CORQ_RX_DEEP);
	for (unsigned turn = 0; turn < 20; turn++) {
		for (unsigned i = 1; i <= 2; i++) {
			peers[i].conn->cwnd = 1 << 20;
			corq_conn_write(tc.core, peers[i].conn, bytes, sizeof(bytes), 0);
		}
		if (turn == 0)
			write_all(3);
		fill(CORQ_BURST_MAX);
		testcore_turn(&tc);
		sent();
		for (unsigned i = 1; i <= 2; i++) {
			/* Everything is acknowledged at once, so its window never closes. */
			peers[i].ack = peers[i].conn->snd_nxt;
			inject(i, CORQ_TH_ACK);
		}
	}
	for (unsigned i = 3; i < CONNS; i++)
		assert_int_equal(peers[i].data, 10);
}

/* From the refusal to the next try, and none for a device that takes all. */
static void
a_refusal_lasts_until_the_next_try(void **state)
{
	struct corq_stats s;

	(void)state;
	write_all(1);
	testcore_turn(&tc);
	corq_core_usage(tc.core, &s);
	assert_int_equal(s.tx_full, 0);
	assert_int_equal(s.tx_blocked_ns, 0);
	memport_advance(tc.mp, 50000);
	for (unsigned i = 1; i < CONNS; i++) {
		peers[i].ack = peers[i].conn->snd_nxt;
		inject(i, CORQ_TH_ACK);
	}
	memport_set_tx_room(tc.mp, 3);
	write_all(1);
	testcore_turn(&tc); /* three leave, the others wait */
	corq_core_usage(tc.core, &s);
	assert_true(s.tx_full != 0);
	assert_int_equal(s.tx_blocked_ns, 0);
	memport_advance(tc.mp, 7000);
	testcore_turn(&tc); /* refused again */
	memport_advance(tc.mp, 1000);
	memport_set_tx_room(tc.mp, UINT32_MAX);
	testcore_turn(&tc);
	memport_advance(tc.mp, 90000); /* free of it */
	testcore_turn(&tc);
	sent();
	corq_core_usage(tc.core, &s);
	assert_int_equal(s.tx_blocked_ns, 8000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_deep_ring_halves_what_connections_send, open_all, close_all),
		cmocka_unit_test_setup_teardown(
			a_ring_that_is_not_deep_holds_nothing, open_all, close_all),
		cmocka_unit_test_setup_teardown(replies_are_not_held, open_all, close_all),
		cmocka_unit_test_setup_teardown(
			a_refusal_lasts_until_the_next_try, open_all, close_all),
		cmocka_unit_test_setup_teardown(
			nobody_waits_behind_a_long_one, open_all, close_all),
	};

	return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
