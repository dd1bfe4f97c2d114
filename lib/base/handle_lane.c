/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_lane.c - opening and closing handles in a lane: the hot part. handle.h has the theory.
 *
 * The lane's thread. Invariants between calls:
 *   - full, room and top follow from used (a bit each for "no zero bit", "has a slot left");
 *   - a slot in the cache is marked as taken;
 *   - order `lowest`: the slot in the cache is lower than all that the maps have free, and so is
 *     `edge` at most; `below` is the cached slot's place, or without one `edge`;
 *   - a slot closed and held back is not live, but its bit is still 1.
 */
#include "base/handle_int.h"

#include <errno.h>

/* ---- slot numbers: fast parts, without a call in them, and their slow ends ---- */

/* The word of slot n, in block k, has no free slot left. Returns n. */
static CORQ_NOINLINE uint32_t
word_is_full(struct corq_lane_mem *m, uint32_t k, uint32_t n)
{
	m->sum[k].full |= 1ull << slot_word(n);
	if (m->sum[k].full == CORQ_WORD_ALL)
		mark_no_room(m, k);
	return n;
}

/* The word of slot n had none, and has one again. */
static CORQ_NOINLINE void
word_has_room(struct corq_lane *l, uint32_t n)
{
	uint32_t k = dir_number(corq_load_relaxed_u32(&l->dir[slot_block(n)]));

	mark_room(l->m, k);
	l->m->sum[k].full &= ~(1ull << slot_word(n));
}

/* The lowest slot that is free in the maps, or CORQ_NONE. */
static CORQ_ALWAYS_INLINE uint32_t
try_maps(struct corq_lane *l)
{
	struct corq_lane_mem *m = l->m;
	uint64_t top = m->top, used;
	struct corq_block_sum *s;
	uint32_t v, k, w, b, n;

	if (CORQ_UNLIKELY(top == 0))
		return CORQ_NONE;
	v = (uint32_t)__builtin_ctzll(top);
	k = v << CORQ_WORD_SHIFT | low_bit(m->room[v]);
	s = &m->sum[k];
	w = low_bit(~s->full);
	n = s->first + w;
	if (CORQ_UNLIKELY(n >= l->n_words))
		return CORQ_NONE; /* a scribbled region */
	used = m->used[n];
	b = low_bit(~used);
	used |= 1ull << b;
	m->used[n] = used;
	n = n << CORQ_WORD_SHIFT | b;
	m->edge = m->below = lane_place(k, n) + 1;
	return CORQ_UNLIKELY(used == CORQ_WORD_ALL) ? word_is_full(m, k, n) : n;
}

/* A slot of the cache, or CORQ_NONE. */
static CORQ_ALWAYS_INLINE uint32_t
try_cache(struct corq_lane *l)
{
	uint32_t n = l->m->n_fast - 1;

	if (CORQ_UNLIKELY(n >= CORQ_FAST_SLOTS))
		return CORQ_NONE;
	l->m->n_fast = n;
	return l->m->fast[n];
}

/* The lane's lowest free slot, or CORQ_NONE. */
static CORQ_ALWAYS_INLINE uint32_t
try_lowest(struct corq_lane *l)
{
	struct corq_lane_mem *m = l->m;

	if (m->n_fast == 0)
		return try_maps(l);
	m->n_fast = 0;
	m->below = m->edge;
	return m->fast[0];
}

static CORQ_ALWAYS_INLINE uint32_t
try_take(struct corq_lane *l)
{
	if (l->order == CORQ_LANE_LOWEST)
		return try_lowest(l);
	return CORQ_LIKELY(l->order == CORQ_LANE_FAST) ? try_cache(l) : CORQ_NONE;
}

/* The cache is empty: half of it is filled, so that the lowest slot leaves it first. */
static void
fill_cache(struct corq_lane *l)
{
	uint32_t n = 0, want = CORQ_FAST_SLOTS / 2, slot;

	while (n < want && (slot = try_maps(l)) != CORQ_NONE)
		l->m->fast[want - 1 - n++] = slot;
	for (uint32_t i = 0; i < n && n < want; i++)
		l->m->fast[i] = l->m->fast[want - n + i];
	l->m->n_fast = n;
}

static CORQ_NOINLINE uint32_t
take_slow(struct corq_lane *l)
{
	uint32_t n;

	lane_begin(l);
	n = try_take(l);
	if (n != CORQ_NONE)
		return n;
	n = try_maps(l); /* order fast, and the cache is empty */
	if (n == CORQ_NONE && corq_lane_find_room(l))
		n = try_maps(l);
	if (l->order == CORQ_LANE_FAST)
		fill_cache(l);
	return n;
}

/* A late bit freed a slot that was not free, and was counted; now the slot is met. */
static CORQ_NOINLINE void
uncount_stray(struct corq_lane *l)
{
	figure_add(&l->line->left, UINT32_MAX);
}

/* Slot n, of one of the lane's blocks, is free again. */
static CORQ_ALWAYS_INLINE void
put_bit(struct corq_lane *l, uint32_t n)
{
	uint64_t *word = &l->m->used[n >> CORQ_WORD_SHIFT], used = *word;

	if (CORQ_UNLIKELY(!(used & slot_bit(n)))) {
		uncount_stray(l);
		return;
	}
	*word = used & ~slot_bit(n);
	if (CORQ_UNLIKELY(used == CORQ_WORD_ALL))
		word_has_room(l, n);
	else if (CORQ_UNLIKELY(used == slot_bit(n)))
		word_emptied(l);
}

void
corq_lane_flush(struct corq_lane *l, uint32_t keep)
{
	uint32_t n = CORQ_MIN(l->m->n_fast, CORQ_FAST_SLOTS), i = 0;

	l->m->edge = l->m->below = 0;
	if (n <= keep)
		return;
	while (i < n - keep) { /* the oldest go */
		uint32_t slot = l->m->fast[i++], entry = 0;

		if (slot < l->h->n_slots)
			entry = corq_load_relaxed_u32(&l->dir[slot_block(slot)]);
		if (dir_is(entry, l->tag))
			put_bit(l, slot);
	}
	for (i = 0; i < keep; i++)
		l->m->fast[i] = l->m->fast[n - keep + i];
	l->m->n_fast = keep;
}

/* The cached slot goes to the maps: a lower one comes. */
static CORQ_NOINLINE void
give_way(struct corq_lane *l)
{
	uint32_t edge = l->m->below;

	corq_lane_flush(l, 0);
	l->m->edge = edge;
}

/* Slot n, of the lane's block k, goes to the cache if it is the lowest that is free, and else to
 * the maps. */
static CORQ_ALWAYS_INLINE void
put_lowest(struct corq_lane *l, uint32_t n, uint32_t k)
{
	struct corq_lane_mem *m = l->m;
	uint32_t place = lane_place(k, n);

	if (place >= m->below) {
		m->edge = CORQ_MIN(m->edge, place);
		put_bit(l, n);
		return;
	}
	if (m->n_fast != 0)
		give_way(l);
	m->fast[0] = n;
	m->n_fast = 1;
	m->below = place;
}

/* The cache is full: half of it goes. Or the lane rests. */
static CORQ_NOINLINE void
put_slow(struct corq_lane *l, uint32_t n, uint32_t k)
{
	lane_begin(l);
	if (l->order == CORQ_LANE_LOWEST) {
		put_lowest(l, n, k);
		return;
	}
	corq_lane_flush(l, CORQ_FAST_SLOTS / 2);
	l->m->fast[l->m->n_fast++] = n;
}

/* Slot n, of the lane's block k, is free again. */
static CORQ_ALWAYS_INLINE void
put(struct corq_lane *l, uint32_t n, uint32_t k)
{
	uint32_t at;

	if (l->order == CORQ_LANE_LOWEST) {
		put_lowest(l, n, k);
		return;
	}
	at = l->m->n_fast;
	if (CORQ_UNLIKELY(at >= CORQ_FAST_SLOTS || l->order != CORQ_LANE_FAST)) {
		put_slow(l, n, k);
		return;
	}
	l->m->fast[at] = n;
	l->m->n_fast = at + 1;
}

uint32_t
corq_lane_take(struct corq_lane *l)
{
	uint32_t n;

	if (CORQ_UNLIKELY(lane_has_news(l)) || CORQ_UNLIKELY((n = try_take(l)) == CORQ_NONE))
		return take_slow(l);
	return n;
}

void
corq_lane_put(struct corq_lane *l, uint32_t slot)
{
	put(l, slot, dir_number(corq_load_relaxed_u32(&l->dir[slot_block(slot)])));
}

/* ---- handles ---- */

/* May the lane open slot n? No when it is not free, or not in the lane's blocks. */
static CORQ_ALWAYS_INLINE bool
is_free(const struct corq_lane *l, uint32_t n, uint64_t word)
{
	return CORQ_LIKELY(!(word & CORQ_SLOT_BUSY) &&
			   dir_is(corq_load_relaxed_u32(&l->dir[slot_block(n)]), l->tag));
}

/* Slot n, whose word is `word`, becomes live. */
static CORQ_ALWAYS_INLINE corq_h
open_slot(struct corq_lane *l, uint32_t n, uint64_t word, uint32_t conn)
{
	struct corq_slot *slot = &l->slot[n];
	uint64_t gen = word >> CORQ_H_SLOT_BITS;

	gen += gen == 0; /* memory never used before */
	figure_add(&l->line->left, UINT32_MAX);
	corq_store_relaxed_u32(&slot->ready, 0);
	corq_store_relaxed_u32(&slot->conn, conn);
	corq_store_release_u64(&slot->word, /* R1 */
		gen << CORQ_H_SLOT_BITS | (uint64_t)l->owner << CORQ_SLOT_OWNER_BIT |
			CORQ_SLOT_LIVE);
	return gen << CORQ_H_SLOT_BITS | n;
}

/* A hint led to slot n, which cannot be had, and is marked as taken again. */
static void
skip_slot(struct corq_lane *l, uint32_t n, uint64_t word)
{
	uint32_t entry = corq_load_relaxed_u32(&l->dir[slot_block(n)]);

	if (!dir_is(entry, l->tag))
		return;
	if (word & CORQ_SLOT_RETIRED)
		l->m->sum[dir_number(entry)].spoilt = 1;
	else
		uncount_stray(l);
}

static corq_h
refuse(struct corq_lane *l)
{
	corq_store_relaxed_u64(&l->line->n_emfile, corq_load_relaxed_u64(&l->line->n_emfile) + 1);
	return CORQ_H_NONE;
}

/* Within its limit? Then what others closed counts, if need be. */
static bool
may_open(struct corq_lane *l)
{
	lane_begin(l);
	if (corq_load_relaxed_u32(&l->line->left) == 0)
		corq_lane_fold(l, CORQ_FOLD_ALL);
	if (corq_load_relaxed_u32(&l->line->left) == 0)
		corq_lane_heed_deaths(l);
	return corq_load_relaxed_u32(&l->line->left) != 0;
}

/* n: a slot that was taken, or CORQ_NONE. */
static CORQ_NOINLINE corq_h
alloc_slow(struct corq_lane *l, uint32_t n, uint32_t conn)
{
	uint64_t word;

	for (;; n = CORQ_NONE) {
		if (n == CORQ_NONE && may_open(l))
			n = take_slow(l);
		if (n >= l->h->n_slots)
			return refuse(l);
		word = corq_load_relaxed_u64(&l->slot[n].word);
		if (is_free(l, n, word))
			return open_slot(l, n, word, conn);
		skip_slot(l, n, word);
	}
}

corq_h
corq_lane_alloc(struct corq_lane *l, uint32_t conn)
{
	uint64_t word;
	uint32_t n;

	if (CORQ_UNLIKELY(lane_has_news(l) || corq_load_relaxed_u32(&l->line->left) == 0))
		return alloc_slow(l, CORQ_NONE, conn);
	n = try_take(l);
	if (CORQ_UNLIKELY(n >= l->h->n_slots))
		return alloc_slow(l, CORQ_NONE, conn);
	word = corq_load_relaxed_u64(&l->slot[n].word);
	if (CORQ_UNLIKELY(!is_free(l, n, word)))
		return alloc_slow(l, n, conn);
	return open_slot(l, n, word, conn);
}

/* Ends the life of handle h: true for one caller, whose business it is to free the slot. */
static CORQ_ALWAYS_INLINE bool
end_generation(const struct corq_lane *l, corq_h h, uint64_t flags)
{
	_Atomic uint64_t *word = &l->slot[corq_h_slot(h)].word;
	uint64_t seen = corq_load_acquire_u64(word), next = slot_word_after(h, flags);

	do {
		if (!slot_names(seen, h))
			return false;
	} while (!corq_cas_acqrel_u64(word, &seen, next));
	if (CORQ_UNLIKELY(next & CORQ_SLOT_RETIRED))
		corq_rmw_add_relaxed_u32(&l->h->head->n_retired, 1);
	return true;
}

static CORQ_ALWAYS_INLINE int
close_handle(struct corq_lane *l, corq_h h)
{
	uint32_t n = corq_h_slot(h), entry;

	if (CORQ_UNLIKELY(n >= l->h->n_slots || !end_generation(l, h, 0)))
		return -EBADF;
	/* The block cannot move: the slot is still marked as taken. */
	entry = corq_load_relaxed_u32(&l->dir[slot_block(n)]);
	if (CORQ_UNLIKELY(!dir_is(entry, l->tag))) {
		corq_remote_free(l->h, n);
		return 0;
	}
	/* First: a thief may write the figures of a lane that rests. */
	put(l, n, dir_number(entry));
	figure_add(&l->line->left, 1);
	return 0;
}

static CORQ_NOINLINE int
close_slow(struct corq_lane *l, corq_h h)
{
	corq_lane_news_slow(l);
	return close_handle(l, h);
}

int
corq_lane_close(struct corq_lane *l, corq_h h)
{
	return CORQ_UNLIKELY(lane_has_news(l)) ? close_slow(l, h) : close_handle(l, h);
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

	lane_begin(l);
	l->held = CORQ_NONE;
	while (n != CORQ_NONE) {
		struct corq_slot *slot = &l->slot[n];
		uint32_t next = corq_load_relaxed_u32(&slot->conn);

		corq_store_relaxed_u64(
			&slot->word, corq_load_relaxed_u64(&slot->word) & ~CORQ_SLOT_HELD);
		figure_add(&l->line->n_held, UINT32_MAX);
		figure_add(&l->line->left, 1);
		put(l, n, dir_number(corq_load_relaxed_u32(&l->dir[slot_block(n)])));
		n = next;
	}
}
