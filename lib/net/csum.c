/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csum.c - summing bytes for the Internet checksum: blocks of 64 with SSE2, which every x86-64 has,
 * the rest 8 bytes at a time.
 *
 * Called once a packet, and once a part of a chain, on any thread; pure. Headers and short
 * payloads take no loop at all: the bits of the length choose what is added.
 */
#include "net/csum.h"

#include <emmintrin.h>

static CORQ_ALWAYS_INLINE uint64_t
load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static CORQ_ALWAYS_INLINE __m128i
load128(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

static CORQ_ALWAYS_INLINE __m128i
add2x64(__m128i a, __m128i b)
{
	return _mm_add_epi64(a, b);
}

static CORQ_ALWAYS_INLINE uint64_t
load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* a + b with end-around carry. */
static CORQ_ALWAYS_INLINE uint64_t
add64(uint64_t a, uint64_t b)
{
	uint64_t s = a + b;

	return s + (s < a);
}

/* The last 0..7 bytes as one little-endian number: bytes beyond the end are zero. */
static CORQ_ALWAYS_INLINE uint64_t
load_tail(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	if (n & 4) {
		v = load32(p);
		p += 4;
	}
	if (n & 2) {
		uint16_t w;

		memcpy(&w, p, sizeof(w));
		v |= (uint64_t)w << (n & 4) * 8;
		p += 2;
	}
	if (n & 1)
		v |= (uint64_t)*p << (n & 6) * 8;
	return v;
}

/*
 * n bytes, a multiple of 64: each 64-bit lane adds its two 32-bit halves to separate 64-bit sums,
 * so there is no carry to chase. Good for 2^32 blocks.
 */
static CORQ_ALWAYS_INLINE uint64_t
sum_blocks(const uint8_t *p, size_t n)
{
	const __m128i low = _mm_set_epi32(0, -1, 0, -1);
	__m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
	uint64_t out[2];

	for (const uint8_t *end = p + n; p < end; p += 64) {
		__m128i v0 = load128(p), v1 = load128(p + 16);
		__m128i v2 = load128(p + 32), v3 = load128(p + 48);

		a = add2x64(a, add2x64(_mm_and_si128(v0, low), _mm_and_si128(v1, low)));
		b = add2x64(b, add2x64(_mm_srli_epi64(v0, 32), _mm_srli_epi64(v1, 32)));
		c = add2x64(c, add2x64(_mm_and_si128(v2, low), _mm_and_si128(v3, low)));
		d = add2x64(d, add2x64(_mm_srli_epi64(v2, 32), _mm_srli_epi64(v3, 32)));
	}
	_mm_storeu_si128((__m128i *)out, add2x64(add2x64(a, b), add2x64(c, d)));
	return add64(out[0], out[1]);
}

uint32_t
corq_csum_partial(const void *data, size_t len, uint32_t sum)
{
	const uint8_t *p = data;
	uint64_t a = sum, b = 0;

	if (len >= 64) {
		size_t n = len & ~(size_t)63;

		b = sum_blocks(p, n);
		p += n;
	}
	if (len & 32) {
		a = add64(add64(a, load64(p)), load64(p + 8));
		b = add64(add64(b, load64(p + 16)), load64(p + 24));
		p += 32;
	}
	if (len & 16) {
		a = add64(a, load64(p));
		b = add64(b, load64(p + 8));
		p += 16;
	}
	if (len & 8) {
		a = add64(a, load64(p));
		p += 8;
	}
	return corq_csum_fold64(add64(add64(a, b), load_tail(p, len & 7)));
}

/*
 * A part that starts at an odd offset of the summed range contributes with its bytes swapped
 * (RFC 1071 2 (B)): rotating its sum by 8 bits does that.
 */
uint32_t
corq_csum_chain(const struct corq_frame *f, uint32_t off, uint32_t len, uint32_t sum)
{
	bool odd = false;

	for (; f && len; f = f->next) {
		uint32_t n, s;

		if (off >= f->len) {
			off -= f->len;
			continue;
		}
		n = CORQ_MIN(f->len - off, len);
		s = corq_csum_partial(f->data + off, n, 0);
		sum = corq_csum_add(sum, odd ? s << 8 | s >> 24 : s);
		odd ^= n & 1;
		off = 0;
		len -= n;
	}
	return sum;
}
