/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser below TCP: Ethernet, IPv4, IPv6, checksums by flag and by software, chains, and
 * frames cut at every byte. TCP itself is test_parse_tcp.c. */
#include "net_parse.h"

#include "net/csum.h"

static void
plain_segment(void **state)
{
	static const uint8_t src4[4] = {192, 0, 2, 2}, dst4[4] = {192, 0, 2, 1};
	struct corq_addr src, dst;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct nf_pkt p;
		struct np_result o;

		nf_tcp(&p, v6, 0x18, NULL, 0, 100);
		o = np_parse_pkt(&p);
		assert_int_equal(o.r, CORQ_R_NONE);
		assert_int_equal(o.kind, CORQ_PKT_TCP);
		assert_int_equal(o.seg.len, 100);
		assert_int_equal(o.seg.payload_off, v6 ? 74 : 54);
		assert_int_equal(o.seg.seq, 1000);
		assert_int_equal(o.seg.ack, 2000);
		assert_int_equal(o.seg.wnd, 512);
		assert_int_equal(o.seg.flags, CORQ_TH_ACK | CORQ_TH_PSH);
		assert_int_equal(o.seg.opts, 0);
		assert_int_equal(o.seg.hash, 0);
		assert_int_equal(o.key.rport, 40000);
		assert_int_equal(o.key.lport, 80);
		if (v6) {
			memcpy(&src, p.b + 22, 16);
			memcpy(&dst, p.b + 38, 16);
		} else {
			corq_addr_from_v4(&src, src4);
			corq_addr_from_v4(&dst, dst4);
		}
		assert_true(corq_addr_eq(&o.key.raddr, &src));
		assert_true(corq_addr_eq(&o.key.laddr, &dst));
		assert_int_equal(corq_addr_is_v4(&o.key.raddr), !v6);
	}
}

static void
ethernet_destination_and_type(void **state)
{
	struct nf_pkt p, q;

	(void)state;
	nf_tcp(&p, false, 0x10, NULL, 0, 0);
	q = p;
	q.b[5] ^= 0x80; /* another station */
	assert_int_equal(np_parse_pkt(&q).r, CORQ_R_L2_NOT_US);
	q = p;
	q.b[2] ^= 1;
	assert_int_equal(np_parse_pkt(&q).r, CORQ_R_L2_NOT_US);
	memset(q.b, 0xff, 6);
	q.b[2] = 0xff;
	assert_int_equal(np_parse_pkt(&q).r, CORQ_R_IP_NOT_UNICAST);
	q = p;
	q.b[0] = 0x01; /* multicast */
	assert_int_equal(np_parse_pkt(&q).r, CORQ_R_IP_NOT_UNICAST);
	static const uint16_t types[] = {0x8100, 0x88a8, 0x0801, 0x86dc, 46, 0, 0xffff};
	for (size_t i = 0; i < CORQ_ARRAY_LEN(types); i++) {
		q = p;
		nf_put16(q.b + 12, types[i]);
		assert_int_equal(np_parse_pkt(&q).r, CORQ_R_L2_TYPE);
	}
	/* a tag that the port stripped is none of the parser's business */
	struct corq_frame *f = nf_rx(p.b, p.len);
	f->flags = CORQ_FRAME_VLAN;
	f->vlan_tci = 7;
	assert_int_equal(np_parse_frame(f, &np_ctx).kind, CORQ_PKT_TCP);
	nf_free(f);
}

static void
arp_is_only_named(void **state)
{
	uint8_t b[60] = {0};
	struct np_result o;

	(void)state;
	memset(b, 0xff, 6);
	nf_put16(b + 12, 0x0806);
	o = np_parse(b, sizeof(b));
	assert_int_equal(o.kind, CORQ_PKT_ARP);
	assert_int_equal(o.seg.payload_off, 14);
	assert_int_equal(o.seg.len, 46);
	for (size_t n = 0; n < 14; n++)
		assert_int_equal(np_parse(b, n).r, CORQ_R_L2_SHORT);
	assert_int_equal(np_parse(b, 14).kind, CORQ_PKT_ARP);
}

static void
padding_is_cut(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct nf_pkt p;
		struct np_result o;

		nf_tcp(&p, v6, 0x10, NULL, 0, 3);
		memset(p.b + p.len, 0x77, 40);
		o = np_parse(p.b, p.len + 40);
		assert_int_equal(o.kind, CORQ_PKT_TCP);
		assert_int_equal(o.seg.len, 3);
	}
}

/* A field of the IPv4 header, changed, with the header checksum made right again. */
static enum corq_reason
with_ip4(size_t off, uint8_t value)
{
	struct nf_pkt p;

	nf_tcp(&p, false, 0x10, NULL, 0, 10);
	p.b[14 + off] = value;
	nf_fix_ip4(&p);
	nf_fix_tcp(&p);
	return np_parse_pkt(&p).r;
}

static void
ip4_header_fields(void **state)
{
	struct nf_pkt p;

	(void)state;
	for (int v = 0; v < 16; v++)
		if (v != 4)
			assert_int_equal(with_ip4(0, (uint8_t)(v << 4 | 5)), CORQ_R_IP_VERSION);
	for (int h = 0; h < 5; h++)
		assert_int_equal(with_ip4(0, (uint8_t)(0x40 | h)), CORQ_R_IP_HLEN);
	assert_int_equal(with_ip4(6, 0x20), CORQ_R_IP_FRAGMENT); /* MF */
	assert_int_equal(with_ip4(6, 0x10), CORQ_R_IP_FRAGMENT);
	assert_int_equal(with_ip4(7, 0x01), CORQ_R_IP_FRAGMENT);
	assert_int_equal(with_ip4(6, 0x40), CORQ_R_NONE); /* DF */
	assert_int_equal(with_ip4(6, 0x00), CORQ_R_NONE);
	for (int proto = 0; proto < 256; proto++)
		if (proto != 6 && proto != 1)
			assert_int_equal(with_ip4(9, (uint8_t)proto), CORQ_R_IP_PROTO);
	nf_tcp(&p, false, 0x10, NULL, 0, 10);
	p.b[15] = 0xfe; /* DSCP and ECT(0) */
	nf_fix_ip4(&p);
	assert_int_equal(np_parse_pkt(&p).seg.ecn, 2);
}

static void
ip_lengths(void **state)
{
	struct nf_pkt p;

	(void)state;
	nf_tcp(&p, false, 0x10, NULL, 0, 10);
	for (uint32_t len = 0; len < 1600; len++) {
		enum corq_reason want = len < 20      ? CORQ_R_IP_LEN
					: len < 40    ? CORQ_R_TCP_SHORT
					: len < 50    ? CORQ_R_TCP_CSUM
					: len == 50   ? CORQ_R_NONE
					: len <= 1500 ? CORQ_R_IP_LEN
						      : CORQ_R_IP_OVERSIZE;

		nf_put16(p.b + 16, len);
		nf_fix_ip4(&p);
		assert_int_equal(np_parse_pkt(&p).r, want);
	}
	nf_tcp(&p, true, 0x10, NULL, 0, 10);
	for (uint32_t len = 0; len < 1600; len++) {
		enum corq_reason want = len < 20      ? CORQ_R_TCP_SHORT
					: len < 30    ? CORQ_R_TCP_CSUM
					: len == 30   ? CORQ_R_NONE
					: len <= 1460 ? CORQ_R_IP_LEN
						      : CORQ_R_IP_OVERSIZE;

		nf_put16(p.b + 18, len);
		assert_int_equal(np_parse_pkt(&p).r, want);
	}
}

static void
ip4_checksum(void **state)
{
	struct nf_pkt p;
	struct corq_parse_ctx trust = np_ctx;
	struct corq_frame *f;

	(void)state;
	trust.trust_rx = true;
	nf_tcp(&p, false, 0x10, NULL, 0, 10);
	for (int bit = 0; bit < 160; bit++) {
		struct nf_pkt q = p;

		q.b[14 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(np_parse_pkt(&q).r, CORQ_R_NONE);
	}
	p.b[22]--; /* TTL, checksum not corrected */
	f = nf_rx(p.b, p.len);
	assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_IP_CSUM); /* no flag: software */
	f->flags = CORQ_FRAME_IP_CSUM_GOOD;
	assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_NONE);
	assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_IP_CSUM); /* flags not trusted */
	nf_free(f);
	p.b[22]++;
	f = nf_rx(p.b, p.len);
	f->flags = CORQ_FRAME_IP_CSUM_BAD;
	assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_IP_CSUM);
	assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_NONE);
	nf_free(f);
}

/* An IPv4 header with n option bytes (a multiple of 4) in front of an ACK. */
static enum corq_reason
with_ip4_options(const uint8_t *opts, size_t n)
{
	struct nf_pkt p;
	struct np_result o;
	uint8_t *t;

	nf_l3(&p, false, opts, n, 6, 20);
	t = p.b + p.l4;
	nf_put16(t, 1);
	nf_put16(t + 2, 2);
	t[12] = 0x50;
	t[13] = 0x10;
	nf_fix_tcp(&p);
	o = np_parse_pkt(&p);
	if (o.r == CORQ_R_NONE)
		assert_int_equal(o.seg.payload_off, 14 + 20 + n + 20);
	return o.r;
}

static void
ip4_options(void **state)
{
	static const uint8_t rr[] = {7, 7, 4, 0, 0, 0, 0, 0}, lsrr[] = {131, 7, 4, 1, 2, 3, 4, 0},
			     ssrr[] = {1, 137, 7, 4, 1, 2, 3, 4}, ra[] = {148, 4, 0, 0};
	uint8_t full[40], o[4];

	(void)state;
	assert_int_equal(with_ip4_options(rr, 8), CORQ_R_NONE);
	assert_int_equal(with_ip4_options(ra, 4), CORQ_R_NONE);
	assert_int_equal(with_ip4_options(lsrr, 8), CORQ_R_IP_OPTIONS);
	assert_int_equal(with_ip4_options(ssrr, 8), CORQ_R_IP_OPTIONS);
	memset(full, 1, sizeof(full));
	assert_int_equal(with_ip4_options(full, 40), CORQ_R_NONE);
	full[39] = 7; /* a kind whose length would lie behind the header */
	assert_int_equal(with_ip4_options(full, 40), CORQ_R_IP_OPTIONS);
	for (int l = 0; l < 256; l++) {
		memset(o, 0, 4);
		o[0] = 7;
		o[1] = (uint8_t)l;
		assert_int_equal(
			with_ip4_options(o, 4), l < 2 || l > 4 ? CORQ_R_IP_OPTIONS : CORQ_R_NONE);
	}
	/* what stands behind the end of the list is not looked at */
	memset(o, 131, 4);
	o[0] = 0;
	assert_int_equal(with_ip4_options(o, 4), CORQ_R_NONE);
}

static enum corq_reason
from4_to4(uint32_t src, uint32_t dst)
{
	struct nf_pkt p;

	nf_tcp(&p, false, 0x10, NULL, 0, 0);
	nf_put32(p.b + 26, src);
	nf_put32(p.b + 30, dst);
	nf_fix_ip4(&p);
	nf_fix_tcp(&p);
	return np_parse_pkt(&p).r;
}

static void
ip4_addresses(void **state)
{
	const uint32_t us = 0xc0000201;
	static const uint32_t bad[] = {0, 0x00000001, 0x00ffffff, 0x7f000001, 0x7fffffff,
		0xe0000001, 0xefffffff, 0xffffffff};
	static const uint32_t good[] = {0x01000000, 0x7effffff, 0x80000000, 0xdfffffff, 0xf0000001};
	static const uint32_t group[] = {0xe0000001, 0xefffffff, 0xffffffff};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(bad); i++)
		assert_int_equal(from4_to4(bad[i], us), CORQ_R_IP_SRC_BAD);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(good); i++)
		assert_int_equal(from4_to4(good[i], us), CORQ_R_NONE);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(group); i++)
		assert_int_equal(from4_to4(0xc0000202, group[i]), CORQ_R_IP_NOT_UNICAST);
}

static enum corq_reason
from6_to6(const char *src, const char *dst, uint8_t proto)
{
	struct nf_pkt p;
	struct corq_addr a, b;

	assert_int_equal(corq_addr_parse(src, &a), 0);
	assert_int_equal(corq_addr_parse(dst, &b), 0);
	nf_tcp(&p, true, 0x10, NULL, 0, 0);
	memcpy(p.b + 22, &a, 16);
	memcpy(p.b + 38, &b, 16);
	p.b[20] = proto;
	nf_fix_tcp(&p);
	return np_parse_pkt(&p).r;
}

static void
ip6_header_and_addresses(void **state)
{
	struct nf_pkt p;

	(void)state;
	assert_int_equal(from6_to6("fe80::1", "fe80::2", 6), CORQ_R_NONE);
	assert_int_equal(from6_to6("::2", "fe80::2", 6), CORQ_R_NONE);
	assert_int_equal(from6_to6("::1", "fe80::2", 6), CORQ_R_IP_SRC_BAD);
	assert_int_equal(from6_to6("::", "fe80::2", 6), CORQ_R_IP_SRC_BAD);
	assert_int_equal(from6_to6("::", "ff02::1:ff00:1", 58), CORQ_R_NONE);
	assert_int_equal(from6_to6("ff02::1", "fe80::2", 6), CORQ_R_IP_SRC_BAD);
	assert_int_equal(from6_to6("::ffff:10.0.0.1", "fe80::2", 6), CORQ_R_IP_SRC_BAD);
	assert_int_equal(from6_to6("fe80::1", "::ffff:10.0.0.1", 6), CORQ_R_IP_NOT_US);
	assert_int_equal(from6_to6("fe80::1", "ff02::1", 6), CORQ_R_IP_NOT_UNICAST);
	assert_int_equal(from6_to6("fe80::1", "ff02::1", 58), CORQ_R_NONE);
	for (int next = 0; next < 256; next++)
		if (next != 6 && next != 58)
			assert_int_equal(from6_to6("fe80::1", "fe80::2", (uint8_t)next),
				next == 44 ? CORQ_R_IP_FRAGMENT : CORQ_R_IP_PROTO);
	nf_tcp(&p, true, 0x10, NULL, 0, 0);
	p.b[14] = 0x6f; /* traffic class 0xf3, flow label */
	p.b[15] = 0x31;
	assert_int_equal(np_parse_pkt(&p).seg.ecn, 3);
	p.b[14] = 0x40;
	assert_int_equal(np_parse_pkt(&p).r, CORQ_R_IP_VERSION);
}

static void
icmp_is_only_named(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct nf_pkt p;
		struct np_result o;

		nf_l3(&p, v6, NULL, 0, v6 ? 58 : 1, 30);
		o = np_parse_pkt(&p);
		assert_int_equal(o.kind, v6 ? CORQ_PKT_ICMP6 : CORQ_PKT_ICMP4);
		assert_int_equal(o.seg.payload_off, p.l4);
		assert_int_equal(o.seg.len, 30);
		assert_int_equal(o.key.rport, 0);
		assert_int_equal(o.key.lport, 0);
		/* ICMP of the other family */
		nf_l3(&p, v6, NULL, 0, v6 ? 1 : 58, 30);
		assert_int_equal(np_parse_pkt(&p).r, CORQ_R_IP_PROTO);
		/* smurf */
		nf_l3(&p, v6, NULL, 0, v6 ? 58 : 1, 30);
		memset(p.b, 0xff, 6);
		assert_int_equal(np_parse_pkt(&p).r, v6 ? CORQ_R_NONE : CORQ_R_IP_NOT_UNICAST);
	}
}

/* Every kind of packet, cut at every byte: dropped as too short, and never read beyond. */
static void
cut_at_every_byte(void **state)
{
	static const uint8_t opts[12] = {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8};
	struct nf_pkt p[5];

	(void)state;
	nf_tcp(&p[0], false, 0x10, NULL, 0, 20);
	nf_tcp(&p[1], true, 0x10, opts, 12, 20);
	nf_l3(&p[2], false, opts, 12, 6, 60);
	nf_l3(&p[3], false, NULL, 0, 1, 40);
	nf_l3(&p[4], true, NULL, 0, 58, 40);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(p); i++) {
		for (size_t n = 0; n < p[i].len; n++) {
			enum corq_reason r = np_parse(p[i].b, n).r;

			if (n < 14)
				assert_int_equal(r, CORQ_R_L2_SHORT);
			else if (n < p[i].l4)
				assert_true(r == CORQ_R_IP_SHORT || r == CORQ_R_IP_CSUM);
			else
				assert_int_equal(r, CORQ_R_IP_LEN);
		}
	}
}

/* Payload may go on in further parts; headers may not. */
static void
chains(void **state)
{
	static const uint8_t opts[12] = {1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct nf_pkt p;

		nf_tcp(&p, v6, 0x10, opts, 12, 61);
		for (size_t cut = 0; cut <= p.len; cut++) {
			size_t cuts[2] = {cut, (p.len - cut) / 2};
			struct corq_frame *f = nf_rx_chain(p.b, p.len, cuts, 2);
			enum corq_reason r = np_parse_frame(f, &np_ctx).r;

			if (cut < 14)
				assert_int_equal(r, CORQ_R_L2_SHORT);
			else if (cut < p.l4)
				assert_int_equal(r, CORQ_R_IP_SHORT);
			else if (cut < p.l4 + 32)
				assert_int_equal(r, CORQ_R_TCP_SHORT);
			else
				assert_int_equal(r, CORQ_R_NONE);
			nf_free(f);
		}
	}
}

/* pkt_len of a lone part is not believed over its len. */
static void
lying_pkt_len(void **state)
{
	struct nf_pkt p;
	struct corq_frame *f;
	struct np_result o;

	(void)state;
	nf_tcp(&p, false, 0x10, NULL, 0, 20);
	f = nf_rx(p.b, p.len - 10);
	f->pkt_len = (uint32_t)p.len;
	o = np_parse_frame(f, &np_ctx);
	assert_int_equal(o.r, CORQ_R_IP_LEN);
	nf_free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_segment),
		cmocka_unit_test(ethernet_destination_and_type),
		cmocka_unit_test(arp_is_only_named),
		cmocka_unit_test(padding_is_cut),
		cmocka_unit_test(ip4_header_fields),
		cmocka_unit_test(ip_lengths),
		cmocka_unit_test(ip4_checksum),
		cmocka_unit_test(ip4_options),
		cmocka_unit_test(ip4_addresses),
		cmocka_unit_test(ip6_header_and_addresses),
		cmocka_unit_test(icmp_is_only_named),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(chains),
		cmocka_unit_test(lying_pkt_len),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
