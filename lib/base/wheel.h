/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wheel.h - timers: a hierarchical wheel on 32-bit ticks. Single-threaded.
 *
 * What a tick is, is the caller's choice; deadlines wrap at 2^32 and compare by corq_seq_*, so an
 * armed deadline lies less than 2^31 ticks ahead of the wheel's present. One that lies behind is
 * due at the next corq_wheel_expire().
 *
 * Structure: 4 levels of 256 slots, a level for each byte of a tick. With `now` the tick that the
 * wheel has reached, an entry stands on the level of the highest byte in which its deadline differs
 * from `now`, in the slot that this byte names; an entry that is due stands in level 0's slot of
 * `now`. It follows that
 *   - everything on a level is earlier than everything on the levels above;
 *   - on levels 0..2 the lowest used slot is the earliest (level 3 is read cyclically from `now`);
 *   - when `now` reaches the first tick of an upper slot, that slot's entries move down, each at
 *     once to its final level for that moment: an entry moves at most three times in its life.
 * Bitmaps of used slots (and a summary of their words) make "what is next?" two bit scans, and the
 * jump over an empty range as cheap. Why 256: the levels match bytes, so four cover 2^32 with three
 * moves where 64-slot levels need six and five, and the heads are 4 KiB that stay in cache.
 *
 * Work per corq_wheel_expire() is bounded by `max` entries out plus `max` + CORQ_WHEEL_MOVES moves;
 * what is left is carried on by the next call, in order: the wheel's present waits for it.
 *
 * Entries are nodes at a constant offset in pool objects, fewer than 2^31 of them.
 */
#ifndef CORQ_BASE_WHEEL_H
#define CORQ_BASE_WHEEL_H

#include "base/base.h"

#define CORQ_WHEEL_LEVELS 4
#define CORQ_WHEEL_SLOTS  256
#define CORQ_WHEEL_MOVES  64

struct corq_wheel_node {
	uint32_t next;
	uint32_t prev; /* CORQ_NONE: not armed. Bit 31 set: first of the slot in the lower bits */
	uint32_t deadline;
};

struct corq_wheel {
	uint8_t *nodes; /* object base + node offset */
	uint32_t stride;
	uint32_t now;    /* reached: nothing that is due before it is left */
	uint32_t asked;  /* the `now` of the last expire: ahead of now while work is left */
	uint32_t moving; /* slot whose entries are on their way down, or CORQ_NONE */
	uint32_t n_armed;
	uint32_t summary; /* bit i: used[i] is not zero; four words a level */
	uint64_t used[CORQ_WHEEL_LEVELS * CORQ_WHEEL_SLOTS / 64]; /* bit a slot: it has entries */
	uint32_t head[CORQ_WHEEL_LEVELS * CORQ_WHEEL_SLOTS];
};

void corq_wheel_init(struct corq_wheel *w, uint8_t *obj_base, uint32_t stride, uint32_t node_offset,
	uint32_t now);

static inline void
corq_wheel_node_init(struct corq_wheel_node *node)
{
	node->next = node->prev = CORQ_NONE;
	node->deadline = 0;
}

static inline bool
corq_wheel_armed(const struct corq_wheel_node *node)
{
	return node->prev != CORQ_NONE;
}

/* Arms object idx, or moves it when it is armed. deadline <= now: due at the next expire. */
void corq_wheel_arm(struct corq_wheel *w, uint32_t idx, uint32_t deadline);

/* No effect when idx is not armed. */
void corq_wheel_disarm(struct corq_wheel *w, uint32_t idx);

/*
 * Advances to now and takes up to max entries whose deadline is not after now, disarmed, into
 * out_idx[]. Returns how many. Never early; entries due at different ticks come in order of
 * deadline, except that those armed when already due come with the wheel's present tick. Fewer
 * than max does not mean done: corq_wheel_next() == 0 says that work is left for the next call.
 */
uint32_t corq_wheel_expire(struct corq_wheel *w, uint32_t now, uint32_t *out_idx, uint32_t max);

/*
 * Ticks from the `now` of the last corq_wheel_expire() to the earliest moment at which a call can
 * have work: 0 when it has some now, CORQ_NONE when nothing is armed. Never later than the earliest
 * deadline; earlier when entries must move down first.
 */
uint32_t corq_wheel_next(const struct corq_wheel *w);

#endif
