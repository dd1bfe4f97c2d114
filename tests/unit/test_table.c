/* SPDX-License-Identifier: BSD-3-Clause */
/* test_table.c - the keyed table against an array model, up to where it is full. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "base/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct corq_table t;
	void *mem;
	uint64_t *hash; /* of value i */
	uint8_t *in;    /* is value i in the table? */
	uint32_t n;     /* values */
	uint32_t count;
	struct corq_rand rand;
};

static void
setup(struct fixture *f, uint32_t capacity, uint32_t n, uint64_t seed)
{
	size_t size = corq_table_size(capacity);

	memset(f, 0, sizeof(*f));
	f->mem = aligned_alloc(CORQ_CACHELINE, size);
	f->hash = malloc(n * sizeof(*f->hash));
	f->in = calloc(n, 1);
	f->n = n;
	corq_rand_seed(&f->rand, seed);
	for (uint32_t i = 0; i < n; i++)
		f->hash[i] = corq_rand_u64(&f->rand);
	corq_table_init(&f->t, f->mem, capacity);
	assert_int_equal(size, (f->t.mask + 1ull) * CORQ_CACHELINE);
}

static void
teardown(struct fixture *f)
{
	free(f->mem);
	free(f->hash);
	free(f->in);
}

/* Recomputes every n_over from the entries, and checks that each entry is where it may be. */
static void
check(const struct fixture *f)
{
	const struct corq_table *t = &f->t;
	uint32_t *over = calloc(t->mask + 1ull, sizeof(*over)), count = 0;

	for (uint32_t b = 0; b <= t->mask; b++) {
		const struct corq_table_bucket *k = &t->bucket[b];

		assert_true((k->home & k->away) == 0 && ((k->home | k->away) & 0x80) == 0);
		for (uint32_t i = 0; i < CORQ_TABLE_WAYS; i++) {
			if (!((k->home | k->away) >> i & 1))
				continue;
			uint64_t h = f->hash[k->val[i]];

			assert_true(f->in[k->val[i]]);
			assert_int_equal(k->tag[i], (uint32_t)h);
			count++;
			if (k->home >> i & 1) {
				assert_int_equal(corq_table_home(t, h), b);
				continue;
			}
			assert_int_not_equal(corq_table_home(t, h), b);
			assert_int_equal(
				corq_table_other(t, corq_table_home(t, h), (uint32_t)h), b);
			over[corq_table_home(t, h)]++;
		}
	}
	for (uint32_t b = 0; b <= t->mask; b++)
		assert_int_equal(t->bucket[b].n_over, over[b]);
	assert_int_equal(count, t->count);
	assert_int_equal(count, f->count);
	free(over);
}

/* How often the candidates of value i's hash contain i. */
static uint32_t
found(const struct fixture *f, uint32_t i)
{
	struct corq_table_cursor cur;
	uint32_t n = 0;

	for (uint32_t v = corq_table_first(&f->t, f->hash[i], &cur); v != CORQ_NONE;
		v = corq_table_next(&f->t, &cur)) {
		assert_true(v < f->n);
		assert_true((uint32_t)f->hash[v] == (uint32_t)f->hash[i]);
		n += v == i;
	}
	return n;
}

static void
check_all_found(const struct fixture *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		assert_int_equal(found(f, i), f->in[i]);
}

static int
insert(struct fixture *f, uint32_t i)
{
	int rc = corq_table_insert(&f->t, f->hash[i], i);

	if (rc == 0) {
		f->in[i] = 1;
		f->count++;
	}
	return rc;
}

static void
take_out(struct fixture *f, uint32_t i)
{
	assert_true(corq_table_remove(&f->t, f->hash[i], i) == f->in[i]);
	f->count -= f->in[i];
	f->in[i] = 0;
}

/* Fills to pct percent of all ways, then keeps it there while entries come and go. */
static void
churn_at(uint32_t pct, uint64_t seed)
{
	struct fixture f;
	uint32_t ways, want;

	setup(&f, 5 * 1024, 16384, seed);
	ways = (f.t.mask + 1) * CORQ_TABLE_WAYS;
	want = ways * pct / 100;
	for (uint32_t i = 0; f.count < want; i++)
		assert_int_equal(insert(&f, i), 0);
	check(&f);
	check_all_found(&f);
	for (uint32_t step = 1; step <= 100000; step++) {
		uint32_t i = (uint32_t)corq_rand_below(&f.rand, f.n);

		if (f.in[i]) {
			take_out(&f, i);
		} else if (f.count < want) {
			f.hash[i] = corq_rand_u64(&f.rand);
			assert_int_equal(insert(&f, i), 0);
		}
		assert_int_equal(found(&f, i), f.in[i]);
		if (step % 20000 == 0)
			check(&f);
	}
	check(&f);
	check_all_found(&f);
	for (uint32_t i = 0; i < f.n; i++)
		take_out(&f, i);
	check(&f);
	for (uint32_t b = 0; b <= f.t.mask; b++)
		assert_int_equal(f.t.bucket[b].n_over, 0);
	teardown(&f);
}

static void
churn_at_many_loads(void **state)
{
	(void)state;
	for (uint32_t pct = 50; pct <= 95; pct += 5) {
		printf("load %u %% seed %u\n", pct, pct);
		churn_at(pct, pct);
	}
}

/* Until -ENOSPC; from there on a failing insert changes no byte. */
static void
full_is_refused_and_changes_nothing(void **state)
{
	struct fixture f;
	size_t size;
	void *copy;
	uint32_t failed = 0, first_at = 0;

	(void)state;
	setup(&f, 5 * 256, 256 * 9, 3);
	size = corq_table_size(5 * 256);
	copy = malloc(size);
	for (uint32_t i = 0; i < f.n; i++) {
		memcpy(copy, f.mem, size);
		if (insert(&f, i) == 0)
			continue;
		if (failed++ == 0)
			first_at = f.count;
		assert_memory_equal(copy, f.mem, size);
		assert_int_equal(f.t.count, f.count);
		assert_int_equal(corq_table_insert(&f.t, f.hash[i], i), -ENOSPC);
	}
	assert_true(failed > 0);
	assert_true(first_at >= 256 * 7 * 95 / 100);
	check(&f);
	check_all_found(&f);
	free(copy);
	teardown(&f);
}

/* The promise of corq_table_size: the capacity fits, here at the worst rounding. */
static void
capacity_fits(void **state)
{
	static const uint32_t capacity[] = {1, 2, 5, 6, 10, 20, 160, 1280, 5 * 4096, 5 * 16384};

	(void)state;
	for (size_t c = 0; c < CORQ_ARRAY_LEN(capacity); c++)
		for (uint64_t seed = 0; seed < (capacity[c] < 2000 ? 300 : 10); seed++) {
			struct fixture f;

			setup(&f, capacity[c], capacity[c], seed);
			for (uint32_t i = 0; i < capacity[c]; i++)
				assert_int_equal(insert(&f, i), 0);
			check(&f);
			check_all_found(&f);
			teardown(&f);
		}
	assert_true(corq_table_size(1u << 20) <= 17ull << 20);
}

/* Equal tags and equal hashes: every value is found, 14 at most fit, the 15th is refused. */
static void
equal_hashes(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, 640, 40, 9);
	for (uint32_t i = 0; i < 15; i++)
		f.hash[i] = 0x1234567800000000ull; /* tag 0 is a tag like others */
	for (uint32_t i = 15; i < 40; i++)
		f.hash[i] = (uint64_t)i << 32;
	for (uint32_t i = 0; i < 14; i++)
		assert_int_equal(insert(&f, i), 0);
	assert_int_equal(insert(&f, 14), -ENOSPC);
	for (uint32_t i = 15; i < 40; i++)
		assert_int_equal(insert(&f, i), 0);
	check(&f);
	check_all_found(&f);
	take_out(&f, 5);
	take_out(&f, 5);
	assert_int_equal(insert(&f, 14), 0);
	check(&f);
	check_all_found(&f);
	teardown(&f);
}

static void
replace_keeps_the_place(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, 100, 200, 4);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(insert(&f, i), 0);
	for (uint32_t i = 0; i < 100; i++) {
		f.hash[i + 100] = f.hash[i];
		assert_false(corq_table_replace(&f.t, f.hash[i], i + 100, i));
		assert_true(corq_table_replace(&f.t, f.hash[i], i, i + 100));
		f.in[i] = 0;
		f.in[i + 100] = 1;
		assert_int_equal(found(&f, i), 0);
		assert_int_equal(found(&f, i + 100), 1);
	}
	check(&f);
	teardown(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(churn_at_many_loads),
		cmocka_unit_test(full_is_refused_and_changes_nothing),
		cmocka_unit_test(capacity_fits),
		cmocka_unit_test(equal_hashes),
		cmocka_unit_test(replace_keeps_the_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
