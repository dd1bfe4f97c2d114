/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.h - the form of the lines of headers and trailers, stricter than llhttp's loose build: what
 * two readers could take apart in two ways is refused (RFC 9112 2.2, 3, 5.1, 5.2, 11.2). Pure.
 *
 * Refused: CR without LF, LF without CR; a request line that is not three words with one blank
 * between, of which the last is "HTTP/" and two digits with a dot; a folded line, a blank before
 * the colon, an empty field name, a character in a name that is none of a token.
 */
#ifndef CORQ_HTTPD_LINES_H
#define CORQ_HTTPD_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero it for a new header. */
struct httpd_lines {
	uint8_t at; /* where in a line the next byte is */
	bool cr;    /* the last byte was CR */
	uint8_t version_at;
};

/* The next bytes of a header, up to its end. False: refused. */
bool httpd_lines_check(struct httpd_lines *lines, const char *data, size_t len);
/* Starts with a field, not with a request line: a trailer. */
void httpd_lines_of_fields(struct httpd_lines *lines);
/* A character of a token (RFC 9110 5.6.2). */
bool httpd_is_token(char c);

#endif
