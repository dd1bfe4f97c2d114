/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.c - see lines.h.
 */
#include "httpd/lines.h"

#include <ctype.h>
#include <string.h>

/* Empty lines may precede the request line (RFC 9112 2.2). */
enum {
	AT_START,
	AT_REQUEST,
	AT_NAME_START,
	AT_NAME,
	AT_VALUE,
};

static bool
is_token(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool
take(struct httpd_lines *lines, char c)
{
	switch (lines->at) {
	case AT_START:
		lines->at = AT_REQUEST;
		return true;
	case AT_NAME_START:
		lines->at = AT_NAME;
		return is_token(c);
	case AT_NAME:
		if (c == ':')
			lines->at = AT_VALUE;
		return c == ':' || is_token(c);
	default:
		return true;
	}
}

static bool
end_line(struct httpd_lines *lines)
{
	if (lines->at == AT_NAME)
		return false; /* no colon */
	if (lines->at != AT_START)
		lines->at = AT_NAME_START;
	return true;
}

bool
httpd_lines_check(struct httpd_lines *lines, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = data[i];
		bool after_cr = lines->cr;

		lines->cr = c == '\r';
		if (after_cr != (c == '\n'))
			return false;
		if (c == '\n' ? !end_line(lines) : c != '\r' && !take(lines, c))
			return false;
	}
	return true;
}
