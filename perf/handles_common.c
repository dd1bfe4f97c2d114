/* SPDX-License-Identifier: BSD-3-Clause */
/* handles_common.c - memory, lanes and CPUs for the parts of bench_handles. See handles.h. */
#include "handles.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

void *
handles_map(size_t bytes)
{
	char *p = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("bench_handles: memory");
		exit(1);
	}
	madvise(p, bytes + HUGE_PAGE, MADV_HUGEPAGE);
	return p + (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
}

struct corq_lane *
handles_add_lane(struct corq_handles *h, enum corq_lane_order order)
{
	struct corq_lane *l = aligned_alloc(CORQ_CACHELINE, 2 * CORQ_CACHELINE);

	_Static_assert(sizeof(*l) <= 2 * CORQ_CACHELINE, "a thread's lines are its own");
	if (l == NULL || corq_lane_attach(l, h, handles_map(corq_lane_size(h->n_slots)),
				 &(struct corq_lane_config){.order = order}) != 0) {
		fprintf(stderr, "bench_handles: no lane\n");
		exit(1);
	}
	return l;
}

struct corq_lane *
handles_new_lane(uint32_t slots, enum corq_lane_order order)
{
	struct corq_handles *h = handles_map(sizeof(*h));

	corq_handles_init(h, handles_map(corq_handles_size(slots, 1)), slots, 1, 1);
	return handles_add_lane(h, order);
}

void
handles_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}
