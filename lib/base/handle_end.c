/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_end.c - lanes begin and end; dead ones are reclaimed; figures.
 *
 * Attach and detach: the lane's thread. Death is told by whoever knows (a thread's destructor, the
 * control side); any lane's thread reclaims. The reclaimer goes by the directory and the slots, and
 * reads no word of the dead lane's region.
 *
 * A closer that won and has not set the slot's remote bit yet may come after the block moved on.
 * Its bit then frees nothing, or unmarks a slot that is taken: the lane that is led there finds the
 * slot live and marks it again.
 */
#include "base/handle_int.h"

#include <errno.h>

size_t
corq_lane_size(uint32_t n_slots)
{
	size_t words = ((size_t)n_slots + CORQ_BLOCK_SLOTS - 1) / CORQ_BLOCK_SLOTS * CORQ_WORD_BITS;

	return sizeof(struct corq_lane_mem) + words * sizeof(uint64_t);
}

static bool
claim_number(struct corq_lane *l)
{
	for (l->id = 0; l->id < l->h->n_lanes; l->id++) {
		uint32_t seen = CORQ_LANE_FREE;

		l->line = &l->h->line[l->id];
		if (corq_load_relaxed_u32(&l->line->state) == CORQ_LANE_FREE &&
			corq_cas_acqrel_u32(&l->line->state, &seen, CORQ_LANE_RUN))
			return true;
	}
	return false;
}

/* News for the lane that had this number before: bits that lead to nothing. */
static void
forget_news(struct corq_lane_line *line)
{
	corq_xchg_acqrel_u64(&line->mail, 0);
	for (uint32_t v = 0; v < CORQ_WORD_BITS; v++)
		if (corq_load_relaxed_u64(&line->map[v]) != 0)
			corq_xchg_acqrel_u64(&line->map[v], 0);
	corq_store_relaxed_u32(&line->wanted, 0);
	corq_store_relaxed_u32(&line->spare, 0);
}

static void
clear_figures(struct corq_lane_line *line, uint32_t limit)
{
	corq_store_relaxed_u32(&line->limit, limit);
	corq_store_relaxed_u32(&line->left, limit);
	corq_store_relaxed_u32(&line->n_blocks, 0);
	corq_store_relaxed_u32(&line->n_held, 0);
	corq_store_relaxed_u64(&line->n_emfile, 0);
	corq_store_relaxed_u64(&line->n_starved, 0);
}

int
corq_lane_attach(struct corq_lane *l, struct corq_handles *h, struct corq_lane_mem *m,
	const struct corq_lane_config *c)
{
	CORQ_ASSERT((uintptr_t)m % CORQ_CACHELINE == 0 && c->owner <= CORQ_SLOT_OWNER_MASK &&
		    c->order <= CORQ_LANE_FAST);
	*l = (struct corq_lane){.m = m,
		.slot = h->slot,
		.dir = h->dir,
		.h = h,
		.order = c->order,
		.order_awake = c->order,
		.owner = c->owner,
		.held = CORQ_NONE};
	l->n_words = h->n_blocks << CORQ_WORD_SHIFT;
	l->first = corq_handles_first_block(h, CORQ_MIN(c->node, h->n_nodes - 1));
	l->epoch = corq_load_acquire_u32(&h->head->epoch);
	if (!claim_number(l))
		return -EUSERS;
	l->tag = dir_tag(l->id);
	forget_news(l->line);
	clear_figures(
		l->line, c->limit == 0 ? CORQ_LANE_SLOTS : CORQ_MIN(c->limit, CORQ_LANE_SLOTS));
	corq_store_release_u64(&h->lane_at[l->id], (uintptr_t)m);
	return 0;
}

/* Nobody opens slots of this block now; closers may be at it. */
static void
vacate_slot(struct corq_handles *h, uint32_t n)
{
	_Atomic uint64_t *word = &h->slot[n].word;
	uint64_t seen = corq_load_acquire_u64(word), next;

	while (seen & CORQ_SLOT_LIVE) {
		next = slot_word_after(seen, 0);
		if (!corq_cas_acqrel_u64(word, &seen, next))
			continue;
		if (next & CORQ_SLOT_RETIRED)
			corq_rmw_add_relaxed_u32(&h->head->n_retired, 1);
		return;
	}
	if (seen & CORQ_SLOT_HELD)
		corq_store_relaxed_u64(word, seen & ~CORQ_SLOT_HELD);
}

/* Closes what is live in a block, and frees it. */
static void
vacate_block(struct corq_handles *h, uint32_t block)
{
	uint32_t first = block << CORQ_BLOCK_SHIFT;
	uint32_t n = CORQ_MIN(CORQ_BLOCK_SLOTS, h->n_slots - first);
	struct corq_remote *r = &h->remote[block];

	for (uint32_t i = 0; i < n; i++)
		vacate_slot(h, first + i);
	corq_xchg_acqrel_u64(&r->some, 0);
	for (uint32_t w = 0; w < CORQ_WORD_BITS; w++)
		if (corq_load_relaxed_u64(&r->word[w]) != 0)
			corq_xchg_acqrel_u64(&r->word[w], 0);
	corq_block_drop(h, block);
}

/* All blocks that the directory gives to lane id. */
static void
vacate_lane(struct corq_handles *h, uint32_t id)
{
	for (uint32_t block = 0; block < h->n_blocks; block++)
		if (dir_is(corq_load_acquire_u32(&h->dir[block]), dir_tag(id)))
			vacate_block(h, block);
	clear_figures(&h->line[id], 0);
	corq_store_release_u64(&h->lane_at[id], 0);
}

void
corq_lane_detach(struct corq_lane *l)
{
	corq_lane_wake(l); /* no thief is in its memory */
	corq_lane_turn_end(l);
	corq_lane_flush(l, 0);
	corq_lane_fold(l, CORQ_FOLD_ALL);
	corq_lane_return_empty(l, 0);
	vacate_lane(l->h, l->id);
	corq_store_release_u32(&l->line->state, CORQ_LANE_FREE);
	l->m = NULL;
}

bool
corq_lane_died(struct corq_handles *h, uint32_t id)
{
	_Atomic uint32_t *state = &h->line[id].state;
	uint32_t seen = corq_load_acquire_u32(state);

	while (seen == CORQ_LANE_RUN || seen == CORQ_LANE_REST)
		if (corq_cas_acqrel_u32(state, &seen, CORQ_LANE_DEAD))
			return true;
	return false;
}

/* What dead lane `by` had begun at others is theirs, or the next reclaimer's, again. */
static void
release_victims(struct corq_handles *h, uint32_t by)
{
	for (uint32_t id = 0; id < h->n_lanes; id++) {
		_Atomic uint32_t *state = &h->line[id].state;
		uint32_t seen = corq_load_acquire_u32(state);

		if (seen == ((by + 1) << CORQ_LANE_STATE_BITS | CORQ_LANE_STEALING))
			corq_cas_acqrel_u32(state, &seen, CORQ_LANE_REST);
		else if (seen == ((by + 1) << CORQ_LANE_STATE_BITS | CORQ_LANE_RECLAIM))
			corq_cas_acqrel_u32(state, &seen, CORQ_LANE_DEAD);
	}
}

bool
corq_lane_reclaim(struct corq_handles *h, uint32_t id, uint32_t by)
{
	struct corq_lane_line *line = &h->line[id];
	uint32_t seen = CORQ_LANE_DEAD;

	if (!corq_cas_acqrel_u32(
		    &line->state, &seen, (by + 1) << CORQ_LANE_STATE_BITS | CORQ_LANE_RECLAIM))
		return false;
	vacate_lane(h, id);
	release_victims(h, id);
	corq_rmw_add_seqcst_u32(&h->head->epoch, 1);
	corq_store_release_u32(&line->state, CORQ_LANE_FREE);
	return true;
}

/* ---- figures ---- */

static uint32_t
pending_in(const struct corq_remote *r)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < CORQ_WORD_BITS; w++)
		n += (uint32_t)__builtin_popcountll(corq_load_relaxed_u64(&r->word[w]));
	return n;
}

void
corq_handles_count(const struct corq_handles *h, struct corq_handles_counts *out)
{
	uint64_t opened = 0, held = 0, slots_free = 0;

	*out = (struct corq_handles_counts){.blocks = h->n_blocks};
	for (uint32_t id = 0; id < h->n_lanes; id++) {
		const struct corq_lane_line *line = &h->line[id];

		out->lanes += corq_load_relaxed_u32(&line->state) != CORQ_LANE_FREE;
		opened += corq_load_relaxed_u32(&line->limit) - corq_load_relaxed_u32(&line->left);
		held += corq_load_relaxed_u32(&line->n_held);
		out->emfile += corq_load_relaxed_u64(&line->n_emfile);
		out->starved += corq_load_relaxed_u64(&line->n_starved);
	}
	for (uint32_t block = 0; block < h->n_blocks; block++) {
		if (corq_load_relaxed_u32(&h->dir[block]) != 0) {
			out->blocks_lent++;
			out->pending += pending_in(&h->remote[block]);
		} else {
			slots_free +=
				CORQ_MIN(CORQ_BLOCK_SLOTS, h->n_slots - block * CORQ_BLOCK_SLOTS);
		}
	}
	out->retired = corq_load_relaxed_u32(&h->head->n_retired);
	out->capacity = h->n_slots - out->retired;
	out->open = opened - held - out->pending;
	slots_free += out->open;
	out->stranded = out->capacity - CORQ_MIN(out->capacity, slots_free);
}
