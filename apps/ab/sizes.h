/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sizes.h - pools, addresses and memory that a run needs, from -c. Main thread, before the run.
 */
#ifndef CORQ_AB_SIZES_H
#define CORQ_AB_SIZES_H

#include "ab/options.h"

#define AB_PORTS 64512u /* 1024 to 65535, of one address to one destination */

struct ab_sizes {
	uint32_t max_conns; /* a core */
	uint32_t addresses; /* of ours */
	uint64_t bytes;     /* of memory, about, when all slots are connected */
	char range[48];     /* --ip for so many addresses on loop; "": the default does */
};

/* Pure. samples: exact times that are kept. */
void ab_sizes_find(
	uint32_t concurrency, uint32_t cores, uint64_t samples, bool loop, struct ab_sizes *out);
/*
 * Puts them into the configuration, where the command line left them open. `sizes` must live as
 * long as opts. 0, or an exit code (the error line is out).
 */
int ab_sizes_apply(struct ab_options *opts, bool loop, struct ab_sizes *sizes);
/* After the start: 0, or an exit code when our addresses have too few ports. */
int ab_sizes_check(const struct ab_options *opts, uint64_t addresses);

#endif
