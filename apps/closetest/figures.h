/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.h - what a stage of `corq closetest` found, whoever ran it (loop.c: corq, kernel.c: plain
 * sockets), and what is made of it. A figure that this backend cannot tell is below 0.
 */
#ifndef CORQ_CLOSETEST_FIGURES_H
#define CORQ_CLOSETEST_FIGURES_H

#include "closetest/options.h"
#include "common/json.h"

#include <corq/hist.h>

/* Why a connection did not come about, or did not end. */
enum closetest_failure {
	CLOSETEST_NO_PORT, /* EADDRNOTAVAIL: every local tuple is taken */
	CLOSETEST_REFUSED,
	CLOSETEST_RESET, /* before it was open */
	CLOSETEST_TIMEOUT,
	CLOSETEST_NOT_CLOSED, /* open, but the peer did not close within --timeout */
	CLOSETEST_OTHER,
	CLOSETEST_FAILURES
};

struct closetest_stage {
	struct closetest_step step;
	char target[64];
	bool ran, cut_short;
	uint64_t tried, good, failed[CLOSETEST_FAILURES];
	uint64_t first_no_port; /* the how manieth connection, from 1; 0: none */
	uint64_t reset_after;   /* good ones that ended by the peer's RST, as abort-if-empty does */
	uint64_t net_ns;        /* connecting and closing, without what is between blocks */
	struct corq_hist connect;
	double tw_client, tw_server; /* entered: by our client; by our server */
	uint64_t tw_before, tw_now, tw_peak;
	double packets;   /* on the wire, all connections */
	double recycled;  /* TIME_WAIT left early for a newer SYN */
	double reused;    /* taken by our own connect */
	double evicted;   /* thrown out: the table was full */
	double syn_again; /* SYNs sent again, most of them at once: the peer had a TIME_WAIT */
	double timeouts;  /* retransmission timers that fired */
	double ports_total, ports_used, ports_waiting, ports_recycled, ports_refused;
};

struct closetest_run {
	const struct closetest_options *opts;
	FILE *out;
	unsigned n;
	struct closetest_stage stage[CLOSETEST_STAGES];
	uint32_t record_bytes, table_bytes; /* of a TIME_WAIT: itself; its share of the table */
	bool record_exact;
	bool interrupted;
};

uint64_t closetest_failed(const struct closetest_stage *s);
const char *closetest_failure_name(enum closetest_failure failure);
enum closetest_failure closetest_failure_of(int error);
void closetest_count_failure(struct closetest_stage *s, int error);
/* Has this server nothing to answer, so that more connections make no sense? */
bool closetest_hopeless(const struct closetest_stage *s, uint64_t in_a_row);
/* The stage's one line on stderr, when it was given up. */
void closetest_say_hopeless(const struct closetest_stage *s, int error);
void closetest_begin_lines(const struct closetest_run *run, const struct closetest_stage *s);
/* The two lines of a block; takes the COUNT into the stage. */
void closetest_block_lines(struct closetest_run *run, struct closetest_stage *s, uint64_t ns,
	uint64_t connections, uint64_t time_wait);
uint64_t closetest_bytes(const struct closetest_run *run, const struct closetest_stage *s);
void closetest_report(const struct closetest_run *run);
json_t *closetest_json_make(
	const struct closetest_run *run, const char *error, int argc, char **argv);

/* The two backends: 0 or an exit code (the error line is out). */
int closetest_run_corq(struct closetest_run *run);
int closetest_run_kernel(struct closetest_run *run);

#endif
