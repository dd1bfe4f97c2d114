/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.h - what a run of `corq opensock` came to, added up by the main thread, and its output:
 * report.c as text, json.c as JSON.
 */
#ifndef CORQ_OPENSOCK_FIGURES_H
#define CORQ_OPENSOCK_FIGURES_H

#include "common/json.h"
#include "opensock/plan.h"
#include "opensock/worker.h"

#define OPENSOCK_TURNS 5 /* of each side */

struct opensock_turn {
	double seconds;
	double rate; /* pairs a second, all threads */
};

struct opensock_side_figures {
	uint64_t asked, count; /* open before the loop: wanted; got */
	char bound[160];       /* why those two differ; "" */
	uint64_t total;        /* pairs within turns */
	double seconds, rate;
	struct opensock_turn turn[OPENSOCK_TURNS];
	uint32_t n_turns;
	struct opensock_spread thread; /* pairs a second, a thread */
	struct corq_hist cycles;       /* of batches */
	uint64_t opened, closed, crossed, not_opened, not_closed;
	int error; /* errno of the first failure */
};

struct opensock_figures {
	const struct opensock_options *opts;
	struct opensock_side_figures side[OPENSOCK_SIDES];
	double tsc_hz;
	double ratio;            /* corq's rate by the kernel's; below 0: not both */
	int64_t resident;        /* bytes by which memory grew; below 0: not known */
	double bytes_per_handle; /* below 0: not known */
	struct corq_handle_counts filled, loop_end, end, left; /* corq: before the loop, after it,
								  all closed, all detached */
	bool adds_up;
	const char *error; /* or NULL */
};

/* Pairs a second of each thread and all counts, after the last turn. */
void opensock_figures_add(struct opensock_figures *f, const struct opensock_run *run);
void opensock_report(const struct opensock_figures *f, FILE *out);
json_t *opensock_json_make(const struct opensock_figures *f, int argc, char **argv);

#endif
