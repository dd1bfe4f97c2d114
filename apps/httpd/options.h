/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of `corq httpd`, and its figures. Main thread.
 */
#ifndef CORQ_HTTPD_OPTIONS_H
#define CORQ_HTTPD_OPTIONS_H

#include "common/device.h"
#include "common/json.h"
#include "httpd/access.h"
#include "httpd/path.h"
#include "httpd/server.h"

struct httpd_command {
	struct app_device device;
	struct httpd_opts opts;
	char upload[HTTPD_URL_MAX + 2]; /* what opts.upload points to */
	const char *access_log;         /* NULL: none */
};

/* 0; -1 nothing is left to do (--help); else the exit code, and the error line is out. */
int httpd_options_parse(struct httpd_command *command, int argc, char **argv);
void httpd_usage(FILE *out);

/* "s", or nothing behind 1. */
const char *httpd_plural(uint64_t n);
/* The lines at the end, and the JSON if it is wanted. Returns the exit code. */
int httpd_figures_report(struct app_json *json, const struct corq_instance *inst,
	const struct httpd_counts *counts, const struct httpd_log_figures *log);

#endif
