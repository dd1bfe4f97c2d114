/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - handles on their way from the thread that opened them to the one that closes them. One
 * thread pushes, one pops. Each side keeps what it last saw of the other's place, so that it reads
 * the other's line only when the ring looks full or empty.
 */
#ifndef CORQ_OPENSOCK_RING_H
#define CORQ_OPENSOCK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define OPENSOCK_LINE __attribute__((aligned(128)))

struct opensock_ring {
	uint64_t *slot;
	uint32_t size; /* a power of two */
	/* the pusher's */
	OPENSOCK_LINE _Atomic uint32_t tail;
	uint32_t head_seen;
	/* the popper's */
	OPENSOCK_LINE _Atomic uint32_t head;
	uint32_t tail_seen;
};

/* slot: size words, the caller's. */
static inline void
opensock_ring_init(struct opensock_ring *r, uint64_t *slot, uint32_t size)
{
	r->slot = slot;
	r->size = size;
	r->head_seen = r->tail_seen = 0;
	atomic_init(&r->tail, 0);
	atomic_init(&r->head, 0);
}

/* False: full. */
static inline bool
opensock_ring_push(struct opensock_ring *r, uint64_t x)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail - r->head_seen == r->size) {
		/* A1 <-> R1: the slot was read before it is written again */
		r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
		if (tail - r->head_seen == r->size)
			return false;
	}
	r->slot[tail & (r->size - 1)] = x;
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release); /* R2 */
	return true;
}

/* False: empty. */
static inline bool
opensock_ring_pop(struct opensock_ring *r, uint64_t *x)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head == r->tail_seen) {
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire); /* A2 <-> R2 */
		if (head == r->tail_seen)
			return false;
	}
	*x = r->slot[head & (r->size - 1)];
	atomic_store_explicit(&r->head, head + 1, memory_order_release); /* R1 */
	return true;
}

#endif
