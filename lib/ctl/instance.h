/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctl/instance.h - what the files of lib/ctl share of an instance.
 *
 * Start and end are one thread's. The attachments (attach.c) have a lock of their own, because
 * threads come and go at any time; no call but attach and detach takes it, and a thread's end.
 */
#ifndef CORQ_CTL_INSTANCE_H
#define CORQ_CTL_INSTANCE_H

#include "base/handle.h"
#include "core/core.h"
#include "ctl/platform.h"
#include <corq/socket.h>

#include <pthread.h>

struct corq_attachments {
	pthread_mutex_t lock;
	pthread_key_t key; /* of a thread: the list of its attachments */
	struct corq_att *all;
	struct corq_handles handles;
	void *mem; /* the global region */
	size_t bytes;
};

struct corq_instance {
	const struct corq_platform *pf;
	struct corq_machine m;
	struct corq_log log;
	void (*line)(void *arg, const char *line);
	void *line_arg;
	struct corq_core *core[CORQ_MAX_CORES];
	size_t core_bytes[CORQ_MAX_CORES];
	void *handoff[2];
	size_t handoff_bytes[2];
	struct corq_region regions[CORQ_MAX_REGIONS];
	uint32_t n_regions;
	struct corq_addr_range addr[2]; /* by side */
	int (*start)(struct corq_core *, void *);
	void *start_arg;
	struct corq_attachments att;
};

/* Before any thread attaches; after the last one ended or detached. Start: 0, or -errno and a line.
 */
int corq_attachments_start(
	struct corq_instance *inst, uint32_t max_handles, char *err, size_t err_len);
void corq_attachments_end(struct corq_instance *inst);

/* An attachment: its thread's, but for the links. */
struct corq_att {
	struct corq_lane lane;
	struct corq_instance *inst;
	void *mem; /* the lane's region */
	size_t bytes;
	struct corq_att *next, *prev; /* all; under the lock */
	struct corq_att *next_mine;   /* of the same thread */
};

#endif
