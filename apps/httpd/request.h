/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h - reads one request header with llhttp, in pieces if it comes in pieces, and keeps
 * the fields that the server acts on. Pure. What the request is answered with is plan.h's matter.
 *
 * Limits: 8 KiB of header, 1 KiB of kept field values (431), 4095 bytes of target (414). Answers
 * 400 to what llhttp or lines.h refuses, to an HTTP/1.1 request without exactly one Host, to a Host
 * that is none, and to a body whose end is told twice or not at all; 417 to an expectation other
 * than 100-continue; 501 to methods that llhttp does not know and to a transfer coding other than
 * chunked; 505 to versions other than 1.0 and 1.1.
 */
#ifndef CORQ_HTTPD_REQUEST_H
#define CORQ_HTTPD_REQUEST_H

#include "httpd/lines.h"
#include "httpd/path.h"

#include <llhttp.h>

#define HTTPD_HEADER_MAX 8192
#define HTTPD_VALUES_MAX 1024
#define HTTPD_NAME_MAX   19 /* the longest name below */

/* Fields that are kept. A field that comes twice is kept as one list, "a, b" (RFC 9110 5.3). */
enum httpd_field {
	HTTPD_HOST,
	HTTPD_RANGE,
	HTTPD_IF_RANGE,
	HTTPD_IF_MATCH,
	HTTPD_IF_NONE_MATCH,
	HTTPD_IF_MODIFIED,
	HTTPD_IF_UNMODIFIED,
	HTTPD_EXPECT,
	HTTPD_TRANSFER_ENCODING,
	HTTPD_FIELDS,
};

struct httpd_request {
	llhttp_t parser;
	uint64_t body;   /* bytes of body that follow, if a length tells */
	uint32_t bytes;  /* of header so far */
	uint16_t status; /* 0: unfinished; 200: complete and fine; else the answer */
	uint16_t url_len, values_len;
	uint16_t value_at[HTTPD_FIELDS]; /* 1 + offset in values; 0: absent */
	uint16_t value_start;            /* of the field under way */
	uint8_t field;                   /* the field under way; HTTPD_FIELDS: none of ours */
	uint8_t name_len, hosts;
	bool head, keep, chunked, expect;
	struct httpd_lines lines;
	char name[HTTPD_NAME_MAX + 1];
	char values[HTTPD_VALUES_MAX];
	char url[HTTPD_URL_MAX + 1]; /* last: only what is used gets copied */
};

void httpd_request_settings(llhttp_settings_t *settings);
void httpd_request_start(struct httpd_request *req, const llhttp_settings_t *settings);
/* Takes bytes of the header, returns how many; req->status tells when it is complete. */
size_t httpd_request_feed(struct httpd_request *req, const char *data, size_t len);
/* A copy that can go on with the rest of the header. */
void httpd_request_copy(struct httpd_request *to, const struct httpd_request *from);
/* NUL-terminated; NULL: the field was not sent. Of a complete header only. */
const char *httpd_request_value(const struct httpd_request *req, enum httpd_field field);
/* True: a body follows the header. */
static inline bool
httpd_request_has_body(const struct httpd_request *req)
{
	return req->chunked || req->body != 0;
}
/* "GET /path HTTP/1.1" as far as it was read and fits; returns its length. */
size_t httpd_request_line(const struct httpd_request *req, char *out, size_t room);

#endif
