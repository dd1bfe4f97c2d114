/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h - a ring of 64-bit words from one producer thread to one consumer thread.
 *
 * The ring lives whole in memory of the caller and holds no pointer, so both ends may map it at
 * different addresses. Producer and consumer each write one cache line of their own; each keeps
 * there a copy of the other's index and reads the real one only when the copy says full or empty.
 *
 * Ordering: a push writes the words, then releases head (R1); a pop acquires head (A1 <-> R1),
 * reads the words, then releases tail (R2); a push acquires tail (A2 <-> R2) before it overwrites.
 * A stale copy of the other index is harmless: it makes the ring look fuller to the producer, or
 * emptier to the consumer, than it is, and is refreshed before either gives up.
 *
 * Limits: 2^31 words; both ends trust the header line.
 */
#ifndef CORQ_BASE_RING_H
#define CORQ_BASE_RING_H

#include "base/atomic.h"

struct corq_spsc {
	uint32_t mask; /* words - 1; constant */

	CORQ_ALIGNED_LINE _Atomic uint32_t head; /* words ever pushed; producer writes */
	uint32_t tail_seen;                      /* producer only */

	CORQ_ALIGNED_LINE _Atomic uint32_t tail; /* words ever popped; consumer writes */
	uint32_t head_seen;                      /* consumer only */

	CORQ_ALIGNED_LINE uint64_t word[];
};

/* Bytes of a ring that holds at least n words (n is rounded up to a power of two). */
size_t corq_spsc_size(uint32_t n);

/* r: corq_spsc_size(n) bytes aligned to a cache line. Before the second thread knows it. */
void corq_spsc_init(struct corq_spsc *r, uint32_t n);

/* Producer: appends as many of w[0..n) as fit, in order; returns how many. */
uint32_t corq_spsc_push(struct corq_spsc *r, const uint64_t *w, uint32_t n);

/* Consumer: takes up to n words; returns how many. */
uint32_t corq_spsc_pop(struct corq_spsc *r, uint64_t *w, uint32_t n);

/* Either end: words inside. To the producer an upper bound, to the consumer a lower bound. */
uint32_t corq_spsc_count(const struct corq_spsc *r);

static inline uint32_t
corq_spsc_capacity(const struct corq_spsc *r)
{
	return r->mask + 1;
}

#endif
