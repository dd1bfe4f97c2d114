/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - what the threads of the machine work on: a region of handles, a lane a thread, and an
 * oracle that knows what was promised.
 *
 * Handles that a scenario names are numbered: those opened before it starts first (lane 0's, lane
 * 1's, ...), then those that its steps open. A thread that uses another's handle gets it from a box
 * in memory, as it would in a program; its step waits until the box is full, or the opener ended.
 *
 * The oracle follows each numbered handle: who has begun to close it, who won. world_check is for
 * each state, world_end for the end of each execution.
 */
#ifndef EXPLORE_WORLD_H
#define EXPLORE_WORLD_H

#include "machine.h"

#include "base/handle.h"

enum {
	W_SLOTS = 12, /* of a region, at most */
	W_HANDLES = 16,
	W_STEPS = 8,
	W_FLAGS = 4,
};

struct scenario {
	const char *name, *about;
	uint32_t n_slots, n_threads;
	uint32_t open[M_THREADS];  /* handles that lane i has opened when it starts */
	uint32_t limit[M_THREADS]; /* 0: none */
	uint32_t fast;             /* bits: lanes of order fast */
	uint32_t rest;             /* lanes that rest when it starts */
	uint32_t die;              /* threads that may die at any operation */
	bool last_generation;      /* of each slot */
	bool only_long;
	struct m_step step[M_THREADS][W_STEPS];
};

extern const struct scenario scenarios[];
extern const uint32_t n_scenarios;

/* ---- steps: what a thread does; their arguments are in m_step.a and b ---- */
#define OPEN(i)                                                                                    \
	{                                                                                          \
		world_open, NULL, i, 0                                                             \
	} /* handle i, or EMFILE */
#define MUST_OPEN(i)                                                                               \
	{                                                                                          \
		world_open, NULL, i, 1                                                             \
	} /* EMFILE is a violation */
#define CLOSE(i)                                                                                   \
	{                                                                                          \
		world_close, world_has, i, 0                                                       \
	} /* whoever opened it */
#define DEFER(i)                                                                                   \
	{                                                                                          \
		world_defer, NULL, i, 0                                                            \
	} /* corq_lane_close_deferred */
#define TURN_END                                                                                   \
	{                                                                                          \
		world_turn_end, NULL, 0, 0                                                         \
	}
#define LOOK_UP(i)                                                                                 \
	{                                                                                          \
		world_look_up, world_has, i, 0                                                     \
	}
#define POLL                                                                                       \
	{                                                                                          \
		world_poll, NULL, 0, 0                                                             \
	} /* a call that only folds */
#define REST                                                                                       \
	{                                                                                          \
		world_rest, NULL, 0, 0                                                             \
	}
#define DETACH                                                                                     \
	{                                                                                          \
		world_detach, NULL, 0, 0                                                           \
	}
#define ATTACH                                                                                     \
	{                                                                                          \
		world_attach, NULL, 0, 0                                                           \
	} /* once more, with another region */
#define BURY(t)                                                                                    \
	{                                                                                          \
		world_bury, world_is_over, t, 0                                                    \
	} /* when thread t ended: died, reclaim */
#define REPORT(t)                                                                                  \
	{                                                                                          \
		world_report, world_is_over, t, 0                                                  \
	} /* died; somebody else may reclaim */
#define AFTER(t)                                                                                   \
	{                                                                                          \
		world_nothing, world_is_over, t, 0                                                 \
	}

/* Flags in memory, by which the program itself orders its threads. */
#define RAISE(i)                                                                                   \
	{                                                                                          \
		world_raise, NULL, i, 0                                                            \
	}
#define AWAIT(i)                                                                                   \
	{                                                                                          \
		world_nothing, world_is_raised, i, 0                                               \
	}

void world_open(uint32_t t, const struct m_step *s);
void world_close(uint32_t t, const struct m_step *s);
void world_defer(uint32_t t, const struct m_step *s);
void world_turn_end(uint32_t t, const struct m_step *s);
void world_look_up(uint32_t t, const struct m_step *s);
void world_poll(uint32_t t, const struct m_step *s);
void world_rest(uint32_t t, const struct m_step *s);
void world_detach(uint32_t t, const struct m_step *s);
void world_attach(uint32_t t, const struct m_step *s);
void world_bury(uint32_t t, const struct m_step *s);
void world_report(uint32_t t, const struct m_step *s);
void world_raise(uint32_t t, const struct m_step *s);
void world_nothing(uint32_t t, const struct m_step *s);
bool world_has(uint32_t t, const struct m_step *s);
bool world_is_raised(uint32_t t, const struct m_step *s);
bool world_is_over(uint32_t t, const struct m_step *s);

/* ---- for the search ---- */

/* The state in which the scenario starts. */
void world_start(const struct scenario *sc);

/* Rules that hold in each state, and when all threads ended (this one changes the state). Both
 * call m_violate. */
void world_check(void);
void world_end(void);

/* What an address is, in words. */
const char *world_name(const volatile void *p);

#endif
