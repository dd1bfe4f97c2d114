/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - see plan.h.
 */
#include "opensock/plan.h"

#include <corq/socket.h>
#include <math.h>

uint64_t
opensock_share(uint64_t count, uint32_t threads, uint32_t i)
{
	return count / threads + (i < count % threads);
}

uint64_t
opensock_extra(const struct opensock_options *opts, uint64_t share)
{
	return opts->holes ? share / 1024 + 64 : 0;
}

/* Of the thread that has most: its share, one in the loop, those that others are to close; in whole
 * blocks, and one more for handles that were closed and are not back yet. */
static uint64_t
need_of_thread(const struct opensock_options *opts, uint64_t count)
{
	uint64_t share = opensock_share(count, opts->threads, 0);
	uint64_t n = share + opensock_extra(opts, share) + 1;

	if (opts->cross != 0)
		n += OPENSOCK_RING;
	return (n + OPENSOCK_BLOCK - 1) / OPENSOCK_BLOCK * OPENSOCK_BLOCK + OPENSOCK_BLOCK;
}

static bool
fits(const struct opensock_options *opts, uint64_t count)
{
	uint64_t n = need_of_thread(opts, count);

	return n <= CORQ_THREAD_HANDLES && n * opts->threads <= CORQ_MAX_HANDLES;
}

uint32_t
opensock_need(const struct opensock_options *opts, uint64_t *most)
{
	uint64_t low = 0, high = opts->count;

	if (fits(opts, opts->count))
		return (uint32_t)(need_of_thread(opts, opts->count) * opts->threads);
	while (high - low > 1) { /* low fits, high does not */
		uint64_t middle = (low + high) / 2;

		if (fits(opts, middle))
			low = middle;
		else
			high = middle;
	}
	*most = low;
	return 0;
}

uint64_t
opensock_kernel_most(const struct opensock_options *opts, uint64_t limit)
{
	uint64_t thread = 1 + (opts->cross != 0 ? OPENSOCK_RING_KERNEL : 0);
	uint64_t others = OPENSOCK_SPARE_FDS + opts->threads * (thread + opensock_extra(opts, 0));

	if (limit <= others)
		return 0;
	return opts->holes ? (limit - others) * 1024 / 1025 : limit - others;
}

struct opensock_spread
opensock_spread_of(const double *v, uint32_t n)
{
	struct opensock_spread s = {0, v[0], v[0], 0};
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < n; i++) {
		sum += v[i];
		s.min = fmin(s.min, v[i]);
		s.max = fmax(s.max, v[i]);
	}
	s.mean = sum / n;
	for (uint32_t i = 0; i < n; i++)
		squares += (v[i] - s.mean) * (v[i] - s.mean);
	s.sd = sqrt(squares / n);
	return s;
}
