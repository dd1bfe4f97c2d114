/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp_in.c - what the network says about our segments (RFC 1122 4.2.3.9, 5461, 5927).
 *
 * An error counts only when it quotes a connection of ours and a sequence number in flight. Before
 * the connection is synchronised a hard error ends the open; later all errors are soft: counted,
 * nothing else. "Fragmentation needed" lowers the MSS, never below what 576 bytes leave, and what
 * was lost is sent again at once without touching the congestion window.
 */
#include "net/parse.h"
#include "tcp/internal.h"

#include <errno.h>

#define PMTU_MIN 576 /* RFC 1122 3.3.2; below it a message is a lie (SEMANTICS I3) */

static bool
in_flight(const struct corq_conn *c, uint32_t seq)
{
	return corq_seq_ge(seq, c->snd_una) && corq_seq_lt(seq, c->snd_nxt);
}

static enum corq_reason
frag_needed(struct corq_engine *e, struct corq_conn *c, uint16_t mtu)
{
	struct corq_work *w = corq_conn_work(e, c);
	uint16_t mss;

	if (mtu < PMTU_MIN || mtu >= e->cfg.mtu)
		return CORQ_R_ICMP_QUOTE;
	mss = (uint16_t)(mtu - 40 - (c->flags & CORQ_CF_TS ? 12 : 0));
	if (mss >= c->mss)
		return CORQ_R_NONE;
	corq_tcp_set_mss(e, c, mss);
	if (w) {
		corq_txrec_lose_all(e, w);
		c->flags |= CORQ_CF_RTX;
		corq_conn_mark_send(e, c);
	}
	return CORQ_R_NONE;
}

/* The errno of a hard error (RFC 1122 4.2.3.9: protocol and port unreachable; and what a host or
 * network that cannot be reached means to an open), 0 for a soft one. */
static int
hard_error(const struct corq_icmp *icmp)
{
	if (icmp->type != CORQ_ICMP_UNREACH)
		return 0;
	switch (icmp->code) {
	case CORQ_ICMP_UNREACH_PROTO:
	case CORQ_ICMP_UNREACH_PORT:
		return ECONNREFUSED;
	case CORQ_ICMP_UNREACH_NET:
	case CORQ_ICMP_UNREACH_HOST:
	case CORQ_ICMP_UNREACH_ADMIN:
		return EHOSTUNREACH;
	default:
		return 0;
	}
}

enum corq_reason
corq_tcp_icmp(struct corq_engine *e, const struct corq_icmp *icmp)
{
	uint32_t val = corq_engine_lookup(e, &icmp->key, corq_engine_hash(e, &icmp->key));
	struct corq_conn *c;
	int err;

	if (val == CORQ_NONE || (val & CORQ_VAL_RECORD))
		return CORQ_R_ICMP_QUOTE;
	c = corq_conn_at(e, val);
	if (!in_flight(c, icmp->seq))
		return CORQ_R_ICMP_QUOTE;
	if (icmp->type == CORQ_ICMP_UNREACH && icmp->code == CORQ_ICMP_UNREACH_FRAG)
		return frag_needed(e, c, icmp->mtu);
	err = hard_error(icmp);
	if (err && c->state == CORQ_SYN_SENT)
		corq_conn_end(e, c, err);
	return CORQ_R_NONE;
}

/* A packet of ours that no neighbour took: an open that waits for it ends. */
void
corq_tcp_unreachable(struct corq_engine *e, struct corq_frame *f)
{
	const struct corq_parse_ctx ctx = {.trust_rx = false};
	struct corq_key out, key;
	struct corq_seg seg;
	enum corq_pkt kind;
	uint32_t val;

	(void)corq_net_parse(f, &ctx, &seg, &out, &kind);
	if (kind != CORQ_PKT_TCP)
		return;
	key = (struct corq_key){
		.raddr = out.laddr, .laddr = out.raddr, .rport = out.lport, .lport = out.rport};
	val = corq_engine_lookup(e, &key, corq_engine_hash(e, &key));
	if (val == CORQ_NONE || (val & CORQ_VAL_RECORD))
		return;
	if (corq_conn_at(e, val)->state == CORQ_SYN_SENT)
		corq_conn_end(e, corq_conn_at(e, val), EHOSTUNREACH);
}
