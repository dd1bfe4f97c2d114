/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP: echo from chains and with every length, errors and their quotes cut everywhere, the rate
 * limit on virtual time. */
#include "net_parse.h"

#include "net/csum.h"
#include "net/icmp.h"

/* An ICMP message of n bytes, checksum set. */
static void
icmp(struct nf_pkt *p, uint8_t type, uint8_t code, const uint8_t *rest, size_t n_rest)
{
	nf_l3(p, false, NULL, 0, 1, 4 + n_rest);
	p->b[34] = type;
	p->b[35] = code;
	memcpy(p->b + 38, rest, n_rest);
	nf_put16(p->b + 36, ~nf_sum(p->b + 34, 4 + n_rest, 0));
}

static enum corq_reason
parse_frame(struct corq_frame *f, struct np_result *o, struct corq_icmp *out)
{
	*o = np_parse_frame(f, &np_ctx);
	assert_int_equal(o->kind, CORQ_PKT_ICMP4);
	memset(out, 0xa5, sizeof(*out));
	return corq_icmp_parse(f, &o->seg, &o->key, out);
}

static enum corq_reason
parse(const struct nf_pkt *p, struct corq_icmp *out)
{
	struct corq_frame *f = nf_rx(p->b, p->len);
	struct np_result o;
	enum corq_reason r = parse_frame(f, &o, out);

	nf_free(f);
	return r;
}

static void
echo(void **state)
{
	uint64_t seed = nf_seed(__func__);
	uint8_t rest[1480];

	(void)state;
	for (size_t i = 0; i < sizeof(rest); i++)
		rest[i] = (uint8_t)nf_rand(&seed);
	for (size_t n = 4; n <= 1476; n += n < 100 ? 1 : 43) {
		size_t cut = 34 + nf_rand(&seed) % (n + 4), cuts[2] = {cut, 1};
		struct corq_frame *f, *out = nf_tx(2048);
		struct np_result o, back;
		struct corq_icmp m;
		struct nf_pkt p;

		icmp(&p, 8, 0, rest, n);
		f = nf_rx_chain(p.b, p.len, cuts, cut < p.len ? 2 : 1);
		assert_int_equal(parse_frame(f, &o, &m), CORQ_R_NONE);
		assert_int_equal(m.type, CORQ_ICMP_ECHO);
		assert_false(m.is_error);
		corq_icmp_build_echo_reply(out, f, &o.seg, &o.key, 1500, nf_us, nf_peer, 0);
		assert_int_equal(out->pkt_len, p.len);
		back = np_parse_frame(out, &np_ctx);
		assert_int_equal(back.kind, CORQ_PKT_ICMP4);
		assert_true(corq_addr_eq(&back.key.raddr, &o.key.laddr));
		assert_true(corq_addr_eq(&back.key.laddr, &o.key.raddr));
		assert_int_equal(out->data[34], 0);
		assert_memory_equal(out->data + 38, rest, n);
		assert_int_equal(nf_sum(out->data + 34, n + 4, 0), 0xffff);
		nf_free(f);
		nf_free(out);
	}
}

static void
echo_is_cut_to_mtu_and_room(void **state)
{
	uint8_t rest[1476] = {0};
	struct np_result o;
	struct corq_icmp m;
	struct nf_pkt p;
	struct corq_frame *f, *out;

	(void)state;
	icmp(&p, 8, 0, rest, sizeof(rest));
	f = nf_rx(p.b, p.len);
	assert_int_equal(parse_frame(f, &o, &m), CORQ_R_NONE);
	out = nf_tx(2048);
	corq_icmp_build_echo_reply(out, f, &o.seg, &o.key, 600, nf_us, nf_peer, 0);
	assert_int_equal(out->pkt_len, 614);
	assert_int_equal(np_parse_frame(out, &np_ctx).r, CORQ_R_NONE);
	assert_int_equal(nf_sum(out->data + 34, 580, 0), 0xffff);
	nf_free(out);
	out = nf_tx(101);
	corq_icmp_build_echo_reply(out, f, &o.seg, &o.key, 1500, nf_us, nf_peer, 0);
	assert_int_equal(out->pkt_len, 34 + 101);
	assert_int_equal(np_parse_frame(out, &np_ctx).r, CORQ_R_NONE);
	nf_free(out);
	nf_free(f);
}

/* unused or MTU word, then a quoted packet of ours: 192.0.2.1:5000 -> 203.0.113.7:80, seq. */
static size_t
quote(uint8_t *rest, uint16_t mtu, size_t ip_hlen)
{
	static const uint8_t src[4] = {192, 0, 2, 1}, dst[4] = {203, 0, 113, 7};
	uint8_t *ip = rest + 4, *t = ip + ip_hlen;

	memset(rest, 0, 4 + ip_hlen + 8);
	nf_put16(rest + 2, mtu);
	ip[0] = (uint8_t)(0x40 | ip_hlen / 4);
	nf_put16(ip + 2, 1500);
	ip[6] = 0x40;
	ip[9] = 6;
	memcpy(ip + 12, src, 4);
	memcpy(ip + 16, dst, 4);
	nf_put16(t, 5000);
	nf_put16(t + 2, 80);
	nf_put32(t + 4, 0xdeadbeef);
	return 4 + ip_hlen + 8;
}

static void
errors(void **state)
{
	static const struct {
		uint8_t type, code;
		uint16_t mtu;
	} t[] = {{3, 0, 0}, {3, 1, 0}, {3, 2, 0}, {3, 3, 0}, {3, 4, 1400}, {3, 13, 0}, {11, 0, 0},
		{12, 0, 0}};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(t); i++) {
		for (size_t hl = 20; hl <= 60; hl += 4) {
			uint8_t rest[80];
			size_t n = quote(rest, 1400, hl);
			struct nf_pkt p;
			struct corq_icmp m;
			const uint8_t *l = m.key.laddr.b + 12, *r = m.key.raddr.b + 12;

			icmp(&p, t[i].type, t[i].code, rest, n);
			assert_int_equal(parse(&p, &m), CORQ_R_NONE);
			assert_true(m.is_error);
			assert_int_equal(m.type, t[i].type);
			assert_int_equal(m.code, t[i].code);
			assert_int_equal(m.mtu, t[i].mtu);
			assert_int_equal(m.seq, 0xdeadbeef);
			assert_int_equal(m.key.lport, 5000);
			assert_int_equal(m.key.rport, 80);
			assert_int_equal(m.key.zero, 0);
			assert_true(l[0] == 192 && l[3] == 1 && r[0] == 203 && r[3] == 7);
		}
	}
}

static void
errors_cut_at_every_byte(void **state)
{
	uint8_t rest[80];
	struct nf_pkt p;
	struct corq_icmp m;

	(void)state;
	for (size_t hl = 20; hl <= 60; hl += 40) {
		size_t full = quote(rest, 1400, hl);

		for (size_t n = 0; n <= full; n++) {
			icmp(&p, 3, 4, rest, n);
			assert_int_equal(parse(&p, &m), n < full ? CORQ_R_ICMP_SHORT : CORQ_R_NONE);
		}
	}
}

static enum corq_reason
with_byte(size_t off, uint8_t value)
{
	uint8_t rest[80];
	size_t n = quote(rest, 0, 20);
	struct nf_pkt p;
	struct corq_icmp m;

	rest[off] = value;
	icmp(&p, 3, 3, rest, n);
	return parse(&p, &m);
}

static void
bad_quotes(void **state)
{
	(void)state;
	assert_int_equal(with_byte(4, 0x65), CORQ_R_ICMP_QUOTE); /* version */
	assert_int_equal(with_byte(4, 0x44), CORQ_R_ICMP_QUOTE); /* header length */
	assert_int_equal(with_byte(4, 0x46), CORQ_R_ICMP_SHORT);
	assert_int_equal(with_byte(11, 1), CORQ_R_ICMP_QUOTE);  /* fragment offset */
	assert_int_equal(with_byte(13, 17), CORQ_R_ICMP_QUOTE); /* not TCP */
	assert_int_equal(with_byte(19, 2), CORQ_R_ICMP_QUOTE);  /* not sent by us */
	assert_int_equal(with_byte(10, 0x20), CORQ_R_NONE);     /* MF of a first fragment */
}

static void
checksum_types_and_shortness(void **state)
{
	uint8_t rest[80];
	size_t n = quote(rest, 0, 20);
	struct nf_pkt p;
	struct corq_icmp m;

	(void)state;
	for (int type = 0; type < 256; type++) {
		bool known = type == 3 || type == 8 || type == 11 || type == 12;

		icmp(&p, (uint8_t)type, 0, rest, n);
		assert_int_equal(parse(&p, &m), known ? CORQ_R_NONE : CORQ_R_ICMP_TYPE);
	}
	icmp(&p, 8, 0, rest, n);
	for (size_t bit = 0; bit < (n + 4) * 8; bit++) {
		struct nf_pkt q = p;

		q.b[34 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(parse(&q, &m), CORQ_R_ICMP_CSUM);
	}
	for (n = 0; n < 4; n++) {
		icmp(&p, 8, 0, rest, n);
		assert_int_equal(parse(&p, &m), CORQ_R_ICMP_SHORT);
	}
}

static uint32_t
take_all(struct corq_icmp_limit *l, uint64_t now)
{
	uint32_t n = 0;

	while (n < 100000 && corq_icmp_limit_take(l, now))
		n++;
	return n;
}

static void
rate_limit(void **state)
{
	const uint64_t ms = CORQ_NS_PER_MS;
	struct corq_icmp_limit l;
	uint64_t t = 0;
	uint32_t n = 0;

	(void)state;
	corq_icmp_limit_init(&l, 1000, 0);
	assert_int_equal(take_all(&l, 0), 100); /* the burst */
	assert_int_equal(take_all(&l, ms - 1), 0);
	assert_int_equal(take_all(&l, ms), 1);
	assert_int_equal(take_all(&l, 11 * ms), 10);
	assert_int_equal(take_all(&l, 100000 * ms), 100); /* never more than the burst */
	for (t = 100000 * ms; t < 110000 * ms; t += ms / 10)
		n += corq_icmp_limit_take(&l, t);
	assert_in_range(n, 9990, 10000);
	corq_icmp_limit_init(&l, 0, 0);
	assert_int_equal(take_all(&l, 5000 * ms), 0);
	corq_icmp_limit_init(&l, 1, 0); /* slow, but not closed */
	assert_int_equal(take_all(&l, 0), 1);
	assert_int_equal(take_all(&l, 1000 * ms - 1), 0);
	assert_int_equal(take_all(&l, 1000 * ms), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(echo),
		cmocka_unit_test(echo_is_cut_to_mtu_and_room),
		cmocka_unit_test(errors),
		cmocka_unit_test(errors_cut_at_every_byte),
		cmocka_unit_test(bad_quotes),
		cmocka_unit_test(checksum_types_and_shortness),
		cmocka_unit_test(rate_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
