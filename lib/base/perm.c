/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perm.c - the keyed permutation. Pure function, called per connect at most; one short SipHash and
 * six multiplicative rounds a turn of the walk.
 *
 * The two halves need not be of one width: each round changes one half by a function of the other,
 * which can be undone whatever the function is. Walking on from a number >= n ends, because the
 * cycle of the larger permutation leads back to i < n at the latest.
 */
#include "base/perm.h"

#define ROUND_PAIRS 3

static inline uint32_t
round_fn(uint32_t half, uint64_t round_key)
{
	uint64_t z = (half + round_key) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 32 ^ round_key) * 0xd6e8feb86659fd93ull;
	return (uint32_t)(z >> 32);
}

uint32_t
corq_perm(const struct corq_sipkey *key, uint64_t tweak, uint32_t n, uint32_t i)
{
	uint64_t in[2] = {tweak, n}, seed = corq_siphash13(key, in, sizeof(in));
	uint64_t last = n ? n - 1 : UINT32_MAX;
	uint32_t bits = last ? 64 - (uint32_t)__builtin_clzll(last) : 1;
	uint32_t lo_bits = bits - bits / 2;
	uint32_t hi_mask = (1u << bits / 2) - 1, lo_mask = (1u << lo_bits) - 1;

	CORQ_ASSERT(i <= last);
	do {
		uint32_t hi = i >> lo_bits, lo = i & lo_mask;
		uint64_t k = seed;

		for (int r = 0; r < ROUND_PAIRS; r++, k += key->k1 | 1) {
			hi ^= round_fn(lo, k) & hi_mask;
			lo ^= round_fn(hi, ~k) & lo_mask;
		}
		i = hi << lo_bits | lo;
	} while (i > last);
	return i;
}
