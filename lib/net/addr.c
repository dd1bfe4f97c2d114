/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addr.c - addresses as text, ranges, and arithmetic on them.
 *
 * For configuration and reports: any thread, never once a packet. Text goes through libc's
 * inet_pton and inet_ntop, so what is accepted is what every other tool accepts.
 */
#include "net/addr.h"
#include "net/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

int
corq_addr_parse(const char *text, struct corq_addr *out)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		corq_addr_from_v4(out, v4);
		return 0;
	}
	return inet_pton(AF_INET6, text, out->b) == 1 ? 0 : -EINVAL;
}

char *
corq_addr_format(const struct corq_addr *a, char *buf, size_t len)
{
	bool v4 = corq_addr_is_v4(a);
	socklen_t n = (socklen_t)CORQ_MIN(len, (size_t)CORQ_ADDR_STRLEN);

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, buf, n))
		return NULL;
	return buf;
}

/* The prefix length in the bits of the 16-byte form. */
static uint32_t
wide_len(const struct corq_addr *a, uint8_t prefix_len)
{
	return prefix_len + (corq_addr_is_v4(a) ? 96u : 0u);
}

bool
corq_addr_in_prefix(const struct corq_addr *a, const struct corq_addr *net, uint8_t prefix_len)
{
	uint32_t bits = CORQ_MIN(wide_len(net, prefix_len), 128u);
	uint32_t bytes = bits / 8, rest = bits % 8;

	if (corq_addr_is_v4(a) != corq_addr_is_v4(net) || memcmp(a->b, net->b, bytes) != 0)
		return false;
	return rest == 0 || (a->b[bytes] ^ net->b[bytes]) >> (8 - rest) == 0;
}

static uint64_t
get64(const uint8_t *p)
{
	return (uint64_t)corq_get_be32(p) << 32 | corq_get_be32(p + 4);
}

bool
corq_addr_add(struct corq_addr *out, const struct corq_addr *a, uint64_t n)
{
	uint64_t hi, lo;

	if (corq_addr_is_v4(a)) {
		uint32_t v = corq_get_be32(a->b + 12);

		if (n > UINT32_MAX - v)
			return false;
		*out = *a;
		corq_put_be32(out->b + 12, (uint32_t)(v + n));
		return true;
	}
	hi = get64(a->b);
	lo = get64(a->b + 8) + n;
	if (lo < n && ++hi == 0)
		return false;
	out->q[0] = __builtin_bswap64(hi);
	out->q[1] = __builtin_bswap64(lo);
	return true;
}

uint64_t
corq_addr_range_count(const struct corq_addr_range *r)
{
	uint64_t lo = get64(r->last.b + 8) - get64(r->first.b + 8);
	uint64_t hi = get64(r->last.b) - get64(r->first.b) -
		      (get64(r->last.b + 8) < get64(r->first.b + 8));

	return hi || lo == UINT64_MAX ? UINT64_MAX : lo + 1;
}

/* Decimal digits only, at most max. Returns -1 for anything else. */
static int
parse_len(const char *s, int max)
{
	int v = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		v = v * 10 + (*s - '0');
		if (v > max)
			return -1;
	}
	return v;
}

int
corq_addr_parse_range(const char *text, struct corq_addr_range *out)
{
	char buf[2 * CORQ_ADDR_STRLEN + 8];
	char *slash, *dash;
	struct corq_addr_range r;
	int full;

	if (strlen(text) >= sizeof(buf))
		return -EINVAL;
	strcpy(buf, text);
	slash = strchr(buf, '/');
	if (slash)
		*slash++ = '\0';
	dash = strchr(buf, '-');
	if (dash)
		*dash++ = '\0';
	if (corq_addr_parse(buf, &r.first) < 0 || corq_addr_parse(dash ? dash : buf, &r.last) < 0)
		return -EINVAL;
	full = corq_addr_is_v4(&r.first) ? 32 : 128;
	full = slash ? parse_len(slash, full) : full;
	if (full < 0 || corq_addr_is_v4(&r.first) != corq_addr_is_v4(&r.last) ||
		memcmp(r.first.b, r.last.b, 16) > 0)
		return -EINVAL;
	r.prefix_len = (uint8_t)full;
	if (!corq_addr_in_prefix(&r.last, &r.first, r.prefix_len))
		return -ERANGE;
	*out = r;
	return 0;
}
