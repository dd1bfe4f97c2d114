/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply.c - writes answers into the send queue. On the core.
 */
#include "httpd/core.h"

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
	case 301:
		return "Moved Permanently";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 413:
		return "Content Too Large";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Internal Server Error";
	}
}

static void
refresh_date(struct httpd_core *hc, uint64_t now)
{
	static const char *const connection[2] = {"close", "keep-alive"};
	time_t seconds;
	struct tm tm;

	if (now < hc->date_until)
		return;
	hc->date_until = now + DATE_NS;
	seconds = time(NULL);
	gmtime_r(&seconds, &tm);
	strftime(hc->date, sizeof(hc->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	for (int keep = 0; keep < 2; keep++)
		hc->first_len[keep] = (unsigned)snprintf(hc->first[keep], sizeof(hc->first[keep]),
			"HTTP/1.1 200 OK\r\nServer: corq/" CORQ_VERSION
			"\r\nDate: %s\r\nConnection: %s\r\n",
			hc->date, connection[keep]);
}

static bool
write_all(
	struct httpd_core *hc, struct corq_conn *conn, const char *data, size_t len, unsigned flags)
{
	if (corq_conn_write(hc->core, conn, data, len, flags) == (ssize_t)len)
		return true;
	hc->counts.no_memory++;
	corq_conn_abort(hc->core, conn);
	return false;
}

static bool
reply_file(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	const struct httpd_file *file = plan->file;
	size_t body = plan->head ? 0 : file->len;
	unsigned first = hc->first_len[plan->keep];
	char head[sizeof(hc->first[0]) + sizeof(file->head)];

	memcpy(head, hc->first[plan->keep], first);
	memcpy(head + first, file->head, file->head_len);
	hc->counts.ok++;
	if (!plan->keep)
		corq_conn_set_cork(hc->core, conn, true);
	if (!write_all(hc, conn, head, first + file->head_len, body != 0 ? CORQ_MORE : 0))
		return false;
	if (body == 0)
		return true;
	if (corq_conn_write_mem(hc->core, conn, hc->server->site.mem, file->body, body, 0, 0) ==
		(ssize_t)body) {
		hc->counts.bytes_body += body;
		return true;
	}
	hc->counts.no_memory++;
	corq_conn_abort(hc->core, conn);
	return false;
}

/* The path may hold any byte: in a header it is written in percent form. */
static size_t
put_location(char *out, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/-._~";
	size_t n = 0;

	n += (size_t)sprintf(out, "Location: ");
	for (; *path != '\0'; path++) {
		if (strchr(plain, *path) != NULL)
			out[n++] = *path;
		else
			n += (size_t)sprintf(out + n, "%%%02X", (unsigned char)*path);
	}
	n += (size_t)sprintf(out + n, "/\r\n");
	return n;
}

static bool
reply_short(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	char location[3 * 1024 + 32] = "", body[128], out[sizeof(location) + 512];
	size_t body_len;
	int n;

	if (plan->status == 301)
		put_location(location, plan->file->path);
	body_len =
		(size_t)snprintf(body, sizeof(body), "%u %s\n", plan->status, phrase(plan->status));
	n = snprintf(out, sizeof(out),
		"HTTP/1.1 %u %s\r\nServer: corq/" CORQ_VERSION
		"\r\nDate: %s\r\nConnection: %s\r\n%s%s"
		"Content-Type: text/plain\r\nContent-Length: %zu\r\n\r\n%s",
		plan->status, phrase(plan->status), hc->date, plan->keep ? "keep-alive" : "close",
		location, plan->status == 405 ? "Allow: GET, HEAD\r\n" : "", body_len,
		plan->head ? "" : body);
	if (plan->status >= 500)
		hc->counts.server_errors++;
	else if (plan->status >= 400)
		hc->counts.client_errors++;
	else
		hc->counts.redirects++;
	if (!plan->keep)
		corq_conn_set_cork(hc->core, conn, true);
	return write_all(hc, conn, out, (size_t)n, 0);
}

bool
httpd_reply(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_plan *plan)
{
	refresh_date(hc, corq_core_now(hc->core));
	hc->counts.requests++;
	if (plan->status == 200)
		return reply_file(hc, conn, plan);
	return reply_short(hc, conn, plan);
}
