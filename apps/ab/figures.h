/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.h - all figures of a finished run in one place, for the text and the JSON. Main thread,
 * after corq_run.
 */
#ifndef CORQ_AB_FIGURES_H
#define CORQ_AB_FIGURES_H

#include "ab/gen.h"
#include "ab/verdict.h"
#include "common/json.h"

#include <corq/instance.h>

struct ab_figures {
	const struct ab_run *run;
	uint64_t elapsed_ns; /* first connect to last reply */
	double seconds;
	/* Sums over the generators: see struct ab_core. */
	uint64_t started, done, good, bad, bad_connect, bad_receive, bad_length, bad_except;
	uint64_t not_2xx, kept_alive, aborted, outstanding, write_errors;
	uint64_t timeouts, resets, refused, cut_short, garbage, idle_closed, not_closed;
	uint64_t bytes_read, bytes_posted, bytes_body;
	uint64_t opened, closed, live, half_open_peak, live_peak;
	double live_mean, port_util_peak; /* < 0: not measured */
	bool samples_short;               /* exact times are there of the first requests only */
	int64_t recovery_ms;   /* after an injected pause; -1: none was, -2: not within the run */
	struct corq_hist *lat; /* AB_LATS of them */
	struct ab_times times;

	/* By side. On one core for both ends, own counts both and peer nothing. */
	bool both_ends;
	struct corq_stats own, peer;
	unsigned own_cores, peer_cores;
	uint64_t csum_partial;      /* frames whose checksum was left to a device */
	uint64_t syn_met_time_wait; /* SYNs that a TIME_WAIT at the peer answered with an ACK */
	/* Percent of the time, by core; < 0: not measured. */
	double own_busy[APP_CORES_MAX], peer_busy[APP_CORES_MAX];
	double cpu_lost[APP_CORES_MAX], peer_lost[APP_CORES_MAX]; /* the former of generators */
	double tx_waited[APP_CORES_MAX]; /* in sending calls of the driver that took long */
	uint64_t both_lost_pct;          /* see ab_verdict_loaded */
	double late_pct, tx_blocked_pct, tx_waited_pct, rx_batch; /* see struct ab_verdict_in */
	struct ab_verdict verdict;
};

/* 0, -ENOMEM. The instance must not have ended yet. */
int ab_figures_collect(struct ab_run *run, struct ab_figures *figures);
void ab_figures_free(struct ab_figures *figures);
/* Packets and busy cycles of our side a connection, packets a request; < 0: not measured. */
double ab_figures_packets(const struct ab_figures *figures);
double ab_figures_packets_request(const struct ab_figures *figures);
double ab_figures_cycles(const struct ab_figures *figures);

/* Segments with neither SYN nor FIN that were sent again. */
static inline uint64_t
ab_data_retransmitted(const struct corq_stats *s)
{
	return s->segs_retransmitted - s->syn_retransmitted - s->fin_retransmitted;
}
/* Do the counters add up: requests and connections, each counted on its own? */
bool ab_figures_add_up(const struct ab_figures *figures);

/* extension.c: the key: value block after ab's text. */
void ab_extension_print(FILE *out, const struct ab_figures *figures);
/* json.c. error: why the run failed, in one line, or NULL. The caller owns the result. */
json_t *ab_json_make(const struct ab_figures *figures, const char *error, int argc, char **argv);

#endif
