/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal_int.h - what eal.c, eal_log.c and eal_cores.c share. Nobody else includes it.
 */
#ifndef CORQ_EAL_INT_H
#define CORQ_EAL_INT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "port/port_int.h"

struct eal_core {
	uint32_t lcore;
	int cpu;
	int (*fn)(void *arg);
	void *arg;
	int rc;
	bool launched; /* main thread: not joined yet */
	sem_t done;
};

struct corq_eal {
	uint32_t n_cores;
	bool huge, owned, shares_cpus;
	bool verbose; /* what DPDK and its libraries print is for the user */
	struct corq_clock clock;
	pthread_mutex_t line_lock;
	char line[EAL_LINE_LEN]; /* the first that DPDK logged since it was read */
	FILE *log_file;
	int real_stderr; /* while EAL starts */
	struct eal_core core[CORQ_EAL_CORES_MAX];
};

/* eal_log.c: DPDK's lines go to eal->line from here on. */
void corq_eal_catch_log(struct corq_eal *eal);
/* rte_eal_init, nothing of what it prints is seen; its reason is in eal->line. */
int corq_eal_init_quietly(struct corq_eal *eal, struct corq_eal_args *args);

#endif
