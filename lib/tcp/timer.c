/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer.c - deadlines.
 *
 * A connection has one wheel entry, at the earliest of its deadlines: retransmission or persist,
 * the ceiling of a corked tail, the program's own. A deadline that moves later leaves the entry
 * where it is (it fires, finds nothing due and is armed anew); one that moves earlier moves it at
 * once. Delayed ACKs all wait equally long, so they stand in a list in order of time; so do records
 * (timewait.c).
 *
 *   timer        set when                                fires                       limit
 *   RTO          something is in flight                  all lost, cwnd 1, RTO x 2   data_retries
 *   SYN          SYN sent                                SYN again, RTO x 2          syn_retries
 *   persist      data waits for the window, none in      probe (or what fits the     PERSIST_NS
 *                flight                                  window), x 2                unanswered
 *   cork         a tail is held, none in flight          the tail leaves             -
 *   delayed ACK  in-order data or FIN not yet acked      ACK                         -
 *   program      corq_conn_set_deadline                  on_timer                    -
 *   linger       closed by corq_conn_close_linger        on_close, early             -
 */
#include "tcp/internal.h"

#include <errno.h>

/* R2 for a peer that does not answer window probes: at least 100 s (RFC 9293 3.8.3); the sum of 15
 * doublings from 200 ms that Linux documents. */
#define PERSIST_NS   (924 * CORQ_NS_PER_S)
#define FIRE_BATCH   64
#define DOOMED_BATCH 64 /* queued children of closed listeners that are reset in a turn */

static bool
due(const struct corq_engine *e, uint32_t at)
{
	return !corq_seq_gt(at, e->now_tick);
}

void
corq_timer_update(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w = corq_conn_work(e, c);
	uint32_t at = 0;
	bool any = false;

	if (w && w->rtx_kind != CORQ_RTX_NONE) {
		at = w->rtx_at;
		any = true;
	}
	if (w && w->cork_armed && (!any || corq_seq_lt(w->cork_at, at))) {
		at = w->cork_at;
		any = true;
	}
	if (c->user_at && (!any || corq_seq_lt(c->user_at, at))) {
		at = c->user_at;
		any = true;
	}
	if (!any || (corq_wheel_armed(&c->timer) && !corq_seq_lt(at, c->timer.deadline)))
		return;
	corq_wheel_arm(&e->wheel, corq_conn_idx(e, c), at);
}

void
corq_timer_rtx(struct corq_engine *e, struct corq_conn *c, struct corq_work *w,
	enum corq_rtx_kind kind, uint32_t us)
{
	w->rtx_kind = (uint8_t)kind;
	w->rtx_at = e->now_tick + corq_us_to_ticks(us);
	corq_timer_update(e, c);
}

void
corq_timer_dack(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	w->dack_armed = 1;
	w->dack_at = e->now_tick + e->cfg.delack_ticks;
	corq_dlist_push_tail(&e->dack_space, &e->dack, c->work);
}

void
corq_timer_dack_off(struct corq_engine *e, struct corq_work *w)
{
	if (!w->dack_armed)
		return;
	w->dack_armed = 0;
	corq_dlist_remove(&e->dack_space, &e->dack, corq_pool_index(&e->works, w));
}

/* ---- what fires ---- */

static void
give_up(struct corq_engine *e, struct corq_conn *c)
{
	corq_count(e, CORQ_R_TCP_TIMEOUT);
	corq_conn_end(e, c, ETIMEDOUT);
}

static void
fire_syn(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	uint8_t max = c->state == CORQ_SYN_SENT ? e->cfg.syn_retries : e->cfg.synack_retries;

	if (c->backoff >= max) {
		give_up(e, c);
		return;
	}
	c->backoff++;
	c->flags |= CORQ_CF_SYN | CORQ_CF_SYN_RTX;
	corq_timer_rtx(e, c, w, CORQ_RTX_RTO, corq_conn_rto_us(e, c));
	corq_conn_mark_urgent(e, c);
}

/* R2 of probes: whether none was answered for too long. Notes when the first of them left. Of an
 * orphan every one counts (ack.c), for as long as it may stay in FIN_WAIT_2: the program has gone,
 * so nobody else would ever end a connection whose peer keeps its window shut. */
static bool
unanswered(const struct corq_engine *e, const struct corq_conn *c, struct corq_work *w)
{
	uint64_t limit = c->flags & CORQ_CF_ORPHAN
				 ? (uint64_t)e->cfg.fin_wait2_ticks << CORQ_TICK_SHIFT
				 : PERSIST_NS;

	if (!w->rtx_since)
		w->rtx_since = e->now_ns;
	return e->now_ns - w->rtx_since > limit;
}

/* Whether R2 counts time, not retransmissions: the window is shut; or, of an orphan, it was shut
 * and nothing has been acknowledged since. */
static bool
probing(const struct corq_conn *c, const struct corq_work *w)
{
	return c->snd_wnd == 0 || ((c->flags & CORQ_CF_ORPHAN) && w->rtx_since);
}

static void
fire_rto(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	e->stats.rto_fired++;
	if (c->state == CORQ_SYN_SENT || c->state == CORQ_SYN_RCVD) {
		fire_syn(e, c, w);
		return;
	}
	/* A window that shrank to nothing over what is in flight makes probes of retransmissions:
	 * they go on for as long as they are answered (RFC 9293 3.8.6, 3.8.6.1). */
	if (probing(c, w) ? unanswered(e, c, w) : c->backoff >= e->cfg.data_retries) {
		give_up(e, c);
		return;
	}
	corq_recovery_on_rto(e, c, w);
	if (c->backoff < UINT8_MAX)
		c->backoff++;
	corq_timer_rtx(e, c, w, CORQ_RTX_RTO, corq_conn_rto_us(e, c));
	corq_conn_mark_send(e, c);
}

static void
fire_persist(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	if (unanswered(e, c, w)) {
		give_up(e, c);
		return;
	}
	if (c->backoff < 16)
		c->backoff++;
	c->flags |= CORQ_CF_PROBE;
	corq_timer_rtx(e, c, w, CORQ_RTX_PERSIST, corq_conn_rto_us(e, c));
	corq_conn_mark_send(e, c);
}

static void
fire_cork(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	w->cork_armed = 0;
	w->flush_end = c->snd_end;
	c->flags |= CORQ_CF_FLUSH;
	corq_conn_mark_send(e, c);
}

static void
fire(struct corq_engine *e, struct corq_conn *c, bool hold_rtx)
{
	struct corq_work *w = corq_conn_work(e, c);

	if (w && w->rtx_kind != CORQ_RTX_NONE && due(e, w->rtx_at)) {
		if (hold_rtx && w->rtx_kind == CORQ_RTX_RTO)
			w->rtx_at = e->now_tick + 1; /* the next turn decides */
		else if (w->rtx_kind == CORQ_RTX_RTO)
			fire_rto(e, c, w);
		else
			fire_persist(e, c, w);
	}
	if (c->ev & CORQ_EV_CLOSE) /* ended just now; merely CLOSED ones keep their deadline */
		return;
	w = corq_conn_work(e, c);
	if (w && w->cork_armed && due(e, w->cork_at))
		fire_cork(e, c, w);
	if (c->user_at && due(e, c->user_at)) {
		c->user_at = 0;
		corq_conn_event(e, c, CORQ_EV_TIMER);
	}
	corq_timer_update(e, c);
}

static uint32_t
fire_delayed_acks(struct corq_engine *e, uint32_t budget)
{
	uint32_t n = 0;

	while (e->dack.head != CORQ_NONE && n < budget) {
		struct corq_work *w = corq_pool_at(&e->works, e->dack.head);
		struct corq_conn *c;

		if (!due(e, w->dack_at))
			break;
		c = corq_conn_at(e, w->conn);
		corq_timer_dack_off(e, w);
		c->flags |= CORQ_CF_ACK_NOW;
		corq_conn_mark_send(e, c);
		n++;
	}
	return n;
}

uint32_t
corq_tcp_timers(struct corq_engine *e, uint32_t budget, bool hold_rtx)
{
	uint32_t idx[FIRE_BATCH], n = 0;

	/* Calls are bounded as well: one may do nothing but move entries down the wheel. */
	for (uint32_t calls = 0; n < budget && calls * FIRE_BATCH < budget; calls++) {
		uint32_t want = CORQ_MIN(budget - n, FIRE_BATCH);
		uint32_t got = corq_wheel_expire(&e->wheel, e->now_tick, idx, want);

		for (uint32_t i = 0; i < got; i++)
			fire(e, corq_conn_at(e, idx[i]), hold_rtx);
		n += got;
		if (CORQ_LIKELY(corq_wheel_next(&e->wheel) != 0))
			break;
	}
	n += fire_delayed_acks(e, budget);
	if (CORQ_UNLIKELY(e->doomed.n))
		n += corq_doomed_reset(e, DOOMED_BATCH);
	return n + corq_record_timers(e, budget);
}

static uint32_t
ticks_until(const struct corq_engine *e, uint32_t at)
{
	return corq_seq_gt(at, e->now_tick) ? at - e->now_tick : 0;
}

uint32_t
corq_tcp_next_deadline(struct corq_engine *e)
{
	uint32_t next = corq_wheel_next(&e->wheel), n;

	if (e->doomed.n)
		return 0;

	/* The wheel counts from its last expire. */
	if (next != CORQ_NONE)
		next = ticks_until(e, e->wheel.now + next);
	if (e->dack.head != CORQ_NONE) {
		n = ticks_until(
			e, ((struct corq_work *)corq_pool_at(&e->works, e->dack.head))->dack_at);
		next = CORQ_MIN(next, n);
	}
	for (unsigned cls = 0; cls < CORQ_RC_COUNT; cls++) {
		if (e->rec_list[cls].head == CORQ_NONE)
			continue;
		n = ticks_until(e, corq_record_at(e, e->rec_list[cls].head)->deadline);
		next = CORQ_MIN(next, n);
	}
	return next;
}
