/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_parse.c - libFuzzer target: bytes from the wire through the parser, then through whatever
 * the core would call for that kind of packet.
 *
 * Input: three control bytes, then the frame. Byte 0: frame flags and trust; byte 1: where the
 * chain is cut; byte 2: bit 0 repairs the checksums, so that the fuzzer gets behind them. Each
 * part lies in memory of exactly its size. The checks are those that a caller relies on.
 */
#include "net/arp.h"
#include "net/csum.h"
#include "net/icmp.h"
#include "net/neigh.h"
#include "net/parse.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t us[6] = {2, 0, 0, 0, 0, 1};

static struct corq_frame *
part(const uint8_t *b, size_t n)
{
	struct corq_frame *f = calloc(1, sizeof(*f));

	CORQ_ASSERT(f);
	f->data = f->buf_start = malloc(n ? n : 1);
	CORQ_ASSERT(f->data);
	memcpy(f->data, b, n);
	f->len = f->room = (uint16_t)n;
	f->pkt_len = (uint32_t)n;
	return f;
}

static void
release(struct corq_frame *f)
{
	while (f) {
		struct corq_frame *next = f->next;

		free(f->buf_start);
		free(f);
		f = next;
	}
}

/* Makes the checksums of an IPv4 or IPv6 packet right where the lengths allow it. */
static void
repair(uint8_t *b, size_t n)
{
	struct corq_addr src, dst;
	size_t l4, len;
	uint8_t proto;
	be16 c;

	if (n >= 34 && corq_get_be16(b + 12) == CORQ_ETHERTYPE_IP4) {
		size_t hlen = (b[14] & 0xfu) * 4;

		len = corq_get_be16(b + 16);
		if (hlen < 20 || 14 + hlen > n || len < hlen || 14 + len > n)
			return;
		corq_put_be16(b + 24, 0);
		c = corq_csum_finish(corq_csum_partial(b + 14, hlen, 0));
		memcpy(b + 24, &c, 2);
		l4 = 14 + hlen;
		len -= hlen;
		proto = b[23];
		corq_addr_from_v4(&src, b + 26);
		corq_addr_from_v4(&dst, b + 30);
	} else if (n >= 54 && corq_get_be16(b + 12) == CORQ_ETHERTYPE_IP6) {
		len = corq_get_be16(b + 18);
		if (54 + len > n)
			return;
		l4 = 54;
		proto = b[20];
		memcpy(&src, b + 22, 16);
		memcpy(&dst, b + 38, 16);
	} else {
		return;
	}
	if (proto == CORQ_IPPROTO_TCP && len >= 20) {
		corq_put_be16(b + l4 + 16, 0);
		c = corq_csum_finish(corq_csum_partial(
			b + l4, len, corq_csum_pseudo(&src, &dst, (uint32_t)len, proto)));
		memcpy(b + l4 + 16, &c, 2);
	} else if (proto == CORQ_IPPROTO_ICMP4 && len >= 4) {
		corq_put_be16(b + l4 + 2, 0);
		c = corq_csum_finish(corq_csum_partial(b + l4, len, 0));
		memcpy(b + l4 + 2, &c, 2);
	}
}

static void
check_tcp(const struct corq_frame *f, const struct corq_seg *seg, const struct corq_key *key)
{
	bool syn = seg->flags & CORQ_TH_SYN;

	CORQ_ASSERT(key->rport && key->lport && key->zero == 0);
	CORQ_ASSERT(corq_addr_is_v4(&key->raddr) == corq_addr_is_v4(&key->laddr));
	CORQ_ASSERT(seg->payload_off >= 54 && seg->payload_off <= f->len);
	CORQ_ASSERT(seg->payload_off + seg->len <= f->pkt_len);
	CORQ_ASSERT(seg->wscale <= 14);
	CORQ_ASSERT(syn || !(seg->opts & ~(CORQ_OPT_TS | CORQ_OPT_SACK)));
	CORQ_ASSERT(!syn || !(seg->opts & CORQ_OPT_SACK));
	CORQ_ASSERT(!(seg->opts & CORQ_OPT_MSS) == (seg->mss == 0));
	if (seg->opts & CORQ_OPT_SACK) {
		volatile uint32_t sink;

		CORQ_ASSERT(seg->nsack >= 1 && seg->nsack <= 4);
		CORQ_ASSERT(seg->sack_off + 8u * seg->nsack <= seg->payload_off);
		for (uint32_t i = 0; i < 2u * seg->nsack; i++)
			sink = corq_get_be32(f->data + seg->sack_off + 4 * i);
		(void)sink;
	}
}

static void
check_arp(const struct corq_frame *f)
{
	struct corq_arp_guard g = {0};
	struct corq_neigh nt;
	struct corq_neigh_action act;
	struct corq_arp a;
	void *mem;

	if (corq_arp_parse(f, &a) != CORQ_R_NONE)
		return;
	mem = aligned_alloc(CORQ_CACHELINE, (corq_neigh_bytes(4) + 63) / 64 * 64);
	CORQ_ASSERT(mem);
	corq_neigh_init(&nt, mem, 4, CORQ_NEIGH_HELD, 1);
	corq_neigh_lookup(&nt, &a.spa, 1);
	corq_neigh_arp_input(&nt, &a, CORQ_NEIGH_MAY_CREATE, 2);
	while (corq_neigh_poll(&nt, 2, 1, &act))
		CORQ_ASSERT(act.idx < 4);
	corq_arp_conflict(&g, &a, &a.tpa, us, 3);
	free(mem);
}

static void
check_icmp(const struct corq_frame *f, const struct corq_seg *seg, const struct corq_key *key)
{
	static uint8_t buf[CORQ_FRAME_HEADROOM + CORQ_FRAME_DATAROOM];
	struct corq_frame out = {
		.buf_start = buf, .data = buf + CORQ_FRAME_HEADROOM, .room = sizeof(buf)};
	struct corq_parse_ctx peer = {.mac = {2, 0, 0, 0, 0, 9}};
	struct corq_icmp m;
	struct corq_seg back;
	struct corq_key back_key;
	enum corq_pkt kind;

	if (corq_icmp_parse(f, seg, key, &m) != CORQ_R_NONE)
		return;
	CORQ_ASSERT(m.is_error == (m.type != CORQ_ICMP_ECHO));
	if (m.is_error) {
		CORQ_ASSERT(corq_addr_eq(&m.key.laddr, &key->laddr) && m.key.zero == 0);
		return;
	}
	corq_icmp_build_echo_reply(&out, f, seg, key, 1500, peer.mac, us, 0);
	CORQ_ASSERT(out.pkt_len <= 1514 && out.len == out.pkt_len);
	/* our address may be one that no peer would accept as a source: then only no crash */
	if (corq_net_parse(&out, &peer, &back, &back_key, &kind) == CORQ_R_NONE)
		CORQ_ASSERT(kind == CORQ_PKT_ICMP4 && corq_csum_finish(corq_csum_chain(&out,
							      back.payload_off, back.len, 0)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct corq_parse_ctx ctx = {.mtu = 1500};
	struct corq_frame *f;
	struct corq_seg seg;
	struct corq_key key;
	enum corq_pkt kind;
	enum corq_reason r;
	uint8_t *b;
	size_t n, cut;

	if (size < 3 || size > 4096)
		return 0;
	n = size - 3;
	b = malloc(n ? n : 1);
	CORQ_ASSERT(b);
	memcpy(b, data + 3, n);
	if (data[2] & 1)
		repair(b, n);
	memcpy(ctx.mac, us, 6);
	ctx.trust_rx = data[0] & 0x80;
	cut = data[1] ? CORQ_MIN((size_t)data[1], n) : n;
	f = part(b, cut);
	if (cut < n)
		f->next = part(b + cut, n - cut);
	f->pkt_len = (uint32_t)n;
	f->flags = data[0] & 0xf;
	free(b);
	r = corq_net_parse(f, &ctx, &seg, &key, &kind);
	CORQ_ASSERT(r < CORQ_R_COUNT && (r == CORQ_R_NONE) == (kind != CORQ_PKT_DROP));
	if (kind == CORQ_PKT_TCP)
		check_tcp(f, &seg, &key);
	else if (kind == CORQ_PKT_ARP)
		check_arp(f);
	else if (kind == CORQ_PKT_ICMP4)
		check_icmp(f, &seg, &key);
	release(f);
	return 0;
}
