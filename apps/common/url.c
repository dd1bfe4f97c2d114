/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * url.c - see url.h.
 */
#include "common/url.h"

#include <string.h>
#include <strings.h>

static const char *
parse_port(const char *from, const char *to, uint16_t *port)
{
	uint32_t value = 0;

	if (from == to)
		return "the port is missing after ':'";
	for (; from < to; from++) {
		if (*from < '0' || *from > '9')
			return "the port is not a number";
		value = value * 10 + (uint32_t)(*from - '0');
		if (value > 65535)
			return "the port is above 65535";
	}
	if (value == 0)
		return "port 0 cannot be reached";
	*port = (uint16_t)value;
	return NULL;
}

/* The host ends at `end`: ':' or '/'. */
static const char *
take_host(const char *from, const char *end, struct app_url *url)
{
	if (from == end)
		return "the host is missing";
	if (end - from > APP_HOST_MAX)
		return "the host name is longer than 255 bytes";
	for (const char *p = from; p < end; p++) {
		if ((unsigned char)*p <= ' ' || *p == '@' || *p == '\x7f')
			return "the host has a character that no host name has";
	}
	memcpy(url->host, from, (size_t)(end - from));
	url->host[end - from] = '\0';
	return NULL;
}

/* After "http://": another scheme? Its name has letters, digits, '+', '-' and '.' only. */
static bool
other_scheme(const char *text)
{
	size_t len =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

	return len != 0 && strncmp(text + len, "://", 3) == 0;
}

const char *
app_url_parse(const char *text, struct app_url *url)
{
	const char *slash, *end, *error;

	memset(url, 0, sizeof(*url));
	url->port = 80;
	if (strncasecmp(text, "https://", 8) == 0)
		return "https is not there yet; use http";
	if (strncasecmp(text, "http://", 7) == 0)
		text += 7;
	else if (other_scheme(text))
		return "only http:// is spoken here";
	slash = strchr(text, '/');
	if (slash == NULL)
		return "there is no '/' after the host, as in http://host/";
	url->path = slash;
	for (const char *p = slash; *p != '\0'; p++) {
		if ((unsigned char)*p <= ' ' || *p == '\x7f')
			return "the path has a blank or control character; write it as %20";
	}
	if (*text == '[') {
		end = memchr(text, ']', (size_t)(slash - text));
		if (end == NULL)
			return "']' is missing after the IPv6 address";
		url->bracketed = true;
		error = take_host(text + 1, end, url);
		end++;
	} else {
		end = memchr(text, ':', (size_t)(slash - text));
		if (end != NULL && memchr(end + 1, ':', (size_t)(slash - end - 1)) != NULL)
			return "an IPv6 address stands in brackets; IPv6 is not there yet, though";
		end = end == NULL ? slash : end;
		error = take_host(text, end, url);
	}
	if (error != NULL || end == slash)
		return error;
	if (*end != ':')
		return "only ':port' may stand after ']'";
	return parse_port(end + 1, slash, &url->port);
}
