/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table on virtual time: each timer a nanosecond before and at its deadline, each
 * state's way in and out, what ARP may and may not teach, full tables, and a random run against
 * the rules that must always hold. */
#include "net_neigh.h"

static void
asks_three_times_then_fails(void **state)
{
	struct fix x;
	struct corq_addr a = ip(2);
	uint16_t i;

	(void)state;
	open_table(&x, 8);
	assert_true(corq_neigh_next(&x.nt) == CORQ_NEIGH_NEVER);
	assert_false(poll(&x, 99 * S));
	i = look(&x, 2, 100 * S);
	assert_int_equal(look(&x, 2, 100 * S), i);
	assert_true(corq_neigh_is(&x.nt, i, &a));
	assert_null(corq_neigh_mac(&x.nt, i, 100 * S));
	for (uint64_t t = 100; t < 103; t++) {
		assert_true(corq_neigh_next(&x.nt) == t * S);
		assert_false(poll(&x, t * S - 1));
		one(&x, t * S, CORQ_NEIGH_SEND_REQUEST);
		assert_false(x.act.unicast);
		assert_true(corq_addr_eq(&x.act.addr, &a));
		assert_int_equal(x.act.idx, i);
	}
	assert_false(poll(&x, 103 * S - 1));
	one(&x, 103 * S, CORQ_NEIGH_GAVE_UP);
	assert_int_equal(x.act.n_frames, 0);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_FAILED);
	/* the failed entry rests a second, then the next use asks again */
	assert_null(corq_neigh_mac(&x.nt, i, 104 * S - 1));
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_FAILED);
	assert_false(poll(&x, 104 * S - 1));
	assert_null(corq_neigh_mac(&x.nt, i, 104 * S));
	one(&x, 104 * S, CORQ_NEIGH_SEND_REQUEST);
	free(x.mem);
}

static void
reachable_30_s_then_probed_on_use(void **state)
{
	struct fix x;
	uint16_t i;

	(void)state;
	open_table(&x, 8);
	i = look(&x, 2, 0);
	one(&x, 0, CORQ_NEIGH_SEND_REQUEST);
	replied(&x, 2, mac_a, S);
	one(&x, S, CORQ_NEIGH_FLUSH);
	assert_non_null(corq_neigh_mac(&x.nt, i, 31 * S - 1));
	assert_false(poll(&x, 31 * S - 1));
	assert_false(poll(&x, 40 * S)); /* age alone sends nothing */
	assert_memory_equal(corq_neigh_mac(&x.nt, i, 31 * S), mac_a, 6);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_PROBE);
	for (uint64_t t = 31; t < 34; t++) {
		assert_false(poll(&x, t * S - 1));
		one(&x, t * S, CORQ_NEIGH_SEND_REQUEST);
		assert_true(x.act.unicast);
		assert_memory_equal(x.act.mac, mac_a, 6);
		assert_non_null(corq_neigh_mac(&x.nt, i, t * S)); /* usable meanwhile */
	}
	one(&x, 34 * S, CORQ_NEIGH_GAVE_UP);
	assert_null(corq_neigh_mac(&x.nt, i, 34 * S));
	free(x.mem);
}

static void
progress_of_tcp_confirms(void **state)
{
	struct fix x;
	uint16_t i;

	(void)state;
	open_table(&x, 8);
	i = look(&x, 2, 0);
	corq_neigh_confirm(&x.nt, i, 0); /* nothing to confirm yet */
	assert_null(corq_neigh_mac(&x.nt, i, 0));
	one(&x, 0, CORQ_NEIGH_SEND_REQUEST);
	replied(&x, 2, mac_a, 0);
	one(&x, 0, CORQ_NEIGH_FLUSH);
	for (uint64_t t = 0; t < 600; t += 29) { /* a busy neighbour is never probed */
		assert_non_null(corq_neigh_mac(&x.nt, i, t * S));
		corq_neigh_confirm(&x.nt, i, t * S);
		assert_false(poll(&x, t * S));
	}
	assert_non_null(corq_neigh_mac(&x.nt, i, 700 * S));
	one(&x, 700 * S, CORQ_NEIGH_SEND_REQUEST);
	corq_neigh_confirm(&x.nt, i, 700 * S + 1); /* an ACK ends the probe */
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_REACHABLE);
	assert_false(poll(&x, 702 * S));
	free(x.mem);
}

static void
one_request_a_second_across_rounds(void **state)
{
	struct fix x;
	uint16_t i;

	(void)state;
	open_table(&x, 8);
	i = look(&x, 2, 0);
	one(&x, 0, CORQ_NEIGH_SEND_REQUEST);
	/* its own request resolves it, STALE: the next use wants a probe, but not yet */
	arp(&x, 2, mac_a, CORQ_ARP_REQUEST, false, CORQ_NEIGH_UPDATE_ONLY, S / 10);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_STALE);
	assert_non_null(corq_neigh_mac(&x.nt, i, S / 10));
	one(&x, S / 10, CORQ_NEIGH_FLUSH);
	assert_false(poll(&x, S - 1));
	one(&x, S, CORQ_NEIGH_SEND_REQUEST);
	assert_true(x.act.unicast);
	free(x.mem);
}

static void
what_arp_may_teach(void **state)
{
	struct fix x;
	uint16_t i;

	(void)state;
	open_table(&x, 8);
	/* nothing is made from replies, announcements, or requests that are not for us */
	assert_int_equal(replied(&x, 2, mac_a, 0), CORQ_NEIGH_NONE);
	assert_int_equal(
		arp(&x, 2, mac_a, CORQ_ARP_REPLY, true, CORQ_NEIGH_MAY_CREATE, 0), CORQ_NEIGH_NONE);
	assert_int_equal(announced(&x, 2, mac_a, CORQ_ARP_REQUEST, 0), CORQ_NEIGH_NONE);
	assert_int_equal(announced(&x, 2, mac_a, CORQ_ARP_REPLY, 0), CORQ_NEIGH_NONE);
	assert_int_equal(arp(&x, 2, mac_a, CORQ_ARP_REQUEST, false, CORQ_NEIGH_UPDATE_ONLY, 0),
		CORQ_NEIGH_NONE);
	assert_int_equal(x.nt.n_used, 0);
	/* a request for our address makes a STALE entry, silently */
	i = arp(&x, 2, mac_a, CORQ_ARP_REQUEST, false, CORQ_NEIGH_MAY_CREATE, 0);
	assert_int_not_equal(i, CORQ_NEIGH_NONE);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_STALE);
	assert_false(poll(&x, 0));
	/* an announcement updates it */
	assert_int_equal(announced(&x, 2, mac_b, CORQ_ARP_REQUEST, 1), i);
	assert_memory_equal(corq_neigh_mac(&x.nt, i, 1), mac_b, 6);
	replied(&x, 2, mac_b, 2);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_REACHABLE);
	/* the same address again leaves REACHABLE alone, another one does not */
	announced(&x, 2, mac_b, CORQ_ARP_REPLY, 3);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_REACHABLE);
	announced(&x, 2, mac_a, CORQ_ARP_REPLY, 4);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_STALE);
	/* a broadcast reply is no answer to us */
	arp(&x, 2, mac_b, CORQ_ARP_REPLY, false, CORQ_NEIGH_UPDATE_ONLY, 5);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_STALE);
	/* a probe (sender 0.0.0.0) teaches nothing */
	struct corq_arp a = {.op = CORQ_ARP_REQUEST, .tpa = ip(2)};
	corq_addr_from_v4(&a.spa, (const uint8_t[4]){0});
	assert_int_equal(
		corq_neigh_arp_input(&x.nt, &a, CORQ_NEIGH_MAY_CREATE, 6), CORQ_NEIGH_NONE);
	free(x.mem);
}

static void
static_entries(void **state)
{
	struct corq_addr a = ip(2);
	struct corq_frame f;
	struct fix x;
	uint16_t i;

	(void)state;
	open_table(&x, 2);
	i = corq_neigh_set_static(&x.nt, &a, mac_a, 0);
	assert_memory_equal(corq_neigh_mac(&x.nt, i, 1000 * S), mac_a, 6);
	replied(&x, 2, mac_b, 1000 * S);
	announced(&x, 2, mac_b, CORQ_ARP_REQUEST, 1000 * S);
	corq_neigh_confirm(&x.nt, i, 1000 * S);
	assert_memory_equal(corq_neigh_mac(&x.nt, i, 2000 * S), mac_a, 6);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_STATIC);
	assert_false(poll(&x, 3000 * S));
	/* set for an entry that waits: its packets leave */
	a = ip(3);
	i = look(&x, 3, 3000 * S);
	assert_null(corq_neigh_hold(&x.nt, i, &f));
	assert_int_equal(corq_neigh_set_static(&x.nt, &a, mac_b, 3000 * S), i);
	one(&x, 3000 * S, CORQ_NEIGH_FLUSH);
	assert_ptr_equal(x.act.frames[0], &f);
	/* full of what may not go */
	a = ip(4);
	assert_int_equal(corq_neigh_set_static(&x.nt, &a, mac_b, 9000 * S), CORQ_NEIGH_NONE);
	free(x.mem);
}

static void
full_table(void **state)
{
	struct fix x;
	uint16_t i2, i3;
	struct corq_addr a2 = ip(2), a5 = ip(5);

	(void)state;
	open_table(&x, 3);
	i2 = look(&x, 2, 0);
	i3 = look(&x, 3, 0);
	look(&x, 4, 0);
	assert_int_equal(look(&x, 5, 0), CORQ_NEIGH_NONE); /* all INCOMPLETE */
	assert_int_equal(x.nt.n_full, 1);
	replied(&x, 2, mac_a, S);
	replied(&x, 3, mac_b, 2 * S);
	while (poll(&x, 2 * S))
		;
	assert_int_equal(look(&x, 5, 30 * S), CORQ_NEIGH_NONE); /* REACHABLE is kept */
	corq_neigh_confirm(&x.nt, i3, 30 * S);
	/* 2 has aged and 3 has not: 2 gives way, and its index no longer answers to it */
	assert_int_equal(look(&x, 5, 31 * S), i2);
	assert_false(corq_neigh_is(&x.nt, i2, &a2));
	assert_true(corq_neigh_is(&x.nt, i2, &a5));
	assert_int_equal(corq_neigh_find(&x.nt, &a2), CORQ_NEIGH_NONE);
	assert_int_equal(corq_neigh_find(&x.nt, &a5), i2);
	assert_int_equal(x.nt.n_evicted, 1);
	assert_false(corq_neigh_is(&x.nt, CORQ_NEIGH_NONE, &a2));
	free(x.mem);
}

static void
an_entry_that_owes_its_packets_stays(void **state)
{
	struct corq_frame f;
	struct fix x;
	uint16_t i;

	(void)state;
	open_table(&x, 1);
	i = look(&x, 2, 0);
	assert_null(corq_neigh_hold(&x.nt, i, &f));
	arp(&x, 2, mac_a, CORQ_ARP_REQUEST, false, CORQ_NEIGH_UPDATE_ONLY, 1);
	assert_int_equal(state_of(&x, i), CORQ_NEIGH_STALE);
	assert_int_equal(look(&x, 3, 2), CORQ_NEIGH_NONE);
	one(&x, 3, CORQ_NEIGH_FLUSH);
	assert_ptr_equal(x.act.frames[0], &f);
	assert_int_equal(look(&x, 3, 4), i);
	free(x.mem);
}

static void
flood_of_requests_keeps_what_is_in_use(void **state)
{
	struct fix x;
	uint16_t gw;
	struct corq_addr a = ip(2);

	(void)state;
	open_table(&x, CORQ_NEIGH_DEFAULT);
	gw = look(&x, 2, 0);
	replied(&x, 2, mac_a, 0);
	while (poll(&x, 0))
		;
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_not_equal(
			arp(&x, 100 + i, mac_b, CORQ_ARP_REQUEST, false, CORQ_NEIGH_MAY_CREATE, S),
			CORQ_NEIGH_NONE);
	assert_true(corq_neigh_is(&x.nt, gw, &a));
	assert_int_equal(x.nt.n_used, CORQ_NEIGH_DEFAULT);
	assert_int_equal(look(&x, 2, S), gw);
	free(x.mem);
}

/* Many addresses, random input: never two requests for one address within a second (unless its
 * entry was evicted in between), every held packet comes out once, the index always finds its
 * address, poll ends, next is never late. */
static void
random_run(uint16_t max)
{
	enum {
		ADDRS = 40,
		FRAMES = 64
	};
	uint64_t seed = nf_seed(__func__), now = S, asked[ADDRS] = {0};
	struct corq_frame frames[FRAMES];
	bool held[FRAMES] = {false};
	int n_held = 0, n_done = 0;
	struct fix x;

	open_table_held(&x, max, 20);
	for (int step = 0; step < 200000; step++) {
		uint32_t k = (uint32_t)(nf_rand(&seed) % ADDRS);
		struct corq_addr a = ip(k);
		uint16_t i;

		now += nf_rand(&seed) % (S / 8);
		if (nf_rand(&seed) % 400 == 0)
			now += 40 * S;
		switch (nf_rand(&seed) % 6) {
		case 0:
			replied(&x, k, mac_a, now);
			break;
		case 1:
			arp(&x, k, mac_b, CORQ_ARP_REQUEST, false,
				nf_rand(&seed) & 1 ? CORQ_NEIGH_MAY_CREATE : CORQ_NEIGH_UPDATE_ONLY,
				now);
			break;
		case 2:
			i = corq_neigh_find(&x.nt, &a);
			if (i != CORQ_NEIGH_NONE)
				corq_neigh_confirm(&x.nt, i, now);
			break;
		default:
			i = corq_neigh_lookup(&x.nt, &a, now);
			if (i == CORQ_NEIGH_NONE)
				break;
			assert_true(corq_neigh_is(&x.nt, i, &a));
			assert_int_equal(corq_neigh_find(&x.nt, &a), i);
			if (!corq_neigh_mac(&x.nt, i, now)) {
				int n = (int)(nf_rand(&seed) % FRAMES);
				struct corq_frame *out;

				if (held[n])
					break;
				held[n] = true;
				n_held++;
				out = corq_neigh_hold(&x.nt, i, &frames[n]);
				if (out) {
					assert_true(held[out - frames]);
					held[out - frames] = false;
					n_done++;
				}
			}
		}
		uint64_t next = corq_neigh_next(&x.nt);
		int n_actions = 0;

		while (corq_neigh_poll(&x.nt, now, 1 + nf_rand(&seed) % 3, &x.act)) {
			assert_true(next <= now);
			assert_true(++n_actions <= 40 + 20);
			if (x.act.todo == CORQ_NEIGH_SEND_REQUEST) {
				uint32_t who = nf_get16(x.act.addr.b + 14);

				assert_true(
					max < ADDRS || asked[who] == 0 || now - asked[who] >= S);
				asked[who] = now;
			}
			for (int n = 0; n < x.act.n_frames; n++) {
				assert_true(held[x.act.frames[n] - frames]);
				held[x.act.frames[n] - frames] = false;
				n_done++;
			}
		}
		assert_true(corq_neigh_next(&x.nt) > now);
	}
	for (int t = 0; t < 10; t++)
		while (poll(&x, now + (uint64_t)t * S))
			n_done += x.act.n_frames;
	assert_true(n_held > 100);
	assert_int_equal(n_held, n_done);
	assert_int_equal(x.nt.n_evicted > 0, max < ADDRS);
	free(x.mem);
}

static void
random_with_room(void **state)
{
	(void)state;
	random_run(64);
}

static void
random_without_room(void **state)
{
	(void)state;
	random_run(16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_three_times_then_fails),
		cmocka_unit_test(reachable_30_s_then_probed_on_use),
		cmocka_unit_test(progress_of_tcp_confirms),
		cmocka_unit_test(one_request_a_second_across_rounds),
		cmocka_unit_test(what_arp_may_teach),
		cmocka_unit_test(static_entries),
		cmocka_unit_test(full_table),
		cmocka_unit_test(an_entry_that_owes_its_packets_stays),
		cmocka_unit_test(flood_of_requests_keeps_what_is_in_use),
		cmocka_unit_test(random_with_room),
		cmocka_unit_test(random_without_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
