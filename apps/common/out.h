/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out.h - a file that a run writes when it is over (--json, -e, -g). It is opened before the run,
 * so that a name that cannot be written is known at once; what it held stays until there is
 * something to write, and a file that was made for nothing is taken away. Main thread only.
 */
#ifndef CORQ_APP_OUT_H
#define CORQ_APP_OUT_H

#include <stdbool.h>
#include <stdio.h>

struct app_out {
	const char *option, *path;
	FILE *file;   /* NULL: not wanted, or done */
	bool created; /* it was not there before, and nothing is written yet */
};

/* path: NULL none. 0, or an exit code (the error line is out). */
int app_out_open(struct app_out *out, const char *option, const char *path);
/* Are both one file? Not those that cannot hold anything (a terminal, a pipe, /dev/null). */
bool app_out_same(const struct app_out *a, const struct app_out *b);
/* Empties it. 0, or an errno. */
int app_out_begin(struct app_out *out);
/* Closes it. error: an errno of the writing, or 0. 0, or an exit code (the error line is out). */
int app_out_end(struct app_out *out, int error);
/* Closes what was not ended, and takes it away if it was made for nothing. */
void app_out_drop(struct app_out *out);

#endif
