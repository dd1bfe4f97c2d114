/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c - step 6: what happened is told to the program, all input done, nothing sent yet.
 *
 * A connection stands in the event list once; its bits are told in a fixed order, and a callback
 * that ends or closes the connection ends the telling. on_close is the last; the memory goes right
 * after it. Callbacks may mark further events (of other connections too): those are told in the
 * same step as far as the budget goes. The core's thread only.
 */
#include "core/core.h"

#include <errno.h>

static const struct corq_ops no_ops;

static const struct corq_ops *
ops_of(const struct corq_engine *e, const struct corq_conn *c)
{
	return c->ops == 0 ? &no_ops : e->ops[c->ops];
}

/* One of c's table runs: its on_batch_end is due. */
static void
mark_run(struct corq_engine *e, const struct corq_conn *c)
{
	e->ops_ran |= 1ull << c->ops;
}

/* Closed or ended by a callback: nothing more but on_close, which has its own event. */
static bool
silent(const struct corq_conn *c)
{
	return (c->flags & CORQ_CF_ORPHAN) || (c->ev & CORQ_EV_CLOSE);
}

static void
tell_received(struct corq_core *core, struct corq_conn *c, uint16_t ev)
{
	struct corq_engine *e = &core->eng;
	const struct corq_ops *ops;

	if (corq_tcp_spliced(e, c)) {
		corq_splice_pull(e, c);
		return;
	}
	ops = ops_of(e, c);
	if ((ev & CORQ_EV_DATA) && ops->on_data && c->rcvq_bytes) {
		mark_run(&core->eng, c);
		ops->on_data(core, c);
	}
	if ((ev & CORQ_EV_PEER_FIN) && !silent(c)) {
		ops = ops_of(e, c);
		if (ops->on_peer_fin) {
			mark_run(&core->eng, c);
			ops->on_peer_fin(core, c);
		}
	}
}

static void
tell_sent(struct corq_core *core, struct corq_conn *c)
{
	const struct corq_ops *ops = ops_of(&core->eng, c);

	c->flags &= ~(uint32_t)CORQ_CF_WANT_ROOM;
	if (ops->on_sent) {
		mark_run(&core->eng, c);
		ops->on_sent(core, c);
	}
}

static void
tell_close(struct corq_core *core, struct corq_conn *c)
{
	const struct corq_ops *ops = ops_of(&core->eng, c);

	if (core->idle.asked == c)
		core->idle.asked = NULL;
	if (ops->on_close && !c->told) {
		mark_run(&core->eng, c);
		ops->on_close(core, c, -(int)c->err);
	}
	corq_tcp_reap(&core->eng, c);
}

/* The linger time of a closed connection is over before its end: the program hears of it now, what
 * is queued goes on leaving. */
static void
tell_lingered(struct corq_core *core, struct corq_conn *c)
{
	const struct corq_ops *ops = ops_of(&core->eng, c);

	if (ops->on_close) {
		mark_run(&core->eng, c);
		ops->on_close(core, c, -EINPROGRESS);
	}
	corq_tcp_told(&core->eng, c);
}

/* Not when a callback of this step has set another deadline, or none. */
static void
tell_timer(struct corq_core *core, struct corq_conn *c)
{
	const struct corq_ops *ops;
	bool wanted = c->ev & CORQ_EV_TIMER;

	c->ev &= (uint16_t)~CORQ_EV_TIMER;
	if (wanted && (c->flags & CORQ_CF_ORPHAN) && !(c->ev & CORQ_EV_CLOSE) && !c->told)
		tell_lingered(core, c);
	if (!wanted || silent(c))
		return;
	ops = ops_of(&core->eng, c);
	if (ops->on_timer) {
		mark_run(&core->eng, c);
		ops->on_timer(core, c);
	}
}

static void
tell_end(struct corq_core *core, struct corq_conn *c)
{
	const struct corq_ops *ops = ops_of(&core->eng, c);

	if (core->idle.asked == c)
		core->idle.asked = NULL;
	if (ops->on_end) {
		mark_run(&core->eng, c);
		ops->on_end(core, c, -(int)c->err);
	}
}

static void
tell(struct corq_core *core, struct corq_conn *c, uint16_t ev)
{
	const struct corq_ops *ops;

	if (core->idle.asked == c && (ev & (CORQ_EV_DATA | CORQ_EV_PEER_FIN)))
		corq_idle_answered(core);
	if ((ev & CORQ_EV_OPEN) && !(c->flags & CORQ_CF_ORPHAN)) {
		ops = ops_of(&core->eng, c);
		if (ops->on_open) {
			mark_run(&core->eng, c);
			ops->on_open(core, c);
		}
	}
	if ((ev & (CORQ_EV_DATA | CORQ_EV_PEER_FIN)) && !(c->flags & CORQ_CF_ORPHAN))
		tell_received(core, c, ev);
	if ((ev & CORQ_EV_SENT) && !silent(c))
		tell_sent(core, c);
	if (ev & CORQ_EV_TIMER)
		tell_timer(core, c);
	if ((ev & CORQ_EV_END) && !silent(c))
		tell_end(core, c);
	if (ev & CORQ_EV_CLOSE)
		tell_close(core, c);
}

/* Listeners whose queues stopped being empty. */
static void
tell_acceptable(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;

	while (e->acceptable) {
		unsigned i = (unsigned)__builtin_ctzll(e->acceptable);
		struct corq_listener *l = &e->listeners[i];

		e->acceptable &= e->acceptable - 1;
		if (l->used && l->opts.on_acceptable)
			l->opts.on_acceptable(core, l);
	}
}

static void
tell_batch_ends(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;

	while (e->ops_ran) {
		unsigned i = (unsigned)__builtin_ctzll(e->ops_ran);

		e->ops_ran &= e->ops_ran - 1;
		if (e->ops[i]->on_batch_end)
			e->ops[i]->on_batch_end(core);
	}
}

unsigned
corq_core_events(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;
	unsigned n = 0;

	if (CORQ_UNLIKELY(e->acceptable))
		tell_acceptable(core);
	while (n < CORQ_EVENT_BUDGET) {
		uint16_t ev;
		uint32_t idx = corq_tcp_next_event(e, &ev);

		if (idx == CORQ_NONE)
			break;
		tell(core, corq_conn_at(e, idx), ev);
		n++;
	}
	tell_batch_ends(core);
	if (core->hook)
		core->hook_at = core->hook(core, core->hook_arg, e->now_ns);
	return n;
}
