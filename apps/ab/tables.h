/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tables.h - the files of -e (times by percentage, CSV) and -g (a line a request, for gnuplot), see
 * common/out.h. Main thread.
 */
#ifndef CORQ_AB_TABLES_H
#define CORQ_AB_TABLES_H

#include "ab/times.h"
#include "common/out.h"

struct ab_record_list {
	struct ab_record *records; /* sorted in place */
	size_t count;
};

/* Before the run. Names may be NULL; each file, json too, is to be its own. 0, or an exit code. */
int ab_tables_open(struct app_out *csv, const char *csv_name, struct app_out *gnuplot,
	const char *gnuplot_name, const struct app_out *json);
/* Both write and close. 0, or an exit code (the error line is out). done: how many requests the
 * times are of. */
int ab_csv_write(struct app_out *out, const struct ab_times *times, uint64_t done);
int ab_gnuplot_write(struct app_out *out, struct ab_record_list *lists, unsigned n);

#endif
