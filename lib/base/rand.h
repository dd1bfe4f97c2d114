/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rand.h - seeded pseudo-random numbers for tests, link models and jitter; not for secrets.
 *
 * The generator is xoshiro256** of Blackman and Vigna, its state filled by splitmix64 from one
 * 64-bit seed: the same seed gives the same numbers on every machine. One state a user.
 */
#ifndef CORQ_BASE_RAND_H
#define CORQ_BASE_RAND_H

#include "base/base.h"

struct corq_rand {
	uint64_t s[4];
};

static inline uint64_t
corq_splitmix64(uint64_t *x)
{
	uint64_t z = *x += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline void
corq_rand_seed(struct corq_rand *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = corq_splitmix64(&seed);
}

static inline uint64_t
corq_rand_u64(struct corq_rand *r)
{
	uint64_t *s = r->s, x = s[1] * 5, t = s[1] << 17;

	x = (x << 7 | x >> 57) * 9;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return x;
}

/* Uniform in [0, n) without bias; 0 when n is 0. Lemire's multiplication with rejection. */
static inline uint64_t
corq_rand_below(struct corq_rand *r, uint64_t n)
{
	unsigned __int128 m;

	if (n == 0)
		return 0;
	do
		m = (unsigned __int128)corq_rand_u64(r) * n;
	while ((uint64_t)m < n && (uint64_t)m < -n % n);
	return (uint64_t)(m >> 64);
}

#endif
