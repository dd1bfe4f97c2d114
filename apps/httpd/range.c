/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * range.c - see range.h.
 */
#include "httpd/range.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Digits, of which there must be one; a number that is too large is the largest. */
static bool
take_number(const char **at, uint64_t *out)
{
	const char *p = *at;
	uint64_t n = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		unsigned digit = (unsigned)(*p - '0');

		n = n > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n * 10 + digit;
	}
	if (p == *at)
		return false;
	*at = p;
	*out = n;
	return true;
}

static void
skip_blanks(const char **at)
{
	*at += strspn(*at, " \t");
}

/* One of "first-last", "first-", "-length". False: it is none. len 0: not satisfiable. */
static bool
take_spec(const char **at, uint64_t size, struct httpd_range *range)
{
	uint64_t first, last = UINT64_MAX;

	if (**at == '-') {
		++*at;
		if (!take_number(at, &last))
			return false;
		range->len = last < size ? last : size;
		range->first = size - range->len;
		return true;
	}
	if (!take_number(at, &first) || *(*at)++ != '-')
		return false;
	if (**at >= '0' && **at <= '9' && (!take_number(at, &last) || last < first))
		return false;
	if (last >= size)
		last = size - 1;
	range->first = first;
	range->len = first < size ? last - first + 1 : 0;
	return true;
}

static bool
overlaps(const struct httpd_ranges *ranges, const struct httpd_range *with)
{
	for (unsigned i = 0; i < ranges->n; i++) {
		const struct httpd_range *r = &ranges->r[i];

		if (with->first < r->first + r->len && r->first < with->first + with->len)
			return true;
	}
	return false;
}

enum httpd_range_result
httpd_range_parse(const char *value, uint64_t size, struct httpd_ranges *ranges)
{
	unsigned specs = 0;

	ranges->n = 0;
	if (size == 0 || strncasecmp(value, "bytes=", 6) != 0)
		return HTTPD_RANGE_WHOLE;
	for (const char *at = value + 6;; at++) {
		struct httpd_range range;

		skip_blanks(&at);
		if (*at != ',' && *at != '\0') { /* lists may have empty elements */
			if (!take_spec(&at, size, &range) || ++specs > HTTPD_RANGES_MAX)
				return HTTPD_RANGE_WHOLE;
			if (range.len != 0 && overlaps(ranges, &range))
				return HTTPD_RANGE_WHOLE;
			if (range.len != 0)
				ranges->r[ranges->n++] = range;
			skip_blanks(&at);
		}
		if (*at == '\0')
			break;
		if (*at != ',')
			return HTTPD_RANGE_WHOLE;
	}
	if (specs == 0)
		return HTTPD_RANGE_WHOLE;
	return ranges->n != 0 ? HTTPD_RANGE_PART : HTTPD_RANGE_NONE;
}
