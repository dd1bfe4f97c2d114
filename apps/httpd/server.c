/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.c - connections of the server: callbacks of the on-core API, and requests from their
 * bytes to httpd_answer. See server.h for what it does, core.h and state.h for the state of a
 * connection. On the core.
 */
#include "httpd/state.h"

#include <string.h>

static const struct corq_ops watching_ops, logged_ops;

void
httpd_choose_ops(struct httpd_core *hc, struct corq_conn *conn)
{
	const struct corq_ops *ops = &httpd_ops;

	if ((httpd_word(conn) & (WORD_STALLED | WORD_RESET | WORD_LAST)) != 0)
		ops = &watching_ops;
	else if (httpd_uses(conn, EXTRA_LOGGED))
		ops = &logged_ops;
	corq_conn_set_ops(conn, hc->core, ops);
}

/* ---- answers ---- */

/* What was kept of the answer before. */
static void
forget_last(struct httpd_core *hc, struct corq_conn *conn)
{
	httpd_record_next(hc, conn);
	if (corq_conn_unsent(conn) == 0)
		httpd_unuse(hc, conn, EXTRA_SIZED);
}

/* The answer that comes goes behind others: what they are is kept, for the case that they are lost.
 */
static __attribute__((noinline)) void
count_before_slow(struct httpd_core *hc, struct corq_conn *conn)
{
	bool first = !httpd_uses(conn, EXTRA_SIZED);
	struct httpd_extra *extra = httpd_use_sized(hc, conn);

	if (extra == NULL)
		return;
	if (first)
		extra->last = httpd_last_sent(hc, conn);
	extra->before.answers += extra->last.answers;
	extra->before.head += extra->last.head;
	extra->before.body += extra->last.body;
	extra->last = (struct httpd_sent){1, 0, 0};
}

static void
stall(struct httpd_core *hc, struct corq_conn *conn)
{
	httpd_set_word(conn, httpd_word(conn) | WORD_STALLED);
	httpd_choose_ops(hc, conn);
}

/* More than the peer's buffers may hold: it is looked at sooner than an idle time from now. */
static void
watch_soon(struct httpd_core *hc, struct corq_conn *conn)
{
	corq_conn_set_deadline(hc->core, conn, corq_core_now(hc->core) + hc->server->send_ns / 4);
}

static bool
answer(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	bool whole = plan->status == 200 && plan->file != NULL && !plan->head;

	if (!httpd_reply(hc, conn, plan))
		return false;
	if (whole)
		httpd_set_word(
			conn, httpd_word(conn) | (uint64_t)(plan->file - hc->server->site.files + 1)
							 << WORD_FILE_AT);
	if (corq_conn_unsent(conn) > HTTPD_STALL_BYTES)
		watch_soon(hc, conn);
	if (httpd_uses(conn, EXTRA_WRITING)) {
		stall(hc, conn);
		return true;
	}
	if (plan->keep)
		return true;
	httpd_end_after_reply(hc, conn, plan->linger);
	return false;
}

/* The connection has had its share of requests. */
static bool
answer_last(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	struct httpd_plan last = *plan;

	last.keep = false;
	return answer(hc, conn, &last);
}

bool
httpd_answer(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	uint32_t max = hc->server->opts.max_requests;
	uint64_t word;

	if (httpd_extra_of(conn) != NULL)
		forget_last(hc, conn);
	if (corq_conn_unsent(conn) != 0)
		count_before_slow(hc, conn);
	word = httpd_stamp(httpd_word(conn), corq_core_now(hc->core));
	word = ((word & ~WORD_FILE) | WORD_SERVED) + (1ull << WORD_REQUESTS_AT);
	httpd_set_word(conn, word);
	if (max != 0 && word >> WORD_REQUESTS_AT >= max)
		return answer_last(hc, conn, plan);
	return answer(hc, conn, plan);
}

/* The line of a request for the log, as far as it was read. */
static void
note_line(struct httpd_core *hc, const struct httpd_request *req)
{
	if (hc->log == NULL)
		return;
	hc->line = hc->line_text;
	hc->line_len = (uint32_t)httpd_request_line(req, hc->line_text, sizeof(hc->line_text));
}

void
httpd_refuse(struct httpd_core *hc, struct corq_conn *conn, uint16_t status)
{
	const struct httpd_extra *extra = httpd_extra_of(conn);
	struct httpd_plan plan = {.status = status, .linger = true};

	hc->began_ns = corq_core_now(hc->core);
	hc->line = "-";
	hc->line_len = 1;
	if (extra != NULL && extra->partial != NULL) {
		hc->began_ns = extra->partial->began_ns;
		note_line(hc, &extra->partial->req);
	} else if (extra != NULL && (extra->uses & EXTRA_BODY) != 0) {
		hc->counts.uploads_cut += extra->plan.upload;
		httpd_record_recall(hc, extra);
	}
	httpd_partial_drop(hc, conn);
	httpd_unuse(hc, conn, EXTRA_BODY);
	httpd_answer(hc, conn, &plan);
}

/* ---- requests ---- */

static void
remember(struct httpd_core *hc, const char *data, size_t len)
{
	const char *end;

	/* Behind an empty line (RFC 9112 2.2) the log would not find the request's. */
	if (!hc->plan.plain || len > HTTPD_CACHED_MAX || data[0] == '\r')
		return;
	memcpy(hc->cached_bytes, data, len);
	hc->cached_len = (uint32_t)len;
	memcpy(&hc->cached, &hc->plan, offsetof(struct httpd_plan, ranges));
	end = memchr(data, '\r', len);
	hc->cached_line = end != NULL ? (uint32_t)(end - data) : 0;
}

/* Reads one request through the parser. False: stop reading this connection. */
static bool
serve_parsed(struct httpd_core *hc, struct corq_conn *conn, const struct iovec *iov, int n)
{
	struct httpd_extra *extra = httpd_extra_of(conn);
	struct httpd_partial *partial = extra != NULL ? extra->partial : NULL;
	struct httpd_request *req = partial != NULL ? &partial->req : &hc->scratch;
	uint64_t now = corq_core_now(hc->core);
	size_t used = 0;

	if (partial == NULL)
		httpd_request_start(req, &hc->settings);
	for (int i = 0; i < n && req->status == 0; i++)
		used += httpd_request_feed(req, iov[i].iov_base, iov[i].iov_len);
	if (req->status == 0) {
		corq_conn_consume(hc->core, conn, used);
		if (partial != NULL)
			return true;
		corq_conn_set_deadline(hc->core, conn, now + hc->server->header_ns);
		return httpd_partial_keep(hc, conn);
	}
	httpd_plan_make(&hc->server->site, &hc->server->rules, req, &hc->plan);
	hc->began_ns = partial != NULL ? partial->began_ns : now;
	note_line(hc, req);
	if (partial == NULL && used <= iov[0].iov_len)
		remember(hc, iov[0].iov_base, used);
	corq_conn_consume(hc->core, conn, used);
	if (hc->plan.body != 0)
		return httpd_body_begin(hc, conn, req, &hc->plan);
	httpd_partial_drop(hc, conn);
	return httpd_answer(hc, conn, &hc->plan);
}

static bool
serve_one(struct httpd_core *hc, struct corq_conn *conn)
{
	const struct httpd_extra *extra = httpd_extra_of(conn);
	struct iovec iov[16];
	uint32_t cached = hc->cached_len;
	int n = corq_conn_peek(hc->core, conn, iov, 16);

	if (n <= 0)
		return false;
	if (cached != 0 && iov[0].iov_len >= cached &&
		memcmp(iov[0].iov_base, hc->cached_bytes, cached) == 0 &&
		(extra == NULL || extra->partial == NULL)) {
		corq_conn_consume(hc->core, conn, cached);
		hc->began_ns = corq_core_now(hc->core);
		hc->line = hc->cached_bytes;
		hc->line_len = hc->cached_line;
		return httpd_answer(hc, conn, &hc->cached);
	}
	return serve_parsed(hc, conn, iov, n);
}

/* False: the connection is closed or ending. */
static bool
serve(struct httpd_core *hc, struct corq_conn *conn)
{
	while (corq_conn_readable(conn) != 0) {
		uint64_t word = httpd_word(conn);

		if ((word & (WORD_ENDING | WORD_STALLED)) != 0) {
			if ((word & WORD_STALLED) != 0)
				return true;
			httpd_drop_input(hc, conn);
			return false;
		}
		if (httpd_uses(conn, EXTRA_BODY)) {
			if (!httpd_body_read(hc, conn))
				return false;
			continue;
		}
		if (corq_conn_unsent(conn) > HTTPD_STALL_BYTES) {
			stall(hc, conn);
			return true;
		}
		if (!serve_one(hc, conn))
			return false;
	}
	return true;
}

/* ---- callbacks ---- */

static void
on_open(struct corq_core *core, struct corq_conn *conn)
{
	struct httpd_core *hc = httpd_core_of(core);
	uint64_t now = corq_core_now(core);

	hc->counts.connections++;
	httpd_set_word(conn, httpd_stamp(WORD_INLINE, now));
	corq_conn_set_deadline(core, conn, now + hc->server->idle_ns);
}

static void
on_data(struct corq_core *core, struct corq_conn *conn)
{
	serve(httpd_core_of(core), conn);
}

static void
on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	struct httpd_core *hc = httpd_core_of(core);
	uint64_t word = httpd_word(conn);

	if ((word & WORD_STALLED) != 0) {
		httpd_set_word(conn, word | WORD_PEER_FIN);
		return;
	}
	if ((word & WORD_RESET) != 0 && corq_conn_unsent(conn) != 0)
		return;
	httpd_drop_input(hc, conn);
	httpd_end_quiet(hc, conn);
}

/* True: all of the answer is queued and the connection goes on. */
static bool
write_more(struct httpd_core *hc, struct corq_conn *conn)
{
	const struct httpd_extra *extra = httpd_extra_of(conn);
	bool keep = extra->plan.keep, linger = extra->plan.linger;
	uint64_t word;

	if (!httpd_reply_more(hc, conn) || httpd_uses(conn, EXTRA_WRITING))
		return false;
	if (keep)
		return true;
	word = httpd_word(conn);
	httpd_set_word(conn, word & ~(WORD_STALLED | WORD_PEER_FIN));
	httpd_choose_ops(hc, conn);
	if ((word & WORD_PEER_FIN) != 0)
		httpd_end_quiet(hc, conn);
	else
		httpd_end_after_reply(hc, conn, linger);
	return false;
}

/* The answers are on their way: requests that waited are read. */
static void
go_on(struct httpd_core *hc, struct corq_conn *conn)
{
	uint64_t word = httpd_word(conn), fin = word & WORD_PEER_FIN;

	httpd_set_word(conn, word & ~(WORD_STALLED | WORD_PEER_FIN));
	httpd_choose_ops(hc, conn);
	if (!serve(hc, conn) || fin == 0)
		return;
	word = httpd_word(conn);
	if ((word & WORD_STALLED) != 0)
		httpd_set_word(conn, word | WORD_PEER_FIN);
	else
		httpd_end_quiet(hc, conn);
}

static void
on_sent(struct corq_core *core, struct corq_conn *conn)
{
	struct httpd_core *hc = httpd_core_of(core);
	uint64_t word = httpd_word(conn);
	size_t unsent = corq_conn_unsent(conn);

	if (unsent == 0 && httpd_uses(conn, EXTRA_LOGGED) && !httpd_uses(conn, EXTRA_WRITING)) {
		httpd_record_end(
			hc, conn, (word & WORD_ENDING) != 0 ? HTTPD_END_CLOSED : HTTPD_END_KEPT, 0);
		httpd_choose_ops(hc, conn);
	}
	if ((word & (WORD_RESET | WORD_LAST)) != 0) {
		if (unsent == 0 && (word & WORD_RESET) != 0)
			corq_conn_abort(core, conn);
		else if (unsent == 0)
			corq_conn_close(core, conn);
		return;
	}
	if ((word & WORD_STALLED) == 0 || unsent > HTTPD_STALL_BYTES / 2)
		return;
	if (!httpd_uses(conn, EXTRA_WRITING) || write_more(hc, conn))
		go_on(hc, conn);
}

static void
on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	httpd_closed(httpd_core_of(core), conn, reason);
}

const struct corq_ops httpd_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_peer_fin = on_peer_fin,
	.on_timer = httpd_timer,
	.on_close = on_close,
};

/* Of connections that wait for the peer to take answers: nothing is read. */
static const struct corq_ops watching_ops = {
	.on_sent = on_sent,
	.on_peer_fin = on_peer_fin,
	.on_timer = httpd_timer,
	.on_close = on_close,
};

/* Of connections whose answer the log waits for. */
static const struct corq_ops logged_ops = {
	.on_data = on_data,
	.on_sent = on_sent,
	.on_peer_fin = on_peer_fin,
	.on_timer = httpd_timer,
	.on_close = on_close,
};
