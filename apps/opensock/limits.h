/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.h - what the machine allows: descriptors and memory. Main thread, before the run.
 */
#ifndef CORQ_OPENSOCK_LIMITS_H
#define CORQ_OPENSOCK_LIMITS_H

#include "opensock/figures.h"

/* Raises the limit of descriptors to its hard one, and sets count and bound of the kernel's side.
 * 0, or an exit code (the error line is out). */
int opensock_limit_kernel(
	const struct opensock_options *opts, struct opensock_side_figures *kernel);

/* Is there memory for the run? 0, or an exit code (the error line is out). */
int opensock_limit_memory(
	const struct opensock_options *opts, const struct opensock_figures *f, uint32_t handles);

/* Bytes of this process in memory, -1: not known. */
int64_t opensock_resident(void);

#endif
