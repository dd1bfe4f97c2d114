/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.c - how long a core waits after a turn in which nothing happened.
 *
 * Nothing wakes a sleeping core when a packet comes, so a wait makes that packet late, and must be
 * short compared with what the packet took anyway. It is the longer of
 *
 *  - an eighth of the time that the core has been idle already: what comes then is late by an
 *    eighth of the gap before it at most, and a core that is idle for long costs little;
 *  - a sixteenth of the time that peers take to answer. A busy server's answers come one every few
 *    microseconds, so the first measure never lets its client sleep; but each of them was a
 *    millisecond on its way. The server does not notice when a sixteenth of its clients ask a
 *    little later, and one wake-up and one tx_burst then serve several. That pays where each
 *    tx_burst is a system call. (On loop, where a turn costs a microsecond, the rate halved.) Where
 *    the time is too short to sleep the core polls on: nothing would be saved.
 *
 * An answer is measured on one connection at a time: from a write of the program to the next bytes,
 * or FIN, that the program is told of. Without answers (a stream, or nothing to do) the estimate
 * soon counts no more.
 *
 * Never more than 0.1 ms, or 0.5 ms after 100 ms without anything. Never beyond the next timer,
 * hook or retry of a neighbour, and not at all with anything left to tell, build or send. The port
 * may wait for less. The core's thread only.
 */
#include "core/idle.h"

#include "base/cycles.h"
#include "core/core.h"

#define IDLE_PART     8
#define WAIT_MIN_NS   500        /* less than this is a pause, not a wait */
#define WAIT_MAX_NS   100000u    /* 0.1 ms, */
#define LONG_NS       100000000u /* but who was idle for 100 ms, */
#define LONG_MAX_NS   500000u    /* 0.5 ms: 2 % of a CPU instead of 10 */
#define ANSWER_PART   16
#define ANSWER_MIN_NS 400000u     /* peers that are quicker are polled for */
#define ANSWER_GAIN   8           /* a measurement counts for an eighth in the estimate */
#define ANSWER_AGE_NS 100000000u  /* which counts for 100 ms; */
#define ASKED_MAX_NS  1000000000u /* a peer that is silent for 1 s is waited for no more */

void
corq_idle_asked(struct corq_core *core, const struct corq_conn *conn)
{
	struct corq_idle *i = &core->idle;

	if (i->asked != NULL && core->eng.now_ns - i->asked_at < ASKED_MAX_NS)
		return;
	i->asked = conn;
	i->asked_at = core->eng.now_ns;
}

void
corq_idle_answered(struct corq_core *core)
{
	struct corq_idle *i = &core->idle;
	uint64_t ns = core->eng.now_ns - i->asked_at;

	if (i->answer_ns == 0 || core->eng.now_ns - i->answered_at >= ANSWER_AGE_NS)
		i->answer_ns = ns;
	else
		i->answer_ns += ns / ANSWER_GAIN - i->answer_ns / ANSWER_GAIN;
	i->answered_at = core->eng.now_ns;
	i->asked = NULL;
}

/* How long nothing can happen but a packet. */
static uint64_t
until_due(struct corq_core *core)
{
	uint64_t now = core->eng.now_ns, t;
	uint64_t ns = now - core->idle.since >= LONG_NS ? LONG_MAX_NS : WAIT_MAX_NS;
	uint32_t ticks = corq_tcp_next_deadline(&core->eng);

	if (ticks != CORQ_NONE)
		ns = CORQ_MIN(ns, (uint64_t)ticks << CORQ_TICK_SHIFT);
	t = corq_neigh_next(&core->neigh);
	if (t != CORQ_NEIGH_NEVER)
		ns = CORQ_MIN(ns, t > now ? t - now : 0);
	if (core->hook_at)
		ns = CORQ_MIN(ns, core->hook_at > now ? core->hook_at - now : 0);
	return ns;
}

uint64_t
corq_idle_wait(struct corq_core *core)
{
	const struct corq_idle *i = &core->idle;
	uint64_t now = core->eng.now_ns, ns = now - i->since;

	if (core->n_tx || core->eng.events.n || corq_tcp_wants_build(&core->eng))
		return 0;
	ns /= IDLE_PART;
	if (core->port->syscalls && i->answer_ns >= ANSWER_MIN_NS &&
		now - i->answered_at < ANSWER_AGE_NS)
		ns = CORQ_MAX(ns, i->answer_ns / ANSWER_PART);
	return CORQ_MIN(ns, until_due(core));
}

void
corq_idle_turn(struct corq_core *core)
{
	uint64_t ns;

	if (core->idle_turns++ == 0)
		core->idle.since = core->eng.now_ns;
	ns = core->cfg.idle_sleep && core->port->ops->idle ? corq_idle_wait(core) : 0;
	if (ns < WAIT_MIN_NS)
		corq_pause();
	else
		core->port->ops->idle(core->port, ns);
}
