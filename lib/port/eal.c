/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal.c - starts DPDK's EAL quietly, ends it, and says what it is.
 *
 * EAL is one a process, and can be started once. What it prints is eal_log.c's, what runs on its
 * threads eal_cores.c's, its arguments eal_args.c's.
 *
 * Everything here is called on the main thread, but for what only reads: any thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "port/eal_int.h"

/* ---- end ---- */

struct interrupts {
	pthread_t thread;
	sem_t known;
};

/* An alarm: runs on EAL's interrupt thread. */
static void
tell_thread(void *arg)
{
	struct interrupts *i = arg;

	i->thread = pthread_self();
	sem_post(&i->known);
}

/*
 * rte_eal_cleanup of 22.11 unmaps EAL's memory and leaves the interrupt thread running, which may
 * still walk handles that lie in it (memif's sockets do): the process would die of SIGSEGV with all
 * its work done. So that thread ends first. It is cancelled while it waits, where it holds no lock;
 * were it to end itself in an alarm, the clean-up would wait for that alarm for ever.
 */
static void
end_eal(void)
{
	struct interrupts i;

	sem_init(&i.known, 0, 0);
	/* no alarm: EAL's memory stays until the process ends */
	if (rte_eal_alarm_set(1, tell_thread, &i) == 0) {
		while (sem_wait(&i.known) != 0)
			;
		pthread_cancel(i.thread);
		pthread_join(i.thread, NULL);
		rte_eal_cleanup();
	}
	sem_destroy(&i.known);
}

/* ---- start ---- */

/* Without huge pages the packet buffers lie in transparent ones (pool.c), if the kernel has them.
 */
static const char *
cost_without_huge_pages(void)
{
	char text[64] = "";
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");

	if (f != NULL) {
		if (fgets(text, sizeof(text), f) == NULL)
			text[0] = '\0';
		fclose(f);
	}
	return text[0] == '\0' || strstr(text, "[never]") != NULL
		       ? "packets cost up to twice as much on 4 KiB pages"
		       : "transparent ones serve instead, a few percent slower";
}

static int
choose_memory(const struct corq_eal_conf *conf, bool *huge, char *err, size_t errlen)
{
	static const char *const no_huge[] = {"--no-huge", NULL};
	uint32_t need = conf->mem_mb + 32, have = corq_eal_free_huge_mb(), pages;

	*huge = false;
	if (conf->huge == CORQ_HUGE_OFF || corq_eal_args_given(conf, no_huge)) {
		if (conf->pci == NULL)
			return 0;
		corq_port_err(err, errlen,
			"pci: a NIC reads and writes huge pages only; leave out --no-huge");
		return -EINVAL;
	}
	if (have >= need) {
		*huge = corq_limits_allow_huge();
		return 0;
	}
	pages = corq_eal_huge_pages() + (need - have) / 2 + 1;
	if (conf->huge == CORQ_HUGE_NEED) {
		corq_port_err(err, errlen,
			"too little memory: %u MB of huge pages needed, %u MB free; "
			"echo %u > /proc/sys/vm/nr_hugepages",
			need, have, pages);
		return -ENOMEM;
	}
	corq_log_write(conf->log, CORQ_LOG_WARN,
		"too few huge pages (%u MB needed, %u MB free): %s; "
		"echo %u > /proc/sys/vm/nr_hugepages",
		need, have, cost_without_huge_pages(), pages);
	return 0;
}

static struct corq_eal *
eal_new(uint32_t n_cores)
{
	struct corq_eal *eal = calloc(1, sizeof(*eal));

	if (eal == NULL)
		return NULL;
	eal->n_cores = n_cores;
	pthread_mutex_init(&eal->line_lock, NULL);
	for (uint32_t i = 0; i < n_cores; i++)
		sem_init(&eal->core[i].done, 0, 0);
	return eal;
}

static void
eal_free(struct corq_eal *eal)
{
	if (eal->log_file != NULL) {
		rte_openlog_stream(NULL);
		fclose(eal->log_file);
	}
	for (uint32_t i = 0; i < eal->n_cores; i++)
		sem_destroy(&eal->core[i].done);
	pthread_mutex_destroy(&eal->line_lock);
	free(eal);
}

static void
find_sharing(struct corq_eal *eal)
{
	for (uint32_t i = 0; i < eal->n_cores; i++)
		for (uint32_t j = i + 1; j < eal->n_cores; j++)
			if (eal->core[i].cpu >= 0 && eal->core[i].cpu == eal->core[j].cpu)
				eal->shares_cpus = true;
}

/* Engine cores in the order of worker lcores: ours are 0, 1, ..; the user may have given others. */
static int
map_cores(struct corq_eal *eal, char *err, size_t errlen)
{
	uint32_t lcore, n = 0;

	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (n == eal->n_cores)
			break;
		eal->core[n].lcore = lcore;
		eal->core[n].cpu = rte_lcore_to_cpu_id((int)lcore);
		n++;
	}
	if (n == eal->n_cores)
		return 0;
	corq_port_err(err, errlen,
		"too few cores: %u asked for, the EAL arguments leave %u beside the main one",
		eal->n_cores, n);
	return -ERANGE;
}

/* EAL stops reading at the first word that is no option, and puts such words last. */
static int
not_options(const struct corq_eal_args *args, int n_read, char *err, size_t errlen)
{
	corq_port_err(err, errlen,
		"\"%.64s\" is no option of EAL's; look at the arguments after --",
		args->argv[n_read + 1]);
	return -EINVAL;
}

/* A NIC through uio reads and writes by physical addresses; EAL would only say that no device was
 * found. */
static int
check_iova(const struct corq_eal_conf *conf, char *err, size_t errlen)
{
	if (conf->pci == NULL || !corq_pci_is_uio(conf->pci))
		return 0;
	for (int i = 0; i < conf->argc; i++) {
		const char *arg = conf->argv[i];

		if (strcmp(arg, "--iova-mode=va") != 0 &&
			(strcmp(arg, "--iova-mode") != 0 || i + 1 == conf->argc ||
				strcmp(conf->argv[i + 1], "va") != 0))
			continue;
		corq_port_err(err, errlen,
			"pci: through uio a NIC needs physical addresses: leave out "
			"--iova-mode=va, or "
			"bind it to vfio-pci");
		return -EINVAL;
	}
	return 0;
}

static int
eal_start(struct corq_eal *eal, const struct corq_eal_conf *conf, char *err, size_t errlen)
{
	struct corq_clock_sample from = corq_clock_sample();
	struct corq_eal_args *args;
	int cpus[1024], rc;
	uint32_t n_cpus = corq_eal_cpu_list(cpus, CORQ_ARRAY_LEN(cpus));

	rc = check_iova(conf, err, errlen);
	if (rc == 0)
		rc = choose_memory(conf, &eal->huge, err, errlen);
	if (rc == 0)
		rc = corq_limits_check(conf, eal->huge, err, errlen);
	if (rc != 0)
		return rc;
	args = malloc(sizeof(*args));
	if (args == NULL)
		return -ENOMEM;
	rc = corq_eal_args_build(args, conf, eal->huge, cpus, n_cpus, err, errlen);
	if (rc != 0)
		goto out;
	eal->verbose = conf->verbose;
	if (!conf->verbose)
		corq_eal_catch_log(eal);
	rc = corq_eal_init_quietly(eal, args);
	/* EAL never removes its directory, which without telemetry stays empty */
	if (rte_eal_get_runtime_dir() != NULL)
		rmdir(rte_eal_get_runtime_dir());
	if (rc < 0) {
		char why[EAL_LINE_LEN];

		corq_eal_reason(eal, why, sizeof(why));
		rc = rte_errno != 0 ? -rte_errno : -EIO;
		corq_port_err(err, errlen,
			"DPDK does not start: %s (%s); look at the arguments after --, --eal-log "
			"shows more",
			*why != '\0' ? why : "it gives no reason", rte_strerror(-rc));
		goto out;
	}
	eal->owned = true;
	corq_clock_init(&eal->clock, from);
	rc = rc < args->argc - 1 ? not_options(args, rc, err, errlen) : map_cores(eal, err, errlen);
	if (rc != 0)
		end_eal();
out:
	free(args);
	return rc;
}

int
corq_eal_init(struct corq_eal **out, const struct corq_eal_conf *conf, char *err, size_t errlen)
{
	struct corq_eal *eal;
	int rc;

	*out = NULL;
	rc = corq_eal_check_cores(conf->n_cores, conf->share_cpus, err, errlen);
	if (rc < 0)
		return rc;
	eal = eal_new(conf->n_cores);
	if (eal == NULL) {
		corq_port_err(err, errlen, "too little memory");
		return -ENOMEM;
	}
	rc = eal_start(eal, conf, err, errlen);
	if (rc != 0) {
		eal_free(eal);
		return rc;
	}
	find_sharing(eal);
	*out = eal;
	return 0;
}

int
corq_eal_adopt(struct corq_eal **out, const uint32_t *lcores, uint32_t n, char *err, size_t errlen)
{
	struct corq_eal *eal;

	*out = NULL;
	if (n == 0 || n > CORQ_EAL_CORES_MAX) {
		corq_port_err(err, errlen, "%u cores: 1 to %d are possible", n, CORQ_EAL_CORES_MAX);
		return -ERANGE;
	}
	eal = eal_new(n);
	if (eal == NULL) {
		corq_port_err(err, errlen, "too little memory");
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!rte_lcore_is_enabled(lcores[i])) {
			corq_port_err(err, errlen, "lcore %u is not one of EAL's", lcores[i]);
			eal_free(eal);
			return -EINVAL;
		}
		eal->core[i].lcore = lcores[i];
		eal->core[i].cpu = rte_lcore_to_cpu_id((int)lcores[i]);
	}
	eal->huge = rte_eal_has_hugepages() != 0;
	corq_clock_init(&eal->clock, corq_clock_sample());
	find_sharing(eal);
	*out = eal;
	return 0;
}

void
corq_eal_cleanup(struct corq_eal *eal)
{
	if (eal == NULL)
		return;
	for (uint32_t i = 0; i < eal->n_cores; i++)
		CORQ_ASSERT(!eal->core[i].launched);
	if (eal->owned)
		end_eal();
	eal_free(eal);
}

/* ---- what it is ---- */

bool
corq_eal_on_huge_pages(const struct corq_eal *eal)
{
	return eal->huge;
}

int
corq_eal_core_socket(const struct corq_eal *eal, uint32_t core)
{
	return (int)rte_lcore_to_socket_id(eal->core[core].lcore);
}

uint64_t
corq_eal_now_ns(const struct corq_eal *eal)
{
	return corq_clock_now(&eal->clock);
}

bool
corq_eal_shares_cpus(const struct corq_eal *eal)
{
	return eal->shares_cpus;
}

const struct corq_clock *
corq_eal_clock(const struct corq_eal *eal)
{
	return &eal->clock;
}
