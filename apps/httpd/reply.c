/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply.c - writes answers into the send queue. On the core.
 *
 * A whole file of up to 32 MiB is one copied header and one borrowed body. Longer ones and ranges
 * go out in pieces: the queue gets what it can hold (TCP counts at most 2 GiB in it, and copied
 * bytes find no room behind 256 KiB), and on_sent goes on when it has run empty. Each piece is
 * borrowed; only the lines between several ranges are copied.
 */
#include "httpd/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DATE_NS 200000000ull /* the clock is looked at so often */

static const char *
phrase(unsigned status)
{
	switch (status) {
	case 200:
		return "OK";
	case 204:
		return "No Content";
	case 206:
		return "Partial Content";
	case 301:
		return "Moved Permanently";
	case 304:
		return "Not Modified";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 412:
		return "Precondition Failed";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 416:
		return "Range Not Satisfiable";
	case 417:
		return "Expectation Failed";
	case 431:
		return "Request Header Fields Too Large";
	case 501:
		return "Not Implemented";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Internal Server Error";
	}
}

static const char *
connection(bool keep)
{
	return keep ? "keep-alive" : "close";
}

static void
refresh_date(struct httpd_core *hc, uint64_t now)
{
	time_t seconds;
	struct tm tm;

	if (now < hc->date_until)
		return;
	hc->date_until = now + DATE_NS;
	seconds = time(NULL);
	hc->wall_s = seconds;
	gmtime_r(&seconds, &tm);
	strftime(hc->date, sizeof(hc->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	for (int keep = 0; keep < 2; keep++)
		hc->first_len[keep] = (unsigned)snprintf(hc->first[keep], sizeof(hc->first[keep]),
			"HTTP/1.1 200 OK\r\nServer: corq/" CORQ_VERSION
			"\r\nDate: %s\r\nConnection: %s\r\n",
			hc->date, connection(keep));
}

/* ---- into the queue ---- */

static bool
no_memory(struct httpd_core *hc, struct corq_conn *conn)
{
	hc->counts.no_memory++;
	httpd_set_word(conn, httpd_word(conn) | WORD_LOST);
	corq_conn_abort(hc->core, conn);
	return false;
}

static bool
write_all(
	struct httpd_core *hc, struct corq_conn *conn, const char *data, size_t len, unsigned flags)
{
	ssize_t n = corq_conn_write(hc->core, conn, data, len, flags);

	if (n == (ssize_t)len)
		return true;
	if (n != -EPIPE)
		return no_memory(hc, conn);
	/* The client's reset came with its request. */
	httpd_set_word(conn, httpd_word(conn) | WORD_LOST);
	return false;
}

static bool
write_head(
	struct httpd_core *hc, struct corq_conn *conn, const char *data, size_t len, unsigned flags)
{
	if (!write_all(hc, conn, data, len, flags))
		return false;
	if (httpd_uses(conn, EXTRA_SIZED))
		httpd_extra_of(conn)->last.head += len;
	return true;
}

/* Body bytes that were queued. */
static void
count_body(struct httpd_core *hc, const struct corq_conn *conn, uint64_t bytes)
{
	struct httpd_extra *extra = httpd_extra_of(conn);

	hc->counts.bytes_body += bytes;
	if (extra != NULL && (extra->uses & EXTRA_LOGGED) != 0)
		extra->record.body_bytes += bytes;
	if (extra != NULL && (extra->uses & EXTRA_SIZED) != 0)
		extra->last.body += bytes;
}

static bool
write_body(
	struct httpd_core *hc, struct corq_conn *conn, const char *data, size_t len, unsigned flags)
{
	if (corq_conn_write_mem(hc->core, conn, hc->server->site.mem, data, len, flags, 0) !=
		(ssize_t)len)
		return no_memory(hc, conn);
	count_body(hc, conn, len);
	return true;
}

/* ---- answers in pieces ---- */

static bool
is_multipart(const struct httpd_plan *plan)
{
	return plan->status == 206 && plan->ranges.n > 1;
}

/* The tag tells the content, so the content does not have it. */
static void
boundary(const struct httpd_file *file, char out[HTTPD_ETAG_MAX + 16])
{
	size_t len = strlen(file->etag);

	snprintf(out, HTTPD_ETAG_MAX + 16, "corq-part-%.*s", len < 2 ? 0 : (int)len - 2,
		file->etag + 1);
}

#define PART_MAX 320 /* lines before a part */

static size_t
part_head(const struct httpd_plan *plan, unsigned i, char out[PART_MAX])
{
	const struct httpd_range *r = &plan->ranges.r[i];
	char mark[HTTPD_ETAG_MAX + 16];

	boundary(plan->file, mark);
	return (size_t)snprintf(out, PART_MAX,
		"%s--%s\r\nContent-Type: %s\r\nContent-Range: bytes %llu-%llu/%zu\r\n\r\n",
		i == 0 ? "" : "\r\n", mark, plan->file->type, (unsigned long long)r->first,
		(unsigned long long)(r->first + r->len - 1), plan->file->len);
}

static size_t
last_line(const struct httpd_plan *plan, char out[PART_MAX])
{
	char mark[HTTPD_ETAG_MAX + 16];

	boundary(plan->file, mark);
	return (size_t)snprintf(out, PART_MAX, "\r\n--%s--\r\n", mark);
}

/* The next piece of the range under way. False: the connection was aborted. */
static bool
write_piece(struct httpd_core *hc, struct corq_conn *conn, struct httpd_extra *extra)
{
	const struct httpd_plan *plan = &extra->plan;
	const struct httpd_range *r = &plan->ranges.r[extra->range];
	uint64_t left = r->len - extra->piece_at;
	uint64_t len = httpd_smaller(left, HTTPD_PIECE_BYTES);
	bool last = len == left && extra->range + 1 == plan->ranges.n && !is_multipart(plan);
	/* A tail waits for what is queued at once only: what comes later comes when all of this
	 * is acknowledged. */
	bool more = !last && corq_conn_unsent(conn) + len <= HTTPD_STALL_BYTES;
	char text[PART_MAX];

	if (extra->piece_at == 0 && is_multipart(plan)) {
		size_t n = part_head(plan, extra->range, text);

		if (!write_all(hc, conn, text, n, CORQ_MORE))
			return false;
		count_body(hc, conn, n);
		more = more && corq_conn_unsent(conn) + len <= HTTPD_STALL_BYTES;
	}
	if (!write_body(hc, conn, plan->file->body + r->first + extra->piece_at, len,
		    more ? CORQ_MORE : 0))
		return false;
	extra->piece_at += len;
	if (extra->piece_at == r->len) {
		extra->range++;
		extra->piece_at = 0;
	}
	return true;
}

bool
httpd_reply_more(struct httpd_core *hc, struct corq_conn *conn)
{
	struct httpd_extra *extra = httpd_extra_of(conn);
	char text[PART_MAX];
	size_t n;

	while (extra->range < extra->plan.ranges.n) {
		if (corq_conn_unsent(conn) > HTTPD_STALL_BYTES)
			return true;
		if (!write_piece(hc, conn, extra))
			return false;
	}
	if (is_multipart(&extra->plan)) {
		if (corq_conn_unsent(conn) > HTTPD_STALL_BYTES)
			return true;
		n = last_line(&extra->plan, text);
		if (!write_all(hc, conn, text, n, 0))
			return false;
		count_body(hc, conn, n);
	}
	httpd_unuse(hc, conn, EXTRA_WRITING);
	return true;
}

static bool
begin_pieces(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan,
	const char *head, size_t len)
{
	struct httpd_extra *extra = httpd_use_sized(hc, conn);

	if (extra == NULL)
		return no_memory(hc, conn);
	httpd_use(hc, conn, EXTRA_WRITING);
	extra->last.answers = 1;
	extra->plan = *plan;
	extra->piece_at = 0;
	extra->range = 0;
	return write_head(hc, conn, head, len, CORQ_MORE) && httpd_reply_more(hc, conn);
}

/* ---- files ---- */

static bool
reply_file(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	const struct httpd_file *file = plan->file;
	size_t body = plan->head ? 0 : file->len;
	unsigned first = hc->first_len[plan->keep];
	char head[sizeof(hc->first[0]) + sizeof(file->head)];

	memcpy(head, hc->first[plan->keep], first);
	memcpy(head + first, file->head, file->head_len);
	if (body > HTTPD_PIECE_BYTES) {
		struct httpd_plan whole = *plan;

		whole.ranges.n = 1;
		whole.ranges.r[0] = (struct httpd_range){0, body};
		return begin_pieces(hc, conn, &whole, head, first + file->head_len);
	}
	if (!plan->keep)
		corq_conn_set_cork(hc->core, conn, true);
	if (!write_head(hc, conn, head, first + file->head_len, body != 0 ? CORQ_MORE : 0))
		return false;
	return body == 0 || write_body(hc, conn, file->body, body, 0);
}

static uint64_t
multipart_length(const struct httpd_plan *plan)
{
	char text[PART_MAX];
	uint64_t sum = last_line(plan, text);

	for (unsigned i = 0; i < plan->ranges.n; i++)
		sum += part_head(plan, i, text) + plan->ranges.r[i].len;
	return sum;
}

static bool
reply_ranges(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	const struct httpd_file *file = plan->file;
	const struct httpd_range *r = &plan->ranges.r[0];
	char head[sizeof(hc->first[0]) + sizeof(file->head) + 256], mark[HTTPD_ETAG_MAX + 16];
	int n;

	n = snprintf(head, sizeof(head),
		"HTTP/1.1 206 Partial Content\r\nServer: corq/" CORQ_VERSION
		"\r\nDate: %s\r\nConnection: %s\r\n%.*s",
		hc->date, connection(plan->keep), file->shared_len, file->head);
	if (is_multipart(plan)) {
		boundary(file, mark);
		n += snprintf(head + n, sizeof(head) - (size_t)n,
			"Content-Type: multipart/byteranges; boundary=%s\r\n"
			"Content-Length: %llu\r\n\r\n",
			mark, (unsigned long long)multipart_length(plan));
	} else {
		n += snprintf(head + n, sizeof(head) - (size_t)n,
			"Content-Range: bytes %llu-%llu/%zu\r\nContent-Type: %s\r\n"
			"Content-Length: %llu\r\n\r\n",
			(unsigned long long)r->first, (unsigned long long)(r->first + r->len - 1),
			file->len, file->type, (unsigned long long)r->len);
	}
	return begin_pieces(hc, conn, plan, head, (size_t)n);
}

/* ---- lines of text ---- */

/* The path may hold any byte: in a header it is written in percent form. */
static void
put_location(char *out, const char *path)
{
	char *end = stpcpy(out, "Location: ");

	strcpy(end + httpd_path_encode(path, end), "/\r\n");
}

/* The field lines that only some answers have. */
static void
put_fields(char *out, size_t room, const struct httpd_plan *plan)
{
	out[0] = '\0';
	switch (plan->status) {
	case 204:
	case 405:
		snprintf(out, room, "Allow: GET, HEAD, OPTIONS%s\r\n",
			plan->accepts ? ", POST, PUT" : "");
		break;
	case 301:
		put_location(out, plan->file->path);
		break;
	case 304:
		snprintf(out, room, "%.*s", plan->file->shared_len, plan->file->head);
		break;
	case 416:
		snprintf(out, room, "Content-Range: bytes */%zu\r\n", plan->file->len);
		break;
	default:
		break;
	}
}

static size_t
put_text(struct corq_conn *conn, const struct httpd_plan *plan, char *out, size_t room)
{
	struct httpd_extra *extra = httpd_extra_of(conn);
	bool read = extra != NULL && (extra->uses & EXTRA_BODY) != 0;

	if (plan->status == 200)
		return httpd_upload_text(read ? &extra->body : NULL, plan->digest, out, room);
	return (size_t)snprintf(out, room, "%u %s\n", plan->status, phrase(plan->status));
}

static bool
reply_text(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	bool empty = plan->status == 204 || plan->status == 304;
	char fields[3 * 1024 + 32], text[256], out[sizeof(fields) + 512], about[96] = "";
	size_t len = 0;
	int n;

	put_fields(fields, sizeof(fields), plan);
	if (!empty) {
		len = put_text(conn, plan, text, sizeof(text));
		snprintf(about, sizeof(about),
			"Content-Type: text/plain\r\nContent-Length: %zu\r\n", len);
	}
	if (plan->head)
		len = 0;
	n = snprintf(out, sizeof(out),
		"HTTP/1.1 %u %s\r\nServer: corq/" CORQ_VERSION
		"\r\nDate: %s\r\nConnection: %s\r\n%s%s\r\n%.*s",
		plan->status, phrase(plan->status), hc->date, connection(plan->keep), fields, about,
		(int)len, text);
	if (!plan->keep)
		corq_conn_set_cork(hc->core, conn, true);
	if (!write_head(hc, conn, out, (size_t)n, 0))
		return false;
	if (httpd_uses(conn, EXTRA_LOGGED))
		httpd_extra_of(conn)->record.body_bytes += len;
	return true;
}

bool
httpd_reply_continue(struct httpd_core *hc, struct corq_conn *conn)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	ssize_t n = corq_conn_write(hc->core, conn, text, sizeof(text) - 1, 0);

	return n == sizeof(text) - 1 || (n != -EPIPE && no_memory(hc, conn));
}

static void
count_status(struct httpd_counts *counts, unsigned status)
{
	if (status >= 500)
		counts->server_errors++;
	else if (status >= 400)
		counts->client_errors++;
	else if (status >= 300)
		counts->redirects++;
	else
		counts->ok++;
	counts->partial += status == 206;
	counts->not_modified += status == 304;
}

bool
httpd_reply(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	refresh_date(hc, corq_core_now(hc->core));
	hc->counts.requests++;
	if (hc->log != NULL && --hc->log_wait == 0)
		httpd_record_begin(hc, conn, plan->status);
	if (plan->status == 200 && plan->file != NULL) {
		hc->counts.ok++;
		return reply_file(hc, conn, plan);
	}
	count_status(&hc->counts, plan->status);
	return plan->status == 206 ? reply_ranges(hc, conn, plan) : reply_text(hc, conn, plan);
}
