/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timewait.c - tuples that outlive their connection: TIME_WAIT and orphaned FIN_WAIT_2 records.
 *
 * Why records and not whole connections: at 500 k closes a second a minute of TIME_WAIT is 30 M
 * tuples; at 64 bytes in a list that is 2 GB that nobody walks, at a tcb each it would not fit.
 *
 *   TIME_WAIT, on                            answer                          timer
 *   FIN again, or data                       ACK (at most 2 a second)        starts over
 *   bare ACK at RCV.NXT                      none (else two would play on)   runs on
 *   SYN, timestamp newer or SEQ > RCV.NXT    a new connection (RFC 6191)     record goes
 *   any other SYN                            ACK of the old connection       runs on
 *   RST                                      none: RFC 1337; but one exactly at RCV.NXT after we
 *                                            answered a SYN frees it: the peer asked us to
 *   older timestamp (PAWS)                   ACK (limited)                   runs on
 *
 *   FIN_WAIT_2 (orphan), on
 *   FIN at RCV.NXT                           ACK                             becomes TIME_WAIT
 *   data                                     RST, SEQ = its ACK: nobody reads; record goes
 *   RST exactly at RCV.NXT                   none                            record goes
 *   time over                                none; a later segment gets RST
 */
#include "tcp/internal.h"

#include <errno.h>

#define ANSWER_GAP_US 500000 /* at most two answers a second and record (SEMANTICS T8) */

/* ---- from connection to record ---- */

static void
fill_from_conn(struct corq_engine *e, struct corq_record *r, struct corq_conn *c)
{
	r->raddr = c->raddr;
	r->rport = c->rport;
	r->lport = c->lport;
	r->laddr_idx = c->laddr_idx;
	r->snd_nxt = c->snd_nxt;
	r->rcv_nxt = c->rcv_nxt;
	r->ts_recent = c->ts_recent;
	r->ts_off = c->ts_off;
	r->stamp = e->now_tick - corq_us_to_ticks(ANSWER_GAP_US);
	r->wscale = c->wscale;
	r->wnd = (uint16_t)CORQ_MIN(
		(c->rcv_adv - c->rcv_nxt) >> corq_conn_rcv_wscale(c), UINT16_MAX);
	r->entered = e->now_tick;
	if (c->flags & CORQ_CF_TS)
		r->flags |= CORQ_RF_TS;
	if (c->flags & CORQ_CF_PORT_HELD) {
		r->flags |= CORQ_RF_ACTIVE;
		c->flags &= ~(uint32_t)CORQ_CF_PORT_HELD;
		corq_ports_wait(&e->ports);
	} else if (!(c->flags & CORQ_CF_PASSIVE)) { /* the program chose the port: once, here */
		corq_isn_leave_off(&e->isn, c->ts_off, c->snd_nxt, e->now_ns);
	}
}

/* The tuple of c goes to a new record of this kind. CORQ_NONE: no record to be had. */
static uint32_t
hand_over(struct corq_engine *e, struct corq_conn *c, enum corq_record_kind kind)
{
	uint32_t rec = corq_record_new(e, kind);

	if (rec == CORQ_NONE)
		return CORQ_NONE;
	fill_from_conn(e, corq_record_at(e, rec), c);
	corq_table_replace(
		&e->table, corq_conn_hash(e, c), corq_conn_idx(e, c), rec | CORQ_VAL_RECORD);
	e->changes++;
	c->flags |= CORQ_CF_DETACHED;
	return rec;
}

static void
answer_ack(struct corq_engine *e, const struct corq_record *r, const struct corq_key *key)
{
	corq_reply_record(e, r, key, CORQ_TH_ACK, r->snd_nxt);
}

/* An answer, unless one left less than half a second ago. */
static bool
answer_limited(struct corq_engine *e, struct corq_record *r, const struct corq_key *key)
{
	if (e->now_tick - r->stamp < corq_us_to_ticks(ANSWER_GAP_US))
		return false;
	r->stamp = e->now_tick;
	answer_ack(e, r, key);
	return true;
}

void
corq_time_wait_enter(struct corq_engine *e, struct corq_conn *c)
{
	bool owed = c->acks_owed || (c->flags & (CORQ_CF_ACK_NOW | CORQ_CF_ACK_DELAY));
	uint32_t rec = hand_over(e, c, CORQ_REC_TIME_WAIT);
	struct corq_work *w;
	struct corq_key key;

	c->state = CORQ_TIME_WAIT;
	if (rec != CORQ_NONE) {
		corq_record_start(e, rec, CORQ_RC_TIME_WAIT);
		e->stats.tw_entered++;
		corq_conn_key(c, &key);
		if (owed)
			answer_ack(e, corq_record_at(e, rec), &key);
	} else { /* the tuple is forgotten, the ACK is not */
		corq_count(e, CORQ_R_TCP_TW_FORGOTTEN);
		if (owed)
			corq_reply_conn(e, c, CORQ_TH_ACK, c->snd_nxt);
	}
	if (c->flags & CORQ_CF_ORPHAN) {
		corq_conn_end(e, c, 0);
		return;
	}
	/* Reachable by the program only: it reads what is there and closes. */
	corq_conn_detach(e, c);
	corq_conn_purge_send(e, c);
	c->acks_owed = 0;
	c->flags &= ~(uint32_t)(CORQ_CF_ACK_NOW | CORQ_CF_ACK_DELAY | CORQ_CF_WND_UPDATE);
	w = corq_conn_work(e, c);
	if (w) {
		corq_timer_dack_off(e, w);
		corq_conn_drop_work(e, c);
	}
}

void
corq_tcp_set_linger2(struct corq_conn *c, int seconds)
{
	uint32_t code = 0; /* above the last class: the engine's time */

	if (seconds < 0)
		code = CORQ_LINGER2_RST;
	for (uint32_t i = 0;
		seconds > 0 && code == 0 && i <= CORQ_RC_FIN_WAIT2_5 - CORQ_RC_FIN_WAIT2_0; i++)
		if (seconds <= 1 << i)
			code = i + 1;
	c->flags &= ~(15u << CORQ_CF_LINGER2_SHIFT);
	c->flags |= code << CORQ_CF_LINGER2_SHIFT;
}

static enum corq_record_class
fin_wait2_class(const struct corq_conn *c)
{
	unsigned code = corq_conn_linger2(c);

	if (code == 0 || code == CORQ_LINGER2_RST)
		return CORQ_RC_FIN_WAIT2;
	return (enum corq_record_class)(CORQ_RC_FIN_WAIT2_0 + code - 1);
}

void
corq_fin_wait2_enter(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_key key;
	uint32_t rec;

	/* All that was sent has been acknowledged, and nobody waits for the peer's FIN. */
	if (corq_conn_linger2(c) == CORQ_LINGER2_RST) {
		corq_conn_reset(e, c, 0);
		return;
	}
	rec = hand_over(e, c, CORQ_REC_FIN_WAIT2);
	if (rec == CORQ_NONE) {
		corq_conn_end(e, c, 0);
		return;
	}
	corq_record_start(e, rec, fin_wait2_class(c));
	corq_conn_key(c, &key);
	if (c->acks_owed || (c->flags & (CORQ_CF_ACK_NOW | CORQ_CF_ACK_DELAY)))
		answer_ack(e, corq_record_at(e, rec), &key);
	corq_conn_end(e, c, 0);
}

/* ---- TIME_WAIT ---- */

static enum corq_reason
time_wait_rst(struct corq_engine *e, uint32_t rec, const struct corq_seg *seg)
{
	struct corq_record *r = corq_record_at(e, rec);

	if (seg->seq == r->rcv_nxt && (!e->cfg.rfc1337 || (r->flags & CORQ_RF_ANSWERED_SYN))) {
		corq_count(e, e->cfg.rfc1337 ? CORQ_R_TCP_TW_RST_ASKED : CORQ_R_TCP_TW_RST_TAKEN);
		corq_record_free(e, rec);
		e->stats.rst_in++;
		return CORQ_R_NONE;
	}
	return CORQ_R_TCP_TW_RST;
}

static enum corq_reason
time_wait_syn(struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_record *r = corq_record_at(e, rec);
	struct corq_listener *l = corq_listener_find(e, key);
	bool ts = (r->flags & CORQ_RF_TS) && (seg->opts & CORQ_OPT_TS);
	bool newer = ts && corq_seq_gt(seg->tsval, r->ts_recent);
	bool older = ts && corq_seq_lt(seg->tsval, r->ts_recent);

	if (l && (newer || (!older && corq_seq_gt(seg->seq, r->rcv_nxt)))) {
		uint32_t above = r->snd_nxt + 65537;

		if (l->draining) /* a SYN that is not taken ends no record */
			return CORQ_R_TCP_SYN_DRAINED;
		if (corq_listener_full(l))
			return CORQ_R_TCP_SYN_BACKLOG;
		corq_count(e, newer ? CORQ_R_TCP_TW_SYN_TS : CORQ_R_TCP_TW_SYN_SEQ);
		corq_record_free(e, rec);
		e->stats.tw_recycled_syn++;
		return corq_listen_input(e, l, seg, key, above ? above : 1);
	}
	if (!answer_limited(e, r, key))
		return CORQ_R_TCP_TW_LIMITED;
	r->flags |= CORQ_RF_ANSWERED_SYN;
	return older ? CORQ_R_TCP_TW_SYN_PAWS : CORQ_R_TCP_TW_SYN_REFUSED;
}

enum corq_reason
corq_time_wait_input(
	struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_record *r = corq_record_at(e, rec);
	bool ts = (r->flags & CORQ_RF_TS) && (seg->opts & CORQ_OPT_TS);

	if (seg->flags & CORQ_TH_RST)
		return time_wait_rst(e, rec, seg);
	if ((seg->flags & CORQ_TH_SYN) && !(seg->flags & CORQ_TH_ACK))
		return time_wait_syn(e, rec, seg, key);
	if (!(seg->flags & CORQ_TH_ACK))
		return CORQ_R_TCP_NO_ACK_FLAG;
	if ((r->flags & CORQ_RF_TS) && !ts)
		return CORQ_R_TCP_NO_TS;
	if (ts && corq_seq_lt(seg->tsval, r->ts_recent))
		return answer_limited(e, r, key) ? CORQ_R_TCP_TW_PAWS : CORQ_R_TCP_TW_LIMITED;
	if (corq_seg_seqlen(seg) == 0 && seg->seq == r->rcv_nxt)
		return CORQ_R_TCP_DUPLICATE;
	if (seg->flags & CORQ_TH_SYN) /* SYN-ACK of another life */
		return answer_limited(e, r, key) ? CORQ_R_TCP_TW_DATA : CORQ_R_TCP_TW_LIMITED;
	if (corq_seg_seqlen(seg)) {
		corq_count(e, CORQ_R_TCP_TW_RESTARTED);
		corq_record_start(e, rec, CORQ_RC_TIME_WAIT);
	}
	return answer_limited(e, r, key) ? CORQ_R_TCP_TW_DATA : CORQ_R_TCP_TW_LIMITED;
}

bool
corq_time_wait_reuse(struct corq_engine *e, uint32_t rec, uint32_t *isn_above)
{
	struct corq_record *r = corq_record_at(e, rec);

	if (r->kind != CORQ_REC_TIME_WAIT)
		return false;
	if (e->cfg.timewait == CORQ_TW_STRICT) {
		corq_count(e, CORQ_R_TCP_TW_OWN_STRICT);
		return false;
	}
	if (!(r->flags & CORQ_RF_TS)) {
		corq_count(e, CORQ_R_TCP_TW_OWN_NO_TS);
		return false;
	}
	if (e->now_tick - r->entered < e->cfg.reuse_delay_ticks) {
		corq_count(e, CORQ_R_TCP_TW_OWN_DELAY);
		return false;
	}
	*isn_above = r->snd_nxt + 65537;
	corq_record_free(e, rec);
	e->stats.tw_reused_own++;
	e->ports.n_recycled++;
	return true;
}

/* ---- FIN_WAIT_2 ---- */

/* The peer's FIN: the same record is a TIME_WAIT one from now on. */
static void
become_time_wait(struct corq_engine *e, uint32_t rec, const struct corq_key *key)
{
	struct corq_record *r = corq_record_at(e, rec);

	if (e->rec_n[CORQ_REC_TIME_WAIT] >= e->rec_max[CORQ_REC_TIME_WAIT])
		corq_record_evict(e, CORQ_REC_TIME_WAIT);
	corq_record_set_kind(e, r, CORQ_REC_TIME_WAIT);
	r->rcv_nxt++;
	r->entered = e->now_tick;
	corq_record_start(e, rec, CORQ_RC_TIME_WAIT);
	e->stats.tw_entered++;
	answer_ack(e, r, key);
}

static enum corq_reason
fin_wait2_rst(
	struct corq_engine *e, uint32_t rec, const struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_record *r = corq_record_at(e, rec);

	if (seg->seq == r->rcv_nxt) {
		corq_record_free(e, rec);
		e->stats.rst_in++;
		corq_count(e, CORQ_R_TCP_RST_TAKEN);
		return CORQ_R_NONE;
	}
	if (seg->seq - r->rcv_nxt >= (uint32_t)r->wnd << (r->wscale & 15))
		return CORQ_R_TCP_RST_OUT_OF_WINDOW;
	answer_limited(e, r, key);
	return CORQ_R_TCP_RST_CHALLENGED;
}

/* RFC 9293 3.10.7.4 in its order, as far as no connection is needed for it; CORQ_R_COUNT: the
 * segment may count. MAX.SND.WND of RFC 5961 5.2 is not kept: the most that 16 bits can say. */
static enum corq_reason
fin_wait2_refuses(const struct corq_record *r, const struct corq_seg *seg)
{
	if ((r->flags & CORQ_RF_TS) && !(seg->opts & CORQ_OPT_TS) && !(seg->flags & CORQ_TH_SYN))
		return CORQ_R_TCP_NO_TS;
	if ((r->flags & CORQ_RF_TS) && (seg->opts & CORQ_OPT_TS) &&
		corq_seq_lt(seg->tsval, r->ts_recent))
		return CORQ_R_TCP_PAWS;
	if (!corq_seg_in_window(seg, r->rcv_nxt, (uint32_t)r->wnd << (r->wscale & 15)))
		return CORQ_R_TCP_OUT_OF_WINDOW;
	if (seg->flags & CORQ_TH_SYN)
		return CORQ_R_TCP_SYN_CHALLENGED;
	if (!(seg->flags & CORQ_TH_ACK))
		return CORQ_R_TCP_NO_ACK_FLAG;
	if (corq_seq_gt(seg->ack, r->snd_nxt))
		return CORQ_R_TCP_ACK_TOO_NEW;
	if (corq_seq_lt(seg->ack, r->snd_nxt - (65535u << (r->wscale >> 4))))
		return CORQ_R_TCP_ACK_TOO_OLD;
	return CORQ_R_COUNT;
}

enum corq_reason
corq_fin_wait2_input(
	struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_record *r = corq_record_at(e, rec);
	enum corq_reason refused;

	if (seg->flags & CORQ_TH_RST)
		return fin_wait2_rst(e, rec, seg, key);
	refused = fin_wait2_refuses(r, seg);
	if (refused != CORQ_R_COUNT) {
		if (refused != CORQ_R_TCP_NO_TS && refused != CORQ_R_TCP_NO_ACK_FLAG)
			answer_limited(e, r, key);
		return refused;
	}
	if ((r->flags & CORQ_RF_TS) && corq_seq_le(seg->seq, r->rcv_nxt))
		r->ts_recent = seg->tsval;
	if (seg->len && corq_seq_gt(seg->seq + seg->len, r->rcv_nxt)) {
		corq_reply_record(e, r, key, CORQ_TH_RST, seg->ack);
		corq_record_free(e, rec);
		return CORQ_R_TCP_DATA_AFTER_CLOSE;
	}
	if ((seg->flags & CORQ_TH_FIN) && seg->seq + seg->len == r->rcv_nxt) {
		become_time_wait(e, rec, key);
		return CORQ_R_NONE;
	}
	if (corq_seg_seqlen(seg)) /* old, or a FIN ahead of its data */
		answer_limited(e, r, key);
	return CORQ_R_TCP_DUPLICATE;
}
