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
	AT_METHOD,
	AT_TARGET_START,
	AT_TARGET,
	AT_VERSION,
	AT_NAME_START,
	AT_NAME,
	AT_VALUE,
};

static const char version_form[] = "HTTP/0.0"; /* 0 stands for a digit */

bool
httpd_is_token(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* No blank, no control character; what else a target may hold is path.h's matter. */
static bool
is_target(char c)
{
	return (unsigned char)c > ' ' && c != 0x7f;
}

static bool
take_version(struct httpd_lines *lines, char c)
{
	char want = version_form[lines->version_at];

	if (want == '\0')
		return false;
	lines->version_at++;
	return want == '0' ? isdigit((unsigned char)c) != 0 : c == want;
}

/* method SP target SP version: one blank each (RFC 9112 3). */
static bool
take_request(struct httpd_lines *lines, char c)
{
	switch (lines->at) {
	case AT_START:
		lines->at = AT_METHOD;
		return httpd_is_token(c);
	case AT_METHOD:
		if (c == ' ')
			lines->at = AT_TARGET_START;
		return c == ' ' || httpd_is_token(c);
	case AT_TARGET_START:
		lines->at = AT_TARGET;
		return is_target(c);
	case AT_TARGET:
		if (c == ' ')
			lines->at = AT_VERSION;
		return c == ' ' || is_target(c);
	default:
		return take_version(lines, c);
	}
}

static bool
take(struct httpd_lines *lines, char c)
{
	switch (lines->at) {
	case AT_NAME_START:
		lines->at = AT_NAME;
		return httpd_is_token(c);
	case AT_NAME:
		if (c == ':')
			lines->at = AT_VALUE;
		return c == ':' || httpd_is_token(c);
	case AT_VALUE:
		return true;
	default:
		return take_request(lines, c);
	}
}

static bool
end_line(struct httpd_lines *lines)
{
	switch (lines->at) {
	case AT_START:
	case AT_NAME_START:
		return true;
	case AT_VALUE:
		lines->at = AT_NAME_START;
		return true;
	case AT_VERSION:
		lines->at = AT_NAME_START;
		return version_form[lines->version_at] == '\0';
	default:
		return false; /* no colon, no version */
	}
}

void
httpd_lines_of_fields(struct httpd_lines *lines)
{
	*lines = (struct httpd_lines){.at = AT_NAME_START};
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
