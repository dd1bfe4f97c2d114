/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.h - the page that lists a directory. Main thread, at start. Names may hold any byte: they
 * are escaped in text and in percent form in links.
 */
#ifndef CORQ_HTTPD_LIST_H
#define CORQ_HTTPD_LIST_H

#include "httpd/site.h"

#include <stdio.h>

/*
 * Writes the page of the directory whose entries are files[first..end), in the order of the walk
 * (each directory is followed by its own entries, up to subtree_end). path: "" of the root.
 * 0, or -ENOMEM.
 */
int httpd_list_write(
	FILE *out, const char *path, const struct httpd_file *files, size_t first, size_t end);

#endif
