/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.c - step 7: the sender queues are served, and each connection says in one decision what
 * leaves: lost segments, new data, ACKs, window updates and FIN, merged into as few packets as the
 * rules allow.
 *
 * `urgent` (replies and SYNs) gets at most half of the budget while `send` waits. A connection gets
 * at most CONN_PACKETS a visit and goes to the tail if it has more, or if it took half of the room;
 * what found no room stays at the head, in order.
 */
#include "tcp/cork.h"
#include "tcp/internal.h"

#define CONN_PACKETS 64
#define STARVED_MAX  256    /* visits a turn that found no frame, work block or record */
#define RUN_MAX      65535u /* bytes in one decision: 64 KiB super-segments */

/* ---- lost segments ---- */

/* Records that were lost side by side go out as one segment where they fit (R7). */
static void
merge_lost(struct corq_engine *e, struct corq_work *w, struct corq_txrec *r, uint32_t mss)
{
	while (r->next != CORQ_NONE) {
		uint32_t idx = r->next;
		struct corq_txrec *n = corq_txrec_at(e, idx);

		if (!(n->flags & CORQ_TXREC_LOST) ||
			n->end - r->seq > mss + !!(n->flags & CORQ_TXREC_FIN))
			return;
		r->end = n->end;
		r->flags |= n->flags & (CORQ_TXREC_FIN | CORQ_TXREC_RTX);
		r->next = n->next;
		if (w->tx_tail == idx)
			w->tx_tail = corq_pool_index(&e->txrecs, r);
		w->tx_n--;
		corq_pool_free(&e->txrecs, idx);
	}
}

static void
resent(struct corq_engine *e, struct corq_work *w, struct corq_txrec *r)
{
	r->flags = (uint16_t)((r->flags & ~CORQ_TXREC_LOST) | CORQ_TXREC_RTX);
	r->rtx_count++;
	r->tx_ns = e->now_ns;
	w->lost -= r->end - r->seq;
}

/* One lost record. False: it must wait (cwnd, room, frames). */
static bool
send_lost_one(struct corq_engine *e, struct corq_conn *c, struct corq_work *w, uint32_t idx,
	struct corq_outbuf *ob)
{
	struct corq_txrec *r = corq_txrec_at(e, idx);
	uint32_t pipe = corq_conn_flight(e, c) - w->lost, mss = corq_mss_now(e, c), fin, len, done;
	uint8_t flags;
	bool whole;

	if (pipe && pipe + mss > c->cwnd && w->in_recovery != 1)
		return false;
	merge_lost(e, w, r, mss);
	fin = !!(r->flags & CORQ_TXREC_FIN);
	if (r->end - r->seq > mss + fin && !corq_txrec_split(e, w, idx, mss))
		return false;
	fin = !!(r->flags & CORQ_TXREC_FIN);
	len = r->end - r->seq - fin;
	flags = (uint8_t)((fin ? CORQ_TH_FIN : 0) |
			  (r->seq + len == c->snd_end && len ? CORQ_TH_PSH : 0));
	done = corq_build_data(e, c, r->seq, len, flags, ob, &whole);
	if (!whole && (done == 0 || !corq_txrec_split(e, w, idx, done)))
		return false;
	resent(e, w, corq_txrec_at(e, idx));
	e->stats.segs_retransmitted++;
	if (fin)
		e->stats.fin_retransmitted++;
	return whole;
}

static bool
send_lost(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob)
{
	struct corq_work *w = corq_conn_work(e, c);
	uint32_t idx = w ? w->tx_head : CORQ_NONE;

	while (idx != CORQ_NONE && w->lost) {
		if ((corq_txrec_at(e, idx)->flags & CORQ_TXREC_LOST) &&
			!send_lost_one(e, c, w, idx, ob))
			break;
		idx = corq_txrec_at(e, idx)->next;
	}
	if (w && w->tx_head != CORQ_NONE && w->rtx_kind != CORQ_RTX_RTO)
		corq_timer_rtx(e, c, w, CORQ_RTX_RTO, corq_conn_rto_us(e, c));
	if (!w || !w->lost) {
		c->flags &= ~(uint32_t)CORQ_CF_RTX;
		return true;
	}
	return false;
}

/* ---- new data and FIN ---- */

static void
gather(struct corq_engine *e, const struct corq_conn *c, const struct corq_work *w,
	struct corq_cork_in *in)
{
	uint32_t flight = corq_conn_flight(e, c), pipe = flight - (w ? w->lost : 0);
	uint32_t queued_to = c->snd_end;
	int32_t wnd = (int32_t)(c->snd_una + c->snd_wnd - c->snd_nxt);

	memset(in, 0, sizeof(*in));
	in->flush = (c->flags & CORQ_CF_FLUSH) && w && corq_seq_gt(w->flush_end, c->snd_nxt);
	in->fin = (c->flags & CORQ_CF_FIN_QUEUED) && !(c->flags & CORQ_CF_FIN_SENT);
	if (in->flush && !in->fin)
		queued_to = w->flush_end; /* what was queued later is held by its own rules */
	in->unsent = (c->flags & CORQ_CF_FIN_SENT) ? 0 : queued_to - c->snd_nxt;
	in->wnd_room = wnd > 0 ? (uint32_t)wnd : 0;
	in->cwnd_room = c->cwnd > pipe ? c->cwnd - pipe : 0;
	in->mss = corq_mss_now(e, c);
	in->max_wnd = (uint32_t)c->max_wnd << corq_conn_snd_wscale(c);
	in->max_len = RUN_MAX;
	in->cork = c->flags & CORQ_CF_CORK;
	in->more = c->flags & CORQ_CF_MORE;
	in->nodelay = c->flags & CORQ_CF_NODELAY;
	in->small_out = w && corq_seq_gt(w->snd_sml, c->snd_una);
	in->override = (c->flags & CORQ_CF_PROBE) && in->wnd_room;
}

/* What is held stays held: the timer that bounds the wait. */
static void
hold(struct corq_engine *e, struct corq_conn *c, enum corq_cork_hold why)
{
	bool idle = c->snd_nxt == c->snd_una;
	struct corq_work *w;

	if (why == CORQ_HOLD_CORK && idle) {
		w = corq_conn_want_work(e, c);
		if (w && !w->cork_armed) {
			uint32_t us = CORQ_MAX(corq_conn_rto_us(e, c), e->cfg.cork_min_us);

			w->cork_armed = 1;
			w->cork_at = e->now_tick + corq_us_to_ticks(us);
			corq_timer_update(e, c);
		}
	} else if (why == CORQ_HOLD_WND && idle) {
		w = corq_conn_want_work(e, c);
		if (w && w->rtx_kind == CORQ_RTX_NONE)
			corq_timer_rtx(e, c, w, CORQ_RTX_PERSIST, corq_conn_rto_us(e, c));
	}
}

/* Books what left: [seq, seq + len) and maybe the FIN. */
static void
sent_new(struct corq_engine *e, struct corq_conn *c, struct corq_work *w, uint32_t len, bool fin,
	bool small)
{
	uint32_t seq = c->snd_nxt;
	bool was_idle = w->tx_head == CORQ_NONE;

	c->snd_nxt += len + fin;
	corq_txrec_add(e, w, seq, c->snd_nxt, fin ? CORQ_TXREC_FIN : 0); /* was checked for */
	if (fin)
		c->flags |= CORQ_CF_FIN_SENT;
	if (small)
		w->snd_sml = seq + len;
	w->cork_armed = 0; /* the ceiling counts from the ACK that empties the flight */
	if (was_idle || w->rtx_kind != CORQ_RTX_RTO)
		corq_timer_rtx(e, c, w, CORQ_RTX_RTO, corq_conn_rto_us(e, c));
	if ((c->flags & CORQ_CF_FLUSH) && !corq_seq_lt(c->snd_nxt, w->flush_end))
		c->flags &= ~(uint32_t)CORQ_CF_FLUSH;
}

/* True: done for now. False: stopped for want of room, frames or memory. */
static bool
send_new(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob)
{
	uint16_t limit = (uint16_t)CORQ_MIN(ob->n + CONN_PACKETS, ob->max);

	for (;;) {
		struct corq_work *w = corq_conn_work(e, c);
		struct corq_cork_in in;
		struct corq_cork_out out;
		uint32_t done;
		bool whole;

		gather(e, c, w, &in);
		out = corq_cork_decide(&in);
		if (out.len == 0 && !out.fin) {
			hold(e, c, out.hold);
			return true;
		}
		if (ob->n >= limit)
			return false;
		w = corq_conn_want_work(e, c);
		if (!w || e->txrecs.n_free == 0) {
			if (w)
				corq_count(e, CORQ_R_TCP_NO_TXREC);
			return false;
		}
		done = corq_build_data(e, c, c->snd_nxt, out.len,
			(uint8_t)((out.fin ? CORQ_TH_FIN : 0) | (out.psh ? CORQ_TH_PSH : 0)), ob,
			&whole);
		if (done == 0 && !whole)
			return false;
		sent_new(e, c, w, done, whole && out.fin, done % in.mss);
		c->flags &= ~(uint32_t)CORQ_CF_PROBE;
		if (!whole)
			return false;
	}
}

/* ---- the connection's turn ---- */

/* A probe of a closed window: one number below SND.UNA, which the peer must answer. */
static bool
send_probe(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob)
{
	if (!(c->flags & CORQ_CF_PROBE))
		return true;
	if (!corq_build_ack(e, c, c->snd_una - 1, ob))
		return false;
	c->flags &= ~(uint32_t)CORQ_CF_PROBE;
	return true;
}

/* Pure ACKs: one each for what RFC 5681 wants told at once, at most 3 a turn with SACK. */
static bool
send_acks(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob)
{
	if ((c->flags & CORQ_CF_SACK) && c->acks_owed > 3)
		c->acks_owed = 3;
	while (c->acks_owed) {
		if (!corq_build_ack(e, c, c->snd_nxt, ob))
			return false;
		c->acks_owed--;
	}
	if (!(c->flags & CORQ_CF_ACK_NOW) &&
		!((c->flags & CORQ_CF_WND_UPDATE) && corq_window_moved(e, c)))
		return true;
	return corq_build_ack(e, c, c->snd_nxt, ob);
}

static bool
delay_ack(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob)
{
	struct corq_work *w;

	c->flags &= ~(uint32_t)CORQ_CF_WND_UPDATE;
	if (!(c->flags & CORQ_CF_ACK_DELAY))
		return true;
	w = corq_conn_want_work(e, c);
	if (!w)
		return corq_build_ack(e, c, c->snd_nxt, ob);
	if (!w->dack_armed)
		corq_timer_dack(e, c, w);
	return true;
}

static bool
may_send_data(const struct corq_conn *c)
{
	return c->state >= CORQ_ESTABLISHED && c->state <= CORQ_LAST_ACK;
}

bool
corq_output_conn(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob)
{
	bool more = false;

	if (c->state == CORQ_CLOSED || c->state == CORQ_TIME_WAIT)
		return false;
	if ((c->flags & CORQ_CF_SYN) && !corq_build_syn(e, c, ob))
		return true;
	/* The SYN found nobody, or stands in another queue until its next hop is known. */
	if (c->state == CORQ_CLOSED || (c->flags & CORQ_CF_IN_URGENT))
		return false;
	if (may_send_data(c)) {
		if (c->flags & CORQ_CF_RTX)
			more = !send_lost(e, c, ob) &&
			       (ob->n == ob->max || e->n_txf <= CORQ_TXF_RESERVE);
		if (!(c->flags & CORQ_CF_RTX))
			more |= !send_new(e, c, ob);
		more |= !send_probe(e, c, ob);
	}
	if (!send_acks(e, c, ob))
		return true;
	more |= !delay_ack(e, c, ob);
	corq_conn_drop_work(e, c);
	return more;
}

/* ---- the sender queues ---- */

static void
push_back_front(struct corq_engine *e, struct corq_fifo *f, uint32_t idx, uint32_t flag)
{
	struct corq_conn *c = corq_conn_at(e, idx);

	c->flags |= flag;
	c->send_next = f->head;
	f->head = idx;
	if (f->tail == CORQ_NONE)
		f->tail = idx;
	f->n++;
}

static void
serve_urgent(struct corq_engine *e, struct corq_outbuf *ob)
{
	while (e->reply_n && ob->n < ob->max) {
		if (!corq_reply_build(e, &e->replies[e->reply_head], ob))
			return;
		e->reply_head = (e->reply_head + 1) % CORQ_URGENT_MAX;
		e->reply_n--;
	}
	while (ob->n < ob->max) {
		uint32_t idx = corq_fifo_pop_send(e, &e->urgent);

		if (idx == CORQ_NONE)
			return;
		if (corq_output_conn(e, corq_conn_at(e, idx), ob)) {
			push_back_front(e, &e->urgent, idx, CORQ_CF_IN_URGENT);
			return;
		}
	}
}

static void
serve_send(struct corq_engine *e, struct corq_outbuf *ob)
{
	uint32_t visits = e->send.n; /* each once a turn */
	uint16_t share = (uint16_t)CORQ_MIN((ob->max - ob->n + 1) / 2, CONN_PACKETS);
	uint32_t starved = 0;

	while (ob->n < ob->max && visits--) {
		uint32_t idx = corq_fifo_pop_send(e, &e->send);
		uint16_t before = ob->n;

		if (idx == CORQ_NONE)
			return;
		if (!corq_output_conn(e, corq_conn_at(e, idx), ob))
			continue;
		if (ob->n - before >= share) {
			corq_conn_mark_send(e, corq_conn_at(e, idx)); /* its share is used */
			continue;
		}
		if (ob->n < ob->max && e->n_txf && starved++ < STARVED_MAX) {
			/* No frame for its data; an ACK of those behind may take the reserve. */
			corq_conn_mark_send(e, corq_conn_at(e, idx));
			continue;
		}
		push_back_front(e, &e->send, idx, CORQ_CF_IN_SEND);
		return;
	}
}

uint16_t
corq_tcp_build(struct corq_engine *e, struct corq_frame **out, uint16_t n, uint16_t n_send)
{
	struct corq_outbuf ob = {out, 0, n};

	if (e->send.n)
		ob.max = (uint16_t)((n + 1) / 2);
	serve_urgent(e, &ob);
	ob.max = (uint16_t)CORQ_MIN(ob.n + n_send, n);
	serve_send(e, &ob);
	ob.max = n;
	serve_urgent(e, &ob);
	return ob.n;
}

bool
corq_tcp_wants_build(const struct corq_engine *e)
{
	return e->reply_n || e->urgent.n || e->send.n;
}
