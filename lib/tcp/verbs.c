/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.c - what the program asks of a connection (connect.c opens it): the bodies of the on-core
 * API (contracts in <corq/core.h>). They change state and mark; step 7 sends.
 *
 *   state        write  shutdown            close (all read)         close (unread)  abort
 *   SYN_SENT     ENOTCONN ENOTCONN          gone, silently           -               gone
 *   SYN_RCVD     ENOTCONN FIN after the ACK as shutdown              -               RST
 *   ESTABLISHED  queue  FIN_WAIT_1          FIN_WAIT_1               RST             RST
 *   CLOSE_WAIT   queue  LAST_ACK            LAST_ACK                 RST             RST
 *   FIN_WAIT_1   EPIPE  0                   orphan                   RST             RST
 *   FIN_WAIT_2   EPIPE  0                   orphan: record, or RST   RST             RST
 *                                           if LINGER2 is below 0
 *   CLOSING,     EPIPE  0                   orphan                   orphan          RST
 *   LAST_ACK
 *   TIME_WAIT,   EPIPE  0 or ENOTCONN       gone                     gone            gone
 *   CLOSED
 * An orphan's on_close comes when the peer has acknowledged the FIN, or as close_linger says.
 */
#include "tcp/internal.h"
#include "tcp/rcvq.h"

#include <errno.h>

/* ---- write ---- */

int
corq_conn_writable(const struct corq_conn *c)
{
	if (c->flags & (CORQ_CF_ORPHAN | CORQ_CF_FIN_QUEUED))
		return -EPIPE;
	switch (c->state) {
	case CORQ_ESTABLISHED:
	case CORQ_CLOSE_WAIT:
		return 0;
	case CORQ_SYN_SENT:
	case CORQ_SYN_RCVD:
		return -ENOTCONN;
	default:
		return -EPIPE;
	}
}

uint32_t
corq_send_room(const struct corq_engine *e, const struct corq_conn *c)
{
	uint32_t queued = c->snd_end - c->snd_una;

	return queued < e->cfg.snd_buf ? e->cfg.snd_buf - queued : 0;
}

/* A reserve that was never committed left a chunk without bytes: nothing goes behind it. */
static void
drop_empty_tail(struct corq_engine *e, struct corq_conn *c)
{
	uint32_t empty = c->sndq_tail, prev = c->sndq_head;

	if (empty == CORQ_NONE || corq_chunk_at(&e->chunks, empty)->len)
		return;
	if (prev == empty) {
		c->sndq_head = c->sndq_tail = CORQ_NONE;
	} else {
		while (corq_chunk_at(&e->chunks, prev)->next != empty)
			prev = corq_chunk_at(&e->chunks, prev)->next;
		corq_chunk_at(&e->chunks, prev)->next = CORQ_NONE;
		c->sndq_tail = prev;
	}
	corq_engine_drop_chunk(e, empty);
}

void
corq_sndq_append(struct corq_engine *e, struct corq_conn *c, uint32_t idx)
{
	drop_empty_tail(e, c);
	corq_chunk_at(&e->chunks, idx)->next = CORQ_NONE;
	if (c->sndq_tail == CORQ_NONE) {
		c->sndq_head = idx;
		c->sndq_off = 0;
	} else {
		corq_chunk_at(&e->chunks, c->sndq_tail)->next = idx;
	}
	c->sndq_tail = idx;
}

/* Bytes joined the queue. */
static void
queued(struct corq_engine *e, struct corq_conn *c, uint32_t len, unsigned flags)
{
	c->snd_end += len;
	c->exchanged = 1;
	if (flags & CORQ_MORE)
		c->flags |= CORQ_CF_MORE;
	else
		c->flags &= ~(uint32_t)CORQ_CF_MORE;
	corq_conn_mark_send(e, c);
}

static uint32_t
tail_space(struct corq_engine *e, const struct corq_conn *c)
{
	const struct corq_chunk *t;

	if (c->sndq_tail == CORQ_NONE)
		return 0;
	t = corq_chunk_at(&e->chunks, c->sndq_tail);
	return t->refs ? 0 : corq_chunk_space(t); /* frames may refer to it while it grows: no */
}

ssize_t
corq_tcp_write(
	struct corq_engine *e, struct corq_conn *c, const void *data, size_t len, unsigned flags)
{
	uint32_t room = corq_send_room(e, c), want = (uint32_t)CORQ_MIN(len, room), done = 0;
	int err = corq_conn_writable(c);

	if (err)
		return err;
	while (done < want) {
		uint32_t space = tail_space(e, c), n;
		struct corq_chunk *ch;

		if (space == 0) {
			uint32_t idx = corq_chunk_alloc_copy(&e->chunks, want - done);

			if (idx == CORQ_NONE)
				break;
			corq_sndq_append(e, c, idx);
			space = corq_chunk_space(corq_chunk_at(&e->chunks, idx));
		}
		ch = corq_chunk_at(&e->chunks, c->sndq_tail);
		n = CORQ_MIN(space, want - done);
		memcpy(ch->data + ch->len, (const uint8_t *)data + done, n);
		ch->len += n;
		done += n;
	}
	if (done < len)
		c->flags |= CORQ_CF_WANT_ROOM;
	if (done)
		queued(e, c, done, flags);
	if ((flags & CORQ_FIN) && done == len)
		corq_tcp_shutdown(e, c);
	return done;
}

ssize_t
corq_tcp_write_mem(struct corq_engine *e, struct corq_conn *c, uint16_t region, const void *data,
	size_t len, unsigned flags, uint64_t cookie)
{
	int err = corq_conn_writable(c);
	uint32_t idx;

	if (err)
		return err;
	if (len > INT32_MAX - (c->snd_end - c->snd_una))
		return -ENOBUFS; /* sequence numbers in the queue must stay comparable */
	idx = corq_chunk_borrow(&e->chunks, region, data, (uint32_t)len, cookie);
	if (idx == CORQ_NONE)
		return -ENOBUFS;
	if (len == 0) {
		corq_engine_drop_chunk(e, idx); /* released at once */
	} else {
		corq_sndq_append(e, c, idx);
		queued(e, c, (uint32_t)len, flags);
	}
	if (flags & CORQ_FIN)
		corq_tcp_shutdown(e, c);
	return (ssize_t)len;
}

void *
corq_tcp_reserve(struct corq_engine *e, struct corq_conn *c, size_t *len)
{
	uint32_t space = tail_space(e, c), room = corq_send_room(e, c), idx;
	struct corq_chunk *ch;

	*len = 0;
	if (corq_conn_writable(c))
		return NULL; /* not for want of room */
	if (room == 0) {
		c->flags |= CORQ_CF_WANT_ROOM;
		return NULL;
	}
	if (space == 0) {
		idx = corq_chunk_alloc_copy(&e->chunks, room);
		if (idx == CORQ_NONE) {
			c->flags |= CORQ_CF_WANT_ROOM;
			return NULL;
		}
		corq_sndq_append(e, c, idx);
	}
	ch = corq_chunk_at(&e->chunks, c->sndq_tail);
	*len = CORQ_MIN(corq_chunk_space(ch), room);
	return ch->data + ch->len;
}

int
corq_tcp_commit(struct corq_engine *e, struct corq_conn *c, size_t len, unsigned flags)
{
	struct corq_chunk *ch;
	int err = corq_conn_writable(c);

	if (err)
		return err;
	if (len) {
		ch = corq_chunk_at(&e->chunks, c->sndq_tail);
		CORQ_ASSERT(len <= corq_chunk_space(ch));
		ch->len += (uint32_t)len;
		queued(e, c, (uint32_t)len, flags);
	}
	if (flags & CORQ_FIN)
		corq_tcp_shutdown(e, c);
	return 0;
}

/* ---- read ---- */

int
corq_tcp_peek(struct corq_engine *e, struct corq_conn *c, struct iovec *iov, int n)
{
	return corq_rcvq_peek(e, c, iov, n);
}

void
corq_tcp_consume(struct corq_engine *e, struct corq_conn *c, size_t len)
{
	CORQ_ASSERT(len <= c->rcvq_bytes);
	corq_rcvq_consume(e, c, len);
	if (c->state == CORQ_CLOSED || (c->flags & (CORQ_CF_DETACHED | CORQ_CF_PEER_FIN)))
		return;
	c->flags |= CORQ_CF_WND_UPDATE;
	corq_conn_mark_send(e, c);
}

/* ---- ending ---- */

#define LINGER_MAX_MS UINT64_C(30000000) /* beyond 8.3 h: 8.3 h (ticks reach 9.7 h) */

/* Never early, and never 0, which means none. 9.7 h ahead at most. */
static uint32_t
tick_of(const struct corq_engine *e, uint64_t at_ns)
{
	uint64_t round = (1u << CORQ_TICK_SHIFT) - 1;
	uint64_t horizon = e->now_ns + ((uint64_t)INT32_MAX << CORQ_TICK_SHIFT);
	uint32_t tick;

	at_ns = CORQ_MIN(CORQ_MAX(at_ns, e->now_ns), horizon);
	tick = (uint32_t)((at_ns + round) >> CORQ_TICK_SHIFT);
	return tick + (tick == 0);
}

static void
queue_fin(struct corq_engine *e, struct corq_conn *c)
{
	if (c->flags & CORQ_CF_FIN_QUEUED)
		return;
	c->flags |= CORQ_CF_FIN_QUEUED;
	c->flags &= ~(uint32_t)CORQ_CF_MORE;
	if (c->state == CORQ_ESTABLISHED)
		c->state = CORQ_FIN_WAIT_1; /* when queued, not when sent */
	else if (c->state == CORQ_CLOSE_WAIT)
		c->state = CORQ_LAST_ACK;
	corq_conn_mark_send(e, c);
}

int
corq_tcp_shutdown(struct corq_engine *e, struct corq_conn *c)
{
	if (c->state == CORQ_SYN_SENT || c->state == CORQ_CLOSED)
		return -ENOTCONN;
	if (c->state == CORQ_TIME_WAIT)
		return 0;
	corq_splice_shut(e, c);
	queue_fin(e, c);
	return 0;
}

/* Nothing leaves: what arrives is acknowledged and readable as before (Linux does so), until our
 * FIN is queued as well; from then on the peer's data is answered by RST (input.c). */
int
corq_tcp_shutdown_read(struct corq_conn *c)
{
	if (c->state == CORQ_SYN_SENT || c->state == CORQ_CLOSED)
		return -ENOTCONN;
	c->rd_shut = 1;
	return 0;
}

void
corq_tcp_close(struct corq_engine *e, struct corq_conn *c)
{
	bool done = c->state == CORQ_CLOSING || c->state == CORQ_LAST_ACK;

	if (c->flags & CORQ_CF_ORPHAN)
		return;
	c->flags |= CORQ_CF_ORPHAN; /* nothing but on_close is told from now on */
	if (c->ev & CORQ_EV_CLOSE)
		return;
	c->user_at = 0;
	c->ev &= (uint16_t)~CORQ_EV_TIMER; /* of an orphan it would mean linger */
	corq_splice_end(e, c);
	if (c->state == CORQ_SYN_SENT || (c->flags & CORQ_CF_DETACHED)) {
		corq_conn_end(e, c, 0);
		return;
	}
	if (!(done && c->sndq_head == CORQ_NONE) &&
		((c->flags & CORQ_CF_LINGER0) || c->rcvq_bytes)) {
		corq_conn_reset(e, c, ECONNABORTED);
		return;
	}
	if (c->state == CORQ_FIN_WAIT_2) {
		corq_fin_wait2_enter(e, c);
		return;
	}
	corq_rcvq_purge(e, c); /* CLOSING, LAST_ACK: nobody reads what is left */
	queue_fin(e, c);
}

/* When on_close is due although the peer has not acknowledged all: the deadline of an orphan. */
static void
set_linger(struct corq_engine *e, struct corq_conn *c, uint64_t ms)
{
	c->user_at = tick_of(e, e->now_ns + CORQ_MIN(ms, LINGER_MAX_MS) * CORQ_NS_PER_MS);
	corq_timer_update(e, c);
}

void
corq_tcp_close_linger(struct corq_engine *e, struct corq_conn *c, uint64_t ms)
{
	if (c->flags & CORQ_CF_ORPHAN)
		return;
	if (ms == 0)
		c->flags |= CORQ_CF_LINGER0;
	corq_tcp_close(e, c);
	if (ms && !(c->ev & CORQ_EV_CLOSE))
		set_linger(e, c, ms);
}

void
corq_tcp_abort(struct corq_engine *e, struct corq_conn *c)
{
	c->flags |= CORQ_CF_ORPHAN;
	if (c->ev & CORQ_EV_CLOSE)
		return;
	if (c->state == CORQ_SYN_SENT || (c->flags & CORQ_CF_DETACHED))
		corq_conn_end(e, c, ECONNABORTED);
	else
		corq_conn_reset(e, c, ECONNABORTED);
}

void
corq_tcp_forget(struct corq_engine *e, struct corq_conn *c)
{
	c->held = 0;
	corq_conn_end(e, c, ECONNABORTED);
}

/* ---- options ---- */

/* What is queued now leaves, whatever holds it: uncork, NODELAY. */
static void
flush(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w;

	if (c->state < CORQ_ESTABLISHED || c->snd_end == c->snd_nxt ||
		(c->flags & CORQ_CF_FIN_SENT))
		return;
	w = corq_conn_want_work(e, c);
	if (!w)
		return; /* counted; cork's ceiling or the next write flushes */
	w->flush_end = c->snd_end;
	c->flags |= CORQ_CF_FLUSH;
	corq_conn_mark_send(e, c);
}

void
corq_tcp_set_cork(struct corq_engine *e, struct corq_conn *c, bool on)
{
	if (on) {
		c->flags |= CORQ_CF_CORK;
		return;
	}
	if (c->flags & CORQ_CF_CORK)
		flush(e, c);
	c->flags &= ~(uint32_t)CORQ_CF_CORK;
}

void
corq_tcp_set_nodelay(struct corq_engine *e, struct corq_conn *c, bool on)
{
	if (!on) {
		c->flags &= ~(uint32_t)CORQ_CF_NODELAY;
		return;
	}
	c->flags |= CORQ_CF_NODELAY;
	flush(e, c);
}

void
corq_tcp_set_deadline(struct corq_engine *e, struct corq_conn *c, uint64_t at_ns)
{
	if (c->flags & CORQ_CF_ORPHAN) /* the deadline is its linger's now */
		return;
	c->ev &=
		(uint16_t)~CORQ_EV_TIMER; /* passed, but not told yet: it is not the deadline now */
	if (at_ns == 0 || (c->ev & CORQ_EV_CLOSE)) {
		c->user_at = 0;
		return;
	}
	c->user_at = tick_of(e, at_ns);
	corq_timer_update(e, c);
}

void
corq_tcp_set_mss(struct corq_engine *e, struct corq_conn *c, uint16_t mss)
{
	(void)e;
	c->mss = CORQ_MIN(c->mss, CORQ_MAX(mss, 88));
}

void
corq_tcp_get_info(struct corq_engine *e, const struct corq_conn *c, struct corq_conn_info *i)
{
	const struct corq_work *w = corq_conn_work(e, c);

	*i = (struct corq_conn_info){.laddr = c->laddr,
		.raddr = c->raddr,
		.lport = c->lport,
		.rport = c->rport,
		.state = (enum corq_state)c->state,
		.snd_una = c->snd_una,
		.snd_nxt = c->snd_nxt,
		.rcv_nxt = c->rcv_nxt,
		.snd_wnd_bytes = c->snd_wnd,
		.rcv_wnd_bytes = c->rcv_adv - c->rcv_nxt,
		.cwnd_bytes = c->cwnd,
		.ssthresh_bytes = c->ssthresh,
		.mss_bytes = c->mss,
		.srtt_us = c->srtt_us,
		.rttvar_us = c->rttvar_us,
		.rto_us = corq_conn_rto_us(e, c),
		.unacked_bytes = c->snd_nxt - c->snd_una,
		.readable_bytes = c->rcvq_bytes,
		.unsent_bytes = c->flags & CORQ_CF_FIN_SENT ? 0 : c->snd_end - c->snd_nxt,
		.ooo_bytes = w ? w->ooo_bytes : 0,
		.snd_wscale = c->wscale >> 4,
		.rcv_wscale = c->wscale & 15,
		.backoff = c->backoff,
		.timestamps = c->flags & CORQ_CF_TS,
		.sack = c->flags & CORQ_CF_SACK,
		.cork = c->flags & CORQ_CF_CORK,
		.nodelay = c->flags & CORQ_CF_NODELAY,
		.fin_queued = c->flags & CORQ_CF_FIN_QUEUED,
		.fin_sent = c->flags & CORQ_CF_FIN_SENT,
		.peer_fin = c->flags & CORQ_CF_PEER_FIN,
		.read_shut = c->rd_shut,
		.held = c->held};
}
