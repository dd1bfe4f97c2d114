/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal_cores.c - runs functions on the engine cores.
 *
 * Engine cores are EAL worker threads, each pinned to a CPU; they sleep until corq_eal_launch. The
 * main thread waits on a semaphore: EAL's own wait would spin on a CPU that an engine needs.
 *
 * Main thread, but for core_main (the engine core's).
 */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

#include <rte_launch.h>

#include "port/eal_int.h"

static int
core_main(void *arg)
{
	struct eal_core *core = arg;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_TIMERSLACK, 1ul); /* idle sleeps of some 10 us, not of 50 more */
	core->rc = core->fn(core->arg);
	sem_post(&core->done); /* rc is out before whoever takes it */
	return 0;
}

int
corq_eal_launch(struct corq_eal *eal, uint32_t i, int (*fn)(void *arg), void *arg)
{
	struct eal_core *core;
	int rc;

	if (i >= eal->n_cores)
		return -EINVAL;
	core = &eal->core[i];
	if (core->launched)
		return -EBUSY;
	core->fn = fn;
	core->arg = arg;
	rc = rte_eal_remote_launch(core_main, core, core->lcore);
	core->launched = rc == 0;
	return rc;
}

int
corq_eal_join(struct corq_eal *eal, uint32_t i)
{
	struct eal_core *core;

	if (i >= eal->n_cores || !eal->core[i].launched)
		return -EINVAL;
	core = &eal->core[i];
	while (sem_wait(&core->done) != 0)
		;
	rte_eal_wait_lcore(core->lcore); /* its few last instructions */
	core->launched = false;
	return core->rc;
}
