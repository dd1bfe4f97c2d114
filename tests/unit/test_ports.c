/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ports.c - the walk, the figures of destinations, the shared entry. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "tcp/ports.h"

#include <stdlib.h>

static const struct corq_sipkey secret = {0x1122334455667788, 0x99aabbccddeeff00};

static void *
new_ports(struct corq_ports *p, uint32_t n_dests, const struct corq_sipkey *key, uint32_t n)
{
	size_t bytes = corq_ports_bytes(n_dests);
	void *mem = aligned_alloc(CORQ_CACHELINE, bytes);

	memset(mem, 0, bytes);
	corq_ports_init(p, mem, n_dests, key);
	for (uint32_t i = 0; i < n; i++)
		corq_ports_add(
			p, (uint16_t)(1024 + i / 64 * 128 + i % 64)); /* every second block */
	return mem;
}

static struct corq_addr
addr(uint32_t i)
{
	struct corq_addr a;

	corq_addr_from_v4(
		&a, (const uint8_t[4]){10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i});
	return a;
}

static struct corq_dest *
dest(struct corq_ports *p, uint32_t i)
{
	struct corq_addr a = addr(i);

	return corq_ports_dest(p, &a, 80, 0);
}

static void
give(struct corq_ports *p, uint32_t i, bool was_waiting)
{
	struct corq_addr a = addr(i);

	corq_ports_give(p, &a, 80, 0, was_waiting);
}

/* n steps from any position visit each port once, and only ports that were added. */
static void
the_walk_is_bijective(void **state)
{
	static const uint32_t sizes[] = {1, 2, 63, 64, 1000, 32256};
	static uint8_t seen[65536];

	(void)state;
	for (size_t s = 0; s < CORQ_ARRAY_LEN(sizes); s++) {
		struct corq_ports p;
		void *mem = new_ports(&p, 16, &secret, sizes[s]);
		struct corq_dest *d = dest(&p, 1);

		for (uint32_t skip = 0; skip < sizes[s] / 3; skip++)
			corq_ports_next(&p, d);
		for (int round = 0; round < 2; round++) {
			memset(seen, 0, sizeof(seen));
			for (uint32_t i = 0; i < sizes[s]; i++) {
				uint16_t port = corq_ports_next(&p, d);

				assert_true(port >= 1024 && (port - 1024) / 64 % 2 == 0);
				assert_int_equal(seen[port], 0);
				seen[port] = 1;
			}
		}
		free(mem);
	}
}

/* A tuple rests as long as possible: a port comes back after exactly n steps. */
static void
a_port_rests_for_a_whole_round(void **state)
{
	struct corq_ports p;
	void *mem = new_ports(&p, 16, &secret, 500);
	struct corq_dest *d = dest(&p, 1);
	uint16_t first[500];

	(void)state;
	for (int i = 0; i < 500; i++)
		first[i] = corq_ports_next(&p, d);
	for (int i = 0; i < 1500; i++)
		assert_int_equal(corq_ports_next(&p, d), first[i % 500]);
	free(mem);
}

static unsigned
same_steps(struct corq_ports *p, struct corq_dest *a, struct corq_ports *q, struct corq_dest *b,
	unsigned n)
{
	unsigned same = 0;

	for (unsigned i = 0; i < n; i++)
		same += corq_ports_next(p, a) == corq_ports_next(q, b);
	return same;
}

/* Address, port and local address each make another destination with an order and a start of its
 * own; so does another secret. */
static void
orders_are_unrelated(void **state)
{
	struct corq_sipkey other = {secret.k0, secret.k1 ^ 1};
	struct corq_ports p, q;
	void *mem = new_ports(&p, 64, &secret, 10000), *mem2 = new_ports(&q, 64, &other, 10000);
	struct corq_addr a = addr(1), b = addr(2);
	struct corq_dest *d = corq_ports_dest(&p, &a, 80, 0);
	unsigned ascending = 0, steps = 0;
	uint16_t last = 0;

	(void)state;
	assert_true(same_steps(&p, d, &p, corq_ports_dest(&p, &b, 80, 0), 5000) < 20);
	assert_true(same_steps(&p, d, &p, corq_ports_dest(&p, &a, 81, 0), 5000) < 20);
	assert_true(same_steps(&p, d, &p, corq_ports_dest(&p, &a, 80, 1), 5000) < 20);
	assert_true(same_steps(&p, corq_ports_dest(&p, &b, 82, 3), &q,
			    corq_ports_dest(&q, &b, 82, 3), 5000) < 20);
	/* No pattern that the eye would see: half of the steps go up, none to the neighbour. */
	for (int i = 0; i < 10000; i++) {
		uint16_t port = corq_ports_next(&p, d);

		ascending += port > last;
		steps += port == last + 1 || port + 1 == last;
		last = port;
	}
	assert_in_range(ascending, 4700, 5300);
	assert_true(steps < 20);
	free(mem);
	free(mem2);
}

/* The n-th order is not the first one shifted: knowing one destination's tells nothing. */
static void
orders_are_not_shifts(void **state)
{
	struct corq_ports p;
	void *mem = new_ports(&p, 64, &secret, 1000);
	struct corq_dest *a = dest(&p, 1), *b = dest(&p, 2);
	uint16_t after[65536], port, next;
	unsigned same = 0;

	(void)state;
	port = corq_ports_next(&p, a);
	for (int i = 0; i < 1000; i++, port = next) {
		next = corq_ports_next(&p, a);
		after[port] = next;
	}
	port = corq_ports_next(&p, b);
	for (int i = 0; i < 1000; i++, port = next) {
		next = corq_ports_next(&p, b);
		same += after[port] == next;
	}
	assert_true(same < 15);
	free(mem);
}

/* In a table so small that all look at the same places. */
static void
a_destination_is_all_three(void **state)
{
	struct corq_ports p;
	void *mem = new_ports(&p, 8, &secret, 100);
	struct corq_addr a = addr(1), b = addr(2);
	struct corq_dest *d[4];

	(void)state;
	for (uint32_t i = 0; p.dests[7].live == 0 || i < 100; i++)
		dest(&p, 1000 + i); /* every place was used: a search goes on to its end */
	for (uint32_t round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			d[i] = corq_ports_dest(&p, i == 1 ? &b : &a, i == 2 ? 81 : 80, i == 3);
			assert_int_equal(d[i]->used, round); /* found again */
			corq_ports_take(&p, d[i]);
		}
	}
	corq_ports_give(&p, &a, 80, 1, false);
	assert_true(d[3]->used == 1 && d[0]->used == 2 && d[2]->used == 2);
	free(mem);
}

static void
exhaustion_is_known_without_a_walk(void **state)
{
	struct corq_ports p;
	void *mem = new_ports(&p, 16, &secret, 100);
	struct corq_dest *d = dest(&p, 1), *other;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(corq_ports_free(&p, d), 100 - i);
		corq_ports_take(&p, d);
	}
	assert_int_equal(corq_ports_free(&p, d), 0);
	other = dest(&p, 2);
	assert_int_equal(corq_ports_free(&p, other), 100); /* one port, many destinations */
	give(&p, 1, false);
	assert_int_equal(corq_ports_free(&p, d), 1);
	free(mem);
	/* No port at all: nothing is free. */
	mem = new_ports(&p, 16, &secret, 0);
	assert_int_equal(corq_ports_free(&p, dest(&p, 1)), 0);
	free(mem);
}

/* A busy place is nobody else's; an idle one may be taken over and goes on where it stood. */
static void
idle_places_are_taken_over(void **state)
{
	struct corq_ports p;
	void *mem = new_ports(&p, 4, &secret, 100);
	struct corq_dest *shared = &p.dests[4], *d[4], *e;
	uint32_t position;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		d[i] = dest(&p, i);
		assert_ptr_not_equal(d[i], shared);
		for (uint32_t j = 0; j < i; j++)
			assert_ptr_not_equal(d[i], d[j]);
		corq_ports_take(&p, d[i]);
	}
	assert_ptr_equal(dest(&p, 4), shared);
	assert_int_equal(corq_ports_free(&p, shared), 100);
	give(&p, 2, false);
	assert_ptr_equal(dest(&p, 2), d[2]); /* still its own */
	corq_ports_next(&p, d[2]);
	position = d[2]->position;
	e = dest(&p, 4);
	assert_ptr_equal(e, d[2]);
	assert_int_equal(e->position, position);
	assert_int_equal(corq_ports_free(&p, e), 100);
	corq_ports_take(&p, e);
	assert_ptr_equal(dest(&p, 2), shared);
	free(mem);
}

/* Tuples counted in the shared entry are given back there, also after the destination got a place
 * of its own; nothing falls below 0 and nothing is left over. */
static void
shared_tuples_go_back(void **state)
{
	struct corq_ports p;
	void *mem = new_ports(&p, 1, &secret, 10);
	struct corq_dest *shared = &p.dests[1], *d;

	(void)state;
	corq_ports_take(&p, dest(&p, 1));
	d = dest(&p, 2);
	assert_ptr_equal(d, shared);
	for (int i = 0; i < 3; i++)
		corq_ports_take(&p, d);
	assert_int_equal(shared->used, 3);
	give(&p, 2, false);
	assert_int_equal(shared->used, 2);
	give(&p, 1, false);
	d = dest(&p, 2); /* takes the place over */
	assert_ptr_not_equal(d, shared);
	corq_ports_take(&p, d);
	for (int i = 0; i < 3; i++)
		give(&p, 2, false);
	assert_int_equal(p.dests[0].used, 0);
	assert_int_equal(shared->used, 0);
	assert_int_equal(p.n_used, 0);
	free(mem);
}

enum {
	DESTS = 200,
	STEPS = 200000
};

struct tuples { /* oracle: what a destination has out */
	uint32_t used, waiting;
};

static void
accounting_against_an_oracle(void **state)
{
	static const uint32_t tables[] = {1, 7, 8, 64, 1024};
	struct corq_rand r;

	(void)state;
	print_message("seed 5\n");
	corq_rand_seed(&r, 5);
	for (size_t t = 0; t < CORQ_ARRAY_LEN(tables); t++) {
		static struct tuples out[DESTS];
		struct corq_ports p;
		void *mem = new_ports(&p, tables[t], &secret, 50);
		uint64_t used = 0, waiting = 0, in_dests = 0;

		memset(out, 0, sizeof(out));
		for (int i = 0; i < STEPS; i++) {
			uint32_t k = (uint32_t)corq_rand_below(&r, DESTS);
			struct tuples *o = &out[k];
			struct corq_dest *d;

			switch (corq_rand_below(&r, 4)) {
			case 0:
				d = dest(&p, k);
				/* Exact for a place never mixed with the shared one; else an upper
				 * bound. */
				assert_true(corq_ports_free(&p, d) + o->used + o->waiting >= 50);
				if (tables[t] == 1024)
					assert_int_equal(
						corq_ports_free(&p, d), 50 - o->used - o->waiting);
				if (o->used + o->waiting == 50)
					break;
				corq_ports_take(&p, d);
				o->used++;
				used++;
				break;
			case 1:
				if (!o->used)
					break;
				corq_ports_wait(&p);
				o->used--;
				o->waiting++;
				used--;
				waiting++;
				break;
			case 2:
				if (!o->used)
					break;
				give(&p, k, false);
				o->used--;
				used--;
				break;
			default:
				if (!o->waiting)
					break;
				give(&p, k, true);
				o->waiting--;
				waiting--;
			}
			assert_int_equal(p.n_used, used);
			assert_int_equal(p.n_waiting, waiting);
		}
		for (uint32_t k = 0; k <= tables[t]; k++)
			in_dests += p.dests[k].used;
		assert_int_equal(in_dests, used + waiting);
		for (uint32_t k = 0; k < DESTS; k++) {
			for (; out[k].used; out[k].used--)
				give(&p, k, false);
			for (; out[k].waiting; out[k].waiting--)
				give(&p, k, true);
		}
		for (uint32_t k = 0; k <= tables[t]; k++)
			assert_int_equal(p.dests[k].used, 0);
		assert_int_equal(p.n_used + p.n_waiting, 0);
		free(mem);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_walk_is_bijective),
		cmocka_unit_test(a_port_rests_for_a_whole_round),
		cmocka_unit_test(orders_are_unrelated),
		cmocka_unit_test(orders_are_not_shifts),
		cmocka_unit_test(a_destination_is_all_three),
		cmocka_unit_test(exhaustion_is_known_without_a_walk),
		cmocka_unit_test(idle_places_are_taken_over),
		cmocka_unit_test(shared_tuples_go_back),
		cmocka_unit_test(accounting_against_an_oracle),
	};

	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
