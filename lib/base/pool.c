/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c - the cold part of pool.h: set-up, and the poison of debug builds. Called by the core that
 * owns the pool.
 *
 * Poison: the bytes behind a free object's link hold a pattern (a run of one byte could be
 * somebody's data). When it is handed out they must still, and become USED_BYTE, so that an object
 * freed without having been written is not taken for a free one. A free finds a second free by the
 * whole rest being the pattern; objects with less than 8 bytes beside the link are too small to
 * tell and go unchecked.
 */
#include "base/pool.h"

#define USED_BYTE  0xa5
#define LINK_BYTES sizeof(uint32_t)

/* The inverse of odd v modulo 2^32: Newton's iteration, each step doubles the right bits (from 3).
 */
static uint32_t
inverse_odd(uint32_t v)
{
	uint32_t x = v;

	for (int i = 0; i < 4; i++)
		x *= 2 - v * x;
	return x;
}

void
corq_pool_init(struct corq_pool *p, void *mem, uint32_t n, uint32_t stride)
{
	CORQ_ASSERT(n < CORQ_NONE);
	CORQ_ASSERT(stride >= LINK_BYTES && stride % 4 == 0);
	CORQ_ASSERT((uintptr_t)mem % 4 == 0);
	*p = (struct corq_pool){
		.base = mem,
		.stride = stride,
		.n = n,
		.n_free = n,
		.free_head = CORQ_NONE,
		.defer_head = CORQ_NONE,
		.defer_tail = CORQ_NONE,
		.shift = (uint32_t)__builtin_ctz(stride),
	};
	p->inv = inverse_odd(stride >> p->shift);
}

static inline uint8_t
free_byte(size_t i)
{
	return (uint8_t)(0xdb ^ i * 29);
}

static bool
all_free_bytes(const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (b[i] != free_byte(i))
			return false;
	return true;
}

void
corq_pool_poison(const struct corq_pool *p, uint32_t idx)
{
	uint8_t *rest = (uint8_t *)corq_pool_at(p, idx) + LINK_BYTES;
	size_t len = p->stride - LINK_BYTES;

	CORQ_ASSERT(len < 8 || !all_free_bytes(rest, len)); /* else: freed twice */
	for (size_t i = 0; i < len; i++)
		rest[i] = free_byte(i);
}

void
corq_pool_unpoison(const struct corq_pool *p, uint32_t idx)
{
	uint8_t *rest = (uint8_t *)corq_pool_at(p, idx) + LINK_BYTES;
	size_t len = p->stride - LINK_BYTES;

	CORQ_ASSERT(all_free_bytes(rest, len)); /* else: written after its free */
	memset(rest, USED_BYTE, len);
}
