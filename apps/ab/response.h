/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * response.h - follows one HTTP response through the bytes of a connection. On the core.
 *
 * llhttp reads the header, and the whole of a chunked body; a body with a length is counted down
 * here. The header that was read last is kept per core: bytes equal to it mean what it meant, as
 * the parser has no other input, so they are not parsed again (servers send the same header for
 * a second, until Date changes). A response costs the parser's 96 bytes only if it was parsed.
 *
 * Lengths count as ab counts: the body is every byte after the header, chunk headers and bytes
 * beyond the announced length included. Interim responses (1xx) are skipped. A header is at most
 * 64 KiB, with all interim ones before it. A connection is kept only if the response says
 * Keep-Alive: the request was HTTP/1.0.
 *
 * What is no HTTP is GARBAGE to its end. ab, which looks for the first blank line, would call what
 * follows it the body; so it is counted here too.
 */
#ifndef CORQ_AB_RESPONSE_H
#define CORQ_AB_RESPONSE_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AB_HEADER_MAX 65535
#define AB_CACHED_MAX 1024
#define AB_JOINED_MAX 8192 /* of a header that came in pieces, for those who print it */

enum ab_resp_mode {
	AB_RESP_HEADER, /* also the state before the first byte */
	AB_RESP_LENGTH, /* `left` bytes of the body are missing */
	AB_RESP_CHUNKED,
	AB_RESP_TO_END,  /* until the peer closes */
	AB_RESP_DONE,    /* complete; what comes is extra */
	AB_RESP_GARBAGE, /* no HTTP; status is what ab would have seen, 0 before a blank line */
};

struct ab_resp {
	uint64_t body;         /* bytes after the header */
	uint64_t left;         /* AB_RESP_LENGTH; before, and in GARBAGE: see skip_blank_line */
	uint16_t header_bytes; /* parsed of an unfinished header, and of interim ones */
	uint16_t status;
	uint8_t mode;
	bool keep;    /* the connection may carry another request */
	bool parsing; /* the parser holds a part of this response */
	bool extra;   /* bytes came after the end */
};

struct ab_resp_core {
	bool no_body;          /* the request is a HEAD */
	bool want_keep;        /* -k */
	uint32_t cached_len;   /* 0: nothing cached */
	struct ab_resp cached; /* what the cached header meant */
	char cached_header[AB_CACHED_MAX];
	llhttp_settings_t settings;
	/* Of the header that was completed by the last feed, for those who want to print it; of one
	 * that came in pieces at most AB_JOINED_MAX bytes, and of one connection at a time. */
	const char *header;
	size_t header_len;
	const struct ab_resp *joined_by;
	size_t joined_len;
	char joined[AB_JOINED_MAX];
};

void ab_resp_core_init(struct ab_resp_core *core, bool head_request, bool keepalive);
static inline void
ab_resp_start(struct ab_resp *resp)
{
	*resp = (struct ab_resp){0};
}
/*
 * Takes all of data. core->header is set when a header was completed by these bytes, else NULL.
 * The parser is the connection's, untouched between responses.
 */
void ab_resp_feed(struct ab_resp_core *core, struct ab_resp *resp, llhttp_t *parser,
	const char *data, size_t len);
/* Its header is complete, in ab's eyes. */
#define AB_RESP_HEADED 3
static inline bool
ab_resp_headed(const struct ab_resp *resp)
{
	if (resp->mode == AB_RESP_GARBAGE)
		return resp->left == AB_RESP_HEADED;
	return resp->mode != AB_RESP_HEADER;
}
/* The peer sent its FIN: was the response complete? */
bool ab_resp_complete_at_end(const struct ab_resp *resp);

#endif
