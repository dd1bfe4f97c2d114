/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: text both ways, ranges, prefixes, arithmetic at the edges. */
#include "net_frames.h"

#include <errno.h>

#include "net/addr.h"

static struct corq_addr
A(const char *s) {
	struct corq_addr a;

	assert_int_equal(corq_addr_parse(s, &a), 0);
	return a;
}

static void
text_both_ways(void **state)
{
	static const char *const same[] = {"0.0.0.0", "10.1.2.3", "255.255.255.255", "::", "::1",
		"2001:db8::1", "fe80::1234:5678:9abc:def0",
		"1111:2222:3333:4444:5555:6666:7777:8888"};
	static const char *const bad[] = {"", "10.1.2", "10.1.2.256", "10.1.2.3 ", " 10.1.2.3",
		"10.1.2.3/8", "1.2.3.4.5", ":::", "g::1", "2001:db8::1::2", "localhost",
		"0x7f000001"};
	char buf[CORQ_ADDR_STRLEN];
	struct corq_addr a;

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(same); i++) {
		a = A(same[i]);
		assert_ptr_equal(corq_addr_format(&a, buf, sizeof(buf)), buf);
		assert_string_equal(buf, same[i]);
	}
	for (size_t i = 0; i < CORQ_ARRAY_LEN(bad); i++)
		assert_int_equal(corq_addr_parse(bad[i], &a), -EINVAL);
	a = A("::ffff:10.0.0.1");
	assert_true(corq_addr_is_v4(&a));
	corq_addr_format(&a, buf, sizeof(buf));
	assert_string_equal(buf, "10.0.0.1");
	assert_null(corq_addr_format(&a, buf, 8));
	assert_non_null(corq_addr_format(&a, buf, 9));
	assert_null(corq_addr_format(&a, buf, 0));
}

static void
prefixes(void **state)
{
	static const struct {
		const char *a, *net;
		uint8_t len;
		bool in;
	} t[] = {
		{"10.0.0.1", "10.0.0.0", 24, true},
		{"10.0.1.1", "10.0.0.0", 24, false},
		{"10.0.0.127", "10.0.0.0", 25, true},
		{"10.0.0.128", "10.0.0.0", 25, false},
		{"10.0.0.1", "10.0.0.1", 32, true},
		{"10.0.0.0", "10.0.0.1", 32, false},
		{"192.0.2.1", "10.0.0.0", 0, true},
		{"2001:db8::1", "10.0.0.0", 0, false},
		{"10.0.0.1", "::", 0, false},
		{"10.0.0.3", "10.0.0.2", 31, true},
		{"2001:db8::1", "2001:db8::", 64, true},
		{"2001:db8:0:1::1", "2001:db8::", 64, false},
		{"2001:db8::1", "2001:db8::2", 127, false},
		{"2001:db8::3", "2001:db8::2", 127, true},
		{"2001:db8::3", "2001:db8::3", 128, true},
		{"fe80::1", "2001:db8::", 0, true},
	};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(t); i++) {
		struct corq_addr a = A(t[i].a), n = A(t[i].net);

		assert_int_equal(corq_addr_in_prefix(&a, &n, t[i].len), t[i].in);
	}
}

static void
addition(void **state)
{
	static const struct {
		const char *a;
		uint64_t n;
		const char *sum; /* NULL: leaves the address space */
	} t[] = {
		{"10.0.0.1", 0, "10.0.0.1"},
		{"10.0.0.255", 1, "10.0.1.0"},
		{"0.0.0.0", UINT32_MAX, "255.255.255.255"},
		{"255.255.255.255", 1, NULL},
		{"0.0.0.1", UINT32_MAX, NULL},
		{"10.0.0.1", UINT64_MAX, NULL},
		{"2001:db8::ffff", 1, "2001:db8::1:0"},
		{"::ffff:ffff:ffff:ffff", 1, "0:0:0:1::"},
		{"::1", UINT64_MAX, "0:0:0:1::"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 1, NULL},
	};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(t); i++) {
		struct corq_addr a = A(t[i].a), out, want;
		bool ok = corq_addr_add(&out, &a, t[i].n);

		assert_int_equal(ok, t[i].sum != NULL);
		if (!ok)
			continue;
		want = A(t[i].sum);
		assert_memory_equal(&out, &want, 16);
	}
}

static void
ranges(void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *first, *last;
		uint8_t len;
		uint64_t count;
	} t[] = {
		{"10.0.0.1", 0, "10.0.0.1", "10.0.0.1", 32, 1},
		{"10.0.0.1/24", 0, "10.0.0.1", "10.0.0.1", 24, 1},
		{"10.0.0.1-10.0.0.9/24", 0, "10.0.0.1", "10.0.0.9", 24, 9},
		{"0.0.0.0-255.255.255.255/0", 0, "0.0.0.0", "255.255.255.255", 0, 1ull << 32},
		{"fd00::1/64", 0, "fd00::1", "fd00::1", 64, 1},
		{"fd00::1-fd00::1:0/64", 0, "fd00::1", "fd00::1:0", 64, 65536},
		{"::-::ffff:ffff:ffff:ffff/0", 0, "::", "::ffff:ffff:ffff:ffff", 0, UINT64_MAX},
		{"::-ffff::/0", 0, "::", "ffff::", 0, UINT64_MAX},
		{"fd00::8-fd00:0:0:1::1/0", 0, "fd00::8", "fd00:0:0:1::1", 0, UINT64_MAX - 5},
		{"10.0.0.1-10.0.1.1/24", -ERANGE, NULL, NULL, 0, 0},
		{"10.0.0.1-10.0.0.2", -ERANGE, NULL, NULL, 0, 0},
		{"10.0.0.9-10.0.0.1/24", -EINVAL, NULL, NULL, 0, 0},
		{"10.0.0.1-fd00::1/24", -EINVAL, NULL, NULL, 0, 0},
		{"10.0.0.1/33", -EINVAL, NULL, NULL, 0, 0},
		{"10.0.0.1/", -EINVAL, NULL, NULL, 0, 0},
		{"10.0.0.1/-1", -EINVAL, NULL, NULL, 0, 0},
		{"10.0.0.1/2x", -EINVAL, NULL, NULL, 0, 0},
		{"10.0.0.1/99999999999999999999", -EINVAL, NULL, NULL, 0, 0},
		{"fd00::1/129", -EINVAL, NULL, NULL, 0, 0},
		{"-10.0.0.1/24", -EINVAL, NULL, NULL, 0, 0},
		{"10.0.0.1-/24", -EINVAL, NULL, NULL, 0, 0},
		{"/24", -EINVAL, NULL, NULL, 0, 0},
		{"", -EINVAL, NULL, NULL, 0, 0},
	};
	char longer[300];
	struct corq_addr_range r;

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(t); i++) {
		assert_int_equal(corq_addr_parse_range(t[i].text, &r), t[i].r);
		if (t[i].r)
			continue;
		struct corq_addr first = A(t[i].first), last = A(t[i].last);

		assert_true(corq_addr_eq(&r.first, &first) && corq_addr_eq(&r.last, &last));
		assert_int_equal(r.prefix_len, t[i].len);
		assert_true(corq_addr_range_count(&r) == t[i].count);
	}
	memset(longer, '1', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(corq_addr_parse_range(longer, &r), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_both_ways),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(addition),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
