/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * times.h - ab's four rows of times and its table of percentages, from the times of every request.
 * Pure; called once, after the run.
 *
 * The figures follow ab 2.4 to the unit, its median included: with an odd number of requests ab
 * takes the mean of the middle one and the one above it, with an even number the upper of the two
 * middle ones. The median that is meant stands beside it.
 */
#ifndef CORQ_AB_TIMES_H
#define CORQ_AB_TIMES_H

#include <stddef.h>
#include <stdint.h>

#define AB_SAMPLES_MAX 10000000ull /* exact times are kept of so many requests */

/* One request; microseconds, the unit in which ab measures. Longer than 71 minutes is cut off. */
struct ab_sample {
	uint32_t connect_us; /* 0 when the connection was there already */
	uint32_t total_us;
	uint32_t wait_us; /* from the end of writing to the first byte */
};

/* For -g: one request. */
struct ab_record {
	uint64_t start_us; /* since 1970 */
	uint32_t connect_us, total_us, wait_us;
};
_Static_assert(sizeof(struct ab_record) <= 32, "100 million of them are 3 GB");

struct ab_sample_list {
	const struct ab_sample *samples;
	size_t count;
};

struct ab_row {
	uint64_t min_us, mean_us, median_us, max_us;
	uint64_t true_median_us;
	double sd_us;
};

#define AB_PERCENTS 9
extern const int ab_percents[AB_PERCENTS]; /* 50 .. 100 */

struct ab_times {
	struct ab_row connect, processing, waiting, total;
	uint64_t served_us[AB_PERCENTS];
	uint64_t csv_us[101]; /* -e: 0 to 100 percent; ab rounds these otherwise */
};

/* 0, or -ENOMEM. No sample at all gives zeros. */
int ab_times_compute(const struct ab_sample_list *lists, unsigned n, struct ab_times *times);

static inline uint32_t
ab_sample_us(uint64_t ns)
{
	uint64_t us = ns / 1000;

	return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

/* As ab rounds what it prints. */
static inline uint64_t
ab_round_ms(uint64_t us)
{
	return (us + 500) / 1000;
}

#endif
