/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.h - what is seen on standard error while a run goes on; see progress.c.
 */
#ifndef CORQ_AB_PROGRESS_H
#define CORQ_AB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ab_run;
struct ab_progress;

/* Decides between lines, bar and silence, from the options and the terminal: run->heartbeat and
 * run->bar. Before the run, main thread. */
void ab_progress_choose(struct ab_run *run);
/* Starts the thread that prints; NULL: there is nothing to print, or no thread to be had. */
struct ab_progress *ab_progress_start(struct ab_run *run);
/* Ends it: all lines that are due are out, the bar is gone. NULL is fine. */
void ab_progress_stop(struct ab_progress *progress);

/* The bar as text, at most `columns` wide. Pure. */
struct ab_progress_view {
	uint64_t done, failed, requests; /* requests: of -n */
	double rate;                     /* a second, lately */
	double seconds, limit_s;         /* since the start; of -t, 0: none */
	uint64_t p99_ns;                 /* 0: not known yet */
};
void ab_progress_line(const struct ab_progress_view *view, unsigned columns, char *out, size_t len);

#endif
