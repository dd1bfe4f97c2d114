/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * result.h - how benches report: medians over repetitions, one JSON object a measurement on
 * standard output, a table for people on standard error. Used by one thread, at the end.
 */
#ifndef CORQ_PERF_RESULT_H
#define CORQ_PERF_RESULT_H

#include <stddef.h>
#include <stdint.h>

#define RESULT_MAX      192 /* measurements a bench has */
#define RESULT_RUNS_MAX 64

struct result {
	char name[64];
	const char *unit;
	const struct result *peer; /* or NULL */
	double value[RESULT_RUNS_MAX];
	unsigned n;
};

struct results {
	struct result v[RESULT_MAX];
	unsigned n;
};

/* Appends the value of one repetition to the measurement of that name (made at its first use). */
void result_add(struct results *r, const char *unit, double value, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* NULL: there is none of that name. */
struct result *result_find(struct results *r, const char *name);
double result_median(const struct result *r);
/* Sorts v. */
double result_median_of(double *v, unsigned n);
/* The median of the ratios of repetitions, which were measured beside each other. */
double result_ratio(const struct result *r, const struct result *peer);
/* GROUP.NAME is to be seen beside GROUP.PEER. Both are measured. */
void result_peer(struct results *r, const char *group, const char *name, const char *peer);
/* {"name": "BENCH.NAME", "value": median, "unit": ..., "min", "max", "runs"} a line, and where
 * there is a peer "peer", "peer_value", "ratio"; and the table. */
void result_print(const struct results *r, const char *bench);
/* The number of an option's text, or the end of the program with one line. */
uint64_t result_number(const char *option, const char *text, uint64_t min, uint64_t max);

#endif
