/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_floor.h - the least that an allocator of small numbers can cost, for bench_handles: floors
 * of which none does what handles need (no lanes, no generations, no free by another thread).
 */
#ifndef PERF_HANDLE_FLOOR_H
#define PERF_HANDLE_FLOOR_H

#include <stdatomic.h>
#include <stdint.h>

#define FLOOR_LEVELS 4 /* 64^4 numbers */

/* (a) a 64-ary tree of bits, lowest first, one thread. A set bit: taken; above, all below taken. */
struct floor_tree {
	uint64_t *level[FLOOR_LEVELS]; /* 0: one word */
};
void floor_tree_init(struct floor_tree *t, uint32_t n);
uint32_t floor_tree_take(struct floor_tree *t);
void floor_tree_put(struct floor_tree *t, uint32_t n);

/* (b) the same, shared: compare-and-swap on the words; a level above is a hint. */
struct floor_shared {
	_Atomic uint64_t *level[FLOOR_LEVELS];
};
void floor_shared_init(struct floor_shared *t, uint32_t n);
uint32_t floor_shared_take(struct floor_shared *t);
void floor_shared_put(struct floor_shared *t, uint32_t n);

/* (c) a stack of numbers, one thread. */
struct floor_stack {
	uint32_t *number;
	uint32_t top;
};
void floor_stack_init(struct floor_stack *s, uint32_t n);
uint32_t floor_stack_take(struct floor_stack *s);
void floor_stack_put(struct floor_stack *s, uint32_t n);

#endif
