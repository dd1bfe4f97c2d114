/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp.c - ICMP for IPv4: echo, and errors about our own segments. See icmp.h.
 *
 * Called on the core's thread; slow path. An error is believed no further than its quote: the
 * engine still compares the quoted sequence number with what is in flight (RFC 5927 4.1).
 */
#include "net/icmp.h"
#include "net/csum.h"
#include "net/wire.h"

/* ICMP header, the longest IPv4 header, and the 8 bytes of TCP that a quote carries at least. */
#define QUOTE_MAX (CORQ_ICMP_HLEN + 60 + 8)

/* Copies up to n bytes of the chain from off on; returns how many there were. */
static uint32_t
chain_read(const struct corq_frame *f, uint32_t off, void *dst, uint32_t n)
{
	uint8_t *p = dst;
	uint32_t left = n;

	for (; f && left; f = f->next) {
		uint32_t m;

		if (off >= f->len) {
			off -= f->len;
			continue;
		}
		m = CORQ_MIN(f->len - off, left);
		memcpy(p, f->data + off, m);
		p += m;
		left -= m;
		off = 0;
	}
	return n - left;
}

/* The quoted packet, n bytes at p, was sent by us: its source is our side. */
static enum corq_reason
parse_quote(const uint8_t *p, uint32_t n, const struct corq_addr *self, struct corq_icmp *out)
{
	const struct corq_wire_ip4 *ip = (const void *)p;
	const uint8_t *tcp;
	uint32_t hlen;

	if (n < CORQ_IP4_HLEN)
		return CORQ_R_ICMP_SHORT;
	hlen = (ip->ver_ihl & 0xfu) * 4;
	if (ip->ver_ihl >> 4 != 4 || hlen < CORQ_IP4_HLEN)
		return CORQ_R_ICMP_QUOTE;
	if (n < hlen + 8)
		return CORQ_R_ICMP_SHORT;
	if (ip->proto != CORQ_IPPROTO_TCP || ip->frag & CORQ_BE16(0x1fff))
		return CORQ_R_ICMP_QUOTE;
	tcp = p + hlen;
	corq_addr_from_v4(&out->key.laddr, ip->src);
	corq_addr_from_v4(&out->key.raddr, ip->dst);
	out->key.lport = corq_get_be16(tcp);
	out->key.rport = corq_get_be16(tcp + 2);
	out->key.zero = 0;
	out->seq = corq_get_be32(tcp + 4);
	out->is_error = true;
	return corq_addr_eq(&out->key.laddr, self) ? CORQ_R_NONE : CORQ_R_ICMP_QUOTE;
}

enum corq_reason
corq_icmp_parse(const struct corq_frame *f, const struct corq_seg *seg, const struct corq_key *key,
	struct corq_icmp *out)
{
	uint8_t buf[QUOTE_MAX];
	const struct corq_wire_icmp *h = (const void *)buf;
	uint32_t n = chain_read(f, seg->payload_off, buf, CORQ_MIN(seg->len, sizeof(buf)));

	memset(out, 0, sizeof(*out));
	if (n < CORQ_ICMP_HLEN)
		return CORQ_R_ICMP_SHORT;
	if (corq_csum_finish(corq_csum_chain(f, seg->payload_off, seg->len, 0)) != 0)
		return CORQ_R_ICMP_CSUM;
	out->type = h->type;
	out->code = h->code;
	switch (h->type) {
	case CORQ_ICMP_ECHO:
		return CORQ_R_NONE;
	case CORQ_ICMP_UNREACH:
		if (h->code == CORQ_ICMP_UNREACH_FRAG)
			out->mtu = corq_ntoh16(h->rest[1]); /* RFC 1191 4 */
		break;
	case CORQ_ICMP_TIME_EXCEEDED:
	case CORQ_ICMP_PARAM:
		break;
	default:
		return CORQ_R_ICMP_TYPE;
	}
	return parse_quote(buf + CORQ_ICMP_HLEN, n - CORQ_ICMP_HLEN, &key->laddr, out);
}

void
corq_icmp_build_echo_reply(struct corq_frame *out, const struct corq_frame *f,
	const struct corq_seg *seg, const struct corq_key *key, uint16_t mtu, const uint8_t dmac[6],
	const uint8_t smac[6], uint32_t caps)
{
	struct corq_ip_out ip = {
		.src = &key->laddr, .dst = &key->raddr, .proto = CORQ_IPPROTO_ICMP4, .ttl = 64};
	struct corq_wire_icmp *h = (void *)out->data;
	uint32_t room = (uint32_t)(out->buf_start + out->room - out->data);
	uint32_t n = CORQ_MIN(seg->len, CORQ_MIN(room, (uint32_t)mtu - CORQ_IP4_HLEN));

	CORQ_ASSERT(
		out->len == 0 && room >= CORQ_ICMP_HLEN && mtu >= CORQ_IP4_HLEN + CORQ_ICMP_HLEN);
	n = chain_read(f, seg->payload_off, out->data, n);
	CORQ_ASSERT(n >= CORQ_ICMP_HLEN);
	h->type = CORQ_ICMP_ECHO_REPLY;
	h->code = 0;
	h->csum = 0;
	h->csum = corq_csum_finish(corq_csum_partial(h, n, 0));
	out->len = (uint16_t)n;
	out->pkt_len = n;
	corq_emit_ip(out, &ip, dmac, smac, caps);
}

void
corq_icmp_limit_init(struct corq_icmp_limit *l, uint32_t rate, uint64_t now_ns)
{
	l->cost_ns = rate ? CORQ_MAX(CORQ_NS_PER_S / rate, 1) : 0;
	l->burst_ns = l->cost_ns * CORQ_MAX(rate / 10, 1);
	l->full_ns = now_ns;
}

bool
corq_icmp_limit_take(struct corq_icmp_limit *l, uint64_t now_ns)
{
	uint64_t full = CORQ_MAX(l->full_ns, now_ns) + l->cost_ns;

	if (l->cost_ns == 0 || full > now_ns + l->burst_ns)
		return false;
	l->full_ns = full;
	return true;
}
