/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.c - connections of the server: callbacks of the on-core API. See server.h for what it
 * does and core.h for the state of a connection.
 */
#include "httpd/core.h"
#include "httpd/unacked.h"

#include <string.h>

#define SECOND_NS    1000000000ull
#define IDLE_NS      (30 * SECOND_NS)
#define HEADER_NS    (10 * SECOND_NS)
#define LINGER_NS    (2 * SECOND_NS)
#define LINGER_ABOVE 16384        /* bytes: a shorter answer leaves in one flight */
#define STALL_BYTES  (128u << 10) /* unacknowledged answers, above which no request is read */

static const struct corq_ops watching_ops;

static struct httpd_core *
hc_of(const struct corq_core *core)
{
	return app_core_of(core)->httpd;
}

/* ---- the user word ---- */

static uint64_t
word_of(const struct corq_conn *conn)
{
	uint64_t word = (uint64_t)(uintptr_t)corq_conn_user(conn);

	if ((word & WORD_INLINE) != 0)
		return word;
	return ((struct httpd_partial *)(uintptr_t)word)->word;
}

static struct httpd_partial *
partial_of(const struct corq_conn *conn)
{
	uint64_t word = (uint64_t)(uintptr_t)corq_conn_user(conn);

	return (word & WORD_INLINE) != 0 ? NULL : (struct httpd_partial *)(uintptr_t)word;
}

static void
set_word(struct corq_conn *conn, uint64_t word)
{
	struct httpd_partial *partial = partial_of(conn);

	if (partial != NULL)
		partial->word = word;
	else
		corq_conn_set_user(conn, (void *)(uintptr_t)word);
}

static uint64_t
stamp(uint64_t word, uint64_t now)
{
	return (word & ~WORD_TIME) | ((now >> 28 << 8) & WORD_TIME);
}

/* Nanoseconds since the stamp, within 0.27 s, modulo 18 minutes: what is idle is closed after 30 s,
 * and a connection that waits longer than that is looked at again 30 s later at most. */
static uint64_t
since(uint64_t word, uint64_t now)
{
	return (((now >> 28) - ((word & WORD_TIME) >> 8)) & (WORD_TIME >> 8)) << 28;
}

static void
free_partial(struct httpd_core *hc, struct corq_conn *conn)
{
	struct httpd_partial *partial = partial_of(conn);

	if (partial == NULL)
		return;
	corq_conn_set_user(conn, (void *)(uintptr_t)partial->word);
	partial->next_free = hc->free_partial;
	hc->free_partial = partial;
}

/* ---- ending ---- */

static void
drop_input(struct httpd_core *hc, struct corq_conn *conn)
{
	size_t len = corq_conn_readable(conn);

	if (len != 0)
		corq_conn_consume(hc->core, conn, len);
}

/* The last answer is written. Returns with the connection closed, or ENDING. */
static void
end_after_reply(struct httpd_core *hc, struct corq_conn *conn, bool linger)
{
	uint64_t now = corq_core_now(hc->core);

	drop_input(hc, conn);
	/* A long answer is still on its way when the client asks for more: a close would answer
	 * that with a reset, which cuts the answer (RFC 9112 9.6). So: FIN, read on, close at the
	 * end. */
	if (linger || (hc->server->opts.close == CORQ_CLOSE_FIRST &&
			      corq_conn_unsent(conn) > LINGER_ABOVE)) {
		set_word(conn, word_of(conn) | WORD_ENDING);
		corq_conn_shutdown(hc->core, conn);
		corq_conn_set_deadline(hc->core, conn, now + LINGER_NS);
		return;
	}
	switch (hc->server->opts.close) {
	case CORQ_CLOSE_AFTER_PEER:
		set_word(conn, word_of(conn) | WORD_ENDING);
		corq_conn_set_cork(hc->core, conn, false);
		corq_conn_set_deadline(hc->core, conn, now + IDLE_NS);
		break;
	case CORQ_CLOSE_RST:
		set_word(conn, word_of(conn) | WORD_ENDING | WORD_RESET);
		corq_conn_set_ops(conn, hc->core, &watching_ops);
		corq_conn_set_cork(hc->core, conn, false);
		corq_conn_set_deadline(hc->core, conn, now + IDLE_NS);
		break;
	default:
		corq_conn_close(hc->core, conn);
		break;
	}
}

/* The peer is done, or silent: nothing is owed to it. */
static void
end_quiet(struct httpd_core *hc, struct corq_conn *conn)
{
	free_partial(hc, conn);
	if (hc->server->opts.close == CORQ_CLOSE_ABORT_IF_EMPTY &&
		(word_of(conn) & WORD_SERVED) == 0)
		corq_conn_abort(hc->core, conn);
	else
		corq_conn_close(hc->core, conn);
}

/* ---- requests ---- */

static struct httpd_plan
plan_for(struct httpd_core *hc, const struct httpd_request *req)
{
	struct httpd_plan plan = {.status = req->status, .head = req->head};
	char path[HTTPD_URL_MAX + sizeof("/index.html")];
	ssize_t len;

	plan.linger = plan.status != 200;
	if (plan.linger)
		return plan;
	len = httpd_path_decode(req->url, req->url_len, path);
	if (len < 0) {
		plan.status = 400;
		plan.linger = true;
		return plan;
	}
	plan.keep = req->keep;
	plan.linger = req->body != 0;
	plan.file = httpd_site_find(&hc->server->site, path, (size_t)len);
	if (plan.file == NULL)
		plan.status = 404;
	else if (plan.file->directory)
		plan.status = 301;
	return plan;
}

/* False: the connection is closed or ending. */
static bool
answer(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan, uint64_t skip)
{
	const struct httpd_file *sent = plan->status == 200 && !plan->head ? plan->file : NULL;
	uint64_t word = stamp(word_of(conn), corq_core_now(hc->core));

	word = (word & ~WORD_SKIP) | WORD_SERVED | skip << WORD_SKIP_AT;
	set_word(conn, word);
	if (!httpd_reply(hc, conn, plan))
		return false;
	word &= ~WORD_FILE;
	if (sent != NULL)
		word |= (uint64_t)(sent - hc->server->site.files + 1) << WORD_FILE_AT;
	set_word(conn, word);
	if (plan->keep)
		return true;
	end_after_reply(hc, conn, plan->linger);
	return false;
}

/* A header that is not all there: it moves out of the core's scratch. */
static bool
keep_partial(struct httpd_core *hc, struct corq_conn *conn)
{
	static const struct httpd_plan busy = {.status = 503, .linger = true};
	struct httpd_partial *partial = hc->free_partial;

	if (partial == NULL) {
		hc->counts.no_room++;
		answer(hc, conn, &busy, 0);
		return false;
	}
	hc->free_partial = partial->next_free;
	partial->word = word_of(conn);
	httpd_request_copy(&partial->req, &hc->scratch);
	corq_conn_set_user(conn, partial);
	corq_conn_set_deadline(hc->core, conn, corq_core_now(hc->core) + HEADER_NS);
	return true;
}

static void
remember(struct httpd_core *hc, const struct httpd_plan *plan, const char *data, size_t len)
{
	if (plan->status != 200 || len > HTTPD_CACHED_MAX)
		return;
	memcpy(hc->cached_bytes, data, len);
	hc->cached_len = (uint32_t)len;
	hc->cached = *plan;
}

/* Reads one request through the parser. False: stop reading this connection. */
static bool
serve_parsed(struct httpd_core *hc, struct corq_conn *conn, const struct iovec *iov, int n)
{
	struct httpd_partial *partial = partial_of(conn);
	struct httpd_request *req = partial != NULL ? &partial->req : &hc->scratch;
	struct httpd_plan plan;
	size_t used = 0;

	if (partial == NULL)
		httpd_request_start(req, &hc->settings);
	for (int i = 0; i < n && req->status == 0; i++)
		used += httpd_request_feed(req, iov[i].iov_base, iov[i].iov_len);
	if (req->status == 0) {
		corq_conn_consume(hc->core, conn, used);
		return partial != NULL || keep_partial(hc, conn);
	}
	plan = plan_for(hc, req);
	if (partial == NULL && used <= iov[0].iov_len && req->body == 0)
		remember(hc, &plan, iov[0].iov_base, used);
	corq_conn_consume(hc->core, conn, used);
	free_partial(hc, conn);
	return answer(hc, conn, &plan, req->body);
}

static bool
serve_one(struct httpd_core *hc, struct corq_conn *conn)
{
	struct iovec iov[16];
	uint32_t cached = hc->cached_len;
	int n = corq_conn_peek(hc->core, conn, iov, 16);

	if (n <= 0)
		return false;
	if (cached != 0 && iov[0].iov_len >= cached &&
		memcmp(iov[0].iov_base, hc->cached_bytes, cached) == 0 &&
		partial_of(conn) == NULL) {
		corq_conn_consume(hc->core, conn, cached);
		return answer(hc, conn, &hc->cached, 0);
	}
	return serve_parsed(hc, conn, iov, n);
}

/* False: the connection is closed or ending. */
static bool
serve(struct httpd_core *hc, struct corq_conn *conn)
{
	size_t readable;

	while ((readable = corq_conn_readable(conn)) != 0) {
		uint64_t word = word_of(conn), skip = (word & WORD_SKIP) >> WORD_SKIP_AT;

		if ((word & WORD_ENDING) != 0) {
			drop_input(hc, conn);
			return false;
		}
		if (skip != 0) {
			skip = skip < readable ? skip : readable;
			corq_conn_consume(hc->core, conn, skip);
			set_word(conn, word - (skip << WORD_SKIP_AT));
			continue;
		}
		if (corq_conn_unsent(conn) > STALL_BYTES) {
			set_word(conn, word | WORD_STALLED);
			corq_conn_set_ops(conn, hc->core, &watching_ops);
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
	struct httpd_core *hc = hc_of(core);
	uint64_t now = corq_core_now(core);

	hc->counts.connections++;
	set_word(conn, stamp(WORD_INLINE, now));
	corq_conn_set_deadline(core, conn, now + IDLE_NS);
}

static void
on_data(struct corq_core *core, struct corq_conn *conn)
{
	serve(hc_of(core), conn);
}

static void
on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	struct httpd_core *hc = hc_of(core);
	uint64_t word = word_of(conn);

	if ((word & WORD_STALLED) != 0) {
		set_word(conn, word | WORD_PEER_FIN);
		return;
	}
	if ((word & WORD_RESET) != 0 && corq_conn_unsent(conn) != 0)
		return;
	drop_input(hc, conn);
	end_quiet(hc, conn);
}

static void
on_sent(struct corq_core *core, struct corq_conn *conn)
{
	struct httpd_core *hc = hc_of(core);
	uint64_t word = word_of(conn);

	if ((word & WORD_RESET) != 0) {
		if (corq_conn_unsent(conn) == 0)
			corq_conn_abort(core, conn);
		return;
	}
	if ((word & WORD_STALLED) == 0 || corq_conn_unsent(conn) > STALL_BYTES / 2)
		return;
	set_word(conn, word & ~(WORD_STALLED | WORD_PEER_FIN));
	corq_conn_set_ops(conn, core, &httpd_ops);
	if (!serve(hc, conn) || (word & WORD_PEER_FIN) == 0)
		return;
	word = word_of(conn);
	if ((word & WORD_STALLED) != 0)
		set_word(conn, word | WORD_PEER_FIN);
	else
		end_quiet(hc, conn);
}

static void
on_timer(struct corq_core *core, struct corq_conn *conn)
{
	static const struct httpd_plan late = {.status = 408, .linger = true};
	struct httpd_core *hc = hc_of(core);
	uint64_t now = corq_core_now(core), word = word_of(conn);

	if ((word & WORD_RESET) != 0) {
		corq_conn_abort(core, conn);
	} else if ((word & WORD_ENDING) != 0) {
		drop_input(hc, conn);
		if (corq_conn_unsent(conn) != 0) /* TCP gives up on who takes nothing */
			corq_conn_set_deadline(core, conn, now + LINGER_NS);
		else
			corq_conn_close(core, conn);
	} else if (partial_of(conn) != NULL) {
		hc->counts.header_late++;
		free_partial(hc, conn);
		answer(hc, conn, &late, 0);
	} else if (corq_conn_unsent(conn) != 0 || since(word, now) < IDLE_NS) {
		/* One deadline serves all requests of a connection; it moves on when it fires.
		 * TCP itself gives up on a peer that takes nothing. */
		corq_conn_set_deadline(core, conn,
			now + SECOND_NS + IDLE_NS -
				(since(word, now) < IDLE_NS ? since(word, now) : 0));
	} else {
		hc->counts.idle_closed++;
		end_quiet(hc, conn);
	}
}

/* It did not end in order: what was the peer not seen to get? */
static void
count_unacked(struct httpd_core *hc, struct corq_conn *conn)
{
	uint64_t word = word_of(conn), index = (word & WORD_FILE) >> WORD_FILE_AT, bytes;
	struct httpd_unacked lost = {0, 0};
	const struct httpd_file *file;
	struct corq_conn_info info;

	if ((word & WORD_SERVED) == 0)
		return;
	corq_conn_get_info(hc->core, conn, &info);
	bytes = (uint64_t)info.unacked_bytes + info.unsent_bytes;
	if (info.fin_sent && bytes != 0)
		bytes--; /* the FIN */
	if (index != 0) {
		file = &hc->server->site.files[index - 1];
		lost = httpd_unacked(bytes, hc->first_len[1] + file->head_len, file->len);
	} else if (bytes != 0) {
		lost.responses = 1;
	}
	hc->counts.cut_short += lost.responses;
	hc->counts.bytes_lost += lost.body;
}

static void
on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct httpd_core *hc = hc_of(core);

	if (reason != 0)
		count_unacked(hc, conn);
	free_partial(hc, conn);
}

const struct corq_ops httpd_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_peer_fin = on_peer_fin,
	.on_timer = on_timer,
	.on_close = on_close,
};

/* As httpd_ops, with on_sent: of connections that wait for the peer to take answers. */
static const struct corq_ops watching_ops = {
	.on_sent = on_sent,
	.on_peer_fin = on_peer_fin,
	.on_timer = on_timer,
	.on_close = on_close,
};
