/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * siphash.h - SipHash, the keyed hash behind table look-ups, ISNs, ports and timestamp offsets.
 *
 * SipHash-c-d of Aumasson and Bernstein ("SipHash: a fast short-input PRF", 2012): c rounds a word,
 * d rounds at the end. 1-3 guards hash tables against chosen keys; 2-4 is for values that a peer
 * sees. Pure functions of key and bytes, any thread, same result on either byte order.
 */
#ifndef CORQ_BASE_SIPHASH_H
#define CORQ_BASE_SIPHASH_H

#include "base/base.h"

struct corq_sipkey {
	uint64_t k0, k1;
};

uint64_t corq_siphash13(const struct corq_sipkey *key, const void *data, size_t len);
uint64_t corq_siphash24(const struct corq_sipkey *key, const void *data, size_t len);

/* The four lanes of the state. */
struct corq_sip {
	uint64_t v0, v1, v2, v3;
};

static CORQ_ALWAYS_INLINE uint64_t
corq_sip_rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static CORQ_ALWAYS_INLINE void
corq_sip_round(struct corq_sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = corq_sip_rotl(s->v1, 13) ^ s->v0;
	s->v3 = corq_sip_rotl(s->v3, 16) ^ s->v2;
	s->v0 = corq_sip_rotl(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = corq_sip_rotl(s->v1, 17) ^ s->v2;
	s->v3 = corq_sip_rotl(s->v3, 21) ^ s->v0;
	s->v2 = corq_sip_rotl(s->v2, 32);
}

static CORQ_ALWAYS_INLINE void
corq_sip_init(struct corq_sip *s, const struct corq_sipkey *key)
{
	s->v0 = key->k0 ^ 0x736f6d6570736575ull;
	s->v1 = key->k1 ^ 0x646f72616e646f6dull;
	s->v2 = key->k0 ^ 0x6c7967656e657261ull;
	s->v3 = key->k1 ^ 0x7465646279746573ull;
}

/* Takes in one word with c rounds. */
static CORQ_ALWAYS_INLINE void
corq_sip_word(struct corq_sip *s, uint64_t w, int c)
{
	s->v3 ^= w;
	for (int i = 0; i < c; i++)
		corq_sip_round(s);
	s->v0 ^= w;
}

static CORQ_ALWAYS_INLINE uint64_t
corq_sip_end(struct corq_sip *s, int d)
{
	s->v2 ^= 0xff;
	for (int i = 0; i < d; i++)
		corq_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* SipHash-1-3 of the 16 bytes that w0 and w1 are when stored least significant byte first. */
static CORQ_ALWAYS_INLINE uint64_t
corq_siphash13_16(const struct corq_sipkey *key, uint64_t w0, uint64_t w1)
{
	struct corq_sip s;

	corq_sip_init(&s, key);
	corq_sip_word(&s, w0, 1);
	corq_sip_word(&s, w1, 1);
	corq_sip_word(&s, 16ull << 56, 1);
	return corq_sip_end(&s, 3);
}

/*
 * SipHash-1-3 of the 40 bytes that w[0..4] are when each is stored least significant byte first:
 * the tuple key of a look-up (two 16-byte addresses, two ports and room). Equal to corq_siphash13()
 * of these bytes.
 */
static CORQ_ALWAYS_INLINE uint64_t
corq_siphash13_40(const struct corq_sipkey *key, const uint64_t w[5])
{
	struct corq_sip s;

	corq_sip_init(&s, key);
	for (int i = 0; i < 5; i++)
		corq_sip_word(&s, w[i], 1);
	corq_sip_word(&s, 40ull << 56, 1);
	return corq_sip_end(&s, 3);
}

#endif
