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
 * Wanted: one lane's relaxed store, another's exchange; it carries nothing, and one that is seen
 * late is a later gift. spare: a resting lane's word for its empty blocks, in case no mail says
 * that it is worth a visit; stale, a thief finds nothing or leaves something.
 */
#include "base/handle_int.h"

/* ---- blocks ---- */

static void
set_keep(struct corq_lane *l)
{
	l->m->keep = 1 + corq_load_relaxed_u32(&l->line->n_blocks) / 8;
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
	for (uint32_t w = n >> CORQ_WORD_SHIFT; w < CORQ_WORD_BITS; w++) {
		bool part = w == n >> CORQ_WORD_SHIFT;

		l->m->used[k][w] =
			part ? CORQ_WORD_ALL << (n & (CORQ_WORD_BITS - 1)) & CORQ_WORD_ALL
			     : CORQ_WORD_ALL;
		if (l->m->used[k][w] == CORQ_WORD_ALL)
			l->m->sum[k].full |= 1ull << w;
	}
}

static bool
take_block(struct corq_lane *l)
{
	uint32_t k = unused_number(l->m), block, rest = l->h->n_slots % CORQ_BLOCK_SLOTS;

	if (k == CORQ_NONE)
		return false;
	block = corq_block_grab(l->h, l->first);
	if (block == CORQ_NONE)
		return false;
	l->m->sum[k] = (struct corq_block_sum){.block = block + 1};
	if (rest != 0 && block == l->h->n_blocks - 1)
		cut_block(l, k, rest);
	l->m->mine[k >> CORQ_WORD_SHIFT] |= 1ull << (k & (CORQ_WORD_BITS - 1));
	mark_room(l->m, k);
	l->m->n_empty++;
	figure_add(&l->line->n_blocks, 1);
	set_keep(l);
	corq_store_release_u32(&l->dir[block], l->tag | k); /* R3, with the drain's exchange */
	corq_lane_drain_block(l, k, 0);
	return true;
}

void
corq_lane_return_block(struct corq_lane *l, uint32_t k)
{
	struct corq_lane_mem *m = l->m;
	uint32_t block = m->sum[k].block - 1;

	for (uint32_t w = 0; w < CORQ_WORD_BITS; w++)
		if (m->used[k][w] != 0)
			m->used[k][w] = 0; /* retired, or cut */
	m->sum[k] = (struct corq_block_sum){0};
	m->mine[k >> CORQ_WORD_SHIFT] &= ~(1ull << (k & (CORQ_WORD_BITS - 1)));
	mark_no_room(m, k);
	m->n_empty--;
	figure_add(&l->line->n_blocks, UINT32_MAX);
	set_keep(l);
	/* In a resting lane's region anything may stand. */
	if (block < l->h->n_blocks && corq_load_relaxed_u32(&l->dir[block]) == (l->tag | k))
		corq_block_drop(l->h, block);
}

/* From the highest number down, so that what stays is low. */
void
corq_lane_return_empty(struct corq_lane *l, uint32_t keep)
{
	for (uint32_t k = CORQ_LANE_BLOCKS; k-- > 0 && l->m->n_empty > keep;) {
		uint64_t mine = l->m->mine[k >> CORQ_WORD_SHIFT];

		if (mine == 0)
			k &= ~(CORQ_WORD_BITS - 1); /* none of these */
		else if (mine >> (k & (CORQ_WORD_BITS - 1)) & 1 && l->m->sum[k].n == 0)
			corq_lane_return_block(l, k);
	}
}

/* There is one empty block too many: k. As the lane shrinks, so does what it keeps. */
CORQ_NOINLINE void
corq_lane_emptied_slow(struct corq_lane *l, uint32_t k)
{
	corq_lane_return_block(l, k);
	corq_lane_return_empty(l, l->m->keep);
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

static void
wake(struct corq_lane *l)
{
	uint32_t seen;

	for (;;) {
		seen = CORQ_LANE_REST;
		if (corq_cas_acqrel_u32(&l->line->state, &seen, CORQ_LANE_RUN)) /* A5 */
			break;
		corq_spin(); /* a thief folds; one that died is reclaimed, and lets go */
	}
	l->resting = false;
}

CORQ_NOINLINE void
corq_lane_news_slow(struct corq_lane *l)
{
	if (l->resting)
		wake(l);
	if (corq_load_relaxed_u32(&l->line->wanted))
		give(l);
	else
		corq_lane_fold(l, 1);
}

void
corq_lane_rest(struct corq_lane *l)
{
	if (l->resting)
		return;
	if (corq_load_relaxed_u32(&l->line->wanted))
		give(l);
	corq_lane_flush(l, 0);
	corq_lane_fold(l, CORQ_FOLD_ALL);
	corq_store_relaxed_u32(&l->line->spare, l->m->n_empty);
	l->resting = true;
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
		corq_lane_fold(&v, CORQ_FOLD_ALL);
		corq_lane_return_empty(&v, 0);
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

	return blocks * CORQ_BLOCK_SLOTS != taken || corq_load_relaxed_u32(&line->n_fast) != 0 ||
	       corq_load_relaxed_u64(&line->mail) != 0;
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
		if (corq_load_relaxed_u32(&line->wanted) == 0)
			corq_store_relaxed_u32(&line->wanted, 1);
	}
	return stranded;
}

static bool
can_take(const struct corq_lane *l)
{
	return corq_load_relaxed_u32(&l->line->left) != 0 && l->m->top != 0;
}

/* Threads died since the lane looked last: what they took with them is found by an audit. */
static bool
audit_is_due(struct corq_lane *l)
{
	uint32_t epoch = corq_load_acquire_u32(&l->h->head->epoch);

	if (epoch == l->epoch)
		return false;
	l->epoch = epoch;
	return true;
}

/* After this, left and top are not 0; or the answer is EMFILE. */
CORQ_NOINLINE bool
corq_lane_find_room(struct corq_lane *l)
{
	struct corq_lane_line *line = l->line;

	corq_lane_fold(l, CORQ_FOLD_ALL);
	if (can_take(l))
		return true;
	if (corq_load_relaxed_u32(&line->left) != 0 &&
		(take_block(l) || (visit_others(l) && take_block(l))))
		return true;
	if (audit_is_due(l)) {
		corq_lane_audit(l);
		if (can_take(l))
			return true;
	}
	if (corq_load_relaxed_u32(&line->left) != 0 && ask_others(l))
		corq_store_relaxed_u64(
			&line->n_starved, corq_load_relaxed_u64(&line->n_starved) + 1);
	corq_store_relaxed_u64(&line->n_emfile, corq_load_relaxed_u64(&line->n_emfile) + 1);
	return false;
}
