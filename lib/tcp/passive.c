/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * passive.c - connections that are half open: a SYN came, our SYN-ACK left.
 *
 * A half-open connection is a 64-byte record, not a tcb: a flood of SYNs costs 64 bytes each up to
 * a bound, at which the oldest half-open record gives way (counted). The third ACK makes the tcb,
 * the handle and on_open. SYN-ACK waits double from class to class (RFC 6298 5.5); after the last
 * the record goes silently.
 *
 *   event on a half-open record              what happens
 *   the same SYN again (same SEQ)            the same SYN-ACK, same ISN (RFC 9293 3.10.7.4)
 *   another SYN                              challenge by ACK (RFC 5961 4)
 *   ACK of our SYN-ACK                       connection; its payload and FIN are taken with it
 *   another ACK                              RST with SEQ = that ACK; the record stays
 *   RST exactly at RCV.NXT                   record goes (back to LISTEN)
 *   listener closed                          records go silently at once
 *   listener drains                          as before: half-open ones may complete
 *   ACK, accept queue full                   dropped, the SYN-ACK comes again; RST if so asked
 *   bare ACK, DEFER_ACCEPT                   waits for data: no SYN-ACK until the time is over,
 * then one more, and a bare ACK completes
 */
#include "tcp/internal.h"

#include <errno.h>

/* ---- the SYN ---- */

static void
send_synack(struct corq_engine *e, const struct corq_record *r, const struct corq_key *key)
{
	struct corq_reply *p = corq_reply_new(e);

	if (!p)
		return; /* the peer's SYN comes again */
	*p = (struct corq_reply){.src = key->laddr,
		.dst = key->raddr,
		.sport = key->lport,
		.dport = key->rport,
		.seq = r->snd_nxt - 1,
		.ack = r->rcv_nxt,
		.ts_off = r->ts_off,
		.tsecr = r->ts_recent,
		.wnd = (uint16_t)CORQ_MIN(e->cfg.rcv_buf, 65535u),
		.mss = corq_mss_ours(e, &key->laddr),
		.flags = CORQ_TH_SYN | CORQ_TH_ACK,
		.wscale = e->cfg.rcv_wscale,
		.opts = CORQ_OPT_MSS | (r->flags & CORQ_RF_TS ? CORQ_OPT_TS : 0) |
			(r->flags & CORQ_RF_SACK ? CORQ_OPT_SACK_OK : 0) |
			(r->flags & CORQ_RF_WSCALE ? CORQ_OPT_WSCALE : 0)};
}

/* What of the peer's offer we take: an option is answered only if it was offered (H1). */
static void
take_offer(struct corq_engine *e, struct corq_record *r, const struct corq_seg *seg)
{
	const struct corq_tcp_config *cfg = &e->cfg;

	r->flags = 0;
	r->wscale = 0;
	if ((seg->opts & CORQ_OPT_TS) && cfg->timestamps) {
		r->flags |= CORQ_RF_TS;
		r->ts_recent = seg->tsval;
	}
	if ((seg->opts & CORQ_OPT_SACK_OK) && cfg->sack)
		r->flags |= CORQ_RF_SACK;
	if ((seg->opts & CORQ_OPT_WSCALE) && cfg->wscale) {
		r->flags |= CORQ_RF_WSCALE;
		r->wscale = (uint8_t)(seg->wscale << 4 | cfg->rcv_wscale);
	}
	r->mss = seg->opts & CORQ_OPT_MSS ? seg->mss : 0;
	r->wnd = seg->wnd;
}

/* Established flows come first: with a sixteenth of the connections free or less, or no room for
 * replies, a new SYN is not even answered; the peer asks again in a second. */
static bool
shed(const struct corq_engine *e)
{
	return e->conns.n_free < e->conns.n / 16 || e->reply_n > CORQ_URGENT_MAX * 3 / 4;
}

enum corq_reason
corq_listen_input(struct corq_engine *e, struct corq_listener *l, struct corq_seg *seg,
	const struct corq_key *key, uint32_t min_isn)
{
	uint32_t laddr = corq_engine_laddr(e, &key->laddr);
	uint64_t isn = corq_isn_hash(&e->isn, key);
	uint32_t idx, iss;
	struct corq_record *r;

	if (shed(e) || laddr == CORQ_NONE)
		return CORQ_R_TCP_SYN_SHED;
	if (l->draining)
		return CORQ_R_TCP_SYN_DRAINED;
	if (corq_listener_full(l))
		return CORQ_R_TCP_SYN_BACKLOG;
	if (l->n_half_open >= l->max_half_open)
		corq_half_open_evict(e, (uint8_t)(l - e->listeners));
	idx = corq_record_new(e, CORQ_REC_HALF_OPEN);
	if (idx == CORQ_NONE)
		return CORQ_R_TCP_SYN_SHED;
	r = corq_record_at(e, idx);
	r->raddr = key->raddr;
	r->rport = key->rport;
	r->lport = key->lport;
	r->laddr_idx = (uint16_t)laddr;
	r->listener = (uint8_t)(l - e->listeners);
	r->retries = 0;
	take_offer(e, r, seg);
	iss = corq_isn_of(&e->isn, isn, e->now_ns, &r->ts_off);
	if (min_isn && corq_seq_lt(iss, min_isn))
		iss = min_isn;
	r->snd_nxt = iss + 1;
	r->rcv_nxt = seg->seq + 1;
	r->stamp = e->now_tick;
	if (corq_table_insert(&e->table, seg->hash, idx | CORQ_VAL_RECORD) < 0) {
		r->listener = CORQ_MAX_LISTENERS; /* not counted yet */
		corq_record_free(e, idx);
		return CORQ_R_TCP_SYN_SHED;
	}
	e->changes++;
	l->n_half_open++;
	corq_record_start(e, idx, CORQ_RC_SYNACK0);
	e->stats.conn_opened_passive++;
	send_synack(e, r, key);
	return CORQ_R_NONE;
}

/* The oldest half-open record of a listener: those that were asked most often first. */
void
corq_half_open_evict(struct corq_engine *e, uint8_t listener)
{
	for (int c = CORQ_RC_SYNACK5; c >= CORQ_RC_SYNACK0; c--) {
		uint32_t i = e->rec_list[c].head;

		/* Bounded look: with several listeners the head may be another's. */
		for (int n = 0; i != CORQ_NONE && n < 32; n++) {
			if (corq_record_at(e, i)->listener == listener ||
				listener == CORQ_MAX_LISTENERS) {
				corq_count(e, CORQ_R_TCP_HALF_OPEN_EVICTED);
				corq_record_free(e, i);
				return;
			}
			i = corq_dlist_next(&e->rec_space, i);
		}
	}
}

/* ---- segments of a half-open record ---- */

static void
answer_ack(struct corq_engine *e, const struct corq_record *r, const struct corq_key *key)
{
	corq_reply_record(e, r, key, CORQ_TH_ACK, r->snd_nxt);
}

/* The record's facts become a connection in ESTABLISHED. */
static void
conn_from_record(struct corq_engine *e, struct corq_conn *c, const struct corq_record *r,
	const struct corq_seg *seg)
{
	const struct corq_listener *l = &e->listeners[r->listener];

	c->flags = CORQ_CF_PASSIVE;
	if (r->flags & CORQ_RF_TS) {
		c->flags |= CORQ_CF_TS;
		c->ts_off = r->ts_off;
		c->ts_recent = r->ts_recent;
		c->ts_age = (uint16_t)(e->now_ns >> 36);
	}
	if (r->flags & CORQ_RF_SACK)
		c->flags |= CORQ_CF_SACK;
	if (r->flags & CORQ_RF_WSCALE)
		c->flags |= CORQ_CF_WSCALE;
	if (r->flags & CORQ_RF_SYNACK_RTX)
		c->flags |= CORQ_CF_SYN_RTX;
	else if (!(r->flags & CORQ_RF_DEFERRED)) /* whose time is the program's */
		corq_rtt_sample(
			c, (uint32_t)CORQ_MIN(
				   ((uint64_t)(e->now_tick - r->stamp) << CORQ_TICK_SHIFT) / 1000,
				   UINT32_MAX));
	c->wscale = r->wscale;
	c->mss = corq_mss_effective(e, &c->laddr, r->mss, r->flags & CORQ_RF_TS);
	c->rcv_nxt = c->last_ack_sent = r->rcv_nxt;
	c->rcv_adv = c->rcv_nxt + CORQ_MIN(e->cfg.rcv_buf, 65535u);
	c->snd_una = c->snd_nxt = c->snd_end = r->snd_nxt;
	c->snd_wnd = r->wnd;
	c->max_wnd = (uint16_t)(r->wnd >> corq_conn_snd_wscale(c));
	c->snd_wl1 = seg->seq - 1; /* the third ACK sets the window, scaled */
	c->snd_wl2 = seg->ack;
	c->ops = (uint8_t)l->ops;
	c->user = l->opts.user;
}

static enum corq_reason
accept_conn(struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_record r = *corq_record_at(e, rec);
	struct corq_listener *l = &e->listeners[r.listener];
	uint32_t idx;
	int err;

	idx = corq_conn_new(e, key, seg->hash, r.laddr_idx, &err);
	if (idx == CORQ_NONE)
		return CORQ_R_TCP_ACCEPT_NOMEM; /* the record stays: SYN-ACK and ACK come again */
	corq_record_free(e, rec);
	e->in_val = idx;
	conn_from_record(e, corq_conn_at(e, idx), &r, seg);
	if (l->opts.queue)
		corq_listener_enqueue(e, l, corq_conn_at(e, idx));
	corq_conn_established(e, corq_conn_at(e, idx));
	seg->hint = idx;
	return corq_input_conn(e, corq_conn_at(e, idx), seg);
}

/* An ACK of our SYN-ACK: does it make a connection now? */
static enum corq_reason
third_ack(struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_record *r = corq_record_at(e, rec);
	const struct corq_listener *l = &e->listeners[r->listener];

	if (r->retries < l->defer && corq_seg_seqlen(seg) == 0) {
		r->flags |= CORQ_RF_DEFERRED;
		return CORQ_R_TCP_ACCEPT_DEFERRED;
	}
	if (!corq_listener_full(l))
		return accept_conn(e, rec, seg, key);
	if (l->opts.abort_on_overflow) {
		corq_reply_record(e, r, key, CORQ_TH_RST, seg->ack);
		corq_record_free(e, rec);
	}
	return CORQ_R_TCP_ACCEPT_FULL;
}

static bool
in_window(const struct corq_engine *e, const struct corq_record *r, const struct corq_seg *seg)
{
	return corq_seg_in_window(seg, r->rcv_nxt, CORQ_MIN(e->cfg.rcv_buf, 65535u));
}

enum corq_reason
corq_half_open_input(
	struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_record *r = corq_record_at(e, rec);

	if (seg->flags & CORQ_TH_RST) {
		if (seg->seq == r->rcv_nxt) {
			corq_record_free(e, rec);
			e->stats.rst_in++;
			corq_count(e, CORQ_R_TCP_RST_TAKEN);
			return CORQ_R_NONE;
		}
		if (!in_window(e, r, seg))
			return CORQ_R_TCP_RST_OUT_OF_WINDOW;
		answer_ack(e, r, key);
		return CORQ_R_TCP_RST_CHALLENGED;
	}
	if (seg->flags & CORQ_TH_SYN) {
		if (seg->seq + 1 == r->rcv_nxt && !(seg->flags & CORQ_TH_ACK)) {
			r->flags |= CORQ_RF_SYNACK_RTX;
			send_synack(e, r, key);
			return CORQ_R_NONE;
		}
		answer_ack(e, r, key);
		return CORQ_R_TCP_SYN_CHALLENGED;
	}
	if ((r->flags & CORQ_RF_TS) && !(seg->opts & CORQ_OPT_TS))
		return CORQ_R_TCP_NO_TS;
	if ((r->flags & CORQ_RF_TS) && corq_seq_lt(seg->tsval, r->ts_recent)) {
		answer_ack(e, r, key);
		return CORQ_R_TCP_PAWS;
	}
	if (!in_window(e, r, seg)) {
		answer_ack(e, r, key);
		return CORQ_R_TCP_OUT_OF_WINDOW;
	}
	if (!(seg->flags & CORQ_TH_ACK))
		return CORQ_R_TCP_NO_ACK_FLAG;
	if (seg->ack != r->snd_nxt) {
		corq_reply_record(e, r, key, CORQ_TH_RST, seg->ack);
		return CORQ_R_TCP_SYN_RCVD_BAD_ACK;
	}
	return third_ack(e, rec, seg, key);
}

/* The wait of a SYN-ACK is over: again with double the wait, or the end. */
void
corq_half_open_timer(struct corq_engine *e, uint32_t rec)
{
	struct corq_record *r = corq_record_at(e, rec);
	struct corq_key key;

	if (r->retries >= e->cfg.synack_retries) {
		corq_count(e, CORQ_R_TCP_SYNACK_GIVEN_UP);
		corq_record_free(e, rec);
		return;
	}
	r->retries++;
	/* Deferred: the peer has our SYN-ACK, and is asked once, when a bare ACK is enough. */
	if (!(r->flags & CORQ_RF_DEFERRED) || r->retries >= e->listeners[r->listener].defer) {
		r->flags |= CORQ_RF_SYNACK_RTX;
		corq_record_key(e, r, &key);
		e->stats.syn_retransmitted++;
		e->stats.segs_retransmitted++;
		send_synack(e, r, &key);
	}
	corq_record_start(e, rec,
		(enum corq_record_class)CORQ_MIN(CORQ_RC_SYNACK0 + r->retries, CORQ_RC_SYNACK5));
}
