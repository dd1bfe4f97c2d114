/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tables.h - the files of -e (times by percentage, CSV) and -g (a line a request, for gnuplot).
 * Main thread: opened before the run, so that a name that cannot be written is known at once,
 * written after it. What a file held stays until then.
 */
#ifndef CORQ_AB_TABLES_H
#define CORQ_AB_TABLES_H

#include "ab/times.h"

#include <stdio.h>

struct ab_record_list {
	struct ab_record *records; /* sorted in place */
	size_t count;
};

struct ab_tables {
	FILE *csv, *gnuplot; /* NULL: not wanted */
};

/* Names may be NULL. 0, or an exit code (the error line is out). */
int ab_tables_open(struct ab_tables *tables, const char *csv, const char *gnuplot);
/* Both write and close. 0, or -errno. done: how many requests the times are of. */
int ab_csv_write(struct ab_tables *tables, const struct ab_times *times, uint64_t done);
int ab_gnuplot_write(struct ab_tables *tables, struct ab_record_list *lists, unsigned n);
void ab_tables_close(struct ab_tables *tables);

#endif
