/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_lend.c - blocks come to a lane and go back; what a lane without room does, and what it
 * does for one.
 *
 * A lane that has no free slot looks, in this order: at what others freed in its own blocks; for a
 * block that nobody has; for what a thread that died took with it; at dead lanes and at resting
 * ones. When all that gives nothing it sets `wanted` at the lanes that run, and says EMFILE: it
 * never waits. The lanes asked give at their next call.
 *
 * Wanted (R6) is announced by a bit of mail that leads to nothing else; the asked lane exchanges it
 * for 0 (A6 <-> R6) before it gives. One that is seen late is a later gift. spare: a resting lane's
 * word for its empty blocks, in case no mail says that it is worth a visit; stale, a thief finds
 * nothing or leaves something.
 */
#include "base/handle_int.h"

/* ---- blocks ---- */

/* A lane of one block has none to return. */
static void
be_patient(struct corq_lane *l)
{
	uint32_t n = corq_load_relaxed_u32(&l->line->n_blocks);

	l->m->patience = n > 1 ? (32 + n / 8) * CORQ_WORD_BITS : UINT32_MAX;
}

/* The lowest number that no block of the lane has, or CORQ_NONE. */
static uint32_t
unused_number(const struct corq_lane_mem *m)
{
	for (uint32_t v = 0; v < CORQ_WORD_BITS; v++)
		if (m->mine[v] != CORQ_WORD_ALL)
			return v << CORQ_WORD_SHIFT | low_bit(~m->mine[v]);
	return CORQ_NONE;
}

/* The region's last block may be a part of one: the rest of its slots is taken for good. */
static void
cut_block(struct corq_lane *l, uint32_t k, uint32_t n)
{
	uint64_t *word = &l->m->used[l->m->sum[k].first];

	for (uint32_t w = n >> CORQ_WORD_SHIFT; w < CORQ_WORD_BITS; w++) {
		bool part = w == n >> CORQ_WORD_SHIFT;

		word[w] = part ? CORQ_WORD_ALL << (n & (CORQ_WORD_BITS - 1)) & CORQ_WORD_ALL
			       : CORQ_WORD_ALL;
		if (word[w] == CORQ_WORD_ALL)
			l->m->sum[k].full |= 1ull << w;
	}
	l->m->sum[k].spoilt = 1;
}

static bool
take_block(struct corq_lane *l)
{
	uint32_t k = unused_number(l->m), block, rest = l->h->n_slots % CORQ_BLOCK_SLOTS;

	if (k == CORQ_NONE)
		return false;
	block = corq_block_grab(l->h, l->first, l->tag | k); /* R3, with the drain's exchange */
	if (block == CORQ_NONE)
		return false;
	l->m->sum[k] = (struct corq_block_sum){.first = block << CORQ_WORD_SHIFT};
	if (rest != 0 && block == l->h->n_blocks - 1)
		cut_block(l, k, rest);
	l->m->mine[k >> CORQ_WORD_SHIFT] |= 1ull << (k & (CORQ_WORD_BITS - 1));
	mark_room(l->m, k);
	figure_add(&l->line->n_blocks, 1);
	be_patient(l);
	corq_lane_drain_block(l, k, 0);
	return true;
}

/* Are all slots that a spoilt block's word marks taken for good? */
static bool
only_spoilt(const struct corq_lane *l, uint64_t word, uint32_t first)
{
	for (; word != 0; word &= word - 1) {
		uint32_t n = first + low_bit(word);

		if (n < l->h->n_slots &&
			!(corq_load_relaxed_u64(&l->slot[n].word) & CORQ_SLOT_RETIRED))
			return false;
	}
	return true;
}

static bool
is_empty(const struct corq_lane *l, uint32_t k)
{
	const struct corq_block_sum *s = &l->m->sum[k];
	uint32_t block;

	if (s->full != 0 && !s->spoilt)
		return false;
	block = corq_lane_block_of(l, k);
	for (uint32_t w = 0; block != CORQ_NONE && w < CORQ_WORD_BITS; w++) {
		uint64_t word = block_words(l, block)[w];

		if (word != 0 && !s->spoilt)
			return false;
		if (!only_spoilt(l, word, block << CORQ_BLOCK_SHIFT | w << CORQ_WORD_SHIFT))
			return false;
	}
	return true;
}

static void
return_block(struct corq_lane *l, uint32_t k)
{
	struct corq_lane_mem *m = l->m;
	uint32_t block = corq_lane_block_of(l, k);

	for (uint32_t w = 0; block != CORQ_NONE && w < CORQ_WORD_BITS; w++)
		if (block_words(l, block)[w] != 0)
			block_words(l, block)[w] = 0; /* spoilt */
	m->sum[k] = (struct corq_block_sum){0};
	m->mine[k >> CORQ_WORD_SHIFT] &= ~(1ull << (k & (CORQ_WORD_BITS - 1)));
	mark_no_room(m, k);
	figure_add(&l->line->n_blocks, UINT32_MAX);
	if (block != CORQ_NONE)
		corq_block_drop(l->h, block);
}

/* Returns all empty blocks but `keep`, those of the lowest numbers. */
void
corq_lane_return_empty(struct corq_lane *l, uint32_t keep)
{
	for (uint32_t v = 0; v < CORQ_WORD_BITS; v++)
		for (uint64_t mine = l->m->mine[v]; mine != 0; mine &= mine - 1) {
			uint32_t k = v << CORQ_WORD_SHIFT | low_bit(mine);

			if (!is_empty(l, k))
				continue;
			if (keep > 0)
				keep--;
			else
				return_block(l, k);
		}
}

/* Some blocks became empty since the lane looked last. */
CORQ_NOINLINE void
corq_lane_trim_slow(struct corq_lane *l)
{
	corq_lane_return_empty(l, 1 + corq_load_relaxed_u32(&l->line->n_blocks) / 16);
	be_patient(l);
}

/* ---- what others want ---- */

static void
give(struct corq_lane *l)
{
	corq_xchg_acqrel_u32(&l->line->wanted, 0);
	corq_lane_flush(l, 0);
	corq_lane_fold(l, CORQ_FOLD_ALL);
	corq_lane_return_empty(l, 0);
}

void
corq_lane_wake(struct corq_lane *l)
{
	uint32_t seen;

	while (l->order == CORQ_LANE_RESTING) {
		seen = CORQ_LANE_REST;
		if (corq_cas_acqrel_u32(&l->line->state, &seen, CORQ_LANE_RUN)) /* A5 */
			l->order = l->order_awake;
		else
			corq_spin(); /* a thief folds; one that died is reclaimed, and lets go */
	}
}

CORQ_NOINLINE void
corq_lane_news_slow(struct corq_lane *l)
{
	corq_lane_wake(l);
	l->put_off = CORQ_FOLD_CALLS;
	corq_lane_fold(l, CORQ_FOLD_BLOCKS);
	if (corq_load_relaxed_u32(&l->line->wanted)) /* after the fold took its announcement away */
		give(l);
}

static bool
has_empty(const struct corq_lane *l)
{
	for (uint32_t v = 0; v < CORQ_WORD_BITS; v++)
		for (uint64_t mine = l->m->mine[v]; mine != 0; mine &= mine - 1)
			if (is_empty(l, v << CORQ_WORD_SHIFT | low_bit(mine)))
				return true;
	return false;
}

void
corq_lane_rest(struct corq_lane *l)
{
	if (l->order == CORQ_LANE_RESTING)
		return;
	corq_lane_flush(l, 0);
	corq_lane_fold(l, CORQ_FOLD_ALL);
	if (corq_load_relaxed_u32(&l->line->wanted))
		give(l);
	corq_lane_trim_slow(l);
	corq_store_relaxed_u32(&l->line->spare, has_empty(l));
	l->order = CORQ_LANE_RESTING;
	corq_store_release_u32(&l->line->state, CORQ_LANE_REST); /* R4 */
}

/* ---- without room ---- */

/* Folds for lane id, if that rests and has something, and returns all its empty blocks. */
static void
visit(struct corq_lane *l, uint32_t id)
{
	struct corq_lane_line *line = &l->h->line[id];
	uint32_t seen = CORQ_LANE_REST;
	struct corq_lane v = {.line = line,
		.slot = l->slot,
		.dir = l->dir,
		.h = l->h,
		.n_words = l->n_words,
		.id = id,
		.tag = dir_tag(id),
		.held = CORQ_NONE};

	if (corq_load_relaxed_u64(&line->mail) == 0 && corq_load_relaxed_u32(&line->spare) == 0)
		return;
	if (!corq_cas_acqrel_u32(&line->state, &seen, /* A4 */
		    (l->id + 1) << CORQ_LANE_STATE_BITS | CORQ_LANE_STEALING))
		return;
	v.m = (void *)(uintptr_t)corq_load_acquire_u64(&l->h->lane_at[id]);
	if (v.m != NULL) { /* mapped in this process */
		give(&v);
		corq_store_relaxed_u32(&line->spare, 0);
	}
	corq_store_release_u32(&line->state, CORQ_LANE_REST); /* R5 */
}

/* Dead lanes are reclaimed, resting ones visited. True: a block may have come free. */
static bool
visit_others(struct corq_lane *l)
{
	for (uint32_t id = 0; id < l->h->n_lanes; id++) {
		uint32_t state = corq_load_acquire_u32(&l->h->line[id].state);

		if (state == CORQ_LANE_DEAD)
			corq_lane_reclaim(l->h, id, l->id);
		else if (state == CORQ_LANE_REST)
			visit(l, id);
	}
	return corq_load_relaxed_u32(&l->h->head->n_free) != 0;
}

/* Slots that others could take of a lane, as far as its line tells: free, cached, or freed by
 * others and not folded. */
static bool
has_free_slots(const struct corq_lane_line *line, uint32_t blocks)
{
	uint32_t taken = corq_load_relaxed_u32(&line->limit) - corq_load_relaxed_u32(&line->left);

	return blocks * CORQ_BLOCK_SLOTS != taken || corq_load_relaxed_u64(&line->mail) != 0;
}

/* Asks the lanes that have free slots, if there are any. */
static bool
ask_others(struct corq_lane *l)
{
	bool stranded = false;

	for (uint32_t id = 0; id < l->h->n_lanes; id++) {
		struct corq_lane_line *line = &l->h->line[id];
		uint32_t blocks = corq_load_relaxed_u32(&line->n_blocks);

		if (id == l->id || blocks == 0 || !has_free_slots(line, blocks))
			continue;
		stranded = true;
		if (corq_load_relaxed_u32(&line->wanted) != 0)
			continue;
		corq_xchg_acqrel_u32(&line->wanted, 1);    /* R6 */
		corq_rmw_or_acqrel_u64(&line->mail, 1ull); /* R6: news, wherever it leads */
	}
	return stranded;
}

void
corq_lane_heed_deaths(struct corq_lane *l)
{
	uint32_t epoch = corq_load_acquire_u32(&l->h->head->epoch);

	if (epoch == l->epoch)
		return;
	l->epoch = epoch;
	corq_lane_audit(l);
}

/* After this top is not 0; or the answer is EMFILE. */
CORQ_NOINLINE bool
corq_lane_find_room(struct corq_lane *l)
{
	corq_lane_fold(l, CORQ_FOLD_ALL);
	if (l->m->top != 0 || take_block(l) || (visit_others(l) && take_block(l)))
		return true;
	corq_lane_heed_deaths(l);
	if (l->m->top != 0)
		return true;
	if (ask_others(l))
		corq_store_relaxed_u64(
			&l->line->n_starved, corq_load_relaxed_u64(&l->line->n_starved) + 1);
	return false;
}
