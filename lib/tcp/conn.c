/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.c - the life of a connection: made, marked, ended, reaped.
 *
 * A connection ends in two steps. corq_conn_end takes its tuple, timers and send queue away and
 * marks EV_CLOSE; after the program's on_close returned, corq_tcp_reap frees handle and memory,
 * which is used again from the next turn on. One that still stands in a sender queue is a zombie
 * until the queue lets go of it. A held one (sock.c) stays between the two until the program closes
 * it. One thread, the core's.
 */
#include "tcp/internal.h"
#include "tcp/rcvq.h"
#include "tcp/reasm.h"

#include <errno.h>

#define SLOT_MASK ((1u << CORQ_H_SLOT_BITS) - 1)
_Static_assert(CORQ_H_SLOT_BITS == 26, "the width of corq_conn.slot");

static void
conn_reset_fields(struct corq_conn *c, const struct corq_key *key, uint32_t laddr_idx)
{
	memset(c, 0, sizeof(*c));
	c->raddr = key->raddr;
	c->laddr = key->laddr;
	c->rport = key->rport;
	c->lport = key->lport;
	c->laddr_idx = (uint16_t)laddr_idx;
	c->work = c->splice = CORQ_NONE;
	c->sndq_head = c->sndq_tail = c->rcvq_head = c->rcvq_tail = CORQ_NONE;
	c->send_next = c->ev_next = CORQ_NONE;
	c->neigh = CORQ_NEIGH_NONE;
	corq_wheel_node_init(&c->timer);
}

uint32_t
corq_conn_new(struct corq_engine *e, const struct corq_key *key, uint64_t hash, uint32_t laddr_idx,
	int *err)
{
	uint32_t idx = corq_pool_alloc(&e->conns);
	corq_h h;

	*err = ENOBUFS;
	if (idx == CORQ_NONE)
		return CORQ_NONE;
	conn_reset_fields(corq_conn_at(e, idx), key, laddr_idx);
	h = corq_lane_alloc(e->lane, idx);
	if (h == CORQ_H_NONE) {
		*err = EMFILE;
		goto undo_conn;
	}
	corq_conn_at(e, idx)->slot = corq_h_slot(h) & SLOT_MASK;
	if (corq_table_insert(&e->table, hash, idx) < 0)
		goto undo_handle;
	e->changes++;
	e->stats.conn_live++;
	return idx;
undo_handle:
	corq_lane_close(e->lane, h);
undo_conn:
	corq_pool_free(&e->conns, idx);
	return CORQ_NONE;
}

struct corq_work *
corq_conn_want_work(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w;

	if (CORQ_LIKELY(c->work != CORQ_NONE))
		return corq_pool_at(&e->works, c->work);
	c->work = corq_pool_alloc(&e->works);
	if (CORQ_UNLIKELY(c->work == CORQ_NONE)) {
		corq_count(e, CORQ_R_TCP_NO_WORK);
		return NULL;
	}
	w = corq_pool_at(&e->works, c->work);
	memset(w, 0, sizeof(*w));
	w->conn = corq_conn_idx(e, c);
	corq_dlink_init(&w->dack);
	w->tx_head = w->tx_tail = w->cur_chunk = CORQ_NONE;
	corq_reasm_init(w);
	w->recover = w->snd_sml = c->snd_una;
	return w;
}

void
corq_conn_drop_work(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w = corq_conn_work(e, c);

	if (!w || w->tx_head != CORQ_NONE || w->ooo_head != CORQ_NONE || w->dack_armed ||
		w->cork_armed || w->fin_ooo || w->rtx_kind != CORQ_RTX_NONE ||
		(c->flags & CORQ_CF_FLUSH))
		return;
	corq_pool_free(&e->works, c->work);
	c->work = CORQ_NONE;
}

void
corq_conn_detach(struct corq_engine *e, struct corq_conn *c)
{
	if (c->flags & CORQ_CF_DETACHED)
		return;
	c->flags |= CORQ_CF_DETACHED;
	corq_table_remove(&e->table, corq_conn_hash(e, c), corq_conn_idx(e, c));
	e->changes++;
	if (!(c->flags & CORQ_CF_PASSIVE))
		corq_isn_leave_off(&e->isn, c->ts_off, c->snd_nxt, e->now_ns);
	if (c->flags & CORQ_CF_PORT_HELD) {
		c->flags &= ~CORQ_CF_PORT_HELD;
		corq_ports_give(&e->ports, &c->raddr, c->rport, c->laddr_idx, false);
	}
}

/* What a chunk's end asks for: its frame back to the port, or a release callback in step 9. */
static void
chunk_ended(struct corq_engine *e, uint32_t idx, enum corq_chunk_end end, struct corq_frame *f)
{
	switch (end) {
	case CORQ_CHUNK_FREED:
		if (f)
			corq_engine_free_frame(e, f);
		break;
	case CORQ_CHUNK_RELEASE:
		corq_chunk_at(&e->chunks, idx)->next = e->release_head;
		e->release_head = idx;
		break;
	case CORQ_CHUNK_BUSY:
		break;
	}
}

void
corq_engine_drop_chunk(struct corq_engine *e, uint32_t idx)
{
	struct corq_frame *f;
	enum corq_chunk_end end = corq_chunk_free(&e->chunks, idx, &f);

	chunk_ended(e, idx, end, f);
}

void
corq_tcp_frame_released(struct corq_engine *e, void *ext)
{
	uint32_t idx = ((struct corq_chunk *)ext)->self;
	struct corq_frame *f;
	enum corq_chunk_end end = corq_chunk_unref(&e->chunks, idx, &f);

	chunk_ended(e, idx, end, f);
}

void
corq_conn_purge_send(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w = corq_conn_work(e, c);

	while (c->sndq_head != CORQ_NONE) {
		uint32_t idx = c->sndq_head;

		c->sndq_head = corq_chunk_at(&e->chunks, idx)->next;
		corq_engine_drop_chunk(e, idx);
	}
	c->sndq_tail = CORQ_NONE;
	c->sndq_off = 0;
	if (w) {
		corq_txrec_purge(e, w);
		w->cur_chunk = CORQ_NONE;
		w->rtx_kind = CORQ_RTX_NONE;
		w->cork_armed = 0;
	}
	c->flags &= ~(uint32_t)(CORQ_CF_RTX | CORQ_CF_PROBE | CORQ_CF_SYN | CORQ_CF_FLUSH);
}

void
corq_conn_end(struct corq_engine *e, struct corq_conn *c, int err)
{
	struct corq_work *w = corq_conn_work(e, c);

	if (c->ev & CORQ_EV_CLOSE)
		return;
	if (c->held && c->err) /* it had ended, and the program closes without having asked why */
		c->failed = 1;
	corq_conn_detach(e, c);
	corq_splice_end(e, c);
	c->state = CORQ_CLOSED;
	c->err = (uint8_t)err;
	corq_wheel_disarm(&e->wheel, corq_conn_idx(e, c));
	c->user_at = 0;
	corq_conn_purge_send(e, c);
	if (w) {
		corq_reasm_drop(e, w);
		w->fin_ooo = 0;
		corq_timer_dack_off(e, w);
		corq_pool_free(&e->works, c->work);
		c->work = CORQ_NONE;
	}
	c->acks_owed = 0;
	c->flags &= ~(uint32_t)(CORQ_CF_ACK_NOW | CORQ_CF_ACK_DELAY | CORQ_CF_WND_UPDATE);
	if (c->held && !(c->flags & CORQ_CF_ORPHAN)) {
		corq_conn_event(e, c, CORQ_EV_END); /* on_close waits for the program's close */
		return;
	}
	/* What else was marked for an orphan has no reader any more. */
	if (c->flags & CORQ_CF_ORPHAN)
		c->ev = 0;
	corq_conn_event(e, c, CORQ_EV_CLOSE);
}

static void
close_handle(struct corq_engine *e, const struct corq_conn *c)
{
	struct corq_slot *slot = &e->handles->slot[c->slot];
	uint64_t gen = corq_load_relaxed_u64(&slot->word) >> CORQ_H_SLOT_BITS;

	corq_lane_close_deferred(e->lane, gen << CORQ_H_SLOT_BITS | c->slot);
}

void
corq_tcp_told(struct corq_engine *e, struct corq_conn *c)
{
	c->told = 1;
	close_handle(e, c);
}

void
corq_tcp_reap(struct corq_engine *e, struct corq_conn *c)
{
	uint32_t idx = corq_conn_idx(e, c);

	CORQ_ASSERT(c->state == CORQ_CLOSED && (c->flags & CORQ_CF_DETACHED));
	corq_rcvq_purge(e, c);
	if (!c->told)
		close_handle(e, c);
	e->stats.conn_live--;
	if (c->err || c->failed)
		e->stats.conn_failed++;
	else
		e->stats.conn_closed++;
	if (c->flags & (CORQ_CF_IN_SEND | CORQ_CF_IN_URGENT)) {
		c->flags |= CORQ_CF_ZOMBIE;
		return;
	}
	corq_pool_free_deferred(&e->conns, idx);
}

void
corq_fifo_push(struct corq_fifo *f, uint32_t idx, uint32_t *tail_next)
{
	if (f->tail == CORQ_NONE)
		f->head = idx;
	else
		*tail_next = idx;
	f->tail = idx;
	f->n++;
}

void
corq_conn_event(struct corq_engine *e, struct corq_conn *c, uint16_t ev)
{
	uint32_t idx = corq_conn_idx(e, c);

	c->ev |= ev;
	if (c->flags & CORQ_CF_IN_EVENTS)
		return;
	c->flags |= CORQ_CF_IN_EVENTS;
	c->ev_next = CORQ_NONE;
	corq_fifo_push(&e->events, idx,
		e->events.tail == CORQ_NONE ? NULL : &corq_conn_at(e, e->events.tail)->ev_next);
}

uint32_t
corq_tcp_next_event(struct corq_engine *e, uint16_t *ev)
{
	uint32_t idx = e->events.head;
	struct corq_conn *c;

	if (idx == CORQ_NONE)
		return CORQ_NONE;
	c = corq_conn_at(e, idx);
	e->events.head = c->ev_next;
	if (e->events.head == CORQ_NONE)
		e->events.tail = CORQ_NONE;
	e->events.n--;
	c->flags &= ~(uint32_t)CORQ_CF_IN_EVENTS;
	*ev = c->ev;
	/* CLOSE stays: an ended connection ends once. TIMER stays until it is told: a callback
	 * before it may set the deadline anew. */
	c->ev &= CORQ_EV_CLOSE | CORQ_EV_TIMER;
	return idx;
}

static void
mark(struct corq_engine *e, struct corq_conn *c, struct corq_fifo *f, uint32_t flag)
{
	if (c->flags & (CORQ_CF_IN_SEND | CORQ_CF_IN_URGENT))
		return;
	c->flags |= flag;
	c->send_next = CORQ_NONE;
	corq_fifo_push(f, corq_conn_idx(e, c),
		f->tail == CORQ_NONE ? NULL : &corq_conn_at(e, f->tail)->send_next);
}

void
corq_conn_mark_send(struct corq_engine *e, struct corq_conn *c)
{
	mark(e, c, &e->send, CORQ_CF_IN_SEND);
}

void
corq_conn_mark_urgent(struct corq_engine *e, struct corq_conn *c)
{
	mark(e, c, &e->urgent, CORQ_CF_IN_URGENT);
}

void
corq_conn_park(struct corq_engine *e, struct corq_conn *c)
{
	mark(e, c, &e->parked, CORQ_CF_IN_URGENT);
}

/* All that wait for a next hop go to `urgent`: those whose hop is still unknown come back. */
void
corq_tcp_unpark(struct corq_engine *e)
{
	struct corq_fifo *p = &e->parked, *u = &e->urgent;

	if (p->head == CORQ_NONE)
		return;
	if (u->tail == CORQ_NONE)
		u->head = p->head;
	else
		corq_conn_at(e, u->tail)->send_next = p->head;
	u->tail = p->tail;
	u->n += p->n;
	*p = (struct corq_fifo){CORQ_NONE, CORQ_NONE, 0};
}

/* Takes the first; zombies met on the way are freed. */
uint32_t
corq_fifo_pop_send(struct corq_engine *e, struct corq_fifo *f)
{
	while (f->head != CORQ_NONE) {
		uint32_t idx = f->head;
		struct corq_conn *c = corq_conn_at(e, idx);

		f->head = c->send_next;
		if (f->head == CORQ_NONE)
			f->tail = CORQ_NONE;
		f->n--;
		c->flags &= ~(uint32_t)(CORQ_CF_IN_SEND | CORQ_CF_IN_URGENT);
		if (!(c->flags & CORQ_CF_ZOMBIE))
			return idx;
		corq_pool_free_deferred(&e->conns, idx);
	}
	return CORQ_NONE;
}

void
corq_conn_reset(struct corq_engine *e, struct corq_conn *c, int err)
{
	corq_reply_conn(e, c, CORQ_TH_RST | CORQ_TH_ACK, c->snd_nxt);
	corq_conn_end(e, c, err);
}

void
corq_conn_established(struct corq_engine *e, struct corq_conn *c)
{
	uint32_t mss = c->mss;

	c->state = CORQ_ESTABLISHED;
	c->backoff = 0;
	/* RFC 6928 2; after a lost SYN one segment (RFC 5681 3.1). */
	c->cwnd = CORQ_MIN(10 * mss, CORQ_MAX(2 * mss, 14600));
	if (c->flags & CORQ_CF_SYN_RTX)
		c->cwnd = mss;
	c->ssthresh = UINT32_MAX;
	c->rcv_mss = CORQ_MIN(536, c->mss);
	c->flags |= CORQ_CF_OPENED;
	e->stats.conn_established++;
	corq_conn_event(e, c, CORQ_EV_OPEN);
	if (c->flags & CORQ_CF_FIN_QUEUED) { /* closed in SYN_RCVD (simultaneous open) */
		c->state = CORQ_FIN_WAIT_1;
		corq_conn_mark_send(e, c);
	}
}
