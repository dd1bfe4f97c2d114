/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cycles.h - a cheap counter for cost accounting. Any thread.
 *
 * On x86 it is the TSC, read without a fence: neighbouring instructions may slip past it, so it
 * suits sums over many operations and not the timing of a single load. Elsewhere it counts
 * nanoseconds. It is no clock of the engine: time reaches the engine as an argument.
 */
#ifndef CORQ_BASE_CYCLES_H
#define CORQ_BASE_CYCLES_H

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>

static inline uint64_t
corq_cycles(void)
{
	return __rdtsc();
}
#else
#include <time.h>

static inline uint64_t
corq_cycles(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
#endif

/* For spin loops: lets the other hyperthread run. */
static inline void
corq_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

#endif
