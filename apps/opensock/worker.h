/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - what a thread of `corq opensock` does, step by step, and what it counts. Each thread
 * writes its own struct opensock_worker; the main thread reads it between steps.
 */
#ifndef CORQ_OPENSOCK_WORKER_H
#define CORQ_OPENSOCK_WORKER_H

#include "opensock/crew.h"
#include "opensock/options.h"
#include "opensock/ring.h"

#include <corq/hist.h>
#include <corq/socket.h>

#define OPENSOCK_BATCH 64 /* pairs that are timed together */

/* The steps, in the order of a run. FILL to EMPTY are of run->side. */
enum opensock_step {
	OPENSOCK_TOUCH, /* take what the thread itself needs, and touch it */
	OPENSOCK_FILL,  /* attach (corq); open its share */
	OPENSOCK_TURN,  /* open and close, until the turn is over */
	OPENSOCK_DRAIN, /* close what is on its way here */
	OPENSOCK_EMPTY, /* close its share */
	OPENSOCK_LEAVE, /* detach */
};

/* A thread's sockets of one side, and their counts. */
struct opensock_lot {
	uint64_t *held; /* its share, open */
	uint64_t n, next;
	struct opensock_ring in, *out; /* out is the next thread's in */
	uint64_t opened, closed;       /* in all */
	uint64_t pairs;                /* closed within turns */
	uint64_t crossed;              /* of those, opened by another thread */
	uint64_t not_opened, not_closed;
	int error;               /* errno of the first of those */
	struct corq_hist cycles; /* of batches */
};

struct opensock_worker {
	OPENSOCK_LINE struct opensock_run *run;
	struct corq_att *att;
	uint64_t rand;
	uint32_t index;
	uint32_t cross; /* percent that are owed to the other thread */
	int error;      /* errno that keeps it from working at all */
	struct opensock_lot lot[OPENSOCK_SIDES];
};

struct opensock_run {
	const struct opensock_options *opts;
	struct corq_instance *inst;
	uint64_t count[OPENSOCK_SIDES]; /* that are to be open before the loop */
	struct opensock_worker *worker; /* opts->threads */
	enum opensock_side side;        /* of this step */
	/* The first who sees the turn's time over, a thread as a rule, ends it for all: the main
	 * thread may get no CPU for long. */
	OPENSOCK_LINE _Atomic uint32_t going;
	uint64_t deadline; /* in cycles */
	double ended;      /* by the clock; after the turn */
	OPENSOCK_LINE struct opensock_crew crew;
};

/* The crew's work; arg is the run. */
void opensock_work(void *arg, uint32_t index, int step);
/* Before the first step and after the last. False: no memory. */
bool opensock_workers_make(struct opensock_run *run);
void opensock_workers_free(struct opensock_run *run);

/* The turn is over, if it was not. Any thread. */
void opensock_end_turn(struct opensock_run *run);

/* The time stamp counter; nanoseconds where there is none. */
uint64_t opensock_cycles(void);
double opensock_now(void); /* seconds of CLOCK_MONOTONIC */

#endif
