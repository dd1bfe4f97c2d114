/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * site.c - see site.h. Files are copied, not mapped: a mapped file that somebody shortens would
 * end the server with SIGBUS, and a device cannot send from the page cache.
 */
#include "httpd/site.h"
#include "httpd/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX  32
#define PATH_LIMIT 1023
#define ALIGN      64 /* bodies start on a cache line */

static const char index_name[] = "index.html";

struct walk {
	struct httpd_site *site;
	const char *root; /* as realpath gives it */
	size_t root_len, bytes;
	char *err;
	size_t err_len;
};

static size_t
hash(const char *path, size_t len)
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a: the keys are ours, not a peer's */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)path[i]) * 1099511628211ull;
	return (size_t)(h ^ (h >> 32));
}

static void
set_head(struct httpd_file *file)
{
	file->head_len = (unsigned)snprintf(file->head, sizeof(file->head),
		"Content-Type: %s\r\nContent-Length: %zu\r\n\r\n", httpd_path_type(file->path),
		file->len);
}

static struct httpd_file *
add(struct httpd_site *site, const char *path, size_t len)
{
	struct httpd_file *file;

	if (site->count == site->room) {
		size_t room = site->room == 0 ? 64 : 2 * site->room;
		struct httpd_file *grown = realloc(site->files, room * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		site->files = grown;
		site->room = room;
	}
	file = &site->files[site->count];
	memset(file, 0, sizeof(*file));
	file->path = strdup(path);
	file->len = len;
	if (file->path == NULL)
		return NULL;
	site->count++;
	return file;
}

static int
make_arena(struct httpd_site *site, size_t bytes)
{
	void *p;

	site->arena_len = (bytes + 4095) / 4096 * 4096 + 4096;
	p = mmap(NULL, site->arena_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	site->arena = p;
	return 0;
}

int
httpd_site_fixed(struct httpd_site *site, size_t size, char *err, size_t err_len)
{
	static const char text[] =
		"hello from corq, a TCP endpoint for DPDK; this page is filler\n";
	struct httpd_file *file;

	memset(site, 0, sizeof(*site));
	site->fixed = true;
	file = add(site, "/page.html", size);
	if (file == NULL || make_arena(site, size) != 0) {
		snprintf(err, err_len, "not enough memory for a page of %zu bytes", size);
		httpd_site_free(site);
		return -ENOMEM;
	}
	for (size_t i = 0; i < size; i++)
		site->arena[i] = text[i % (sizeof(text) - 1)];
	file->body = site->arena;
	set_head(file);
	return 0;
}

/* ---- a directory ---- */

static int
fail(struct walk *w, int error, const char *path)
{
	snprintf(w->err, w->err_len, "'%s': %s", path, strerror(error));
	return -error;
}

static bool
inside(const struct walk *w, const char *path)
{
	char real[PATH_MAX];

	return realpath(path, real) != NULL && strncmp(real, w->root, w->root_len) == 0 &&
	       real[w->root_len] == '/';
}

static int walk_dir(struct walk *w, char *path, size_t len, int depth);

static int
walk_entry(struct walk *w, char *path, size_t len, size_t name_len, int depth)
{
	struct httpd_file *file;
	struct stat st;
	bool link;

	if (lstat(path, &st) != 0)
		return fail(w, errno, path);
	link = S_ISLNK(st.st_mode);
	if (path[len - name_len] == '.' || (link && (stat(path, &st) != 0 || !inside(w, path))) ||
		(!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) || (link && S_ISDIR(st.st_mode))) {
		w->site->skipped++;
		return 0;
	}
	if (w->site->count == HTTPD_FILES_MAX) {
		snprintf(
			w->err, w->err_len, "more than %d files in '%s'", HTTPD_FILES_MAX, w->root);
		return -EFBIG;
	}
	file = add(w->site, path + w->root_len, S_ISREG(st.st_mode) ? (size_t)st.st_size : 0);
	if (file == NULL)
		return fail(w, ENOMEM, path);
	file->directory = S_ISDIR(st.st_mode);
	w->bytes += (file->len + ALIGN - 1) / ALIGN * ALIGN;
	return file->directory ? walk_dir(w, path, len, depth + 1) : 0;
}

static int
walk_dir(struct walk *w, char *path, size_t len, int depth)
{
	struct dirent *entry;
	DIR *dir;
	int rc = 0;

	if (depth > DEPTH_MAX) {
		snprintf(
			w->err, w->err_len, "'%s': more than %d directories deep", path, DEPTH_MAX);
		return -ELOOP;
	}
	dir = opendir(path);
	if (dir == NULL)
		return fail(w, errno, path);
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		size_t name = strlen(entry->d_name);

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (len + 1 + name - w->root_len > PATH_LIMIT || len + 2 + name > PATH_MAX) {
			rc = fail(w, ENAMETOOLONG, path);
			break;
		}
		path[len] = '/';
		memcpy(path + len + 1, entry->d_name, name + 1);
		rc = walk_entry(w, path, len + 1 + name, name, depth);
		path[len] = '\0';
	}
	closedir(dir);
	return rc;
}

static int
read_file(struct walk *w, struct httpd_file *file, char *to)
{
	char path[PATH_MAX + PATH_LIMIT + 2];
	size_t at = 0;
	ssize_t n = 1;
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s%s", w->root, file->path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(w, errno, path);
	while (at < file->len && n > 0) {
		n = read(fd, to + at, file->len - at);
		at += n > 0 ? (size_t)n : 0;
	}
	error = n < 0 ? errno : 0;
	close(fd);
	if (error != 0)
		return fail(w, error, path);
	file->len = at; /* shorter if somebody cut it meanwhile */
	file->body = to;
	set_head(file);
	return 0;
}

static int
make_table(struct httpd_site *site)
{
	size_t size = 16;

	while (size < 2 * site->count)
		size *= 2;
	site->table = calloc(size, sizeof(*site->table));
	if (site->table == NULL)
		return -ENOMEM;
	site->mask = size - 1;
	for (size_t i = 0; i < site->count; i++) {
		size_t at = hash(site->files[i].path, strlen(site->files[i].path)) & site->mask;

		while (site->table[at] != 0)
			at = (at + 1) & site->mask;
		site->table[at] = (uint32_t)i + 1;
	}
	return 0;
}

static const struct httpd_file *
look_up(const struct httpd_site *site, const char *path, size_t len)
{
	size_t at = hash(path, len) & site->mask;

	for (; site->table[at] != 0; at = (at + 1) & site->mask) {
		const struct httpd_file *file = &site->files[site->table[at] - 1];

		if (strcmp(file->path, path) == 0)
			return file;
	}
	return NULL;
}

static void
mark_indexed(struct httpd_site *site)
{
	char path[PATH_LIMIT + sizeof(index_name) + 2];

	for (size_t i = 0; i < site->count; i++) {
		struct httpd_file *file = &site->files[i];
		int n = snprintf(path, sizeof(path), "%s/%s", file->path, index_name);
		const struct httpd_file *index;

		if (!file->directory)
			continue;
		index = look_up(site, path, (size_t)n);
		file->has_index = index != NULL && !index->directory;
	}
}

int
httpd_site_load(struct httpd_site *site, const char *dir, char *err, size_t err_len)
{
	char root[PATH_MAX], path[PATH_MAX + 1];
	struct walk w = {.site = site, .root = root, .err = err, .err_len = err_len};
	size_t at = 0;
	int rc = 0;

	memset(site, 0, sizeof(*site));
	if (realpath(dir, root) == NULL)
		return fail(&w, errno, dir);
	w.root_len = strlen(root);
	strcpy(path, root);
	if (w.root_len == 1) {
		snprintf(err, err_len, "'/' is the whole machine; name a directory below it");
		return -EINVAL;
	}
	rc = walk_dir(&w, path, w.root_len, 0);
	if (rc == 0 && (make_arena(site, w.bytes) != 0 || make_table(site) != 0)) {
		snprintf(err, err_len, "not enough memory for the %zu bytes in '%s'", w.bytes, dir);
		rc = -ENOMEM;
	}
	if (rc == 0)
		mark_indexed(site);
	for (size_t i = 0; rc == 0 && i < site->count; i++) {
		if (site->files[i].directory)
			continue;
		rc = read_file(&w, &site->files[i], site->arena + at);
		at += (site->files[i].len + ALIGN - 1) / ALIGN * ALIGN;
	}
	if (rc != 0)
		httpd_site_free(site);
	return rc;
}

int
httpd_site_register(struct httpd_site *site, struct corq_instance *inst)
{
	return corq_mem_register(inst, site->arena, site->arena_len, NULL, NULL, &site->mem);
}

void
httpd_site_free(struct httpd_site *site)
{
	for (size_t i = 0; i < site->count; i++)
		free(site->files[i].path);
	free(site->files);
	free(site->table);
	if (site->arena != NULL)
		munmap(site->arena, site->arena_len);
	memset(site, 0, sizeof(*site));
}

const struct httpd_file *
httpd_site_find(const struct httpd_site *site, char *path, size_t len)
{
	const struct httpd_file *file;

	if (site->fixed)
		return &site->files[0];
	if (path[len - 1] == '/') {
		memcpy(path + len, index_name, sizeof(index_name));
		len += sizeof(index_name) - 1;
	}
	file = look_up(site, path, len);
	return file != NULL && file->directory && !file->has_index ? NULL : file;
}
