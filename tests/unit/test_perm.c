/* SPDX-License-Identifier: BSD-3-Clause */
/* test_perm.c - the keyed permutation: one to one, spread, keyed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/perm.h"

#include <stdlib.h>
#include <string.h>

static const struct corq_sipkey key = {0x0123456789abcdef, 0xfedcba9876543210};

static void
assert_bijective(const struct corq_sipkey *k, uint64_t tweak, uint32_t n)
{
	uint8_t *seen = calloc(n, 1);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = corq_perm(k, tweak, n, i);

		if (v >= n || seen[v]) {
			free(seen);
			fail_msg("n %u tweak %llu: %u comes out of range or twice", n,
				(unsigned long long)tweak, v);
			return;
		}
		seen[v] = 1;
	}
	free(seen);
}

static void
every_number_once(void **state)
{
	const struct corq_sipkey zero = {0, 0};

	(void)state;
	for (uint32_t n = 1; n <= 300; n++)
		for (uint64_t tweak = 0; tweak < 5; tweak++)
			assert_bijective(&key, tweak * 0x123456789abcull, n);
	assert_bijective(&zero, 0, 65535);
	assert_bijective(&key, 1, 28233);
	assert_bijective(&key, 2, 64512);
	assert_bijective(&key, 3, 65536);
	assert_bijective(&key, 4, 65537);
	assert_bijective(&key, 5, 1000003);
}

/* Too many to tick off: a piece of the images of 2^32 has no double. */
static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void
large_n(void **state)
{
	static const uint32_t ns[] = {0 /* 2^32 */, UINT32_MAX, 0x80000001, 0x80000000};
	enum {
		M = 100000
	};
	uint32_t *v = malloc(M * sizeof(*v));

	(void)state;
	for (size_t k = 0; k < CORQ_ARRAY_LEN(ns); k++) {
		uint32_t last = ns[k] - 1;

		for (uint32_t i = 0; i < M; i++) {
			v[i] = corq_perm(&key, k, ns[k], i % 2 ? last - i : i);
			assert_true(v[i] <= last);
		}
		qsort(v, M, sizeof(*v), by_value);
		for (uint32_t i = 1; i < M; i++)
			assert_true(v[i] != v[i - 1]);
	}
	free(v);
}

/* Of two orders of n numbers about one place in n agrees, whatever of the input differs. */
static void
key_and_tweak_matter(void **state)
{
	enum {
		N = 10000
	};
	const struct corq_sipkey k0 = {key.k0 ^ 1, key.k1}, k1 = {key.k0, key.k1 ^ 1};
	uint32_t same[3] = {0}, steps = 0, fixed = 0;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t v = corq_perm(&key, 9, N, i);

		same[0] += v == corq_perm(&k0, 9, N, i);
		same[1] += v == corq_perm(&k1, 9, N, i);
		same[2] += v == corq_perm(&key, 8, N, i);
		fixed += v == i;
		steps += v + 1 == corq_perm(&key, 9, N, (i + 1) % N);
	}
	for (int k = 0; k < 3; k++)
		assert_true(same[k] < 12);
	assert_true(fixed < 12 && steps < 12);
}

/* Over tweaks, each image of one number is about equally frequent. */
static void
spread_over_tweaks(void **state)
{
	uint32_t seen[11] = {0};

	(void)state;
	for (uint64_t tweak = 0; tweak < 11000; tweak++)
		seen[corq_perm(&key, tweak, 11, 3)]++;
	for (int i = 0; i < 11; i++)
		assert_in_range(seen[i], 850, 1150);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_once),
		cmocka_unit_test(large_n),
		cmocka_unit_test(key_and_tweak_matter),
		cmocka_unit_test(spread_over_tweaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
