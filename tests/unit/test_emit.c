/* SPDX-License-Identifier: BSD-3-Clause */
/* Emitted packets: one compared byte by byte with a packet written by hand, all others by parsing
 * them back and by the slow checksum; what offload flags leave to the device; option writers. */
#include "net_parse.h"

#include "net/emit.h"

static void
addr4(struct corq_addr *a, uint8_t last)
{
	const uint8_t v4[4] = {192, 0, 2, last};

	corq_addr_from_v4(a, v4);
}

static void
addr6(struct corq_addr *a, uint8_t last)
{
	memset(a, 0, sizeof(*a));
	a->b[0] = 0x20;
	a->b[1] = 0x01;
	a->b[2] = 0x0d;
	a->b[3] = 0xb8;
	a->b[15] = last;
}

/* From .2 at nf_peer to .1 at nf_us, port 40000 to 80: what nf_tcp writes. */
static void
fill(struct corq_tcp_out *o, struct corq_addr *src, struct corq_addr *dst, bool v6)
{
	(v6 ? addr6 : addr4)(src, 2);
	(v6 ? addr6 : addr4)(dst, 1);
	*o = (struct corq_tcp_out){.src = src,
		.dst = dst,
		.sport = 40000,
		.dport = 80,
		.seq = 1000,
		.ack = 2000,
		.wnd = 512,
		.flags = CORQ_TH_ACK | CORQ_TH_PSH,
		.ttl = 64};
}

static void
equals_a_packet_written_by_hand(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		for (size_t n = 0; n < 100; n++) {
			static const uint8_t opts[12] = {1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 8};
			struct corq_frame *f = nf_tx(2048);
			struct corq_addr src, dst;
			struct corq_tcp_out o;
			struct nf_pkt p;

			nf_tcp(&p, v6, 0x18, opts, 12, n);
			fill(&o, &src, &dst, v6);
			corq_opt_put_ts(&o, 7, 8);
			memcpy(f->data, p.b + p.l4 + 32, n);
			f->len = (uint16_t)n;
			f->pkt_len = (uint32_t)n;
			corq_emit_tcp(f, &o, nf_us, nf_peer, 0);
			assert_int_equal(f->len, p.len);
			assert_int_equal(f->pkt_len, p.len);
			assert_memory_equal(f->data, p.b, p.len);
			assert_int_equal(f->flags, 0);
			assert_int_equal(f->l2_len, 14);
			assert_int_equal(f->l3_len, v6 ? 40 : 20);
			assert_int_equal(f->l4_len, 32);
			nf_free(f);
		}
	}
}

/* Random fields, options and payload in random parts: the parser, which checks both checksums,
 * gives the same back. */
static void
round_trip(void **state)
{
	uint64_t seed = nf_seed(__func__);

	(void)state;
	for (int round = 0; round < 20000; round++) {
		bool v6 = nf_rand(&seed) & 1;
		struct corq_frame *f = nf_tx(2048), **tail = &f->next;
		struct corq_addr src, dst;
		struct corq_tcp_out o;
		struct np_result r;
		uint32_t parts = nf_rand(&seed) % 4;

		fill(&o, &src, &dst, v6);
		src.b[15] = (uint8_t)(nf_rand(&seed) % 250 + 3);
		o.sport = (uint16_t)(nf_rand(&seed) % 65535 + 1);
		o.dport = (uint16_t)(nf_rand(&seed) % 65535 + 1);
		o.seq = (uint32_t)nf_rand(&seed);
		o.ack = (uint32_t)nf_rand(&seed);
		o.wnd = (uint16_t)nf_rand(&seed);
		o.ecn = nf_rand(&seed) & 3;
		o.ttl = (uint8_t)nf_rand(&seed);
		o.flags = (uint8_t)(CORQ_TH_ACK | (nf_rand(&seed) & 0xe9));
		if (nf_rand(&seed) & 1)
			corq_opt_put_ts(&o, (uint32_t)nf_rand(&seed), 5);
		f->len = (uint16_t)(nf_rand(&seed) % 300);
		f->pkt_len = f->len;
		for (size_t i = 0; i < f->len; i++)
			f->data[i] = (uint8_t)nf_rand(&seed);
		for (uint32_t k = 0; k < parts; k++) {
			uint8_t b[300];
			size_t n = nf_rand(&seed) % sizeof(b);

			for (size_t i = 0; i < n; i++)
				b[i] = (uint8_t)nf_rand(&seed);
			*tail = nf_rx(b, n);
			f->pkt_len += (uint32_t)n;
			tail = &(*tail)->next;
		}
		uint32_t payload = f->pkt_len;
		corq_emit_tcp(f, &o, nf_us, nf_peer, 0);
		r = np_parse_frame(f, &np_ctx);
		assert_int_equal(r.r, CORQ_R_NONE);
		assert_int_equal(r.kind, CORQ_PKT_TCP);
		assert_int_equal(r.seg.len, payload);
		assert_int_equal(r.seg.payload_off + payload, f->pkt_len);
		assert_int_equal(r.seg.seq, o.seq);
		assert_int_equal(r.seg.ack, o.ack);
		assert_int_equal(r.seg.wnd, o.wnd);
		assert_int_equal(r.seg.flags, o.flags);
		assert_int_equal(r.seg.ecn, o.ecn);
		assert_int_equal(r.seg.urg, 0);
		assert_int_equal(r.key.rport, o.sport);
		assert_int_equal(r.key.lport, o.dport);
		assert_true(corq_addr_eq(&r.key.raddr, &src));
		assert_true(corq_addr_eq(&r.key.laddr, &dst));
		assert_int_equal(r.seg.opts, o.opt_len ? CORQ_OPT_TS : 0);
		if (o.opt_len)
			assert_int_equal(r.seg.tsecr, 5);
		assert_int_equal(f->data[v6 ? 21 : 22], o.ttl);
		nf_free(f);
	}
}

static struct corq_frame *
emit_with(bool v6, uint16_t flags, uint32_t caps, uint32_t n)
{
	struct corq_frame *f = nf_tx(2048);
	struct corq_addr src, dst;
	struct corq_tcp_out o;

	fill(&o, &src, &dst, v6);
	memset(f->data, 0x5a, n);
	f->len = (uint16_t)n;
	f->pkt_len = n;
	f->flags = flags;
	corq_emit_tcp(f, &o, nf_us, nf_peer, caps);
	return f;
}

static void
offloads(void **state)
{
	struct nf_pkt p;
	struct corq_frame *f;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		size_t l4 = v6 ? 54 : 34;

		nf_tcp(&p, v6, 0x18, NULL, 0, 100);
		f = emit_with(v6, CORQ_FRAME_VLAN, CORQ_EMIT_L4_OFFLOAD, 100);
		assert_int_equal(f->flags, CORQ_FRAME_VLAN | CORQ_FRAME_TX_L4_CSUM);
		assert_int_equal(nf_get16(f->data + l4 + 16), nf_pseudo(&p, 120, 6));
		assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_TCP_CSUM_PARTIAL);
		nf_free(f);
		f = emit_with(v6, CORQ_FRAME_TX_TSO, 0, 100); /* the length is left out */
		assert_int_equal(f->flags, CORQ_FRAME_TX_TSO | CORQ_FRAME_TX_L4_CSUM);
		assert_int_equal(nf_get16(f->data + l4 + 16), nf_pseudo(&p, 0, 6));
		nf_free(f);
	}
	f = emit_with(false, 0, CORQ_EMIT_IP_OFFLOAD, 100);
	assert_int_equal(f->flags, CORQ_FRAME_TX_IP_CSUM);
	assert_int_equal(nf_get16(f->data + 24), 0);
	assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_IP_CSUM);
	nf_free(f);
	f = emit_with(true, 0, CORQ_EMIT_IP_OFFLOAD, 100); /* IPv6 has no such checksum */
	assert_int_equal(f->flags, 0);
	assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_NONE);
	nf_free(f);
}

static void
largest_headers_fit_the_headroom(void **state)
{
	struct corq_frame *f = nf_tx(0);
	struct corq_addr src, dst;
	struct corq_tcp_out o;

	(void)state;
	fill(&o, &src, &dst, true);
	memset(o.opts, 1, sizeof(o.opts));
	o.opt_len = 40;
	corq_emit_tcp(f, &o, nf_us, nf_peer, 0);
	assert_int_equal(f->len, 114);
	assert_true(f->data >= f->buf_start);
	assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_NONE);
	nf_free(f);
}

static void
syn_options(void **state)
{
	static const struct {
		struct corq_syn_opts s;
		uint8_t n, want[20];
	} t[] = {
		{{.mss = 1460,
			 .has_sack = true,
			 .has_ts = true,
			 .tsval = 0x01020304,
			 .tsecr = 5,
			 .has_wscale = true,
			 .wscale = 7},
			20, {2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 5, 1, 3, 3, 7}},
		{{.mss = 536}, 4, {2, 4, 2, 24}},
		{{.has_ts = true, .tsval = 1}, 12, {1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0}},
		{{.has_sack = true, .has_wscale = true, .wscale = 14}, 8,
			{1, 1, 4, 2, 1, 3, 3, 14}},
		{{.mss = 0}, 0, {0}},
	};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(t); i++) {
		struct corq_tcp_out o = {.opt_len = 0};

		corq_opt_put_syn(&o, &t[i].s);
		assert_int_equal(o.opt_len, t[i].n);
		assert_memory_equal(o.opts, t[i].want, t[i].n);
	}
}

static void
sack_options(void **state)
{
	const struct corq_sack_block b[6] = {
		{10, 20}, {30, 40}, {50, 60}, {70, 80}, {90, 95}, {0, 1}};

	(void)state;
	for (int ts = 0; ts < 2; ts++) {
		for (uint8_t n = 0; n <= 6; n++) {
			uint8_t want = n < (ts ? 3 : 4) ? n : ts ? 3 : 4;
			struct corq_frame *f = nf_tx(0);
			struct corq_addr src, dst;
			struct corq_tcp_out o;
			struct np_result r;

			fill(&o, &src, &dst, false);
			if (ts)
				corq_opt_put_ts(&o, 1, 2);
			assert_int_equal(corq_opt_put_sack(&o, b, n), want);
			assert_int_equal(o.opt_len, (ts ? 12 : 0) + (want ? 4 + 8 * want : 0));
			corq_emit_tcp(f, &o, nf_us, nf_peer, 0);
			r = np_parse_frame(f, &np_ctx);
			assert_int_equal(r.r, CORQ_R_NONE);
			assert_int_equal(r.seg.nsack, want);
			for (uint8_t i = 0; i < want; i++) {
				assert_int_equal(
					nf_get16(f->data + r.seg.sack_off + 8 * i + 2), b[i].start);
				assert_int_equal(
					nf_get16(f->data + r.seg.sack_off + 8 * i + 6), b[i].end);
			}
			nf_free(f);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_a_packet_written_by_hand),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(offloads),
		cmocka_unit_test(largest_headers_fit_the_headroom),
		cmocka_unit_test(syn_options),
		cmocka_unit_test(sack_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
