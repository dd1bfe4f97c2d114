/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist.h - log-linear histogram of 64-bit values (nanoseconds, cycles, bytes). One writer.
 *
 * Values below 32 have a bucket each; above, every power of two is cut into 32 buckets, so a
 * percentile is off by at most 1/32 (3.2 %) upwards. Minimum, maximum, count and mean are exact.
 * So is the standard deviation while the sum of squared deviations stays below 2^128. Fixed size
 * (15 KiB); merge the histograms of several cores with corq_hist_merge().
 */
#ifndef CORQ_HIST_H
#define CORQ_HIST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORQ_HIST_SUB_BITS 5
#define CORQ_HIST_SUB      (1u << CORQ_HIST_SUB_BITS)
#define CORQ_HIST_BUCKETS  ((64 - CORQ_HIST_SUB_BITS + 1) * CORQ_HIST_SUB)

struct corq_hist {
	uint64_t count;
	uint64_t min; /* UINT64_MAX when empty */
	uint64_t max;
	unsigned __int128 sum;
	unsigned __int128 sum_sq; /* modulo 2^128: the deviation is computed modulo it too */
	uint64_t bucket[CORQ_HIST_BUCKETS];
};

void corq_hist_init(struct corq_hist *h);

/* dst += src. */
void corq_hist_merge(struct corq_hist *dst, const struct corq_hist *src);

/*
 * The least bucket edge with at least pct percent (0..100) of the values at or below it, and never
 * above the maximum. 0 when empty; pct 0 gives the minimum.
 */
uint64_t corq_hist_percentile(const struct corq_hist *h, double pct);

/* 0 when empty. corq_hist_stddev is that of the population. */
double corq_hist_mean(const struct corq_hist *h);
double corq_hist_stddev(const struct corq_hist *h);
uint64_t corq_hist_min(const struct corq_hist *h);

/* Highest value of bucket i: to print a distribution. */
uint64_t corq_hist_upper(uint32_t i);

static inline uint32_t
corq_hist_index(uint64_t v)
{
	uint32_t shift;

	if (v < CORQ_HIST_SUB)
		return (uint32_t)v;
	shift = 63 - CORQ_HIST_SUB_BITS - (uint32_t)__builtin_clzll(v);
	return (shift << CORQ_HIST_SUB_BITS) + (uint32_t)(v >> shift);
}

static inline void
corq_hist_record(struct corq_hist *h, uint64_t v)
{
	h->count++;
	h->min = v < h->min ? v : h->min;
	h->max = v > h->max ? v : h->max;
	h->sum += v;
	h->sum_sq += (unsigned __int128)v * v;
	h->bucket[corq_hist_index(v)]++;
}

#ifdef __cplusplus
}
#endif
#endif
