/* SPDX-License-Identifier: BSD-3-Clause */
/* parse_value.c - numbers, ranges, error names, durations and moments. See script.h. */
#include "script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
parse_number(struct parser *p, const char *word, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(word, &end, 0);
	if (end == word || errno != 0)
		return parser_fail(p, "'%s' is not a number", word);
	if (*end == 'k' && end[1] == '\0')
		*out *= 1000;
	else if (*end != '\0')
		return parser_fail(p, "'%s' is not a number", word);
	return true;
}

bool
parse_value(struct parser *p, const char *word, struct value *out)
{
	const char *dots = strstr(word, "..");
	char lo[32];

	out->kind = VALUE_RANGE;
	if (!strcmp(word, "*")) {
		out->kind = VALUE_ANY;
		return true;
	}
	if (!strcmp(word, "last") || !strcmp(word, "now")) {
		out->kind = *word == 'l' ? VALUE_LAST : VALUE_NOW;
		return true;
	}
	if (*word == '@') {
		out->kind = VALUE_ABS;
		return parse_number(p, word + 1, &out->lo) && (out->hi = out->lo, true);
	}
	if (!strncmp(word, ">=", 2)) {
		out->hi = INT64_MAX;
		return parse_number(p, word + 2, &out->lo);
	}
	if (!strncmp(word, "<=", 2)) {
		out->lo = INT64_MIN;
		return parse_number(p, word + 2, &out->hi);
	}
	if (dots != NULL && (size_t)(dots - word) < sizeof(lo)) {
		memcpy(lo, word, (size_t)(dots - word));
		lo[dots - word] = '\0';
		return parse_number(p, lo, &out->lo) && parse_number(p, dots + 2, &out->hi);
	}
	return parse_number(p, word, &out->lo) && (out->hi = out->lo, true);
}

bool
parse_errno(const char *word, int64_t *out)
{
	static const struct {
		const char *name;
		int value;
	} names[] = {{"ECONNREFUSED", ECONNREFUSED}, {"ECONNRESET", ECONNRESET},
		{"ETIMEDOUT", ETIMEDOUT}, {"EHOSTUNREACH", EHOSTUNREACH},
		{"ENETUNREACH", ENETUNREACH}, {"ECONNABORTED", ECONNABORTED}, {"EPIPE", EPIPE},
		{"ENOTCONN", ENOTCONN}, {"ENOBUFS", ENOBUFS}, {"EADDRINUSE", EADDRINUSE},
		{"EADDRNOTAVAIL", EADDRNOTAVAIL}, {"EMFILE", EMFILE}, {"EBUSY", EBUSY},
		{"EINVAL", EINVAL}, {"EBADF", EBADF}, {"EAGAIN", EAGAIN},
		{"EINPROGRESS", EINPROGRESS}, {"EOPNOTSUPP", EOPNOTSUPP}};

	if (*word != '-')
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(word + 1, names[i].name)) {
			*out = -names[i].value;
			return true;
		}
	}
	return false;
}

/* A number with a unit: ns, us, ms, s; without one it is seconds. */
bool
parse_duration(struct parser *p, const char *s, int64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"d", 86400e9}};
	char *end;
	double v = strtod(s, &end);

	for (size_t i = 0; end != s && i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(end, units[i].unit)) {
			*ns = (int64_t)(v * units[i].ns + 0.5);
			return true;
		}
	}
	return parser_fail(p, "'%s' is not a time", s);
}

/* [+]T, [+]T..T, either with ~TOLERANCE. Changes word. */
bool
parse_time(struct parser *p, char *word, struct stmt *st)
{
	char *tol = strchr(word, '~'), *dots = strstr(word, "..");

	st->has_time = true;
	if (*word == '+') {
		st->relative = true;
		word++;
	}
	if (tol != NULL) {
		*tol = '\0';
		if (!parse_duration(p, tol + 1, &st->tol_ns))
			return false;
	}
	if (dots != NULL) {
		*dots = '\0';
		if (!parse_duration(p, dots + 2, &st->until_ns))
			return false;
	}
	if (!parse_duration(p, word, &st->at_ns))
		return false;
	if (dots != NULL && st->until_ns < st->at_ns)
		return parser_fail(p, "the range of time ends before it begins");
	return true;
}
