/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ending.c - how connections end, and what is counted then. On the core.
 */
#include "httpd/state.h"
#include "httpd/unacked.h"

#include <errno.h>

#define LINGER_ABOVE 16384 /* bytes: a shorter answer leaves in one flight */

void
httpd_drop_input(struct httpd_core *hc, struct corq_conn *conn)
{
	size_t len = corq_conn_readable(conn);

	if (len != 0)
		corq_conn_consume(hc->core, conn, len);
}

static void
set_ending(struct httpd_core *hc, struct corq_conn *conn, uint64_t flags, uint64_t wait_ns)
{
	httpd_set_word(conn, httpd_word(conn) | WORD_ENDING | flags);
	corq_conn_set_deadline(hc->core, conn, corq_core_now(hc->core) + wait_ns);
}

void
httpd_end_after_reply(struct httpd_core *hc, struct corq_conn *conn, bool linger)
{
	httpd_drop_input(hc, conn);
	/* A long answer is still on its way when the client asks for more: a close would answer
	 * that with a reset, which cuts the answer (RFC 9112 9.6). So: FIN, read on, close at the
	 * end. */
	if (linger || (hc->server->opts.close == CORQ_CLOSE_FIRST &&
			      corq_conn_unsent(conn) > LINGER_ABOVE)) {
		set_ending(hc, conn, 0, HTTPD_LINGER_NS);
		corq_conn_shutdown(hc->core, conn);
		return;
	}
	switch (hc->server->opts.close) {
	case CORQ_CLOSE_AFTER_PEER:
		set_ending(hc, conn, 0, hc->server->idle_ns);
		corq_conn_set_cork(hc->core, conn, false);
		break;
	case CORQ_CLOSE_RST:
		set_ending(hc, conn, WORD_RESET, hc->server->idle_ns);
		httpd_choose_ops(hc, conn);
		corq_conn_set_cork(hc->core, conn, false);
		break;
	default:
		corq_conn_close(hc->core, conn);
		break;
	}
}

void
httpd_end_quiet(struct httpd_core *hc, struct corq_conn *conn)
{
	httpd_partial_drop(hc, conn);
	if (hc->server->opts.close == CORQ_CLOSE_ABORT_IF_EMPTY &&
		(httpd_word(conn) & WORD_SERVED) == 0)
		corq_conn_abort(hc->core, conn);
	else
		corq_conn_close(hc->core, conn);
}

/* It did not end in order: what was the peer not seen to get? */
static struct httpd_unacked
count_unacked(struct httpd_core *hc, struct corq_conn *conn)
{
	uint64_t word = httpd_word(conn), index = (word & WORD_FILE) >> WORD_FILE_AT, bytes;
	const struct httpd_extra *extra = httpd_extra_of(conn);
	struct httpd_unacked lost = {0, 0};
	struct corq_conn_info info;

	if ((word & WORD_SERVED) == 0)
		return lost;
	corq_conn_get_info(hc->core, conn, &info);
	bytes = (uint64_t)info.unacked_bytes + info.unsent_bytes;
	if (info.fin_sent && bytes != 0)
		bytes--; /* the FIN */
	if (extra != NULL && (extra->uses & EXTRA_SIZED) != 0) {
		lost = httpd_unacked(bytes, extra->head_bytes, extra->body_bytes);
	} else if (index != 0) {
		const struct httpd_file *file = &hc->server->site.files[index - 1];

		lost = httpd_unacked(bytes, hc->first_len[1] + file->head_len, file->len);
	} else if (bytes != 0) {
		lost.responses = 1;
	}
	if (lost.responses == 0 && extra != NULL && (extra->uses & EXTRA_WRITING) != 0)
		lost.responses = 1;
	return lost;
}

void
httpd_closed(struct httpd_core *hc, struct corq_conn *conn, int reason)
{
	const struct httpd_extra *extra = httpd_extra_of(conn);
	struct httpd_unacked lost = {0, 0};

	if (reason != 0)
		lost = count_unacked(hc, conn);
	hc->counts.cut_short += lost.responses;
	hc->counts.bytes_lost += lost.body;
	if (extra != NULL && (extra->uses & EXTRA_BODY) != 0)
		hc->counts.uploads_cut += extra->plan.upload;
	if (httpd_uses(conn, EXTRA_LOGGED))
		httpd_record_end(hc, conn,
			reason == 0               ? HTTPD_END_CLOSED
			: reason == -ECONNABORTED ? HTTPD_END_CUT
						  : HTTPD_END_RESET,
			lost.body);
	httpd_state_free(hc, conn);
}
