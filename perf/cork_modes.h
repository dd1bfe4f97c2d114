/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cork_modes.h - the four ways to answer and close that perf/cork_close compares: cork_server does
 * them on corq, peers/cork_kernel on the kernel's sockets. A server has four ports in a row, one a
 * mode, in this order; whoever connects is sent CORK_BYTES bytes at once.
 */
#ifndef CORQ_PERF_CORK_MODES_H
#define CORQ_PERF_CORK_MODES_H

#include <stdbool.h>

#define CORK_BYTES 100
#define CORK_MODES 4

struct cork_mode {
	const char *name;
	bool cork;     /* before the bytes are written */
	bool uncork;   /* after them */
	bool shutdown; /* for writing, before the close */
};

static const struct cork_mode cork_modes[CORK_MODES] = {
	{"plain", false, false, false},
	{"cork-close", true, false, false},
	{"cork-uncork-close", true, true, false},
	{"cork-shutdown", true, false, true},
};

#endif
