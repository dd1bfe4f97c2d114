/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist.c - reading and merging histograms; hist.h has the layout. Cold: reports call this, from a
 * thread that owns the histogram or a copy of it.
 */
#include <corq/hist.h>

#include "base/base.h"

#include <string.h>

void
corq_hist_init(struct corq_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void
corq_hist_merge(struct corq_hist *dst, const struct corq_hist *src)
{
	dst->count += src->count;
	dst->min = CORQ_MIN(dst->min, src->min);
	dst->max = CORQ_MAX(dst->max, src->max);
	dst->sum += src->sum;
	dst->sum_sq += src->sum_sq;
	for (uint32_t i = 0; i < CORQ_HIST_BUCKETS; i++)
		dst->bucket[i] += src->bucket[i];
}

uint64_t
corq_hist_upper(uint32_t i)
{
	uint32_t shift;

	if (i < CORQ_HIST_SUB)
		return i;
	/* The inverse of corq_hist_index(): i = (shift << 5) + v >> shift, v >> shift in 32..63. */
	shift = (i >> CORQ_HIST_SUB_BITS) - 1;
	i -= shift << CORQ_HIST_SUB_BITS;
	return ((uint64_t)i << shift) + ((1ull << shift) - 1);
}

uint64_t
corq_hist_percentile(const struct corq_hist *h, double pct)
{
	/* Less a hair, so that 99.9 % of 1000 is 999 and not one more by rounding. */
	double want = pct * (double)h->count / 100 * (1 - 1e-12);
	uint64_t below = 0;

	if (h->count == 0)
		return 0;
	if (pct <= 0)
		return h->min;
	for (uint32_t i = 0; i < CORQ_HIST_BUCKETS; i++) {
		below += h->bucket[i];
		if (below > 0 && (double)below >= want)
			return CORQ_MIN(corq_hist_upper(i), h->max);
	}
	return h->max;
}

double
corq_hist_mean(const struct corq_hist *h)
{
	return h->count ? (double)((long double)h->sum / (long double)h->count) : 0;
}

static double
square_root(double x)
{
	double r = x;

	/* Newton from above, falling until it stops: exact to the last bits, and no libm. */
	if (x <= 0)
		return 0;
	if (r < 1)
		r = 1;
	for (double next = (r + x / r) / 2; next < r; next = (r + x / r) / 2)
		r = next;
	return r;
}

double
corq_hist_stddev(const struct corq_hist *h)
{
	unsigned __int128 q, dev;
	double frac;

	if (h->count == 0)
		return 0;
	/*
	 * The sum of (v - q)^2 with the whole part q of the mean; all terms modulo 2^128, and so
	 * right wherever the result itself fits. The mean's fraction is taken off afterwards.
	 */
	q = h->sum / h->count;
	dev = h->sum_sq - 2 * q * h->sum + q * q * h->count;
	frac = (double)(h->sum % h->count) / (double)h->count;
	return square_root((double)dev / (double)h->count - frac * frac);
}

uint64_t
corq_hist_min(const struct corq_hist *h)
{
	return h->count ? h->min : 0;
}
