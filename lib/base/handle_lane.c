/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_lane.c - opening and closing handles in a lane: the hot part. handle.h has the theory.
 *
 * The lane's thread. Invariants between calls:
 *   - full, room and top follow from used (a bit each for "no zero bit", "has a slot left");
 *   - left is the limit less the slots taken; a cached slot (order fast) counts as taken;
 *   - a slot closed and held back is not live, but its bit is still 1.
 */
#include "base/handle_int.h"

#include <errno.h>

/* ---- slot numbers ---- */

static CORQ_NOINLINE void
word_full_slow(struct corq_lane_mem *m, uint32_t k, uint32_t w)
{
	m->sum[k].full |= 1ull << w;
	if (m->sum[k].full == CORQ_WORD_ALL)
		mark_no_room(m, k);
}

/* The lane's lowest free slot. There is one: left and top are not 0. */
static CORQ_ALWAYS_INLINE uint32_t
take_lowest(struct corq_lane *l)
{
	struct corq_lane_mem *m = l->m;
	uint32_t v = low_bit(m->top), k = v << CORQ_WORD_SHIFT | low_bit(m->room[v]);
	struct corq_block_sum *s = &m->sum[k];
	uint32_t w = low_bit(~s->full), b = low_bit(~m->used[k][w]);
	uint64_t now = m->used[k][w] | 1ull << b;

	m->used[k][w] = now;
	m->n_empty -= s->n++ == 0;
	figure_add(&l->line->left, UINT32_MAX);
	if (CORQ_UNLIKELY(now == CORQ_WORD_ALL))
		word_full_slow(m, k, w);
	return (s->block - 1) << CORQ_BLOCK_SHIFT | w << CORQ_WORD_SHIFT | b;
}

static CORQ_ALWAYS_INLINE bool
has_room(const struct corq_lane *l)
{
	return CORQ_LIKELY(corq_load_relaxed_u32(&l->line->left) != 0 && l->m->top != 0);
}

/* The cache is empty: half of it is filled, so that the lowest slot leaves it first. */
static CORQ_NOINLINE uint32_t
take_fast_slow(struct corq_lane *l)
{
	uint32_t n = 0, want = CORQ_FAST_SLOTS / 2, first;

	if (!has_room(l) && !corq_lane_find_room(l))
		return CORQ_NONE;
	corq_store_relaxed_u32(&l->line->n_fast, 0);
	first = take_lowest(l);
	while (n < want && has_room(l))
		l->m->fast[want - 1 - n++] = take_lowest(l);
	for (uint32_t i = 0; i < n && n < want; i++)
		l->m->fast[i] = l->m->fast[want - n + i];
	corq_store_relaxed_u32(&l->line->n_fast, n);
	return first;
}

static CORQ_ALWAYS_INLINE uint32_t
take(struct corq_lane *l)
{
	uint32_t n;

	if (l->order == CORQ_LANE_LOWEST) {
		if (!has_room(l) && !corq_lane_find_room(l))
			return CORQ_NONE;
		return take_lowest(l);
	}
	n = corq_load_relaxed_u32(&l->line->n_fast) - 1;
	if (CORQ_UNLIKELY(n >= CORQ_FAST_SLOTS))
		return take_fast_slow(l);
	corq_store_relaxed_u32(&l->line->n_fast, n);
	return l->m->fast[n];
}

/* Slot n, of one of the lane's blocks, is free again. */
static CORQ_ALWAYS_INLINE void
put_bit(struct corq_lane *l, uint32_t n, uint32_t entry)
{
	struct corq_lane_mem *m = l->m;
	uint32_t k = dir_number(entry), w = slot_word(n);
	struct corq_block_sum *s = &m->sum[k];
	uint64_t used = m->used[k][w];

	if (CORQ_UNLIKELY(!(used & slot_bit(n))))
		return; /* it was freed by the stray bit of a lane that died */
	m->used[k][w] = used & ~slot_bit(n);
	s->full &= ~(1ull << w);
	mark_room(m, k);
	figure_add(&l->line->left, 1);
	if (CORQ_UNLIKELY(--s->n == 0))
		lane_emptied(l, k);
}

void
corq_lane_flush(struct corq_lane *l, uint32_t keep)
{
	uint32_t n = CORQ_MIN(corq_load_relaxed_u32(&l->line->n_fast), CORQ_FAST_SLOTS), i = 0;

	if (n <= keep)
		return;
	while (i < n - keep) { /* the oldest go */
		uint32_t slot = l->m->fast[i++], entry = 0;

		if (slot < l->h->n_slots)
			entry = corq_load_relaxed_u32(&l->dir[slot_block(slot)]);
		if (dir_is(entry, l->tag))
			put_bit(l, slot, entry);
	}
	for (i = 0; i < keep; i++)
		l->m->fast[i] = l->m->fast[n - keep + i];
	corq_store_relaxed_u32(&l->line->n_fast, keep);
}

static CORQ_NOINLINE void
flush_half_slow(struct corq_lane *l)
{
	corq_lane_flush(l, CORQ_FAST_SLOTS / 2);
}

static CORQ_ALWAYS_INLINE void
put(struct corq_lane *l, uint32_t n, uint32_t entry)
{
	uint32_t at;

	if (l->order == CORQ_LANE_LOWEST) {
		put_bit(l, n, entry);
		return;
	}
	at = corq_load_relaxed_u32(&l->line->n_fast);
	if (CORQ_UNLIKELY(at >= CORQ_FAST_SLOTS)) {
		flush_half_slow(l);
		at = corq_load_relaxed_u32(&l->line->n_fast);
	}
	l->m->fast[at] = n;
	corq_store_relaxed_u32(&l->line->n_fast, at + 1);
}

uint32_t
corq_lane_take(struct corq_lane *l)
{
	lane_poll(l);
	return take(l);
}

void
corq_lane_put(struct corq_lane *l, uint32_t slot)
{
	put(l, slot, corq_load_relaxed_u32(&l->dir[slot_block(slot)]));
}

/* ---- handles ---- */

/* May the lane open slot n? No when it is not free, or not in the lane's blocks. */
static CORQ_ALWAYS_INLINE bool
is_free(const struct corq_lane *l, uint32_t n, uint64_t word)
{
	return CORQ_LIKELY(!(word & CORQ_SLOT_BUSY) &&
			   dir_is(corq_load_relaxed_u32(&l->dir[slot_block(n)]), l->tag));
}

/* A hint led to slot n, which cannot be had. A retired one stays marked, and counts no more. */
static CORQ_NOINLINE void
skip_slot_slow(struct corq_lane *l, uint32_t n, uint64_t word)
{
	uint32_t entry = corq_load_relaxed_u32(&l->dir[slot_block(n)]);
	struct corq_block_sum *s = &l->m->sum[dir_number(entry)];

	if (!(word & CORQ_SLOT_RETIRED) || !dir_is(entry, l->tag))
		return;
	figure_add(&l->line->left, 1);
	if (--s->n == 0)
		lane_emptied(l, dir_number(entry));
}

corq_h
corq_lane_alloc(struct corq_lane *l, uint32_t conn)
{
	struct corq_slot *slot;
	uint64_t word, gen;
	uint32_t n;

	lane_poll(l);
	for (;;) {
		n = take(l);
		if (CORQ_UNLIKELY(n >= l->h->n_slots))
			return CORQ_H_NONE;
		slot = &l->slot[n];
		word = corq_load_relaxed_u64(&slot->word);
		if (is_free(l, n, word))
			break;
		skip_slot_slow(l, n, word);
	}
	gen = word >> CORQ_H_SLOT_BITS;
	gen += gen == 0; /* memory never used before */
	corq_store_relaxed_u32(&slot->ready, 0);
	corq_store_relaxed_u32(&slot->conn, conn);
	corq_store_release_u64(&slot->word, /* R1 */
		gen << CORQ_H_SLOT_BITS | (uint64_t)l->owner << CORQ_SLOT_OWNER_BIT |
			CORQ_SLOT_LIVE);
	return gen << CORQ_H_SLOT_BITS | n;
}

/*
 * Ends the life of handle h: true for one caller, whose business it is to free the slot. flags:
 * more of the slot's new word. A slot whose generations are spent is freed like any other; the lane
 * that is led to it next finds it retired.
 */
static CORQ_ALWAYS_INLINE bool
end_generation(const struct corq_lane *l, corq_h h, uint64_t flags)
{
	_Atomic uint64_t *word = &l->slot[corq_h_slot(h)].word;
	uint64_t seen = corq_load_acquire_u64(word), next;

	if (CORQ_LIKELY(corq_h_gen(h) != CORQ_H_GEN_LAST))
		next = (corq_h_gen(h) + 1) << CORQ_H_SLOT_BITS | flags;
	else
		next = CORQ_H_GEN_LAST << CORQ_H_SLOT_BITS | CORQ_SLOT_RETIRED;
	do {
		if (!slot_names(seen, h))
			return false;
	} while (!corq_cas_acqrel_u64(word, &seen, next));
	if (CORQ_UNLIKELY(next & CORQ_SLOT_RETIRED))
		corq_rmw_add_relaxed_u32(&l->h->head->n_retired, 1);
	return true;
}

int
corq_lane_close(struct corq_lane *l, corq_h h)
{
	uint32_t n = corq_h_slot(h), entry;

	lane_poll(l);
	if (CORQ_UNLIKELY(n >= l->h->n_slots || !end_generation(l, h, 0)))
		return -EBADF;
	/* The block cannot move: the slot is still marked as taken. */
	entry = corq_load_relaxed_u32(&l->dir[slot_block(n)]);
	if (CORQ_LIKELY(dir_is(entry, l->tag)))
		put(l, n, entry);
	else
		corq_remote_free(l->h, n);
	return 0;
}

int
corq_lane_close_deferred(struct corq_lane *l, corq_h h)
{
	uint32_t n = corq_h_slot(h);

	if (n >= l->h->n_slots || !dir_is(corq_load_relaxed_u32(&l->dir[slot_block(n)]), l->tag) ||
		!end_generation(l, h, CORQ_SLOT_HELD))
		return -EBADF;
	corq_store_relaxed_u32(&l->slot[n].conn, l->held);
	l->held = n;
	figure_add(&l->line->n_held, 1);
	return 0;
}

void
corq_lane_turn_end(struct corq_lane *l)
{
	uint32_t n = l->held;

	lane_poll(l);
	l->held = CORQ_NONE;
	while (n != CORQ_NONE) {
		struct corq_slot *slot = &l->slot[n];
		uint32_t next = corq_load_relaxed_u32(&slot->conn);

		corq_store_relaxed_u64(
			&slot->word, corq_load_relaxed_u64(&slot->word) & ~CORQ_SLOT_HELD);
		figure_add(&l->line->n_held, UINT32_MAX);
		put(l, n, corq_load_relaxed_u32(&l->dir[slot_block(n)]));
		n = next;
	}
}
