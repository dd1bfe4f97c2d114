/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addresses.c - see addresses.h. A range is refused as a whole for one address that no host can
 * have: a peer that obeys RFC 1122 3.2.1.3 drops what comes from there, silently.
 */
#include "ctl/addresses.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct block {
	uint32_t first, last;
	const char *what;
};

static const struct block unfit[] = {
	{0x00000000, 0x00ffffff, "an address of no host (0.0.0.0/8)"},
	{0x7f000000, 0x7fffffff, "a loopback address (127.0.0.0/8)"},
	{0xe0000000, 0xefffffff, "a multicast address (224.0.0.0/4)"},
	{0xffffffff, 0xffffffff, "the broadcast address"},
};

bool
corq_config_is_loop(const struct corq_config *c)
{
	return !c->dev || strcmp(c->dev, "loop") == 0;
}

bool
corq_config_is_none(const struct corq_config *c)
{
	return c->dev && strcmp(c->dev, "none") == 0;
}

static uint32_t
v4_of(const struct corq_addr *a)
{
	return be32toh(a->w[3]);
}

/* Networks of one or two addresses (RFC 3021) have neither of these. */
static const char *
end_of_network(uint32_t a, const struct corq_addr_range *net)
{
	uint32_t host = net->prefix_len >= 31 ? 0 : ~0u >> net->prefix_len;

	if (host == 0 || ((a ^ v4_of(&net->first)) & ~host) != 0)
		return NULL;
	return (a & host) == 0      ? "the network address of --ip's network"
	       : (a & host) == host ? "the broadcast address of --ip's network"
				    : NULL;
}

const char *
corq_addr_unfit(const struct corq_addr *a, const struct corq_addr_range *net)
{
	uint32_t v4 = v4_of(a);

	if (!corq_addr_is_v4(a))
		return NULL;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(unfit); i++)
		if (v4 >= unfit[i].first && v4 <= unfit[i].last)
			return unfit[i].what;
	return end_of_network(v4, net);
}

/* The first of a range's addresses that no host can have. Those at the ends of its network are its
 * own ends. */
static const char *
unfit_in_range(const struct corq_addr_range *r, struct corq_addr *at)
{
	const char *what = corq_addr_unfit(&r->first, r);
	uint32_t first = v4_of(&r->first), last = v4_of(&r->last);

	*at = r->first;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(unfit) && !what; i++) {
		if (unfit[i].first < first || unfit[i].first > last)
			continue;
		at->w[3] = htobe32(unfit[i].first);
		what = unfit[i].what;
	}
	if (what)
		return what;
	*at = r->last;
	return corq_addr_unfit(&r->last, r);
}

static bool
is_prefix(const char *text)
{
	char *end;
	long len = strtol(text, &end, 10);

	return isdigit((unsigned char)text[0]) && *end == '\0' && len >= 1 && len <= 32;
}

/* The first address alone, to say what is wrong with the rest. */
static bool
parse_first(const char *text, struct corq_addr *out)
{
	char first[CORQ_ADDR_STRLEN];
	size_t len = strcspn(text, "-/");

	if (len >= sizeof(first))
		return false;
	memcpy(first, text, len);
	first[len] = '\0';
	return corq_addr_parse(first, out) == 0;
}

static int
parse_side(const char *text, const char *what, struct corq_addr_range *r, char *err, size_t err_len)
{
	const char *slash = strchr(text, '/'), *why;
	struct corq_addr at;
	char bad[CORQ_ADDR_STRLEN];
	int rc = -EINVAL;

	if (!parse_first(text, &at)) {
		/* below */
	} else if (!corq_addr_is_v4(&at)) {
		snprintf(err, err_len,
			"%s '%.60s': IPv6 needs neighbour discovery, which corq does not have yet; "
			"give an IPv4 address",
			what, text);
		return -EINVAL;
	} else if (slash && !is_prefix(slash + 1)) {
		snprintf(err, err_len, "%s '%.60s': the prefix is a number from 1 to 32", what,
			text);
		return -EINVAL;
	} else if (slash) {
		rc = corq_addr_parse_range(text, r);
	}
	if (rc == -ERANGE) {
		snprintf(err, err_len, "%s '%.60s': the range leaves the network of its prefix",
			what, text);
		return -EINVAL;
	}
	if (rc) {
		snprintf(err, err_len,
			"%s '%.60s': give an address with its prefix, A/len, or a range, A-B/len",
			what, text);
		return -EINVAL;
	}
	why = unfit_in_range(r, &at);
	if (!why)
		return 0;
	snprintf(err, err_len, "%s '%.60s': %s is %s; give a host's address", what, text,
		corq_addr_format(&at, bad, sizeof(bad)), why);
	return -EINVAL;
}

/* Both ends of loop would answer for an address that both have. */
static bool
overlap(const struct corq_addr_range *a, const struct corq_addr_range *b)
{
	return memcmp(a->first.b, b->last.b, 16) <= 0 && memcmp(b->first.b, a->last.b, 16) <= 0;
}

int
corq_addresses_parse(
	const struct corq_config *c, struct corq_addr_range range[2], char *err, size_t err_len)
{
	struct corq_addr_range *a = &range[CORQ_SIDE_A], *b = &range[CORQ_SIDE_B];
	int rc;

	if (corq_config_is_none(c))
		return 0;
	if (!c->ip && !corq_config_is_loop(c)) {
		snprintf(err, err_len,
			"--ip is missing: device %s needs an address of its own, as "
			"--ip 10.0.0.2/24",
			c->dev);
		return -EINVAL;
	}
	rc = parse_side(c->ip ? c->ip : "10.0.0.1/16", "--ip", a, err, err_len);
	if (rc || !corq_config_is_loop(c))
		return rc;
	rc = parse_side(c->peer_ip ? c->peer_ip : "10.0.128.1/16", "--peer-ip", b, err, err_len);
	if (rc)
		return rc;
	if (!corq_addr_in_prefix(&b->first, &a->first, a->prefix_len)) {
		snprintf(err, err_len,
			"--peer-ip: not on the link of --ip; both ends of loop share "
			"one prefix");
		return -EINVAL;
	}
	if (overlap(a, b)) {
		snprintf(err, err_len,
			"--ip and --peer-ip: both ends of loop have the same address; give each "
			"its own");
		return -EINVAL;
	}
	return 0;
}
