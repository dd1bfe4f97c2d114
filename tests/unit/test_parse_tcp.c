/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser's TCP half: offsets, ports, flags, land, checksums, and every way to write an option
 * wrong. */
#include "net_parse.h"

static struct np_result
parse_opts(uint8_t flags, const uint8_t *opts, size_t n)
{
	struct nf_pkt p;

	nf_tcp(&p, false, flags, opts, n, 0);
	return np_parse_pkt(&p);
}

static void
data_offset(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		for (uint32_t off = 0; off < 16; off++) {
			struct nf_pkt p;
			struct np_result o;

			nf_tcp(&p, v6, 0x10, NULL, 0, 20); /* zeros would be EOL; 0, 1, 2.. is */
			memset(p.b + p.l4 + 20, 0, 20);
			p.b[p.l4 + 12] = (uint8_t)(off << 4 | 0xf); /* low bits: not ours */
			nf_fix_tcp(&p);
			o = np_parse_pkt(&p);
			assert_int_equal(o.r, off < 5 || off > 10 ? CORQ_R_TCP_HLEN : CORQ_R_NONE);
			if (o.r == CORQ_R_NONE)
				assert_int_equal(o.seg.len, 40 - off * 4);
		}
	}
}

/* The IP length says n bytes of TCP, the frame ends there, and the checksum is right for n. */
static void
cut_at_every_byte(void **state)
{
	static const uint8_t opts[20] = {
		2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7};

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		for (size_t n = 0; n <= 45; n++) {
			struct nf_pkt p;
			enum corq_reason r;

			nf_tcp(&p, v6, 0x02, opts, 20, 5);
			nf_set_l4_len(&p, n);
			if (n >= 18)
				nf_fix_tcp(&p);
			r = np_parse_pkt(&p).r;
			assert_int_equal(r, n < 20   ? CORQ_R_TCP_SHORT
					    : n < 40 ? CORQ_R_TCP_HLEN
						     : CORQ_R_NONE);
		}
	}
}

static void
ports(void **state)
{
	struct nf_pkt p;

	(void)state;
	nf_tcp(&p, false, 0x10, NULL, 0, 0);
	nf_put16(p.b + p.l4, 0);
	nf_fix_tcp(&p);
	assert_int_equal(np_parse_pkt(&p).r, CORQ_R_TCP_PORT_ZERO);
	nf_tcp(&p, false, 0x10, NULL, 0, 0);
	nf_put16(p.b + p.l4 + 2, 0);
	nf_fix_tcp(&p);
	assert_int_equal(np_parse_pkt(&p).r, CORQ_R_TCP_PORT_ZERO);
}

static void
every_flag_combination(void **state)
{
	(void)state;
	for (int fl = 0; fl < 256; fl++) {
		struct np_result o = parse_opts((uint8_t)fl, NULL, 0);
		bool syn = fl & 2, fin = fl & 1, rst = fl & 4, ack = fl & 16;
		bool bad = (syn && fin) || (syn && rst) || (!syn && !fin && !rst && !ack);

		assert_int_equal(o.r, bad ? CORQ_R_TCP_FLAGS : CORQ_R_NONE);
		if (!bad)
			assert_int_equal(o.seg.flags, fl);
	}
}

static void
land(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		struct nf_pkt p;

		nf_tcp(&p, v6, 0x02, NULL, 0, 0);
		memcpy(p.b + (v6 ? 22 : 26), p.b + (v6 ? 38 : 30), v6 ? 16 : 4);
		if (!v6)
			nf_fix_ip4(&p);
		nf_fix_tcp(&p);
		assert_int_equal(np_parse_pkt(&p).r, CORQ_R_NONE); /* ports differ */
		nf_put16(p.b + p.l4, 80);
		nf_fix_tcp(&p);
		assert_int_equal(np_parse_pkt(&p).r, CORQ_R_IP_LAND);
	}
}

static void
checksum_in_software(void **state)
{
	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		for (size_t n = 0; n < 40; n++) {
			struct nf_pkt p;

			nf_tcp(&p, v6, 0x10, NULL, 0, n);
			assert_int_equal(np_parse_pkt(&p).r, CORQ_R_NONE);
			for (size_t bit = 0; bit < (20 + n) * 8; bit += 3) {
				struct nf_pkt q = p;

				q.b[q.l4 + bit / 8] ^= (uint8_t)(1 << bit % 8);
				/* a broken data offset is seen before the checksum */
				if (bit / 8 == 12 && bit % 8 >= 4)
					continue;
				assert_int_equal(np_parse_pkt(&q).r, CORQ_R_TCP_CSUM);
			}
			/* the pseudo-header counts: another source address, IP header right */
			p.b[v6 ? 37 : 29] ^= 4;
			if (!v6)
				nf_fix_ip4(&p);
			assert_int_equal(np_parse_pkt(&p).r, CORQ_R_TCP_CSUM);
		}
	}
}

static void
checksum_by_flag(void **state)
{
	struct corq_parse_ctx trust = np_ctx;
	struct nf_pkt p;
	struct corq_frame *f;

	(void)state;
	trust.trust_rx = true;
	nf_tcp(&p, false, 0x10, NULL, 0, 10);
	p.b[p.l4 + 25] ^= 1; /* wrong */
	f = nf_rx(p.b, p.len);
	f->flags = CORQ_FRAME_L4_CSUM_GOOD;
	assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_NONE);
	assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_TCP_CSUM);
	f->flags = CORQ_FRAME_L4_CSUM_GOOD | CORQ_FRAME_L4_CSUM_BAD; /* a device that says both */
	assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_TCP_CSUM);
	f->flags = 0;
	assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_TCP_CSUM);
	nf_free(f);
	p.b[p.l4 + 25] ^= 1; /* right, but the device says bad */
	f = nf_rx(p.b, p.len);
	f->flags = CORQ_FRAME_L4_CSUM_BAD;
	assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_TCP_CSUM);
	assert_int_equal(np_parse_frame(f, &np_ctx).r, CORQ_R_NONE);
	nf_free(f);
}

static void
unfinished_checksum(void **state)
{
	struct corq_parse_ctx trust = np_ctx;

	(void)state;
	trust.trust_rx = true;
	for (int v6 = 0; v6 < 2; v6++) {
		for (size_t n = 0; n < 1400; n += 7) {
			struct nf_pkt p;
			struct np_result o;
			struct corq_frame *f;

			nf_tcp(&p, v6, 0x18, NULL, 0, n);
			nf_put16(p.b + p.l4 + 16, nf_pseudo(&p, 20 + n, 6));
			f = nf_rx(p.b, p.len);
			o = np_parse_frame(f, &np_ctx);
			assert_int_equal(o.r, CORQ_R_TCP_CSUM_PARTIAL);
			assert_true(o.flags_after & CORQ_FRAME_TX_PARTIAL);
			f->flags = CORQ_FRAME_L4_CSUM_BAD;
			assert_int_equal(np_parse_frame(f, &trust).r, CORQ_R_TCP_CSUM_PARTIAL);
			nf_free(f);
			/* complemented, it is merely wrong */
			nf_put16(p.b + p.l4 + 16, ~nf_pseudo(&p, 20 + n, 6));
			o = np_parse_pkt(&p);
			assert_int_equal(o.r, CORQ_R_TCP_CSUM);
			assert_false(o.flags_after & CORQ_FRAME_TX_PARTIAL);
		}
	}
}

static void
syn_options(void **state)
{
	static const uint8_t linux_syn[20] = {
		2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 9, 1, 3, 3, 7};
	struct np_result o = parse_opts(0x02, linux_syn, 20);

	(void)state;
	assert_int_equal(o.r, CORQ_R_NONE);
	assert_int_equal(
		o.seg.opts, CORQ_OPT_MSS | CORQ_OPT_SACK_OK | CORQ_OPT_TS | CORQ_OPT_WSCALE);
	assert_int_equal(o.seg.mss, 1460);
	assert_int_equal(o.seg.wscale, 7);
	assert_int_equal(o.seg.tsval, 0x01020304);
	assert_int_equal(o.seg.tsecr, 9);
	/* the same on a segment without SYN: only the timestamp counts */
	o = parse_opts(0x10, linux_syn, 20);
	assert_int_equal(o.r, CORQ_R_NONE);
	assert_int_equal(o.seg.opts, CORQ_OPT_TS);
}

static void
timestamps_alone(void **state)
{
	static const uint8_t fast[12] = {1, 1, 8, 10, 0xff, 0, 0, 1, 0, 0, 0xff, 2};
	static const uint8_t slow[12] = {8, 10, 0xff, 0, 0, 1, 0, 0, 0xff, 2, 1, 1};
	const uint8_t *const both[] = {fast, slow};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct np_result o = parse_opts(0x10, both[i], 12);

		assert_int_equal(o.seg.opts, CORQ_OPT_TS);
		assert_int_equal(o.seg.tsval, 0xff000001);
		assert_int_equal(o.seg.tsecr, 0x0000ff02);
	}
}

static void
wscale_is_clamped(void **state)
{
	(void)state;
	for (int s = 0; s < 256; s++) {
		uint8_t o[4] = {1, 3, 3, (uint8_t)s};
		struct np_result r = parse_opts(0x02, o, 4);

		assert_int_equal(r.seg.opts, CORQ_OPT_WSCALE);
		assert_int_equal(r.seg.wscale, s > 14 ? 14 : s);
	}
}

static void
sack_blocks(void **state)
{
	(void)state;
	for (int l = 2; l <= 38; l++) {
		uint8_t o[40];
		struct np_result r;
		bool ok = l >= 10 && l <= 34 && (l - 2) % 8 == 0;

		memset(o, 1, sizeof(o));
		o[2] = 5;
		o[3] = (uint8_t)l;
		r = parse_opts(0x10, o, 40);
		assert_int_equal(r.r, CORQ_R_NONE);
		assert_int_equal(r.seg.opts, ok ? CORQ_OPT_SACK : 0);
		if (ok) {
			assert_int_equal(r.seg.nsack, (l - 2) / 8);
			assert_int_equal(r.seg.sack_off, 14 + 20 + 20 + 4);
		}
		assert_int_equal(parse_opts(0x12, o, 40).seg.opts, 0); /* on a SYN: nothing */
	}
}

static void
first_of_a_kind_wins(void **state)
{
	static const uint8_t syn[32] = {2, 4, 0, 100, 2, 4, 0, 200, 3, 3, 5, 3, 3, 6, 8, 10, 0, 0,
		0, 1, 0, 0, 0, 2, 1, 1, 1, 1, 1, 1, 1, 1};
	static const uint8_t ts2[20] = {
		8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4};
	static const uint8_t zero_mss[8] = {2, 4, 0, 0, 2, 4, 1, 0};
	uint8_t sack2[32];
	struct np_result o;

	(void)state;
	o = parse_opts(0x02, syn, 32);
	assert_int_equal(o.seg.mss, 100);
	assert_int_equal(o.seg.wscale, 5);
	o = parse_opts(0x10, ts2, 20);
	assert_int_equal(o.seg.tsval, 1);
	assert_int_equal(o.seg.tsecr, 2);
	o = parse_opts(0x02, zero_mss, 4);
	assert_int_equal(o.seg.opts, 0);
	o = parse_opts(0x02, zero_mss, 8);
	assert_int_equal(o.seg.mss, 256);
	memset(sack2, 1, sizeof(sack2));
	sack2[0] = 5;
	sack2[1] = 10;
	sack2[10] = 5;
	sack2[11] = 18;
	o = parse_opts(0x10, sack2, 32);
	assert_int_equal(o.seg.nsack, 1);
	assert_int_equal(o.seg.sack_off, 14 + 20 + 20 + 2);
}

/* Known kinds with every length that fits but is not theirs: skipped. */
static void
wrong_length_of_a_known_kind(void **state)
{
	static const struct {
		uint8_t kind, len;
	} known[] = {{2, 4}, {3, 3}, {4, 2}, {8, 10}};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(known); i++) {
		for (uint8_t l = 2; l <= 40; l++) {
			uint8_t o[40] = {0};
			struct np_result r;

			memset(o, 5, sizeof(o));
			o[0] = known[i].kind;
			o[1] = l;
			if (l < 40)
				o[l] = 0; /* end of list */
			r = parse_opts(0x02, o, 40);
			assert_int_equal(r.r, CORQ_R_NONE);
			assert_int_equal(r.seg.opts != 0, l == known[i].len);
		}
	}
}

/* Each kind with each length byte, at each distance from the end of the header. */
static void
every_kind_length_and_place(void **state)
{
	(void)state;
	for (int kind = 2; kind < 256; kind++) {
		for (int l = 0; l < 256; l += kind < 32 ? 1 : 5) {
			for (size_t room = 1; room <= 12; room++) {
				uint8_t o[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
				size_t at = 12 - room;
				bool bad = room < 2 || l < 2 || (size_t)l > room;

				memset(o + at, 0, room);
				o[at] = (uint8_t)kind;
				if (room > 1)
					o[at + 1] = (uint8_t)l;
				assert_int_equal(parse_opts(0x10, o, 12).r,
					bad ? CORQ_R_TCP_OPTIONS : CORQ_R_NONE);
			}
		}
	}
}

static void
end_of_list_ends(void **state)
{
	static const uint8_t o[8] = {1, 0, 8, 0, 2, 0, 99, 1};
	struct np_result r = parse_opts(0x02, o, 8);

	(void)state;
	assert_int_equal(r.r, CORQ_R_NONE);
	assert_int_equal(r.seg.opts, 0);
}

/* Random option bytes under a right checksum: np_check holds, nothing is read beyond. */
static void
random_options(void **state)
{
	uint64_t seed = nf_seed(__func__);
	int ok = 0;

	(void)state;
	for (int round = 0; round < 40000; round++) {
		uint8_t o[40];
		size_t n = nf_rand(&seed) % 11 * 4;

		for (size_t i = 0; i < n; i++)
			o[i] = (uint8_t)(nf_rand(&seed) % (round % 2 ? 12 : 256));
		ok += parse_opts(round % 3 ? 0x10 : 0x02, o, n).r == CORQ_R_NONE;
	}
	assert_true(ok > 1000 && ok < 39000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_offset),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(ports),
		cmocka_unit_test(every_flag_combination),
		cmocka_unit_test(land),
		cmocka_unit_test(checksum_in_software),
		cmocka_unit_test(checksum_by_flag),
		cmocka_unit_test(unfinished_checksum),
		cmocka_unit_test(syn_options),
		cmocka_unit_test(timestamps_alone),
		cmocka_unit_test(wscale_is_clamped),
		cmocka_unit_test(sack_blocks),
		cmocka_unit_test(first_of_a_kind_wins),
		cmocka_unit_test(wrong_length_of_a_known_kind),
		cmocka_unit_test(every_kind_length_and_place),
		cmocka_unit_test(end_of_list_ends),
		cmocka_unit_test(random_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
