/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse.c - from the bytes of a received frame to a seg and a key. See parse.h for the contract.
 *
 * Called once a packet on the core's thread. The order is fixed: a length is checked before a byte
 * behind it is read, and a checksum before a field that it covers is believed, so that a damaged
 * packet is counted as damaged. IPv4 without options and TCP with no option or timestamps alone
 * run straight down; everything else leaves by a _slow function.
 *
 * Not handled: IPv4 reassembly, IPv6 extension headers, VLAN tags inside the data (the port strips
 * one into vlan_tci).
 */
#include "net/parse.h"
#include "net/csum.h"
#include "net/wire.h"

/* A packet while its layers are peeled off. Offsets count from f->data. */
struct view {
	struct corq_frame *f;
	const struct corq_parse_ctx *ctx;
	struct corq_seg *seg;
	struct corq_key *key;
	uint32_t total; /* bytes of the frame, all parts */
	uint32_t l4_off, l4_len;
	uint8_t proto, ecn;
	bool to_group; /* L2 or L3 destination is broadcast or multicast */
};

static CORQ_ALWAYS_INLINE uint32_t
contiguous(const struct view *v)
{
	return v->f->len;
}

static enum corq_reason
too_long(const struct view *v, uint32_t l3_len)
{
	return v->ctx->mtu && l3_len > v->ctx->mtu ? CORQ_R_IP_OVERSIZE : CORQ_R_IP_LEN;
}

/* "This network", loopback, multicast and limited broadcast name no sender (RFC 1122 3.2.1.3). */
static CORQ_ALWAYS_INLINE bool
bad_source4(const uint8_t a[4])
{
	return a[0] == 0 || a[0] == 127 || (a[0] & 0xf0) == 0xe0 || corq_get_be32(a) == UINT32_MAX;
}

static CORQ_ALWAYS_INLINE bool
is_group4(const uint8_t a[4])
{
	return (a[0] & 0xf0) == 0xe0 || corq_get_be32(a) == UINT32_MAX;
}

/* Walks IPv4 options of n bytes: false for a source route or a length that does not fit. */
static bool
ip4_options_ok(const uint8_t *p, uint32_t n)
{
	enum {
		EOL = 0,
		NOP = 1,
		LSRR = 131,
		SSRR = 137
	};

	while (n) {
		uint32_t l = 1;

		if (*p == EOL)
			return true;
		if (*p != NOP) {
			if (n < 2 || p[1] < 2 || p[1] > n || *p == LSRR || *p == SSRR)
				return false;
			l = p[1];
		}
		p += l;
		n -= l;
	}
	return true;
}

/* Any first byte but 0x45. Sets *hlen when the header may be used. */
static CORQ_NOINLINE enum corq_reason
ip4_header_slow(const struct view *v, const struct corq_wire_ip4 *ip, uint32_t *hlen)
{
	uint32_t h = (ip->ver_ihl & 0xfu) * 4;

	if (ip->ver_ihl >> 4 != 4)
		return CORQ_R_IP_VERSION;
	if (h < CORQ_IP4_HLEN)
		return CORQ_R_IP_HLEN;
	if (CORQ_ETH_HLEN + h > contiguous(v))
		return CORQ_R_IP_SHORT;
	*hlen = h;
	return CORQ_R_NONE;
}

static CORQ_ALWAYS_INLINE bool
ip4_csum_ok(const struct view *v, const struct corq_wire_ip4 *ip, uint32_t hlen)
{
	if (v->ctx->trust_rx) {
		if (v->f->flags & CORQ_FRAME_IP_CSUM_BAD)
			return false;
		if (v->f->flags & CORQ_FRAME_IP_CSUM_GOOD)
			return true;
	}
	if (CORQ_LIKELY(hlen == CORQ_IP4_HLEN))
		return corq_csum_finish(corq_csum_ip4(ip)) == 0;
	return corq_csum_finish(corq_csum_partial(ip, hlen, 0)) == 0;
}

/* RFC 791 3.1, RFC 1122 3.2.1. */
static CORQ_ALWAYS_INLINE enum corq_reason
parse_ip4(struct view *v)
{
	const struct corq_wire_ip4 *ip = (const void *)(v->f->data + CORQ_ETH_HLEN);
	uint32_t hlen = CORQ_IP4_HLEN, len;

	if (contiguous(v) < CORQ_ETH_HLEN + CORQ_IP4_HLEN)
		return CORQ_R_IP_SHORT;
	if (CORQ_UNLIKELY(ip->ver_ihl != 0x45)) {
		enum corq_reason r = ip4_header_slow(v, ip, &hlen);

		if (r != CORQ_R_NONE)
			return r;
	}
	if (!ip4_csum_ok(v, ip, hlen))
		return CORQ_R_IP_CSUM;
	len = corq_ntoh16(ip->len);
	if (len < hlen)
		return CORQ_R_IP_LEN;
	if (len > v->total - CORQ_ETH_HLEN)
		return too_long(v, len);
	if (hlen > CORQ_IP4_HLEN &&
		!ip4_options_ok((const uint8_t *)(ip + 1), hlen - CORQ_IP4_HLEN))
		return CORQ_R_IP_OPTIONS;
	if (ip->frag & CORQ_BE16(CORQ_IP4_FRAGMENT))
		return CORQ_R_IP_FRAGMENT;
	if (bad_source4(ip->src))
		return CORQ_R_IP_SRC_BAD;
	v->to_group |= is_group4(ip->dst);
	v->l4_off = CORQ_ETH_HLEN + hlen;
	v->l4_len = len - hlen;
	v->proto = ip->proto;
	v->ecn = ip->tos & 3;
	corq_addr_from_v4(&v->key->raddr, ip->src);
	corq_addr_from_v4(&v->key->laddr, ip->dst);
	return CORQ_R_NONE;
}

/* Multicast, loopback, and mapped IPv4, which would alias an IPv4 tuple (RFC 4291 2.5.3, 2.7). */
static bool
bad_source6(const struct corq_addr *a)
{
	return a->b[0] == 0xff || (a->q[0] == 0 && a->w[2] == 0 && a->w[3] == CORQ_BE32(1)) ||
	       corq_addr_is_v4(a);
}

static bool
is_unspecified(const struct corq_addr *a)
{
	return (a->q[0] | a->q[1]) == 0;
}

/* RFC 8200 3. No extension header yet. */
static CORQ_ALWAYS_INLINE enum corq_reason
parse_ip6(struct view *v)
{
	enum {
		NEXT_FRAGMENT = 44
	};
	const struct corq_wire_ip6 *ip = (const void *)(v->f->data + CORQ_ETH_HLEN);
	struct corq_key *key = v->key;
	uint32_t word, len;

	if (contiguous(v) < CORQ_ETH_HLEN + CORQ_IP6_HLEN)
		return CORQ_R_IP_SHORT;
	word = corq_ntoh32(ip->ver_tc_flow);
	if (word >> 28 != 6)
		return CORQ_R_IP_VERSION;
	len = corq_ntoh16(ip->plen);
	if (len > v->total - CORQ_ETH_HLEN - CORQ_IP6_HLEN)
		return too_long(v, CORQ_IP6_HLEN + len);
	if (ip->next == NEXT_FRAGMENT)
		return CORQ_R_IP_FRAGMENT;
	memcpy(&key->raddr, ip->src, sizeof(key->raddr));
	memcpy(&key->laddr, ip->dst, sizeof(key->laddr));
	if (bad_source6(&key->raddr))
		return CORQ_R_IP_SRC_BAD;
	/* Duplicate address detection asks from :: (RFC 4861 4.3). */
	if (is_unspecified(&key->raddr) && ip->next != CORQ_IPPROTO_ICMP6)
		return CORQ_R_IP_SRC_BAD;
	if (corq_addr_is_v4(&key->laddr))
		return CORQ_R_IP_NOT_US;
	v->to_group |= ip->dst[0] == 0xff;
	v->l4_off = CORQ_ETH_HLEN + CORQ_IP6_HLEN;
	v->l4_len = len;
	v->proto = ip->next;
	v->ecn = word >> 20 & 3;
	return CORQ_R_NONE;
}

/* A wrong checksum: left unfinished by its sender, or damaged? */
static CORQ_NOINLINE enum corq_reason
tcp_csum_wrong_slow(const struct view *v, const struct corq_wire_tcp *th, uint32_t pseudo)
{
	if (th->csum != corq_csum_fold(pseudo))
		return CORQ_R_TCP_CSUM;
	v->f->flags |= CORQ_FRAME_TX_PARTIAL;
	return CORQ_R_TCP_CSUM_PARTIAL;
}

static CORQ_ALWAYS_INLINE enum corq_reason
tcp_csum(const struct view *v, const struct corq_wire_tcp *th)
{
	uint16_t said = v->ctx->trust_rx ? v->f->flags : 0;
	uint32_t pseudo, sum;

	if (said & CORQ_FRAME_L4_CSUM_GOOD && !(said & CORQ_FRAME_L4_CSUM_BAD))
		return CORQ_R_NONE;
	pseudo = corq_csum_pseudo(&v->key->raddr, &v->key->laddr, v->l4_len, CORQ_IPPROTO_TCP);
	if (CORQ_UNLIKELY(said & CORQ_FRAME_L4_CSUM_BAD))
		return tcp_csum_wrong_slow(v, th, pseudo);
	if (CORQ_LIKELY(!v->f->next))
		sum = corq_csum_partial(th, v->l4_len, pseudo);
	else
		sum = corq_csum_chain(v->f, v->l4_off, v->l4_len, pseudo);
	if (CORQ_LIKELY(corq_csum_finish(sum) == 0))
		return CORQ_R_NONE;
	return tcp_csum_wrong_slow(v, th, pseudo);
}

/* SYN+FIN and SYN+RST contradict themselves; with none of SYN, FIN, RST and ACK there is no event
 * in RFC 9293 that the segment could be. */
static CORQ_ALWAYS_INLINE bool
flags_impossible(uint8_t fl)
{
	if (fl & CORQ_TH_SYN)
		return fl & (CORQ_TH_FIN | CORQ_TH_RST);
	return !(fl & (CORQ_TH_FIN | CORQ_TH_RST | CORQ_TH_ACK));
}

/* One well-formed option of l bytes at p, off bytes into the frame. First of a kind wins. */
static void
take_option(struct corq_seg *seg, const uint8_t *p, uint32_t l, uint32_t off)
{
	bool syn = seg->flags & CORQ_TH_SYN;
	uint8_t have = seg->opts;

	switch (p[0]) {
	case CORQ_TCPOPT_MSS:
		/* 0 is no size: as if the option were absent */
		if (l != 4 || !syn || have & CORQ_OPT_MSS || corq_get_be16(p + 2) == 0)
			break;
		seg->mss = corq_get_be16(p + 2);
		seg->opts |= CORQ_OPT_MSS;
		break;
	case CORQ_TCPOPT_WSCALE:
		if (l != 3 || !syn || have & CORQ_OPT_WSCALE)
			break;
		seg->wscale = CORQ_MIN(p[2], 14);
		seg->opts |= CORQ_OPT_WSCALE;
		break;
	case CORQ_TCPOPT_SACK_OK:
		if (l == 2 && syn)
			seg->opts |= CORQ_OPT_SACK_OK;
		break;
	case CORQ_TCPOPT_SACK:
		if (l < 10 || l > 34 || (l - 2) % 8 || syn || have & CORQ_OPT_SACK)
			break;
		seg->sack_off = (uint16_t)(off + 2);
		seg->nsack = (uint8_t)((l - 2) / 8);
		seg->opts |= CORQ_OPT_SACK;
		break;
	case CORQ_TCPOPT_TS:
		if (l != 10 || have & CORQ_OPT_TS)
			break;
		seg->tsval = corq_get_be32(p + 2);
		seg->tsecr = corq_get_be32(p + 6);
		seg->opts |= CORQ_OPT_TS;
		break;
	default: /* unknown: skipped (RFC 9293 3.1, MUST-6) */
		break;
	}
}

/* The n option bytes at off in the first part. */
static CORQ_NOINLINE enum corq_reason
tcp_options_slow(struct corq_seg *seg, const uint8_t *data, uint32_t off, uint32_t n)
{
	uint32_t end = off + n;

	while (off < end) {
		const uint8_t *p = data + off;
		uint32_t l;

		if (p[0] == CORQ_TCPOPT_EOL)
			break;
		if (p[0] == CORQ_TCPOPT_NOP) {
			off++;
			continue;
		}
		if (end - off < 2)
			return CORQ_R_TCP_OPTIONS;
		l = p[1];
		if (l < 2 || l > end - off)
			return CORQ_R_TCP_OPTIONS;
		take_option(seg, p, l, off);
		off += l;
	}
	return CORQ_R_NONE;
}

/* The options of a SYN as Linux and corq send them: MSS, SACK permitted, timestamps, NOP, window
 * scale. */
static CORQ_ALWAYS_INLINE bool
usual_syn_options(struct corq_seg *seg, const uint8_t *p, uint32_t n)
{
	if (n != 20 || !(seg->flags & CORQ_TH_SYN) || corq_get_be16(p) != 0x0204 ||
		corq_get_be16(p + 2) == 0 || corq_get_be32(p + 4) != 0x0402080au ||
		corq_get_be32(p + 16) >> 8 != 0x010303)
		return false;
	seg->mss = corq_get_be16(p + 2);
	seg->tsval = corq_get_be32(p + 8);
	seg->tsecr = corq_get_be32(p + 12);
	seg->wscale = CORQ_MIN(p[19], 14);
	seg->opts = CORQ_OPT_MSS | CORQ_OPT_SACK_OK | CORQ_OPT_TS | CORQ_OPT_WSCALE;
	return true;
}

static CORQ_ALWAYS_INLINE enum corq_reason
tcp_options(struct corq_seg *seg, const uint8_t *data, uint32_t off, uint32_t n)
{
	const uint8_t *p = data + off;

	if (n == 0)
		return CORQ_R_NONE;
	if (CORQ_LIKELY(n == 12 && corq_get_be32(p) == 0x0101080au)) { /* NOP NOP TS */
		seg->tsval = corq_get_be32(p + 4);
		seg->tsecr = corq_get_be32(p + 8);
		seg->opts = CORQ_OPT_TS;
		return CORQ_R_NONE;
	}
	if (usual_syn_options(seg, p, n))
		return CORQ_R_NONE;
	return tcp_options_slow(seg, data, off, n);
}

/* RFC 9293 3.1. */
static CORQ_ALWAYS_INLINE enum corq_reason
parse_tcp(struct view *v)
{
	const struct corq_wire_tcp *th = (const void *)(v->f->data + v->l4_off);
	struct corq_seg *seg = v->seg;
	struct corq_key *key = v->key;
	enum corq_reason r;
	uint32_t hlen;

	if (v->l4_len < CORQ_TCP_HLEN || v->l4_off + CORQ_TCP_HLEN > contiguous(v))
		return CORQ_R_TCP_SHORT;
	hlen = (th->off >> 4) * 4u;
	if (hlen < CORQ_TCP_HLEN || hlen > v->l4_len)
		return CORQ_R_TCP_HLEN;
	if (v->l4_off + hlen > contiguous(v))
		return CORQ_R_TCP_SHORT;
	r = tcp_csum(v, th);
	if (r != CORQ_R_NONE)
		return r;
	if (v->to_group)
		return CORQ_R_IP_NOT_UNICAST;
	key->rport = corq_ntoh16(th->sport);
	key->lport = corq_ntoh16(th->dport);
	if (key->rport == 0 || key->lport == 0)
		return CORQ_R_TCP_PORT_ZERO;
	if (flags_impossible(th->flags))
		return CORQ_R_TCP_FLAGS;
	if (key->rport == key->lport && corq_addr_eq(&key->raddr, &key->laddr))
		return CORQ_R_IP_LAND;
	seg->seq = corq_ntoh32(th->seq);
	seg->ack = corq_ntoh32(th->ack);
	seg->wnd = corq_ntoh16(th->wnd);
	seg->urg = corq_ntoh16(th->urg);
	seg->flags = th->flags;
	seg->len = v->l4_len - hlen;
	seg->payload_off = (uint16_t)(v->l4_off + hlen);
	return tcp_options(seg, v->f->data, v->l4_off + CORQ_TCP_HLEN, hlen - CORQ_TCP_HLEN);
}

static CORQ_ALWAYS_INLINE bool
is_our_mac(const uint8_t *dst, const uint8_t *mac)
{
	uint32_t a, b;
	uint16_t c, d;

	memcpy(&a, dst, 4);
	memcpy(&b, mac, 4);
	memcpy(&c, dst + 4, 2);
	memcpy(&d, mac + 4, 2);
	return a == b && c == d;
}

static CORQ_ALWAYS_INLINE void
start(struct corq_seg *seg, struct corq_key *key, struct corq_frame *f)
{
	memset(seg, 0, sizeof(*seg));
	seg->frame = f;
	seg->hint = CORQ_NONE;
	key->rport = key->lport = 0;
	key->zero = 0;
}

/* ARP and ICMP: only where they lie. */
static enum corq_reason
hand_on(struct view *v, enum corq_pkt *kind, enum corq_pkt k)
{
	v->seg->payload_off = (uint16_t)v->l4_off;
	v->seg->len = v->l4_len;
	*kind = k;
	return CORQ_R_NONE;
}

enum corq_reason
corq_net_parse(struct corq_frame *f, const struct corq_parse_ctx *ctx, struct corq_seg *seg,
	struct corq_key *key, enum corq_pkt *kind)
{
	const struct corq_wire_eth *eth = (const void *)f->data;
	/* A lone part is its own length: no field of the frame can make us read past it. */
	struct view v = {.f = f, .ctx = ctx, .seg = seg, .key = key};
	enum corq_reason r;
	uint8_t icmp;

	*kind = CORQ_PKT_DROP;
	if (f->len < CORQ_ETH_HLEN)
		return CORQ_R_L2_SHORT;
	if (!is_our_mac(eth->dst, ctx->mac)) {
		if (!(eth->dst[0] & 1))
			return CORQ_R_L2_NOT_US;
		v.to_group = true;
	}
	v.total = f->next ? f->pkt_len : f->len;
	start(seg, key, f);
	switch (eth->type) {
	case CORQ_BE16(CORQ_ETHERTYPE_IP4):
		r = parse_ip4(&v);
		icmp = CORQ_IPPROTO_ICMP4;
		break;
	case CORQ_BE16(CORQ_ETHERTYPE_IP6):
		r = parse_ip6(&v);
		icmp = CORQ_IPPROTO_ICMP6;
		break;
	case CORQ_BE16(CORQ_ETHERTYPE_ARP):
		v.l4_off = CORQ_ETH_HLEN;
		v.l4_len = v.total - CORQ_ETH_HLEN;
		return hand_on(&v, kind, CORQ_PKT_ARP);
	default:
		return CORQ_R_L2_TYPE;
	}
	if (CORQ_UNLIKELY(r != CORQ_R_NONE))
		return r;
	seg->ecn = v.ecn;
	if (CORQ_LIKELY(v.proto == CORQ_IPPROTO_TCP)) {
		r = parse_tcp(&v);
		if (CORQ_LIKELY(r == CORQ_R_NONE))
			*kind = CORQ_PKT_TCP;
		return r;
	}
	if (v.proto != icmp)
		return CORQ_R_IP_PROTO;
	if (v.to_group && icmp == CORQ_IPPROTO_ICMP4) /* no echo amplifier (RFC 1122 3.2.2.6) */
		return CORQ_R_IP_NOT_UNICAST;
	return hand_on(&v, kind, icmp == CORQ_IPPROTO_ICMP4 ? CORQ_PKT_ICMP4 : CORQ_PKT_ICMP6);
}
