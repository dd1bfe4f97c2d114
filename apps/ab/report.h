/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - the text block of ab 2.4, byte for byte from "Server Software:" on. Pure.
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
	bool any_length; /* -l */
	bool keepalive;  /* -k */
	bool send_body;  /* -p */
	uint64_t concurrency;
	double seconds;
	uint64_t done, bad, bad_connect, bad_receive, bad_length, bad_except;
	uint64_t write_errors, not_2xx, kept_alive;
	uint64_t bytes_read, bytes_posted, bytes_body;
	struct ab_times times;
};

void ab_report_print(FILE *out, const struct ab_report *report);

#endif
