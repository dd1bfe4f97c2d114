/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c - frames of segments, segments of frames, and their comparison. See world.h. */
#include "world.h"
#include "memport_nic.h"
#include "net/seg.h"
#include "net/wire.h"

#include <stdio.h>
#include <string.h>

uint8_t
wire_pattern_out(uint64_t off)
{
	return (uint8_t)(off % 251);
}

uint8_t
wire_pattern_in(uint64_t off)
{
	return (uint8_t)(255 - off % 241);
}

/* ---- frames taken apart ---- */

static const char *
decode_opts(const uint8_t *o, unsigned left, struct packet *p)
{
	while (left != 0) {
		struct opt *x = &p->opts[p->n_opts];
		unsigned len = *o <= CORQ_TCPOPT_NOP ? 1 : left > 1 ? o[1] : 0;

		if (*o == CORQ_TCPOPT_EOL)
			return NULL;
		if (len == 0 || len > left || (*o > CORQ_TCPOPT_NOP && len < 2))
			return "malformed TCP options";
		if (p->n_opts == SEG_OPTS_MAX)
			return "too many TCP options";
		memset(x, 0, sizeof(*x));
		x->kind = OPT_RAW;
		if (*o == CORQ_TCPOPT_NOP) {
			x->kind = OPT_NOP;
		} else if (*o == CORQ_TCPOPT_MSS && len == 4) {
			x->kind = OPT_MSS;
			x->v[0].lo = corq_get_be16(o + 2);
		} else if (*o == CORQ_TCPOPT_WSCALE && len == 3) {
			x->kind = OPT_WSCALE;
			x->v[0].lo = o[2];
		} else if (*o == CORQ_TCPOPT_SACK_OK && len == 2) {
			x->kind = OPT_SACK_OK;
		} else if (*o == CORQ_TCPOPT_TS && len == 10) {
			x->kind = OPT_TS;
			x->v[0].lo = corq_get_be32(o + 2);
			x->v[1].lo = corq_get_be32(o + 6);
		} else if (*o == CORQ_TCPOPT_SACK && len >= 10 && (len - 2) % 8 == 0) {
			x->kind = OPT_SACK;
			x->n = (len - 2) / 8;
			for (unsigned i = 0; i < 2 * x->n; i++)
				x->sack[i / 2][i % 2] = corq_get_be32(o + 2 + 4 * i);
		} else {
			x->n = len;
			memcpy(x->raw, o, len);
		}
		if (x->kind != OPT_NOP)
			p->n_opts++;
		o += len;
		left -= len;
	}
	return NULL;
}

static const char *
decode_tcp(const uint8_t *ip, uint32_t total, struct packet *p)
{
	const uint8_t *t = ip + CORQ_IP4_HLEN;
	uint32_t len = total - CORQ_IP4_HLEN, hlen;

	if (len < CORQ_TCP_HLEN)
		return "TCP header cut short";
	hlen = 4u * (t[12] >> 4);
	if (hlen < CORQ_TCP_HLEN || hlen > len)
		return "bad TCP data offset";
	if (memport_sum(t, len, memport_sum(ip + 12, 8, CORQ_IPPROTO_TCP + len)) != 0xffff)
		return "bad TCP checksum";
	p->kind = PACKET_TCP;
	p->sport = corq_get_be16(t);
	p->dport = corq_get_be16(t + 2);
	p->seq = corq_get_be32(t + 4);
	p->ack = corq_get_be32(t + 8);
	p->flags = t[13];
	p->win = corq_get_be16(t + 14);
	p->urg = corq_get_be16(t + 18);
	p->payload = t + hlen;
	p->payload_len = len - hlen;
	if (!(p->flags & CORQ_TH_ACK) && p->ack != 0)
		return "acknowledgment number without the ACK flag";
	return decode_opts(t + CORQ_TCP_HLEN, hlen - CORQ_TCP_HLEN, p);
}

static const char *
decode_ip(const uint8_t *ip, uint32_t len, struct packet *p)
{
	uint32_t total;

	if (len < CORQ_IP4_HLEN || ip[0] != 0x45)
		return "bad IPv4 header";
	total = corq_get_be16(ip + 2);
	if (total < CORQ_IP4_HLEN || total > len)
		return "bad IPv4 length";
	if (memport_sum(ip, CORQ_IP4_HLEN, 0) != 0xffff)
		return "bad IPv4 header checksum";
	if (corq_get_be16(ip + 6) & CORQ_IP4_FRAGMENT)
		return "a fragment";
	corq_addr_from_v4(&p->src, ip + 12);
	corq_addr_from_v4(&p->dst, ip + 16);
	if (ip[9] == CORQ_IPPROTO_TCP)
		return decode_tcp(ip, total, p);
	if (ip[9] != CORQ_IPPROTO_ICMP4)
		return "neither TCP nor ICMP";
	p->kind = PACKET_ICMP;
	if (total < CORQ_IP4_HLEN + CORQ_ICMP_HLEN)
		return "ICMP cut short";
	if (memport_sum(ip + CORQ_IP4_HLEN, total - CORQ_IP4_HLEN, 0) != 0xffff)
		return "bad ICMP checksum";
	p->icmp_type = ip[CORQ_IP4_HLEN];
	p->icmp_code = ip[CORQ_IP4_HLEN + 1];
	p->payload = ip + CORQ_IP4_HLEN + CORQ_ICMP_HLEN;
	p->payload_len = total - CORQ_IP4_HLEN - CORQ_ICMP_HLEN;
	return NULL;
}

const char *
wire_decode(const uint8_t *bytes, uint32_t len, uint64_t at_ns, struct packet *p)
{
	memset(p, 0, sizeof(*p));
	p->at_ns = at_ns;
	p->bytes = bytes;
	p->len = len;
	p->kind = PACKET_BYTES;
	if (len < CORQ_ETH_HLEN)
		return "shorter than an Ethernet header";
	switch (corq_get_be16(bytes + 12)) {
	case CORQ_ETHERTYPE_ARP:
		if (len < CORQ_ETH_HLEN + CORQ_ARP_LEN)
			return "ARP cut short";
		p->kind = PACKET_ARP;
		p->arp_op = corq_get_be16(bytes + 20);
		corq_addr_from_v4(&p->src, bytes + 28);
		corq_addr_from_v4(&p->dst, bytes + 38);
		return NULL;
	case CORQ_ETHERTYPE_IP4:
		return decode_ip(bytes + CORQ_ETH_HLEN, len - CORQ_ETH_HLEN, p);
	default:
		return "neither IPv4 nor ARP";
	}
}

/* ---- frames made ---- */

static uint32_t
put_eth(uint8_t *out, const uint8_t dst[6], const uint8_t src[6], uint16_t type)
{
	memcpy(out, dst, 6);
	memcpy(out + 6, src, 6);
	corq_put_be16(out + 12, type);
	return CORQ_ETH_HLEN;
}

static void
put_ip(uint8_t *ip, const struct corq_addr *src, const struct corq_addr *dst, uint32_t total,
	uint8_t proto)
{
	memset(ip, 0, CORQ_IP4_HLEN);
	ip[0] = 0x45;
	corq_put_be16(ip + 2, (uint16_t)total);
	corq_put_be16(ip + 6, CORQ_IP4_DF);
	ip[8] = 64;
	ip[9] = proto;
	memcpy(ip + 12, src->b + 12, 4);
	memcpy(ip + 16, dst->b + 12, 4);
	corq_put_be16(ip + 10, (uint16_t)~memport_sum(ip, CORQ_IP4_HLEN, 0));
}

static uint32_t
ts_now(const struct world *w)
{
	return 1000 + (uint32_t)(world_time(w) / CORQ_NS_PER_MS);
}

static unsigned
put_ts(struct world *w, struct flow *f, const struct opt *o, uint8_t *t)
{
	uint32_t val = o->v[0].kind == VALUE_NOW ? ts_now(w) : (uint32_t)o->v[0].lo;
	uint32_t ecr = o->v[1].kind == VALUE_LAST  ? f->our_ts_last
		       : o->v[1].kind == VALUE_ABS ? (uint32_t)o->v[1].lo
						   : f->our_ts_base + (uint32_t)o->v[1].lo;

	t[0] = CORQ_TCPOPT_TS;
	t[1] = 10;
	corq_put_be32(t + 2, val);
	corq_put_be32(t + 6, ecr);
	f->peer_ts_last = val;
	return 10;
}

static unsigned
put_opt(struct world *w, struct flow *f, const struct opt *o, uint8_t *t)
{
	switch (o->kind) {
	case OPT_MSS:
		t[0] = CORQ_TCPOPT_MSS;
		t[1] = 4;
		corq_put_be16(t + 2, (uint16_t)o->v[0].lo);
		return 4;
	case OPT_WSCALE:
		t[0] = CORQ_TCPOPT_WSCALE;
		t[1] = 3;
		t[2] = (uint8_t)o->v[0].lo;
		return 3;
	case OPT_SACK_OK:
		t[0] = CORQ_TCPOPT_SACK_OK;
		t[1] = 2;
		return 2;
	case OPT_SACK:
		t[0] = CORQ_TCPOPT_SACK;
		t[1] = (uint8_t)(2 + 8 * o->n);
		for (unsigned i = 0; i < 2 * o->n; i++)
			corq_put_be32(t + 2 + 4 * i, f->our_isn + o->sack[i / 2][i % 2]);
		return t[1];
	case OPT_TS:
		return put_ts(w, f, o, t);
	case OPT_NOP:
	case OPT_EOL:
		t[0] = o->kind == OPT_NOP ? CORQ_TCPOPT_NOP : CORQ_TCPOPT_EOL;
		return 1;
	default:
		memcpy(t, o->raw, o->n);
		return o->n;
	}
}

/* The options, padded with NOP to whole words. At most 40 bytes, else 0 and *why. */
static unsigned
put_opts(struct world *w, struct flow *f, const struct segment *s, uint8_t *t, const char **why)
{
	static const struct opt auto_ts = {
		.kind = OPT_TS, .v = {{.kind = VALUE_NOW}, {.kind = VALUE_LAST}}};
	uint8_t buf[SEG_OPTS_MAX * 48];
	unsigned n = 0;

	if (!s->has_opts && w->auto_ts && f->our_ts && f->peer_ts && !(s->flags & CORQ_TH_SYN))
		n += put_opt(w, f, &auto_ts, buf);
	for (unsigned i = 0; i < s->n_opts; i++)
		n += put_opt(w, f, &s->opts[i], buf + n);
	while (n % 4 != 0)
		buf[n++] = CORQ_TCPOPT_NOP;
	if (n > 40) {
		*why = "options do not fit 40 bytes";
		n = 0;
	}
	memcpy(t, buf, n);
	return n;
}

static uint32_t
number(const struct value *v, bool have_base, uint32_t base, const char *what, const char **why)
{
	if (v->kind == VALUE_ABS)
		return (uint32_t)v->lo;
	if (v->kind != VALUE_RANGE)
		return 0;
	if (!have_base)
		*why = what;
	return base + (uint32_t)v->lo;
}

static void
note_injected(struct flow *f, const struct segment *s, uint32_t seq)
{
	if (!(s->flags & CORQ_TH_SYN))
		return;
	f->peer_syn = seq;
	f->peer_ts = false;
	for (unsigned i = 0; i < s->n_opts; i++)
		f->peer_ts |= s->opts[i].kind == OPT_TS;
}

static void
spoil(const struct segment *s, uint8_t *ip, uint8_t *t, uint32_t tcp_len)
{
	if (s->bad_tcp_csum)
		t[16] ^= 0x55;
	if (s->csum_partial)
		corq_put_be16(t + 16, memport_sum(ip + 12, 8, CORQ_IPPROTO_TCP + tcp_len));
	if (s->bad_ip_csum)
		ip[10] ^= 0x55;
}

static uint32_t
build_tcp(struct world *w, struct flow *f, const struct segment *s, uint8_t *out, const char **why)
{
	uint8_t *ip = out + CORQ_ETH_HLEN, *t = ip + CORQ_IP4_HLEN;
	struct corq_addr src = f->paddr, dst = f->laddr;
	uint32_t hlen, len = (uint32_t)s->len.lo, seq, first;

	put_eth(out, s->has_dmac ? s->dmac : memport_port(w->tc.mp)->mac, TESTCORE_PEER_MAC,
		CORQ_ETHERTYPE_IP4);
	if (*s->src != '\0')
		src = testcore_addr(s->src);
	if (*s->dst != '\0')
		dst = testcore_addr(s->dst);
	if (!f->have_peer_isn && s->seq.kind != VALUE_ABS) {
		f->have_peer_isn = true;
		f->peer_isn = w->peer_isn;
	}
	seq = number(&s->seq, true, f->peer_isn, "", why);
	memset(t, 0, CORQ_TCP_HLEN);
	corq_put_be16(t, s->sport >= 0 ? (uint16_t)s->sport : f->pport);
	corq_put_be16(t + 2, s->dport >= 0 ? (uint16_t)s->dport : f->lport);
	corq_put_be32(t + 4, seq);
	corq_put_be32(t + 8,
		s->ack.kind == VALUE_LAST
			? f->our_end
			: number(&s->ack, f->have_our_isn, f->our_isn,
				  "our initial sequence number is not known yet (use @N)", why));
	hlen = CORQ_TCP_HLEN + put_opts(w, f, s, t + CORQ_TCP_HLEN, why);
	t[12] = (uint8_t)((s->hlen >= 0 ? (unsigned)s->hlen : hlen / 4) << 4);
	t[13] = s->flags;
	corq_put_be16(t + 14, s->win.kind == VALUE_RANGE ? (uint16_t)s->win.lo : w->win);
	corq_put_be16(t + 18, (uint16_t)s->urg.lo);
	/* The stream's byte 0 has sequence number ISN + 1, behind the SYN. */
	first = seq - f->peer_isn - 1 + !!(s->flags & CORQ_TH_SYN);
	for (uint32_t i = 0; i < len; i++)
		t[hlen + i] = s->fill >= 0 ? (uint8_t)s->fill : wire_pattern_in(first + i);
	put_ip(ip, &src, &dst, s->ip_len >= 0 ? (uint32_t)s->ip_len : CORQ_IP4_HLEN + hlen + len,
		CORQ_IPPROTO_TCP);
	if (s->ttl >= 0 || s->ecn >= 0) {
		ip[1] = s->ecn >= 0 ? (uint8_t)s->ecn : 0;
		ip[8] = s->ttl >= 0 ? (uint8_t)s->ttl : 64;
		corq_put_be16(ip + 10, 0);
		corq_put_be16(ip + 10, (uint16_t)~memport_sum(ip, CORQ_IP4_HLEN, 0));
	}
	corq_put_be16(t + 16, (uint16_t)~memport_sum(t, hlen + len,
				      memport_sum(ip + 12, 8, CORQ_IPPROTO_TCP + hlen + len)));
	spoil(s, ip, t, hlen + len);
	note_injected(f, s, seq);
	return CORQ_ETH_HLEN + CORQ_IP4_HLEN + hlen + len;
}

static uint32_t
build_arp(struct world *w, struct flow *f, const struct packet_spec *spec, uint8_t *out)
{
	static const uint8_t all[6] = {255, 255, 255, 255, 255, 255};
	struct corq_addr target = testcore_addr(spec->arp_target);
	struct corq_addr sender = *spec->arp_sender ? testcore_addr(spec->arp_sender) : f->paddr;
	const uint8_t *smac = spec->has_arp_mac ? spec->arp_mac : TESTCORE_PEER_MAC;
	const uint8_t *ours = memport_port(w->tc.mp)->mac;
	uint8_t *a = out + put_eth(out, spec->arp_op == 1 ? all : ours, smac, CORQ_ETHERTYPE_ARP);

	corq_put_be16(a, 1);
	corq_put_be16(a + 2, CORQ_ETHERTYPE_IP4);
	a[4] = 6;
	a[5] = 4;
	corq_put_be16(a + 6, spec->arp_op);
	memcpy(a + 8, smac, 6);
	memcpy(a + 14, sender.b + 12, 4);
	memset(a + 18, 0, 6);
	if (spec->arp_op == 2)
		memcpy(a + 18, ours, 6);
	memcpy(a + 24, target.b + 12, 4);
	return CORQ_ETH_HLEN + CORQ_ARP_LEN;
}

static uint32_t
build_icmp(struct world *w, struct flow *f, const struct packet_spec *spec, uint8_t *out,
	const char **why)
{
	uint8_t *ip = out + put_eth(out, memport_port(w->tc.mp)->mac, TESTCORE_PEER_MAC,
				    CORQ_ETHERTYPE_IP4);
	uint8_t *m = ip + CORQ_IP4_HLEN, *q = m + CORQ_ICMP_HLEN;
	uint32_t len = CORQ_ICMP_HLEN;

	memset(m, 0, CORQ_ICMP_HLEN);
	m[0] = spec->icmp_type;
	m[1] = spec->icmp_code;
	if (spec->icmp_type == 8) {
		corq_put_be16(m + 4, 0x1234);
		corq_put_be16(m + 6, 1);
		for (unsigned i = 0; i < spec->icmp_len; i++)
			q[i] = wire_pattern_in(i);
		len += spec->icmp_len;
	} else {
		corq_put_be16(m + 6, spec->icmp_mtu);
		put_ip(q, &f->laddr, &f->paddr, 1500, CORQ_IPPROTO_TCP);
		corq_put_be16(q + 20, (uint16_t)(f->lport + spec->icmp_foreign));
		corq_put_be16(q + 22, f->pport);
		corq_put_be32(q + 24, number(&spec->icmp_quote, f->have_our_isn, f->our_isn,
					      "our initial sequence number is not known", why));
		len += CORQ_IP4_HLEN + 8;
	}
	put_ip(ip, &f->paddr, &f->laddr, CORQ_IP4_HLEN + len, CORQ_IPPROTO_ICMP4);
	corq_put_be16(m + 2, (uint16_t)~memport_sum(m, len, 0));
	return CORQ_ETH_HLEN + CORQ_IP4_HLEN + len;
}

uint32_t
wire_build(struct world *w, struct flow *f, const struct packet_spec *spec, uint8_t *out,
	const char **why)
{
	*why = NULL;
	switch (spec->kind) {
	case PACKET_TCP:
		return build_tcp(w, f, &spec->tcp, out, why);
	case PACKET_ARP:
		return build_arp(w, f, spec, out);
	case PACKET_ICMP:
		return build_icmp(w, f, spec, out, why);
	default:
		memcpy(out, spec->bytes, spec->n_bytes);
		return (uint32_t)spec->n_bytes;
	}
}
