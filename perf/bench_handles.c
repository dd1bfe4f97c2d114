/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_handles.c - what a handle costs, beside floors measured in the same run: (a) a 64-ary tree
 * of bits, one thread, no atomics; (b) the same shared by compare-and-swap; (c) a bare stack;
 * (d) the kernel's socket() and close(). The parts have their own files: handles_alone.c,
 * handles_threads.c, handles_cross.c. After the figures the bounds that handles are built to keep:
 * met, or not met, each with its figure; the exit code does not depend on them.
 */
#include "handles.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What is measured against what; limit: at most, or (negative) at least. */
static const struct bound {
	const char *value, *peer; /* without peer the value itself */
	double limit;
	const char *says;
} bounds[] = {
	{"empty.lowest", "empty.floor_a", 1.5, "lowest, empty, to floor (a)"},
	{"half.lowest", "half.floor_a", 1.5, "lowest, half full, to floor (a)"},
	{"99.9.lowest", "99.9.floor_a", 1.5, "lowest, 99.9 % full, to floor (a)"},
	{"all_but_one.lowest", "all_but_one.floor_a", 1.5, "lowest, all but one, to floor (a)"},
	{"99.9_holes.lowest", "99.9_holes.floor_a", 1.5, "lowest, holes at 99.9 %, to floor (a)"},
	{"half_holes.lowest", "half_holes.floor_a", 1.5, "lowest, holes at half, to floor (a)"},
	{"empty.fast", "empty.floor_c", 4, "fast, empty, to floor (c)"},
	{"half.fast", "half.floor_c", 4, "fast, half full, to floor (c)"},
	{"99.9.fast", "99.9.floor_c", 4, "fast, 99.9 % full, to floor (c)"},
	{"all_but_one.fast", "all_but_one.floor_c", 4, "fast, all but one, to floor (c)"},
	{"99.9_holes.fast", "99.9_holes.floor_c", 4, "fast, holes at 99.9 %, to floor (c)"},
	{"half_holes.fast", "half_holes.floor_c", 4, "fast, holes at half, to floor (c)"},
	{"empty.lowest_handle.above_floor_a", NULL, 15, "open+close, empty, above floor (a)"},
	{"half.lowest_handle.above_floor_a", NULL, 15, "open+close, half full, above floor (a)"},
	{"99.9.lowest_handle.above_floor_a", NULL, 15, "open+close, 99.9 %, above floor (a)"},
	{"all_but_one.lowest_handle.above_floor_a", NULL, 15,
		"open+close, all but one, above floor (a)"},
	{"99.9_holes.lowest_handle.above_floor_a_slot", NULL, 15,
		"open+close, holes at 99.9 %, above floor (a) with slots"},
	{"half_holes.lowest_handle.above_floor_a_slot", NULL, 15,
		"open+close, holes at half, above floor (a) with slots"},
	{"scaling_2_to_1.lanes", "scaling_2_to_1.floor_a", -0.95,
		"two threads, to the scaling of two floors (a)"},
	{"scaling_48_to_2.lanes", NULL, -0.85, "48 threads, to the rate of two"},
	{"cross_10.to_local_and_round_trip", NULL, 1, "10 % closed there, to local + round trip"},
	{"cross_50.to_local_and_round_trip", NULL, 1, "50 % closed there, to local + round trip"},
	{"cross_100.to_local_and_round_trip", NULL, 1, "100 % closed there, to local + round trip"},
};

static void
judge(struct results *r)
{
	for (unsigned i = 0; i < CORQ_ARRAY_LEN(bounds); i++) {
		const struct bound *b = &bounds[i];
		const struct result *m = result_find(r, b->value);
		double v, limit = b->limit < 0 ? -b->limit : b->limit;
		bool met;

		if (m == NULL)
			continue;
		v = b->peer ? result_ratio(m, result_find(r, b->peer)) : result_median(m);
		met = b->limit < 0 ? v >= limit : v <= limit;
		printf("{\"name\": \"handles.bound.%s\", \"value\": %.6g, \"unit\": \"%s\", "
		       "\"limit\": %g, \"sense\": \"%s\", \"met\": %s}\n",
			b->value, v, b->peer ? "x" : m->unit, limit,
			b->limit < 0 ? "at least" : "at most", met ? "true" : "false");
		fprintf(stderr, "%-8s %-58s %8.3g %-2s %s %g\n", met ? "met" : "NOT MET", b->says,
			v, b->peer ? "x" : m->unit, b->limit < 0 ? "at least" : "at most ", limit);
	}
}

static double
ns_of_a_cycle(void)
{
	struct timespec a, b;
	uint64_t c = corq_cycles();
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		clock_gettime(CLOCK_MONOTONIC, &b);
		ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
	} while (ns < 50e6);
	return ns / (double)(corq_cycles() - c);
}

static void
find_cpus(struct handles_bench *b)
{
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && b->n_cpus < 2; i++)
		if (CPU_ISSET(i, &set))
			b->cpu[b->n_cpus++] = i;
}

static const struct part {
	const char *name;
	void (*run)(struct handles_bench *b);
	unsigned cpus;
} part[] = {
	{"alone", handles_alone, 1}, {"threads", handles_threads, 2}, {"cross", handles_cross, 2}};

static bool
is_wanted(const struct part *p, const char *only)
{
	return only == NULL || strcmp(only, p->name) == 0;
}

static unsigned
n_wanted(const char *only)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CORQ_ARRAY_LEN(part); i++)
		n += is_wanted(&part[i], only);
	return n;
}

static int
usage(void)
{
	fprintf(stderr, "usage: bench_handles [--slots N] [--ops N] [--runs N] "
			"[--part alone|threads|cross]\n");
	return 2;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"slots", required_argument, NULL, 'n'},
		{"runs", required_argument, NULL, 'r'}, {"ops", required_argument, NULL, 'o'},
		{"part", required_argument, NULL, 'p'}, {NULL, 0, NULL, 0}};
	static struct handles_bench b = {.slots = 10000000, .ops = 20000, .runs = 5};
	const char *only = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			b.slots = (uint32_t)result_number("slots", optarg, 1000, CORQ_LANE_SLOTS);
		else if (c == 'r')
			b.runs = (unsigned)result_number("runs", optarg, 1, RESULT_RUNS_MAX);
		else if (c == 'o')
			b.ops = (uint32_t)result_number("ops", optarg, 100, 1u << 30);
		else if (c == 'p')
			only = optarg;
		else
			return usage();
	}
	if (optind != argc || n_wanted(only) == 0)
		return usage();
	find_cpus(&b);
	b.ns = ns_of_a_cycle();
	for (unsigned i = 0; i < CORQ_ARRAY_LEN(part); i++) {
		if (!is_wanted(&part[i], only))
			continue;
		if (b.n_cpus < part[i].cpus)
			fprintf(stderr,
				"bench_handles: %s is left out: it needs two CPUs, one may "
				"be used\n",
				part[i].name);
		else
			part[i].run(&b);
	}
	result_print(&b.results, "handles");
	judge(&b.results);
	return 0;
}
