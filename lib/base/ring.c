/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - the single-producer single-consumer ring; ring.h names the pairs A1 <-> R1, A2 <-> R2.
 * push is called by the producer's thread only, pop by the consumer's, count by either.
 */
#include "base/ring.h"

#include <string.h>

static uint32_t
words_for(uint32_t n)
{
	uint32_t words = 1;

	CORQ_ASSERT(n > 0 && n <= 1u << 31);
	while (words < n)
		words *= 2;
	return words;
}

size_t
corq_spsc_size(uint32_t n)
{
	size_t bytes = sizeof(struct corq_spsc) + (size_t)words_for(n) * sizeof(uint64_t);

	return (bytes + CORQ_CACHELINE - 1) / CORQ_CACHELINE * CORQ_CACHELINE;
}

void
corq_spsc_init(struct corq_spsc *r, uint32_t n)
{
	CORQ_ASSERT((uintptr_t)r % CORQ_CACHELINE == 0);
	r->mask = words_for(n) - 1;
	corq_store_relaxed_u32(&r->head, 0);
	corq_store_relaxed_u32(&r->tail, 0);
	r->tail_seen = r->head_seen = 0;
}

uint32_t
corq_spsc_push(struct corq_spsc *r, const uint64_t *w, uint32_t n)
{
	uint32_t head = corq_load_relaxed_u32(&r->head), size = r->mask + 1, at, part;

	if (size - (head - r->tail_seen) < n) {
		r->tail_seen = corq_load_acquire_u32(&r->tail); /* A2 <-> R2 */
		n = CORQ_MIN(n, size - (head - r->tail_seen));
	}
	at = head & r->mask;
	part = CORQ_MIN(n, size - at);
	memcpy(&r->word[at], w, part * sizeof(*w));
	if (CORQ_UNLIKELY(part < n))
		memcpy(&r->word[0], w + part, (n - part) * sizeof(*w));
	corq_store_release_u32(&r->head, head + n); /* R1 */
	return n;
}

uint32_t
corq_spsc_pop(struct corq_spsc *r, uint64_t *w, uint32_t n)
{
	uint32_t tail = corq_load_relaxed_u32(&r->tail), size = r->mask + 1, at, part;

	if (r->head_seen - tail < n) {
		r->head_seen = corq_load_acquire_u32(&r->head); /* A1 <-> R1 */
		n = CORQ_MIN(n, r->head_seen - tail);
	}
	if (n == 0)
		return 0;
	at = tail & r->mask;
	part = CORQ_MIN(n, size - at);
	memcpy(w, &r->word[at], part * sizeof(*w));
	if (CORQ_UNLIKELY(part < n))
		memcpy(w + part, &r->word[0], (n - part) * sizeof(*w));
	corq_store_release_u32(&r->tail, tail + n); /* R2 */
	return n;
}

uint32_t
corq_spsc_count(const struct corq_spsc *r)
{
	/* tail first: it only grows, up to head, so the difference cannot go below 0 ... */
	uint32_t tail = corq_load_acquire_u32(&r->tail);
	uint32_t n = corq_load_acquire_u32(&r->head) - tail;

	/* ... but it can exceed the ring, when both ends moved between the two loads. */
	return CORQ_MIN(n, r->mask + 1);
}
