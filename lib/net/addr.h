/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addr.h - addresses and the connection key.
 *
 * Every address in corq is 16 bytes: IPv6 as it is, IPv4 as the mapped form ::ffff:a.b.c.d. Bytes
 * are in network order; ports are host order everywhere but on the wire.
 */
#ifndef CORQ_NET_ADDR_H
#define CORQ_NET_ADDR_H

#include "base/base.h"
#include <corq/types.h>
#include <string.h>

/* struct corq_addr (16 bytes, members b[16], w[4] as be32, q[2]) comes from <corq/types.h>. */

/* The 4-tuple from this host's point of view, padded to five words for the hash. */
struct corq_key {
	struct corq_addr raddr, laddr;
	uint16_t rport, lport; /* host order */
	uint32_t zero;
};
_Static_assert(sizeof(struct corq_key) == 40, "five words");

static inline bool
corq_addr_eq(const struct corq_addr *a, const struct corq_addr *b)
{
	return ((a->q[0] ^ b->q[0]) | (a->q[1] ^ b->q[1])) == 0;
}

static inline bool
corq_addr_is_v4(const struct corq_addr *a)
{
	return a->q[0] == 0 && a->b[8] == 0 && a->b[9] == 0 && a->b[10] == 0xff && a->b[11] == 0xff;
}

static inline bool
corq_key_is_v4(const struct corq_key *k)
{
	return corq_addr_is_v4(&k->raddr) && corq_addr_is_v4(&k->laddr);
}

/* The mapped form of four bytes in network order. */
static inline void
corq_addr_from_v4(struct corq_addr *a, const uint8_t v4[4])
{
	a->q[0] = 0;
	a->w[2] = 0xffff0000u; /* bytes 00 00 ff ff */
	memcpy(&a->w[3], v4, 4);
}

/* Bytes of the longest text of an address, with its NUL. */
#define CORQ_ADDR_STRLEN 46

/* A run of addresses inside one prefix, all of one family. */
struct corq_addr_range {
	struct corq_addr first, last;
	uint8_t prefix_len; /* in the family's own bits: 0..32 or 0..128 */
};

/* Text and arithmetic (addr.c): start-up and reports, any thread, no allocation. */

/* "10.0.0.1" or "fd00::1". Returns 0 or -EINVAL. */
int corq_addr_parse(const char *text, struct corq_addr *out);

/* Writes the shortest text of a; returns buf, or NULL when len is too small. */
char *corq_addr_format(const struct corq_addr *a, char *buf, size_t len);

/*
 * "A", "A/len", "A-B" or "A-B/len"; without a length the prefix is the address alone (then A-B
 * must be one address). Returns 0; -EINVAL for bad text, a length out of range, mixed families, or
 * B below A; -ERANGE when B is outside A's prefix.
 */
int corq_addr_parse_range(const char *text, struct corq_addr_range *out);

/* Number of addresses in r, UINT64_MAX if more. */
uint64_t corq_addr_range_count(const struct corq_addr_range *r);

/* Is a in the prefix of net? Families differ: false. */
bool corq_addr_in_prefix(
	const struct corq_addr *a, const struct corq_addr *net, uint8_t prefix_len);

/* *out = a + n. False, and *out unset, when that leaves the family's address space. */
bool corq_addr_add(struct corq_addr *out, const struct corq_addr *a, uint64_t n);

#endif
