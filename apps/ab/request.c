/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - the bytes of the request, in ab's order: request line, Connection, Cookie,
 * authorizations, body headers, the user's headers, then Host, User-Agent and Accept unless the
 * user gave them. Pure.
 */
#include "ab/options.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *
ab_options_method(const struct ab_options *opts)
{
	return opts->method != NULL ? opts->method : "GET";
}

static void
put_target(FILE *out, const struct ab_options *opts, const char *path)
{
	bool schemeless = opts->via_proxy && strncasecmp(opts->url_text, "http://", 7) != 0;

	fprintf(out, "%s%s", schemeless ? "http://" : "", opts->via_proxy ? opts->url_text : path);
}

static void
put_head(
	FILE *out, const struct ab_options *opts, const char *host, uint16_t port, const char *path)
{
	fprintf(out, "%s ", ab_options_method(opts));
	put_target(out, opts, path);
	fputs(" HTTP/1.0\r\n", out);
	if (opts->keepalive)
		fputs("Connection: Keep-Alive\r\n", out);
	if (opts->cookies != NULL)
		fprintf(out, "Cookie: %s\r\n", opts->cookies);
	if (opts->auth != NULL)
		fputs(opts->auth, out);
	if (opts->body != NULL)
		fprintf(out, "Content-length: %zu\r\nContent-type: %s\r\n", opts->body_len,
			opts->content_type != NULL ? opts->content_type : "text/plain");
	if (opts->headers != NULL)
		fputs(opts->headers, out);
	if (!opts->host_given && port == 80)
		fprintf(out, "Host: %s\r\n", host);
	else if (!opts->host_given)
		fprintf(out, "Host: %s:%u\r\n", host, port);
	if (!opts->agent_given)
		fputs("User-Agent: corq/" CORQ_VERSION "\r\n", out);
	if (!opts->accept_given)
		fputs("Accept: */*\r\n", out);
	fputs("\r\n", out);
}

char *
ab_request_build(const struct ab_options *opts, const char *host, uint16_t port, const char *path,
	size_t *len)
{
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, len);

	if (out == NULL)
		return NULL;
	put_head(out, opts, host, port, path);
	if (opts->body != NULL)
		fwrite(opts->body, 1, opts->body_len, out);
	if (fclose(out) != 0) {
		free(bytes);
		return NULL;
	}
	return bytes;
}
