/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h - n objects of one size, named by 32-bit index, over memory of the caller.
 *
 * Single-threaded: a pool belongs to one core. Free objects form a LIFO list through their first 4
 * bytes; objects that were never handed out are not on it but above a high-water mark, so that a
 * pool of millions costs no resident page until it is used. Fresh objects hold whatever the memory
 * held (zero in a new mapping), recycled ones hold rubbish: the caller initialises.
 *
 * Deferred frees: an object that a hint of this turn may still name is freed with
 * corq_pool_free_deferred() and becomes usable at corq_pool_turn_end(), in O(1) for any number.
 *
 * With CORQ_DEBUG a free object's remaining bytes are poisoned: a second free, and a write to a
 * freed object, end in an assertion. Limits: fewer than 2^32 - 1 objects, stride a multiple of 4,
 * memory aligned to 4.
 */
#ifndef CORQ_BASE_POOL_H
#define CORQ_BASE_POOL_H

#include "base/base.h"

#include <string.h>

struct corq_pool {
	uint8_t *base;
	uint32_t stride;
	uint32_t free_head; /* newest freed object or CORQ_NONE */
	uint32_t n_fresh;   /* objects [n_fresh, n) were never handed out */
	uint32_t n_free;    /* allocatable now: on the list or fresh */
	uint32_t n;
	uint32_t n_used_peak; /* most objects ever out at once, deferred ones included */
	uint32_t defer_head;  /* freed in this turn, newest first */
	uint32_t defer_tail;
	uint32_t n_deferred;
	uint32_t inv;   /* inverse of the stride's odd part modulo 2^32 ... */
	uint32_t shift; /* ... and its trailing zeros: exact division by multiplication */
};

/* Bytes of memory for n objects. */
static inline size_t
corq_pool_size(uint32_t n, uint32_t stride)
{
	return (size_t)n * stride;
}

/* Writes *p only, not mem. */
void corq_pool_init(struct corq_pool *p, void *mem, uint32_t n, uint32_t stride);

/* Debug builds: fill a freed object, and check the fill when it is handed out. */
void corq_pool_poison(const struct corq_pool *p, uint32_t idx);
void corq_pool_unpoison(const struct corq_pool *p, uint32_t idx);

static CORQ_ALWAYS_INLINE void *
corq_pool_at(const struct corq_pool *p, uint32_t idx)
{
	CORQ_ASSERT_SLOW(idx < p->n);
	return p->base + (size_t)idx * p->stride;
}

/* ptr is the start of an object of p. */
static CORQ_ALWAYS_INLINE uint32_t
corq_pool_index(const struct corq_pool *p, const void *ptr)
{
	uint64_t off = (uint64_t)((const uint8_t *)ptr - p->base);
	uint32_t idx = (uint32_t)(off >> p->shift) * p->inv;

	CORQ_ASSERT_SLOW(idx < p->n && (uint64_t)idx * p->stride == off);
	return idx;
}

/* Objects in use; those freed in this turn but not yet usable are corq_pool_deferred(). */
static inline uint32_t
corq_pool_used(const struct corq_pool *p)
{
	return p->n - p->n_free - p->n_deferred;
}

static inline uint32_t
corq_pool_deferred(const struct corq_pool *p)
{
	return p->n_deferred;
}

static CORQ_ALWAYS_INLINE uint32_t
corq_pool_link(const struct corq_pool *p, uint32_t idx)
{
	uint32_t next;

	memcpy(&next, corq_pool_at(p, idx), sizeof(next));
	return next;
}

static CORQ_ALWAYS_INLINE void
corq_pool_set_link(const struct corq_pool *p, uint32_t idx, uint32_t next)
{
#ifdef CORQ_DEBUG
	corq_pool_poison(p, idx);
#endif
	memcpy(corq_pool_at(p, idx), &next, sizeof(next));
}

/* The newest freed object, else a fresh one, else CORQ_NONE. */
static CORQ_ALWAYS_INLINE uint32_t
corq_pool_alloc(struct corq_pool *p)
{
	uint32_t idx = p->free_head, next;

	if (CORQ_LIKELY(idx != CORQ_NONE)) {
		next = corq_pool_link(p, idx);
		p->free_head = next;
#ifdef CORQ_DEBUG
		corq_pool_unpoison(p, idx);
#endif
	} else {
		if (CORQ_UNLIKELY(p->n_fresh == p->n))
			return CORQ_NONE;
		idx = p->n_fresh++;
		next = p->n_fresh;
	}
	/* The address may lie outside the memory when next is CORQ_NONE or n: a prefetch only. */
	CORQ_PREFETCH_W((void *)((uintptr_t)p->base + (uintptr_t)next * p->stride));
	p->n_free--;
	if (p->n - p->n_free > p->n_used_peak)
		p->n_used_peak = p->n - p->n_free;
	return idx;
}

static CORQ_ALWAYS_INLINE void
corq_pool_free(struct corq_pool *p, uint32_t idx)
{
	CORQ_ASSERT_SLOW(idx < p->n_fresh);
	corq_pool_set_link(p, idx, p->free_head);
	p->free_head = idx;
	p->n_free++;
}

static CORQ_ALWAYS_INLINE void
corq_pool_free_deferred(struct corq_pool *p, uint32_t idx)
{
	CORQ_ASSERT_SLOW(idx < p->n_fresh);
	corq_pool_set_link(p, idx, p->defer_head);
	if (p->defer_head == CORQ_NONE)
		p->defer_tail = idx;
	p->defer_head = idx;
	p->n_deferred++;
}

/* What was freed in this turn can be allocated from now on. */
static inline void
corq_pool_turn_end(struct corq_pool *p)
{
	if (CORQ_LIKELY(p->defer_head == CORQ_NONE))
		return;
	memcpy(corq_pool_at(p, p->defer_tail), &p->free_head, sizeof(p->free_head));
	p->free_head = p->defer_head;
	p->n_free += p->n_deferred;
	p->defer_head = p->defer_tail = CORQ_NONE;
	p->n_deferred = 0;
}

#endif
