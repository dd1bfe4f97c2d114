/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_engine.h - walks one core's TCP engine between two turns and says what does not add up.
 *
 * Simulation, scenarios and fuzzing call it after each turn, on the thread that runs the core. It
 * reads the engine's own structures and changes nothing. What is checked:
 *   connections  sequence numbers in order, queue bytes equal to their lists, transmission records
 *                contiguous from snd_una to snd_nxt, out-of-order pieces sorted and disjoint, flags
 *                that fit the state, something that will move whatever is not at rest (a timer or a
 *                place in a sender queue), nothing held while idle
 *   lists        sender queues, events, delayed ACKs, record classes: links, counts, order
 *   names        table entry, handle and object agree, in both directions
 *   pools        every object out is reachable exactly once, every free one is on the free list
 * Allocates its marks once, in corq_check_init.
 */
#ifndef CORQ_TESTS_CHECK_ENGINE_H
#define CORQ_TESTS_CHECK_ENGINE_H

#include "tcp/engine.h"

/* One mark word an object: the epoch of the check that saw it, and what it was. */
struct corq_check_marks {
	uint32_t *at;
	uint32_t n_used;
	bool free_walked;
};

struct corq_check {
	char msg[512]; /* what is wrong, after a check that failed */
	uint32_t epoch;
	uint32_t n_attached, n_port_held, n_held, n_splice, n_handles;
	uint32_t n_send, n_urgent, n_events, n_dack;
	uint32_t n_ref_unlinked; /* chunks that only frames still refer to */
	uint32_t n_active_tw;
	uint32_t half_open[CORQ_MAX_LISTENERS];
	struct corq_check_marks conns, records, works, txrecs, splices;
	struct corq_check_marks chunks[CORQ_CHUNK_CLASS_COUNT];
};

enum corq_check_depth {
	CORQ_CHECK_QUICK, /* all that hangs on live objects */
	CORQ_CHECK_FULL,  /* also every free list and the whole table */
};

/* Makes room for the marks of engines of this size. False: no memory. */
bool corq_check_init(struct corq_check *ck, const struct corq_engine *e);
void corq_check_end(struct corq_check *ck);
/* 0, or -1 and ck->msg. Between two turns only. */
int corq_check_engine(struct corq_check *ck, struct corq_engine *e, enum corq_check_depth depth);
/* Nothing is alive: no connection, record, chunk, block, handle or port is out. 0, or -1 and msg.
 */
int corq_check_empty(struct corq_check *ck, struct corq_engine *e);

/* ---- shared by check_engine.c and check_conn.c ---- */

/* Formats msg; returns -1. */
int corq_check_fail(struct corq_check *ck, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Counts object idx of pool p as in use; -1 if it is out of range, free, or was seen before. */
int corq_check_use(struct corq_check *ck, struct corq_check_marks *m, const struct corq_pool *p,
	uint32_t idx, const char *what);
bool corq_check_is_free(
	const struct corq_check *ck, const struct corq_check_marks *m, uint32_t idx);
int corq_check_conn(struct corq_check *ck, struct corq_engine *e, uint32_t idx);

#define CORQ_CHECK(ck, cond, ...)                                                                  \
	do {                                                                                       \
		if (CORQ_UNLIKELY(!(cond)))                                                        \
			return corq_check_fail(ck, __VA_ARGS__);                                   \
	} while (0)

#endif
