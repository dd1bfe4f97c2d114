/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * body.c - see body.h.
 */
#include "httpd/body.h"

#include <string.h>

static struct httpd_body *
of(llhttp_t *parser)
{
	return (struct httpd_body *)(void *)((char *)parser - offsetof(struct httpd_body, parser));
}

static int
on_body(llhttp_t *parser, const char *at, size_t len)
{
	struct httpd_body *body = of(parser);

	if (len > body->max - body->bytes) {
		body->status = 413;
		return HPE_USER;
	}
	body->bytes += len;
	body->between = 0;
	if (body->digest != NULL)
		EVP_DigestUpdate(body->digest, at, len);
	if (body->chunk_left == 0)
		return 0; /* a length told */
	body->chunk_left -= len;
	if (body->chunk_left != 0)
		return 0;
	body->line_end = 2;
	return HPE_PAUSED; /* feed looks at what follows */
}

static int
on_chunk_header(llhttp_t *parser)
{
	struct httpd_body *body = of(parser);

	if (parser->content_length > body->max - body->bytes) {
		body->status = 413;
		return HPE_USER;
	}
	body->chunk_left = parser->content_length;
	if (body->chunk_left != 0)
		return 0;
	body->trailer = true;
	httpd_lines_of_fields(&body->lines);
	return HPE_PAUSED; /* feed looks at what follows */
}

static int
on_complete(llhttp_t *parser)
{
	of(parser)->status = 200;
	return HPE_PAUSED;
}

void
httpd_body_settings(llhttp_settings_t *settings)
{
	llhttp_settings_init(settings);
	settings->on_body = on_body;
	settings->on_chunk_header = on_chunk_header;
	settings->on_message_complete = on_complete;
}

void
httpd_body_start(struct httpd_body *body, const struct httpd_request *req,
	llhttp_settings_t *settings, uint64_t max, EVP_MD_CTX *digest)
{
	memset(body, 0, sizeof(*body));
	body->parser = req->parser; /* it stands behind the header, paused */
	body->parser.settings = settings;
	body->parser.upgrade = 0; /* we speak nothing else: the body is a body */
	body->max = max;
	body->digest = digest;
	llhttp_resume(&body->parser);
}

/* The CRLF behind a chunk. */
static bool
line_end_is_right(struct httpd_body *body, const char *data, size_t len)
{
	for (; len > 0 && body->line_end > 0; len--) {
		if (*data++ != "\r\n"[2 - body->line_end--])
			return false;
	}
	return true;
}

size_t
httpd_body_feed(struct httpd_body *body, const char *data, size_t len)
{
	size_t used = 0;

	while (used < len && body->status == 0) {
		bool trailer = body->trailer;
		uint64_t before = body->bytes;
		size_t n = len - used;
		llhttp_errno_t rc;

		if (!line_end_is_right(body, data + used, n)) {
			body->status = 400;
			break;
		}
		rc = llhttp_execute(&body->parser, data + used, n);
		if (rc == HPE_PAUSED) {
			n = (size_t)(llhttp_get_error_pos(&body->parser) - (data + used));
			llhttp_resume(&body->parser);
		} else if (rc != HPE_OK && body->status == 0) {
			body->status = 400;
		}
		if (trailer && !httpd_lines_check(&body->lines, data + used, n))
			body->status = 400;
		used += n;
		body->between += body->bytes == before ? (uint32_t)n : 0;
		if (body->between > HTTPD_HEADER_MAX && body->status == 0)
			body->status = 400;
	}
	return used;
}
