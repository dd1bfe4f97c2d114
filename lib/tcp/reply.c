/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply.c - segments of no connection: RST, SYN-ACK of half-open records, answers of TIME_WAIT.
 *
 * A reply is complete in itself, because what caused it may be gone when step 7 builds it. The
 * ring is bounded; a reply that does not fit is dropped and counted, and the peer asks again.
 */
#include "tcp/internal.h"

struct corq_reply *
corq_reply_new(struct corq_engine *e)
{
	struct corq_reply *r;

	if (e->reply_n == CORQ_URGENT_MAX) {
		corq_count(e, CORQ_R_TCP_REPLY_FULL);
		return NULL;
	}
	r = &e->replies[(e->reply_head + e->reply_n++) % CORQ_URGENT_MAX];
	memset(r, 0, sizeof(*r));
	return r;
}

static struct corq_reply *
addressed(struct corq_engine *e, const struct corq_key *key, uint8_t flags)
{
	struct corq_reply *r = corq_reply_new(e);

	if (!r)
		return NULL;
	r->src = key->laddr;
	r->dst = key->raddr;
	r->sport = key->lport;
	r->dport = key->rport;
	r->flags = flags;
	if (flags & CORQ_TH_RST)
		e->stats.rst_out++;
	return r;
}

/* Never in answer to a RST; seq from the ACK if there is one, else 0 and an ACK of what came. */
void
corq_reply_rst(struct corq_engine *e, const struct corq_seg *seg, const struct corq_key *key)
{
	bool has_ack = seg->flags & CORQ_TH_ACK;
	struct corq_reply *r;

	if (seg->flags & CORQ_TH_RST)
		return;
	r = addressed(e, key, CORQ_TH_RST | (has_ack ? 0 : CORQ_TH_ACK));
	if (!r)
		return;
	r->seq = has_ack ? seg->ack : 0;
	r->ack = has_ack ? 0 : seg->seq + corq_seg_seqlen(seg);
}

void
corq_reply_conn(struct corq_engine *e, const struct corq_conn *c, uint8_t flags, uint32_t seq)
{
	struct corq_reply *r;
	struct corq_key key;

	corq_conn_key(c, &key);
	r = addressed(e, &key, flags);
	if (!r)
		return;
	r->seq = seq;
	r->ack = c->rcv_nxt;
	if (c->flags & CORQ_CF_TS) {
		r->opts = CORQ_OPT_TS;
		r->ts_off = c->ts_off;
		r->tsecr = c->ts_recent;
	}
}

void
corq_reply_record(struct corq_engine *e, const struct corq_record *rec, const struct corq_key *key,
	uint8_t flags, uint32_t seq)
{
	struct corq_reply *r = addressed(e, key, flags);
	uint16_t wnd = rec->wnd;

	if (!r)
		return;
	if (rec->kind == CORQ_REC_HALF_OPEN) /* its wnd is the peer's */
		wnd = (uint16_t)(CORQ_MIN(e->cfg.rcv_buf, 65535u) >> (rec->wscale & 15));
	r->seq = seq;
	r->ack = rec->rcv_nxt;
	r->wnd = flags & CORQ_TH_RST ? 0 : wnd;
	if (rec->flags & CORQ_RF_TS) {
		r->opts = CORQ_OPT_TS;
		r->ts_off = rec->ts_off;
		r->tsecr = rec->ts_recent;
	}
}

/* Appends the reply's packet; false when no frame is left (the reply stays). */
bool
corq_reply_build(struct corq_engine *e, const struct corq_reply *r, struct corq_outbuf *ob)
{
	struct corq_frame *f = ob->n < ob->max ? corq_txf_take(e, CORQ_TXF_CONTROL) : NULL;
	uint32_t tsval = e->now_ms + r->ts_off;
	uint16_t neigh = CORQ_NEIGH_NONE;
	struct corq_tcp_out o;

	if (!f)
		return false;
	o.src = &r->src;
	o.dst = &r->dst;
	o.sport = r->sport;
	o.dport = r->dport;
	o.seq = r->seq;
	o.ack = r->flags & CORQ_TH_ACK ? r->ack : 0;
	o.wnd = r->wnd;
	o.flags = r->flags;
	o.opt_len = 0;
	o.ecn = 0;
	o.ttl = 64;
	if (r->flags & CORQ_TH_SYN) {
		struct corq_syn_opts s = {.tsval = tsval,
			.tsecr = r->tsecr,
			.mss = r->mss,
			.wscale = r->wscale,
			.has_ts = r->opts & CORQ_OPT_TS,
			.has_sack = r->opts & CORQ_OPT_SACK_OK,
			.has_wscale = r->opts & CORQ_OPT_WSCALE};

		corq_opt_put_syn(&o, &s);
	} else if (r->opts & CORQ_OPT_TS) {
		corq_opt_put_ts(&o, tsval, r->tsecr);
	}
	corq_egress(e, f, &o, &neigh, ob);
	return true;
}
