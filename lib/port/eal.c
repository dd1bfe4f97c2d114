/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal.c - starts DPDK's EAL quietly, and runs functions on the engine cores.
 *
 * EAL is one a process, and can be started once. Its lines go to a small buffer here (or, when
 * verbose, to stderr), whose first line becomes the reason in our one line of error. Engine cores
 * are EAL worker threads, each pinned to a CPU; they sleep until corq_eal_launch. The main thread
 * waits on a semaphore: EAL's own wait would spin on a CPU that an engine needs.
 *
 * Everything here is called on the main thread, but for corq_eal_idle, corq_eal_now_ns and
 * corq_eal_core_* (any thread), and corq_eal_reason's buffer, which DPDK writes from any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "port/port_int.h"

struct eal_core {
	uint32_t lcore;
	int cpu;
	int (*fn)(void *arg);
	void *arg;
	int rc;
	bool launched; /* main thread: not joined yet */
	atomic_bool busy;
	sem_t done;
};

struct corq_eal {
	uint32_t n_cores;
	bool huge, owned, shares_cpus;
	bool verbose; /* what DPDK and its libraries print is for the user */
	struct corq_clock clock;
	double tsc_hz;
	pthread_mutex_t line_lock;
	char line[EAL_LINE_LEN]; /* the first that DPDK logged since it was read */
	FILE *log_file;
	int real_stderr; /* while EAL starts */
	struct eal_core core[CORQ_EAL_CORES_MAX];
};

/* ---- DPDK's log ---- */

/* The first error is the cause, what follows are its consequences. */
static void
keep_first(struct corq_eal *eal, const char *text, size_t len)
{
	size_t n = 0;

	pthread_mutex_lock(&eal->line_lock);
	if (eal->line[0] == '\0') {
		while (n < len && n < sizeof(eal->line) - 1 && text[n] != '\n' && text[n] != '\0')
			n++;
		memcpy(eal->line, text, n);
		eal->line[n] = '\0';
	}
	pthread_mutex_unlock(&eal->line_lock);
}

static ssize_t
keep_line(void *cookie, const char *text, size_t len)
{
	keep_first(cookie, text, len);
	return (ssize_t)len;
}

static void
catch_log(struct corq_eal *eal)
{
	cookie_io_functions_t io = {.write = keep_line};

	eal->log_file = fopencookie(eal, "w", io);
	if (eal->log_file != NULL) {
		setvbuf(eal->log_file, NULL, _IOLBF, 0);
		rte_openlog_stream(eal->log_file);
	}
}

const char *
corq_eal_reason(struct corq_eal *eal, char *buf, size_t len)
{
	pthread_mutex_lock(&eal->line_lock);
	snprintf(buf, len, "%s", eal->line);
	eal->line[0] = '\0';
	pthread_mutex_unlock(&eal->line_lock);
	return buf;
}

/* Puts `to` in the place of file descriptor fd; returns a copy of the old one, or -1. */
static int
divert(int fd, int to)
{
	int saved = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (saved >= 0)
		dup2(to, fd);
	return saved;
}

static void
restore(int fd, int saved)
{
	if (saved >= 0) {
		dup2(saved, fd);
		close(saved);
	}
}

int
corq_eal_real_stderr(const struct corq_eal *eal)
{
	return eal->real_stderr;
}

void
corq_eal_quiet(struct corq_eal *eal, struct eal_quiet *q)
{
	q->sink = eal->verbose ? -1 : memfd_create("eal", MFD_CLOEXEC);
	if (q->sink < 0)
		return;
	fflush(stdout);
	q->out = divert(STDOUT_FILENO, q->sink);
	q->err = divert(STDERR_FILENO, q->sink);
}

void
corq_eal_loud(struct eal_quiet *q, char *text, size_t len)
{
	ssize_t n = 0;

	if (q->sink >= 0) {
		fflush(stdout);
		restore(STDOUT_FILENO, q->out);
		restore(STDERR_FILENO, q->err);
		if (len != 0)
			n = pread(q->sink, text, len - 1, 0);
		close(q->sink);
		q->sink = -1;
	}
	if (len != 0)
		text[n > 0 ? n : 0] = '\0';
}

/* EAL and getopt write to stdout and stderr when they meet a bad argument: usage, and the name of
 * the argument, which is what we want. */
static int
quiet_eal_init(struct corq_eal *eal, struct corq_eal_args *args)
{
	char text[EAL_LINE_LEN];
	struct eal_quiet q;
	int rc;

	corq_eal_quiet(eal, &q);
	eal->real_stderr = q.sink >= 0 ? q.err : STDERR_FILENO;
	corq_limits_abort_begin(eal);
	rc = rte_eal_init(args->argc, args->argv);
	corq_limits_abort_end(rc < 0);
	corq_eal_loud(&q, text, sizeof(text));
	if (rc < 0 && text[0] != '\0' && strncmp(text, "EAL: ", 5) != 0) {
		char later[EAL_LINE_LEN];

		corq_eal_reason(eal, later, sizeof(later));
		keep_first(eal, text, strlen(text));
	}
	return rc;
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

static int
eal_start(struct corq_eal *eal, const struct corq_eal_conf *conf, char *err, size_t errlen)
{
	struct corq_clock_sample from = corq_clock_sample();
	struct corq_eal_args *args;
	int cpus[1024], rc;
	uint32_t n_cpus = corq_eal_cpu_list(cpus, CORQ_ARRAY_LEN(cpus));

	rc = choose_memory(conf, &eal->huge, err, errlen);
	if (rc == 0)
		rc = corq_limits_check(conf->mem_mb, eal->huge, conf->single_file, err, errlen);
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
		catch_log(eal);
	rc = quiet_eal_init(eal, args);
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
	rc = map_cores(eal, err, errlen);
	if (rc != 0)
		rte_eal_cleanup();
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
	eal->tsc_hz = 4294967296.0 / (double)eal->clock.mult * (double)CORQ_NS_PER_S;
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
	eal->tsc_hz = 4294967296.0 / (double)eal->clock.mult * (double)CORQ_NS_PER_S;
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
		rte_eal_cleanup();
	eal_free(eal);
}

/* ---- engine threads ---- */

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
	/* R1: rc is out before whoever sees the core idle, or takes the semaphore. */
	atomic_store_explicit(&core->busy, false, memory_order_release);
	sem_post(&core->done);
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
	atomic_store_explicit(&core->busy, true, memory_order_relaxed);
	rc = rte_eal_remote_launch(core_main, core, core->lcore);
	if (rc != 0) {
		atomic_store_explicit(&core->busy, false, memory_order_relaxed);
		return rc;
	}
	core->launched = true;
	return 0;
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

bool
corq_eal_idle(struct corq_eal *eal, uint32_t i)
{
	/* A1 <-> R1 in core_main */
	return !atomic_load_explicit(&eal->core[i].busy, memory_order_acquire);
}

/* ---- what it is ---- */

bool
corq_eal_on_huge_pages(const struct corq_eal *eal)
{
	return eal->huge;
}

int
corq_eal_core_cpu(const struct corq_eal *eal, uint32_t core)
{
	return eal->core[core].cpu;
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

double
corq_eal_tsc_hz(const struct corq_eal *eal)
{
	return eal->tsc_hz;
}

uint32_t
corq_eal_lcore(const struct corq_eal *eal, uint32_t core)
{
	return eal->core[core].lcore;
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
