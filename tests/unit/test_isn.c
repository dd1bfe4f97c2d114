/* SPDX-License-Identifier: BSD-3-Clause */
/* test_isn.c - RFC 6528's properties, the offset, and the cache of tuples just left. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "base/seq.h"
#include "tcp/isn.h"

#include <stdio.h>
#include <stdlib.h>

#define ENTRIES 1024
#define S       CORQ_NS_PER_S

static const struct corq_sipkey secret = {0x0123456789abcdef, 0xfedcba9876543210};

static struct corq_isn
new_isn(const struct corq_sipkey *key)
{
	struct corq_isn isn;
	void *mem = aligned_alloc(CORQ_CACHELINE, corq_isn_bytes(ENTRIES));

	memset(mem, 0, corq_isn_bytes(ENTRIES));
	corq_isn_init(&isn, mem, ENTRIES, key);
	return isn;
}

static struct corq_key
tuple(uint32_t remote, uint16_t rport, uint16_t lport)
{
	struct corq_key k = {.rport = rport, .lport = lport};
	uint8_t r[4] = {10, (uint8_t)(remote >> 16), (uint8_t)(remote >> 8), (uint8_t)remote};

	corq_addr_from_v4(&k.raddr, r);
	corq_addr_from_v4(&k.laddr, (const uint8_t[4]){192, 0, 2, 1});
	return k;
}

/* The clock alone: one up each 4.096 us, for the same tuple, over a wrap of 2^32 too. */
static void
same_tuple_rises_with_the_clock(void **state)
{
	struct corq_isn isn = new_isn(&secret);
	struct corq_key k = tuple(1, 80, 1024);
	uint32_t off, first = corq_isn_new(&isn, &k, 0, &off);

	(void)state;
	assert_int_equal(corq_isn_new(&isn, &k, 4095, &off), first);
	assert_int_equal(corq_isn_new(&isn, &k, 4096, &off), first + 1);
	assert_int_equal(corq_isn_new(&isn, &k, 60 * S, &off), first + (uint32_t)(60 * S / 4096));
	assert_int_equal(corq_isn_new(&isn, &k, (5ull << 44) + 4096, &off), first + 1);
	free(isn.cache);
}

static void
the_offset_is_the_tuples(void **state)
{
	struct corq_isn isn = new_isn(&secret);

	(void)state;
	for (uint16_t port = 1; port < 1000; port++) {
		struct corq_key k = tuple(port * 7u, 443, port);
		uint32_t a, b;

		corq_isn_new(&isn, &k, port * 1000000ull, &a);
		corq_isn_leave(&isn, &k, port * 77777u, port * 1000000ull);
		corq_isn_new(&isn, &k, port * 1000000000ull, &b);
		assert_int_equal(a, b);
		assert_int_equal(a, corq_isn_ts_off(&isn, &k));
	}
	free(isn.cache);
}

static unsigned
bits(uint32_t x)
{
	return (unsigned)__builtin_popcount(x);
}

/* Neighbouring tuples, and the same tuple under another secret: about half of the bits differ, in
 * ISN and offset, and these two do not follow from each other. */
static void
tuples_are_unrelated(void **state)
{
	struct corq_sipkey other = {secret.k0 ^ 1, secret.k1};
	struct corq_isn isn = new_isn(&secret), isn2 = new_isn(&other);
	uint64_t port_isn = 0, port_off = 0, key_isn = 0, key_off = 0, isn_off = 0;
	const int n = 20000;
	uint32_t last_isn = 0, last_off = 0;

	(void)state;
	for (int i = 0; i < n; i++) {
		struct corq_key k = tuple(9, 80, (uint16_t)(1024 + i));
		uint32_t off, off2, s = corq_isn_new(&isn, &k, 5 * S, &off);
		uint32_t s2 = corq_isn_new(&isn2, &k, 5 * S, &off2);

		port_isn += bits(s ^ last_isn);
		port_off += bits(off ^ last_off);
		key_isn += bits(s ^ s2);
		key_off += bits(off ^ off2);
		isn_off += bits(s ^ off);
		last_isn = s;
		last_off = off;
	}
	/* Mean 16, standard deviation of the mean 0.02. */
	assert_in_range(port_isn * 100 / n, 1585, 1615);
	assert_in_range(port_off * 100 / n, 1585, 1615);
	assert_in_range(key_isn * 100 / n, 1585, 1615);
	assert_in_range(key_off * 100 / n, 1585, 1615);
	assert_in_range(isn_off * 100 / n, 1585, 1615);
	free(isn.cache);
	free(isn2.cache);
}

/* Every way a connection may end: 1 byte to 3 GiB sent, at once to 4 min later. */
static void
a_tuple_just_left_comes_back_above(void **state)
{
	struct corq_isn isn = new_isn(&secret);
	struct corq_rand r;

	(void)state;
	print_message("seed 11\n");
	corq_rand_seed(&r, 11);
	for (int i = 0; i < 100000; i++) {
		struct corq_key k = tuple((uint32_t)corq_rand_below(&r, 1u << 24), 80,
			(uint16_t)corq_rand_below(&r, 65536));
		uint64_t now = corq_rand_below(&r, 1ull << 50);
		uint32_t off, s = corq_isn_new(&isn, &k, now, &off), end;

		end = s + 2 + (uint32_t)corq_rand_below(&r, 3ull << 30);
		now += corq_rand_below(&r, i & 1 ? 5000 : S);
		corq_isn_leave(&isn, &k, end, now);
		now += corq_rand_below(&r, i & 2 ? 5000 : 238 * S);
		assert_true(corq_seq_gt(corq_isn_new(&isn, &k, now, &off), end));
	}
	free(isn.cache);
}

static void
a_chain_of_quick_reuses_rises(void **state)
{
	struct corq_isn isn = new_isn(&secret);
	struct corq_key k = tuple(1, 80, 40000);
	uint32_t off, end = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t now = S + (uint64_t)i * 100; /* faster than the clock */
		uint32_t s = corq_isn_new(&isn, &k, now, &off);

		if (i > 0)
			assert_int_equal(s, end + 65537);
		end = s + 1000;
		corq_isn_leave(&isn, &k, end, now);
	}
	free(isn.cache);
}

/* t - 1 s and t of the 4 minutes; another tuple's entry says nothing. */
static void
entries_expire_and_belong_to_one_tuple(void **state)
{
	struct corq_isn isn = new_isn(&secret);
	struct corq_key k = tuple(1, 80, 40000), k2 = tuple(1, 80, 40001);
	uint32_t off, plain, ahead;

	(void)state;
	plain = corq_isn_new(&isn, &k, 10 * S + 239 * S, &off);
	ahead = plain + 1000000;
	corq_isn_leave(&isn, &k, ahead, 10 * S);
	assert_int_equal(corq_isn_new(&isn, &k, 10 * S + 239 * S, &off), ahead + 65537);
	plain = corq_isn_new(&isn, &k, 10 * S + 240 * S, &off);
	assert_true(corq_seq_lt(plain, ahead));

	plain = corq_isn_new(&isn, &k2, 11 * S, &off);
	corq_isn_leave(&isn, &k, ahead, 11 * S);
	assert_int_equal(corq_isn_new(&isn, &k2, 11 * S, &off), plain);
	/* Equal is not above. */
	corq_isn_leave(&isn, &k2, plain, 11 * S);
	assert_int_equal(corq_isn_new(&isn, &k2, 11 * S, &off), plain + 65537);
	corq_isn_leave_off(&isn, off, plain - 1, 11 * S);
	assert_int_equal(corq_isn_new(&isn, &k2, 11 * S, &off), plain);
	free(isn.cache);
}

/* Memory never written must not look like an entry, whatever the tuple's hash and the time. */
static void
an_empty_cache_is_empty(void **state)
{
	struct corq_isn isn = new_isn(&secret);

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		struct corq_key k = tuple(i, 80, 1);
		uint64_t now = i % 3 * 120 * S;
		uint32_t off, s = corq_isn_new(&isn, &k, now, &off);

		for (uint32_t j = 0; j < ENTRIES; j++) /* as if the tag were the tuple's */
			isn.cache[j] = (struct corq_isn_entry){off, s + 1000, 0};
		assert_int_equal(corq_isn_new(&isn, &k, now, &off), s);
		for (uint32_t j = 0; j < ENTRIES; j++)
			isn.cache[j].at_s = 1 + (uint32_t)(now / S);
		assert_int_equal(corq_isn_new(&isn, &k, now, &off), s + 1000 + 65537);
	}
	free(isn.cache);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_tuple_rises_with_the_clock),
		cmocka_unit_test(the_offset_is_the_tuples),
		cmocka_unit_test(tuples_are_unrelated),
		cmocka_unit_test(a_tuple_just_left_comes_back_above),
		cmocka_unit_test(a_chain_of_quick_reuses_rises),
		cmocka_unit_test(entries_expire_and_belong_to_one_tuple),
		cmocka_unit_test(an_empty_cache_is_empty),
	};

	return cmocka_run_group_tests_name("isn", tests, NULL, NULL);
}
