/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - see request.h.
 */
#include "httpd/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static struct httpd_request *
of(llhttp_t *parser)
{
	return (struct httpd_request *)(void *)((char *)parser -
						offsetof(struct httpd_request, parser));
}

static int
refuse(struct httpd_request *req, uint16_t status)
{
	req->status = status;
	return HPE_USER;
}

static int
on_url(llhttp_t *parser, const char *at, size_t len)
{
	struct httpd_request *req = of(parser);

	if (len > HTTPD_URL_MAX - (size_t)req->url_len)
		return refuse(req, 414);
	memcpy(req->url + req->url_len, at, len);
	req->url_len += (uint16_t)len;
	return 0;
}

/* ---- fields ---- */

static int
on_name(llhttp_t *parser, const char *at, size_t len)
{
	struct httpd_request *req = of(parser);

	for (size_t i = 0; i < len && req->name_len <= HTTPD_NAME_MAX; i++)
		req->name[req->name_len++] = at[i];
	return 0;
}

static uint8_t
find_field(const char *name, size_t len)
{
	static const char *const names[] = {
		[HTTPD_HOST] = "host",
		[HTTPD_RANGE] = "range",
		[HTTPD_IF_RANGE] = "if-range",
		[HTTPD_IF_MATCH] = "if-match",
		[HTTPD_IF_NONE_MATCH] = "if-none-match",
		[HTTPD_IF_MODIFIED] = "if-modified-since",
		[HTTPD_IF_UNMODIFIED] = "if-unmodified-since",
		[HTTPD_EXPECT] = "expect",
		[HTTPD_TRANSFER_ENCODING] = "transfer-encoding",
	};
	uint8_t i;

	_Static_assert(sizeof(names) / sizeof(names[0]) == HTTPD_FIELDS, "a name a field");
	for (i = 0; i < HTTPD_FIELDS; i++) {
		if (strlen(names[i]) == len && strncasecmp(name, names[i], len) == 0)
			break;
	}
	return i;
}

static bool
add_value(struct httpd_request *req, const char *data, size_t len)
{
	if (len > HTTPD_VALUES_MAX - 1 - (size_t)req->values_len)
		return false;
	memcpy(req->values + req->values_len, data, len);
	req->values_len += (uint16_t)len;
	return true;
}

/* A field that was there already goes on as a list, behind a copy of what it was. */
static int
on_name_complete(llhttp_t *parser)
{
	struct httpd_request *req = of(parser);
	const char *old;

	req->field = find_field(req->name, req->name_len);
	req->name_len = 0;
	req->value_start = req->values_len;
	if (req->field == HTTPD_HOST)
		req->hosts += req->hosts < 2;
	if (req->field == HTTPD_FIELDS || req->value_at[req->field] == 0)
		return 0;
	old = req->values + req->value_at[req->field] - 1;
	return add_value(req, old, strlen(old)) && add_value(req, ", ", 2) ? 0 : refuse(req, 431);
}

static int
on_value(llhttp_t *parser, const char *at, size_t len)
{
	struct httpd_request *req = of(parser);

	if (req->field == HTTPD_FIELDS || add_value(req, at, len))
		return 0;
	return refuse(req, 431);
}

/* Looked at, not kept. */
static int
take_host(struct httpd_request *req, uint16_t end)
{
	const char *host = req->values + req->value_start;

	req->values_len = req->value_start;
	if (!httpd_authority_is_right(host, (size_t)(end - req->value_start)))
		return refuse(req, 400);
	return 0;
}

static int
on_value_complete(llhttp_t *parser)
{
	struct httpd_request *req = of(parser);
	uint16_t end = req->values_len;

	if (req->field == HTTPD_FIELDS)
		return 0;
	while (end > req->value_start &&
		(req->values[end - 1] == ' ' || req->values[end - 1] == '\t'))
		end--;
	if (req->field == HTTPD_HOST)
		return take_host(req, end);
	req->values[end] = '\0';
	req->values_len = end;
	if (end + 1 >= HTTPD_VALUES_MAX)
		return refuse(req, 431);
	req->values_len++;
	req->value_at[req->field] = (uint16_t)(req->value_start + 1);
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
	settings->on_header_field = on_name;
	settings->on_header_field_complete = on_name_complete;
	settings->on_header_value = on_value;
	settings->on_header_value_complete = on_value_complete;
	settings->on_headers_complete = on_complete;
}

void
httpd_request_start(struct httpd_request *req, const llhttp_settings_t *settings)
{
	memset(req, 0, offsetof(struct httpd_request, values));
	req->field = HTTPD_FIELDS;
	llhttp_init(&req->parser, HTTP_REQUEST, settings);
}

/* ---- the whole header ---- */

const char *
httpd_request_value(const struct httpd_request *req, enum httpd_field field)
{
	return req->value_at[field] != 0 ? req->values + req->value_at[field] - 1 : NULL;
}

static uint16_t
judge(struct httpd_request *req)
{
	const char *coding = httpd_request_value(req, HTTPD_TRANSFER_ENCODING);
	const char *expect = httpd_request_value(req, HTTPD_EXPECT);
	const llhttp_t *p = &req->parser;

	if (p->http_major != 1 || p->http_minor > 1)
		return 505;
	if (req->hosts > 1 || (p->http_minor == 1 && req->hosts == 0))
		return 400;
	if (coding != NULL && (p->http_minor == 0 || coding[0] == '\0'))
		return 400;
	if (coding != NULL && strcasecmp(coding, "chunked") != 0)
		return 501;
	req->chunked = coding != NULL;
	if (expect != NULL && p->http_minor == 1) {
		if (strcasecmp(expect, "100-continue") != 0)
			return 417;
		req->expect = true;
	}
	return 200;
}

/* The header is complete; what the parser found wrong is said there. */
static void
finish(struct httpd_request *req)
{
	if ((req->parser.flags & F_CONTENT_LENGTH) != 0)
		req->body = req->parser.content_length;
	req->status = judge(req);
	req->head = req->parser.method == HTTP_HEAD;
	/* "close" counts also beside an HTTP/1.0 "keep-alive" (RFC 9112 9.3). */
	req->keep = llhttp_should_keep_alive(&req->parser) != 0 &&
		    (req->parser.flags & F_CONNECTION_CLOSE) == 0;
}

/* A method that is none of llhttp's breaks off at a character that a token may have. */
static bool
is_other_method(llhttp_t *parser, llhttp_errno_t rc)
{
	return rc == HPE_INVALID_METHOD && httpd_is_token(*llhttp_get_error_pos(parser));
}

size_t
httpd_request_feed(struct httpd_request *req, const char *data, size_t len)
{
	size_t room = HTTPD_HEADER_MAX - req->bytes, used = len < room ? len : room;
	llhttp_errno_t rc = llhttp_execute(&req->parser, data, used);

	if (rc == HPE_PAUSED) {
		used = (size_t)(llhttp_get_error_pos(&req->parser) - data);
		finish(req);
	} else if (rc == HPE_INVALID_VERSION) {
		req->status = 505;
	} else if (is_other_method(&req->parser, rc)) {
		req->status = 501;
	} else if (rc != HPE_OK && req->status == 0) {
		req->status = 400;
	} else if (rc == HPE_OK && used == room) {
		req->status = 431;
	}
	if ((rc == HPE_OK || rc == HPE_PAUSED) && !httpd_lines_check(&req->lines, data, used))
		req->status = 400;
	req->bytes += (uint32_t)used;
	return used;
}

void
httpd_request_copy(struct httpd_request *to, const struct httpd_request *from)
{
	memcpy(to, from, offsetof(struct httpd_request, values) + from->values_len);
	memcpy(to->url, from->url, from->url_len);
}

size_t
httpd_request_line(const struct httpd_request *req, char *out, size_t room)
{
	int n;

	if (req->url_len == 0)
		return (size_t)snprintf(out, room, "-");
	n = snprintf(out, room, "%s %.*s HTTP/%u.%u",
		llhttp_method_name((llhttp_method_t)req->parser.method), req->url_len, req->url,
		req->parser.http_major, req->parser.http_minor);
	return (size_t)n < room ? (size_t)n : room - 1;
}
