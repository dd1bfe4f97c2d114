/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ring.c - the single-producer single-consumer ring, alone and between two threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "base/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static struct corq_spsc *
new_ring(uint32_t n)
{
	struct corq_spsc *r = aligned_alloc(CORQ_CACHELINE, corq_spsc_size(n));

	corq_spsc_init(r, n);
	return r;
}

static void
sizes(void **state)
{
	static const uint32_t n[] = {1, 2, 3, 8, 9, 1000}, holds[] = {1, 2, 4, 8, 16, 1024};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(n); i++) {
		struct corq_spsc *r = new_ring(n[i]);

		assert_int_equal(corq_spsc_capacity(r), holds[i]);
		assert_int_equal(corq_spsc_size(n[i]) % CORQ_CACHELINE, 0);
		free(r);
	}
}

static void
full_and_empty_are_partial(void **state)
{
	struct corq_spsc *r = new_ring(4);
	uint64_t in[6] = {1, 2, 3, 4, 5, 6}, out[6];

	(void)state;
	assert_int_equal(corq_spsc_pop(r, out, 6), 0);
	assert_int_equal(corq_spsc_push(r, in, 0), 0);
	assert_int_equal(corq_spsc_push(r, in, 6), 4);
	assert_int_equal(corq_spsc_push(r, in + 4, 1), 0);
	assert_int_equal(corq_spsc_count(r), 4);
	assert_int_equal(corq_spsc_pop(r, out, 3), 3);
	assert_true(out[0] == 1 && out[1] == 2 && out[2] == 3);
	assert_int_equal(corq_spsc_push(r, in + 4, 2), 2);
	assert_int_equal(corq_spsc_pop(r, out, 6), 3);
	assert_true(out[0] == 4 && out[1] == 5 && out[2] == 6);
	assert_int_equal(corq_spsc_count(r), 0);
	free(r);
}

/* Indices wrap at 2^32: start the ring shortly before. */
static void
index_wrap(void **state)
{
	struct corq_spsc *r = new_ring(8);
	uint64_t in[8], out[8], put = 0, got = 0;
	struct corq_rand rand;

	(void)state;
	corq_rand_seed(&rand, 5);
	corq_store_relaxed_u32(&r->head, UINT32_MAX - 100);
	corq_store_relaxed_u32(&r->tail, UINT32_MAX - 100);
	r->head_seen = r->tail_seen = UINT32_MAX - 100;
	while (got < 1000) {
		uint32_t n = (uint32_t)corq_rand_below(&rand, 9);

		for (uint32_t i = 0; i < n; i++)
			in[i] = put + i;
		put += corq_spsc_push(r, in, n);
		assert_int_equal(corq_spsc_count(r), put - got);
		n = corq_spsc_pop(r, out, (uint32_t)corq_rand_below(&rand, 9));
		for (uint32_t i = 0; i < n; i++)
			assert_true(out[i] == got++);
	}
	free(r);
}

enum {
	WORDS = 400000
};

/* Each word carries a number, and points at plain memory that must be visible with it. */
struct shared {
	struct corq_spsc *ring;
	uint64_t payload[WORDS];
};

static void *
produce(void *arg)
{
	struct shared *s = arg;
	struct corq_rand rand;
	uint64_t w[16], put = 0;

	corq_rand_seed(&rand, 1);
	while (put < WORDS) {
		uint32_t n = (uint32_t)CORQ_MIN(1 + corq_rand_below(&rand, 16), WORDS - put),
			 done = 0;

		for (uint32_t i = 0; i < n; i++) {
			w[i] = put + i;
			s->payload[put + i] = ~(put + i);
		}
		while (done < n) {
			uint32_t k = corq_spsc_push(s->ring, w + done, n - done);

			if (k == 0)
				sched_yield();
			done += k;
		}
		put += n;
	}
	return NULL;
}

static void
two_threads(void **state)
{
	struct shared *s = malloc(sizeof(*s));
	uint64_t w[16], got = 0;
	struct corq_rand rand;
	pthread_t thread;

	(void)state;
	corq_rand_seed(&rand, 2);
	s->ring = new_ring(64);
	assert_int_equal(pthread_create(&thread, NULL, produce, s), 0);
	while (got < WORDS) {
		uint32_t n = corq_spsc_pop(s->ring, w, 1 + (uint32_t)corq_rand_below(&rand, 16));

		if (n == 0)
			sched_yield();
		for (uint32_t i = 0; i < n; i++, got++)
			assert_true(w[i] == got && s->payload[got] == ~got);
		assert_true(corq_spsc_count(s->ring) <= 64);
	}
	pthread_join(thread, NULL);
	assert_int_equal(corq_spsc_count(s->ring), 0);
	free(s->ring);
	free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(full_and_empty_are_partial),
		cmocka_unit_test(index_wrap),
		cmocka_unit_test(two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
