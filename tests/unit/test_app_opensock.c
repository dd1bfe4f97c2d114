/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_opensock.c - what corq opensock rests on: the arithmetic of a run, the ring of handles
 * (one thread, and two), and the crew's steps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <corq/socket.h>
#include <math.h>
#include <sched.h>

#include "opensock/crew.h"
#include "opensock/plan.h"
#include "opensock/ring.h"

static void
test_shares(void **state)
{
	(void)state;
	for (uint64_t count = 0; count < 100; count += 7)
		for (uint32_t threads = 1; threads < 20; threads++) {
			uint64_t sum = 0;

			for (uint32_t i = 0; i < threads; i++) {
				uint64_t share = opensock_share(count, threads, i);

				assert_in_range(share, count / threads, count / threads + 1);
				sum += share;
			}
			assert_int_equal(sum, count);
		}
}

/* Whole blocks, room for what is open and one more; and most is the highest that fits. */
static void
test_need(void **state)
{
	static const uint32_t threads[] = {1, 2, 3, 16, 1000, 1024};
	struct opensock_options o = {0};
	uint64_t most = 0;

	(void)state;
	for (unsigned k = 0; k < 4 * sizeof(threads) / sizeof(threads[0]); k++) {
		o.threads = threads[k / 4];
		o.holes = (k & 1) != 0;
		o.cross = (k & 2) != 0 ? 1 : 0;
		o.count = 0;
		assert_true(opensock_need(&o, &most) >= o.threads * 4096);
		o.count = (uint64_t)CORQ_MAX_HANDLES;
		assert_int_equal(opensock_need(&o, &most), 0);
		assert_in_range(most, 1, CORQ_MAX_HANDLES - 1);
		o.count = most;
		assert_in_range(opensock_need(&o, &most), most + o.threads, CORQ_MAX_HANDLES);
		o.count++;
		assert_int_equal(opensock_need(&o, &most), 0);
		assert_int_equal(most, o.count - 1);
	}
}

static void
test_kernel_most(void **state)
{
	struct opensock_options o = {.threads = 16};

	(void)state;
	assert_int_equal(opensock_kernel_most(&o, 20000), 20000 - 64 - 16);
	assert_int_equal(opensock_kernel_most(&o, 80), 0);
	assert_int_equal(opensock_kernel_most(&o, 81), 1);
	o.cross = 1;
	assert_int_equal(opensock_kernel_most(&o, 20000), 20000 - 64 - 16 * 65);
	o.holes = true;
	for (uint64_t limit = 0; limit < 30000; limit += 11) {
		uint64_t most = opensock_kernel_most(&o, limit), open = 0;

		for (uint32_t i = 0; i < o.threads && most != 0; i++) {
			uint64_t share = opensock_share(most, o.threads, i);

			open += share + opensock_extra(&o, share) + 65;
		}
		assert_true(most == 0 || open + 64 <= limit);
	}
}

static void
test_spread(void **state)
{
	static const double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct opensock_spread s = opensock_spread_of(v, 8);

	(void)state;
	assert_true(s.mean == 5 && s.min == 2 && s.max == 9 && fabs(s.sd - 2) < 1e-12);
	s = opensock_spread_of(v, 1);
	assert_true(s.mean == 2 && s.min == 2 && s.max == 2 && s.sd == 0);
}

static void
test_ring(void **state)
{
	static struct opensock_ring r;
	uint64_t slot[4], x, in = 0, out = 0;

	(void)state;
	opensock_ring_init(&r, slot, 4);
	assert_false(opensock_ring_pop(&r, &x));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			assert_true(opensock_ring_push(&r, in++));
		assert_false(opensock_ring_push(&r, 99));
		for (int i = 0; i < 3 + round % 2; i++) {
			assert_true(opensock_ring_pop(&r, &x));
			assert_int_equal(x, out++);
		}
		while (opensock_ring_pop(&r, &x))
			assert_int_equal(x, out++);
		assert_int_equal(in, out);
	}
	/* the counters wrap */
	atomic_store(&r.tail, UINT32_MAX - 1);
	atomic_store(&r.head, UINT32_MAX - 1);
	r.head_seen = r.tail_seen = UINT32_MAX - 1;
	for (uint64_t i = 0; i < 4; i++)
		assert_true(opensock_ring_push(&r, i));
	assert_false(opensock_ring_push(&r, 99));
	for (uint64_t i = 0; i < 4; i++) {
		assert_true(opensock_ring_pop(&r, &x));
		assert_int_equal(x, i);
	}
	assert_false(opensock_ring_pop(&r, &x));
}

/* ---- threads ---- */

enum {
	PASS,
	COUNT,
	ROUNDS = 50,
	SENT = 100000,
	CREW = 6
};

struct team {
	struct opensock_crew crew;
	struct opensock_ring ring;
	uint64_t slot[64];
	uint32_t seen[CREW]; /* steps of COUNT */
	uint64_t wrong;
};

/* Plain words: that the crew's steps order them is what the thread sanitizer looks at. */
static void
work(void *arg, uint32_t index, int what)
{
	struct team *t = arg;
	uint64_t x;

	if (what == COUNT) {
		t->seen[index]++;
		return;
	}
	for (uint64_t i = 0; index < 2 && i < SENT;) {
		if (index == 0 && opensock_ring_push(&t->ring, i)) {
			i++;
		} else if (index == 1 && opensock_ring_pop(&t->ring, &x)) {
			t->wrong += x != i;
			i++;
		} else {
			sched_yield();
		}
	}
}

static void
test_crew(void **state)
{
	static struct team t;

	(void)state;
	opensock_ring_init(&t.ring, t.slot, 64);
	assert_int_equal(opensock_crew_start(&t.crew, CREW, work, &t), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		opensock_crew_begin(&t.crew, COUNT);
		opensock_crew_await(&t.crew);
		for (int i = 0; i < CREW; i++)
			assert_int_equal(t.seen[i], round);
	}
	opensock_crew_begin(&t.crew, PASS);
	opensock_crew_end(&t.crew); /* waits for it */
	assert_int_equal(t.wrong, 0);
	assert_int_equal(atomic_load(&t.ring.tail), SENT);
	assert_int_equal(atomic_load(&t.ring.head), SENT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_need),
		cmocka_unit_test(test_kernel_most),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_crew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
