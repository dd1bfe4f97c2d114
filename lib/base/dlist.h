/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dlist.h - doubly linked lists of pool objects by 32-bit index. Single-threaded.
 *
 * A link (8 bytes) sits at a constant offset in each object; a space says where the objects are,
 * and serves any number of lists over the same link. An object is on at most one list a link.
 * Outside a list both halves of a link are CORQ_NONE: initialise with corq_dlink_init(), after that
 * the functions keep it so. Everything is O(1).
 */
#ifndef CORQ_BASE_DLIST_H
#define CORQ_BASE_DLIST_H

#include "base/base.h"

struct corq_dlink {
	uint32_t next, prev;
};

struct corq_dlist {
	uint32_t head, tail, count;
};

struct corq_dlist_space {
	uint8_t *base;
	uint32_t stride, offset;
};

static inline void
corq_dlist_init(struct corq_dlist *l)
{
	*l = (struct corq_dlist){CORQ_NONE, CORQ_NONE, 0};
}

static inline void
corq_dlink_init(struct corq_dlink *k)
{
	*k = (struct corq_dlink){CORQ_NONE, CORQ_NONE};
}

static CORQ_ALWAYS_INLINE struct corq_dlink *
corq_dlist_link(const struct corq_dlist_space *s, uint32_t idx)
{
	return (struct corq_dlink *)(void *)(s->base + (size_t)idx * s->stride + s->offset);
}

/* Is idx, which is on l or on no list, on l? */
static CORQ_ALWAYS_INLINE bool
corq_dlist_has(const struct corq_dlist_space *s, const struct corq_dlist *l, uint32_t idx)
{
	return l->head == idx || corq_dlist_link(s, idx)->prev != CORQ_NONE;
}

/* The object behind idx, or CORQ_NONE. */
static CORQ_ALWAYS_INLINE uint32_t
corq_dlist_next(const struct corq_dlist_space *s, uint32_t idx)
{
	return corq_dlist_link(s, idx)->next;
}

static CORQ_ALWAYS_INLINE void
corq_dlist_push_tail(const struct corq_dlist_space *s, struct corq_dlist *l, uint32_t idx)
{
	struct corq_dlink *k = corq_dlist_link(s, idx);

	CORQ_ASSERT_SLOW(!corq_dlist_has(s, l, idx));
	k->next = CORQ_NONE;
	k->prev = l->tail;
	if (l->tail == CORQ_NONE)
		l->head = idx;
	else
		corq_dlist_link(s, l->tail)->next = idx;
	l->tail = idx;
	l->count++;
}

/* idx is on l. */
static CORQ_ALWAYS_INLINE void
corq_dlist_remove(const struct corq_dlist_space *s, struct corq_dlist *l, uint32_t idx)
{
	struct corq_dlink *k = corq_dlist_link(s, idx);

	CORQ_ASSERT_SLOW(corq_dlist_has(s, l, idx));
	if (k->prev == CORQ_NONE)
		l->head = k->next;
	else
		corq_dlist_link(s, k->prev)->next = k->next;
	if (k->next == CORQ_NONE)
		l->tail = k->prev;
	else
		corq_dlist_link(s, k->next)->prev = k->prev;
	corq_dlink_init(k);
	l->count--;
}

/* Takes the oldest object off the list; CORQ_NONE when it is empty. */
static CORQ_ALWAYS_INLINE uint32_t
corq_dlist_pop_head(const struct corq_dlist_space *s, struct corq_dlist *l)
{
	uint32_t idx = l->head;

	if (idx != CORQ_NONE)
		corq_dlist_remove(s, l, idx);
	return idx;
}

/* idx is on l. */
static CORQ_ALWAYS_INLINE void
corq_dlist_move_to_tail(const struct corq_dlist_space *s, struct corq_dlist *l, uint32_t idx)
{
	if (l->tail == idx)
		return;
	corq_dlist_remove(s, l, idx);
	corq_dlist_push_tail(s, l, idx);
}

#endif
