/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tables.c - see tables.h. Header lines, separators and the order of rows are ab's; -g sorts by
 * total time.
 */
#include "ab/tables.h"
#include "common/app.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int
open_one(char letter, const char *path, FILE **out)
{
	if (path == NULL)
		return APP_OK;
	*out = fopen(path, "ae");
	if (*out != NULL)
		return APP_OK;
	app_error("-%c: cannot write '%s': %s", letter, path, strerror(errno));
	return APP_USAGE;
}

int
ab_tables_open(struct ab_tables *tables, const char *csv, const char *gnuplot)
{
	int rc;

	*tables = (struct ab_tables){0};
	if (csv != NULL && gnuplot != NULL && strcmp(csv, gnuplot) == 0) {
		app_error("-e and -g: '%s' is one file for two tables", csv);
		return APP_USAGE;
	}
	rc = open_one('e', csv, &tables->csv);
	return rc != APP_OK ? rc : open_one('g', gnuplot, &tables->gnuplot);
}

/* Empties the file; a pipe or a terminal cannot be cut, and need not. */
static int
begin(FILE *out)
{
	return ftruncate(fileno(out), 0) == 0 || errno == EINVAL ? 0 : -errno;
}

static int
end(FILE **out)
{
	int rc = ferror(*out) ? -EIO : 0;

	errno = EIO;
	if (fclose(*out) != 0)
		rc = -errno;
	*out = NULL;
	return rc;
}

int
ab_csv_write(struct ab_tables *tables, const struct ab_times *times, uint64_t done)
{
	FILE *out = tables->csv;
	int rc = begin(out);

	if (rc != 0)
		return rc;
	fputs("Percentage served,Time in ms\n", out);
	for (int i = 0; i <= 100 && done != 0; i++)
		fprintf(out, "%d,%.3f\n", i, (double)times->csv_us[i] / 1000);
	return end(&tables->csv);
}

static int
by_total(const void *a, const void *b)
{
	uint32_t x = ((const struct ab_record *)a)->total_us;
	uint32_t y = ((const struct ab_record *)b)->total_us;

	return (x > y) - (x < y);
}

static uint64_t
ms(uint32_t us)
{
	return ((uint64_t)us + 500) / 1000;
}

static void
put_record(FILE *out, const struct ab_record *r)
{
	time_t seconds = (time_t)(r->start_us / 1000000);
	uint32_t connect = r->connect_us < r->total_us ? r->connect_us : r->total_us;
	char text[40];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &tm);
	fprintf(out, "%s\t%lld\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", text,
		(long long)seconds, ms(connect), ms(r->total_us - connect), ms(r->total_us),
		ms(r->wait_us));
}

/* Each list is sorted on its own, then they are merged: a copy of all might not fit. */
int
ab_gnuplot_write(struct ab_tables *tables, struct ab_record_list *lists, unsigned n)
{
	FILE *out = tables->gnuplot;
	int rc = begin(out);

	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < n; i++)
		qsort(lists[i].records, lists[i].count, sizeof(*lists[i].records), by_total);
	fputs("starttime\tseconds\tctime\tdtime\tttime\twait\n", out);
	for (;;) {
		struct ab_record_list *next = NULL;

		for (unsigned i = 0; i < n; i++) {
			if (lists[i].count != 0 &&
				(next == NULL || by_total(lists[i].records, next->records) < 0))
				next = &lists[i];
		}
		if (next == NULL)
			break;
		put_record(out, next->records);
		next->records++;
		next->count--;
	}
	return end(&tables->gnuplot);
}

void
ab_tables_close(struct ab_tables *tables)
{
	if (tables->csv != NULL)
		fclose(tables->csv);
	if (tables->gnuplot != NULL)
		fclose(tables->gnuplot);
	*tables = (struct ab_tables){0};
}
