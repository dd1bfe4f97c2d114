/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ep.h - what ep.c (being told) and plan.c (doing) of a simulated end say to each other.
 */
#ifndef CORQ_SIM_EP_H
#define CORQ_SIM_EP_H

#include "sim.h"

/* The end of `conn`, when its on_close came. */
void ep_ended(struct sim_side *s, struct sim_ep *ep, struct corq_conn *conn, int reason);
void ep_batch_end(struct corq_core *core);
struct sim_ep *ep_new(struct sim_side *s, struct corq_conn *conn, bool active);
void ep_find_peer(struct sim_side *s, struct sim_ep *ep);

/* Reads, writes and ends as the plan says and the moment allows, then sets the deadline. */
void ep_go(struct sim_side *s, struct sim_ep *ep);
/* Reads, checks and consumes up to max bytes. */
void ep_take(struct sim_side *s, struct sim_ep *ep, uint32_t max);
/* Its time is up. True: not yet. Bytes wait to be sent, by it or to it, and are watched for a
 * while: if they have not moved when it asks again, that is a failure. */
bool ep_watch(struct sim_side *s, struct sim_ep *ep);
void ep_write_failed(struct sim_side *s, struct sim_ep *ep, ssize_t rc);
void ep_close(struct sim_side *s, struct sim_ep *ep, bool abort);

/* Around every callback: none may run inside another call. */
static inline struct sim_side *
ep_enter(struct corq_core *core)
{
	struct sim_side *s = sim_side_of(core);

	if (s->in_cb)
		sim_fail(s->w, "a callback inside a callback");
	if (s->batch_ended)
		sim_fail(s->w, "a callback after on_batch_end");
	s->in_cb = s->cb_ran = true;
	return s;
}

static inline void
ep_leave(struct sim_side *s)
{
	s->in_cb = false;
}

#endif
