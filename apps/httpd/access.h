/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access.h - the access log. A core fills records into a ring of its own; one thread of the
 * program takes them from all rings, makes lines and writes. A core never waits: a record that
 * finds its ring full is dropped and counted.
 *
 * A line is the Common Log Format, then microseconds from the request's first byte to the last
 * acknowledged byte of its answer, and how that ended (enum httpd_end). Bytes are those of the
 * body that were acknowledged. Bytes of a request line that could harm a terminal or the format
 * are written as \xHH.
 */
#ifndef CORQ_HTTPD_ACCESS_H
#define CORQ_HTTPD_ACCESS_H

#include <corq/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTPD_LOG_LINE_MAX 448                            /* of a request line; the rest is cut */
#define HTTPD_LOG_TEXT_MAX (4 * HTTPD_LOG_LINE_MAX + 192) /* of a line of the log */

enum httpd_end {
	HTTPD_END_KEPT,   /* all acknowledged, the connection went on */
	HTTPD_END_CLOSED, /* all acknowledged, the connection ended in order */
	HTTPD_END_CUT,    /* by us: a deadline, or the end of the server */
	HTTPD_END_RESET,  /* by the peer, or it was not reachable any more */
	HTTPD_ENDS,
};

struct httpd_log_record {
	struct corq_addr addr;
	uint64_t body_bytes;
	int64_t wall_s; /* when it was answered */
	uint32_t us;
	uint16_t status, line_len;
	uint8_t end;
	char line[HTTPD_LOG_LINE_MAX];
};

/* The line of a record, with its newline, into out (HTTPD_LOG_TEXT_MAX). Returns its length. Pure.
 */
size_t httpd_log_format(const struct httpd_log_record *record, char *out);

struct httpd_log;
struct httpd_log_ring;

/* Main thread: opens the file (it is appended to) and starts the thread. 0, or -errno and a line
 * in err. */
int httpd_log_start(
	const char *path, unsigned cores, struct httpd_log **out, char *err, size_t err_len);
struct httpd_log_ring *httpd_log_ring(struct httpd_log *log, unsigned core);
/* On the core. */
void httpd_log_push(struct httpd_log_ring *ring, const struct httpd_log_record *record);

struct httpd_log_figures {
	uint64_t lines;   /* written */
	uint64_t dropped; /* their ring was full, or a write had failed */
	int error;        /* errno of the first write that failed */
};
/* Main thread, when no core pushes any more: all that is in the rings is written. NULL is fine. */
void httpd_log_end(struct httpd_log *log, struct httpd_log_figures *figures);

#endif
