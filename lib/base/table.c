/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c - changes of the keyed table; table.h has the theory and the look-up. Called by the core
 * that owns the table, per connection and not per packet.
 *
 * Making room: a breadth-first search over "this entry could move to its other bucket", from both
 * buckets of the new entry, at most SEARCH_NODES buckets far. The first bucket found with room ends
 * the shortest chain, in which no bucket can stand twice (the part between the two visits could
 * have been left out), so the moves, made from the far end backwards, do not disturb each other.
 * Nothing is written before such a chain is known.
 */
#include "base/table.h"

#include <errno.h>
#include <string.h>

#define WAYS_MASK    ((1u << CORQ_TABLE_WAYS) - 1)
#define SEARCH_NODES 512
#define LOAD_ENTRIES 5 /* a bucket's share of the capacity */

struct node {
	uint32_t bucket;
	uint16_t parent;
	uint8_t slot; /* of the parent's entry that moves here */
};

static uint32_t
bucket_count(uint32_t capacity)
{
	uint32_t want = capacity / LOAD_ENTRIES + (capacity % LOAD_ENTRIES != 0), n = 1;

	CORQ_ASSERT(capacity <= 1u << 29);
	while (n < want)
		n *= 2;
	return n;
}

size_t
corq_table_size(uint32_t capacity)
{
	return bucket_count(capacity) * sizeof(struct corq_table_bucket);
}

void
corq_table_init(struct corq_table *t, void *mem, uint32_t capacity)
{
	CORQ_ASSERT((uintptr_t)mem % CORQ_CACHELINE == 0);
	t->bucket = mem;
	t->mask = bucket_count(capacity) - 1;
	t->count = 0;
	memset(mem, 0, corq_table_size(capacity));
}

static inline uint32_t
free_ways(const struct corq_table_bucket *b)
{
	return ~(uint32_t)(b->home | b->away) & WAYS_MASK;
}

/* Fills way i, free, of bucket b with an entry whose home is `home`. */
static void
put(struct corq_table *t, uint32_t b, uint32_t i, uint32_t home, uint32_t tag, uint32_t val)
{
	struct corq_table_bucket *k = &t->bucket[b];

	k->tag[i] = tag;
	k->val[i] = val;
	if (b == home) {
		k->home |= (uint8_t)(1u << i);
	} else {
		k->away |= (uint8_t)(1u << i);
		t->bucket[home].n_over++;
	}
}

/* Empties way i, used, of bucket b; returns the home of what was there. */
static uint32_t
drop(struct corq_table *t, uint32_t b, uint32_t i)
{
	struct corq_table_bucket *k = &t->bucket[b];
	uint8_t bit = (uint8_t)(1u << i);
	uint32_t home = b;

	if (k->away & bit) {
		home = corq_table_other(t, b, k->tag[i]);
		t->bucket[home].n_over--;
	}
	k->home &= (uint8_t)~bit;
	k->away &= (uint8_t)~bit;
	return home;
}

/* Carries out the chain that ends in q[at], a bucket with room; returns the way freed at its start.
 */
static uint32_t
shift_chain(struct corq_table *t, const struct node *q, uint32_t at, uint32_t *start)
{
	uint32_t way = (uint32_t)__builtin_ctz(free_ways(&t->bucket[q[at].bucket]));

	while (q[at].parent != at) {
		uint32_t from = q[q[at].parent].bucket, i = q[at].slot;
		uint32_t home = drop(t, from, i);

		put(t, q[at].bucket, way, home, t->bucket[from].tag[i], t->bucket[from].val[i]);
		at = q[at].parent;
		way = i;
	}
	*start = q[at].bucket;
	return way;
}

static CORQ_NOINLINE int
insert_slow(struct corq_table *t, uint32_t home, uint32_t tag, uint32_t val)
{
	struct node q[SEARCH_NODES];
	uint32_t n = 2, start, way;

	q[0] = (struct node){.bucket = home, .parent = 0};
	q[1] = (struct node){.bucket = corq_table_other(t, home, tag), .parent = 1};
	if (q[1].bucket == home)
		return -ENOSPC; /* one bucket in all */
	for (uint32_t at = 0; at < n; at++) {
		const struct corq_table_bucket *b = &t->bucket[q[at].bucket];

		for (uint8_t i = 0; i < CORQ_TABLE_WAYS && n < SEARCH_NODES; i++) {
			uint32_t to = corq_table_other(t, q[at].bucket, b->tag[i]);

			q[n] = (struct node){.bucket = to, .parent = (uint16_t)at, .slot = i};
			if (free_ways(&t->bucket[to])) {
				way = shift_chain(t, q, n, &start);
				put(t, start, way, home, tag, val);
				t->count++;
				return 0;
			}
			n++;
		}
	}
	return -ENOSPC;
}

int
corq_table_insert(struct corq_table *t, uint64_t hash, uint32_t val)
{
	uint32_t home = corq_table_home(t, hash), tag = (uint32_t)hash, b = home;
	uint32_t ways = free_ways(&t->bucket[b]);

	CORQ_ASSERT_SLOW(val != CORQ_NONE);
	if (CORQ_UNLIKELY(ways == 0)) {
		b = corq_table_other(t, home, tag);
		ways = free_ways(&t->bucket[b]);
		if (CORQ_UNLIKELY(ways == 0))
			return insert_slow(t, home, tag, val);
	}
	put(t, b, (uint32_t)__builtin_ctz(ways), home, tag, val);
	t->count++;
	return 0;
}

/* The way of bucket b, among those of `used`, that holds tag and val; CORQ_NONE: none does. */
static CORQ_ALWAYS_INLINE uint32_t
way_of(const struct corq_table_bucket *b, uint32_t used, uint32_t tag, uint32_t val)
{
	for (uint32_t hits = corq_table_match(b, tag) & used; hits != 0; hits &= hits - 1) {
		uint32_t i = (uint32_t)__builtin_ctz(hits);

		if (b->val[i] == val)
			return i;
	}
	return CORQ_NONE;
}

/* Where hash and val are; false: nowhere. */
static CORQ_ALWAYS_INLINE bool
locate(const struct corq_table *t, uint64_t hash, uint32_t val, uint32_t *bucket, uint32_t *way)
{
	uint32_t b = corq_table_home(t, hash), tag = (uint32_t)hash;

	*bucket = b;
	*way = way_of(&t->bucket[b], t->bucket[b].home, tag, val);
	if (CORQ_LIKELY(*way != CORQ_NONE))
		return true;
	if (t->bucket[b].n_over == 0)
		return false;
	*bucket = b = corq_table_other(t, b, tag);
	*way = way_of(&t->bucket[b], t->bucket[b].away, tag, val);
	return *way != CORQ_NONE;
}

bool
corq_table_remove(struct corq_table *t, uint64_t hash, uint32_t val)
{
	uint32_t b, i;

	if (!locate(t, hash, val, &b, &i))
		return false;
	drop(t, b, i);
	t->count--;
	return true;
}

bool
corq_table_replace(struct corq_table *t, uint64_t hash, uint32_t old_val, uint32_t new_val)
{
	uint32_t b, i;

	CORQ_ASSERT_SLOW(new_val != CORQ_NONE);
	if (!locate(t, hash, old_val, &b, &i))
		return false;
	t->bucket[b].val[i] = new_val;
	return true;
}
