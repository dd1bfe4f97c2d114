/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of `corq opensock`. Main thread only.
 */
#ifndef CORQ_OPENSOCK_OPTIONS_H
#define CORQ_OPENSOCK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Whose sockets. With both, their turns alternate. */
enum opensock_side {
	OPENSOCK_CORQ,
	OPENSOCK_KERNEL,
	OPENSOCK_SIDES
};

/* Which open handle a pair's close takes, of the thread's own. */
enum opensock_order {
	OPENSOCK_LIFO, /* the one just opened */
	OPENSOCK_FIFO, /* the one open longest */
	OPENSOCK_RANDOM,
};

struct opensock_options {
	uint32_t threads;
	uint64_t count; /* open before the loop, all threads together */
	uint32_t seconds;
	bool fast; /* order `fast` instead of `lowest` */
	bool use[OPENSOCK_SIDES];
	enum opensock_order order;
	bool holes;
	uint32_t cross; /* percent closed by another thread */
	uint64_t kernel_count;
	bool kernel_count_given;
	bool dup; /* the kernel's table is filled by dup() */
	const char *json;
};

const char *opensock_side_name(enum opensock_side side);
const char *opensock_order_name(enum opensock_order order);
/* 0 to go on, an exit code (the error line is out), or -1: help or version is out. */
int opensock_options_parse(struct opensock_options *opts, int argc, char **argv);
void opensock_usage(FILE *out);

#endif
