/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.h - see idle.c.
 */
#ifndef CORQ_CORE_IDLE_H
#define CORQ_CORE_IDLE_H

#include <stdint.h>

struct corq_core;
struct corq_conn;

struct corq_idle {
	uint64_t since; /* the first idle turn in a row */
	/* Whose answer is measured; NULL: nobody's. Never followed. */
	const struct corq_conn *asked;
	uint64_t asked_at;
	uint64_t answer_ns; /* the estimate; 0: none yet */
	uint64_t answered_at;
};

/* After a turn in which nothing happened: pauses, or waits. */
void corq_idle_turn(struct corq_core *core);
/* How long that may be; 0: not at all. */
uint64_t corq_idle_wait(struct corq_core *core);
/* The program wrote to conn. */
void corq_idle_asked(struct corq_core *core, const struct corq_conn *conn);
/* core->idle.asked has something for the program. */
void corq_idle_answered(struct corq_core *core);

#endif
