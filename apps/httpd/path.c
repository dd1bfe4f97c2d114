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

bool
httpd_authority_is_right(const char *text, size_t len)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "-._~!$&'()*+,;=%";
	bool literal = len > 0 && text[0] == '[';
	size_t at = literal;

	while (at < len && text[at] != '\0' &&
		(strchr(name, text[at]) != NULL || (literal && text[at] == ':')))
		at++;
	if (literal && (at == 1 || at == len || text[at++] != ']'))
		return false;
	if (at < len && text[at++] != ':')
		return false;
	while (at < len && text[at] >= '0' && text[at] <= '9')
		at++;
	return at == len;
}

/* Skips "http://authority" of an absolute target (RFC 9112 3.2.2); -EINVAL when it has no host or
 * names a user, which RFC 9110 4.2.1 and 4.2.4 forbid. */
static ssize_t
skip_authority(const char *url, size_t len)
{
	size_t end = 7;

	if (len < 7 || strncasecmp(url, "http://", 7) != 0)
		return 0;
	while (end < len && url[end] != '/' && url[end] != '?' && url[end] != '#')
		end++;
	if (end == 7 || url[7] == ':' || !httpd_authority_is_right(url + 7, end - 7))
		return -EINVAL;
	return (ssize_t)end;
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
	ssize_t skip = skip_authority(url, len), n;

	if (skip < 0)
		return skip;
	if (skip > 0 && ((size_t)skip == len || url[skip] != '/')) {
		strcpy(out, "/");
		return 1;
	}
	n = percent_decode(url + skip, len - (size_t)skip, out);
	if (n <= 0 || out[0] != '/')
		return -EINVAL;
	n = normalise(out, (size_t)n);
	if (n < 0)
		return n;
	out[n] = '\0';
	return n;
}

size_t
httpd_path_encode(const char *path, char *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/-._~";
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (; *path != '\0'; path++) {
		if (strchr(plain, *path) != NULL) {
			out[n++] = *path;
			continue;
		}
		out[n++] = '%';
		out[n++] = digits[(unsigned char)*path >> 4];
		out[n++] = digits[(unsigned char)*path & 15];
	}
	out[n] = '\0';
	return n;
}
