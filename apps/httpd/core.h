/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - what one core of the server owns, and the state of a connection. Inside httpd only.
 *
 * A connection's state is its user word, so an idle one costs the program nothing:
 *
 *   bit 0 set: bits 1-7 flags, bits 8-19 time of the last request (units of 2^28 ns), bits 20-36
 *   the file of the last response (index + 1, 0: none), bits 37-57 bytes of a request body still
 *   to skip;
 *   bit 0 clear: a pointer to a struct httpd_partial, a header that came in part; it keeps the
 *   word meanwhile.
 *
 * Flags and what they allow:
 *   SERVED    a request was answered
 *   STALLED   answers wait for the peer to take earlier ones; nothing is read; on_sent goes on
 *   PEER_FIN  with STALLED: close when all is answered
 *   ENDING    no further request: input is dropped. With RESET: RST once all is acknowledged
 */
#ifndef CORQ_HTTPD_CORE_H
#define CORQ_HTTPD_CORE_H

#include "httpd/request.h"
#include "httpd/server.h"
#include "httpd/site.h"

#define HTTPD_CACHED_MAX 1024
#define HTTPD_PARTIALS   1024 /* headers in pieces at a time, a core; more: 503 */

#define WORD_INLINE   1ull
#define WORD_SERVED   (1ull << 1)
#define WORD_STALLED  (1ull << 2)
#define WORD_PEER_FIN (1ull << 3)
#define WORD_ENDING   (1ull << 4)
#define WORD_RESET    (1ull << 5)
#define WORD_TIME     0xfff00ull
#define WORD_FILE_AT  20
#define WORD_FILE     (0x1ffffull << WORD_FILE_AT)
#define WORD_SKIP_AT  37
#define WORD_SKIP     (0x1fffffull << WORD_SKIP_AT)

_Static_assert(HTTPD_FILES_MAX < 1 << 17, "a file fits its bits");
_Static_assert(HTTPD_BODY_MAX < 1 << 21, "so does a body to skip");

struct httpd_partial {
	struct httpd_partial *next_free;
	uint64_t word;
	struct httpd_request req;
};

/* What a request asks for, without the connection. */
struct httpd_plan {
	const struct httpd_file *file; /* NULL: an answer without a file */
	uint16_t status;
	bool keep, head, linger;
};

struct httpd_core {
	struct httpd_server *server;
	struct corq_core *core;
	struct corq_listener *listener;
	llhttp_settings_t settings;
	struct httpd_request scratch;
	struct httpd_partial *partials, *free_partial;
	/* The bytes of the last plain request and what they asked for: equal bytes ask for the
	 * same, as the parser has no other input. */
	uint32_t cached_len;
	struct httpd_plan cached;
	char cached_bytes[HTTPD_CACHED_MAX];
	/* First lines of a 200, by keep. */
	uint64_t date_until;
	char date[40];
	char first[2][160];
	unsigned first_len[2];
	struct httpd_counts counts;
};

struct httpd_server {
	struct httpd_opts opts;
	struct httpd_site site;
	unsigned n_cores;
	struct httpd_core **cores;
};

extern const struct corq_ops httpd_ops; /* server.c: of accepted connections */

/* reply.c: writes the answer; false: it did not fit and the connection was aborted. */
bool httpd_reply(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan);

#endif
