/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hints.h - for each class of error that was counted: its key and a sentence of help. Main thread,
 * after the run.
 */
#ifndef CORQ_AB_HINTS_H
#define CORQ_AB_HINTS_H

#include "ab/figures.h"

/* The i-th class: its key, its count in these figures and its sentence; NULL past the end. */
const char *ab_hint_at(
	const struct ab_figures *figures, unsigned i, uint64_t *count, const char **text);

#endif
