/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h - the state of a connection beyond its word. Inside httpd only; on the core.
 *
 * A connection has a struct httpd_extra while something of it is under way that the word has no
 * room for; `uses` tells what, and with the last of them it goes back to the pool. The pool has
 * one for each connection that the core can have, and its memory is touched as far as it was
 * needed. An inline connection and one with an extra differ in nothing else.
 */
#ifndef CORQ_HTTPD_STATE_H
#define CORQ_HTTPD_STATE_H

#include "httpd/core.h"

enum httpd_use {
	EXTRA_HEADER = 1u << 0,  /* a header that came in part (partial) */
	EXTRA_BODY = 1u << 1,    /* a body is being read; plan is what follows */
	EXTRA_WRITING = 1u << 2, /* plan's answer is queued in pieces */
	EXTRA_SIZED = 1u << 3,   /* last, before: more than one whole file is under way */
	EXTRA_WATCHED = 1u << 4, /* does the peer take what we send? */
	EXTRA_LOGGED = 1u << 5,  /* record waits for the answer's end */
};

/* A header in pieces. The list is in the order in which they began. */
struct httpd_partial {
	struct httpd_partial *next, *prev;
	struct corq_conn *conn;
	uint64_t began_ns;
	struct httpd_request req;
};

struct httpd_extra {
	struct httpd_extra *next_free;
	EVP_MD_CTX *digest; /* stays with the slot; NULL until it was needed */
	/* From here on zero when the slot is taken. */
	uint64_t word;
	unsigned uses;
	struct httpd_partial *partial;
	/* BODY */
	struct httpd_body body;
	uint64_t body_seen; /* bytes at the last look */
	/* WRITING */
	struct httpd_plan plan;
	uint64_t piece_at; /* bytes of the range that are queued */
	unsigned range;    /* the next one */
	/* SIZED: queued, of the last answer, and of those before it since the queue was empty */
	struct httpd_sent last, before;
	/* WATCHED: the last look, and the last at which enough had been taken */
	uint64_t looked_ns, good_ns, seen_unsent;
	uint32_t seen_una;
	/* LOGGED; with BODY: what the log needs of its request (record.c) */
	uint64_t began_ns;
	struct httpd_log_record record;
};

/* ---- the word ---- */

static inline struct httpd_extra *
httpd_extra_of(const struct corq_conn *conn)
{
	uint64_t word = (uint64_t)(uintptr_t)corq_conn_user(conn);

	return (word & WORD_INLINE) != 0 ? NULL : (struct httpd_extra *)(uintptr_t)word;
}

static inline uint64_t
httpd_word(const struct corq_conn *conn)
{
	uint64_t word = (uint64_t)(uintptr_t)corq_conn_user(conn);

	return (word & WORD_INLINE) != 0 ? word : ((struct httpd_extra *)(uintptr_t)word)->word;
}

static inline void
httpd_set_word(struct corq_conn *conn, uint64_t word)
{
	struct httpd_extra *extra = httpd_extra_of(conn);

	if (extra != NULL)
		extra->word = word;
	else
		corq_conn_set_user(conn, (void *)(uintptr_t)word);
}

static inline uint64_t
httpd_stamp(uint64_t word, uint64_t now)
{
	return (word & ~WORD_TIME) | ((now >> 28 << 8) & WORD_TIME);
}

/* Nanoseconds since the stamp, within 0.27 s, modulo 18 minutes: what is idle is closed long
 * before, and a connection that waits longer is looked at again an idle time later at most. */
static inline uint64_t
httpd_since(uint64_t word, uint64_t now)
{
	return (((now >> 28) - ((word & WORD_TIME) >> 8)) & (WORD_TIME >> 8)) << 28;
}

/* ---- extras ---- */

static inline bool
httpd_uses(const struct corq_conn *conn, enum httpd_use use)
{
	const struct httpd_extra *extra = httpd_extra_of(conn);

	return extra != NULL && (extra->uses & use) != 0;
}

/* The connection's extra, taken for one more use. NULL: there is none, counted. */
struct httpd_extra *httpd_use(struct httpd_core *hc, struct corq_conn *conn, enum httpd_use use);
/* The same for SIZED, with nothing sent yet. */
struct httpd_extra *httpd_use_sized(struct httpd_core *hc, struct corq_conn *conn);
/* That use is over; harmless if it was not. The extra may be gone afterwards. */
void httpd_unuse(struct httpd_core *hc, struct corq_conn *conn, enum httpd_use use);
/* Copies the header of scratch out of the way, for a connection without a partial header. When all
 * places are taken the oldest is refused (408) and counted. False: no memory, connection aborted.
 */
bool httpd_partial_keep(struct httpd_core *hc, struct corq_conn *conn);
void httpd_partial_drop(struct httpd_core *hc, struct corq_conn *conn);
/* Everything. */
void httpd_state_free(struct httpd_core *hc, struct corq_conn *conn);

/* Main thread. */
int httpd_state_create(struct httpd_core *hc, size_t max_conns);
void httpd_state_destroy(struct httpd_core *hc);

#endif
