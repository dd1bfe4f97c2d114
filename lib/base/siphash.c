/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * siphash.c - SipHash over any number of bytes. Pure functions, any thread; reads data bytewise
 * where it must, so no alignment is asked for.
 */
#include "base/siphash.h"

#include <string.h>

static inline uint64_t
load_le64(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	w = __builtin_bswap64(w);
#endif
	return w;
}

static CORQ_ALWAYS_INLINE uint64_t
siphash(const struct corq_sipkey *key, const uint8_t *p, size_t len, int c, int d)
{
	uint64_t last = (uint64_t)len << 56;
	struct corq_sip s;
	size_t i;

	corq_sip_init(&s, key);
	for (i = 0; i + 8 <= len; i += 8)
		corq_sip_word(&s, load_le64(p + i), c);
	for (unsigned n = 0; i < len; i++, n += 8)
		last |= (uint64_t)p[i] << n;
	corq_sip_word(&s, last, c);
	return corq_sip_end(&s, d);
}

uint64_t
corq_siphash13(const struct corq_sipkey *key, const void *data, size_t len)
{
	return siphash(key, data, len, 1, 3);
}

uint64_t
corq_siphash24(const struct corq_sipkey *key, const void *data, size_t len)
{
	return siphash(key, data, len, 2, 4);
}
