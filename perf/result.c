/* SPDX-License-Identifier: BSD-3-Clause */
/* result.c - medians and their two forms of output. See result.h. */
#include "result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
result_add(struct results *r, const char *unit, double value, const char *fmt, ...)
{
	char name[sizeof(r->v[0].name)];
	struct result *m = NULL;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	for (unsigned i = 0; i < r->n && !m; i++)
		if (strcmp(r->v[i].name, name) == 0)
			m = &r->v[i];
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

static void
sorted(const struct result *r, double *v)
{
	memcpy(v, r->value, r->n * sizeof(*v));
	qsort(v, r->n, sizeof(*v), by_value);
}

double
result_median(const struct result *r)
{
	double v[RESULT_RUNS_MAX];

	if (r->n == 0)
		return 0;
	sorted(r, v);
	return r->n % 2 ? v[r->n / 2] : (v[r->n / 2 - 1] + v[r->n / 2]) / 2;
}

void
result_print(const struct results *r, const char *bench)
{
	for (unsigned i = 0; i < r->n; i++) {
		const struct result *m = &r->v[i];
		double v[RESULT_RUNS_MAX], median = result_median(m);

		sorted(m, v);
		printf("{\"name\": \"%s.%s\", \"value\": %.6g, \"unit\": \"%s\", \"min\": %.6g, "
		       "\"max\": %.6g, \"runs\": %u}\n",
			bench, m->name, median, m->unit, v[0], v[m->n - 1], m->n);
		fprintf(stderr, "%-44s %14.6g %-22s (%.6g .. %.6g)\n", m->name, median, m->unit,
			v[0], v[m->n - 1]);
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
