/* SPDX-License-Identifier: BSD-3-Clause */
/* test_handle.c - handles: lowest first, stale and double closes, full, retirement, lazy memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/handle.h"
#include "base/rand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct fixture {
	struct corq_handles h;
	struct corq_lane *lane;
	void *mem;
	size_t size;
};

static void
setup(struct fixture *f, uint32_t n_slots, uint32_t n_lanes)
{
	f->size = corq_handles_size(n_slots, n_lanes);
	assert_true(f->size != 0);
	f->mem = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(f->mem != MAP_FAILED);
	madvise(f->mem, f->size, MADV_NOHUGEPAGE);
	corq_handles_init(&f->h, f->mem, n_slots, n_lanes);
	f->lane = malloc(n_lanes * sizeof(*f->lane));
	for (uint32_t i = 0; i < n_lanes; i++)
		corq_lane_init(&f->lane[i], &f->h, i, i + 5);
}

static void
teardown(struct fixture *f)
{
	munmap(f->mem, f->size);
	free(f->lane);
}

static void
sizes_and_limits(void **state)
{
	(void)state;
	assert_int_equal(corq_handles_size(0, 1), 0);
	assert_int_equal(corq_handles_size(1, 0), 0);
	assert_int_equal(corq_handles_size(1, CORQ_LANES_MAX + 1), 0);
	assert_int_equal(corq_handles_size((1u << 26) + 1, 8), 0);
	assert_int_equal(corq_handles_size((1u << 24) + 1, 1), 0); /* above a lane's blocks */
	assert_true(corq_handles_size(1u << 24, 1) >= 16ull << 24);
	assert_true(corq_handles_size(1u << 26, 4) <= (16ull << 26) + (600ull << 14));
	assert_int_equal(corq_handles_size((1u << 26) - 1, 7), 0); /* part blocks exceed 2^26 */
}

static void
a_handle_lives_and_dies_once(void **state)
{
	struct fixture f;
	uint32_t conn = 0;
	corq_h a, b;

	(void)state;
	setup(&f, 10, 1);
	a = corq_lane_alloc(f.lane, 1234);
	assert_true(a != CORQ_H_NONE);
	assert_int_equal(corq_h_slot(a), 0);
	assert_int_equal(corq_h_gen(a), 1);
	assert_int_equal(corq_handle_lookup(&f.h, a, &conn), 0);
	assert_int_equal(conn, 1234);
	assert_int_equal(corq_load_relaxed_u64(&f.h.slot[0].word) >> CORQ_SLOT_OWNER_BIT &
				 CORQ_SLOT_OWNER_MASK,
		5);
	assert_int_equal(corq_lane_close(f.lane, a), 0);
	assert_int_equal(corq_lane_close(f.lane, a), -EBADF);
	assert_int_equal(corq_handle_lookup(&f.h, a, &conn), -EBADF);
	/* The generation to come is not live before it is handed out. */
	assert_int_equal(corq_handle_lookup(&f.h, a + (1ull << CORQ_H_SLOT_BITS), NULL), -EBADF);
	assert_int_equal(corq_lane_close(f.lane, a + (1ull << CORQ_H_SLOT_BITS)), -EBADF);
	b = corq_lane_alloc(f.lane, 99);
	assert_int_equal(corq_h_slot(b), 0);
	assert_int_equal(corq_h_gen(b), 2);
	assert_int_equal(corq_handle_lookup(&f.h, a, &conn), -EBADF);
	assert_int_equal(corq_lane_close(f.lane, a), -EBADF);
	assert_int_equal(corq_handle_lookup(&f.h, b, &conn), 0);
	assert_int_equal(conn, 99);
	teardown(&f);
}

static void
no_handle_at_all(void **state)
{
	static const corq_h bad[] = {CORQ_H_NONE, 1, UINT64_MAX, 1ull << 26 | 9, 1ull << 26 | 4095,
		1ull << 26 | 4096, 1ull << 26 | ((1u << 26) - 1), 5};
	struct fixture f;

	(void)state;
	setup(&f, 10, 1);
	corq_lane_alloc(f.lane, 0);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(bad); i++) {
		assert_int_equal(corq_handle_lookup(&f.h, bad[i], NULL), -EBADF);
		assert_int_equal(corq_lane_close(f.lane, bad[i]), -EBADF);
		assert_int_equal(corq_lane_close_deferred(f.lane, bad[i]), -EBADF);
	}
	assert_int_equal(f.lane->n_used, 1);
	teardown(&f);
}

/* Each lane gets its part to the slot, and no handle of another. */
static void
lanes_share_exactly(void **state)
{
	static const uint32_t n_slots[] = {3, 10, 4096, 4097, 3 * 4096 + 64, 50000};
	struct fixture f;

	(void)state;
	for (size_t k = 0; k < CORQ_ARRAY_LEN(n_slots); k++) {
		uint32_t total = 0;

		setup(&f, n_slots[k], 3);
		for (uint32_t lane = 0; lane < 3; lane++) {
			uint32_t got = 0;
			corq_h h;

			while ((h = corq_lane_alloc(&f.lane[lane], lane)) != CORQ_H_NONE) {
				assert_int_equal(
					corq_lane_close(&f.lane[(lane + 1) % 3], h), -EBADF);
				got++;
			}
			assert_true(got - n_slots[k] / 3 <= 1);
			assert_int_equal(got, f.lane[lane].n_slots);
			assert_int_equal(got, f.lane[lane].n_used);
			total += got;
		}
		assert_int_equal(total, n_slots[k]);
		teardown(&f);
	}
}

/* Per slot number: its live handle, and all that a model needs to tell the lowest free one. */
static void
random_use_against_a_model(uint32_t n, uint64_t seed)
{
	corq_h *live = calloc(n, sizeof(*live)), *stale = calloc(n, sizeof(*stale)), h;
	uint8_t *later = calloc(n, 1);
	struct fixture f;
	struct corq_rand r;
	uint32_t low = 0, conn, n_used = 0; /* everything below low is taken */

	corq_rand_seed(&r, seed);
	setup(&f, n, 1);
	for (uint32_t step = 0; step < 12 * n + 1000; step++) {
		uint32_t i = (uint32_t)corq_rand_below(&r, n);
		/* First it fills, then it empties, then both. */
		uint32_t take = step < 5 * n ? 90 : step < 7 * n ? 20 : 55;

		if (corq_rand_below(&r, 100) < take) {
			while (low < n && (live[low] || later[low]))
				low++;
			h = corq_lane_alloc(f.lane, step);
			assert_true((h == CORQ_H_NONE) == (low == n));
			if (h == CORQ_H_NONE)
				continue;
			assert_int_equal(corq_h_slot(h), low);
			assert_true(corq_h_gen(h) == corq_h_gen(stale[low]) + 1);
			live[low] = h;
			n_used++;
			assert_int_equal(corq_handle_lookup(&f.h, h, &conn), 0);
			assert_int_equal(conn, step);
		} else if (live[i]) {
			if (corq_rand_below(&r, 3)) {
				assert_int_equal(corq_lane_close(f.lane, live[i]), 0);
				low = CORQ_MIN(low, i);
				n_used--;
			} else {
				assert_int_equal(corq_lane_close_deferred(f.lane, live[i]), 0);
				later[i] = 1;
			}
			stale[i] = live[i];
			live[i] = 0;
		} else if (stale[i]) {
			assert_int_equal(corq_lane_close(f.lane, stale[i]), -EBADF);
			assert_int_equal(corq_lane_close_deferred(f.lane, stale[i]), -EBADF);
			assert_int_equal(corq_handle_lookup(&f.h, stale[i], &conn), -EBADF);
		}
		if (corq_rand_below(&r, 50) == 0) {
			corq_lane_turn_end(f.lane);
			for (uint32_t k = 0; k < n; k++)
				if (later[k]) {
					later[k] = 0;
					low = CORQ_MIN(low, k);
					n_used--;
				}
		}
		assert_int_equal(f.lane->n_used, n_used);
	}
	free(live);
	free(stale);
	free(later);
	teardown(&f);
}

static void
lowest_against_a_model(void **state)
{
	(void)state;
	random_use_against_a_model(1, 1);
	random_use_against_a_model(63, 2);
	random_use_against_a_model(64, 3);
	random_use_against_a_model(65, 4);
	random_use_against_a_model(4096, 5);
	random_use_against_a_model(4097, 6);
	random_use_against_a_model(9000, 7);
}

/* More than 64 blocks, so that all four levels are used; all taken, some freed, lowest first. */
static void
four_levels(void **state)
{
	const uint32_t n = 70 * 4096;
	uint32_t freed[] = {n - 1, 64 * 4096, 64 * 4096 - 1, 4096, 4095, 64, 63, 0};
	corq_h *h = malloc(n * sizeof(*h));
	struct fixture f;

	(void)state;
	setup(&f, n, 1);
	for (uint32_t i = 0; i < n; i++) {
		h[i] = corq_lane_alloc(f.lane, i);
		assert_int_equal(corq_h_slot(h[i]), i);
	}
	assert_true(corq_lane_alloc(f.lane, 0) == CORQ_H_NONE);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(freed); i++)
		assert_int_equal(corq_lane_close(f.lane, h[freed[i]]), 0);
	for (size_t i = CORQ_ARRAY_LEN(freed); i-- > 0;)
		assert_int_equal(corq_h_slot(corq_lane_alloc(f.lane, 0)), freed[i]);
	assert_true(corq_lane_alloc(f.lane, 0) == CORQ_H_NONE);
	free(h);
	teardown(&f);
}

/* The last generation works; after it the slot rests for ever. */
static void
spent_slot_is_retired(void **state)
{
	struct fixture f;
	corq_h h;

	(void)state;
	for (int deferred = 0; deferred < 2; deferred++) {
		setup(&f, 2, 1);
		corq_store_relaxed_u64(
			&f.h.slot[0].word, (CORQ_H_GEN_LAST - 1) << CORQ_H_SLOT_BITS);
		h = corq_lane_alloc(f.lane, 0);
		assert_true(corq_h_gen(h) == CORQ_H_GEN_LAST - 1);
		assert_int_equal(corq_lane_close(f.lane, h), 0);
		h = corq_lane_alloc(f.lane, 0);
		assert_true(corq_h_gen(h) == CORQ_H_GEN_LAST && corq_h_slot(h) == 0);
		assert_int_equal(f.lane->n_retired, 0);
		if (deferred)
			assert_int_equal(corq_lane_close_deferred(f.lane, h), 0);
		else
			assert_int_equal(corq_lane_close(f.lane, h), 0);
		corq_lane_turn_end(f.lane);
		assert_int_equal(f.lane->n_retired, 1);
		assert_int_equal(f.lane->n_used, 0);
		assert_int_equal(corq_lane_close(f.lane, h), -EBADF);
		assert_int_equal(corq_handle_lookup(&f.h, h, NULL), -EBADF);
		assert_int_equal(corq_h_slot(corq_lane_alloc(f.lane, 0)), 1);
		assert_true(corq_lane_alloc(f.lane, 0) == CORQ_H_NONE);
		teardown(&f);
	}
}

static void
unused_blocks_stay_untouched(void **state)
{
	struct fixture f;
	unsigned char *in;
	size_t pages, n = 0;

	(void)state;
	setup(&f, 1u << 22, 2);
	for (int i = 0; i < 100; i++)
		corq_lane_alloc(&f.lane[1], 0);
	pages = (f.size + 4095) / 4096;
	in = malloc(pages);
	assert_int_equal(mincore(f.mem, f.size, in), 0);
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	assert_true(n <= 5); /* slots, block, directory */
	free(in);
	teardown(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_limits),
		cmocka_unit_test(a_handle_lives_and_dies_once),
		cmocka_unit_test(no_handle_at_all),
		cmocka_unit_test(lanes_share_exactly),
		cmocka_unit_test(lowest_against_a_model),
		cmocka_unit_test(four_levels),
		cmocka_unit_test(spent_slot_is_retired),
		cmocka_unit_test(unused_blocks_stay_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
