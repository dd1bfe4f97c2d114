/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ending.c - how connections end, and what is counted then. On the core.
 */
#include "httpd/state.h"

#include <errno.h>

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

/* A close would answer what the client still sends with a reset, which can cut the answer (RFC 9112
 * 9.6), and a closed connection has no deadline: it would be the client's for as long as that takes
 * little. So: FIN, read on, and close when the client has, or when all is acknowledged after a
 * while. */
static void
end_in_order(struct httpd_core *hc, struct corq_conn *conn, uint64_t flags)
{
	set_ending(hc, conn, flags, HTTPD_LINGER_NS);
	if (flags != 0)
		httpd_choose_ops(hc, conn);
	corq_conn_shutdown(hc->core, conn);
}

void
httpd_end_after_reply(struct httpd_core *hc, struct corq_conn *conn, bool linger)
{
	enum corq_close_policy policy = linger ? CORQ_CLOSE_FIRST : hc->server->opts.close;

	httpd_drop_input(hc, conn);
	switch (policy) {
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
		end_in_order(hc, conn, 0);
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
	else if (corq_conn_unsent(conn) == 0)
		corq_conn_close(hc->core, conn);
	else
		end_in_order(hc, conn, WORD_LAST);
}

/* ---- what is counted ---- */

struct httpd_sent
httpd_last_sent(struct httpd_core *hc, const struct corq_conn *conn)
{
	uint64_t index = (httpd_word(conn) & WORD_FILE) >> WORD_FILE_AT;
	const struct httpd_file *file;

	if (index == 0) /* text: all of it is head, and it is not more than what is queued */
		return (struct httpd_sent){1, corq_conn_unsent(conn), 0};
	file = &hc->server->site.files[index - 1];
	return (struct httpd_sent){1, hc->first_len[1] + file->head_len, file->len};
}

/* It did not end in order: what was the peer not seen to get? */
static struct httpd_unacked
count_unacked(struct httpd_core *hc, struct corq_conn *conn)
{
	const struct httpd_extra *extra = httpd_extra_of(conn);
	struct httpd_sent last, before = {0, 0, 0};
	struct httpd_unacked lost = {0, 0, 0};
	struct corq_conn_info info;
	uint64_t bytes;

	if ((httpd_word(conn) & WORD_SERVED) == 0)
		return lost;
	corq_conn_get_info(hc->core, conn, &info);
	bytes = (uint64_t)info.unacked_bytes + info.unsent_bytes;
	if (info.fin_sent && bytes != 0)
		bytes--; /* the FIN */
	if (httpd_uses(conn, EXTRA_SIZED)) {
		last = extra->last;
		before = extra->before;
	} else {
		last = httpd_last_sent(hc, conn);
	}
	lost = httpd_unacked(bytes, &last, &before);
	if (lost.answers == 0 &&
		((httpd_word(conn) & WORD_LOST) != 0 || httpd_uses(conn, EXTRA_WRITING)))
		lost.answers = 1;
	return lost;
}

void
httpd_closed(struct httpd_core *hc, struct corq_conn *conn, int reason)
{
	const struct httpd_extra *extra = httpd_extra_of(conn);
	struct httpd_unacked lost = {0, 0, 0};

	if (reason != 0)
		lost = count_unacked(hc, conn);
	hc->counts.cut_short += lost.answers;
	hc->counts.bytes_lost += lost.body;
	if (extra != NULL && (extra->uses & EXTRA_BODY) != 0)
		hc->counts.uploads_cut += extra->plan.upload;
	if (httpd_uses(conn, EXTRA_LOGGED))
		httpd_record_end(hc, conn,
			reason == 0               ? HTTPD_END_CLOSED
			: reason == -ECONNABORTED ? HTTPD_END_CUT
						  : HTTPD_END_RESET,
			lost.last_body);
	httpd_state_free(hc, conn);
}
