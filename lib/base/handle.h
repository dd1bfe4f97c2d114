/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle.h - handles: 64-bit names that cannot be mistaken for a later object's.
 *
 * A handle is a generation (38 bits) above a slot number (26 bits). Slots stand in blocks of 4096,
 * blocks belong to lanes, and a lane belongs to one thread, which allocates from it with plain
 * loads and stores.
 *
 * Which word is truth: the slot's. It holds the present generation, whether the slot is live and
 * the owner core; it changes by one compare-and-swap at close, so of any number of closers exactly
 * one wins, and the winner frees. Everything else only says where to look:
 *   block  used[w] bit b: slot is taken (or retired); `full` bit w: used[w] has no zero bit
 *   lane   room[v] bit k: block v * 64 + k of the lane has a slot left; `top` bit v: room[v] != 0
 * Allocation is a count of trailing zeros at each of the four: the lowest free slot of the lane,
 * with "lowest" by the lane's own numbering of its blocks.
 *
 * Ordering: alloc writes the slot's members, then releases the word (R1); look-up acquires the
 * word (A1 <-> R1) and finds the members of that generation or newer ones. A thread that is not the
 * lane's can see the members of a newer generation when the handle is closed under its hands;
 * today each handle is used by its lane's thread only.
 *
 * Memory that is never used is never written: a zeroed slot is free at generation 1, a zeroed block
 * is empty, so the caller's memory must read as zero at init.
 *
 * Limits: 2^26 slots, 4096 blocks a lane, CORQ_LANES_MAX lanes. A slot whose generation is spent is
 * retired for good and counted. A lane closes its own handles only.
 */
#ifndef CORQ_BASE_HANDLE_H
#define CORQ_BASE_HANDLE_H

#include "base/atomic.h"

#include <corq/types.h>

#define CORQ_H_SLOT_BITS 26
#define CORQ_H_GEN_BITS  38
#define CORQ_H_GEN_LAST  ((1ull << CORQ_H_GEN_BITS) - 1)
#define CORQ_BLOCK_SLOTS 4096u
#define CORQ_LANE_BLOCKS 4096u
#define CORQ_LANES_MAX   1024u

/* slot.word: generation in the bits where a handle has it, owner core in bits 1..16, live bit 0. */
#define CORQ_SLOT_LIVE       1ull
#define CORQ_SLOT_OWNER_BIT  1
#define CORQ_SLOT_OWNER_MASK 0xffffu

struct corq_slot {
	_Atomic uint64_t word;
	_Atomic uint32_t ready; /* readiness bits of the object */
	_Atomic uint32_t
		conn; /* its index on the owner core; while closed and deferred: the link */
};

_Static_assert(sizeof(struct corq_slot) == 16, "four slots a line");

/* Written by the lane's thread only. */
struct corq_block {
	uint64_t used[64];
	uint64_t full;
} CORQ_ALIGNED_LINE;

/* One process's view of the memory that all lanes share. */
struct corq_handles {
	struct corq_slot *slot;
	struct corq_block *block;
	uint32_t *dir; /* a block: lane << 12 | number within the lane; constant after init */
	uint32_t n_blocks;
	uint32_t n_slots; /* that can be allocated */
	uint32_t n_lanes;
};

struct corq_lane {
	const struct corq_handles *h;
	uint64_t top;
	uint32_t id;
	uint32_t owner;   /* core that slots of this lane name */
	uint32_t n_slots; /* this lane may have out */
	uint32_t n_used;  /* live, or closed and deferred */
	uint32_t n_retired;
	uint32_t n_blocks;
	uint32_t defer_head; /* slots closed in this turn */
	uint64_t room[64];
	uint32_t block[CORQ_LANE_BLOCKS]; /* number within the lane -> number in the directory */
};

/*
 * Bytes for n_slots slots shared by n_lanes lanes; each lane gets an equal part (the first ones one
 * more when it does not divide), in blocks of its own. 0 when n_slots or n_lanes is 0 or above the
 * limits.
 */
size_t corq_handles_size(uint32_t n_slots, uint32_t n_lanes);

/* mem: corq_handles_size() bytes that read as zero, aligned to a cache line. */
void corq_handles_init(struct corq_handles *h, void *mem, uint32_t n_slots, uint32_t n_lanes);

/* Lane number id < n_lanes, once each, before its thread runs. owner: the core it belongs to. */
void corq_lane_init(struct corq_lane *l, const struct corq_handles *h, uint32_t id, uint32_t owner);

/* The lowest free slot of the lane, live, naming conn_idx. CORQ_H_NONE: full (EMFILE). */
corq_h corq_lane_alloc(struct corq_lane *l, uint32_t conn_idx);

/* 0, or -EBADF: closed before, never opened, no handle at all, or another lane's. */
int corq_lane_close(struct corq_lane *l, corq_h h);

/* The same, but the slot is handed out again only after corq_lane_turn_end(). */
int corq_lane_close_deferred(struct corq_lane *l, corq_h h);
void corq_lane_turn_end(struct corq_lane *l);

/* 0 and the connection index (conn_idx may be NULL), or -EBADF. */
int corq_handle_lookup(const struct corq_handles *h, corq_h handle, uint32_t *conn_idx);

static inline uint32_t
corq_h_slot(corq_h h)
{
	return (uint32_t)h & ((1u << CORQ_H_SLOT_BITS) - 1);
}

static inline uint64_t
corq_h_gen(corq_h h)
{
	return h >> CORQ_H_SLOT_BITS;
}

#endif
