/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP: packets byte by byte, malformed ones, truncation, and conflict detection on virtual time. */
#include "net_parse.h"

#include "net/arp.h"

/* Who has 192.0.2.1? Tell 192.0.2.2 at nf_peer. */
static const uint8_t request[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 2, 8, 6, 0,
	1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1};
/* 192.0.2.1 is at nf_us. */
static const uint8_t reply[42] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2,
	2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2};

static enum corq_reason
parse(const uint8_t *b, size_t n, struct corq_arp *a)
{
	struct corq_frame *f = nf_rx(b, n);
	enum corq_reason r = corq_arp_parse(f, a);

	nf_free(f);
	return r;
}

static struct corq_addr
v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const uint8_t v[4] = {a, b, c, d};
	struct corq_addr out;

	corq_addr_from_v4(&out, v);
	return out;
}

static void
parse_request_and_reply(void **state)
{
	struct corq_addr us = v4(192, 0, 2, 1), peer = v4(192, 0, 2, 2);
	struct corq_arp a;

	(void)state;
	assert_int_equal(parse(request, 42, &a), CORQ_R_NONE);
	assert_int_equal(a.op, CORQ_ARP_REQUEST);
	assert_memory_equal(a.sha, nf_peer, 6);
	assert_true(corq_addr_eq(&a.spa, &peer) && corq_addr_eq(&a.tpa, &us));
	assert_false(a.unicast);
	assert_false(corq_arp_is_gratuitous(&a));
	assert_int_equal(parse(reply, 42, &a), CORQ_R_NONE);
	assert_int_equal(a.op, CORQ_ARP_REPLY);
	assert_memory_equal(a.tha, nf_peer, 6);
	assert_true(a.unicast);
	for (size_t n = 0; n < 42; n++)
		assert_int_equal(parse(request, n, &a), CORQ_R_ARP_BAD);
}

static enum corq_reason
with_byte(size_t off, uint8_t value)
{
	uint8_t b[42];
	struct corq_arp a;

	memcpy(b, request, 42);
	b[off] = value;
	return parse(b, 42, &a);
}

static void
malformed(void **state)
{
	uint8_t b[42];
	struct corq_arp a;

	(void)state;
	for (size_t off = 14; off < 21; off++)
		assert_int_equal(with_byte(off, 0x55), CORQ_R_ARP_BAD);
	for (int op = 0; op < 256; op++)
		assert_int_equal(with_byte(21, (uint8_t)op),
			op == 1 || op == 2 ? CORQ_R_NONE : CORQ_R_ARP_BAD);
	assert_int_equal(with_byte(22, 0x03), CORQ_R_ARP_BAD); /* a group as a station */
	assert_int_equal(with_byte(28, 127), CORQ_R_ARP_BAD);
	assert_int_equal(with_byte(28, 224), CORQ_R_ARP_BAD);
	assert_int_equal(with_byte(28, 0), CORQ_R_ARP_BAD);
	memcpy(b, request, 42);
	memset(b + 22, 0, 6);
	assert_int_equal(parse(b, 42, &a), CORQ_R_ARP_BAD);
	memcpy(b, request, 42);
	memset(b + 28, 0xff, 4);
	assert_int_equal(parse(b, 42, &a), CORQ_R_ARP_BAD);
	memset(b + 28, 0, 4); /* an RFC 5227 probe */
	assert_int_equal(parse(b, 42, &a), CORQ_R_NONE);
}

static void
build(void **state)
{
	struct corq_addr us = v4(192, 0, 2, 1), peer = v4(192, 0, 2, 2);
	struct corq_arp a;
	struct corq_frame *f = nf_tx(42);

	(void)state;
	corq_arp_build_request(f, nf_peer, &peer, &us, NULL);
	assert_int_equal(f->len, 42);
	assert_int_equal(f->pkt_len, 42);
	assert_memory_equal(f->data, request, 42);
	nf_free(f);
	f = nf_tx(42);
	corq_arp_build_request(f, nf_peer, &peer, &us, nf_us);
	assert_memory_equal(f->data, nf_us, 6);
	assert_memory_equal(f->data + 6, request + 6, 36);
	nf_free(f);
	f = nf_tx(42);
	parse(request, 42, &a);
	corq_arp_build_reply(f, nf_us, &a);
	assert_memory_equal(f->data, reply, 42);
	nf_free(f);
	f = nf_tx(42);
	corq_arp_build_announce(f, nf_us, &us);
	assert_int_equal(np_parse_frame(f, &np_ctx).kind, CORQ_PKT_ARP);
	assert_int_equal(corq_arp_parse(f, &a), CORQ_R_NONE);
	assert_true(corq_arp_is_gratuitous(&a));
	assert_int_equal(a.op, CORQ_ARP_REQUEST);
	assert_true(corq_addr_eq(&a.spa, &us));
	assert_false(a.unicast);
	nf_free(f);
}

static void
conflicts(void **state)
{
	const uint64_t s = CORQ_NS_PER_S;
	struct corq_arp_guard g = {0};
	struct corq_addr us = v4(192, 0, 2, 1), other = v4(192, 0, 2, 9);
	struct corq_arp a;

	(void)state;
	parse(reply, 42, &a);
	assert_int_equal(corq_arp_conflict(&g, &a, &us, nf_us, 0), CORQ_ARP_CLEAN); /* ourselves */
	assert_int_equal(corq_arp_conflict(&g, &a, &other, nf_peer, 0), CORQ_ARP_CLEAN);
	assert_int_equal(g.n_conflicts, 0);
	assert_int_equal(corq_arp_conflict(&g, &a, &us, nf_peer, 0), CORQ_ARP_DEFEND);
	assert_int_equal(corq_arp_conflict(&g, &a, &us, nf_peer, 1), CORQ_ARP_CONFLICT);
	assert_int_equal(corq_arp_conflict(&g, &a, &us, nf_peer, 10 * s - 1), CORQ_ARP_CONFLICT);
	assert_int_equal(corq_arp_conflict(&g, &a, &us, nf_peer, 10 * s), CORQ_ARP_DEFEND);
	assert_int_equal(corq_arp_conflict(&g, &a, &us, nf_peer, 10 * s), CORQ_ARP_CONFLICT);
	assert_int_equal(g.n_conflicts, 5);
	assert_int_equal(g.n_defended, 2);
	/* a probe for our address claims nothing yet: it gets an ordinary reply */
	parse(request, 42, &a);
	a.spa = v4(0, 0, 0, 0);
	assert_int_equal(corq_arp_conflict(&g, &a, &us, nf_us, 90 * s), CORQ_ARP_CLEAN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_request_and_reply),
		cmocka_unit_test(malformed),
		cmocka_unit_test(build),
		cmocka_unit_test(conflicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
