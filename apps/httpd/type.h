/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * type.h - the Content-Type of a file, from the end of its name and, for text, from its bytes.
 * Pure; used at start only.
 */
#ifndef CORQ_HTTPD_TYPE_H
#define CORQ_HTTPD_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#define HTTPD_TYPE_MAX 80 /* the longest, with its charset */

/* Without a charset; application/octet-stream when the suffix is not known. */
const char *httpd_type(const char *path);
/* Text whose bytes are UTF-8 is said to be; of other text the browser knows better than we. */
bool httpd_is_utf8(const char *bytes, size_t len);
/* The value of the header field, into out. Returns out. */
const char *httpd_type_field(
	const char *path, const char *bytes, size_t len, char out[HTTPD_TYPE_MAX]);

#endif
