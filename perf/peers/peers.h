/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers.h - what epoll_server and epoll_client share: option values, CPU pin, descriptor limit.
 *
 * The pair is the kernel's side of perf/vs_kernel: one thread each, non-blocking sockets and one
 * epoll set, no library. It does per connection what bench_conn's programs do on corq.
 */
#ifndef CORQ_PERF_PEERS_H
#define CORQ_PERF_PEERS_H

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static inline void __attribute__((noreturn)) peer_die(const char *what)
{
	if (errno)
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
	else
		fprintf(stderr, "%s\n", what);
	exit(1);
}

static inline uint64_t
peer_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The number in text, or the end of the program with one line. */
static inline uint64_t
peer_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || value < min || value > max) {
		fprintf(stderr, "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n",
			option, text, min, max);
		exit(2);
	}
	return value;
}

static inline void
peer_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		peer_die("sched_setaffinity");
}

/* Raises the limit to the hard one; returns how many descriptors may be open. */
static inline unsigned
peer_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		peer_die("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		peer_die("setrlimit");
	return limit.rlim_cur > 1u << 20 ? 1u << 20 : (unsigned)limit.rlim_cur;
}

#endif
