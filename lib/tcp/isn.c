/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * isn.c - initial sequence numbers. Called by connect and by listeners, once a connection; by the
 * close of our own connects to remember where they ended. One thread, the core's.
 *
 * One SipHash-2-4 gives both numbers, because both reach the peer: lower half ISN, upper half
 * timestamp offset. The offset is the cache's index and tag as well, because connections keep it: a
 * false match has a chance of 2^-32 and only moves an ISN. A later tuple of the same place
 * overwrites.
 */
#include "tcp/isn.h"

#include "base/seq.h"

#define ISN_CLOCK_SHIFT 12    /* 4.096 us, RFC 9293 3.4.1 asks for about 4 */
#define ISN_KEEP_S      240   /* 2 MSL, the longest TIME_WAIT (RFC 9293 3.4.2) */
#define ISN_ABOVE       65537 /* one unscaled window and 2, as Linux does */

size_t
corq_isn_bytes(uint32_t entries)
{
	size_t bytes = (size_t)entries * sizeof(struct corq_isn_entry);

	return (bytes + CORQ_CACHELINE - 1) / CORQ_CACHELINE * CORQ_CACHELINE;
}

void
corq_isn_init(struct corq_isn *isn, void *mem, uint32_t entries, const struct corq_sipkey *key)
{
	CORQ_ASSERT(entries && (entries & (entries - 1)) == 0);
	isn->key = *key;
	isn->cache = mem;
	isn->mask = entries - 1;
}

static inline uint64_t
tuple_hash(const struct corq_isn *isn, const struct corq_key *key)
{
	/* Of two IPv4 addresses the last words alone differ. */
	if (CORQ_LIKELY(corq_key_is_v4(key))) {
		const uint32_t w[4] = {
			key->raddr.w[3], key->laddr.w[3], (uint32_t)key->rport << 16 | key->lport};

		return corq_siphash24(&isn->key, w, sizeof(w));
	}
	return corq_siphash24(&isn->key, key, sizeof(*key));
}

/* Seconds from 1 on: 0 is an entry never written. */
static inline uint32_t
stamp_of(uint64_t now_ns)
{
	return (uint32_t)(now_ns / CORQ_NS_PER_S) + 1;
}

uint64_t
corq_isn_hash(const struct corq_isn *isn, const struct corq_key *key)
{
	uint64_t h = tuple_hash(isn, key);

	CORQ_PREFETCH(&isn->cache[(uint32_t)(h >> 32) & isn->mask]);
	return h;
}

uint32_t
corq_isn_new(
	const struct corq_isn *isn, const struct corq_key *key, uint64_t now_ns, uint32_t *ts_off)
{
	return corq_isn_of(isn, tuple_hash(isn, key), now_ns, ts_off);
}

uint32_t
corq_isn_of(const struct corq_isn *isn, uint64_t h, uint64_t now_ns, uint32_t *ts_off)
{
	uint32_t tag = (uint32_t)(h >> 32), at_s;
	uint32_t seq = (uint32_t)h + (uint32_t)(now_ns >> ISN_CLOCK_SHIFT);
	const struct corq_isn_entry *c = &isn->cache[tag & isn->mask];

	*ts_off = tag;
	at_s = c->at_s;
	if (at_s && c->tag == tag && stamp_of(now_ns) - at_s < ISN_KEEP_S &&
		!corq_seq_gt(seq, c->snd_nxt))
		seq = c->snd_nxt + ISN_ABOVE;
	return seq;
}

uint32_t
corq_isn_ts_off(const struct corq_isn *isn, const struct corq_key *key)
{
	return (uint32_t)(tuple_hash(isn, key) >> 32);
}

void
corq_isn_leave(struct corq_isn *isn, const struct corq_key *key, uint32_t snd_nxt, uint64_t now_ns)
{
	corq_isn_leave_off(isn, corq_isn_ts_off(isn, key), snd_nxt, now_ns);
}

void
corq_isn_leave_off(struct corq_isn *isn, uint32_t ts_off, uint32_t snd_nxt, uint64_t now_ns)
{
	isn->cache[ts_off & isn->mask] = (struct corq_isn_entry){
		.tag = ts_off, .snd_nxt = snd_nxt, .at_s = stamp_of(now_ns)};
}
