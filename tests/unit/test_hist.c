/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hist.c - histogram: exact figures, bounded error, merge. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <corq/hist.h>

#include "base/base.h"
#include "base/rand.h"

#include <stdlib.h>

static struct corq_hist h, h2;

static bool
near(double a, double b, double rel)
{
	double d = a > b ? a - b : b - a;

	return d <= rel * (b < 0 ? -b : b);
}

/* Buckets tile the 64-bit numbers: each upper edge and its successor fall into i and i + 1. */
static void
buckets_tile(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < CORQ_HIST_BUCKETS; i++) {
		uint64_t up = corq_hist_upper(i);

		assert_int_equal(corq_hist_index(up), i);
		if (i + 1 < CORQ_HIST_BUCKETS)
			assert_int_equal(corq_hist_index(up + 1), i + 1);
		else
			assert_true(up == UINT64_MAX);
	}
	assert_int_equal(corq_hist_index(0), 0);
}

static void
empty_and_one(void **state)
{
	(void)state;
	corq_hist_init(&h);
	assert_int_equal(corq_hist_percentile(&h, 50), 0);
	assert_int_equal(corq_hist_min(&h), 0);
	assert_true(corq_hist_mean(&h) == 0 && corq_hist_stddev(&h) == 0);
	corq_hist_record(&h, 1000003);
	assert_int_equal(corq_hist_percentile(&h, 0), 1000003);
	assert_int_equal(corq_hist_percentile(&h, 50), 1000003);
	assert_int_equal(corq_hist_percentile(&h, 100), 1000003);
	assert_int_equal(corq_hist_min(&h), 1000003);
	assert_true(corq_hist_mean(&h) == 1000003 && corq_hist_stddev(&h) == 0);
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
percentiles_within_one_part_in_32(void **state)
{
	enum {
		N = 20000
	};
	static uint64_t v[N];
	struct corq_rand r;

	(void)state;
	corq_rand_seed(&r, 6);
	corq_hist_init(&h);
	for (int i = 0; i < N; i++) {
		v[i] = corq_rand_u64(&r) >> corq_rand_below(&r, 64);
		corq_hist_record(&h, v[i]);
	}
	qsort(v, N, sizeof(v[0]), by_value);
	for (int k = 1; k <= 1000; k++) {
		uint64_t got = corq_hist_percentile(&h, k / 10.0), want = v[k * (N / 1000) - 1];

		assert_true(got >= want && got - want <= want / 32);
	}
	assert_true(corq_hist_percentile(&h, 100) == v[N - 1]);
}

/* A small spread on a large value, where sums of doubles would lose everything. */
static void
deviation_is_exact(void **state)
{
	const uint64_t base = 1ull << 62;

	(void)state;
	corq_hist_init(&h);
	for (int i = 0; i < 1000; i++) {
		corq_hist_record(&h, base - 3);
		corq_hist_record(&h, base + 4);
	}
	assert_true(near(corq_hist_stddev(&h), 3.5, 1e-9));
	assert_true(corq_hist_min(&h) == base - 3 && h.max == base + 4);
	assert_true(near(corq_hist_mean(&h), (double)base, 1e-15));

	corq_hist_init(&h);
	for (uint64_t i = 1; i <= 6; i++)
		corq_hist_record(&h, i);
	assert_true(near(corq_hist_mean(&h), 3.5, 1e-15));
	assert_true(near(corq_hist_stddev(&h), 1.707825127659933, 1e-12));
}

static void
merge_equals_recording_all(void **state)
{
	static struct corq_hist all;
	struct corq_rand r;

	(void)state;
	corq_rand_seed(&r, 8);
	corq_hist_init(&h);
	corq_hist_init(&h2);
	corq_hist_init(&all);
	for (int i = 0; i < 5000; i++) {
		uint64_t v = corq_rand_u64(&r) >> corq_rand_below(&r, 64);

		corq_hist_record(&all, v);
		corq_hist_record(i % 3 ? &h : &h2, v);
	}
	corq_hist_merge(&h, &h2);
	assert_memory_equal(&h, &all, sizeof(all));
	corq_hist_init(&h2);
	corq_hist_merge(&h, &h2);
	assert_memory_equal(&h, &all, sizeof(all));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_tile),
		cmocka_unit_test(empty_and_one),
		cmocka_unit_test(percentiles_within_one_part_in_32),
		cmocka_unit_test(deviation_is_exact),
		cmocka_unit_test(merge_equals_recording_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
