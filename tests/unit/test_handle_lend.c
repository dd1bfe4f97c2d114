/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_handle_lend.c - several lanes, played by one thread so that each step is known: frees by
 * others, folding, lending, starving, resting, dying, scribbled regions. Every second lane sees all
 * memory at another address.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "handle_rig.h"

#define B 4096u /* slots of a block */

static struct rig rig;
static struct corq_lane *const lane = rig.lane;

static void
start(uint32_t blocks, uint32_t n_lanes)
{
	rig_start(&rig, blocks * B, n_lanes, (struct corq_lane_config){0});
}

/* n handles of lane i; they must be there. */
static corq_h *
open_n(uint32_t i, uint32_t n)
{
	corq_h *h = malloc(n * sizeof(*h));

	for (uint32_t k = 0; k < n; k++)
		if ((h[k] = corq_lane_alloc(&lane[i], k)) == CORQ_H_NONE)
			fail_msg("lane %u is full at %u of %u", i, k, n);
	return h;
}

static void
close_n(uint32_t by, const corq_h *h, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		assert_int_equal(corq_lane_close(&lane[by], h[k]), 0);
}

/* How many more lane i can open. */
static uint32_t
fill(uint32_t i)
{
	uint32_t n = 0;

	while (corq_lane_alloc(&lane[i], 0) != CORQ_H_NONE)
		n++;
	return n;
}

static void
closed_by_another_lane(void **state)
{
	corq_h *h;

	(void)state;
	start(4, 2);
	h = open_n(0, 200);
	for (uint32_t i = 100; i < 200; i++) {
		assert_int_equal(corq_handle_lookup(&rig.far, h[i], NULL), 0);
		assert_int_equal(corq_lane_close(&lane[1], h[i]), 0);
		assert_int_equal(corq_lane_close(&lane[1], h[i]), -EBADF);
		assert_int_equal(corq_handle_lookup(&rig.h, h[i], NULL), -EBADF);
		assert_int_equal(corq_lane_close_deferred(&lane[1], h[0]), -EBADF);
	}
	assert_int_equal(rig_count(&rig).open, 100);
	assert_int_equal(rig_count(&rig).pending, 100);
	/* the owner's next call folds; lowest is what the fold gave */
	assert_int_equal(corq_h_slot(corq_lane_alloc(&lane[0], 0)), 100);
	assert_int_equal(rig_count(&rig).pending, 0);
	assert_int_equal(rig_count(&rig).open, 101);
	assert_int_equal(corq_lane_close(&lane[0], h[150]), -EBADF);
	free(h);
	rig_end(&rig);
}

/* A call that finds frees by others folds them once in CORQ_FOLD_CALLS calls, and before it is out
 * of room or at its limit; or when it is asked. */
static void
folds_are_put_off(void **state)
{
	uint32_t calls = 0;
	corq_h *h, again;

	(void)state;
	start(1, 2);
	h = open_n(0, 300);
	assert_int_equal(corq_lane_close(&lane[1], h[0]), 0);
	again = corq_lane_alloc(&lane[0], 0); /* nothing was put off yet */
	assert_int_equal(corq_h_slot(again), 0);
	assert_int_equal(corq_lane_close(&lane[1], again), 0);
	while (rig_count(&rig).pending != 0) {
		assert_true(++calls <= CORQ_FOLD_CALLS + 1);
		again = corq_lane_alloc(&lane[0], 0);
		assert_int_equal(corq_lane_close(&lane[0], again), 0);
		calls++;
	}
	assert_true(calls >= CORQ_FOLD_CALLS / 2);
	assert_int_equal(corq_h_slot(corq_lane_alloc(&lane[0], 0)), 0);

	/* out of room: all comes at once */
	close_n(1, h + 1, 200);
	assert_int_equal(rig_count(&rig).pending, 200);
	assert_int_equal(fill(0), B - 300 + 200);
	assert_int_equal(rig_count(&rig).pending, 0);

	/* asked: all goes at once */
	close_n(1, h + 201, 99);
	assert_int_equal(rig_count(&rig).pending, 99);
	assert_true(corq_lane_alloc(&lane[1], 0) == CORQ_H_NONE);
	assert_int_equal(corq_load_relaxed_u32(&lane[0].line->wanted), 1);
	assert_int_equal(corq_lane_close(&lane[0], h[0]), -EBADF);
	assert_int_equal(rig_count(&rig).pending, 0);
	free(h);
	rig_end(&rig);
}

/* Fill all, drain from other lanes, fill again: each time the same count. */
static void
fill_drain_fill(void **state)
{
	const uint32_t blocks = 9, each = blocks * B / 3;
	corq_h *h[3];

	(void)state;
	start(blocks, 3);
	for (int round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 3; i++)
			h[i] = open_n(i, each);
		for (uint32_t i = 0; i < 3; i++)
			assert_true(corq_lane_alloc(&lane[i], 0) == CORQ_H_NONE);
		assert_int_equal(rig_count(&rig).open, blocks * B);
		for (uint32_t i = 0; i < 3; i++) {
			/* round 0 by the owner, 1 and 2 by the others, 3 by all in turn */
			for (uint32_t k = 0; k < each; k++)
				close_n((i + (uint32_t)round + (round == 3 ? k : 0)) % 3, &h[i][k],
					1);
			free(h[i]);
		}
		assert_int_equal(rig_count(&rig).open, 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		corq_lane_detach(&lane[i]);
	assert_int_equal(rig_count(&rig).blocks_lent, 0);
	assert_int_equal(rig_count(&rig).stranded, 0);
	rig_end(&rig);
}

/* What lane 0 has free comes to starving lane 1 when lane 0 calls next, not before, and is counted
 * as stranded until then. */
static void
a_starving_lane_asks(void **state)
{
	corq_h *h;

	(void)state;
	start(8, 2);
	h = open_n(0, 8 * B);
	close_n(1, h, 6 * B);
	assert_int_equal(rig_count(&rig).stranded, 6 * B);
	assert_true(corq_lane_alloc(&lane[1], 0) == CORQ_H_NONE);
	assert_int_equal(rig_count(&rig).starved, 1);
	assert_true(corq_lane_alloc(&lane[1], 0) == CORQ_H_NONE);
	close_n(0, &h[8 * B - 1], 1); /* any call */
	assert_int_equal(rig_count(&rig).stranded, 1);
	assert_int_equal(fill(1), 6 * B);
	assert_int_equal(rig_count(&rig).stranded, 1);
	assert_int_equal(rig_count(&rig).emfile, 3);
	assert_int_equal(rig_count(&rig).starved, 3);
	free(h);
	rig_end(&rig);
}

/* A lane that rests does nothing; a starving one takes what was freed there, and finds it whole
 * when it comes back. */
static void
a_resting_lane_is_visited(void **state)
{
	corq_h *h;

	(void)state;
	start(8, 3);
	h = open_n(0, 8 * B);
	corq_lane_rest(&lane[0]);
	corq_lane_rest(&lane[0]); /* twice is once */
	close_n(2, h, 5 * B + 17);
	assert_int_equal(fill(1), 5 * B); /* no call of lane 0 was needed */
	assert_int_equal(rig_count(&rig).stranded, 17);
	assert_int_equal(rig_count(&rig).starved, 1);
	assert_int_equal(corq_lane_close(&lane[0], h[5 * B + 17]), 0);
	assert_int_equal(fill(0), 18);
	assert_int_equal(rig_count(&rig).open, 8 * B);
	/* its own empty blocks too: it keeps some, until somebody needs them */
	close_n(0, h + 5 * B + 18, 3 * B - 18);
	free(h);
	corq_lane_rest(&lane[0]);
	assert_int_equal(fill(2), 2 * B);
	rig_end(&rig);
}

static void
fast_cache_comes_back(void **state)
{
	corq_h *h;

	(void)state;
	rig_start(&rig, 2 * B, 2, (struct corq_lane_config){.order = CORQ_LANE_FAST});
	h = open_n(0, 2 * B);
	close_n(0, h, 2 * B);
	free(h);
	assert_int_equal(rig_count(&rig).open, 0);
	assert_true(lane[0].m->n_fast > 0);
	assert_int_equal(fill(1), 0); /* one block is kept, the other has slots in the cache */
	assert_int_equal(corq_lane_close(&lane[0], 12345), -EBADF);
	assert_int_equal(fill(1), 2 * B);
	rig_end(&rig);
}

/* The owner ends without a word; whoever starves takes its handles and its number is free again. */
static void
a_dead_lane_is_reclaimed(void **state)
{
	corq_h *h, *other;
	uint32_t id;

	(void)state;
	start(8, 3);
	h = open_n(0, 5 * B + 100);
	other = open_n(1, 10);
	close_n(1, h, 50); /* on their way when it dies */
	corq_lane_close_deferred(&lane[0], h[50]);
	id = lane[0].id;
	memset(rig.region[0].near, 0xff, rig.region[0].size);    /* nobody reads it */
	assert_false(corq_lane_reclaim(&rig.h, id, lane[1].id)); /* not dead */
	assert_true(corq_lane_died(&rig.h, id));
	assert_false(corq_lane_died(&rig.h, id));
	assert_int_equal(rig_count(&rig).lanes, 3);
	assert_int_equal(fill(2), 7 * B);
	assert_int_equal(rig_count(&rig).lanes, 2);
	assert_false(corq_lane_reclaim(&rig.h, id, lane[1].id));
	for (uint32_t i = 0; i < 5 * B + 100; i++)
		assert_int_equal(corq_lane_close(&lane[1], h[i]), -EBADF);
	close_n(2, other, 10); /* lane 1's are what they were */
	rig_attach(&rig, 0, (struct corq_lane_config){0});
	assert_int_equal(lane[0].id, id);
	assert_int_equal(fill(0), 0);
	assert_int_equal(fill(1), B);
	assert_int_equal(rig_count(&rig).open, 8 * B);
	free(h);
	free(other);
	rig_end(&rig);
}

/* Lane `by` closed one of lane 0's, of its first block, and nothing says so; of another the slot's
 * word was raised and no more. */
static void
lose_two_frees(uint32_t by, corq_h closed, corq_h half)
{
	assert_int_equal(corq_lane_close(&lane[by], closed), 0);
	corq_store_relaxed_u64(&lane[0].line->mail, 0);
	corq_store_relaxed_u64(&lane[0].line->map[0], 0);
	corq_store_relaxed_u64(&rig.h.remote[0].some, 0);
	corq_store_relaxed_u64(&rig.h.slot[corq_h_slot(half)].word, 2ull << CORQ_H_SLOT_BITS);
}

/* A thread that died between two steps of a free, of a fold, of a reclaim. */
static void
dying_half_way(void **state)
{
	corq_h *h, *g;

	(void)state;
	start(3, 3);
	h = open_n(0, 2 * B);
	g = open_n(2, B);
	lose_two_frees(2, h[7], h[900]);
	/* it was at work in lane 1, which rests, and had begun to reclaim a fourth */
	corq_lane_rest(&lane[1]);
	corq_store_relaxed_u32(&lane[1].line->state,
		(lane[2].id + 1) << CORQ_LANE_STATE_BITS | CORQ_LANE_STEALING);
	assert_true(corq_lane_alloc(&lane[0], 0) == CORQ_H_NONE);
	assert_true(corq_lane_died(&rig.h, lane[2].id));
	assert_int_equal(fill(0), B + 2); /* its block, and the two that it lost */
	assert_int_equal(corq_load_relaxed_u32(&lane[1].line->state), CORQ_LANE_REST);
	assert_int_equal(fill(1), 0);
	assert_int_equal(corq_lane_close(&lane[1], g[0]), -EBADF);
	free(h);
	free(g);
	rig_end(&rig);
}

/* A lane at its limit finds them too. */
static void
dying_half_way_at_a_limit(void **state)
{
	corq_h *h;

	(void)state;
	rig_start(&rig, 2 * B, 2, (struct corq_lane_config){.limit = 100});
	h = open_n(0, 100);
	lose_two_frees(1, h[7], h[90]);
	assert_true(corq_lane_alloc(&lane[0], 0) == CORQ_H_NONE);
	assert_true(corq_lane_died(&rig.h, lane[1].id));
	assert_true(corq_lane_reclaim(&rig.h, lane[1].id, lane[0].id));
	assert_int_equal(fill(0), 2);
	assert_int_equal(rig_count(&rig).open, 100);
	free(h);
	rig_end(&rig);
}

static void
detach_closes_and_returns(void **state)
{
	corq_h *h, *g;

	(void)state;
	start(4, 2);
	h = open_n(0, 2 * B);
	g = open_n(1, 2 * B);
	close_n(0, g, 10);
	corq_lane_rest(&lane[0]);
	corq_lane_detach(&lane[0]);
	assert_int_equal(rig_count(&rig).lanes, 1);
	assert_int_equal(rig_count(&rig).open, 2 * B - 10);
	for (uint32_t i = 0; i < 2 * B; i++)
		assert_int_equal(corq_lane_close(&lane[1], h[i]), -EBADF);
	assert_int_equal(fill(1), 2 * B + 10);
	rig_attach(&rig, 0, (struct corq_lane_config){0});
	assert_int_equal(fill(0), 0);
	close_n(0, g + 10, 2 * B - 10);
	assert_int_equal(fill(1), 2 * B - 10);
	free(h);
	free(g);
	rig_end(&rig);
}

static void
lane_numbers_run_out(void **state)
{
	struct corq_lane_mem *m;
	struct corq_lane l;

	(void)state;
	start(4, 3);
	m = aligned_alloc(CORQ_CACHELINE, corq_lane_size(4 * B));
	memset(m, 0, corq_lane_size(4 * B));
	assert_int_equal(corq_lane_attach(&l, &rig.h, m, &(struct corq_lane_config){0}), -EUSERS);
	corq_lane_detach(&lane[1]);
	assert_int_equal(corq_lane_attach(&l, &rig.h, m, &(struct corq_lane_config){0}), 0);
	assert_int_equal(l.id, 1);
	free(m);
	rig_end(&rig);
}

/* Each node's lanes fill their own part first, then the others'. */
static void
nodes_have_their_blocks(void **state)
{
	struct corq_handles_part part;

	(void)state;
	rig_start(&rig, 10 * B, 4, (struct corq_lane_config){0});
	for (uint32_t i = 0; i < 4; i++)
		corq_lane_detach(&lane[i]);
	corq_handles_init(&rig.h, rig.global.near, 10 * B, 4, 3);
	assert_int_equal(corq_handles_map(&rig.far, rig.global.far, rig.global.size), 0);
	for (uint32_t node = 0; node < 3; node++) {
		uint32_t first = 10 * node / 3, end = 10 * (node + 1) / 3;

		part = corq_handles_part_of(&rig.h, node);
		assert_ptr_equal(part.slots, &rig.h.slot[first * B]);
		assert_int_equal(part.slots_bytes, (end - first) * B * 16);
		assert_ptr_equal(part.remote, &rig.h.remote[first]);
		rig_attach(&rig, node, (struct corq_lane_config){.node = node});
		for (uint32_t i = first * B; i < end * B - 100; i++)
			assert_int_equal(corq_h_slot(corq_lane_alloc(&lane[node], 0)), i);
	}
	/* node 1 is full: its lane goes on wherever there is room */
	for (uint32_t i = 0; i < 100; i++)
		corq_lane_alloc(&lane[1], 0);
	assert_true(corq_lane_alloc(&lane[1], 0) == CORQ_H_NONE);
	corq_lane_detach(&lane[0]);
	assert_int_equal(corq_h_slot(corq_lane_alloc(&lane[1], 0)), 0);
	rig_end(&rig);
}

/* Whatever stands in lane 0's region, the others' handles stay theirs. */
static void
a_scribbled_region_hurts_its_lane(void **state)
{
	struct corq_rand r;
	corq_h *h, *g;

	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		uint32_t kind = (uint32_t)seed % 3;
		uint64_t *word;

		corq_rand_seed(&r, seed);
		start(12, 3);
		h = open_n(0, 3 * B);
		g = open_n(1, 3 * B);
		close_n(2, h, 100);
		close_n(2, g, 100);
		word = rig.region[0].near;
		for (size_t i = 0; i < rig.region[0].size / 8; i++)
			if (kind == 0)
				word[i] = corq_rand_u64(&r);
			else if (kind == 1)
				word[i] = UINT64_MAX;
			else if (corq_rand_below(&r, 8) == 0)
				word[i] = corq_rand_below(&r, 13) | corq_rand_below(&r, 13) << 32;
		/* it goes on as it can ... */
		for (int i = 0; i < 20000; i++) {
			corq_h x = corq_lane_alloc(&lane[0], 0);

			if (x != CORQ_H_NONE && i % 3)
				assert_int_equal(corq_lane_close(&lane[i % 2 ? 0 : 2], x), 0);
			corq_lane_close(&lane[0], h[corq_rand_below(&r, 3 * B)]);
		}
		corq_lane_rest(&lane[0]);
		/* ... others visit it when they starve ... */
		(void)fill(2);
		for (uint32_t i = 100; i < 3 * B; i++)
			assert_int_equal(corq_handle_lookup(&rig.h, g[i], NULL), 0);
		close_n(2, g + 100, 3 * B - 100);
		assert_true(fill(1) >= 3 * B);
		/* ... and it dies, and is gone. */
		assert_true(corq_lane_died(&rig.h, lane[0].id));
		assert_true(corq_lane_reclaim(&rig.h, lane[0].id, lane[1].id));
		corq_lane_detach(&lane[1]);
		corq_lane_detach(&lane[2]);
		assert_int_equal(rig_count(&rig).open, 0);
		assert_int_equal(rig_count(&rig).blocks_lent, 0);
		rig_attach(&rig, 1, (struct corq_lane_config){0});
		assert_int_equal(fill(1), 12 * B);
		free(h);
		free(g);
		rig_end(&rig);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_by_another_lane),
		cmocka_unit_test(folds_are_put_off),
		cmocka_unit_test(fill_drain_fill),
		cmocka_unit_test(a_starving_lane_asks),
		cmocka_unit_test(a_resting_lane_is_visited),
		cmocka_unit_test(fast_cache_comes_back),
		cmocka_unit_test(a_dead_lane_is_reclaimed),
		cmocka_unit_test(dying_half_way),
		cmocka_unit_test(dying_half_way_at_a_limit),
		cmocka_unit_test(detach_closes_and_returns),
		cmocka_unit_test(lane_numbers_run_out),
		cmocka_unit_test(nodes_have_their_blocks),
		cmocka_unit_test(a_scribbled_region_hurts_its_lane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
