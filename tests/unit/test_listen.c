/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_listen.c - accept queues at a size that scripts do not reach, and what their ends leave: a
 * closed listener's children are reset 64 a turn, those of a core that stops at once, none is told
 * of; and the handle of a connection whose linger time is over.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "check_engine.h"
#include "mkseg.h"
#include "testcore.h"

#include <corq/core.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHILDREN 200
#define PORT     80

static struct testcore tc;
static struct corq_check check;
static struct corq_listener *listener;
static uint32_t isn[CHILDREN]; /* ours, of each child */
static unsigned n_rst, n_open, n_close, n_acceptable;
static int reason;

static void
on_open(struct corq_core *core, struct corq_conn *conn)
{
	(void)core;
	(void)conn;
	n_open++;
}

static void
on_close(struct corq_core *core, struct corq_conn *conn, int why)
{
	(void)core;
	(void)conn;
	n_close++;
	reason = why;
}

static const struct corq_ops ops = {.on_open = on_open, .on_close = on_close};

static void
on_acceptable(struct corq_core *core, struct corq_listener *l)
{
	(void)core;
	assert_ptr_equal(l, listener);
	n_acceptable++;
}

static void
inject(unsigned i, uint8_t flags, uint32_t seq)
{
	struct mkseg m = {.smac = {2, 0, 0, 0, 0, 2}, .dmac = {2, 0, 0, 0, 0, 1}};
	uint8_t frame[MKSEG_MAX];

	m.src = testcore_addr(TESTCORE_PEER);
	m.dst = testcore_addr(TESTCORE_ADDR);
	m.sport = (uint16_t)(1000 + i);
	m.dport = PORT;
	m.flags = flags;
	m.wnd = 65535;
	m.seq = seq;
	m.ack = flags & CORQ_TH_ACK ? isn[i] + 1 : 0;
	assert_true(memport_inject(tc.mp, frame, mkseg_build(&m, frame)));
}

/* Takes what left: notes the numbers of SYN-ACKs, counts RSTs. */
static void
take_sent(void)
{
	struct memport_pkt *p;

	while ((p = testcore_take(&tc)) != NULL) {
		const uint8_t *tcp = p->bytes + 34;
		unsigned to = (unsigned)(tcp[2] << 8 | tcp[3]) - 1000;

		if (tcp[13] & CORQ_TH_SYN)
			isn[to] = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 |
				  (uint32_t)tcp[6] << 8 | tcp[7];
		n_rst += !!(tcp[13] & CORQ_TH_RST);
		free(p);
	}
}

static int
fill_queue(void **state)
{
	struct testcore_opts o = {.cfg = {.max_half_open = 512, .max_conns = 1024}};
	struct corq_listen_opts l = {.port = PORT,
		.backlog = CHILDREN - 1,
		.ops = &ops,
		.queue = true,
		.on_acceptable = on_acceptable};
	char err[200];

	(void)state;
	n_rst = n_open = n_close = n_acceptable = 0;
	o.port.rx_frames = o.port.tx_frames = 4096;
	assert_int_equal(testcore_init(&tc, &o, err, sizeof(err)), 0);
	assert_true(corq_check_init(&check, &tc.core->eng));
	testcore_neighbour(&tc, TESTCORE_PEER, TESTCORE_PEER_MAC);
	assert_int_equal(corq_core_listen(tc.core, &l, &listener), 0);
	for (unsigned i = 0; i < CHILDREN; i++)
		inject(i, CORQ_TH_SYN, 0);
	testcore_settle(&tc);
	take_sent();
	for (unsigned i = 0; i < CHILDREN; i++)
		inject(i, CORQ_TH_ACK, 1);
	testcore_settle(&tc);
	assert_int_equal(tc.core->eng.stats.conn_live, CHILDREN);
	assert_int_equal(corq_check_engine(&check, &tc.core->eng, CORQ_CHECK_FULL), 0);
	assert_int_equal(n_acceptable, 1);
	return 0;
}

static int
end_all(void **state)
{
	(void)state;
	corq_check_end(&check);
	testcore_end(&tc);
	return 0;
}

static void
nothing_left(void)
{
	testcore_settle(&tc);
	take_sent();
	assert_int_equal(tc.core->eng.stats.conn_live, 0);
	assert_int_equal(corq_check_engine(&check, &tc.core->eng, CORQ_CHECK_FULL), 0);
	assert_int_equal(testcore_leaks(&tc, stderr), 0);
}

static void
close_resets_64_a_turn(void **state)
{
	(void)state;
	corq_listener_close(tc.core, listener);
	for (unsigned turn = 1; turn <= (CHILDREN + 63) / 64; turn++) {
		assert_int_equal(corq_tcp_next_deadline(&tc.core->eng), 0); /* it may not sleep */
		testcore_turn(&tc);
		assert_int_equal(corq_check_engine(&check, &tc.core->eng, CORQ_CHECK_FULL), 0);
		take_sent();
		assert_int_equal(n_rst, CORQ_MIN(turn * 64, CHILDREN));
	}
	nothing_left();
	assert_int_equal(n_open + n_close, 0);
}

/* What the program has taken is its own; only the rest is reset. */
static void
accepted_ones_stay(void **state)
{
	struct corq_conn *conn[100];

	(void)state;
	for (unsigned i = 0; i < CORQ_ARRAY_LEN(conn); i++)
		assert_int_equal(corq_listener_accept(tc.core, listener, &conn[i]), 0);
	corq_listener_close(tc.core, listener);
	testcore_settle(&tc);
	take_sent();
	assert_int_equal(n_rst, CHILDREN - CORQ_ARRAY_LEN(conn));
	assert_int_equal(n_open, CORQ_ARRAY_LEN(conn));
	for (unsigned i = 0; i < CORQ_ARRAY_LEN(conn); i++)
		corq_conn_abort(tc.core, conn[i]);
	nothing_left();
	assert_int_equal(n_close, CORQ_ARRAY_LEN(conn));
}

static void
core_stops(void **state)
{
	uint32_t from = 0;

	(void)state;
	while (corq_core_reset_some(tc.core, &from, 256))
		testcore_turn(&tc);
	for (from = 0; corq_core_forget_some(tc.core, &from, 256);)
		testcore_turn(&tc);
	nothing_left();
	assert_int_equal(n_rst, CHILDREN);
	assert_int_equal(n_open + n_close, 0);
}

static void
lingered_handle_is_gone(void **state)
{
	struct corq_conn *conn;
	corq_h h;
	uint64_t t0;

	(void)state;
	assert_int_equal(corq_listener_accept(tc.core, listener, &conn), 0);
	testcore_settle(&tc);
	t0 = corq_core_now(tc.core);
	h = corq_conn_handle(tc.core, conn);
	corq_conn_close_linger(tc.core, conn, 1000);
	assert_ptr_equal(corq_conn_of(tc.core, h), conn);
	testcore_run_to(&tc, t0 + 999 * CORQ_NS_PER_MS, false);
	assert_int_equal(n_close, 0);
	testcore_run_to(&tc, t0 + 1001 * CORQ_NS_PER_MS, false);
	assert_int_equal(n_close, 1);
	assert_int_equal(reason, -EINPROGRESS);
	assert_null(corq_conn_of(tc.core, h));
	assert_int_equal(tc.core->eng.stats.conn_live, CHILDREN); /* it goes on */
	assert_int_equal(corq_check_engine(&check, &tc.core->eng, CORQ_CHECK_FULL), 0);
	take_sent();
	isn[0]++; /* the FIN is acknowledged */
	inject(0, CORQ_TH_ACK, 1);
	testcore_settle(&tc);
	assert_int_equal(tc.core->eng.stats.conn_live, CHILDREN - 1);
	corq_listener_close(tc.core, listener);
	testcore_run_to(&tc, t0 + 100 * CORQ_NS_PER_S, false);
	nothing_left();
	assert_int_equal(n_close, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(close_resets_64_a_turn, fill_queue, end_all),
		cmocka_unit_test_setup_teardown(accepted_ones_stay, fill_queue, end_all),
		cmocka_unit_test_setup_teardown(core_stops, fill_queue, end_all),
		cmocka_unit_test_setup_teardown(lingered_handle_is_gone, fill_queue, end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
