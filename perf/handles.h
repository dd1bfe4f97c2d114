/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handles.h - what the parts of bench_handles share: contenders, which all take and put numbers,
 * and the means to time them. One thread, but where it says otherwise.
 */
#ifndef PERF_HANDLES_H
#define PERF_HANDLES_H

#include "result.h"

#include "base/cycles.h"
#include "base/handle.h"
#include "base/rand.h"

#define HANDLES_SLICES 21 /* of a run, whose value is their median */

/* One contender: its state, and the loads that it can run. */
struct contender {
	const char *name;
	void *state;
	void (*fill)(struct contender *c, uint32_t n); /* takes until n are out */
	void (*drop)(struct contender *c, uint32_t n); /* puts random ones until n are out */
	void (*pairs)(struct contender *c, uint32_t ops);
	void (*holes)(struct contender *c, uint32_t ops);
	uint32_t slots, ops; /* how many it has; how many pairs make a slice */
	uint64_t *taken;     /* what is out, any order */
	uint32_t n_taken;
	struct corq_rand rand;
	double slice[HANDLES_SLICES];
};

/* The four functions of a contender. `s`: its state, of this type; take gives a number, put has it
 * in x. holes: a random one of those that are out is put, then one is taken. */
#define CONTENDER(name, type, take, put)                                                           \
	static void name##_fill(struct contender *c, uint32_t n)                                   \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		(void)s;                                                                           \
		while (c->n_taken < n)                                                             \
			c->taken[c->n_taken++] = take;                                             \
	}                                                                                          \
	static void name##_drop(struct contender *c, uint32_t n)                                   \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		(void)s;                                                                           \
		while (c->n_taken > n) {                                                           \
			uint64_t *at = &c->taken[corq_rand_below(&c->rand, c->n_taken)], x = *at;  \
                                                                                                   \
			put;                                                                       \
			*at = c->taken[--c->n_taken];                                              \
		}                                                                                  \
	}                                                                                          \
	static void name##_pairs(struct contender *c, uint32_t ops)                                \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		(void)s;                                                                           \
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
		(void)s;                                                                           \
		for (uint32_t i = 0; i < ops; i++) {                                               \
			uint64_t *at = &c->taken[corq_rand_below(&c->rand, c->n_taken)], x = *at;  \
                                                                                                   \
			put;                                                                       \
			*at = take;                                                                \
		}                                                                                  \
	}
#define CONTENDER_CALLS(n)                                                                         \
	.fill = n##_fill, .drop = n##_drop, .pairs = n##_pairs, .holes = n##_holes

struct handles_bench {
	uint32_t slots, ops;
	unsigned runs;
	int cpu[2]; /* the first two that we may use */
	unsigned n_cpus;
	double ns; /* of a TSC cycle */
	struct results results;
};

/* The parts. Each adds its measurements, and the peers that they have. */
void handles_alone(struct handles_bench *b);
void handles_threads(struct handles_bench *b);
void handles_cross(struct handles_bench *b);

/* Memory that reads as zero, on huge pages where there are any; never freed. Or the program ends.
 */
void *handles_map(size_t bytes);
/* A region of its own with one lane over all of it. */
struct corq_lane *handles_new_lane(uint32_t slots, enum corq_lane_order order);
/* Another lane of a region. */
struct corq_lane *handles_add_lane(struct corq_handles *h, enum corq_lane_order order);
/* The calling thread runs on this CPU from now on. */
void handles_pin(int cpu);

#endif
