/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csum.h - the Internet checksum (RFC 1071), fast and incremental.
 *
 * A running sum is a uint32_t whose value modulo 0xffff counts; words are added as they lie in
 * memory, so a folded sum is stored without swapping. Pure functions: any thread.
 */
#ifndef CORQ_NET_CSUM_H
#define CORQ_NET_CSUM_H

#include "net/addr.h"
#include "net/frame.h"
#include "net/wire.h"

/* Adds len bytes at p (any alignment; an odd last byte is padded with zero) to sum. */
uint32_t corq_csum_partial(const void *p, size_t len, uint32_t sum);

/*
 * Adds len bytes of the chain f, starting off bytes into it; parts may have odd lengths. Stops at
 * the end of the chain when that comes first.
 */
uint32_t corq_csum_chain(const struct corq_frame *f, uint32_t off, uint32_t len, uint32_t sum);

static inline uint32_t
corq_csum_add(uint32_t a, uint32_t b)
{
	uint64_t s = (uint64_t)a + b;

	return (uint32_t)s + (uint32_t)(s >> 32);
}

/* The sum in 16 bits, not complemented: what a pseudo-header field holds for an offload. */
static inline uint16_t
corq_csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* The value of a checksum field. A sum over data with its checksum in place finishes as 0. */
static inline be16
corq_csum_finish(uint32_t sum)
{
	return (be16)~corq_csum_fold(sum);
}

/* Folds a 64-bit sum of 32-bit words, or of 64-bit words with end-around carry. */
static inline uint32_t
corq_csum_fold64(uint64_t s)
{
	s = (s & UINT32_MAX) + (s >> 32);
	return (uint32_t)s + (uint32_t)(s >> 32);
}

/*
 * The pseudo-header of TCP (RFC 9293 3.1) and ICMPv6 (RFC 8200 8.1): one code path for both
 * families, because the prefix of a mapped IPv4 address adds 0xffff, which is zero here, and the
 * sum is never zero otherwise (proto is not). len is in host order.
 */
static inline uint32_t
corq_csum_pseudo(
	const struct corq_addr *src, const struct corq_addr *dst, uint32_t len, uint8_t proto)
{
	uint64_t s = (uint64_t)src->w[0] + src->w[1] + src->w[2] + src->w[3];

	s += (uint64_t)dst->w[0] + dst->w[1] + dst->w[2] + dst->w[3];
	return corq_csum_fold64(s + CORQ_BE32(len) + CORQ_BE32(proto));
}

/* The sum of an IPv4 header without options (20 bytes); its csum field counts as it stands. */
static inline uint32_t
corq_csum_ip4(const void *hdr)
{
	uint32_t w[5];

	memcpy(w, hdr, sizeof(w));
	return corq_csum_fold64((uint64_t)w[0] + w[1] + w[2] + w[3] + w[4]);
}

/* RFC 1624 (eqn. 3): the checksum field after a 16-bit word of the data went from old to new. */
static inline be16
corq_csum_update16(be16 csum, be16 old, be16 new)
{
	return (be16)~corq_csum_fold((uint16_t)~csum + (uint32_t)(uint16_t)~old + new);
}

/* The same for an aligned 32-bit field (a word at an even offset from the checksummed start). */
static inline be16
corq_csum_update32(be16 csum, be32 old, be32 new)
{
	uint64_t s = (uint64_t)(uint16_t)~csum + (be32)~old + new;

	return (be16)~corq_csum_fold(corq_csum_fold64(s));
}

#endif
