/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * site.c - see site.h. Files are copied, not mapped: a mapped file that somebody shortens would
 * end the server with SIGBUS, and a device cannot send from the page cache.
 */
#include "httpd/site.h"
#include "httpd/list.h"
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
#include <time.h>
#include <unistd.h>

#define DEPTH_MAX  32
#define PATH_LIMIT 1023
#define ALIGN      64 /* bodies start on a cache line */

static const char index_name[] = "index.html";

struct walk {
	struct httpd_site *site;
	const char *root; /* as realpath gives it */
	size_t root_len, bytes;
	time_t now;         /* when the walk began */
	struct page *pages; /* listings, before they go to the arena */
	size_t n_pages;
	char *err;
	size_t err_len;
};

struct page {
	char *text;
	size_t len;
};

static size_t
hash(const char *path, size_t len)
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a: the keys are ours, not a peer's */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)path[i]) * 1099511628211ull;
	return (size_t)(h ^ (h >> 32));
}

/* Of the content: two files of one length with one hash would have to be made on purpose. */
static void
set_etag(struct httpd_file *file)
{
	uint64_t h = file->len, word;
	size_t at = 0;

	for (; at < file->len; at += sizeof(word)) {
		size_t n = file->len - at < sizeof(word) ? file->len - at : sizeof(word);

		word = 0;
		memcpy(&word, file->body + at, n);
		h = (h ^ word) * 0x9fb21c651e98df25ull;
		h ^= h >> 29;
	}
	snprintf(file->etag, sizeof(file->etag), "\"%zx-%016llx\"", file->len,
		(unsigned long long)h);
	file->validators.etag = file->etag;
}

/* What is sent with each 200 of a file of a directory. */
static void
set_validators(struct httpd_file *file, time_t now)
{
	char modified[64] = "";
	struct tm tm;

	set_etag(file);
	file->validators.date_strong = file->validators.modified < now;
	if (file->validators.modified != 0)
		strftime(modified, sizeof(modified), "Last-Modified: %a, %d %b %Y %H:%M:%S GMT\r\n",
			gmtime_r(&file->validators.modified, &tm));
	file->shared_len = (uint16_t)snprintf(file->head, sizeof(file->head),
		"Accept-Ranges: bytes\r\nETag: %s\r\n%s", file->etag, modified);
}

static void
set_head(struct httpd_file *file)
{
	int n = snprintf(file->head + file->shared_len, sizeof(file->head) - file->shared_len,
		"Content-Type: %s\r\nContent-Length: %zu\r\n\r\n", file->type, file->len);

	file->head_len = (uint16_t)(file->shared_len + n);
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
	site->served = 1;
	strcpy(file->type, httpd_type(file->path));
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

static size_t
aligned(size_t len)
{
	return (len + ALIGN - 1) / ALIGN * ALIGN;
}

/* None of the future (RFC 9110 8.8.2.1); before 1970: not known. */
static time_t
sane_time(const struct walk *w, time_t t)
{
	return t < 0 ? 0 : (t < w->now ? t : w->now);
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
	size_t index = w->site->count;
	struct stat st;
	bool link;
	int rc;

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
	file->validators.modified = sane_time(w, st.st_mtime);
	w->site->served += !file->directory;
	w->bytes += aligned(file->len);
	if (!file->directory)
		return 0;
	rc = walk_dir(w, path, len, depth + 1);
	w->site->files[index].subtree_end = (uint32_t)w->site->count; /* the array may have moved */
	return rc;
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
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be another one by now */
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

static bool
has_index(const struct httpd_site *site, const char *dir)
{
	char path[PATH_LIMIT + sizeof(index_name) + 2];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, index_name);
	const struct httpd_file *index = look_up(site, path, (size_t)n);

	return index != NULL && !index->directory;
}

/* ---- listings ---- */

static int
make_page(struct walk *w, const char *path, size_t first, size_t end)
{
	struct page *page = &w->pages[w->n_pages];
	FILE *out = open_memstream(&page->text, &page->len);
	char name[PATH_LIMIT + 3];
	struct httpd_file *file;
	int rc;

	if (out == NULL)
		return -ENOMEM;
	w->n_pages++;
	rc = httpd_list_write(out, path, w->site->files, first, end);
	if (fclose(out) != 0 || rc != 0)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%s/", path);
	file = add(w->site, name, page->len);
	if (file == NULL)
		return -ENOMEM;
	file->listing = true;
	file->validators.modified = w->now;
	w->bytes += aligned(page->len);
	return 0;
}

/* Marks the directories that are there; makes the pages of those without an index. */
static int
make_pages(struct walk *w, bool list)
{
	struct httpd_site *site = w->site;
	size_t entries = site->count, directories = 1;
	int rc = 0;

	for (size_t i = 0; i < entries; i++)
		directories += site->files[i].directory;
	w->pages = calloc(directories, sizeof(*w->pages));
	if (w->pages == NULL)
		return -ENOMEM;
	if (list && !has_index(site, ""))
		rc = make_page(w, "", 0, entries);
	for (size_t i = 0; rc == 0 && i < entries; i++) {
		const struct httpd_file *dir = &site->files[i];
		bool index = dir->directory && has_index(site, dir->path);

		site->files[i].shown = dir->directory && (index || list);
		if (dir->directory && list && !index)
			rc = make_page(w, dir->path, i + 1, dir->subtree_end);
	}
	return rc;
}

static void
free_pages(struct walk *w)
{
	for (size_t i = 0; i < w->n_pages; i++)
		free(w->pages[i].text);
	free(w->pages);
}

/* ---- all of it ---- */

static int
fill_arena(struct walk *w)
{
	struct httpd_site *site = w->site;
	size_t at = 0, page = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < site->count; i++) {
		struct httpd_file *file = &site->files[i];

		if (file->directory)
			continue;
		if (file->listing) {
			file->body = memcpy(site->arena + at, w->pages[page++].text, file->len);
			strcpy(file->type, "text/html; charset=utf-8");
		} else {
			rc = read_file(w, file, site->arena + at);
			if (rc == 0)
				httpd_type_field(file->path, file->body, file->len, file->type);
		}
		if (rc == 0) {
			set_validators(file, w->now);
			set_head(file);
		}
		at += aligned(file->len);
	}
	return rc;
}

static int
build(struct walk *w, bool list)
{
	int rc = make_table(w->site);

	if (rc == 0)
		rc = make_pages(w, list);
	if (rc == 0)
		rc = make_arena(w->site, w->bytes);
	free(w->site->table); /* now with the pages in it */
	if (rc == 0)
		rc = make_table(w->site);
	else
		w->site->table = NULL;
	if (rc != 0)
		snprintf(w->err, w->err_len, "not enough memory for the %zu bytes in '%s'",
			w->bytes, w->root);
	return rc == 0 ? fill_arena(w) : rc;
}

int
httpd_site_load(struct httpd_site *site, const char *dir, bool list, char *err, size_t err_len)
{
	char root[PATH_MAX], path[PATH_MAX + 1];
	struct walk w = {
		.site = site, .root = root, .now = time(NULL), .err = err, .err_len = err_len};
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
	if (rc == 0)
		rc = build(&w, list);
	free_pages(&w);
	if (rc != 0)
		httpd_site_free(site);
	return rc;
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
		file = look_up(site, path, len + sizeof(index_name) - 1);
		if (file != NULL && !file->directory)
			return file;
		path[len] = '\0';
		return look_up(site, path, len); /* a listing */
	}
	file = look_up(site, path, len);
	return file != NULL && file->directory && !file->shown ? NULL : file;
}
