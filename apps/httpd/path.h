/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path.h - from the target of a request line to the name of a file under the root. Pure; every
 * input byte comes from a peer.
 *
 * The result starts with '/', has no "." or ".." segment, no empty segment but a last one, no NUL,
 * and is never longer than the input. It is a key of the table of files, never a name given to
 * the kernel: what is not in the table cannot be reached.
 */
#ifndef CORQ_HTTPD_PATH_H
#define CORQ_HTTPD_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Longer: 414. The longest link of a listing has 3 * 1023 bytes (site.h). */
#define HTTPD_URL_MAX 4095

/* Length of what stands in out (NUL-terminated, room for len + 2), or -EINVAL: 400. */
ssize_t httpd_path_decode(const char *url, size_t len, char *out);
/* The other way: any bytes become a path that a header or a link can hold. Room for 3 * length + 1.
 * Returns its length. */
size_t httpd_path_encode(const char *path, char *out);

/* host [":" port] (RFC 3986 3.2.2), without a user. The host may be empty. */
bool httpd_authority_is_right(const char *text, size_t len);

#endif
