/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal_args.c - EAL's argument vector from a struct, and what the machine offers: CPUs, huge pages.
 *
 * What the user gave after "--" comes last, and what it decides we leave out, since EAL refuses
 * some options that stand there twice. Engine core i is lcore i; the main lcore comes behind them
 * and may float over all CPUs of ours, since it sleeps. Start only, main thread.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port/port_int.h"

/* EAL's own needs beside the pools: ethdev data, rings, memory zones. */
#define EAL_BASE_MB 64

uint32_t
corq_eal_cpu_list(int *cpus, uint32_t max)
{
	cpu_set_t set;
	uint32_t n = 0;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		if (n < max)
			cpus[n] = cpu;
		n++;
	}
	return n;
}

uint32_t
corq_eal_cpus(void)
{
	return corq_eal_cpu_list(NULL, 0);
}

int
corq_eal_check_cores(uint32_t n, bool share_cpus, char *err, size_t errlen)
{
	uint32_t n_cpus = corq_eal_cpus();

	if (n == 0 || n > CORQ_EAL_CORES_MAX) {
		corq_port_err(err, errlen, "%u cores asked for: 1 to %d are possible", n,
			CORQ_EAL_CORES_MAX);
		return -ERANGE;
	}
	if (n <= n_cpus)
		return 0;
	if (!share_cpus) {
		corq_port_err(err, errlen,
			"too few cores: %u wanted, %u CPUs to use; --cores fewer, or --share-cpus",
			n, n_cpus);
		return -ERANGE;
	}
	corq_port_err(
		err, errlen, "%u cores share %u CPUs: correct, but slow and uneven", n, n_cpus);
	return 1;
}

static unsigned long
read_number(const char *path)
{
	unsigned long v = 0;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu", &v) != 1)
		v = 0;
	fclose(f);
	return v;
}

/* 2 MiB pages that the machine has set aside, used or not. */
uint32_t
corq_eal_huge_pages(void)
{
	return (uint32_t)read_number("/proc/sys/vm/nr_hugepages");
}

/* Free and not promised to anybody, of both usual sizes. */
uint32_t
corq_eal_free_huge_mb(void)
{
	static const unsigned long size_kb[] = {2048, 1048576};
	unsigned long mb = 0;

	for (size_t i = 0; i < CORQ_ARRAY_LEN(size_kb); i++) {
		char path[128];
		unsigned long n_free, n_resv;

		snprintf(path, sizeof(path),
			"/sys/kernel/mm/hugepages/hugepages-%lukB/free_hugepages", size_kb[i]);
		n_free = read_number(path);
		snprintf(path, sizeof(path),
			"/sys/kernel/mm/hugepages/hugepages-%lukB/resv_hugepages", size_kb[i]);
		n_resv = read_number(path);
		if (n_free > n_resv)
			mb += (n_free - n_resv) * size_kb[i] / 1024;
	}
	return (uint32_t)CORQ_MIN(mb, UINT32_MAX);
}

bool
corq_eal_args_given(const struct corq_eal_conf *conf, const char *const *names)
{
	for (int i = 0; i < conf->argc; i++) {
		for (const char *const *name = names; *name != NULL; name++) {
			size_t len = strlen(*name);
			bool is_short = (*name)[1] != '-';

			if (strncmp(conf->argv[i], *name, len) != 0)
				continue;
			if (is_short || conf->argv[i][len] == '\0' || conf->argv[i][len] == '=')
				return true;
		}
	}
	return false;
}

/* Appends text at *len of buf; false when it does not fit. */
__attribute__((format(printf, 4, 5))) static bool
append(char *buf, size_t size, size_t *len, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf + *len, size - *len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size - *len)
		return false;
	*len += (size_t)n;
	return true;
}

/* "0@4,1@5,2@(4-5)": core i on its CPU, the main lcore on all of them. */
static bool
build_lcores(
	struct corq_eal_args *a, const struct corq_eal_conf *conf, const int *cpus, uint32_t n_cpus)
{
	size_t len = 0, size = sizeof(a->lcores);
	bool ok = true;

	for (uint32_t i = 0; i < conf->n_cores; i++)
		ok = ok && append(a->lcores, size, &len, "%u@%d,", i, cpus[i % n_cpus]);
	ok = ok && append(a->lcores, size, &len, "%u@(", conf->n_cores);
	for (uint32_t i = 0, end; i < n_cpus; i = end) {
		for (end = i + 1; end < n_cpus && cpus[end] == cpus[end - 1] + 1;)
			end++;
		ok = ok && append(a->lcores, size, &len, "%s%d-%d", i == 0 ? "" : ",", cpus[i],
				   cpus[end - 1]);
	}
	return ok && append(a->lcores, size, &len, ")");
}

static void
put(struct corq_eal_args *a, const char *arg)
{
	CORQ_ASSERT(a->argc < EAL_ARGS_MAX);
	a->argv[a->argc++] = (char *)(uintptr_t)arg; /* EAL permutes pointers, writes no text */
}

__attribute__((format(printf, 2, 3))) static void
putf(struct corq_eal_args *a, const char *fmt, ...)
{
	va_list ap;

	CORQ_ASSERT(a->n_text < CORQ_ARRAY_LEN(a->text));
	va_start(ap, fmt);
	vsnprintf(a->text[a->n_text], EAL_ARG_LEN, fmt, ap);
	va_end(ap);
	put(a, a->text[a->n_text++]);
}

static void
put_memory(struct corq_eal_args *a, const struct corq_eal_conf *conf, bool huge)
{
	static const char *const own_memory[] = {
		"--legacy-mem", "--huge-unlink", "--huge-dir", "--proc-type", "--in-memory", NULL};
	static const char *const sized[] = {"-m", "--socket-mem", NULL};

	if (!huge) {
		put(a, "--no-huge");
		if (!corq_eal_args_given(conf, sized)) {
			put(a, "-m");
			putf(a, "%u", conf->mem_mb + EAL_BASE_MB);
		}
	}
	/* No hugetlbfs mount, no file, no lock: nothing to clean up after a crash. EAL refuses
	 * --in-memory with --no-huge; what remains of it there is --no-shconf. */
	if (!corq_eal_args_given(conf, own_memory))
		put(a, huge ? "--in-memory" : "--no-shconf");
	if (conf->single_file)
		put(a, "--single-file-segments");
}

static void
put_devices(struct corq_eal_args *a, const struct corq_eal_conf *conf)
{
	static const char *const chosen[] = {"-a", "-b", "--allow", "--block", "--no-pci", NULL};
	static const char *const iova[] = {"--iova-mode", NULL};

	if (conf->pci != NULL) {
		put(a, "-a");
		put(a, conf->pci);
	}
	if (conf->pci != NULL || corq_eal_args_given(conf, chosen))
		return;
	put(a, "--no-pci");
	if (!corq_eal_args_given(conf, iova))
		put(a, "--iova-mode=va");
}

int
corq_eal_args_build(struct corq_eal_args *a, const struct corq_eal_conf *conf, bool huge,
	const int *cpus, uint32_t n_cpus, char *err, size_t errlen)
{
	static const char *const lcores[] = {"-l", "-c", "-s", "--lcores", NULL};
	static const char *const prefix[] = {"--file-prefix", NULL};
	static const char *const level[] = {"--log-level", NULL};
	static const char *const telemetry[] = {"--telemetry", "--no-telemetry", NULL};
	static const char *const help[] = {"-h", "--help", NULL};

	memset(a, 0, sizeof(*a));
	if (conf->argc > EAL_ARGS_MAX - 40) {
		corq_port_err(err, errlen, "too many EAL arguments");
		return -E2BIG;
	}
	if (!conf->verbose && corq_eal_args_given(conf, help)) {
		corq_port_err(
			err, errlen, "EAL shows its help and ends: --eal-log makes it visible");
		return -EINVAL;
	}
	put(a, "corq");
	if (!corq_eal_args_given(conf, lcores)) {
		if (!build_lcores(a, conf, cpus, n_cpus)) {
			corq_port_err(err, errlen, "the list of CPUs is too long for EAL");
			return -E2BIG;
		}
		put(a, "--lcores");
		put(a, a->lcores);
		put(a, "--main-lcore");
		putf(a, "%u", conf->n_cores);
	}
	if (!corq_eal_args_given(conf, prefix))
		putf(a, "--file-prefix=%.32s-%ld", conf->name != NULL ? conf->name : "corq",
			(long)getpid());
	put_memory(a, conf, huge);
	put_devices(a, conf);
	if (!corq_eal_args_given(conf, telemetry))
		put(a, "--no-telemetry");
	if (!conf->verbose && !corq_eal_args_given(conf, level))
		put(a, "--log-level=error");
	for (int i = 0; i < conf->argc; i++)
		put(a, conf->argv[i]);
	a->argv[a->argc] = NULL;
	return 0;
}
