/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of `corq closetest`. Main thread only.
 */
#ifndef CORQ_CLOSETEST_OPTIONS_H
#define CORQ_CLOSETEST_OPTIONS_H

#include "closetest/plan.h"
#include "common/device.h"
#include "common/url.h"

struct closetest_options {
	struct app_device device;
	struct closetest_plan plan;
	uint64_t connections; /* of a part */
	uint32_t block;       /* of two lines */
	uint32_t at_a_time;
	uint32_t timeout_s;
	bool kernel; /* plain sockets instead of corq */
	bool quiet;  /* summary only */
	bool has_url;
	const char *url_text;
	struct app_url url;
};

/* 0 to go on, an exit code (the error line is out), or -1: help or version is out. */
int closetest_options_parse(struct closetest_options *opts, int argc, char **argv);
void closetest_usage(FILE *out);

#endif
