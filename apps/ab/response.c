/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * response.c - see response.h.
 */
#include "ab/response.h"

#include <string.h>

static int
pause_here(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

void
ab_resp_core_init(struct ab_resp_core *core, bool head_request, bool keepalive)
{
	memset(core, 0, sizeof(*core));
	core->no_body = head_request;
	core->want_keep = keepalive;
	llhttp_settings_init(&core->settings);
	core->settings.on_headers_complete = pause_here;
	core->settings.on_message_complete = pause_here;
}

static void
parser_start(struct ab_resp_core *core, llhttp_t *parser)
{
	llhttp_init(parser, HTTP_RESPONSE, &core->settings);
	llhttp_set_lenient_headers(parser, 1);
	llhttp_set_lenient_chunked_length(parser, 1);
	llhttp_set_lenient_keep_alive(parser, 1);
	llhttp_set_lenient_transfer_encoding(parser, 1);
}

/* The header is complete: how does the body end? (RFC 9112 6.3) */
static void
choose_mode(const struct ab_resp_core *core, struct ab_resp *resp, const llhttp_t *parser)
{
	bool said = (parser->flags & F_CONNECTION_KEEP_ALIVE) != 0;

	resp->status = parser->status_code;
	resp->left = 0;
	resp->keep = core->want_keep && said && llhttp_should_keep_alive(parser) != 0;
	if (core->no_body || resp->status == 204 || resp->status == 304) {
		resp->mode = AB_RESP_DONE;
	} else if ((parser->flags & F_CHUNKED) != 0) {
		resp->mode = AB_RESP_CHUNKED;
	} else if ((parser->flags & F_TRANSFER_ENCODING) == 0 &&
		   (parser->flags & F_CONTENT_LENGTH) != 0) {
		resp->left = parser->content_length;
		resp->mode = resp->left == 0 ? AB_RESP_DONE : AB_RESP_LENGTH;
	} else {
		resp->mode = AB_RESP_TO_END;
	}
	if (core->no_body)
		resp->keep = core->want_keep && said && (parser->flags & F_CONNECTION_CLOSE) == 0;
}

/*
 * Looks for the blank line that ends a header in ab's eyes, CRLF CRLF or LF LF; returns how many
 * bytes there are up to its end. resp->left is what is matched of it across calls: 1 LF, 2 LF
 * CR, AB_RESP_HEADED all.
 */
static size_t
skip_blank_line(struct ab_resp *resp, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (resp->left == AB_RESP_HEADED)
			return i;
		if (data[i] == '\n')
			resp->left = resp->left == 0 ? 1 : AB_RESP_HEADED;
		else
			resp->left = resp->left == 1 && data[i] == '\r' ? 2 : 0;
	}
	return len;
}

static void
feed_garbage(struct ab_resp *resp, const char *data, size_t len)
{
	resp->body += len - skip_blank_line(resp, data, len);
	if (resp->left == AB_RESP_HEADED && resp->status == 0)
		resp->status = 500; /* as ab, when it finds no status line */
}

/* A header in pieces is joined, for one connection at a time. */
static void
join(struct ab_resp_core *core, const struct ab_resp *resp, bool first, const char *data,
	size_t len)
{
	size_t room;

	if (first && (core->joined_by == NULL || core->joined_by == resp)) {
		core->joined_by = resp;
		core->joined_len = 0;
	}
	if (core->joined_by != resp)
		return;
	room = AB_JOINED_MAX - core->joined_len;
	len = len < room ? len : room;
	memcpy(core->joined + core->joined_len, data, len);
	core->joined_len += len;
}

/* From here to the end it is garbage; what was fed last is counted by feed_garbage. */
static size_t
not_http(struct ab_resp_core *core, struct ab_resp *resp, const llhttp_t *parser)
{
	if (core->joined_by == resp)
		core->joined_by = NULL;
	resp->mode = AB_RESP_GARBAGE;
	resp->status = parser->status_code;
	return 0;
}

/* The header is complete; data: all of it, NULL: it came in pieces. */
static void
note_header(struct ab_resp_core *core, const struct ab_resp *resp, const char *data, size_t len)
{
	if (data == NULL && core->joined_by == resp) {
		core->header = core->joined;
		core->header_len = core->joined_len;
		core->joined_by = NULL;
	}
	if (data == NULL)
		return;
	core->header = data;
	core->header_len = len;
	if (resp->mode != AB_RESP_CHUNKED && len <= AB_CACHED_MAX) {
		memcpy(core->cached_header, data, len);
		core->cached_len = (uint32_t)len;
		core->cached = *resp;
		core->cached.parsing = false;
	}
}

/* Parses header bytes; returns how many belong to the header. */
static size_t
feed_header_slow(struct ab_resp_core *core, struct ab_resp *resp, llhttp_t *parser,
	const char *data, size_t len)
{
	bool whole = !resp->parsing;
	size_t used;

	if (!resp->parsing) {
		parser_start(core, parser);
		resp->parsing = true;
	}
	switch (llhttp_execute(parser, data, len)) {
	case HPE_OK:
		used = len;
		break;
	case HPE_PAUSED:
		used = (size_t)(llhttp_get_error_pos(parser) - data);
		break;
	default:
		return not_http(core, resp, parser);
	}
	if (resp->header_bytes + used > AB_HEADER_MAX)
		return not_http(core, resp, parser);
	if (llhttp_get_errno(parser) != HPE_PAUSED || !whole)
		join(core, resp, whole, data, used);
	resp->header_bytes += (uint16_t)used;
	if (llhttp_get_errno(parser) != HPE_PAUSED) {
		skip_blank_line(resp, data, used);
		return used;
	}
	if (parser->status_code / 100 == 1 && parser->status_code != 101) {
		resp->parsing = false;
		resp->left = 0;
		return used;
	}
	choose_mode(core, resp, parser);
	if (resp->mode == AB_RESP_CHUNKED)
		llhttp_resume(parser);
	note_header(core, resp, whole ? data : NULL, used);
	return used;
}

static size_t
feed_header(struct ab_resp_core *core, struct ab_resp *resp, llhttp_t *parser, const char *data,
	size_t len)
{
	size_t cached = core->cached_len;

	if (!resp->parsing && cached != 0 && len >= cached &&
		memcmp(data, core->cached_header, cached) == 0) {
		*resp = core->cached;
		core->header = data;
		core->header_len = cached;
		return cached;
	}
	return feed_header_slow(core, resp, parser, data, len);
}

static void
feed_chunked(struct ab_resp *resp, llhttp_t *parser, const char *data, size_t len)
{
	switch (llhttp_execute(parser, data, len)) {
	case HPE_OK:
		break;
	case HPE_PAUSED:
		resp->mode = AB_RESP_DONE;
		resp->extra = llhttp_get_error_pos(parser) != data + len;
		break;
	default:
		resp->mode = AB_RESP_GARBAGE;
		resp->left = AB_RESP_HEADED;
		break;
	}
	resp->body += len;
}

static void
feed_body(struct ab_resp *resp, llhttp_t *parser, const char *data, size_t len)
{
	switch ((enum ab_resp_mode)resp->mode) {
	case AB_RESP_LENGTH:
		resp->body += len;
		if (len < resp->left) {
			resp->left -= len;
			return;
		}
		resp->extra = len > resp->left;
		resp->left = 0;
		resp->mode = AB_RESP_DONE;
		return;
	case AB_RESP_CHUNKED:
		feed_chunked(resp, parser, data, len);
		return;
	case AB_RESP_TO_END:
		resp->body += len;
		return;
	case AB_RESP_DONE:
		resp->body += len;
		resp->extra = true;
		return;
	default:
		feed_garbage(resp, data, len);
		return;
	}
}

void
ab_resp_feed(struct ab_resp_core *core, struct ab_resp *resp, llhttp_t *parser, const char *data,
	size_t len)
{
	core->header = NULL;
	while (len > 0 && resp->mode == AB_RESP_HEADER) {
		size_t used = feed_header(core, resp, parser, data, len);

		data += used;
		len -= used;
	}
	if (len > 0)
		feed_body(resp, parser, data, len);
}

bool
ab_resp_complete_at_end(const struct ab_resp *resp)
{
	return resp->mode == AB_RESP_DONE || resp->mode == AB_RESP_TO_END;
}
