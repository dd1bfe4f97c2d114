/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * site.h - what the server serves: one page for every path, or the files of a directory, read
 * once at start into one region. Afterwards nothing changes, so cores share it without a lock.
 * Needs no instance; setup.c registers the region.
 *
 * Limits: 65536 entries, directories 32 deep, names up to 1023 bytes. Symbolic links to files
 * inside the root are followed. Left out and counted: names that start with a dot, other links,
 * links to directories, and what is neither a file nor a directory. A directory is served by its
 * index.html, else by a listing (list.h), which is made here and has the path "/dir/"; without
 * both it is not there (404).
 *
 * The page of a given size has no validators: it is for measuring, and its header stays short.
 */
#ifndef CORQ_HTTPD_SITE_H
#define CORQ_HTTPD_SITE_H

#include "httpd/condition.h"
#include "httpd/type.h"

#include <stddef.h>
#include <stdint.h>

#define HTTPD_FILES_MAX 65536 /* and as many listings, and the root's */
#define HTTPD_ETAG_MAX  40

struct corq_mem;

struct httpd_file {
	char *path; /* "/a/b.html"; of a directory "/a" (the answer is a redirect) */
	const char *body;
	size_t len;
	struct httpd_validators validators;
	char etag[HTTPD_ETAG_MAX];
	char type[HTTPD_TYPE_MAX];
	/* Field lines: first what 206 and 304 share with 200, then Content-Type, Content-Length
	 * and the empty line. */
	char head[288];
	uint16_t shared_len, head_len;
	bool directory, listing;
	bool shown;           /* of a directory: it has an index or a listing */
	uint32_t subtree_end; /* of a directory: index behind its last descendant */
};

struct httpd_site {
	bool fixed; /* files[0] answers every path */
	struct httpd_file *files;
	size_t count, room;
	size_t served;   /* files without directories and listings */
	size_t skipped;  /* entries left out */
	uint32_t *table; /* index + 1 */
	size_t mask;
	char *arena;
	size_t arena_len;
	struct corq_mem *mem;
};

/* 0, or a negative errno and a line in err. */
int httpd_site_fixed(struct httpd_site *site, size_t size, char *err, size_t err_len);
int httpd_site_load(struct httpd_site *site, const char *dir, bool list, char *err, size_t err_len);
void httpd_site_free(struct httpd_site *site);
/* path as httpd_path_decode makes it, with room for "index.html" behind it; NULL: 404. */
const struct httpd_file *httpd_site_find(const struct httpd_site *site, char *path, size_t len);

#endif
