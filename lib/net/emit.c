/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit.c - writes TCP, IP and Ethernet headers in front of a payload. See emit.h.
 *
 * Called once a packet that leaves, on the core's thread; pure. Headers are written from the
 * inside out, so that the TCP checksum runs over bytes that are in place.
 */
#include "net/emit.h"
#include "net/csum.h"
#include "net/seg.h"

/* Makes room for n bytes in front of the data. Headroom is our own affair: the port gave it. */
static CORQ_ALWAYS_INLINE void *
push(struct corq_frame *f, uint32_t n)
{
	f->data -= n;
	f->len = (uint16_t)(f->len + n);
	f->pkt_len += n;
	return f->data;
}

static CORQ_ALWAYS_INLINE void
push_eth(struct corq_frame *f, const uint8_t *dmac, const uint8_t *smac, be16 type)
{
	struct corq_wire_eth *eth = push(f, sizeof(*eth));

	memcpy(eth->dst, dmac, 6);
	memcpy(eth->src, smac, 6);
	eth->type = type;
	f->l2_len = sizeof(*eth);
}

static CORQ_ALWAYS_INLINE void
push_ip4(struct corq_frame *f, const struct corq_ip_out *o, uint32_t caps)
{
	struct corq_wire_ip4 *ip = push(f, sizeof(*ip));

	ip->ver_ihl = 0x45;
	ip->tos = o->ecn;
	ip->len = CORQ_BE16(f->pkt_len);
	ip->id = 0;
	ip->frag = CORQ_BE16(CORQ_IP4_DF);
	ip->ttl = o->ttl;
	ip->proto = o->proto;
	ip->csum = 0;
	memcpy(ip->src, &o->src->w[3], 4);
	memcpy(ip->dst, &o->dst->w[3], 4);
	if (caps & CORQ_EMIT_IP_OFFLOAD) {
		f->flags |= CORQ_FRAME_TX_IP_CSUM;
	} else {
		/* Summed from the values, not from memory: a load across the narrow stores above
		 * would wait for them to leave the store buffer. */
		uint64_t s = (uint64_t)o->src->w[3] + o->dst->w[3] + ip->len;

		s += CORQ_BE16(0x4500u | o->ecn) + CORQ_BE16(CORQ_IP4_DF);
		s += CORQ_BE16((uint32_t)o->ttl << 8 | o->proto);
		ip->csum = corq_csum_finish(corq_csum_fold64(s));
	}
	f->l3_len = sizeof(*ip);
}

static CORQ_ALWAYS_INLINE void
push_ip6(struct corq_frame *f, const struct corq_ip_out *o)
{
	uint32_t plen = f->pkt_len;
	struct corq_wire_ip6 *ip = push(f, sizeof(*ip));

	ip->ver_tc_flow = CORQ_BE32(0x60000000u | (uint32_t)o->ecn << 20);
	ip->plen = CORQ_BE16(plen);
	ip->next = o->proto;
	ip->hops = o->ttl;
	memcpy(ip->src, o->src, 16);
	memcpy(ip->dst, o->dst, 16);
	f->l3_len = sizeof(*ip);
}

static CORQ_ALWAYS_INLINE void
push_ip_eth(struct corq_frame *f, const struct corq_ip_out *o, const uint8_t *dmac,
	const uint8_t *smac, uint32_t caps)
{
	if (CORQ_LIKELY(corq_addr_is_v4(o->src))) {
		push_ip4(f, o, caps);
		push_eth(f, dmac, smac, CORQ_BE16(CORQ_ETHERTYPE_IP4));
	} else {
		push_ip6(f, o);
		push_eth(f, dmac, smac, CORQ_BE16(CORQ_ETHERTYPE_IP6));
	}
}

static CORQ_ALWAYS_INLINE void
put_options(uint8_t *p, const struct corq_tcp_out *o)
{
	if (CORQ_LIKELY(o->opt_len == 12))
		memcpy(p, o->opts, 12);
	else if (o->opt_len)
		memcpy(p, o->opts, o->opt_len);
}

/* f->data stands at the TCP header, whose csum field is 0. */
static CORQ_ALWAYS_INLINE be16
tcp_csum(struct corq_frame *f, const struct corq_tcp_out *o, uint32_t caps)
{
	uint32_t sum;

	if (f->flags & CORQ_FRAME_TX_TSO || caps & CORQ_EMIT_L4_OFFLOAD) {
		uint32_t len = f->flags & CORQ_FRAME_TX_TSO ? 0 : f->pkt_len;

		f->flags |= CORQ_FRAME_TX_L4_CSUM;
		return corq_csum_fold(corq_csum_pseudo(o->src, o->dst, len, CORQ_IPPROTO_TCP));
	}
	sum = corq_csum_pseudo(o->src, o->dst, f->pkt_len, CORQ_IPPROTO_TCP);
	if (CORQ_LIKELY(!f->next))
		return corq_csum_finish(corq_csum_partial(f->data, f->len, sum));
	return corq_csum_finish(corq_csum_chain(f, 0, f->pkt_len, sum));
}

void
corq_emit_tcp(struct corq_frame *head, const struct corq_tcp_out *o, const uint8_t dmac[6],
	const uint8_t smac[6], uint32_t caps)
{
	struct corq_ip_out ip = {.src = o->src,
		.dst = o->dst,
		.proto = CORQ_IPPROTO_TCP,
		.ttl = o->ttl,
		.ecn = o->ecn};
	uint32_t hlen = CORQ_TCP_HLEN + o->opt_len;
	struct corq_wire_tcp *th;

	CORQ_ASSERT(
		head->data - head->buf_start >= (ptrdiff_t)(CORQ_ETH_HLEN + CORQ_IP6_HLEN + hlen) &&
		head->pkt_len <= UINT16_MAX - CORQ_IP6_HLEN - hlen);
	th = push(head, hlen);
	th->sport = CORQ_BE16(o->sport);
	th->dport = CORQ_BE16(o->dport);
	th->seq = CORQ_BE32(o->seq);
	th->ack = CORQ_BE32(o->ack);
	th->off = (uint8_t)(hlen << 2);
	th->flags = o->flags;
	th->wnd = CORQ_BE16(o->wnd);
	th->csum = 0;
	th->urg = 0;
	put_options((uint8_t *)(th + 1), o);
	th->csum = tcp_csum(head, o, caps);
	head->l4_len = (uint8_t)hlen;
	push_ip_eth(head, &ip, dmac, smac, caps);
}

void
corq_emit_ip(struct corq_frame *head, const struct corq_ip_out *o, const uint8_t dmac[6],
	const uint8_t smac[6], uint32_t caps)
{
	CORQ_ASSERT(head->data - head->buf_start >= CORQ_ETH_HLEN + CORQ_IP6_HLEN &&
		    head->pkt_len <= UINT16_MAX - CORQ_IP6_HLEN);
	push_ip_eth(head, o, dmac, smac, caps);
}

void
corq_opt_put_syn(struct corq_tcp_out *o, const struct corq_syn_opts *s)
{
	if (s->mss)
		corq_opt_put_mss(o, s->mss);
	if (s->has_sack && s->has_ts)
		corq_opt_put_sack_ok_ts(o, s->tsval, s->tsecr);
	else if (s->has_ts)
		corq_opt_put_ts(o, s->tsval, s->tsecr);
	else if (s->has_sack)
		corq_opt_put_sack_ok(o);
	if (s->has_wscale)
		corq_opt_put_wscale(o, s->wscale);
}

uint8_t
corq_opt_put_sack(struct corq_tcp_out *o, const struct corq_sack_block *b, uint8_t n)
{
	uint32_t room = (CORQ_EMIT_OPTS_MAX - o->opt_len) / 4u; /* words */
	uint8_t fit = room > 2 ? (uint8_t)CORQ_MIN(n, (room - 1) / 2) : 0;

	if (fit == 0)
		return 0;
	corq_opt_put_word(o, 0x01010000u | CORQ_TCPOPT_SACK << 8 | (2u + 8u * fit));
	for (uint8_t i = 0; i < fit; i++) {
		corq_opt_put_word(o, b[i].start);
		corq_opt_put_word(o, b[i].end);
	}
	return fit;
}
