/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_handle.c - one lane: lowest first against a model, order fast, stale and double closes,
 * full, retirement, blocks that go back, lazy memory.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "handle_rig.h"

static struct rig rig;

/* One lane over n_slots slots, all of which it may have. */
static struct corq_lane *
setup(uint32_t n_slots, enum corq_lane_order order)
{
	rig_start(&rig, n_slots, 1, (struct corq_lane_config){.order = order, .owner = 5});
	return &rig.lane[0];
}

static void
sizes_and_limits(void **state)
{
	(void)state;
	assert_int_equal(corq_handles_size(0, 1), 0);
	assert_int_equal(corq_handles_size(1, 0), 0);
	assert_int_equal(corq_handles_size(1, CORQ_LANES_MAX + 1), 0);
	assert_int_equal(corq_handles_size((1u << 26) + 1, 8), 0);
	/* the price of a handle, besides its lane's bit: 16 bytes of slot and a little */
	assert_true(corq_handles_size(1u << 26, 4) >= 16ull << 26);
	assert_true(corq_handles_size(1u << 26, 4) <= (16ull << 26) + (600ull << 14));
	assert_true(corq_lane_size(1u << 26) <= (1ull << 23) + (1ull << 17)); /* sparse */
}

static void
a_view_checks_what_it_maps(void **state)
{
	struct corq_handles_head *head;
	struct corq_handles v;

	(void)state;
	setup(5000, CORQ_LANE_LOWEST);
	head = rig.global.near;
	assert_int_equal(corq_handles_map(&v, head, rig.global.size), 0);
	assert_int_equal(v.n_blocks, 2);
	assert_int_equal(corq_handles_map(&v, head, rig.global.size - 1), -EINVAL);
	assert_int_equal(corq_handles_map(&v, head, 8), -EINVAL);
	head->n_slots = 1u << 26; /* more than is mapped */
	assert_int_equal(corq_handles_map(&v, head, rig.global.size), -EINVAL);
	head->n_slots = 0;
	assert_int_equal(corq_handles_map(&v, head, rig.global.size), -EINVAL);
	head->n_slots = 5000;
	head->version++;
	assert_int_equal(corq_handles_map(&v, head, rig.global.size), -EINVAL);
	head->version--;
	head->magic++;
	assert_int_equal(corq_handles_map(&v, head, rig.global.size), -EINVAL);
	rig_end(&rig);
}

static void
a_handle_lives_and_dies_once(void **state)
{
	struct corq_lane *l = setup(10, CORQ_LANE_LOWEST);
	uint32_t conn = 0;
	corq_h a, b;

	(void)state;
	a = corq_lane_alloc(l, 1234);
	assert_true(a != CORQ_H_NONE);
	assert_int_equal(corq_h_slot(a), 0);
	assert_int_equal(corq_h_gen(a), 1);
	assert_int_equal(corq_handle_lookup(&rig.h, a, &conn), 0);
	assert_int_equal(conn, 1234);
	assert_int_equal(corq_load_relaxed_u64(&rig.h.slot[0].word) >> CORQ_SLOT_OWNER_BIT &
				 CORQ_SLOT_OWNER_MASK,
		5);
	assert_int_equal(corq_lane_close(l, a), 0);
	assert_int_equal(corq_lane_close(l, a), -EBADF);
	assert_int_equal(corq_handle_lookup(&rig.h, a, &conn), -EBADF);
	/* The generation to come is not live before it is handed out. */
	assert_int_equal(corq_handle_lookup(&rig.h, a + (1ull << CORQ_H_SLOT_BITS), NULL), -EBADF);
	assert_int_equal(corq_lane_close(l, a + (1ull << CORQ_H_SLOT_BITS)), -EBADF);
	b = corq_lane_alloc(l, 99);
	assert_int_equal(corq_h_slot(b), 0);
	assert_int_equal(corq_h_gen(b), 2);
	assert_int_equal(corq_handle_lookup(&rig.h, a, &conn), -EBADF);
	assert_int_equal(corq_lane_close(l, a), -EBADF);
	assert_int_equal(corq_handle_lookup(&rig.h, b, &conn), 0);
	assert_int_equal(conn, 99);
	rig_end(&rig);
}

static void
no_handle_at_all(void **state)
{
	static const corq_h bad[] = {CORQ_H_NONE, 1, UINT64_MAX, 1ull << 26 | 9, 1ull << 26 | 4095,
		1ull << 26 | 4096, 1ull << 26 | ((1u << 26) - 1), 5};
	struct corq_lane *l = setup(10, CORQ_LANE_LOWEST);

	(void)state;
	corq_lane_alloc(l, 0);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(bad); i++) {
		assert_int_equal(corq_handle_lookup(&rig.h, bad[i], NULL), -EBADF);
		assert_int_equal(corq_lane_close(l, bad[i]), -EBADF);
		assert_int_equal(corq_lane_close_deferred(l, bad[i]), -EBADF);
	}
	assert_int_equal(corq_lane_used(l), 1);
	rig_end(&rig);
}

/* Per slot number: its live handle, and all that a model needs to tell the lowest free one. */
struct model {
	corq_h *live, *stale;
	uint8_t *later;   /* closed, and held until the turn's end */
	uint32_t n, low;  /* everything below low is taken */
	uint32_t n_taken; /* live or held */
};

static void
model_open(struct model *m, struct corq_lane *l, uint32_t step)
{
	uint32_t conn, slot;
	corq_h h = corq_lane_alloc(l, step);

	assert_true((h == CORQ_H_NONE) == (m->n_taken == m->n));
	if (h == CORQ_H_NONE)
		return;
	slot = corq_h_slot(h);
	if (l->order == CORQ_LANE_LOWEST) {
		while (m->live[m->low] || m->later[m->low])
			m->low++;
		assert_int_equal(slot, m->low);
	}
	assert_true(slot < m->n && m->live[slot] == 0 && !m->later[slot]);
	assert_true(corq_h_gen(h) == corq_h_gen(m->stale[slot]) + 1);
	m->live[slot] = h;
	m->n_taken++;
	assert_int_equal(corq_handle_lookup(&rig.h, h, &conn), 0);
	assert_int_equal(conn, step);
}

static void
model_close(struct model *m, struct corq_lane *l, uint32_t i, bool deferred)
{
	if (m->live[i]) {
		if (deferred)
			assert_int_equal(corq_lane_close_deferred(l, m->live[i]), 0);
		else
			assert_int_equal(corq_lane_close(l, m->live[i]), 0);
		m->later[i] = deferred;
		m->n_taken -= !deferred;
		m->low = deferred ? m->low : CORQ_MIN(m->low, i);
		m->stale[i] = m->live[i];
		m->live[i] = 0;
	} else if (m->stale[i]) {
		assert_int_equal(corq_lane_close(l, m->stale[i]), -EBADF);
		assert_int_equal(corq_lane_close_deferred(l, m->stale[i]), -EBADF);
		assert_int_equal(corq_handle_lookup(&rig.h, m->stale[i], NULL), -EBADF);
	}
}

static void
model_turn_end(struct model *m, struct corq_lane *l)
{
	corq_lane_turn_end(l);
	for (uint32_t k = 0; k < m->n; k++)
		if (m->later[k]) {
			m->later[k] = 0;
			m->low = CORQ_MIN(m->low, k);
			m->n_taken--;
		}
}

static void
random_use_against_a_model(uint32_t n, enum corq_lane_order order, uint64_t seed)
{
	struct model m = {.live = calloc(n, sizeof(corq_h)),
		.stale = calloc(n, sizeof(corq_h)),
		.later = calloc(n, 1),
		.n = n};
	struct corq_lane *l = setup(n, order);
	struct corq_rand r;

	print_message("n %u order %d seed %llu\n", n, order, (unsigned long long)seed);
	corq_rand_seed(&r, seed);
	for (uint32_t step = 0; step < 12 * n + 1000; step++) {
		uint32_t i = (uint32_t)corq_rand_below(&r, n);
		/* First it fills, then it empties, then both. */
		uint32_t take = step < 5 * n ? 90 : step < 7 * n ? 20 : 55;

		if (corq_rand_below(&r, 100) < take)
			model_open(&m, l, step);
		else
			model_close(&m, l, i, corq_rand_below(&r, 3) == 0);
		if (corq_rand_below(&r, 50) == 0)
			model_turn_end(&m, l);
		if (corq_rand_below(&r, n) == 0)
			corq_lane_audit(l); /* finds nothing to change, at any time */
		assert_int_equal(corq_lane_used(l), m.n_taken);
	}
	free(m.live);
	free(m.stale);
	free(m.later);
	rig_end(&rig);
}

static void
lowest_against_a_model(void **state)
{
	static const uint32_t n[] = {1, 63, 64, 65, 4095, 4096, 4097, 9000};

	(void)state;
	for (uint32_t i = 0; i < CORQ_ARRAY_LEN(n); i++)
		random_use_against_a_model(n[i], CORQ_LANE_LOWEST, i + 1);
}

static void
fast_against_a_model(void **state)
{
	static const uint32_t n[] = {1, 2, 63, 64, 65, 127, 128, 129, 4097, 9000};

	(void)state;
	for (uint32_t i = 0; i < CORQ_ARRAY_LEN(n); i++)
		random_use_against_a_model(n[i], CORQ_LANE_FAST, i + 100);
}

/* More than 64 blocks, so that all four levels are used; all taken, some freed, lowest first. */
static void
four_levels(void **state)
{
	const uint32_t n = 70 * 4096;
	uint32_t freed[] = {n - 1, 64 * 4096, 64 * 4096 - 1, 4096, 4095, 64, 63, 0};
	struct corq_lane *l = setup(n, CORQ_LANE_LOWEST);
	corq_h *h = malloc(n * sizeof(*h));

	(void)state;
	for (uint32_t i = 0; i < n; i++) {
		h[i] = corq_lane_alloc(l, i);
		assert_int_equal(corq_h_slot(h[i]), i);
	}
	assert_true(corq_lane_alloc(l, 0) == CORQ_H_NONE);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(freed); i++)
		assert_int_equal(corq_lane_close(l, h[freed[i]]), 0);
	for (size_t i = CORQ_ARRAY_LEN(freed); i-- > 0;)
		assert_int_equal(corq_h_slot(corq_lane_alloc(l, 0)), freed[i]);
	assert_true(corq_lane_alloc(l, 0) == CORQ_H_NONE);
	assert_int_equal(rig_count(&rig).emfile, 2);
	assert_int_equal(rig_count(&rig).starved, 0);
	free(h);
	rig_end(&rig);
}

/* All that one lane can have, 2^24, and all of a region of 2^26, in four lanes. */
static void
all_there_is(void **state)
{
	(void)state;
	rig_start(&rig, 1u << 26, 4, (struct corq_lane_config){0});
	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t n = 0; n < 1u << 24; n++)
			if (corq_lane_take(&rig.lane[i]) >= 1u << 26)
				fail_msg("lane %u is full at %u", i, n);
		assert_int_equal(corq_lane_take(&rig.lane[i]), CORQ_NONE);
	}
	assert_int_equal(rig_count(&rig).blocks_lent, 1u << 14);
	rig_end(&rig);
}

static void
limit_of_a_lane(void **state)
{
	corq_h h[100];

	(void)state;
	for (int order = CORQ_LANE_LOWEST; order <= CORQ_LANE_FAST; order++) {
		rig_start(&rig, 1000, 1, (struct corq_lane_config){.limit = 100, .order = order});
		for (int i = 0; i < 100; i++)
			assert_true((h[i] = corq_lane_alloc(rig.lane, 0)) != CORQ_H_NONE);
		assert_true(corq_lane_alloc(rig.lane, 0) == CORQ_H_NONE);
		assert_int_equal(corq_lane_close(rig.lane, h[50]), 0);
		assert_int_equal(corq_h_slot(corq_lane_alloc(rig.lane, 0)), corq_h_slot(h[50]));
		assert_true(corq_lane_alloc(rig.lane, 0) == CORQ_H_NONE);
		assert_int_equal(rig_count(&rig).open, 100);
		assert_int_equal(rig_count(&rig).emfile, 2);
		rig_end(&rig);
	}
}

/* The last generation works; after it the slot rests for ever. */
static void
spent_slot_is_retired(void **state)
{
	corq_h h;

	(void)state;
	for (int way = 0; way < 4; way++) {
		struct corq_lane *l = setup(2, way & 2 ? CORQ_LANE_FAST : CORQ_LANE_LOWEST);

		corq_store_relaxed_u64(
			&rig.h.slot[0].word, (CORQ_H_GEN_LAST - 1) << CORQ_H_SLOT_BITS);
		h = corq_lane_alloc(l, 0);
		assert_true(corq_h_gen(h) == CORQ_H_GEN_LAST - 1);
		assert_int_equal(corq_lane_close(l, h), 0);
		h = corq_lane_alloc(l, 0);
		assert_true(corq_h_gen(h) == CORQ_H_GEN_LAST && corq_h_slot(h) == 0);
		assert_int_equal(rig_count(&rig).retired, 0);
		if (way & 1)
			assert_int_equal(corq_lane_close_deferred(l, h), 0);
		else
			assert_int_equal(corq_lane_close(l, h), 0);
		corq_lane_turn_end(l);
		assert_int_equal(rig_count(&rig).retired, 1);
		assert_int_equal(rig_count(&rig).capacity, 1);
		assert_int_equal(corq_lane_close(l, h), -EBADF);
		assert_int_equal(corq_handle_lookup(&rig.h, h, NULL), -EBADF);
		h = corq_lane_alloc(l, 0);
		assert_int_equal(corq_h_slot(h), 1);
		assert_true(corq_lane_alloc(l, 0) == CORQ_H_NONE);
		assert_int_equal(corq_lane_used(l), 1);
		/* ... in whatever lane its block comes to */
		assert_int_equal(corq_lane_close(l, h), 0);
		corq_lane_detach(l);
		rig_attach(&rig, 0, (struct corq_lane_config){0});
		assert_int_equal(corq_h_slot(corq_lane_alloc(l, 0)), 1);
		assert_true(corq_lane_alloc(l, 0) == CORQ_H_NONE);
		assert_int_equal(rig_count(&rig).open, 1);
		rig_end(&rig);
	}
}

/* Empty blocks go back, but for a few; a lane at a block's edge does not fetch and return it. */
static void
empty_blocks_go_back(void **state)
{
	const uint32_t n = 100 * 4096;
	struct corq_lane *l = setup(n, CORQ_LANE_LOWEST);
	corq_h *h = malloc(n * sizeof(*h));

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		h[i] = corq_lane_alloc(l, 0);
	assert_int_equal(rig_count(&rig).blocks_lent, 100);
	for (uint32_t i = n; i-- > n / 2;)
		corq_lane_close(l, h[i]);
	/* 50 are in use; it looks after 32 and an eighth, and keeps 1 and a sixteenth */
	assert_in_range(rig_count(&rig).blocks_lent, 51, 80);
	for (uint32_t i = n / 2; i-- > 0;)
		corq_lane_close(l, h[i]);
	assert_in_range(rig_count(&rig).blocks_lent, 1, 45);
	corq_lane_rest(l); /* before it sleeps it looks again */
	assert_in_range(rig_count(&rig).blocks_lent, 1, 2);
	for (int i = 0; i < 4096; i++)
		corq_lane_alloc(l, 0);
	for (int i = 0; i < 100; i++) {
		corq_h edge = corq_lane_alloc(l, 0);

		assert_int_equal(rig_count(&rig).blocks_lent, 2);
		assert_int_equal(corq_lane_close(l, edge), 0);
		assert_int_equal(rig_count(&rig).blocks_lent, 2);
	}
	free(h);
	rig_end(&rig);
}

static size_t
pages_in(const struct rig_mem *m)
{
	size_t pages = (m->size + 4095) / 4096, n = 0;
	unsigned char *in = malloc(pages);

	assert_int_equal(mincore(m->near, m->size, in), 0);
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	free(in);
	return n;
}

static void
unused_memory_stays_untouched(void **state)
{
	struct corq_lane *l = setup(1u << 26, CORQ_LANE_LOWEST);

	(void)state;
	for (int i = 0; i < 100; i++)
		corq_lane_alloc(l, 0);
	assert_true(pages_in(&rig.global) <= 7); /* head, directory, taken, line, remote, slots */
	assert_true(pages_in(&rig.region[0]) <= 3);
	rig_end(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_limits),
		cmocka_unit_test(a_view_checks_what_it_maps),
		cmocka_unit_test(a_handle_lives_and_dies_once),
		cmocka_unit_test(no_handle_at_all),
		cmocka_unit_test(lowest_against_a_model),
		cmocka_unit_test(fast_against_a_model),
		cmocka_unit_test(four_levels),
		cmocka_unit_test(all_there_is),
		cmocka_unit_test(limit_of_a_lane),
		cmocka_unit_test(spent_slot_is_retired),
		cmocka_unit_test(empty_blocks_go_back),
		cmocka_unit_test(unused_memory_stays_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
