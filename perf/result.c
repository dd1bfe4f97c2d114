/* SPDX-License-Identifier: BSD-3-Clause */
/* result.c - medians and their two forms of output. See result.h. */
#include "result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct result *
result_find(struct results *r, const char *name)
{
	for (unsigned i = 0; i < r->n; i++)
		if (strcmp(r->v[i].name, name) == 0)
			return &r->v[i];
	return NULL;
}

void
result_add(struct results *r, const char *unit, double value, const char *fmt, ...)
{
	char name[sizeof(r->v[0].name)];
	struct result *m;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	m = result_find(r, name);
	if (!m && r->n < RESULT_MAX) {
		m = &r->v[r->n++];
		memcpy(m->name, name, sizeof(name));
		m->unit = unit;
	}
	if (m && m->n < RESULT_RUNS_MAX)
		m->value[m->n++] = value;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double
result_median_of(double *v, unsigned n)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double
result_median(const struct result *r)
{
	double v[RESULT_RUNS_MAX];

	memcpy(v, r->value, r->n * sizeof(*v));
	return result_median_of(v, r->n);
}

double
result_ratio(const struct result *r, const struct result *peer)
{
	double v[RESULT_RUNS_MAX];
	unsigned n = 0;

	for (; n < r->n && n < peer->n; n++)
		v[n] = r->value[n] / peer->value[n];
	return result_median_of(v, n);
}

void
result_peer(struct results *r, const char *group, const char *name, const char *peer)
{
	char text[sizeof(r->v[0].name)];
	struct result *m;

	snprintf(text, sizeof(text), "%s.%s", group, name);
	m = result_find(r, text);
	snprintf(text, sizeof(text), "%s.%s", group, peer);
	if (m)
		m->peer = result_find(r, text);
}

static void
range(const struct result *r, double *min, double *max)
{
	*min = *max = r->value[0];
	for (unsigned i = 1; i < r->n; i++) {
		if (r->value[i] < *min)
			*min = r->value[i];
		if (r->value[i] > *max)
			*max = r->value[i];
	}
}

void
result_print(const struct results *r, const char *bench)
{
	for (unsigned i = 0; i < r->n; i++) {
		const struct result *m = &r->v[i];
		double min, max, value = result_median(m);

		range(m, &min, &max);
		printf("{\"name\": \"%s.%s\", \"value\": %.6g, \"unit\": \"%s\", \"min\": %.6g, "
		       "\"max\": %.6g, \"runs\": %u",
			bench, m->name, value, m->unit, min, max, m->n);
		fprintf(stderr, "%-44s %14.6g %-22s (%.6g .. %.6g)", m->name, value, m->unit, min,
			max);
		if (m->peer) {
			printf(", \"peer\": \"%s\", \"peer_value\": %.6g, \"ratio\": %.6g",
				m->peer->name, result_median(m->peer), result_ratio(m, m->peer));
			fprintf(stderr, " %.3g of %s", result_ratio(m, m->peer), m->peer->name);
		}
		printf("}\n");
		fprintf(stderr, "\n");
	}
}

uint64_t
result_number(const char *option, const char *text, uint64_t min, uint64_t max)
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
