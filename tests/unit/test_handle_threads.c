/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_handle_threads.c - handles under four threads, with an oracle (run this one under
 * ThreadSanitizer).
 *
 * The oracle knows per slot the last generation that anybody opened: a slot handed out twice shows
 * as a generation that does not rise. Handles travel between threads through boxes, and copies of
 * them through others, so that two threads close the same one: one of them must be told 0.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "handle_rig.h"

#include <sched.h>

enum {
	THREADS = 4,
	BLOCKS = 5,
	SLOTS = BLOCKS * 4096,
	BOXES = 20000,
};

static struct rig rig;

static struct {
	_Atomic uint64_t gen[SLOTS];
	_Atomic uint64_t box[BOXES], copy[BOXES];
	_Atomic uint64_t opened, closed, refused;
	bool chaos; /* lanes end and die */
} world;

struct worker {
	uint32_t id;
	uint64_t seed;
	uint32_t steps;
	uint32_t bad;
};

static void
open_one(struct worker *w, struct corq_rand *r)
{
	corq_h h = corq_lane_alloc(&rig.lane[w->id], w->id), old;
	uint32_t at = (uint32_t)corq_rand_below(r, BOXES);

	if (h == CORQ_H_NONE) {
		corq_rmw_add_relaxed_u64(&world.refused, 1);
		return;
	}
	corq_rmw_add_relaxed_u64(&world.opened, 1);
	w->bad += corq_xchg_acqrel_u64(&world.gen[corq_h_slot(h)], corq_h_gen(h)) >= corq_h_gen(h);
	w->bad += corq_h_slot(h) >= SLOTS;
	corq_xchg_acqrel_u64(&world.copy[at], h);
	old = corq_xchg_acqrel_u64(&world.box[at], h);
	if (old != CORQ_H_NONE && corq_lane_close(&rig.lane[w->id], old) == 0)
		corq_rmw_add_relaxed_u64(&world.closed, 1);
}

/* From a box, or a copy that another thread may close at the same time. */
static void
close_one(struct worker *w, struct corq_rand *r, _Atomic uint64_t *box)
{
	corq_h h = corq_xchg_acqrel_u64(&box[corq_rand_below(r, BOXES)], CORQ_H_NONE);
	int rc;

	if (h == CORQ_H_NONE)
		return;
	rc = corq_lane_close(&rig.lane[w->id], h);
	w->bad += rc != 0 && rc != -EBADF;
	w->bad += corq_lane_close(&rig.lane[w->id], h) != -EBADF;
	if (rc == 0)
		corq_rmw_add_relaxed_u64(&world.closed, 1);
}

/* The lane ends, in order or not, and another begins. Nobody else looks into a dead lane's region.
 */
static void
begin_again(struct worker *w, struct corq_rand *r)
{
	struct corq_lane *l = &rig.lane[w->id];
	struct corq_lane_config c = {.order = l->order_awake};

	if (corq_rand_below(r, 2)) {
		corq_lane_detach(l);
	} else {
		corq_lane_wake(l); /* no thief is there */
		w->bad += !corq_lane_died(l->h, l->id);
		corq_lane_reclaim(l->h, l->id, l->id); /* or another lane does */
	}
	memset(rig.region[w->id].near, 0, rig.region[w->id].size);
	while (corq_lane_attach(l, &rig.h, rig.region[w->id].near, &c) != 0)
		sched_yield(); /* not reclaimed yet */
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct corq_rand r;

	corq_rand_seed(&r, w->seed);
	for (uint32_t i = 0; i < w->steps; i++) {
		uint32_t phase = i / 3000 % 4, what = (uint32_t)corq_rand_below(&r, 100);

		if (what < (phase == 0 ? 90u : phase == 1 ? 20u : 55u))
			open_one(w, &r);
		else if (what < 95)
			close_one(w, &r, what & 1 ? world.box : world.copy);
		else if (what < 99 || !world.chaos)
			corq_lane_rest(&rig.lane[w->id]);
		else if (corq_rand_below(&r, 100) == 0)
			begin_again(w, &r);
	}
	corq_lane_rest(&rig.lane[w->id]);
	return NULL;
}

/* Lane 0 can have all slots when the others rest: nothing is lost, nothing stranded. */
static void
all_can_be_had(void)
{
	struct corq_handles_counts c;
	uint32_t n = 0;

	for (uint32_t i = 1; i < THREADS; i++)
		corq_lane_rest(&rig.lane[i]);
	while (corq_lane_alloc(&rig.lane[0], 0) != CORQ_H_NONE)
		n++;
	assert_int_equal(n, SLOTS);
	c = rig_count(&rig);
	assert_int_equal(c.open, SLOTS);
	assert_int_equal(c.stranded + c.pending, 0);
}

static void
close_the_rest(void)
{
	_Atomic uint64_t *box[] = {world.box, world.copy};

	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < BOXES; i++)
			if (corq_lane_close(&rig.lane[i % THREADS], box[k][i]) == 0)
				corq_rmw_add_relaxed_u64(&world.closed, 1);
}

static void
run(uint32_t steps, enum corq_lane_order order, uint64_t seed, bool chaos)
{
	struct worker w[THREADS];
	pthread_t thread[THREADS];
	uint64_t opened, closed;

	memset(&world, 0, sizeof(world));
	world.chaos = chaos;
	rig_start(&rig, SLOTS, THREADS, (struct corq_lane_config){.order = order});
	for (uint32_t i = 0; i < THREADS; i++) {
		if (chaos && i % 2) { /* lanes change their numbers: all in one view */
			corq_lane_detach(&rig.lane[i]);
			rig_unmap(&rig.region[i]);
			rig.region[i] = rig_map(corq_lane_size(SLOTS));
			assert_int_equal(corq_lane_attach(&rig.lane[i], &rig.h, rig.region[i].near,
						 &(struct corq_lane_config){.order = order}),
				0);
		}
		w[i] = (struct worker){.id = i, .seed = seed + i, .steps = steps};
	}
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].bad, 0);
	}
	close_the_rest();
	opened = corq_load_relaxed_u64(&world.opened);
	closed = corq_load_relaxed_u64(&world.closed);
	print_message("seed %llu order %d%s: %llu opened, %llu closed, %llu refused\n",
		(unsigned long long)seed, order, chaos ? ", lanes end" : "",
		(unsigned long long)opened, (unsigned long long)closed,
		(unsigned long long)corq_load_relaxed_u64(&world.refused));
	if (!chaos)
		assert_int_equal(opened, closed);
	assert_true(opened >= closed && closed > 0);
	assert_int_equal(rig_count(&rig).open, 0);
	all_can_be_had();
	rig_end(&rig);
}

static uint32_t
steps(void)
{
	return getenv("CORQ_LONG") ? 5000000 : 60000;
}

static void
any_thread_closes(void **state)
{
	(void)state;
	run(steps(), CORQ_LANE_LOWEST, 1, false);
	run(steps(), CORQ_LANE_FAST, 11, false);
}

static void
lanes_come_and_go(void **state)
{
	(void)state;
	run(steps(), CORQ_LANE_LOWEST, 21, true);
	run(steps(), CORQ_LANE_FAST, 31, true);
}

/* Two threads close each handle: of each pair one is told 0. */
struct pair {
	corq_h *h;
	uint32_t n, lane, won;
	_Atomic uint32_t *at; /* both have come so far */
};

static void *
close_all(void *arg)
{
	struct pair *p = arg;

	for (uint32_t i = 0; i < p->n; i++) {
		corq_rmw_add_seqcst_u32(p->at, 1);
		for (int spin = 0; spin < 200 && corq_load_acquire_u32(p->at) < 2 * i + 2; spin++)
			corq_spin();
		p->won += corq_lane_close(&rig.lane[p->lane], p->h[i]) == 0;
	}
	return NULL;
}

static void
one_of_two_closers_wins(void **state)
{
	enum {
		N = 20000
	};
	_Atomic uint32_t at = 0;
	struct pair p[2];
	pthread_t thread[2];
	corq_h *h = malloc(N * sizeof(*h));

	(void)state;
	rig_start(&rig, SLOTS, 3, (struct corq_lane_config){0});
	for (uint32_t i = 0; i < N; i++)
		h[i] = corq_lane_alloc(&rig.lane[0], 0);
	for (uint32_t i = 0; i < 2; i++) {
		p[i] = (struct pair){.h = h, .n = N, .lane = i + 1, .at = &at};
		assert_int_equal(pthread_create(&thread[i], NULL, close_all, &p[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(p[0].won + p[1].won, N);
	print_message("%u won, %u lost\n", p[0].won, p[1].won);
	assert_int_equal(rig_count(&rig).open, 0);
	free(h);
	rig_end(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_thread_closes),
		cmocka_unit_test(lanes_come_and_go),
		cmocka_unit_test(one_of_two_closers_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
