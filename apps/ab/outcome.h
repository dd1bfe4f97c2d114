/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outcome.h - what a run was worth, in one line on standard error, and the exit code. Main thread,
 * after the run.
 */
#ifndef CORQ_AB_OUTCOME_H
#define CORQ_AB_OUTCOME_H

#include "ab/figures.h"

/* It stopped before its end: why, and ab's exit code (the error's number). */
int ab_outcome_stopped(
	const struct ab_run *run, const struct ab_figures *f, const char *endpoint, FILE *text);
/* It came to its end, to -t or to a signal. */
int ab_outcome_judge(const struct ab_run *run, const struct ab_figures *f, const char *endpoint);

#endif
