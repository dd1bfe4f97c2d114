/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.c - the clock of all ports: the TSC, scaled to nanoseconds of CLOCK_MONOTONIC.
 *
 * DPDK's own estimate of the TSC's rate is rounded to 10 MHz, 0.2 % off on a 2.4 GHz machine, which
 * would show in every rate that corq reports; so corq calibrates over EAL's start (100 ms or more),
 * to a few parts in a million. Assumes an invariant TSC that all CPUs share, as DPDK does.
 *
 * Set up once on the main thread; read by every core through its own copy.
 */
#include <time.h>

#include "port/port_int.h"

#define CALIBRATE_MIN_NS (50 * CORQ_NS_PER_MS)

static uint64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CORQ_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Both clocks at one instant: the tightest of a few tries, since any of them may be interrupted. */
struct corq_clock_sample
corq_clock_sample(void)
{
	struct corq_clock_sample s = {0, 0};
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before = rte_rdtsc();
		uint64_t ns = monotonic_ns();
		uint64_t after = rte_rdtsc();

		if (after - before < best) {
			best = after - before;
			s.tsc = before + best / 2;
			s.ns = ns;
		}
	}
	return s;
}

void
corq_clock_init(struct corq_clock *c, struct corq_clock_sample from)
{
	struct corq_clock_sample to;
	uint64_t passed = monotonic_ns() - from.ns;

	if (passed < CALIBRATE_MIN_NS) {
		struct timespec rest = {.tv_nsec = (long)(CALIBRATE_MIN_NS - passed)};

		nanosleep(&rest, NULL);
	}
	to = corq_clock_sample();
	c->tsc0 = to.tsc;
	c->ns0 = to.ns;
	c->mult = (uint64_t)(((unsigned __int128)(to.ns - from.ns) << 32) / (to.tsc - from.tsc));
}
