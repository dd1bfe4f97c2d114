/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_int.h - what the parts of the handle allocator (handle_*.c) share; handle.h has the
 * theory. Functions that take a lane run in its thread, or in a thief's while it rests.
 */
#ifndef CORQ_BASE_HANDLE_INT_H
#define CORQ_BASE_HANDLE_INT_H

#include "base/handle.h"

#define CORQ_SLOT_BUSY (CORQ_SLOT_LIVE | CORQ_SLOT_HELD | CORQ_SLOT_RETIRED)

/* A directory word of lane id's block number k. */
static inline uint32_t
dir_tag(uint32_t id)
{
	return (id + 1) << CORQ_BLOCK_SHIFT;
}

static inline uint32_t
dir_number(uint32_t entry)
{
	return entry & (CORQ_LANE_BLOCKS - 1);
}

static inline bool
dir_is(uint32_t entry, uint32_t tag)
{
	return (entry ^ tag) >> CORQ_BLOCK_SHIFT == 0;
}

static inline uint32_t
slot_block(uint32_t n)
{
	return n >> CORQ_BLOCK_SHIFT;
}

static inline uint32_t
slot_word(uint32_t n)
{
	return n >> CORQ_WORD_SHIFT & (CORQ_WORD_BITS - 1);
}

static inline uint64_t
slot_bit(uint32_t n)
{
	return 1ull << (n & (CORQ_WORD_BITS - 1));
}

/* Where slot n of the lane's block k stands in the lane's order. */
static inline uint32_t
lane_place(uint32_t k, uint32_t n)
{
	return k << CORQ_BLOCK_SHIFT | (n & (CORQ_BLOCK_SLOTS - 1));
}

/* The first word of a block's slots. */
static inline uint64_t *
block_words(const struct corq_lane *l, uint32_t block)
{
	return &l->m->used[block << CORQ_WORD_SHIFT];
}

/* Lowest bit of a word of a map. Of 0, which only a scribbled region has here, the highest: so an
 * index stays inside. */
static CORQ_ALWAYS_INLINE uint32_t
low_bit(uint64_t x)
{
	return (uint32_t)__builtin_ctzll(x | 1ull << (CORQ_WORD_BITS - 1));
}

/* A figure that one thread writes and others read. */
static CORQ_ALWAYS_INLINE void
figure_add(_Atomic uint32_t *p, uint32_t n)
{
	corq_store_relaxed_u32(p, corq_load_relaxed_u32(p) + n);
}

/* Is word that of a live slot of h's generation? */
static inline bool
slot_names(uint64_t word, corq_h h)
{
	return (word & CORQ_SLOT_LIVE) && (word ^ h) >> CORQ_H_SLOT_BITS == 0;
}

/* A slot's word after the life that `gone` names (its handle, or its word then); flags: more of it.
 * A slot whose generations are spent is freed like any other, and the lane that is led to it next
 * finds it retired. */
static CORQ_ALWAYS_INLINE uint64_t
slot_word_after(uint64_t gone, uint64_t flags)
{
	uint64_t gen = gone >> CORQ_H_SLOT_BITS;

	if (CORQ_UNLIKELY(gen == CORQ_H_GEN_LAST))
		return gen << CORQ_H_SLOT_BITS | CORQ_SLOT_RETIRED;
	return (gen + 1) << CORQ_H_SLOT_BITS | flags;
}

/* handle_region.c: takes a block that nobody has, looking from block `from` on; or CORQ_NONE.
 * entry: what the directory holds for it from now on. */
uint32_t corq_block_grab(struct corq_handles *h, uint32_t from, uint32_t entry);
void corq_block_drop(struct corq_handles *h, uint32_t block);

/* handle_lane.c: moves all but `keep` cached slots of order `fast` to the maps. */
void corq_lane_flush(struct corq_lane *l, uint32_t keep);

/* handle_remote.c. corq_lane_block_of: the directory's number of the lane's block k, or CORQ_NONE
 * when the directory knows nothing of it (a scribbled region). */
uint32_t corq_lane_block_of(const struct corq_lane *l, uint32_t k);
void corq_remote_free(struct corq_handles *h, uint32_t n);
void corq_lane_drain_block(struct corq_lane *l, uint32_t k, uint64_t words);
void corq_lane_fold(struct corq_lane *l, uint32_t max_blocks);
#define CORQ_FOLD_ALL (2 * CORQ_LANE_BLOCKS)

/* handle_lend.c */
void corq_lane_return_empty(struct corq_lane *l, uint32_t keep);
void corq_lane_trim_slow(struct corq_lane *l);
bool corq_lane_find_room(struct corq_lane *l);
void corq_lane_news_slow(struct corq_lane *l);
/* Audits if threads died since the lane looked last: what they took with them is found so. */
void corq_lane_heed_deaths(struct corq_lane *l);

/* Anything that the lane has to look at before it goes on? Frees can wait, wishes not. */
static CORQ_ALWAYS_INLINE bool
lane_has_news(struct corq_lane *l)
{
	if (CORQ_LIKELY(corq_load_relaxed_u64(&l->line->mail) == 0))
		return false;
	if (l->put_off == 0 || corq_load_relaxed_u32(&l->line->wanted) != 0)
		return true;
	l->put_off--;
	return false;
}

/* Before any slow work in the lane's region. */
static inline void
lane_begin(struct corq_lane *l)
{
	if (corq_load_relaxed_u64(&l->line->mail) != 0 || l->order == CORQ_LANE_RESTING)
		corq_lane_news_slow(l);
}

/* Block k has a slot left. */
static CORQ_ALWAYS_INLINE void
mark_room(struct corq_lane_mem *m, uint32_t k)
{
	m->room[k >> CORQ_WORD_SHIFT] |= 1ull << (k & (CORQ_WORD_BITS - 1));
	m->top |= 1ull << (k >> CORQ_WORD_SHIFT);
}

static inline void
mark_no_room(struct corq_lane_mem *m, uint32_t k)
{
	uint32_t v = k >> CORQ_WORD_SHIFT;

	m->room[v] &= ~(1ull << (k & (CORQ_WORD_BITS - 1)));
	if (m->room[v] == 0)
		m->top &= ~(1ull << v);
}

/* A word of used became 0: perhaps its block is empty. */
static CORQ_ALWAYS_INLINE void
word_emptied(struct corq_lane *l)
{
	if (CORQ_UNLIKELY(--l->m->patience == 0))
		corq_lane_trim_slow(l);
}

#endif
