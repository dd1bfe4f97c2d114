/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - keyed hash table from a 64-bit hash to 32-bit values. Single-threaded.
 *
 * The table knows no key: the caller hashes (keyed: SipHash), walks the few candidates of the hash
 * and compares the real key in the object that the value names.
 *
 * Structure: buckets of one cache line with 7 entries (tag = lower half of the hash, value). An
 * entry's home is the bucket that the upper half names; its only other place is home ^ mix(tag),
 * a map that is its own inverse, so an entry can be moved knowing its tag alone. When both are full
 * a bounded breadth-first search moves others to their other place. Each bucket counts in n_over
 * the entries that have it as home and live away: while that is 0, a look-up, hit or miss, reads
 * one line; never more than two. There are no tombstones, so churn does not age the table.
 *
 * Limits: 2^29 entries; more than 14 entries of the same hash do not fit (a keyed hash prevents
 * that). CORQ_NONE is not a value.
 */
#ifndef CORQ_BASE_TABLE_H
#define CORQ_BASE_TABLE_H

#include "base/base.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CORQ_TABLE_WAYS 7

struct corq_table_bucket {
	uint32_t tag[CORQ_TABLE_WAYS];
	uint32_t val[CORQ_TABLE_WAYS];
	uint32_t n_over; /* entries at home here that live in their other bucket */
	uint8_t home;    /* bit i: entry i is used and this is its home */
	uint8_t away;    /* bit i: entry i is used and this is its other bucket */
	uint8_t unused[2];
} CORQ_ALIGNED_LINE;

_Static_assert(sizeof(struct corq_table_bucket) == CORQ_CACHELINE, "a bucket is one line");

struct corq_table {
	struct corq_table_bucket *bucket;
	uint32_t mask; /* buckets - 1 */
	uint32_t count;
};

struct corq_table_cursor {
	const struct corq_table_bucket *bucket;
	uint32_t tag;
	uint32_t hits; /* candidates of this bucket not yet returned */
	bool second;
};

/* Bytes for a table that takes `capacity` entries: at most 71 % full then. 16 to 26 an entry. */
size_t corq_table_size(uint32_t capacity);

/* mem: corq_table_size(capacity) bytes, aligned to a cache line; all of it is written. */
void corq_table_init(struct corq_table *t, void *mem, uint32_t capacity);

/* 0, or -ENOSPC with the table unchanged. Does not look for duplicates. */
int corq_table_insert(struct corq_table *t, uint64_t hash, uint32_t val);

/* Removes, or replaces the value of, the entry that was inserted with hash and val. */
bool corq_table_remove(struct corq_table *t, uint64_t hash, uint32_t val);
bool corq_table_replace(struct corq_table *t, uint64_t hash, uint32_t old_val, uint32_t new_val);

static CORQ_ALWAYS_INLINE uint32_t
corq_table_home(const struct corq_table *t, uint64_t hash)
{
	return (uint32_t)(hash >> 32) & t->mask;
}

/* The other place of an entry that is in bucket b: differs from b but in a table of one bucket. */
static CORQ_ALWAYS_INLINE uint32_t
corq_table_other(const struct corq_table *t, uint32_t b, uint32_t tag)
{
	uint32_t m = tag * 0x9e3779b1u;

	return b ^ (((m ^ m >> 16) | 1) & t->mask);
}

/* Bit i of the result: tag[i] == tag. */
static CORQ_ALWAYS_INLINE uint32_t
corq_table_match(const struct corq_table_bucket *b, uint32_t tag)
{
#ifdef __SSE2__
	/* The eighth lane is val[0]; the used bits mask it out. */
	const __m128i *p = (const __m128i *)(const void *)b;
	__m128i x = _mm_set1_epi32((int)tag);
	__m128i lo = _mm_cmpeq_epi32(_mm_load_si128(p), x);
	__m128i hi = _mm_cmpeq_epi32(_mm_load_si128(p + 1), x);
	__m128i m = _mm_packs_epi16(_mm_packs_epi32(lo, hi), _mm_setzero_si128());

	return (uint32_t)_mm_movemask_epi8(m);
#else
	uint32_t m = 0;

	for (unsigned i = 0; i < CORQ_TABLE_WAYS; i++)
		m |= (uint32_t)(b->tag[i] == tag) << i;
	return m;
#endif
}

static CORQ_ALWAYS_INLINE void
corq_table_prefetch(const struct corq_table *t, uint64_t hash)
{
	CORQ_PREFETCH(&t->bucket[corq_table_home(t, hash)]);
}

/* The next value whose hash may be the cursor's, or CORQ_NONE. */
static CORQ_ALWAYS_INLINE uint32_t
corq_table_next(const struct corq_table *t, struct corq_table_cursor *cur)
{
	uint32_t i;

	if (cur->hits == 0) {
		if (CORQ_LIKELY(cur->second || cur->bucket->n_over == 0))
			return CORQ_NONE;
		i = corq_table_other(t, (uint32_t)(cur->bucket - t->bucket), cur->tag);
		cur->bucket = &t->bucket[i];
		cur->second = true;
		cur->hits = corq_table_match(cur->bucket, cur->tag) & cur->bucket->away;
		if (cur->hits == 0)
			return CORQ_NONE;
	}
	i = (uint32_t)__builtin_ctz(cur->hits);
	cur->hits &= cur->hits - 1;
	return cur->bucket->val[i];
}

/*
 * Starts a walk over the candidates of hash; two candidates can share a hash's 32-bit tag by
 * chance, so compare the key and go on with corq_table_next() until it fits or CORQ_NONE. An
 * insert or remove ends the walk.
 */
static CORQ_ALWAYS_INLINE uint32_t
corq_table_first(const struct corq_table *t, uint64_t hash, struct corq_table_cursor *cur)
{
	cur->bucket = &t->bucket[corq_table_home(t, hash)];
	cur->tag = (uint32_t)hash;
	cur->second = false;
	cur->hits = corq_table_match(cur->bucket, cur->tag) & cur->bucket->home;
	return corq_table_next(t, cur);
}

#endif
