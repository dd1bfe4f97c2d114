/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * input.c - one received segment (RFC 9293 3.10.7), in the RFC's order of steps.
 *
 * corq_tcp_input finds what the tuple names now: a connection, a record, a listener or nothing.
 * For a synchronised connection `fast_path` takes the common in-order segment; everything else
 * walks the numbered steps, one function a step. A step returns GO or the verdict that ends the
 * walk. Input changes state and marks what is owed; it sends nothing and calls nobody.
 */
#include "tcp/internal.h"
#include "tcp/rcvq.h"
#include "tcp/reasm.h"

#include <errno.h>

#define GO CORQ_R_COUNT /* a step's word for "next step" */

/* 24 days in units of 2^36 ns: PAWS does not trust an older ts_recent (RFC 7323 5.5). */
#define TS_AGE_MAX 30172

static void
owe_ack_each(struct corq_conn *c)
{
	if (c->acks_owed < UINT8_MAX)
		c->acks_owed++;
}

/*
 * What is not acceptable is answered by an ACK, and two ends that find each other unacceptable
 * would answer each other for ever. Data and FIN do not answer anything: they get an ACK each. The
 * rest (bare ACKs, SYNs, RSTs to be challenged) gets one in 0.54 s (RFC 5961 7; Linux limits
 * likewise).
 */
static void
owe_ack_limited(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	uint8_t now = (uint8_t)(e->now_ns >> 29 | 128);

	if (seg->len == 0 && !(seg->flags & CORQ_TH_FIN)) {
		if (c->told_at == now)
			return;
		c->told_at = now;
	}
	owe_ack_each(c);
	corq_conn_mark_send(e, c);
}

static void
take_ts_recent(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	c->ts_recent = seg->tsval;
	c->ts_age = (uint16_t)(e->now_ns >> 36);
}

/* RFC 7323 4.3: the segment that spans the last ACK sent sets what we echo. */
static void
update_ts_recent(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	if ((c->flags & CORQ_CF_TS) && (seg->opts & CORQ_OPT_TS) &&
		corq_seq_le(seg->seq, c->last_ack_sent) && corq_seq_ge(seg->tsval, c->ts_recent))
		take_ts_recent(e, c, seg);
}

/* ---- payload and FIN ---- */

/* In-order data owes an ACK: at once for the second full segment (RFC 1122 4.2.3.2), else soon. */
static void
owe_ack_data(struct corq_conn *c, uint32_t len)
{
	c->exchanged = 1;
	if (len > c->rcv_mss)
		c->rcv_mss = (uint16_t)CORQ_MIN(len, UINT16_MAX);
	if (c->rcv_nxt - c->last_ack_sent >= 2u * c->rcv_mss)
		c->flags |= CORQ_CF_ACK_NOW;
	else
		c->flags |= CORQ_CF_ACK_DELAY;
}

static void
got_data(struct corq_engine *e, struct corq_conn *c, uint32_t len)
{
	owe_ack_data(c, len);
	corq_conn_event(e, c, CORQ_EV_DATA);
	corq_conn_mark_send(e, c);
}

/* Bytes at RCV.NXT while others wait behind them: the first copy of a byte wins (reasm.h). */
static CORQ_NOINLINE enum corq_reason
queue_into_hole(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg, uint32_t skip,
	uint32_t len)
{
	struct corq_work *w = corq_conn_work(e, c);

	if (corq_reasm_insert(e, c, w, seg, skip, len) < 0)
		return CORQ_R_TCP_RCV_NOMEM;
	corq_reasm_pull(e, c, w);
	got_data(e, c, len);
	c->flags |= CORQ_CF_ACK_NOW; /* a hole is filled: RFC 5681 4.2 */
	corq_conn_drop_work(e, c);
	return CORQ_R_NONE;
}

static enum corq_reason
queue_in_order(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg, uint32_t skip,
	uint32_t len)
{
	if (CORQ_UNLIKELY(c->work != CORQ_NONE && corq_conn_work(e, c)->ooo_head != CORQ_NONE))
		return queue_into_hole(e, c, seg, skip, len);
	if (CORQ_UNLIKELY(corq_rcvq_append_seg(e, c, seg, skip, len) < 0))
		return CORQ_R_TCP_RCV_NOMEM;
	c->rcv_nxt += len;
	got_data(e, c, len);
	return CORQ_R_NONE;
}

/* What comes before its turn may be dropped and comes again (RFC 2018 8); what is in order, and
 * what we answer, must find memory. So bytes ahead of a hole get half of each pool at most, or a
 * few hundred peers that never fill their holes would starve all others. */
static bool
out_of_order_short(struct corq_engine *e)
{
	const struct corq_chunks *cs = &e->chunks;
	const struct corq_pool *small = &cs->pool[CORQ_CHUNK_CLASS_SMALL];
	const struct corq_pool *large = &cs->pool[CORQ_CHUNK_CLASS_LARGE];

	return small->n_free <= small->n / 2 || large->n_free <= large->n / 2 ||
	       cs->n_held >= cs->held_max / 2;
}

static CORQ_NOINLINE enum corq_reason
queue_out_of_order(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg, uint32_t skip,
	uint32_t len)
{
	struct corq_work *w;

	e->stats.ooo_in++;
	owe_ack_each(c);
	corq_conn_mark_send(e, c);
	if (out_of_order_short(e))
		return CORQ_R_TCP_OOO_FULL;
	w = corq_conn_want_work(e, c);
	if (!w)
		return CORQ_R_TCP_NO_WORK;
	if (len == 0)
		return CORQ_R_NONE;
	switch (corq_reasm_insert(e, c, w, seg, skip, len)) {
	case 0:
		return CORQ_R_NONE;
	case -ENOBUFS:
		corq_conn_drop_work(e, c);
		return CORQ_R_TCP_RCV_NOMEM;
	default:
		corq_conn_drop_work(e, c);
		return CORQ_R_TCP_OOO_FULL;
	}
}

static void
peer_fin(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w = corq_conn_work(e, c);

	if (w) {
		w->fin_ooo = 0;        /* this one, or an earlier copy of it */
		corq_reasm_drop(e, w); /* nothing comes behind a FIN: what claims to is nobody's */
	}
	c->rcv_nxt++;
	/* The ACK may ride on data or FIN of ours, unless ours have all left. */
	c->flags |= CORQ_CF_PEER_FIN |
		    (c->flags & CORQ_CF_FIN_SENT ? CORQ_CF_ACK_NOW : CORQ_CF_ACK_DELAY);
	if (!(c->flags & CORQ_CF_ORPHAN))
		corq_conn_event(e, c, CORQ_EV_PEER_FIN);
	corq_conn_mark_send(e, c);
	switch (c->state) {
	case CORQ_SYN_RCVD:
	case CORQ_ESTABLISHED:
		c->state = CORQ_CLOSE_WAIT;
		break;
	case CORQ_FIN_WAIT_1:
		c->state = CORQ_CLOSING;
		break;
	case CORQ_FIN_WAIT_2:
		corq_time_wait_enter(e, c);
		break;
	default:
		break;
	}
}

/* ---- the common case ---- */

/* In order, nothing unusual, timestamps fresh: one pass. Returns GO when it is not that case. */
static inline enum corq_reason
fast_path(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	const uint8_t usual = CORQ_TH_ACK | CORQ_TH_PSH;
	struct corq_ack_result res;
	enum corq_reason rc = CORQ_R_NONE;

	if (c->state != CORQ_ESTABLISHED || (seg->flags & ~usual) || !(seg->flags & CORQ_TH_ACK) ||
		seg->seq != c->rcv_nxt || seg->len > c->rcv_adv - c->rcv_nxt)
		return GO;
	if (c->flags & CORQ_CF_TS) {
		if (!(seg->opts & CORQ_OPT_TS) || corq_seq_lt(seg->tsval, c->ts_recent))
			return GO;
	}
	if (seg->ack - c->snd_una > c->snd_nxt - c->snd_una)
		return GO;
	update_ts_recent(e, c, seg);
	corq_ack_input(e, c, seg, &res);
	if (seg->len) {
		rc = queue_in_order(e, c, seg, 0, seg->len);
		if (c->work != CORQ_NONE && corq_conn_work(e, c)->fin_ooo)
			corq_fin_ooo_check(e, c);
	}
	return rc;
}

/* ---- the steps ---- */

/* RFC 7323 5.3, before the first step. */
static enum corq_reason
step_paws(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	if (!(c->flags & CORQ_CF_TS) || (seg->flags & CORQ_TH_RST))
		return GO;
	if (!(seg->opts & CORQ_OPT_TS)) /* a SYN is challenged whatever it brings (RFC 5961 4.2) */
		return seg->flags & CORQ_TH_SYN ? GO : CORQ_R_TCP_NO_TS;
	if (!corq_seq_lt(seg->tsval, c->ts_recent))
		return GO;
	if ((uint16_t)((e->now_ns >> 36) - c->ts_age) > TS_AGE_MAX) {
		take_ts_recent(e, c, seg);
		return GO;
	}
	owe_ack_limited(e, c, seg);
	return CORQ_R_TCP_PAWS;
}

/* Simultaneous open: the peer's SYN-ACK repeats the SYN that we have; take it off. */
static void
strip_known_syn(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	if (c->state != CORQ_SYN_RCVD || !(seg->flags & CORQ_TH_SYN) ||
		seg->seq + 1 != c->rcv_nxt || !(seg->flags & CORQ_TH_ACK) || seg->ack != c->snd_nxt)
		return;
	seg->flags &= (uint8_t)~CORQ_TH_SYN;
	seg->seq++;
	owe_ack_each(c);
	corq_conn_mark_send(e, c);
}

/* First: is any of it inside the window? */
static enum corq_reason
step_sequence(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	if (corq_seg_in_window(seg, c->rcv_nxt, c->rcv_adv - c->rcv_nxt))
		return GO;
	if (seg->flags & CORQ_TH_RST)
		return CORQ_R_TCP_RST_OUT_OF_WINDOW;
	owe_ack_limited(e, c, seg);
	return corq_seq_le(seg->seq + corq_seg_seqlen(seg), c->rcv_nxt) ? CORQ_R_TCP_DUPLICATE
									: CORQ_R_TCP_OUT_OF_WINDOW;
}

/* Second: RST. Only the exact sequence resets; anywhere else in the window earns a challenge ACK
 * (RFC 5961 3.2). */
static enum corq_reason
step_rst(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	if (!(seg->flags & CORQ_TH_RST))
		return GO;
	if (seg->seq != c->rcv_nxt) {
		owe_ack_limited(e, c, seg);
		return CORQ_R_TCP_RST_CHALLENGED;
	}
	e->stats.rst_in++;
	corq_count(e, CORQ_R_TCP_RST_TAKEN);
	/* SYN_RCVD here is a simultaneous open: refused. A reset after both sides closed ends in
	 * order: nothing is lost (RFC 9293 3.10.7.4, CLOSING, LAST_ACK). */
	if (c->state == CORQ_CLOSING || c->state == CORQ_LAST_ACK)
		corq_conn_end(e, c, c->sndq_head != CORQ_NONE ? ECONNRESET : 0);
	else
		corq_conn_end(e, c, c->state == CORQ_SYN_RCVD ? ECONNREFUSED : ECONNRESET);
	return CORQ_R_NONE;
}

/* Fourth: SYN on a synchronised connection: challenge ACK (RFC 5961 4.2). */
static enum corq_reason
step_syn(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	if (!(seg->flags & CORQ_TH_SYN))
		return GO;
	owe_ack_limited(e, c, seg);
	return CORQ_R_TCP_SYN_CHALLENGED;
}

static void
leave_fin_wait_1(struct corq_engine *e, struct corq_conn *c)
{
	c->state = CORQ_FIN_WAIT_2;
	if (c->flags & CORQ_CF_ORPHAN)
		corq_fin_wait2_enter(e, c);
}

/* Our FIN is acknowledged: the states of the fifth step. */
static enum corq_reason
fin_acked(struct corq_engine *e, struct corq_conn *c)
{
	switch (c->state) {
	case CORQ_FIN_WAIT_1:
		c->state = CORQ_FIN_WAIT_2; /* a FIN in this segment still counts: see step_fin */
		return GO;
	case CORQ_CLOSING:
		corq_time_wait_enter(e, c);
		return CORQ_R_NONE;
	case CORQ_LAST_ACK:
		if ((c->flags & CORQ_CF_ORPHAN) || c->held) {
			corq_conn_end(e, c, 0);
		} else { /* half-closed by shutdown only: bytes may be unread, the program closes */
			corq_conn_detach(e, c);
			c->state = CORQ_CLOSED;
		}
		return CORQ_R_NONE;
	default:
		return GO;
	}
}

/* SYN_RCVD of a simultaneous open: the SYN's own number is acknowledged. */
static void
syn_acked(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w = corq_conn_work(e, c);

	c->snd_una++;
	c->flags &= ~(uint32_t)(CORQ_CF_SYN | CORQ_CF_RTX);
	if (!w)
		return;
	corq_txrec_ack(e, w, c->snd_una);
	w->rtx_kind = CORQ_RTX_NONE;
	w->snd_sml = c->snd_una;
	w->rtx_since = 0;
	corq_conn_drop_work(e, c);
}

/* Fifth: the ACK field. */
static enum corq_reason
step_ack(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	struct corq_ack_result res;

	if (!(seg->flags & CORQ_TH_ACK))
		return CORQ_R_TCP_NO_ACK_FLAG;
	if (c->state == CORQ_SYN_RCVD) {
		if (!corq_seq_gt(seg->ack, c->snd_una) || corq_seq_gt(seg->ack, c->snd_nxt)) {
			corq_reply_conn(e, c, CORQ_TH_RST, seg->ack);
			return CORQ_R_TCP_SYN_RCVD_BAD_ACK;
		}
		syn_acked(e, c);
		c->snd_wl1 = seg->seq - 1;
		corq_conn_established(e, c);
	}
	if (corq_seq_gt(seg->ack, c->snd_nxt)) {
		owe_ack_limited(e, c, seg);
		return CORQ_R_TCP_ACK_TOO_NEW;
	}
	/* RFC 5961 5.2: older than anything in flight could be. */
	if (corq_seq_lt(seg->ack, c->snd_una - ((uint32_t)c->max_wnd << corq_conn_snd_wscale(c)))) {
		owe_ack_limited(e, c, seg);
		return CORQ_R_TCP_ACK_TOO_OLD;
	}
	corq_ack_input(e, c, seg, &res);
	return res.fin_acked ? fin_acked(e, c) : GO;
}

/* Data for a program that closed, or that shut both directions down: the peer must learn that
 * nobody reads (SEMANTICS B.2, C9). */
static bool
nobody_reads(const struct corq_conn *c, const struct corq_seg *seg)
{
	return ((c->flags & CORQ_CF_ORPHAN) || c->rd_shut) && seg->len &&
	       (c->state == CORQ_FIN_WAIT_1 || c->state == CORQ_FIN_WAIT_2) &&
	       corq_seq_gt(seg->seq + seg->len, c->rcv_nxt);
}

/* Seventh: the payload, trimmed to the window. */
static enum corq_reason
step_text(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg, uint32_t skip,
	uint32_t len)
{
	uint32_t seq = seg->seq + skip;

	if (len == 0)
		return CORQ_R_NONE;
	if (seq == c->rcv_nxt)
		return queue_in_order(e, c, seg, skip, len);
	return queue_out_of_order(e, c, seg, skip, len);
}

/* Eighth: FIN, now or latched until its data is in. */
static void
step_fin(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg, bool fin,
	uint32_t fin_seq)
{
	struct corq_work *w;

	if (fin && fin_seq != c->rcv_nxt && corq_seq_gt(fin_seq, c->rcv_nxt) &&
		!(c->flags & CORQ_CF_PEER_FIN)) {
		w = corq_conn_want_work(e, c);
		if (w && !w->fin_ooo) {
			w->fin_ooo = 1;
			w->fin_seq = fin_seq;
		}
		if (seg->len == 0) { /* a bare FIN ahead of its data: tell what is missing */
			owe_ack_each(c);
			corq_conn_mark_send(e, c);
		}
		return;
	}
	if (fin && fin_seq == c->rcv_nxt && !(c->flags & CORQ_CF_PEER_FIN))
		peer_fin(e, c);
	else
		corq_fin_ooo_check(e, c);
}

void
corq_fin_ooo_check(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w = corq_conn_work(e, c);

	if (!w || !w->fin_ooo || c->state == CORQ_CLOSED)
		return;
	if (CORQ_UNLIKELY(corq_seq_lt(w->fin_seq, c->rcv_nxt))) {
		w->fin_ooo = 0; /* the peer sent on behind its FIN: there was none */
		corq_conn_drop_work(e, c);
	} else if (w->fin_seq == c->rcv_nxt) {
		w->fin_ooo = 0;
		corq_conn_drop_work(e, c);
		c->flags |= CORQ_CF_ACK_NOW;
		peer_fin(e, c);
	}
}

/* Steps six to eight for a segment that may carry something. */
static enum corq_reason
steps_text_fin(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	uint32_t skip = corq_seq_lt(seg->seq, c->rcv_nxt) ? c->rcv_nxt - seg->seq : 0;
	uint32_t len = skip < seg->len ? seg->len - skip : 0;
	int32_t edge = (int32_t)(c->rcv_adv - (seg->seq + skip));
	uint32_t room = edge > 0 ? (uint32_t)edge : 0;
	bool fin = seg->flags & CORQ_TH_FIN;
	uint32_t fin_seq = seg->seq + seg->len;
	enum corq_reason rc;

	if (skip > 0 && len == 0 && corq_seg_seqlen(seg) && !(fin && fin_seq == c->rcv_nxt)) {
		owe_ack_each(c); /* all old */
		corq_conn_mark_send(e, c);
		corq_conn_drop_work(e, c);
		return CORQ_R_TCP_DUPLICATE;
	}
	if (len > 0 && (c->flags & CORQ_CF_PEER_FIN))
		return CORQ_R_TCP_DATA_AFTER_FIN;
	if (len > room) { /* beyond the right edge: cut, and so is the FIN */
		len = room;
		fin = false;
		c->flags |= CORQ_CF_ACK_NOW;
		corq_conn_mark_send(e, c);
	}
	rc = step_text(e, c, seg, skip, len);
	if (rc == CORQ_R_NONE && c->state != CORQ_CLOSED)
		step_fin(e, c, seg, fin, fin_seq);
	return rc;
}

static enum corq_reason
input_synchronised(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	enum corq_reason rc = fast_path(e, c, seg);

	if (CORQ_LIKELY(rc != GO))
		return rc;
	if ((rc = step_paws(e, c, seg)) != GO)
		return rc;
	strip_known_syn(e, c, seg);
	if ((rc = step_sequence(e, c, seg)) != GO || (rc = step_rst(e, c, seg)) != GO ||
		(rc = step_syn(e, c, seg)) != GO)
		return rc;
	update_ts_recent(e, c, seg);
	if ((rc = step_ack(e, c, seg)) != GO)
		return rc;
	if (CORQ_UNLIKELY(nobody_reads(c, seg))) {
		corq_reply_conn(e, c, CORQ_TH_RST, seg->ack);
		/* A held connection: read says 0, write EPIPE; no error is due, it was asked for.
		 */
		corq_conn_end(e, c, c->held && !(c->flags & CORQ_CF_ORPHAN) ? 0 : ECONNABORTED);
		return CORQ_R_TCP_DATA_AFTER_CLOSE;
	}
	rc = steps_text_fin(e, c, seg);
	/* FIN_WAIT_2 reached by this segment without a FIN in it: an orphan becomes a record. */
	if (c->state == CORQ_FIN_WAIT_2 && (c->flags & CORQ_CF_ORPHAN))
		leave_fin_wait_1(e, c);
	return rc;
}

/* ---- SYN_SENT (RFC 9293 3.10.7.3) ---- */

static void
take_syn_options(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg)
{
	const struct corq_tcp_config *cfg = &e->cfg;

	c->flags &= ~(uint32_t)(CORQ_CF_TS | CORQ_CF_SACK | CORQ_CF_WSCALE);
	if ((seg->opts & CORQ_OPT_TS) && cfg->timestamps) {
		c->flags |= CORQ_CF_TS;
		take_ts_recent(e, c, seg);
	}
	if ((seg->opts & CORQ_OPT_SACK_OK) && cfg->sack)
		c->flags |= CORQ_CF_SACK;
	c->wscale = 0;
	if ((seg->opts & CORQ_OPT_WSCALE) && cfg->wscale) {
		c->flags |= CORQ_CF_WSCALE;
		c->wscale = (uint8_t)(seg->wscale << 4 | cfg->rcv_wscale);
	}
	c->mss = corq_mss_effective(
		e, &c->laddr, seg->opts & CORQ_OPT_MSS ? seg->mss : 0, c->flags & CORQ_CF_TS);
	c->rcv_nxt = seg->seq + 1;
	c->last_ack_sent = c->rcv_nxt;
	c->rcv_adv = c->rcv_nxt + CORQ_MIN(e->cfg.rcv_buf, 65535u);
	c->snd_wnd = seg->wnd; /* never scaled in a SYN (RFC 7323 2.2) */
	c->max_wnd = (uint16_t)(seg->wnd >> corq_conn_snd_wscale(c));
	c->snd_wl1 = seg->seq;
	c->snd_wl2 = seg->ack;
}

static enum corq_reason
syn_sent_synack(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	struct corq_work *w = corq_conn_work(e, c);
	uint64_t tx_ns;

	take_syn_options(e, c, seg);
	c->snd_una = seg->ack;
	tx_ns = w ? corq_txrec_ack(e, w, seg->ack) : 0;
	if (tx_ns)
		corq_rtt_sample(c, (uint32_t)CORQ_MIN((e->now_ns - tx_ns) / 1000, UINT32_MAX));
	if (w) {
		w->rtx_kind = CORQ_RTX_NONE;
		w->snd_sml = c->snd_una;
		w->rtx_since = 0;
	}
	c->flags &= ~(uint32_t)(CORQ_CF_SYN | CORQ_CF_RTX);
	corq_conn_established(e, c);
	corq_conn_drop_work(e, c);
	c->flags |= CORQ_CF_ACK_NOW;
	corq_conn_mark_send(e, c);
	return CORQ_R_NONE;
}

/* A SYN crosses ours: SYN_RCVD, and our SYN goes again with an ACK. */
static enum corq_reason
syn_sent_syn(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	take_syn_options(e, c, seg);
	c->state = CORQ_SYN_RCVD;
	c->flags |= CORQ_CF_SYN;
	corq_conn_mark_urgent(e, c);
	return CORQ_R_NONE;
}

static enum corq_reason
input_syn_sent(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	/* Of a SYN that has left: one that waits in its queue cannot be answered. */
	bool ack_ok =
		(seg->flags & CORQ_TH_ACK) && seg->ack == c->snd_nxt && c->snd_nxt != c->snd_una;

	if ((seg->flags & CORQ_TH_ACK) && !ack_ok) { /* first: the ACK bit */
		if (seg->flags & CORQ_TH_RST)
			return CORQ_R_TCP_SYN_SENT_RST;
		corq_reply_conn(e, c, CORQ_TH_RST, seg->ack);
		/* An old connection answered (its TIME_WAIT, or a half-dead peer). Our RST clears
		 * it; ask again now rather than in a second (gvisor#7619, SEMANTICS H12). */
		if (!(seg->flags & CORQ_TH_SYN) && c->backoff < e->cfg.syn_retries) {
			c->backoff++; /* it is a retry: a peer that ignores our RST ends them */
			c->flags |= CORQ_CF_SYN;
			corq_conn_mark_urgent(e, c);
		}
		return CORQ_R_TCP_SYN_SENT_BAD_ACK;
	}
	if (seg->flags & CORQ_TH_RST) { /* second */
		if (!ack_ok)
			return CORQ_R_TCP_SYN_SENT_RST;
		e->stats.rst_in++;
		corq_count(e, CORQ_R_TCP_RST_TAKEN);
		corq_conn_end(e, c, ECONNREFUSED);
		return CORQ_R_NONE;
	}
	if (!(seg->flags & CORQ_TH_SYN))
		return CORQ_R_TCP_SYN_SENT_NO_SYN;
	return ack_ok ? syn_sent_synack(e, c, seg) : syn_sent_syn(e, c, seg);
}

/* ---- dispatch ---- */

enum corq_reason
corq_input_conn(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg)
{
	if (CORQ_UNLIKELY(c->state == CORQ_SYN_SENT))
		return input_syn_sent(e, c, seg);
	return input_synchronised(e, c, seg);
}

static enum corq_reason
input_record(struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key)
{
	switch (corq_record_at(e, rec)->kind) {
	case CORQ_REC_HALF_OPEN:
		return corq_half_open_input(e, rec, seg, key);
	case CORQ_REC_FIN_WAIT2:
		return corq_fin_wait2_input(e, rec, seg, key);
	default:
		return corq_time_wait_input(e, rec, seg, key);
	}
}

/* LISTEN (3.10.7.2) and CLOSED (3.10.7.1). */
static enum corq_reason
input_no_conn(struct corq_engine *e, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_listener *l;

	if (seg->flags & CORQ_TH_RST)
		return CORQ_R_TCP_RST_NO_CONN;
	l = corq_listener_find(e, key);
	if (l && !(seg->flags & CORQ_TH_ACK) && (seg->flags & CORQ_TH_SYN))
		return corq_listen_input(e, l, seg, key, 0);
	if (l && !(seg->flags & (CORQ_TH_ACK | CORQ_TH_SYN)))
		return CORQ_R_TCP_NO_ACK_FLAG;
	corq_reply_rst(e, seg, key);
	return l || !(seg->flags & CORQ_TH_SYN) ? CORQ_R_TCP_NO_CONN : CORQ_R_TCP_NO_LISTENER;
}

enum corq_reason
corq_tcp_input(struct corq_engine *e, struct corq_seg *seg, const struct corq_key *key)
{
	uint32_t val = seg->hint;

	if (!corq_engine_hint_ok(e, val, key))
		val = corq_engine_lookup(e, key, seg->hash);
	return corq_tcp_input_at(e, seg, key, val);
}

enum corq_reason
corq_tcp_input_at(
	struct corq_engine *e, struct corq_seg *seg, const struct corq_key *key, uint32_t val)
{
	enum corq_reason rc;

	e->in_val = val;
	e->in_hash = seg->hash;
	if (CORQ_UNLIKELY(val == CORQ_NONE))
		rc = input_no_conn(e, seg, key);
	else if (CORQ_UNLIKELY(val & CORQ_VAL_RECORD))
		rc = input_record(e, val & ~CORQ_VAL_RECORD, seg, key);
	else
		rc = corq_input_conn(e, corq_conn_at(e, val), seg);
	e->in_val = CORQ_NONE;
	if (rc != CORQ_R_NONE)
		corq_count(e, rc);
	if (seg->frame)
		corq_engine_free_frame(e, seg->frame);
	return rc;
}
