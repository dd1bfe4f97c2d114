/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leftover.h - is everything back? What an instance's pools have out, before and after. Used by one
 * thread, while the instance runs or stands still.
 */
#ifndef CORQ_PERF_LEFTOVER_H
#define CORQ_PERF_LEFTOVER_H

#include <corq/instance.h>
#include <stdbool.h>

struct leftover {
	const char *name; /* what is out */
	uint64_t was, is;
};

#define LEFTOVER_KINDS 11

/* Fills out[0..LEFTOVER_KINDS). */
void leftover_list(const struct corq_stats *was, const struct corq_stats *is, struct leftover *out);
/* One line on standard error for each kind that is not back; returns how many there are. */
int leftover_tell(const char *bench, const struct corq_stats *was, const struct corq_stats *is);

#endif
