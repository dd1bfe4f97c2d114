/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.h - walks all interleavings of a scenario, depth first. A state that was met before is not
 * walked again: what can follow it is known. So the number of interleavings is a sum over paths,
 * and far above the number of states.
 */
#ifndef EXPLORE_SEARCH_H
#define EXPLORE_SEARCH_H

#include "world.h"

struct search_result {
	double interleavings;               /* complete executions */
	uint64_t states, transitions, ends; /* ends: different states in which all had ended */
	uint32_t depth, walks; /* walks: 1, and each time that a shared word was learnt */
	bool cut, violated;    /* cut: the bound of states was met */
};

void search_run(const struct scenario *sc, uint64_t max_states, struct search_result *out);

#endif
