/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - see request.h.
 */
#include "httpd/request.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static struct httpd_request *
of(llhttp_t *parser)
{
	return (struct httpd_request *)(void *)((char *)parser -
						offsetof(struct httpd_request, parser));
}

static int
on_url(llhttp_t *parser, const char *at, size_t len)
{
	struct httpd_request *req = of(parser);

	if (len > HTTPD_URL_MAX - (size_t)req->url_len) {
		req->status = 414;
		return HPE_USER;
	}
	memcpy(req->url + req->url_len, at, len);
	req->url_len += (uint16_t)len;
	return 0;
}

/* Only "host" matters: keep the first five bytes of each name. */
static int
on_field(llhttp_t *parser, const char *at, size_t len)
{
	struct httpd_request *req = of(parser);

	for (size_t i = 0; i < len && req->field_len < sizeof(req->field); i++)
		req->field[req->field_len++] = at[i];
	return 0;
}

static int
on_field_complete(llhttp_t *parser)
{
	struct httpd_request *req = of(parser);

	if (req->field_len == 4 && strncasecmp(req->field, "host", 4) == 0 && req->hosts < 2)
		req->hosts++;
	req->field_len = 0;
	return 0;
}

static int
on_complete(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

void
httpd_request_settings(llhttp_settings_t *settings)
{
	llhttp_settings_init(settings);
	settings->on_url = on_url;
	settings->on_header_field = on_field;
	settings->on_header_field_complete = on_field_complete;
	settings->on_headers_complete = on_complete;
}

void
httpd_request_start(struct httpd_request *req, const llhttp_settings_t *settings)
{
	memset(req, 0, offsetof(struct httpd_request, url));
	llhttp_init(&req->parser, HTTP_REQUEST, settings);
}

static uint16_t
judge(const struct httpd_request *req)
{
	const llhttp_t *p = &req->parser;

	if (p->http_major != 1 || p->http_minor > 1)
		return 505;
	if (req->hosts > 1 || (p->http_minor == 1 && req->hosts == 0))
		return 400;
	if (p->method != HTTP_GET && p->method != HTTP_HEAD)
		return 405;
	if ((p->flags & F_TRANSFER_ENCODING) != 0)
		return 400;
	if ((p->flags & F_CONTENT_LENGTH) != 0 && p->content_length > HTTPD_BODY_MAX)
		return 413;
	return 200;
}

size_t
httpd_request_feed(struct httpd_request *req, const char *data, size_t len)
{
	size_t room = HTTPD_HEADER_MAX - req->bytes;
	llhttp_errno_t rc = llhttp_execute(&req->parser, data, len < room ? len : room);
	size_t used = len < room ? len : room;

	if (rc == HPE_PAUSED) {
		used = (size_t)(llhttp_get_error_pos(&req->parser) - data);
		req->status = judge(req);
		req->head = req->parser.method == HTTP_HEAD;
		req->keep = llhttp_should_keep_alive(&req->parser) != 0;
		if ((req->parser.flags & F_CONTENT_LENGTH) != 0)
			req->body = req->parser.content_length;
	} else if (rc == HPE_INVALID_VERSION) {
		req->status = 505;
	} else if (rc != HPE_OK && req->status == 0) {
		req->status = 400;
	} else if (rc == HPE_OK && used == room) {
		req->status = 431;
	}
	req->bytes += (uint32_t)used;
	return used;
}

void
httpd_request_copy(struct httpd_request *to, const struct httpd_request *from)
{
	memcpy(to, from, offsetof(struct httpd_request, url) + from->url_len);
}
