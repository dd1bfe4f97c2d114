/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verdict.h - what limited the rate: "generator", "nic" or "target". Pure; see verdict.c for the
 * thresholds.
 */
#ifndef CORQ_AB_VERDICT_H
#define CORQ_AB_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Percentages are of the run's time; < 0: not measured. "Ours" is the worst of our cores. */
struct ab_verdict_in {
	bool loop;            /* the device is a wire in memory, the target a core of ours */
	bool both_ends;       /* one core runs client and server */
	uint32_t concurrency; /* slots */
	double own_busy;      /* turns that did something, time not on the CPU included */
	double own_cpu_lost;  /* ready to run, but others had the CPU */
	double slots_late;    /* of all time that requests took: waiting for a core not run */
	double batch;         /* frames received a turn that did something */
	double peer_busy;     /* loop: the server's busiest core */
	double peer_cpu_lost; /* the same, ready to run */
	double own_backlog;   /* requests a turn that did something; of either side */
	double peer_backlog;
	double tx_blocked; /* frames were ready and the device did not take them */
	double tx_waited;  /* in the driver's sending calls, of those that took long */
	uint64_t rx_lost, rx_packets;
	uint64_t zero_windows, ports_refused;
};

struct ab_verdict {
	const char *name; /* "generator", "nic", "target" */
	char reason[320];
};

/* Of the loop device: percent that others took of both sides, the lesser; 0: not worth a word. */
uint64_t ab_verdict_loaded(const struct ab_verdict_in *in);

void ab_verdict_find(const struct ab_verdict_in *in, struct ab_verdict *out);

#endif
