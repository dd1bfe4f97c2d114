/* SPDX-License-Identifier: BSD-3-Clause */
/* test_seq.c - wrapping comparison, and the small generators and counters of base. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cycles.h"
#include "base/rand.h"
#include "base/seq.h"

static void
seq_orders_across_the_wrap(void **state)
{
	static const uint32_t at[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(at); i++) {
		uint32_t a = at[i];

		assert_false(corq_seq_lt(a, a));
		assert_false(corq_seq_gt(a, a));
		assert_true(corq_seq_le(a, a));
		assert_true(corq_seq_ge(a, a));
		for (uint32_t d = 1; d < 0x7fffffff; d = d * 3 + 1) {
			assert_true(corq_seq_lt(a, a + d));
			assert_true(corq_seq_le(a, a + d));
			assert_false(corq_seq_gt(a, a + d));
			assert_false(corq_seq_ge(a, a + d));
			assert_true(corq_seq_gt(a + d, a));
			assert_true(corq_seq_ge(a + d, a));
			assert_int_equal(corq_seq_max(a, a + d), a + d);
			assert_int_equal(corq_seq_max(a + d, a), a + d);
			assert_int_equal(corq_seq_min(a, a + d), a);
			assert_int_equal(corq_seq_min(a + d, a), a);
		}
		assert_true(corq_seq_lt(a, a + 0x7fffffff));
	}
}

/* splitmix64: the published first outputs for seed 1234567. xoshiro256**: for state 1, 2, 3, 4. */
static void
rand_gives_the_published_numbers(void **state)
{
	static const uint64_t split[] = {6457827717110365317u, 3203168211198807973u,
		9817491932198370423u, 4593380528125082431u, 16408922859458223821u};
	static const uint64_t xo[] = {11520, 0, 1509978240, 1215971899390074240};
	struct corq_rand r = {{1, 2, 3, 4}};
	uint64_t x = 1234567;

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(split); i++)
		assert_true(corq_splitmix64(&x) == split[i]);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(xo); i++)
		assert_true(corq_rand_u64(&r) == xo[i]);
}

static void
rand_below_is_in_range_and_even(void **state)
{
	struct corq_rand r;
	uint32_t seen[7] = {0};
	uint64_t n = 3ull << 62; /* a quarter of all draws must be rejected */
	uint32_t third = 0;

	(void)state;
	corq_rand_seed(&r, 42);
	for (int i = 0; i < 70000; i++)
		seen[corq_rand_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 9500, 10500);
	for (int i = 0; i < 30000; i++) {
		uint64_t v = corq_rand_below(&r, n);

		assert_true(v < n);
		third += v % 3 == 0; /* half of them, were none rejected */
	}
	assert_in_range(third, 9500, 10500);
	assert_int_equal(corq_rand_below(&r, 0), 0);
	assert_int_equal(corq_rand_below(&r, 1), 0);
}

static void
cycles_do_not_run_backwards(void **state)
{
	uint64_t a = corq_cycles(), b;

	(void)state;
	for (int i = 0; i < 1000; i++, a = b) {
		b = corq_cycles();
		assert_true(b >= a);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seq_orders_across_the_wrap),
		cmocka_unit_test(rand_gives_the_published_numbers),
		cmocka_unit_test(rand_below_is_in_range_and_even),
		cmocka_unit_test(cycles_do_not_run_backwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
