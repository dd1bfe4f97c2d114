/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_handles.c - what a handle costs in one lane, beside floors measured in the same run: (a) a
 * 64-ary tree of bits, (b) the same shared by compare-and-swap, (c) a bare stack.
 *
 * Each contender stands at the same occupancy; then all run in turns, a slice each, so that what
 * disturbs the machine disturbs all. A run's value is the median of its slices. Two loads: pairs of
 * take and put; and `holes`: a random number of the taken ones is put, and one taken.
 */
#include "handle_floor.h"
#include "result.h"

#include "base/cycles.h"
#include "base/handle.h"
#include "base/rand.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	SLICES = 21
};

/* One contender: its state, and the two loads. */
struct contender {
	const char *name;
	void *state;
	void (*fill)(struct contender *c, uint32_t n);
	void (*pairs)(struct contender *c, uint32_t ops);
	void (*holes)(struct contender *c, uint32_t ops);
	uint64_t *taken; /* what is out, any order */
	uint32_t n_taken;
	struct corq_rand rand;
	double slice[SLICES];
};

#define CONTENDER(name, type, take, put)                                                           \
	static void name##_fill(struct contender *c, uint32_t n)                                   \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		while (c->n_taken < n)                                                             \
			c->taken[c->n_taken++] = take;                                             \
	}                                                                                          \
	static void name##_pairs(struct contender *c, uint32_t ops)                                \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		for (uint32_t i = 0; i < ops; i++) {                                               \
			uint64_t x = take;                                                         \
                                                                                                   \
			put;                                                                       \
		}                                                                                  \
	}                                                                                          \
	static void name##_holes(struct contender *c, uint32_t ops)                                \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		for (uint32_t i = 0; i < ops; i++) {                                               \
			uint64_t *at = &c->taken[corq_rand_below(&c->rand, c->n_taken)], x = *at;  \
                                                                                                   \
			put;                                                                       \
			*at = take;                                                                \
		}                                                                                  \
	}

CONTENDER(tree, struct floor_tree, floor_tree_take(s), floor_tree_put(s, (uint32_t)x))
CONTENDER(shared, struct floor_shared, floor_shared_take(s), floor_shared_put(s, (uint32_t)x))
CONTENDER(stack, struct floor_stack, floor_stack_take(s), floor_stack_put(s, (uint32_t)x))
CONTENDER(slot, struct corq_lane, corq_lane_take(s), corq_lane_put(s, (uint32_t)x))
CONTENDER(handle, struct corq_lane, corq_lane_alloc(s, 0), corq_lane_close(s, x))

static uint32_t n_slots = 10000000, ops = 20000;
static unsigned n_runs = 5;

static void *
map(size_t bytes)
{
	void *p = mmap(NULL, bytes + (2u << 20), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("bench_handles: memory");
		exit(1);
	}
	madvise(p, bytes + (2u << 20), MADV_HUGEPAGE);
	return (void *)(((uintptr_t)p + (2u << 20) - 1) & ~(uintptr_t)((2u << 20) - 1));
}

static struct corq_lane *
new_lane(enum corq_lane_order order)
{
	struct corq_handles *h = calloc(1, sizeof(*h));
	struct corq_lane *l = calloc(1, sizeof(*l));

	corq_handles_init(h, map(corq_handles_size(n_slots, 1)), n_slots, 1, 1);
	if (corq_lane_attach(l, h, map(corq_lane_size(n_slots)),
		    &(struct corq_lane_config){.order = order}) != 0)
		abort();
	return l;
}

static double
ns_per_cycle(void)
{
	struct timespec a, b;
	uint64_t c = corq_cycles();

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec < 50000000);
	return (double)((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec) /
	       (double)(corq_cycles() - c);
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

enum {
	TREE,
	SHARED,
	STACK,
	LOWEST,
	LOWEST_HANDLE,
	FAST,
	FAST_HANDLE,
	CONTENDERS
};

static struct contender contender[CONTENDERS] = {
	[TREE] = {"floor_a", NULL, tree_fill, tree_pairs, tree_holes, NULL, 0, {{0}}, {0}},
	[SHARED] = {"floor_b", NULL, shared_fill, shared_pairs, shared_holes, NULL, 0, {{0}}, {0}},
	[STACK] = {"floor_c", NULL, stack_fill, stack_pairs, stack_holes, NULL, 0, {{0}}, {0}},
	[LOWEST] = {"lowest", NULL, slot_fill, slot_pairs, slot_holes, NULL, 0, {{0}}, {0}},
	[LOWEST_HANDLE] = {"lowest.handle", NULL, handle_fill, handle_pairs, handle_holes, NULL, 0,
		{{0}}, {0}},
	[FAST] = {"fast", NULL, slot_fill, slot_pairs, slot_holes, NULL, 0, {{0}}, {0}},
	[FAST_HANDLE] = {"fast.handle", NULL, handle_fill, handle_pairs, handle_holes, NULL, 0,
		{{0}}, {0}},
};

static void
make_contenders(void)
{
	struct floor_tree *tree = malloc(sizeof(*tree));
	struct floor_shared *shared = malloc(sizeof(*shared));
	struct floor_stack *stack = malloc(sizeof(*stack));

	floor_tree_init(tree, n_slots);
	floor_shared_init(shared, n_slots);
	floor_stack_init(stack, n_slots);
	contender[TREE].state = tree;
	contender[SHARED].state = shared;
	contender[STACK].state = stack;
	for (int i = LOWEST; i < CONTENDERS; i++)
		contender[i].state = new_lane(i < FAST ? CORQ_LANE_LOWEST : CORQ_LANE_FAST);
	for (int i = 0; i < CONTENDERS; i++) {
		contender[i].taken = map(n_slots * sizeof(uint64_t));
		corq_rand_seed(&contender[i].rand, 1);
	}
}

/* A run: slices in turns; nanoseconds a take and put. */
static void
run(struct results *r, const char *load, bool holes, double ns)
{
	double v[CONTENDERS];

	for (int k = 0; k < SLICES; k++)
		for (int i = 0; i < CONTENDERS; i++) {
			struct contender *c = &contender[i];
			uint64_t start;

			(holes ? c->holes : c->pairs)(c, ops / 20); /* into the caches */
			start = corq_cycles();
			(holes ? c->holes : c->pairs)(c, ops);
			c->slice[k] = (double)(corq_cycles() - start) * ns / ops;
		}
	for (int i = 0; i < CONTENDERS; i++) {
		qsort(contender[i].slice, SLICES, sizeof(double), by_value);
		v[i] = contender[i].slice[SLICES / 2];
		result_add(r, "ns", v[i], "%s.%s", load, contender[i].name);
	}
	result_add(r, "x", v[LOWEST] / v[TREE], "%s.lowest_to_floor_a", load);
	result_add(r, "x", v[FAST] / v[STACK], "%s.fast_to_floor_c", load);
	result_add(r, "ns", v[LOWEST_HANDLE] - v[TREE], "%s.lowest.handle_above_floor_a", load);
}

static void
alone(struct results *r)
{
	static const struct {
		const char *name;
		double part;
		bool holes;
	} load[] = {{"empty", 0, false}, {"half", 0.5, false}, {"half_holes", 0.5, true},
		{"99.9", 0.999, false}, {"99.9_holes", 0.999, true}, {"all_but_one", 1, false}};
	double ns = ns_per_cycle();

	make_contenders();
	for (unsigned k = 0; k < sizeof(load) / sizeof(load[0]); k++) {
		for (int i = 0; i < CONTENDERS; i++)
			contender[i].fill(&contender[i],
				load[k].part == 1 ? n_slots - 1
						  : (uint32_t)(load[k].part * n_slots));
		for (unsigned i = 0; i < n_runs; i++)
			run(r, load[k].name, load[k].holes, ns);
	}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"slots", 1, NULL, 'n'}, {"runs", 1, NULL, 'r'},
		{"ops", 1, NULL, 'o'}, {NULL, 0, NULL, 0}};
	static struct results results;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			n_slots = (uint32_t)result_number("--slots", optarg, 1000, 1u << 24);
		else if (c == 'r')
			n_runs = (unsigned)result_number("--runs", optarg, 1, RESULT_RUNS_MAX);
		else if (c == 'o')
			ops = (uint32_t)result_number("--ops", optarg, 100, 1u << 30);
		else
			return 2;
	}
	alone(&results);
	result_print(&results, "handles");
	return 0;
}
