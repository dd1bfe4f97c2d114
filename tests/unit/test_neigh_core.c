/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_neigh_core.c - many clients at once behind a neighbour that a core does not know yet: all
 * are answered with its ARP reply, in order, however many turns that takes; what is lost in a flood
 * for neighbours that never answer is counted, and given back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "mkseg.h"
#include "net/arp.h"
#include "net/wire.h"
#include "testcore.h"

#include <corq/core.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS 700 /* more than a turn sends */
#define FRAMES  8192

static struct testcore tc;

static void
start(uint32_t tx_frames)
{
	static const struct corq_ops ops;
	struct testcore_opts o = {.no_arp = true,
		.cfg = {.max_half_open = 2 * CLIENTS},
		.port = {.tx_frames = tx_frames, .rx_frames = FRAMES}};
	struct corq_listen_opts l = {.port = 80, .ops = &ops};
	struct corq_listener *listener;
	char err[200];

	assert_int_equal(testcore_init(&tc, &o, err, sizeof(err)), 0);
	assert_int_equal(corq_core_listen(tc.core, &l, &listener), 0);
}

static void
client_syn(const char *from, unsigned port)
{
	struct mkseg m = {.src = testcore_addr(from),
		.dst = testcore_addr(TESTCORE_ADDR),
		.smac = {2, 0, 0, 0, 0, 2},
		.dmac = {2, 0, 0, 0, 0, 1},
		.sport = (uint16_t)port,
		.dport = 80,
		.seq = 1,
		.wnd = 65535,
		.flags = CORQ_TH_SYN};
	uint8_t frame[MKSEG_MAX];

	assert_true(memport_inject(tc.mp, frame, mkseg_build(&m, frame)));
	assert_true(testcore_settle(&tc));
}

static void
arp_reply(void)
{
	uint8_t frame[CORQ_ETH_HLEN + CORQ_ARP_LEN] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 6, 0,
		1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1};

	assert_true(memport_inject(tc.mp, frame, sizeof(frame)));
}

/* What was sent: SYN-ACKs to the clients in order, from `first` on; returns the next one. ARP
 * requests are counted. */
static unsigned
answered(unsigned first, unsigned *requests)
{
	struct memport_pkt *p;

	while ((p = testcore_take(&tc)) != NULL) {
		if (corq_get_be16(p->bytes + 12) == CORQ_ETHERTYPE_ARP) {
			++*requests;
		} else {
			assert_memory_equal(p->bytes, TESTCORE_PEER_MAC, 6);
			assert_int_equal(p->bytes[47], CORQ_TH_SYN | CORQ_TH_ACK);
			assert_int_equal(corq_get_be16(p->bytes + 36), 1000 + first++);
		}
		free(p);
	}
	return first;
}

static void
all_clients_are_answered_at_once(void **state)
{
	unsigned requests = 0, n, turns = 0;

	(void)state;
	start(FRAMES);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_syn(TESTCORE_PEER, 1000 + i);
	assert_int_equal(answered(0, &requests), 0);
	assert_int_equal(requests, 1);
	arp_reply();
	for (n = 0; n < CLIENTS; turns++) {
		unsigned before = n;

		assert_true(testcore_turn(&tc));
		n = answered(n, &requests);
		assert_in_range(n - before, 1, CORQ_TX_BUDGET);
	}
	assert_int_equal(n, CLIENTS);
	assert_int_equal(turns, (CLIENTS + CORQ_TX_BUDGET - 1) / CORQ_TX_BUDGET);
	assert_int_equal(tc.core->eng.reasons[CORQ_R_NEIGH_UNRESOLVED], 0);
	testcore_end(&tc);
}

/* 12 addresses that nobody has, with many clients each, at a port with 800 frames: 100 packets
 * wait, a client that comes then is answered. */
static void
a_flood_leaves_frames(void **state)
{
	unsigned requests = 0;
	char from[16];

	(void)state;
	start(800);
	for (unsigned i = 0; i < CLIENTS; i++) {
		snprintf(from, sizeof(from), "10.0.0.%u", 100 + i % 12);
		client_syn(from, 2000 + i);
	}
	assert_int_equal(tc.core->eng.reasons[CORQ_R_NEIGH_UNRESOLVED], CLIENTS - 100);
	client_syn(TESTCORE_PEER, 1000);
	arp_reply();
	testcore_settle(&tc);
	assert_int_equal(answered(0, &requests), 1);
	testcore_run_to(&tc, memport_now(tc.mp) + 4 * CORQ_NS_PER_S - 1, false);
	assert_true(tc.core->neigh.held_head == tc.core->neigh.held_tail);
	testcore_end(&tc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_clients_are_answered_at_once),
		cmocka_unit_test(a_flood_leaves_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
