/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unacked.h - what a connection that ended badly did not deliver. Pure.
 *
 * Of the answers that are under way (pipelining) the last one's size is known, and the sum of those
 * before it since the queue was last empty: they are taken to be alike. So the figures are exact
 * for one answer and for equal ones, and never more than was queued.
 */
#ifndef CORQ_HTTPD_UNACKED_H
#define CORQ_HTTPD_UNACKED_H

#include <stdint.h>

struct httpd_sent {
	uint64_t answers, head, body; /* bytes */
};

struct httpd_unacked {
	uint64_t answers;   /* of which a byte is missing */
	uint64_t body;      /* body bytes missing */
	uint64_t last_body; /* of them, of the last answer */
};

static inline uint64_t
httpd_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The last `bytes` of all that was sent are missing. Before the last answer begins at most 128 KiB
 * are unacknowledged, so the products fit. */
static inline struct httpd_unacked
httpd_unacked(uint64_t bytes, const struct httpd_sent *last, const struct httpd_sent *before)
{
	uint64_t body = httpd_smaller(bytes, last->body), all = before->head + before->body;
	struct httpd_unacked lost = {bytes != 0, body, body};

	bytes -= body;
	bytes = httpd_smaller(bytes - httpd_smaller(bytes, last->head), all);
	if (bytes != 0) {
		lost.answers += (before->answers * bytes + all - 1) / all;
		lost.body += before->body * bytes / all;
	}
	return lost;
}

#endif
