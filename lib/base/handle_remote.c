/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_remote.c - frees by other threads than the lane's, and the lane's folding of them.
 *
 *   freer (any thread)                         owner (or a thief while it rests)
 *   R2 word  |= slot    was it 0?              A2 mail  &= ~v          then
 *   R2 some  |= w       was it 0?                 map[v] &= ~k         (more left: mail |= v)
 *   A3 dir[block]: whose, which number?           some  -> 0           then
 *   R2 map[v] |= k      was it 0?                 word[w] -> 0         for each bit of some
 *   R2 mail  |= v
 *
 * The freer that finds a level not 0 stops: whoever made it so announces it, or has. The owner
 * takes an announcement away before it looks below, never after: a bit that arrives in between is
 * found now, or finds 0 and is announced again; then the second announcement leads to nothing,
 * which costs a look.
 *
 * A3: after its bit in word the freer has no claim on the block, which may be drained on another's
 * announcement, emptied, and lent to another lane. A lane that takes a block writes dir, then
 * exchanges `some`; the freer writes `some`, then reads dir. If the freer's write is the later one
 * it reads the new lane (the exchange R3 carries dir to it); if it is the earlier one, the new
 * lane's exchange takes it away, and the map of the lane of before gets a bit that leads to
 * nothing.
 */
#include "base/handle_int.h"

void
corq_remote_free(struct corq_handles *h, uint32_t n)
{
	uint32_t block = slot_block(n), entry, k, v, id;
	struct corq_remote *r = &h->remote[block];
	struct corq_lane_line *line;

	if (corq_rmw_or_acqrel_u64(&r->word[slot_word(n)], slot_bit(n)) != 0) /* R2 */
		return;
	if (corq_rmw_or_acqrel_u64(&r->some, 1ull << slot_word(n)) != 0) /* R2 */
		return;
	entry = corq_load_acquire_u32(&h->dir[block]); /* A3 <-> R3 */
	id = (entry >> CORQ_BLOCK_SHIFT) - 1;
	if (id >= h->n_lanes)
		return; /* free by now: who takes it drains it */
	k = dir_number(entry);
	v = k >> CORQ_WORD_SHIFT;
	line = &h->line[id];
	if (corq_rmw_or_acqrel_u64(&line->map[v], 1ull << (k & (CORQ_WORD_BITS - 1))) != 0) /* R2 */
		return;
	corq_rmw_or_acqrel_u64(&line->mail, 1ull << v); /* R2 */
}

uint32_t
corq_lane_block_of(const struct corq_lane *l, uint32_t k)
{
	uint32_t block = l->m->sum[k].first >> CORQ_WORD_SHIFT;

	if (block >= l->h->n_blocks || corq_load_relaxed_u32(&l->dir[block]) != (l->tag | k))
		return CORQ_NONE;
	return block;
}

/* Slots `bits` of word w of the lane's block k, in the directory `block`, are free. */
static void
free_bits(struct corq_lane *l, uint32_t k, uint32_t block, uint32_t w, uint64_t bits)
{
	uint64_t *word = &block_words(l, block)[w];

	bits &= *word;
	if (bits == 0)
		return; /* announced twice, or a stray bit */
	*word &= ~bits;
	l->m->sum[k].full &= ~(1ull << w);
	mark_room(l->m, k);
	figure_add(&l->line->left, (uint32_t)__builtin_popcountll(bits));
	if (*word == 0)
		word_emptied(l);
}

/* words: besides those that are announced. */
void
corq_lane_drain_block(struct corq_lane *l, uint32_t k, uint64_t words)
{
	uint32_t block = corq_lane_block_of(l, k);
	struct corq_remote *r;

	if (block == CORQ_NONE)
		return;
	if (l->order != CORQ_LANE_FAST) /* what is freed here may be lower than the cached slot */
		corq_lane_flush(l, 0);
	r = &l->h->remote[block];
	words |= corq_xchg_acqrel_u64(&r->some, 0); /* A2, R3 */
	while (words != 0) {
		uint32_t w = low_bit(words);

		words &= words - 1;
		free_bits(l, k, block, w, corq_xchg_acqrel_u64(&r->word[w], 0)); /* A2 */
	}
}

void
corq_lane_fold(struct corq_lane *l, uint32_t max_blocks)
{
	struct corq_lane_line *line = l->line;
	bool led_nowhere = false;
	uint64_t mail;

	while (max_blocks-- > 0 && (mail = corq_load_acquire_u64(&line->mail)) != 0) {
		uint32_t v = low_bit(mail), i;
		uint64_t bit = 1ull << v, map;

		corq_rmw_and_acqrel_u64(&line->mail, ~bit); /* A2 */
		map = corq_load_relaxed_u64(&line->map[v]);
		if (map == 0) { /* announced twice; or wanted, which is not to be lost here */
			led_nowhere = true;
			continue;
		}
		i = low_bit(map);
		map = corq_rmw_and_acqrel_u64(&line->map[v], ~(1ull << i)); /* A2 */
		if (map & ~(1ull << i))
			corq_rmw_or_acqrel_u64(&line->mail, bit);
		corq_lane_drain_block(l, v << CORQ_WORD_SHIFT | i, 0);
	}
	if (led_nowhere && corq_load_relaxed_u32(&line->wanted))
		corq_rmw_or_acqrel_u64(&line->mail, 1ull); /* the lane's next call gives */
}

/* ---- audit ---- */

/* A word of used as the slots from `first` on say; how many of them are live or held. */
static uint32_t
audit_word(struct corq_lane *l, uint64_t *at, uint32_t first)
{
	uint64_t used = 0;
	uint32_t n = 0;

	for (uint32_t b = 0; b < CORQ_WORD_BITS; b++) {
		uint64_t word = CORQ_SLOT_RETIRED; /* what the last block lacks is taken for good */

		if (first + b < l->h->n_slots)
			word = corq_load_acquire_u64(&l->slot[first + b].word);
		if (!(word & CORQ_SLOT_BUSY))
			continue;
		used |= 1ull << b;
		n += (word & CORQ_SLOT_RETIRED) == 0;
	}
	if (*at != used)
		*at = used;
	return n;
}

static uint32_t
audit_block(struct corq_lane *l, uint32_t k)
{
	uint32_t block = corq_lane_block_of(l, k), n = 0;
	struct corq_block_sum *s = &l->m->sum[k];

	mark_no_room(l->m, k);
	if (block == CORQ_NONE)
		return 0;
	s->full = 0;
	for (uint32_t w = 0; w < CORQ_WORD_BITS; w++) {
		uint64_t *at = &block_words(l, block)[w];

		n += audit_word(l, at, block << CORQ_BLOCK_SHIFT | w << CORQ_WORD_SHIFT);
		if (*at == CORQ_WORD_ALL)
			s->full |= 1ull << w;
	}
	s->spoilt = 1; /* perhaps: whoever needs to know looks */
	if (s->full != CORQ_WORD_ALL)
		mark_room(l->m, k);
	return n;
}

static bool
has_number(const struct corq_lane *l, uint32_t k)
{
	return l->m->mine[k >> CORQ_WORD_SHIFT] >> (k & (CORQ_WORD_BITS - 1)) & 1;
}

/* Blocks that the directory gives to the lane, and its table has not: a thief died while it
 * returned them. */
static void
audit_directory(struct corq_lane *l)
{
	uint32_t n = 0;

	for (uint32_t block = 0; block < l->h->n_blocks; block++) {
		uint32_t entry = corq_load_relaxed_u32(&l->dir[block]);

		if (dir_is(entry, l->tag) && corq_lane_block_of(l, dir_number(entry)) != block)
			corq_block_drop(l->h, block);
	}
	for (uint32_t v = 0; v < CORQ_WORD_BITS; v++)
		n += (uint32_t)__builtin_popcountll(l->m->mine[v]);
	corq_store_relaxed_u32(&l->line->n_blocks, n);
}

void
corq_lane_audit(struct corq_lane *l)
{
	uint32_t n = 0;

	lane_begin(l);
	corq_lane_flush(l, 0);
	for (uint32_t v = 0; v < CORQ_WORD_BITS; v++) /* without mail they hide what comes next */
		corq_xchg_acqrel_u64(&l->line->map[v], 0);
	audit_directory(l);
	for (uint32_t k = 0; k < CORQ_LANE_BLOCKS; k++)
		if (has_number(l, k))
			corq_lane_drain_block(l, k, CORQ_WORD_ALL);
	for (uint32_t k = 0; k < CORQ_LANE_BLOCKS; k++)
		if (has_number(l, k))
			n += audit_block(l, k);
	corq_store_relaxed_u32(&l->line->left, corq_load_relaxed_u32(&l->line->limit) - n);
}
