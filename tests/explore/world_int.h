/* SPDX-License-Identifier: BSD-3-Clause */
/* world_int.h - what world.c and world_end.c share. */
#ifndef EXPLORE_WORLD_INT_H
#define EXPLORE_WORLD_INT_H

#include "world.h"

struct w_handle {
	_Atomic uint64_t box; /* where the opener puts it for others */
	corq_h h;             /* what the opener got */
	uint32_t opener;
	uint16_t begun; /* closes that were begun */
	uint16_t wins;  /* closes that were told 0 */
	uint32_t life;  /* which of its opener's lanes it was opened in, from 0 */
	uint32_t unused;
};

/* All of it is state, up to h; of h, which is constant, lane_at. */
struct world {
	struct w_handle handle[W_HANDLES];
	struct corq_lane lane[M_THREADS];
	_Atomic uint32_t flag[W_FLAGS];
	uint8_t life[M_THREADS]; /* the thread's present, or last, lane: 0, or 1 after ATTACH */
	uint8_t gone[M_THREADS]; /* how many of its lanes ended */
	uint8_t died;            /* some thread was reported as dead */
	uint8_t unused;
	struct corq_handles h;
};

extern struct world w;

uint32_t world_threads(void);
bool world_somebody_died(void);
bool world_somebody_ended(void); /* detached, or died */
bool world_exists(const struct w_handle *x);
/* The lane that x was opened in ended, or is ending: the reclaimer or detach may close it. */
bool world_is_orphan(const struct w_handle *x);
bool world_lane_gone(uint32_t t);
/* Handle i is about to be h: checks that this can be. */
void world_was_given(uint32_t i, corq_h h);
/* When no lane is left: one for the checks, of a thread that did not die. */
bool world_attach_spare(void);

#endif
