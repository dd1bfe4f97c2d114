/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * times.c - see times.h.
 */
#include "ab/times.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const int ab_percents[AB_PERCENTS] = {50, 66, 75, 80, 90, 95, 98, 99, 100};

enum column {
	CONNECT,
	PROCESSING,
	WAITING,
	TOTAL
};

static uint32_t
value_of(const struct ab_sample *s, enum column column)
{
	switch (column) {
	case CONNECT:
		return s->connect_us;
	case PROCESSING:
		return s->total_us - (s->connect_us < s->total_us ? s->connect_us : s->total_us);
	case WAITING:
		return s->wait_us;
	default:
		return s->total_us;
	}
}

/* Three passes of 11 bits; the sorted values end in `to`. */
static void
radix_sort(uint32_t *from, uint32_t *to, size_t n)
{
	static size_t place[2048];

	for (unsigned shift = 0; shift < 33; shift += 11) {
		size_t sum = 0;
		uint32_t *swap;

		memset(place, 0, sizeof(place));
		for (size_t i = 0; i < n; i++)
			place[(from[i] >> shift) & 2047]++;
		for (size_t i = 0; i < 2048; i++) {
			size_t count = place[i];

			place[i] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			to[place[(from[i] >> shift) & 2047]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
}

static void
fill_row(const uint32_t *sorted, size_t n, struct ab_row *row)
{
	uint64_t sum = 0;
	double squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += sorted[i];
	row->min_us = sorted[0];
	row->max_us = sorted[n - 1];
	row->mean_us = sum / n;
	for (size_t i = 0; i < n; i++) {
		double d = (double)sorted[i] - (double)row->mean_us;

		squares += d * d;
	}
	row->sd_us = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	row->median_us = sorted[n / 2];
	if (n > 1 && n % 2 == 1)
		row->median_us = ((uint64_t)sorted[n / 2] + sorted[n / 2 + 1]) / 2;
	row->true_median_us = sorted[n / 2];
	if (n % 2 == 0)
		row->true_median_us = ((uint64_t)sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

int
ab_times_compute(const struct ab_sample_list *lists, unsigned n_lists, struct ab_times *times)
{
	struct ab_row *rows[] = {
		&times->connect, &times->processing, &times->waiting, &times->total};
	uint32_t *values, *sorted;
	size_t n = 0;

	memset(times, 0, sizeof(*times));
	for (unsigned i = 0; i < n_lists; i++)
		n += lists[i].count;
	if (n == 0)
		return 0;
	values = malloc(2 * n * sizeof(*values));
	if (values == NULL)
		return -ENOMEM;
	sorted = values + n;
	for (enum column column = CONNECT; column <= TOTAL; column++) {
		size_t at = 0;

		for (unsigned i = 0; i < n_lists; i++) {
			for (size_t j = 0; j < lists[i].count; j++)
				values[at++] = value_of(&lists[i].samples[j], column);
		}
		radix_sort(values, sorted, n);
		fill_row(sorted, n, rows[column]);
	}
	for (int i = 0; i < AB_PERCENTS; i++) {
		size_t at = ab_percents[i] == 100 ? n - 1 : n * (size_t)ab_percents[i] / 100;

		times->served_us[i] = sorted[at];
	}
	for (size_t i = 0; i <= 100; i++) {
		/* To the nearest, where the table above rounds down. */
		size_t at = (n * i + 50) / 100;

		times->csv_us[i] = sorted[at < n ? at : n - 1];
	}
	free(values);
	return 0;
}
