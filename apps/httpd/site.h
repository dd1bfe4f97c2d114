/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * site.h - what the server serves: one page for every path, or the files of a directory, read
 * once at start into one registered region. Afterwards nothing changes, so cores share it without
 * a lock.
 *
 * Limits: 65536 entries, directories 32 deep, names up to 1023 bytes. Symbolic links to files
 * inside the root are followed. Left out and counted: names that start with a dot, other links,
 * links to directories, and what is neither a file nor a directory. A directory is served by its
 * index.html; one without is not there (404).
 */
#ifndef CORQ_HTTPD_SITE_H
#define CORQ_HTTPD_SITE_H

#include <corq/instance.h>
#include <stddef.h>

#define HTTPD_FILES_MAX 65536

struct httpd_file {
	char *path; /* "/a/b.html"; of a directory "/a" (the answer is a redirect) */
	const char *body;
	size_t len;
	char head[128]; /* "Content-Type: ...", "Content-Length: ..." and the empty line */
	unsigned head_len;
	bool directory;
	bool has_index; /* of a directory */
};

struct httpd_site {
	bool fixed; /* files[0] answers every path */
	struct httpd_file *files;
	size_t count, room;
	size_t skipped;  /* entries left out */
	uint32_t *table; /* index + 1 */
	size_t mask;
	char *arena;
	size_t arena_len;
	struct corq_mem *mem;
};

/* 0, or a negative errno and a line in err. */
int httpd_site_fixed(struct httpd_site *site, size_t size, char *err, size_t err_len);
int httpd_site_load(struct httpd_site *site, const char *dir, char *err, size_t err_len);
int httpd_site_register(struct httpd_site *site, struct corq_instance *inst);
void httpd_site_free(struct httpd_site *site);
/* path as httpd_path_decode makes it, with room for "index.html" behind it; NULL: 404. */
const struct httpd_file *httpd_site_find(const struct httpd_site *site, char *path, size_t len);

#endif
