/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - the block of ab 2.4, byte for byte from "Server Software:" on, as text or, with -w,
 * as an HTML table. Pure.
 */
#ifndef CORQ_AB_REPORT_H
#define CORQ_AB_REPORT_H

#include "ab/times.h"

#include <stdbool.h>
#include <stdio.h>

struct ab_report {
	const char *server, *host, *path;
	uint16_t port;
	uint64_t document_length;
	bool any_length;                                  /* -l */
	bool keepalive;                                   /* -k */
	bool send_body;                                   /* -p, -u */
	bool no_percentages, no_deviation;                /* -d, -S */
	const char *table_attrs, *row_attrs, *cell_attrs; /* -x -y -z */
	uint64_t concurrency;
	double seconds;
	uint64_t done, bad, bad_connect, bad_receive, bad_length, bad_except;
	uint64_t write_errors, not_2xx, kept_alive;
	uint64_t bytes_read, bytes_posted, bytes_body;
	struct ab_times times;
};

void ab_report_print(FILE *out, const struct ab_report *report);
/* html.c: from "<table" on. */
void ab_html_print(FILE *out, const struct ab_report *report);

#endif
