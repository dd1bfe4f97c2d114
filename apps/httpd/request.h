/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h - reads one request header with llhttp, in pieces if it comes in pieces. Pure.
 *
 * Limits: 8 KiB of header (431), 2047 bytes of target (414). Answers 400 to what llhttp refuses,
 * to an HTTP/1.1 request without exactly one Host, and to a body whose end is not told by a
 * length; 405 to other methods than GET and HEAD; 413 to a body above 1 MiB; 505 to versions
 * other than 1.0 and 1.1.
 */
#ifndef CORQ_HTTPD_REQUEST_H
#define CORQ_HTTPD_REQUEST_H

#include "httpd/path.h"

#include <llhttp.h>
#include <stdbool.h>
#include <stdint.h>

#define HTTPD_HEADER_MAX 8192
#define HTTPD_BODY_MAX   (1u << 20)

struct httpd_request {
	llhttp_t parser;
	uint64_t body;   /* bytes of body that follow the header */
	uint32_t bytes;  /* of header so far */
	uint16_t status; /* 0: unfinished; 200: complete and fine; else the answer */
	uint16_t url_len;
	uint8_t field_len, hosts;
	bool head, keep;
	char field[5];
	char url[HTTPD_URL_MAX + 1]; /* last: only what is used gets copied */
};

void httpd_request_settings(llhttp_settings_t *settings);
void httpd_request_start(struct httpd_request *req, const llhttp_settings_t *settings);
/* Takes bytes of the header, returns how many; req->status tells when it is complete. */
size_t httpd_request_feed(struct httpd_request *req, const char *data, size_t len);
/* A copy that can go on with the rest of the header. */
void httpd_request_copy(struct httpd_request *to, const struct httpd_request *from);

#endif
