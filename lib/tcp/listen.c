/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen.c - listeners and their accept queues. The core's thread only.
 *
 * Without a queue a connection that completes is the program's at once (on_open). With one
 * (opts.queue: what a socket's listen means) it waits, ESTABLISHED, taking data, and nothing is
 * told of it until corq_tcp_accept hands it out. While it waits, it counts as standing in the event
 * list (CORQ_CF_IN_EVENTS) and ev_next links the queue: events gather in its bits and cost the
 * input path nothing. One that ends in the queue stays there and is handed out with its end.
 *
 *   n = backlog                      what happens
 *   n + 1 children wait              a SYN is dropped; a third ACK is dropped too, and its SYN-ACK
 *                                    comes again (abort_on_overflow: RST)
 *   drain                            SYNs are dropped (no RST: the peer asks again, and finds
 * whoever listens then); half-open ones complete, children stay close the port first; half-open
 * ones go silently, their ACKs get RST; waiting children are reset, at most 64 a turn
 */
#include "tcp/internal.h"

#include <errno.h>

#define BACKLOG_MAX 4096 /* net.core.somaxconn */

static const struct corq_fifo empty_fifo = {CORQ_NONE, CORQ_NONE, 0};

static bool
is_any(const struct corq_addr *a)
{
	return (a->q[0] | a->q[1]) == 0;
}

/* Bounded by CORQ_MAX_LISTENERS; an exact address wins over any. */
struct corq_listener *
corq_listener_find(struct corq_engine *e, const struct corq_key *key)
{
	struct corq_listener *any = NULL;

	for (unsigned i = 0; i < e->n_listeners; i++) {
		struct corq_listener *l = &e->listeners[i];

		if (!l->used || l->opts.port != key->lport)
			continue;
		if (l->any_addr)
			any = l;
		else if (corq_addr_eq(&l->opts.addr, &key->laddr))
			return l;
	}
	return any;
}

/* DEFER_ACCEPT in SYN-ACK waits: the first that end after so many seconds. */
static uint8_t
defer_waits(const struct corq_engine *e, unsigned seconds)
{
	uint64_t want = corq_us_to_ticks(seconds * UINT64_C(1000000)), sum = 0;
	uint8_t n = 0;

	for (; n < e->cfg.synack_retries && sum < want; n++)
		sum += e->rec_ticks[CORQ_MIN(CORQ_RC_SYNACK0 + n, CORQ_RC_SYNACK5)];
	return n;
}

static void
fill(struct corq_engine *e, struct corq_listener *l, const struct corq_listen_opts *o)
{
	uint32_t backlog = (uint32_t)CORQ_MIN(CORQ_MAX(o->backlog, 0), BACKLOG_MAX);

	*l = (struct corq_listener){.opts = *o,
		.max_half_open = o->backlog > 0 ? (uint32_t)o->backlog : e->cfg.max_half_open,
		.queue = empty_fifo,
		.max_queue = backlog + 1,
		.used = 1,
		.any_addr = is_any(&o->addr),
		.defer = defer_waits(e, o->defer_s),
		.ops = corq_ops_index(e, o->ops)};
	if (o->queue)
		l->max_half_open = CORQ_MIN(l->max_queue, e->cfg.max_half_open);
}

int
corq_tcp_listen(struct corq_engine *e, const struct corq_listen_opts *o, struct corq_listener **out)
{
	struct corq_listener *l = NULL;
	bool any = is_any(&o->addr);

	if (o->port == 0)
		return -EINVAL;
	if (!any && corq_engine_laddr(e, &o->addr) == CORQ_NONE)
		return -EADDRNOTAVAIL;
	for (unsigned i = 0; i < CORQ_MAX_LISTENERS; i++) {
		struct corq_listener *x = &e->listeners[i];

		if (!x->used)
			l = l ? l : x;
		else if (x->opts.port == o->port && x->any_addr == any &&
			 (any || corq_addr_eq(&x->opts.addr, &o->addr)))
			return -EADDRINUSE;
	}
	if (!l)
		return -ENOBUFS;
	fill(e, l, o);
	e->n_listeners = CORQ_MAX(e->n_listeners, (unsigned)(l - e->listeners) + 1);
	*out = l;
	return 0;
}

/* ---- the queue ---- */

bool
corq_listener_full(const struct corq_listener *l)
{
	return l->opts.queue && l->queue.n >= l->max_queue;
}

static void
push(struct corq_engine *e, struct corq_fifo *f, struct corq_conn *c)
{
	c->ev_next = CORQ_NONE;
	corq_fifo_push(f, corq_conn_idx(e, c),
		f->tail == CORQ_NONE ? NULL : &corq_conn_at(e, f->tail)->ev_next);
}

static struct corq_conn *
pop(struct corq_engine *e, struct corq_fifo *f)
{
	struct corq_conn *c;

	if (f->head == CORQ_NONE)
		return NULL;
	c = corq_conn_at(e, f->head);
	f->head = c->ev_next;
	if (f->head == CORQ_NONE)
		f->tail = CORQ_NONE;
	f->n--;
	return c;
}

void
corq_listener_enqueue(struct corq_engine *e, struct corq_listener *l, struct corq_conn *c)
{
	c->flags |= CORQ_CF_IN_EVENTS;
	if (l->queue.n == 0)
		e->acceptable |= 1ull << (l - e->listeners);
	push(e, &l->queue, c);
}

/* Its events gathered; they are told from now on. */
static void
leave_queue(struct corq_engine *e, struct corq_conn *c)
{
	c->flags &= ~(uint32_t)CORQ_CF_IN_EVENTS;
	corq_conn_event(e, c, 0);
}

int
corq_tcp_accept(struct corq_engine *e, struct corq_listener *l, struct corq_conn **out)
{
	struct corq_conn *c = pop(e, &l->queue);

	if (!c)
		return l->opts.queue ? -EAGAIN : -EOPNOTSUPP;
	leave_queue(e, c);
	*out = c;
	return 0;
}

/* ---- the end ---- */

void
corq_tcp_listener_drain(struct corq_listener *l)
{
	l->draining = 1;
}

static void
drop_half_open(struct corq_engine *e, uint8_t id)
{
	for (unsigned c = CORQ_RC_SYNACK0; c <= CORQ_RC_SYNACK5; c++) {
		uint32_t next, i = e->rec_list[c].head;

		for (; i != CORQ_NONE; i = next) {
			next = corq_dlist_next(&e->rec_space, i);
			if (corq_record_at(e, i)->listener == id)
				corq_record_free(e, i);
		}
	}
}

void
corq_tcp_unlisten(struct corq_engine *e, struct corq_listener *l)
{
	struct corq_conn *c;

	l->used = 0; /* the port first: nothing is accepted from here on */
	e->acceptable &= ~(1ull << (l - e->listeners));
	drop_half_open(e, (uint8_t)(l - e->listeners));
	while ((c = pop(e, &l->queue)))
		push(e, &e->doomed, c);
}

/* Nobody knows these connections: they end without on_close. */
uint32_t
corq_doomed_reset(struct corq_engine *e, uint32_t max)
{
	struct corq_conn *c;
	uint32_t n = 0;

	while (n < max && (c = pop(e, &e->doomed))) {
		bool ended = c->ev & CORQ_EV_CLOSE;

		c->flags |= CORQ_CF_ORPHAN;
		corq_tcp_told(e, c);
		leave_queue(e, c);
		if (!ended)
			corq_tcp_abort(e, c);
		n++;
	}
	return n;
}

void
corq_tcp_end_queues(struct corq_engine *e)
{
	for (unsigned i = 0; i < e->n_listeners; i++)
		if (e->listeners[i].used && e->listeners[i].opts.queue)
			corq_tcp_unlisten(e, &e->listeners[i]);
	corq_doomed_reset(e, UINT32_MAX);
}
