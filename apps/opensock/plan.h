/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - the arithmetic of a run: who opens how many, how much room that takes, and the spread of
 * what came out. Pure.
 */
#ifndef CORQ_OPENSOCK_PLAN_H
#define CORQ_OPENSOCK_PLAN_H

#include "opensock/options.h"

#define OPENSOCK_BLOCK       4096u /* handles come to threads in such blocks (corq/socket.h) */
#define OPENSOCK_RING        4096  /* handles on their way to a closer, a thread */
#define OPENSOCK_RING_KERNEL 64
#define OPENSOCK_SPARE_FDS   64 /* what the program itself has open, and some more */

/* Of count handles, those of thread i. */
uint64_t opensock_share(uint64_t count, uint32_t threads, uint32_t i);

/* Opened beyond a share and closed at random, to leave holes. */
uint64_t opensock_extra(const struct opensock_options *opts, uint64_t share);

/* max_handles of the instance; 0 if there is no instance so large: *most is then the highest -n
 * that fits. */
uint32_t opensock_need(const struct opensock_options *opts, uint64_t *most);

/* The highest count of kernel sockets, when `limit` descriptors may be open. */
uint64_t opensock_kernel_most(const struct opensock_options *opts, uint64_t limit);

struct opensock_spread {
	double mean, min, max, sd;
};
/* n at least 1. */
struct opensock_spread opensock_spread_of(const double *v, uint32_t n);

#endif
