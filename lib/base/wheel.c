/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wheel.c - the timer wheel; wheel.h has the theory. Called by the core that owns the wheel, arm
 * and disarm perhaps per packet, expire and next once a turn.
 *
 * Invariants between calls, with byte(L, t) the L-th byte of tick t:
 *   - an entry on level L, slot s agrees with `now` in the bytes above L, its byte L is s;
 *   - s differs from byte(L, now), with two exceptions: level 0's slot of `now` holds what is due,
 *     and `moving`, if any, is the slot of byte(L, now) whose entries are on their way down, with
 *     the bytes of `now` below L all 0;
 *   - `now` does not leave a tick before both are empty.
 */
#include "base/wheel.h"

#include "base/seq.h"

#include <string.h>

#define IS_HEAD 0x80000000u

static CORQ_ALWAYS_INLINE struct corq_wheel_node *
node_at(const struct corq_wheel *w, uint32_t idx)
{
	return (struct corq_wheel_node *)(void *)(w->nodes + (size_t)idx * w->stride);
}

void
corq_wheel_init(struct corq_wheel *w, uint8_t *obj_base, uint32_t stride, uint32_t node_offset,
	uint32_t now)
{
	*w = (struct corq_wheel){
		.nodes = obj_base + node_offset,
		.stride = stride,
		.now = now,
		.asked = now,
		.moving = CORQ_NONE,
	};
	memset(w->head, 0xff, sizeof(w->head));
}

/* Slots are numbered level * 256 + byte. */
static CORQ_ALWAYS_INLINE uint32_t
slot_of(const struct corq_wheel *w, uint32_t deadline)
{
	uint32_t diff = deadline ^ w->now, level;

	if (corq_seq_le(deadline, w->now))
		return w->now & 0xff;
	level = (31 - (uint32_t)__builtin_clz(diff)) / 8;
	return level * CORQ_WHEEL_SLOTS + (deadline >> level * 8 & 0xff);
}

static CORQ_ALWAYS_INLINE void
link_node(struct corq_wheel *w, uint32_t idx, struct corq_wheel_node *n, uint32_t slot)
{
	uint32_t next = w->head[slot];

	n->next = next;
	n->prev = IS_HEAD | slot;
	w->head[slot] = idx;
	if (next != CORQ_NONE) {
		node_at(w, next)->prev = idx;
	} else {
		w->used[slot / 64] |= 1ull << slot % 64;
		w->summary |= 1u << slot / 64;
	}
}

static CORQ_ALWAYS_INLINE void
slot_emptied(struct corq_wheel *w, uint32_t slot)
{
	w->used[slot / 64] &= ~(1ull << slot % 64);
	if (w->used[slot / 64] == 0)
		w->summary &= ~(1u << slot / 64);
	if (slot == w->moving)
		w->moving = CORQ_NONE;
}

static CORQ_ALWAYS_INLINE void
unlink_node(struct corq_wheel *w, struct corq_wheel_node *n)
{
	uint32_t next = n->next, prev = n->prev;

	if (next != CORQ_NONE)
		node_at(w, next)->prev = prev;
	if (!(prev & IS_HEAD)) {
		node_at(w, prev)->next = next;
		return;
	}
	w->head[prev & ~IS_HEAD] = next;
	if (next == CORQ_NONE)
		slot_emptied(w, prev & ~IS_HEAD);
}

void
corq_wheel_arm(struct corq_wheel *w, uint32_t idx, uint32_t deadline)
{
	struct corq_wheel_node *n = node_at(w, idx);

	CORQ_ASSERT_SLOW(idx < IS_HEAD);
	if (corq_wheel_armed(n))
		unlink_node(w, n);
	else
		w->n_armed++;
	n->deadline = deadline;
	link_node(w, idx, n, slot_of(w, deadline));
}

void
corq_wheel_disarm(struct corq_wheel *w, uint32_t idx)
{
	struct corq_wheel_node *n = node_at(w, idx);

	if (!corq_wheel_armed(n))
		return;
	unlink_node(w, n);
	n->next = n->prev = CORQ_NONE;
	w->n_armed--;
}

/* The first used slot of level 3 at or after byte(3, now), round the clock. It has one. */
static uint32_t
top_slot(const struct corq_wheel *w)
{
	const uint64_t *used = &w->used[3 * CORQ_WHEEL_SLOTS / 64];
	uint32_t from = w->now >> 24, word = from / 64;
	uint64_t bits = used[word] & ~0ull << from % 64;

	/* The fifth look is at the first word again: at its part before `from`. */
	for (int i = 0; i < 4 && bits == 0; i++) {
		word = (word + 1) % 4;
		bits = used[word];
	}
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The earliest used slot and its first tick; false: nothing is armed. */
static bool
earliest_slot(const struct corq_wheel *w, uint32_t *slot, uint32_t *tick)
{
	uint32_t word, level, shift;

	if (w->summary == 0)
		return false;
	word = (uint32_t)__builtin_ctz(w->summary);
	level = word / 4;
	if (level == 3) {
		*slot = top_slot(w);
		*tick = *slot << 24;
		*slot += 3 * CORQ_WHEEL_SLOTS;
		return true;
	}
	*slot = word * 64 + (uint32_t)__builtin_ctzll(w->used[word]);
	shift = level * 8;
	*tick = (w->now >> shift >> 8 << 8 | *slot % CORQ_WHEEL_SLOTS) << shift;
	return true;
}

/* Moves entries of the slot `moving` down; returns what is left of the budget. */
static uint32_t
move_down(struct corq_wheel *w, uint32_t budget)
{
	uint32_t slot = w->moving;

	while (w->moving != CORQ_NONE && budget > 0) {
		uint32_t idx = w->head[slot];
		struct corq_wheel_node *n = node_at(w, idx);

		if (n->next != CORQ_NONE)
			CORQ_PREFETCH_W(node_at(w, n->next));
		unlink_node(w, n);
		link_node(w, idx, n, slot_of(w, n->deadline));
		budget--;
	}
	return budget;
}

/* Takes up to max entries that are due at `now`; returns how many. */
static uint32_t
take_due(struct corq_wheel *w, uint32_t *out_idx, uint32_t max)
{
	uint32_t slot = w->now & 0xff, idx = w->head[slot], got = 0;

	if (idx == CORQ_NONE)
		return 0;
	while (idx != CORQ_NONE && got < max) {
		struct corq_wheel_node *n = node_at(w, idx);

		out_idx[got++] = idx;
		idx = n->next;
		if (idx != CORQ_NONE)
			CORQ_PREFETCH_W(node_at(w, idx));
		n->next = n->prev = CORQ_NONE;
	}
	w->n_armed -= got;
	w->head[slot] = idx;
	if (idx == CORQ_NONE)
		slot_emptied(w, slot);
	else
		node_at(w, idx)->prev = IS_HEAD | slot;
	return got;
}

uint32_t
corq_wheel_expire(struct corq_wheel *w, uint32_t now, uint32_t *out_idx, uint32_t max)
{
	uint32_t budget = max + CORQ_WHEEL_MOVES, got = 0, slot, tick;

	if (corq_seq_lt(now, w->asked))
		now = w->asked;
	w->asked = now;
	for (;;) {
		budget = move_down(w, budget);
		got += take_due(w, out_idx + got, max - got);
		if (w->moving != CORQ_NONE || w->head[w->now & 0xff] != CORQ_NONE)
			return got;
		if (!earliest_slot(w, &slot, &tick) || corq_seq_gt(tick, now)) {
			w->now = now;
			return got;
		}
		w->now = tick;
		if (slot >= CORQ_WHEEL_SLOTS)
			w->moving = slot;
	}
}

uint32_t
corq_wheel_next(const struct corq_wheel *w)
{
	uint32_t slot, tick;

	if (w->moving != CORQ_NONE)
		return 0;
	if (!earliest_slot(w, &slot, &tick))
		return CORQ_NONE;
	return corq_seq_gt(tick, w->asked) ? tick - w->asked : 0;
}
