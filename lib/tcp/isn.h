/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * isn.h - initial sequence numbers, timestamp offsets and the cache of tuples just left.
 *
 * ISN = SipHash(tuple, secret) + a 4.096 us clock (RFC 6528); the other half of the same hash is
 * the tuple's timestamp offset (RFC 7323 5.4), so both can be computed again from the tuple. The
 * clock alone is too slow when a tuple comes back within one timestamp tick or after a fast
 * transfer: a bounded direct-mapped cache remembers the last SND.NXT of tuples that this core
 * closed, and the next ISN of that tuple stands above it, so that the peer's TIME_WAIT takes our
 * SYN (RFC 9293 3.6.1, RFC 6191). A cache miss costs nothing but that guarantee.
 * One thread, the core's.
 */
#ifndef CORQ_TCP_ISN_H
#define CORQ_TCP_ISN_H

#include "base/siphash.h"
#include "net/addr.h"

struct corq_isn_entry {
	uint32_t tag;
	uint32_t snd_nxt;
	uint32_t at_s; /* seconds: an entry older than 4 min is no entry */
};

struct corq_isn {
	struct corq_sipkey key;
	struct corq_isn_entry *cache;
	uint32_t mask; /* entries - 1 */
};

size_t corq_isn_bytes(uint32_t entries); /* entries: a power of two */
/* mem: zeroed. */
void corq_isn_init(
	struct corq_isn *isn, void *mem, uint32_t entries, const struct corq_sipkey *key);
/* The ISN of a new connection of this tuple; *ts_off gets the timestamp offset. */
uint32_t corq_isn_new(
	const struct corq_isn *isn, const struct corq_key *key, uint64_t now_ns, uint32_t *ts_off);
/* The same in two steps, for who knows the tuple before the moment: the first has the cache's line
 * fetched that the second reads. */
uint64_t corq_isn_hash(const struct corq_isn *isn, const struct corq_key *key);
uint32_t corq_isn_of(const struct corq_isn *isn, uint64_t hash, uint64_t now_ns, uint32_t *ts_off);
/* The offset alone (records recompute it). */
uint32_t corq_isn_ts_off(const struct corq_isn *isn, const struct corq_key *key);
/* Remembers where a tuple's sending ended. */
void corq_isn_leave(
	struct corq_isn *isn, const struct corq_key *key, uint32_t snd_nxt, uint64_t now_ns);
/* The same for a tuple whose offset is known: no hash. */
void corq_isn_leave_off(struct corq_isn *isn, uint32_t ts_off, uint32_t snd_nxt, uint64_t now_ns);
/* Fetches the line that corq_isn_leave_off of this offset will write. */
static inline void
corq_isn_prefetch(const struct corq_isn *isn, uint32_t ts_off)
{
	CORQ_PREFETCH_W(&isn->cache[ts_off & isn->mask]);
}

#endif
