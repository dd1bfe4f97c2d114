/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.c - see list.h.
 */
#include "httpd/list.h"
#include "httpd/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_MAX_BYTES 1024

static const char *
name_of(const struct httpd_file *file)
{
	return strrchr(file->path, '/') + 1;
}

static void
put_text(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			/* A control character has no form in HTML. */
			fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
			break;
		}
	}
}

/* "./" keeps a name with a colon from being taken for a scheme (RFC 3986 4.2). */
static void
put_entry(FILE *out, const struct httpd_file *file)
{
	char link[3 * NAME_MAX_BYTES + 1], date[32];
	const char *name = name_of(file), *slash = file->directory ? "/" : "";
	struct tm tm;

	httpd_path_encode(name, link);
	gmtime_r(&file->validators.modified, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(out, "<tr><td><a href=\"./%s%s\">", link, slash);
	put_text(out, name);
	fprintf(out, "%s</a></td><td class=\"n\">", slash);
	if (!file->directory)
		fprintf(out, "%zu", file->len);
	fprintf(out, "</td><td>%s</td></tr>\n", date);
}

/* Directories first, then by the bytes of the name. */
static int
compare(const void *a, const void *b)
{
	const struct httpd_file *const *x = a, *const *y = b;

	if ((*x)->directory != (*y)->directory)
		return (*x)->directory ? -1 : 1;
	return strcmp(name_of(*x), name_of(*y));
}

int
httpd_list_write(
	FILE *out, const char *path, const struct httpd_file *files, size_t first, size_t end)
{
	const struct httpd_file **entries = malloc((end - first + 1) * sizeof(struct httpd_file *));
	size_t n = 0;

	if (entries == NULL)
		return -ENOMEM;
	for (size_t i = first; i < end; i = files[i].directory ? files[i].subtree_end : i + 1)
		entries[n++] = &files[i];
	qsort(entries, n, sizeof(struct httpd_file *), compare);
	fputs("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>", out);
	put_text(out, path);
	fputs("/</title>\n<style>td{padding:0 1em;font-family:monospace}.n{text-align:right}"
	      "</style></head>\n<body><h1>",
		out);
	put_text(out, path);
	fputs("/</h1>\n<table>\n", out);
	if (path[0] != '\0')
		fputs("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n", out);
	for (size_t i = 0; i < n; i++)
		put_entry(out, entries[i]);
	fputs("</table>\n<p>Times are UTC, sizes bytes.</p></body></html>\n", out);
	free(entries);
	return ferror(out) ? -ENOMEM : 0;
}
