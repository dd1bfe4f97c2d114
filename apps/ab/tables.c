/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tables.c - see tables.h. Header lines, separators and the order of rows are ab's; -g sorts by
 * total time.
 */
#include "ab/tables.h"
#include "common/app.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

int
ab_tables_open(struct app_out *csv, const char *csv_name, struct app_out *gnuplot,
	const char *gnuplot_name, const struct app_out *json)
{
	const struct app_out *files[] = {csv, gnuplot, json};
	int rc = app_out_open(csv, "-e", csv_name);

	if (rc == 0)
		rc = app_out_open(gnuplot, "-g", gnuplot_name);
	for (int i = 0; i < 3 && rc == 0; i++) {
		const struct app_out *a = files[i], *b = files[(i + 1) % 3];

		if (app_out_same(a, b)) {
			app_error("%s and %s: '%s' is one file for two tables", a->option,
				b->option, a->path);
			rc = APP_USAGE;
		}
	}
	return rc;
}

int
ab_csv_write(struct app_out *out, const struct ab_times *times, uint64_t done)
{
	int error = app_out_begin(out);

	if (error == 0)
		fputs("Percentage served,Time in ms\n", out->file);
	for (int i = 0; i <= 100 && done != 0 && error == 0; i++)
		fprintf(out->file, "%d,%.3f\n", i, (double)times->csv_us[i] / 1000);
	return app_out_end(out, error);
}

static int
by_total(const void *a, const void *b)
{
	uint32_t x = ((const struct ab_record *)a)->total_us;
	uint32_t y = ((const struct ab_record *)b)->total_us;

	return (x > y) - (x < y);
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
		(long long)seconds, ab_round_ms(connect), ab_round_ms(r->total_us - connect),
		ab_round_ms(r->total_us), ab_round_ms(r->wait_us));
}

/* Each list is sorted on its own, then they are merged: a copy of all might not fit. */
static void
put_records(FILE *out, struct ab_record_list *lists, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (lists[i].count != 0)
			qsort(lists[i].records, lists[i].count, sizeof(*lists[i].records),
				by_total);
	}
	for (;;) {
		struct ab_record_list *next = NULL;

		for (unsigned i = 0; i < n; i++) {
			if (lists[i].count != 0 &&
				(next == NULL || by_total(lists[i].records, next->records) < 0))
				next = &lists[i];
		}
		if (next == NULL || ferror(out))
			return;
		put_record(out, next->records);
		next->records++;
		next->count--;
	}
}

int
ab_gnuplot_write(struct app_out *out, struct ab_record_list *lists, unsigned n)
{
	int error = app_out_begin(out);

	if (error == 0) {
		fputs("starttime\tseconds\tctime\tdtime\tttime\twait\n", out->file);
		put_records(out->file, lists, n);
	}
	return app_out_end(out, error);
}
