/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * body.h - reads the body of a request behind its header, counts it and forgets it; with its
 * SHA-256 if that is wanted. Pure.
 *
 * Limits: `max` bytes of body (413); 8 KiB between two bytes of body: chunk lines, their
 * extensions and trailer fields (400). A chunk that would be too long is refused at its size.
 * llhttp takes chunks apart; its loose build does not look at the line end behind a chunk's bytes
 * nor at the form of trailer lines, so that is checked here.
 */
#ifndef CORQ_HTTPD_BODY_H
#define CORQ_HTTPD_BODY_H

#include "httpd/request.h"

#include <openssl/evp.h>

struct httpd_body {
	llhttp_t parser;
	EVP_MD_CTX *digest; /* NULL: not wanted */
	uint64_t bytes, max;
	uint64_t chunk_left;      /* bytes to come of the chunk under way */
	uint32_t between;         /* bytes since the last byte of body */
	uint16_t status;          /* 0: unfinished; 200: complete; else the answer */
	uint8_t line_end;         /* bytes of CRLF to come behind a chunk */
	bool trailer;             /* the last chunk's size was read */
	struct httpd_lines lines; /* of the trailer */
};

void httpd_body_settings(llhttp_settings_t *settings);
/* req: complete, with a body. digest: initialised, or NULL. */
void httpd_body_start(struct httpd_body *body, const struct httpd_request *req,
	llhttp_settings_t *settings, uint64_t max, EVP_MD_CTX *digest);
/* Takes bytes, returns how many; body->status tells when it is complete. */
size_t httpd_body_feed(struct httpd_body *body, const char *data, size_t len);

#endif
