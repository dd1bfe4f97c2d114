/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast checksum against a slow one: lengths, alignments, chains of odd parts, pseudo-headers,
 * incremental updates. */
#include "net_frames.h"

#include "net/csum.h"

/* The slow sum as a field of the fast one: memory order, complemented. */
static uint16_t
slow_field(const uint8_t *p, size_t n)
{
	return CORQ_BE16(~nf_sum(p, n, 0));
}

/* 0 and 0xffff are the same number; a sum over all-zero bytes is the only 0. */
static void
assert_same(uint16_t a, uint16_t b)
{
	assert_int_equal(a % 0xffff, b % 0xffff);
}

static void
every_length_and_alignment(void **state)
{
	uint64_t seed = nf_seed(__func__);

	(void)state;
	for (size_t n = 0; n <= 300; n++) {
		for (size_t align = 0; align < 8; align++) {
			/* the buffer ends with the last byte */
			uint8_t *b = malloc(align + n ? align + n : 1), *p = b + align;

			assert_non_null(b);
			for (size_t i = 0; i < n; i++)
				p[i] = (uint8_t)nf_rand(&seed);
			assert_int_equal(
				corq_csum_finish(corq_csum_partial(p, n, 0)), slow_field(p, n));
			free(b);
		}
	}
}

static void
carries(void **state)
{
	static uint8_t b[70000];
	uint64_t seed = nf_seed(__func__);

	(void)state;
	memset(b, 0xff, sizeof(b));
	assert_same(corq_csum_finish(corq_csum_partial(b, sizeof(b), 0)), 0);
	assert_same(corq_csum_finish(corq_csum_partial(b, sizeof(b), UINT32_MAX)), 0);
	for (int round = 0; round < 2000; round++) {
		size_t n = nf_rand(&seed) % 200;
		uint32_t init = (uint32_t)nf_rand(&seed);
		uint8_t w[4 + 200];

		memcpy(w, &init, 4);
		for (size_t i = 0; i < n; i++) /* mostly the bytes that carry */
			w[4 + i] = nf_rand(&seed) % 4 ? 0xff : (uint8_t)nf_rand(&seed);
		assert_same(
			corq_csum_finish(corq_csum_partial(w + 4, n, init)), slow_field(w, 4 + n));
	}
	memset(b, 0, 64);
	assert_int_equal(corq_csum_finish(corq_csum_partial(b, 64, 0)), 0xffff);
}

static void
rfc1071_example(void **state)
{
	static const uint8_t b[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	(void)state;
	assert_int_equal(corq_csum_fold(corq_csum_partial(b, sizeof(b), 0)), CORQ_BE16(0xddf2));
}

static void
chains_of_odd_parts(void **state)
{
	uint64_t seed = nf_seed(__func__);
	uint8_t b[600];

	(void)state;
	for (int round = 0; round < 5000; round++) {
		size_t n = nf_rand(&seed) % sizeof(b), cuts[6], left = n, k;
		size_t n_cuts = nf_rand(&seed) % 7, off, len;
		struct corq_frame *f;

		for (size_t i = 0; i < n; i++)
			b[i] = (uint8_t)nf_rand(&seed);
		for (k = 0; k < n_cuts; k++) {
			cuts[k] = left ? nf_rand(&seed) % (left + 1) : 0;
			left -= cuts[k];
		}
		off = nf_rand(&seed) % (n + 1);
		len = nf_rand(&seed) % (n - off + 1);
		f = nf_rx_chain(b, n, cuts, n_cuts);
		assert_int_equal(
			corq_csum_finish(corq_csum_chain(f, (uint32_t)off, (uint32_t)len, 0)),
			slow_field(b + off, len));
		/* a chain that is shorter than asked for ends the sum, not the process */
		assert_int_equal(corq_csum_finish(corq_csum_chain(f, (uint32_t)off, 70000, 0)),
			slow_field(b + off, n - off));
		nf_free(f);
	}
}

static void
pseudo_headers(void **state)
{
	uint64_t seed = nf_seed(__func__);

	(void)state;
	for (int round = 0; round < 5000; round++) {
		uint8_t v4[12], v6[40] = {0}, proto = (uint8_t)(nf_rand(&seed) % 255 + 1);
		struct corq_addr a, b;
		uint32_t len = nf_rand(&seed) % 65536;

		for (int i = 0; i < 32; i++)
			v6[i] = round % 3 ? (uint8_t)nf_rand(&seed) : 0xff;
		memcpy(v4, v6, 8);
		v4[8] = 0;
		v4[9] = proto;
		nf_put16(v4 + 10, len);
		nf_put32(v6 + 32, len);
		v6[39] = proto;
		corq_addr_from_v4(&a, v4);
		corq_addr_from_v4(&b, v4 + 4);
		assert_int_equal(corq_csum_fold(corq_csum_pseudo(&a, &b, len, proto)),
			CORQ_BE16(nf_sum(v4, 12, 0)));
		memcpy(&a, v6, 16);
		memcpy(&b, v6 + 16, 16);
		assert_int_equal(corq_csum_fold(corq_csum_pseudo(&a, &b, len, proto)),
			CORQ_BE16(nf_sum(v6, 40, 0)));
	}
}

static void
ip4_header(void **state)
{
	uint64_t seed = nf_seed(__func__);
	uint8_t h[20];

	(void)state;
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < 20; i++)
			h[i] = (uint8_t)nf_rand(&seed);
		assert_int_equal(corq_csum_finish(corq_csum_ip4(h)), slow_field(h, 20));
	}
}

static void
incremental_updates(void **state)
{
	uint64_t seed = nf_seed(__func__);
	uint8_t b[40];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t at = nf_rand(&seed) % 18 * 2;
		be16 csum, o16, n16;
		be32 o32, n32;

		for (size_t i = 0; i < sizeof(b); i++)
			b[i] = nf_rand(&seed) % 3 ? (uint8_t)nf_rand(&seed) : 0xff;
		b[38] = 1; /* never all zero */
		csum = slow_field(b, sizeof(b));
		memcpy(&o16, b + at, 2);
		n16 = (be16)nf_rand(&seed);
		memcpy(b + at, &n16, 2);
		assert_same(corq_csum_update16(csum, o16, n16), slow_field(b, sizeof(b)));
		csum = slow_field(b, sizeof(b));
		memcpy(&o32, b + at, 4);
		n32 = (be32)nf_rand(&seed);
		memcpy(b + at, &n32, 4);
		assert_same(corq_csum_update32(csum, o32, n32), slow_field(b, sizeof(b)));
	}
}

/* RFC 1624 4: the case that the older formula of RFC 1141 gets wrong. */
static void
rfc1624_example(void **state)
{
	(void)state;
	assert_int_equal(
		corq_csum_update16(CORQ_BE16(0xdd2f), CORQ_BE16(0x5555), CORQ_BE16(0x3285)),
		CORQ_BE16(0x0000));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_alignment),
		cmocka_unit_test(carries),
		cmocka_unit_test(rfc1071_example),
		cmocka_unit_test(chains_of_odd_parts),
		cmocka_unit_test(pseudo_headers),
		cmocka_unit_test(ip4_header),
		cmocka_unit_test(incremental_updates),
		cmocka_unit_test(rfc1624_example),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
