/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path.c - see path.h.
 */
#include "httpd/path.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Skips "scheme://authority" of an absolute target (RFC 9112 3.2.2). */
static size_t
skip_authority(const char *url, size_t len)
{
	const char *end;

	if (len < 7 || strncasecmp(url, "http://", 7) != 0)
		return 0;
	end = memchr(url + 7, '/', len - 7);
	return end != NULL ? (size_t)(end - url) : len;
}

/* Decodes until a query or the end; the length, or -EINVAL. */
static ssize_t
percent_decode(const char *url, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len && url[i] != '?' && url[i] != '#'; i++) {
		char c = url[i];

		if (c == '%') {
			if (len - i < 3 || hex(url[i + 1]) < 0 || hex(url[i + 2]) < 0)
				return -EINVAL;
			c = (char)(hex(url[i + 1]) * 16 + hex(url[i + 2]));
			i += 2;
		}
		if (c == '\0')
			return -EINVAL;
		out[n++] = c;
	}
	return (ssize_t)n;
}

/* Takes dots and empty segments out, in place. in[0] is '/'. */
static ssize_t
normalise(char *path, size_t len)
{
	size_t out = 0, at = 0;

	while (at < len) {
		size_t start = at + 1, seg;
		const char *slash = memchr(path + start, '/', len - start);
		size_t end = slash != NULL ? (size_t)(slash - path) : len;

		seg = end - start;
		if (seg == 2 && path[start] == '.' && path[start + 1] == '.') {
			if (out == 0)
				return -EINVAL;
			while (path[--out] != '/')
				;
		} else if (seg != 0 && !(seg == 1 && path[start] == '.')) {
			path[out] = '/';
			memmove(path + out + 1, path + start, seg);
			out += 1 + seg;
		}
		/* A directory keeps its last slash. */
		if (slash == NULL &&
			(seg == 0 || (seg <= 2 && path[start] == '.' && path[end - 1] == '.')))
			path[out++] = '/';
		at = end;
	}
	return (ssize_t)out;
}

ssize_t
httpd_path_decode(const char *url, size_t len, char *out)
{
	size_t skip = skip_authority(url, len);
	ssize_t n;

	if (len > 0 && skip == len) {
		strcpy(out, "/");
		return 1;
	}
	n = percent_decode(url + skip, len - skip, out);
	if (n <= 0 || out[0] != '/')
		return -EINVAL;
	n = normalise(out, (size_t)n);
	if (n < 0)
		return n;
	out[n] = '\0';
	return n;
}

const char *
httpd_path_type(const char *path)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {
		{"html", "text/html"},
		{"htm", "text/html"},
		{"css", "text/css"},
		{"js", "text/javascript"},
		{"json", "application/json"},
		{"txt", "text/plain"},
		{"md", "text/markdown"},
		{"xml", "application/xml"},
		{"svg", "image/svg+xml"},
		{"png", "image/png"},
		{"jpg", "image/jpeg"},
		{"jpeg", "image/jpeg"},
		{"gif", "image/gif"},
		{"webp", "image/webp"},
		{"ico", "image/x-icon"},
		{"wasm", "application/wasm"},
		{"pdf", "application/pdf"},
		{"mp4", "video/mp4"},
		{"woff2", "font/woff2"},
	};
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

	if (dot == NULL || (slash != NULL && dot < slash))
		return "application/octet-stream";
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(dot + 1, types[i].suffix) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}
