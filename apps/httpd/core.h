/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - what one core of the server owns, and the state of a connection. Inside httpd only.
 *
 * A connection's state is its user word, so an idle one costs the program nothing:
 *
 *   bit 0 set: bits 1-7 flags, bits 8-19 time of the last request (units of 2^28 ns), bits 20-37
 *   the file of the last response (index + 1, 0: none), bits 38-63 requests so far;
 *   bit 0 clear: a pointer to a struct httpd_extra, which keeps the word meanwhile (state.h).
 *
 * Flags and what they allow:
 *   SERVED    a request was answered
 *   STALLED   answers wait for the peer to take earlier ones; nothing is read; on_sent goes on
 *   PEER_FIN  with STALLED: close when all is answered
 *   ENDING    no further request: input is dropped. With RESET: RST once all is acknowledged; with
 *             LAST: closed then
 *   LOST      the last answer found no room in the queue, or no peer
 */
#ifndef CORQ_HTTPD_CORE_H
#define CORQ_HTTPD_CORE_H

#include "httpd/access.h"
#include "httpd/body.h"
#include "httpd/plan.h"
#include "httpd/server.h"
#include "httpd/unacked.h"

#define HTTPD_CACHED_MAX  1024
#define HTTPD_PARTIALS    1024          /* headers in pieces at a time, a core */
#define HTTPD_STALL_BYTES (128u << 10)  /* unacknowledged, above which no request is read */
#define HTTPD_PIECE_BYTES (32ull << 20) /* of a long body, queued at a time */

#define HTTPD_SECOND_NS 1000000000ull
#define HTTPD_LINGER_NS (2 * HTTPD_SECOND_NS)

#define WORD_INLINE      1ull
#define WORD_SERVED      (1ull << 1)
#define WORD_STALLED     (1ull << 2)
#define WORD_PEER_FIN    (1ull << 3)
#define WORD_ENDING      (1ull << 4)
#define WORD_RESET       (1ull << 5)
#define WORD_LAST        (1ull << 6)
#define WORD_LOST        (1ull << 7)
#define WORD_TIME        0xfff00ull
#define WORD_FILE_AT     20
#define WORD_FILE        (0x3ffffull << WORD_FILE_AT)
#define WORD_REQUESTS_AT 38

_Static_assert(2 * HTTPD_FILES_MAX + 2 < 1 << 18, "a file fits its bits");

struct httpd_partial; /* state.h */
struct httpd_extra;

struct httpd_core {
	struct httpd_server *server;
	struct corq_core *core;
	llhttp_settings_t settings, body_settings;
	struct httpd_request scratch;
	struct httpd_plan plan; /* of the request in scratch */
	/* Headers in pieces: the free ones, and the others from the oldest to the newest. */
	struct httpd_partial *partials, *free_partial, *oldest, *newest;
	struct httpd_extra *extras, *free_extra; /* those from n_extras on were never used */
	size_t n_extras, max_extras;
	uint64_t began_ns; /* the first byte of the request that is being answered */
	/* The access log; NULL: none. */
	struct httpd_log_ring *log;
	uint32_t log_wait; /* requests until the next that goes there */
	const char *line;  /* of the request that is being answered */
	uint32_t line_len;
	char line_text[HTTPD_LOG_LINE_MAX];
	/* The bytes of the last plain request and what they asked for: equal bytes ask for the
	 * same, as the parser and the plan have no other input. */
	uint32_t cached_len, cached_line;
	struct httpd_plan cached;
	char cached_bytes[HTTPD_CACHED_MAX];
	/* First lines of a 200, by keep. */
	uint64_t date_until;
	int64_t wall_s;
	char date[40];
	char first[2][160];
	unsigned first_len[2];
	struct httpd_counts counts;
};

struct httpd_server {
	struct httpd_opts opts;
	struct httpd_rules rules;
	uint64_t header_ns, idle_ns, send_ns;
	struct httpd_site site;
	struct httpd_log *log;
	unsigned n_cores;
	struct httpd_core **cores;
};

static inline struct httpd_core *
httpd_core_of(const struct corq_core *core)
{
	return app_core_of(core)->httpd;
}

/* ---- server.c: callbacks and requests ---- */

extern const struct corq_ops httpd_ops; /* of accepted connections */
/* The callbacks that fit the connection's state; after each change of STALLED, RESET, LAST and
 * logging. */
void httpd_choose_ops(struct httpd_core *hc, struct corq_conn *conn);
/* An error that ends the connection: answered, then read on for a while. */
void httpd_refuse(struct httpd_core *hc, struct corq_conn *conn, uint16_t status);
/* The plan is answered. False: the connection is closed or ending. */
bool httpd_answer(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan);

/* ---- ending.c ---- */

void httpd_drop_input(struct httpd_core *hc, struct corq_conn *conn);
/* The last answer is written: ENDING. */
void httpd_end_after_reply(struct httpd_core *hc, struct corq_conn *conn, bool linger);
/* The peer is done, or silent: nothing is owed to it. */
void httpd_end_quiet(struct httpd_core *hc, struct corq_conn *conn);
/* Of the last answer, which was no more than a whole file. */
struct httpd_sent httpd_last_sent(struct httpd_core *hc, const struct corq_conn *conn);
/* on_close: what the peer was not seen to get is counted, the log told, the state freed. */
void httpd_closed(struct httpd_core *hc, struct corq_conn *conn, int reason);

/* ---- reply.c ---- */

/* Writes the answer; false: it did not fit and the connection was aborted. A long one may be left
 * under way (EXTRA_WRITING). */
bool httpd_reply(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan);
/* Goes on with it. As above. */
bool httpd_reply_more(struct httpd_core *hc, struct corq_conn *conn);
/* "HTTP/1.1 100 Continue". */
bool httpd_reply_continue(struct httpd_core *hc, struct corq_conn *conn);

/* ---- upload.c: bodies of requests ---- */

/* req is complete, plan->body is not 0. False: the connection is closed or ending. */
bool httpd_body_begin(struct httpd_core *hc, struct corq_conn *conn,
	const struct httpd_request *req, const struct httpd_plan *plan);
/* Reads what is there; answers at the end. False: the connection is closed or ending. */
bool httpd_body_read(struct httpd_core *hc, struct corq_conn *conn);
/* The line that answers an upload. body: complete; NULL: there was none. Returns its length. */
size_t httpd_upload_text(struct httpd_body *body, bool digest, char *out, size_t room);

/* ---- deadline.c ---- */

void httpd_timer(struct corq_core *core, struct corq_conn *conn);

/* ---- record.c: what goes to the access log ---- */

/* Before an answer is written: every Nth gets a record. */
void httpd_record_begin(struct httpd_core *hc, struct corq_conn *conn, uint16_t status);
/* Its answer is acknowledged, or the connection ends. unacked: body bytes that were not. */
void httpd_record_end(
	struct httpd_core *hc, struct corq_conn *conn, enum httpd_end end, uint64_t unacked);
/* The next request is there: the record before it, if there is one, ends. */
void httpd_record_next(struct httpd_core *hc, struct corq_conn *conn);
/* Of a request whose body is read first: what the log needs is kept in extra, and taken from there
 * when it is answered. */
void httpd_record_keep(struct httpd_core *hc, struct corq_conn *conn, struct httpd_extra *extra);
void httpd_record_recall(struct httpd_core *hc, const struct httpd_extra *extra);

#endif
