/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ack.c - the ACK field (RFC 9293 3.10.7.4, fifth step): what is acknowledged leaves the queues,
 * the clock and the windows move.
 *
 * Called for acceptable segments whose ACK is in range. Frees at most what it acknowledges, so its
 * cost is bounded by what we sent. One thread, the core's.
 */
#include "tcp/internal.h"

/* Chunks wholly below snd_una go; the first kept one remembers how much of it is acknowledged. */
static void
free_acked(struct corq_engine *e, struct corq_conn *c, uint32_t bytes)
{
	bytes += c->sndq_off;
	while (c->sndq_head != CORQ_NONE) {
		uint32_t idx = c->sndq_head;
		struct corq_chunk *ch = corq_chunk_at(&e->chunks, idx);

		if (bytes < ch->len)
			break;
		bytes -= ch->len;
		c->sndq_head = ch->next;
		if (c->sndq_head == CORQ_NONE)
			c->sndq_tail = CORQ_NONE;
		corq_engine_drop_chunk(e, idx);
	}
	c->sndq_off = bytes;
}

static void
take_rtt(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg, uint64_t tx_ns)
{
	if (tx_ns) {
		corq_rtt_sample(c, (uint32_t)CORQ_MIN((e->now_ns - tx_ns) / 1000, UINT32_MAX));
	} else if ((c->flags & CORQ_CF_TS) && (seg->opts & CORQ_OPT_TS) && seg->tsecr) {
		/* Retransmitted: the echo tells which copy (RFC 7323 4.1). Nonsense is ignored. */
		uint32_t ms = e->now_ms + c->ts_off - seg->tsecr;

		if (ms < 600000)
			corq_rtt_sample(c, ms * 1000);
	}
}

static void
new_ack(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg,
	struct corq_ack_result *res)
{
	struct corq_work *w = corq_conn_work(e, c);
	uint32_t acked = seg->ack - c->snd_una;
	const struct corq_addr *hop;
	uint64_t tx_ns;

	CORQ_ASSERT(w); /* something was in flight */
	tx_ns = corq_txrec_ack(e, w, seg->ack);
	take_rtt(e, c, seg, tx_ns);
	if ((c->flags & CORQ_CF_FIN_SENT) && seg->ack == c->snd_end + 1) {
		res->fin_acked = true;
		acked--;
	}
	c->snd_una = seg->ack;
	if (corq_seq_lt(w->snd_sml, c->snd_una))
		w->snd_sml = c->snd_una;
	free_acked(e, c, acked);
	if (w->cur_chunk != CORQ_NONE && corq_seq_lt(w->cur_seq, c->snd_una))
		w->cur_chunk = CORQ_NONE;
	c->backoff = 0;
	w->rtx_since = 0;
	corq_recovery_on_ack(e, c, w, acked);
	if (w->tx_head == CORQ_NONE) /* RFC 6298 5.2 */
		w->rtx_kind = CORQ_RTX_NONE;
	else /* 5.3 */
		corq_timer_rtx(e, c, w, CORQ_RTX_RTO, corq_conn_rto_us(e, c));
	corq_splice_room(e, c);
	hop = corq_next_hop(e, &c->raddr);
	if (hop && corq_neigh_is(e->neigh, c->neigh, hop)) /* forward progress: RFC 4861 7.3.1 */
		corq_neigh_confirm(e->neigh, c->neigh, e->now_ns);
	if (c->sndq_head == CORQ_NONE || (c->flags & CORQ_CF_WANT_ROOM))
		corq_conn_event(e, c, CORQ_EV_SENT);
	corq_conn_drop_work(e, c);
}

/* RFC 9293 3.10.7.4: SND.WL1/WL2 keep old segments from setting the window. */
static bool
take_window(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	uint32_t wnd = (uint32_t)seg->wnd << corq_conn_snd_wscale(c);
	bool changed;

	if (!(corq_seq_lt(c->snd_wl1, seg->seq) ||
		    (c->snd_wl1 == seg->seq && corq_seq_le(c->snd_wl2, seg->ack))))
		return false;
	changed = wnd != c->snd_wnd;
	if (wnd == 0 && c->snd_wnd != 0)
		e->stats.zero_window_in++;
	c->snd_wnd = wnd;
	c->snd_wl1 = seg->seq;
	c->snd_wl2 = seg->ack;
	c->max_wnd = CORQ_MAX(c->max_wnd, seg->wnd);
	return changed;
}

/* The window opened, after it had shrunk over what is in flight: that goes on without the long
 * wait. The wait only ever becomes shorter, so nobody can push it ahead of himself. */
static void
hurry(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	uint32_t us = corq_conn_rto_us(e, c);

	if (corq_seq_lt(e->now_tick + corq_us_to_ticks(us), w->rtx_at))
		corq_timer_rtx(e, c, w, CORQ_RTX_RTO, us);
}

/* A probe was answered or the window opened: persist starts over (output decides anew). Of an
 * orphan the counts of R2 run until something is acknowledged (new_ack): else a peer that opens its
 * window and takes nothing would keep it for ever. */
static void
probe_answered(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	bool in_flight = w->rtx_kind == CORQ_RTX_RTO;
	uint8_t retries = c->backoff;

	if (!(c->flags & CORQ_CF_ORPHAN))
		w->rtx_since = 0;
	if (c->snd_wnd == 0 || retries == 0)
		return;
	c->backoff = 0;
	if (in_flight)
		hurry(e, c, w);
	if (in_flight && (c->flags & CORQ_CF_ORPHAN))
		c->backoff = retries;
}

void
corq_ack_input(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg,
	struct corq_ack_result *res)
{
	struct corq_work *w = corq_conn_work(e, c);
	bool closed = c->snd_wnd == 0, wnd_changed;

	res->fin_acked = false;
	wnd_changed = take_window(e, c, seg);
	if (c->flags & CORQ_CF_MORE) { /* any ACK lets a MORE tail go; cork holds on */
		c->flags &= ~(uint32_t)CORQ_CF_MORE;
		corq_conn_mark_send(e, c);
	}
	if (corq_seq_gt(seg->ack, c->snd_una)) {
		new_ack(e, c, seg, res);
		corq_conn_mark_send(e, c);
		return;
	}
	if (w && (w->rtx_kind == CORQ_RTX_PERSIST || closed))
		probe_answered(e, c, w);
	if (wnd_changed) {
		corq_conn_mark_send(e, c);
		return;
	}
	/* RFC 5681 2: a duplicate acknowledgement. */
	if (w && w->tx_head != CORQ_NONE && seg->ack == c->snd_una && seg->len == 0 &&
		!(seg->flags & (CORQ_TH_SYN | CORQ_TH_FIN))) {
		corq_recovery_on_dupack(e, c, w);
		corq_conn_mark_send(e, c);
	}
}
