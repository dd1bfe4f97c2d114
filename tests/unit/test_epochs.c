/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_epochs.c - cores of one group while the rule of who owns a tuple changes: every frame
 * arrives on a core chosen at random and goes through whole turns.
 *
 * Connections, half-open and TIME_WAIT records stay where they were made; new ones are made on the
 * present owner; what an epoch no longer remembered owned is answered as if it had never been, by
 * the present owner alone. ICMP errors find the connection that they quote.
 */
#include "cores_rig.h"

/* ---- tests ---- */

/* Connections of every epoch that is remembered go on, side by side, and end in order. */
static void
connections_outlive_epochs(void **state)
{
	static struct rig r;
	struct end e[2 * CORQ_EPOCHS][6];

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		start(&r, 2 + seed % 3, seed);
		for (unsigned k = 0; k < 2 * CORQ_EPOCHS; k++) {
			if (k)
				random_epoch(&r);
			open_all(&r, e[k], 6);
			/* k - 3 was made in the oldest epoch that is remembered */
			for (unsigned old = k < CORQ_EPOCHS ? 0 : k - CORQ_EPOCHS + 1; old <= k;
				old++)
				talk(&r, e[old], 6);
			if (k + 1 >= CORQ_EPOCHS)
				close_all(&r, e[k + 1 - CORQ_EPOCHS], 6);
		}
		assert_int_equal(resets(&r), 0);
		assert_true(handed(&r) > r.n_to_us / 8);
		end(&r);
	}
}

/* The third ACK finds the half-open record on the owner that took the SYN. */
static void
half_open_records_are_found(void **state)
{
	static struct rig r;
	struct end e[CONNS];

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		unsigned was[CONNS];

		start(&r, CORES, seed);
		r.keep_acks = true;
		for (unsigned i = 0; i < CONNS; i++) {
			open_one(&r, &e[i]);
			was[i] = owner(&r, e[i].port);
		}
		run(&r);
		assert_int_equal(r.n_held, CONNS); /* their ACKs */
		assert_int_equal(r.n_open, 0);
		for (unsigned k = 1; k < CORQ_EPOCHS; k++)
			random_epoch(&r);
		r.keep_acks = false;
		for (unsigned i = 0; i < CONNS; i++) {
			inject(&r.us[corq_rand_below(&r.rand, CORES)], r.held[i]);
			free(r.held[i]);
		}
		run(&r);
		assert_int_equal(r.n_open, CONNS);
		for (unsigned i = 0; i < CONNS; i++)
			assert_int_equal(r.home[e[i].port], was[i] + 1);
		talk(&r, e, CONNS);
		assert_int_equal(resets(&r), 0);
		end(&r);
	}
}

/* TIME_WAIT on our side: a repeated FIN of the peer, on any core, gets its ACK from the record. */
static void
time_wait_records_are_found(void **state)
{
	static struct rig r;
	struct end e;

	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct corq_conn *ours;
		struct corq_core *home;
		unsigned before;

		start(&r, CORES, seed);
		open_all(&r, &e, 1);
		home = r.us[r.home[e.port] - 1].core;
		ours = corq_conn_at(&home->eng, 0);
		assert_int_equal(corq_pool_used(&home->eng.conns), 1);
		corq_conn_close(home, ours);
		run(&r);
		corq_conn_close(r.peer.core, e.conn);
		run(&r);
		assert_int_equal(home->eng.stats.time_wait_live, 1);
		assert_non_null(r.kept);
		for (unsigned k = 1; k < CORQ_EPOCHS; k++)
			random_epoch(&r);
		for (unsigned at = 0; at < CORES; at++) {
			for (unsigned i = 0; i < CORES; i++) /* answers are limited: RFC 5961 7 */
				memport_advance(r.us[i].mp, CORQ_NS_PER_S);
			before = r.n_to_peer;
			inject(&r.us[at], r.kept);
			run(&r);
			assert_int_equal(r.n_to_peer, before + 1);
		}
		/* The peer's connection is gone: it answers the ACKs by RST; ours sent none. */
		for (unsigned i = 0; i < CORES; i++)
			assert_int_equal(r.rst_from[i], 0);
		end(&r);
	}
}

/* Four changes on, nobody remembers who had it: the present owner, and only he, resets. (The core
 * that has it still finds it when a frame arrives right there.) */
static void
forgotten_is_answered_once(void **state)
{
	static struct rig r;
	struct end e;

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		unsigned home;

		start(&r, CORES, seed);
		open_all(&r, &e, 1);
		home = (unsigned)r.home[e.port] - 1;
		for (unsigned k = 1; k <= CORQ_EPOCHS; k++) {
			uint8_t other = (uint8_t)((home + 1 + k % (CORES - 1)) % CORES);

			new_epoch(&r, 1, &other);
		}
		r.keep_acks = true;
		corq_conn_write(r.peer.core, e.conn, "lost", 4, 0);
		run(&r);
		assert_int_equal(r.n_held, 1);
		r.keep_acks = false;
		inject(&r.us[(home + 1 + seed % (CORES - 1)) % CORES], r.held[0]);
		free(r.held[0]);
		run(&r);
		assert_int_equal(e.closed, -ECONNRESET);
		for (unsigned i = 0; i < CORES; i++)
			assert_int_equal(r.rst_from[i], i == owner(&r, e.port));
		end(&r);
	}
}

/* ---- ICMP errors ---- */

static uint16_t
sum16(const uint8_t *p, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i += 2)
		sum += corq_get_be16(p + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* "Fragmentation needed" from a router, about a packet that ours sent (RFC 792, 1191). */
static void
frag_needed(const struct memport_pkt *sent, uint16_t mtu, uint8_t out[70])
{
	uint8_t *ip = out + 14, *icmp = ip + 20;

	memset(out, 0, 70);
	memcpy(out, sent->bytes + 6, 6);
	memcpy(out + 6, sent->bytes, 6);
	corq_put_be16(out + 12, CORQ_ETHERTYPE_IP4);
	ip[0] = 0x45;
	corq_put_be16(ip + 2, 56);
	ip[8] = 64;
	ip[9] = 1;
	memcpy(ip + 12, (uint8_t[]){10, 0, 0, 99}, 4);
	memcpy(ip + 16, sent->bytes + 26, 4); /* to whom sent it */
	corq_put_be16(ip + 10, sum16(ip, 20));
	icmp[0] = 3;
	icmp[1] = 4;
	corq_put_be16(icmp + 6, mtu);
	memcpy(icmp + 8, sent->bytes + 14, 28);
	corq_put_be16(icmp + 2, sum16(icmp, 36));
}

/* It comes in anywhere, and lowers the MSS of the one connection it is about, epochs later too. */
static void
errors_find_their_connection(void **state)
{
	static struct rig r;
	struct end e[8];

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct corq_conn_info info;
		struct memport_pkt *sent;
		struct corq_conn *ours;
		struct corq_core *home;
		uint8_t error[70];

		start(&r, CORES, seed);
		open_all(&r, e, 8);
		home = r.us[r.home[e[0].port] - 1].core;
		for (uint32_t i = 0;; i++) {
			ours = corq_conn_at(&home->eng, i);
			if (ours->state == CORQ_ESTABLISHED && ours->rport == e[0].port)
				break;
		}
		for (unsigned k = seed % CORQ_EPOCHS; k > 0; k--)
			random_epoch(&r);
		corq_conn_write(home, ours, "unacknowledged", 14, 0);
		testcore_turn(&r.us[r.home[e[0].port] - 1]);
		sent = testcore_take(&r.us[r.home[e[0].port] - 1]);
		assert_non_null(sent);
		frag_needed(sent, 1000, error);
		assert_true(memport_inject(r.us[seed / 4 % CORES].mp, error, sizeof(error)));
		inject(&r.peer, sent);
		free(sent);
		run(&r);
		for (unsigned c = 0; c < CORES; c++) {
			struct corq_engine *eng = &r.us[c].core->eng;

			for (uint32_t i = 0; i < eng->conns.n; i++) {
				struct corq_conn *x = corq_conn_at(eng, i);

				if (x->state != CORQ_ESTABLISHED)
					continue;
				corq_conn_get_info(r.us[c].core, x, &info);
				assert_int_equal(info.mss_bytes, x == ours ? 1000 - 52 : 1448);
			}
		}
		end(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_outlive_epochs),
		cmocka_unit_test(half_open_records_are_found),
		cmocka_unit_test(time_wait_records_are_found),
		cmocka_unit_test(forgotten_is_answered_once),
		cmocka_unit_test(errors_find_their_connection),
	};

	return cmocka_run_group_tests_name("epochs", tests, NULL, NULL);
}
