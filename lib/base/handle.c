/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle.c - allocation, close and look-up of handles; handle.h has the theory. The corq_lane_*
 * functions run in the lane's thread, corq_handle_lookup in the same for now.
 *
 * Invariants of a lane between calls:
 *   - used[w] bit b is 0 exactly if the slot is free to be handed out;
 *   - full, room and top follow from used (a bit each for "no zero bit", "has a slot left");
 *   - a slot closed and deferred is not live, but its bit is still 1.
 */
#include "base/handle.h"

#include <errno.h>
#include <string.h>

#define DIR_SHIFT   12 /* CORQ_LANE_BLOCKS is 1 << 12 */
#define BLOCK_SHIFT 12 /* CORQ_BLOCK_SLOTS is 1 << 12 */

static uint32_t
lane_slots(uint32_t n_slots, uint32_t n_lanes, uint32_t id)
{
	return n_slots / n_lanes + (id < n_slots % n_lanes);
}

static uint32_t
blocks_for(uint32_t n_slots)
{
	return n_slots / CORQ_BLOCK_SLOTS + (n_slots % CORQ_BLOCK_SLOTS != 0);
}

/* Blocks of the lanes before id: so, with id == n_lanes, of all. */
static uint32_t
first_block(uint32_t n_slots, uint32_t n_lanes, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < id; i++)
		n += blocks_for(lane_slots(n_slots, n_lanes, i));
	return n;
}

static size_t
line_up(size_t bytes)
{
	return (bytes + CORQ_CACHELINE - 1) / CORQ_CACHELINE * CORQ_CACHELINE;
}

size_t
corq_handles_size(uint32_t n_slots, uint32_t n_lanes)
{
	size_t n;

	if (n_slots == 0 || n_slots > 1u << CORQ_H_SLOT_BITS || n_lanes == 0 ||
		n_lanes > CORQ_LANES_MAX)
		return 0;
	if (blocks_for(lane_slots(n_slots, n_lanes, 0)) > CORQ_LANE_BLOCKS)
		return 0;
	n = first_block(n_slots, n_lanes, n_lanes);
	if (n * CORQ_BLOCK_SLOTS > 1u << CORQ_H_SLOT_BITS)
		return 0;
	return n * CORQ_BLOCK_SLOTS * sizeof(struct corq_slot) + n * sizeof(struct corq_block) +
	       line_up(n * sizeof(uint32_t));
}

void
corq_handles_init(struct corq_handles *h, void *mem, uint32_t n_slots, uint32_t n_lanes)
{
	uint32_t b = 0;

	CORQ_ASSERT(corq_handles_size(n_slots, n_lanes) != 0);
	CORQ_ASSERT((uintptr_t)mem % CORQ_CACHELINE == 0);
	h->n_slots = n_slots;
	h->n_lanes = n_lanes;
	h->n_blocks = first_block(n_slots, n_lanes, n_lanes);
	h->slot = mem;
	h->block = (void *)(h->slot + (size_t)h->n_blocks * CORQ_BLOCK_SLOTS);
	h->dir = (void *)(h->block + h->n_blocks);
	for (uint32_t lane = 0; lane < n_lanes; lane++) {
		uint32_t n = blocks_for(lane_slots(n_slots, n_lanes, lane));

		for (uint32_t k = 0; k < n; k++)
			h->dir[b++] = lane << DIR_SHIFT | k;
	}
}

/* A last block that the lane's part does not fill: slots from n on are taken for good. */
static void
cut_block(struct corq_block *b, uint32_t n)
{
	for (uint32_t w = n / 64; w < 64; w++) {
		b->used[w] = w == n / 64 ? ~0ull << n % 64 : ~0ull;
		if (b->used[w] == ~0ull)
			b->full |= 1ull << w;
	}
}

void
corq_lane_init(struct corq_lane *l, const struct corq_handles *h, uint32_t id, uint32_t owner)
{
	uint32_t first, rest;

	CORQ_ASSERT(id < h->n_lanes && owner <= CORQ_SLOT_OWNER_MASK);
	memset(l, 0, offsetof(struct corq_lane, block));
	l->h = h;
	l->id = id;
	l->owner = owner;
	l->defer_head = CORQ_NONE;
	l->n_slots = lane_slots(h->n_slots, h->n_lanes, id);
	l->n_blocks = blocks_for(l->n_slots);
	first = first_block(h->n_slots, h->n_lanes, id);
	for (uint32_t k = 0; k < l->n_blocks; k++) {
		l->block[k] = first + k;
		l->room[k / 64] |= 1ull << k % 64;
		l->top |= 1ull << k / 64;
	}
	rest = l->n_slots % CORQ_BLOCK_SLOTS;
	if (rest != 0)
		cut_block(&h->block[first + l->n_blocks - 1], rest);
}

corq_h
corq_lane_alloc(struct corq_lane *l, uint32_t conn_idx)
{
	uint32_t v, k, w, b, n;
	struct corq_block *block;
	struct corq_slot *slot;
	uint64_t gen;

	if (CORQ_UNLIKELY(l->top == 0))
		return CORQ_H_NONE;
	v = (uint32_t)__builtin_ctzll(l->top);
	k = v * 64 + (uint32_t)__builtin_ctzll(l->room[v]);
	block = &l->h->block[l->block[k]];
	w = (uint32_t)__builtin_ctzll(~block->full);
	b = (uint32_t)__builtin_ctzll(~block->used[w]);

	block->used[w] |= 1ull << b;
	if (block->used[w] == ~0ull) {
		block->full |= 1ull << w;
		if (block->full == ~0ull) {
			l->room[v] &= ~(1ull << k % 64);
			if (l->room[v] == 0)
				l->top &= ~(1ull << v);
		}
	}
	l->n_used++;

	n = l->block[k] << BLOCK_SHIFT | w << 6 | b;
	slot = &l->h->slot[n];
	gen = corq_load_relaxed_u64(&slot->word) >> CORQ_H_SLOT_BITS;
	gen += gen == 0; /* memory never used before */
	corq_store_relaxed_u32(&slot->ready, 0);
	corq_store_relaxed_u32(&slot->conn, conn_idx);
	corq_store_release_u64(&slot->word, /* R1 */
		gen << CORQ_H_SLOT_BITS | (uint64_t)l->owner << CORQ_SLOT_OWNER_BIT |
			CORQ_SLOT_LIVE);
	return gen << CORQ_H_SLOT_BITS | n;
}

/* Is word that of a live slot of h's generation? */
static inline bool
names(uint64_t word, corq_h h)
{
	return (word & CORQ_SLOT_LIVE) && (word ^ h) >> CORQ_H_SLOT_BITS == 0;
}

/* Gives slot n, no longer live, back to the lane's bitmaps. */
static void
give_back(struct corq_lane *l, uint32_t n)
{
	struct corq_block *block = &l->h->block[n >> BLOCK_SHIFT];
	uint32_t k = l->h->dir[n >> BLOCK_SHIFT] & (CORQ_LANE_BLOCKS - 1);
	uint32_t w = n >> 6 & 63;

	CORQ_ASSERT_SLOW(block->used[w] >> (n & 63) & 1);
	block->used[w] &= ~(1ull << (n & 63));
	block->full &= ~(1ull << w);
	l->room[k / 64] |= 1ull << k % 64;
	l->top |= 1ull << k / 64;
	l->n_used--;
}

/*
 * Ends the life of handle h. 0: its slot, still marked as taken, is the caller's to give back; 1:
 * the slot's generations are spent, it stays taken for good; or -EBADF.
 */
static int
end_generation(struct corq_lane *l, corq_h h)
{
	uint64_t gen = corq_h_gen(h), next = gen == CORQ_H_GEN_LAST ? gen : gen + 1, seen;
	uint32_t n = corq_h_slot(h);
	_Atomic uint64_t *word;

	if (n >> BLOCK_SHIFT >= l->h->n_blocks || l->h->dir[n >> BLOCK_SHIFT] >> DIR_SHIFT != l->id)
		return -EBADF;
	word = &l->h->slot[n].word;
	seen = corq_load_acquire_u64(word);
	if (!names(seen, h) || !corq_cas_acqrel_u64(word, &seen, next << CORQ_H_SLOT_BITS))
		return -EBADF;
	if (CORQ_LIKELY(next != gen))
		return 0;
	l->n_used--;
	l->n_retired++;
	return 1;
}

int
corq_lane_close(struct corq_lane *l, corq_h h)
{
	int rc = end_generation(l, h);

	if (rc == 0)
		give_back(l, corq_h_slot(h));
	return rc < 0 ? rc : 0;
}

int
corq_lane_close_deferred(struct corq_lane *l, corq_h h)
{
	int rc = end_generation(l, h);

	if (rc == 0) {
		corq_store_relaxed_u32(&l->h->slot[corq_h_slot(h)].conn, l->defer_head);
		l->defer_head = corq_h_slot(h);
	}
	return rc < 0 ? rc : 0;
}

void
corq_lane_turn_end(struct corq_lane *l)
{
	uint32_t n = l->defer_head;

	l->defer_head = CORQ_NONE;
	while (n != CORQ_NONE) {
		uint32_t next = corq_load_relaxed_u32(&l->h->slot[n].conn);

		give_back(l, n);
		n = next;
	}
}

int
corq_handle_lookup(const struct corq_handles *h, corq_h handle, uint32_t *conn_idx)
{
	uint32_t n = corq_h_slot(handle);
	uint64_t word;

	if (n >> BLOCK_SHIFT >= h->n_blocks)
		return -EBADF;
	word = corq_load_acquire_u64(&h->slot[n].word); /* A1 <-> R1 */
	if (!names(word, handle))
		return -EBADF;
	if (conn_idx)
		*conn_idx = corq_load_relaxed_u32(&h->slot[n].conn);
	return 0;
}
