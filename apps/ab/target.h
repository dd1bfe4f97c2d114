/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.h - which address and port is loaded, and what stands in its way. Main thread, before and
 * after the run.
 */
#ifndef CORQ_AB_TARGET_H
#define CORQ_AB_TARGET_H

#include "ab/gen.h"
#include "common/addr.h"
#include "common/url.h"

struct ab_target {
	char endpoint[APP_ENDPOINT_TEXT]; /* address and port, as text */
	char host[APP_HOST_MAX + 1];
	const char *path;
};

/* Sets run->target, run->port and *to, from the URL or -X. 0, else the exit code. */
int ab_target_find(struct ab_run *run, struct ab_options *opts, struct ab_target *to);
/* Sets run->local, from -B. 0, else the exit code. */
int ab_target_local(struct ab_run *run);
/* Does the kernel of this host have the target's address? Then text says what to do. */
bool ab_target_is_here(const struct ab_run *run, char *text, size_t len);

#endif
