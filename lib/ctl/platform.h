/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * platform.h - what an instance asks of the machine below it: devices, threads, memory, a clock.
 *
 * lib/port fills it in with DPDK (port/platform.c); tests with threads and memory ports. Called on
 * the thread that starts and ends the instance, but for what says otherwise. So lib/ctl stays free
 * of DPDK and of EAL, and ThreadSanitizer can watch it.
 */
#ifndef CORQ_CTL_PLATFORM_H
#define CORQ_CTL_PLATFORM_H

#include "base/log.h"
#include "core/port.h"
#include <corq/instance.h>

#define CORQ_MAX_CORES 64

/* What `open` found. */
struct corq_machine {
	void *state;      /* the platform's own */
	unsigned n_ports; /* engine cores; loop: side A, then side B */
	unsigned n_side_a;
	bool both_sides; /* loop on one core */
	char hint[256];  /* what to do when a peer leaves checksums to its device; may be empty */
	struct corq_port *port[CORQ_MAX_CORES];
};

struct corq_platform {
	/* Memory, threads (parked) and devices. 0, or -errno with one line in err. */
	int (*open)(struct corq_machine *m, const struct corq_config *config,
		const struct corq_log *log, char *err, size_t err_len);
	/* Devices start to carry frames. */
	int (*start)(struct corq_machine *m, char *err, size_t err_len);
	void (*close)(struct corq_machine *m);
	/* Zeroed, line-aligned, sparse memory near a core. NULL when there is none. */
	void *(*alloc)(struct corq_machine *m, unsigned core, size_t bytes);
	void (*free)(struct corq_machine *m, void *p, size_t bytes);
	/* NUMA: how many nodes; any thread: the caller's; the same memory as alloc on a node, with
	 * huge pages if dense; memory shall lie on a node (whole pages of it). */
	unsigned (*nodes)(struct corq_machine *m);
	unsigned (*node_here)(struct corq_machine *m);
	void *(*alloc_on)(struct corq_machine *m, unsigned node, size_t bytes, bool dense);
	void (*place)(struct corq_machine *m, void *p, size_t bytes, unsigned node);
	/* Runs fn(arg) on the core's thread; join waits for it and returns what it returned. */
	int (*launch)(struct corq_machine *m, unsigned core, int (*fn)(void *), void *arg);
	int (*join)(struct corq_machine *m, unsigned core);
};

/* corq_start on a given platform. */
int corq_instance_start(const struct corq_platform *pf, const struct corq_config *config,
	struct corq_instance **out, char *err, size_t err_len);

#endif
