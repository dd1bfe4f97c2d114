/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * type.c - see type.h.
 */
#include "httpd/type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct type {
	const char *suffix, *name;
};

/* In the order of strcasecmp: it is searched by halves. */
static const struct type types[] = {
	{"7z", "application/x-7z-compressed"},
	{"aac", "audio/aac"},
	{"avi", "video/x-msvideo"},
	{"avif", "image/avif"},
	{"bmp", "image/bmp"},
	{"bz2", "application/x-bzip2"},
	{"c", "text/plain"},
	{"css", "text/css"},
	{"csv", "text/csv"},
	{"doc", "application/msword"},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"eot", "application/vnd.ms-fontobject"},
	{"epub", "application/epub+zip"},
	{"flac", "audio/flac"},
	{"gif", "image/gif"},
	{"gz", "application/gzip"},
	{"h", "text/plain"},
	{"htm", "text/html"},
	{"html", "text/html"},
	{"ico", "image/x-icon"},
	{"jpeg", "image/jpeg"},
	{"jpg", "image/jpeg"},
	{"js", "text/javascript"},
	{"json", "application/json"},
	{"log", "text/plain"},
	{"m4a", "audio/mp4"},
	{"map", "application/json"},
	{"md", "text/markdown"},
	{"mjs", "text/javascript"},
	{"mkv", "video/x-matroska"},
	{"mov", "video/quicktime"},
	{"mp3", "audio/mpeg"},
	{"mp4", "video/mp4"},
	{"oga", "audio/ogg"},
	{"ogg", "audio/ogg"},
	{"ogv", "video/ogg"},
	{"otf", "font/otf"},
	{"pdf", "application/pdf"},
	{"png", "image/png"},
	{"rtf", "application/rtf"},
	{"sh", "text/plain"},
	{"svg", "image/svg+xml"},
	{"tar", "application/x-tar"},
	{"tif", "image/tiff"},
	{"tiff", "image/tiff"},
	{"tsv", "text/tab-separated-values"},
	{"ttf", "font/ttf"},
	{"txt", "text/plain"},
	{"wasm", "application/wasm"},
	{"wav", "audio/wav"},
	{"weba", "audio/webm"},
	{"webm", "video/webm"},
	{"webmanifest", "application/manifest+json"},
	{"webp", "image/webp"},
	{"woff", "font/woff"},
	{"woff2", "font/woff2"},
	{"xhtml", "application/xhtml+xml"},
	{"xml", "application/xml"},
	{"xz", "application/x-xz"},
	{"yaml", "application/yaml"},
	{"yml", "application/yaml"},
	{"zip", "application/zip"},
	{"zst", "application/zstd"},
};

static int
compare(const void *key, const void *entry)
{
	return strcasecmp(key, ((const struct type *)entry)->suffix);
}

const char *
httpd_type(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	const struct type *type = NULL;

	if (dot != NULL && (slash == NULL || dot > slash))
		type = bsearch(dot + 1, types, sizeof(types) / sizeof(types[0]), sizeof(types[0]),
			compare);
	return type != NULL ? type->name : "application/octet-stream";
}

/* How many bytes follow a first byte; -1: it is none (RFC 3629 4). */
static int
followers(unsigned char first)
{
	if (first < 0x80)
		return 0;
	if (first >= 0xc2 && first <= 0xdf)
		return 1;
	if ((first & 0xf0) == 0xe0)
		return 2;
	return first >= 0xf0 && first <= 0xf4 ? 3 : -1;
}

bool
httpd_is_utf8(const char *bytes, size_t len)
{
	const unsigned char *b = (const unsigned char *)bytes;

	for (size_t i = 0; i < len; i++) {
		unsigned char first = b[i];
		int n = followers(first);

		if (n < 0 || (size_t)n >= len - i)
			return false;
		/* No longer form than needed, no surrogates, nothing above U+10FFFF. */
		if ((first == 0xe0 && b[i + 1] < 0xa0) || (first == 0xed && b[i + 1] > 0x9f) ||
			(first == 0xf0 && b[i + 1] < 0x90) || (first == 0xf4 && b[i + 1] > 0x8f))
			return false;
		for (; n > 0; n--) {
			if ((b[++i] & 0xc0) != 0x80)
				return false;
		}
	}
	return true;
}

const char *
httpd_type_field(const char *path, const char *bytes, size_t len, char out[HTTPD_TYPE_MAX])
{
	const char *type = httpd_type(path);
	bool utf8 = strncmp(type, "text/", 5) == 0 && httpd_is_utf8(bytes, len);

	snprintf(out, HTTPD_TYPE_MAX, "%s%s", type, utf8 ? "; charset=utf-8" : "");
	return out;
}
