/* SPDX-License-Identifier: BSD-3-Clause */
/* test_wheel.c - the timer wheel against a plain array of deadlines, on virtual ticks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "base/seq.h"
#include "base/wheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct object {
	uint64_t before;
	struct corq_wheel_node node;
	uint32_t after;
};

enum {
	N = 500
};

struct fixture {
	struct corq_wheel w;
	struct object obj[N];
	struct corq_rand rand;
	uint32_t now; /* of the last expire */
	bool armed[N];
	uint32_t deadline[N];
	uint32_t overdue[N]; /* armed when already due */
	uint32_t n_armed;
};

static void
setup(struct fixture *f, uint32_t now, uint64_t seed)
{
	memset(f, 0, sizeof(*f));
	corq_rand_seed(&f->rand, seed);
	f->now = now;
	corq_wheel_init(
		&f->w, (uint8_t *)f->obj, sizeof(f->obj[0]), offsetof(struct object, node), now);
	for (uint32_t i = 0; i < N; i++)
		corq_wheel_node_init(&f->obj[i].node);
}

static uint32_t
below(struct fixture *f, uint64_t n)
{
	return (uint32_t)corq_rand_below(&f->rand, n);
}

/* A distance of any magnitude, up to 2^31 - 1. */
static uint32_t
some_ticks(struct fixture *f, uint32_t max_bits)
{
	return below(f, 1ull << below(f, max_bits + 1));
}

static void
arm(struct fixture *f, uint32_t i, uint32_t deadline)
{
	corq_wheel_arm(&f->w, i, deadline);
	f->n_armed += !f->armed[i];
	f->armed[i] = true;
	f->deadline[i] = deadline;
	f->overdue[i] = corq_seq_le(deadline, f->w.now);
	assert_true(corq_wheel_armed(&f->obj[i].node));
}

static void
disarm(struct fixture *f, uint32_t i)
{
	corq_wheel_disarm(&f->w, i);
	f->n_armed -= f->armed[i];
	f->armed[i] = false;
	assert_false(corq_wheel_armed(&f->obj[i].node));
}

/* Ticks to the earliest deadline, 0 if it has passed; CORQ_NONE: none armed. */
static uint32_t
earliest(const struct fixture *f)
{
	uint32_t best = CORQ_NONE;

	for (uint32_t i = 0; i < N; i++)
		if (f->armed[i])
			best = CORQ_MIN(best,
				corq_seq_le(f->deadline[i], f->now) ? 0 : f->deadline[i] - f->now);
	return best;
}

/* One call; checks what came out. */
static uint32_t
expire_once(struct fixture *f, uint32_t now, uint32_t max)
{
	uint32_t out[N], got, last = 0;
	bool have_last = false;

	f->now = now;
	got = corq_wheel_expire(&f->w, now, out, max);
	assert_true(got <= max);
	for (uint32_t k = 0; k < got; k++) {
		uint32_t i = out[k];

		assert_true(i < N && f->armed[i]);
		assert_true(corq_seq_le(f->deadline[i], now)); /* never early */
		assert_false(corq_wheel_armed(&f->obj[i].node));
		f->armed[i] = false;
		f->n_armed--;
		if (f->overdue[i])
			continue;
		assert_true(!have_last || corq_seq_ge(f->deadline[i], last));
		last = f->deadline[i];
		have_last = true;
	}
	assert_int_equal(f->w.n_armed, f->n_armed);
	return got;
}

static void
check_next(const struct fixture *f)
{
	uint32_t next = corq_wheel_next(&f->w), want = earliest(f);

	if (want == CORQ_NONE) {
		assert_int_equal(next, CORQ_NONE);
		return;
	}
	assert_true(next <= want); /* never late */
}

/* All calls that a turn at `now` would make over time; nothing due is left. */
static void
expire_all(struct fixture *f, uint32_t now, uint32_t max)
{
	/* Each call but the last does max entries or max + CORQ_WHEEL_MOVES moves, of 3 an entry.
	 */
	uint32_t calls = N / max + 3 * N / (max + CORQ_WHEEL_MOVES) + 3;

	for (uint32_t n = 0; n == 0 || corq_wheel_next(&f->w) == 0; n++) {
		assert_true(n < calls);
		expire_once(f, now, max);
		check_next(f);
	}
	assert_true(earliest(f) > 0);
}

static void
random_ops(uint32_t start, uint64_t seed, uint32_t max_bits)
{
	static struct fixture f;

	setup(&f, start, seed);
	for (int step = 0; step < 20000; step++) {
		uint32_t i = below(&f, N), max = 1 + below(&f, below(&f, 2) ? 4 : 300);
		uint32_t next;

		switch (below(&f, 16)) {
		case 0:
			expire_all(&f, f.now + some_ticks(&f, max_bits), max);
			break;
		case 1: /* leave work undone */
			expire_once(&f, f.now + some_ticks(&f, max_bits - 4), max);
			break;
		case 2: /* sleep exactly as long as the wheel allows, and one tick less */
			next = corq_wheel_next(&f.w);
			if (next == CORQ_NONE || next > 1u << max_bits)
				break;
			if (next > 0)
				assert_int_equal(expire_once(&f, f.now + next - 1, max), 0);
			expire_all(&f, f.now + (next > 0), max);
			break;
		case 3:
		case 4:
		case 5:
			disarm(&f, i);
			break;
		case 6: /* due at once */
			arm(&f, i, f.now - below(&f, 5));
			break;
		case 7: /* many at one tick */
			next = f.now + some_ticks(&f, max_bits);
			for (uint32_t k = 0; k < 50; k++)
				arm(&f, below(&f, N), next);
			break;
		default:
			arm(&f, i, f.now + some_ticks(&f, max_bits));
		}
		check_next(&f);
	}
	for (int k = 0; k < 4; k++)
		expire_all(&f, f.now + (1u << 29), 100);
	assert_int_equal(f.n_armed, 0);
	assert_int_equal(f.w.summary, 0);
	for (uint32_t i = 0; i < N; i++)
		assert_true(f.obj[i].before == 0 && f.obj[i].after == 0);
}

static void
random_ops_against_a_model(void **state)
{
	static const uint32_t starts[] = {0, 0xffffff00, 0x7ffffff0, 0x12345678};
	static const uint32_t bits[] = {6, 12, 20, 29};
	uint64_t seed = 1;

	(void)state;
	for (size_t s = 0; s < CORQ_ARRAY_LEN(starts); s++)
		for (size_t b = 0; b < CORQ_ARRAY_LEN(bits); b++, seed++) {
			printf("start %#x bits %u seed %llu\n", starts[s], bits[b],
				(unsigned long long)seed);
			random_ops(starts[s], seed, bits[b]);
		}
}

/* At deadline - 1 nothing, at the deadline the entry: distances around every level's edges. */
static void
fires_on_the_tick(void **state)
{
	static struct fixture f;

	(void)state;
	for (uint32_t bit = 0; bit < 31; bit++)
		for (uint32_t off = 0; off < 3; off++)
			for (uint32_t s = 0; s < 64; s++) {
				uint32_t d = (1u << bit) - 1 + off, start = s * 0x04040404u - s % 3;

				if (d == 0 || d >= 1u << 31)
					continue;
				setup(&f, start, 0);
				arm(&f, 3, start + d);
				assert_int_equal(expire_once(&f, start + d - 1, 8), 0);
				assert_int_equal(corq_wheel_next(&f.w), 1);
				assert_int_equal(expire_once(&f, start + d, 8), 1);
				assert_int_equal(corq_wheel_next(&f.w), CORQ_NONE);
			}
}

/* Sleeping by corq_wheel_next() needs at most one wake-up a level. */
static void
few_wakeups_to_a_far_deadline(void **state)
{
	static struct fixture f;
	uint32_t wakeups;

	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		setup(&f, (uint32_t)seed * 0x9e3779b1u, seed);
		arm(&f, 0, f.now + 1 + some_ticks(&f, 31) / 2);
		for (wakeups = 1; expire_once(&f, f.now + corq_wheel_next(&f.w), 1) == 0; wakeups++)
			;
		assert_int_equal(f.now, f.deadline[0]);
		assert_true(wakeups <= CORQ_WHEEL_LEVELS);
	}
}

/* A crowd that must move down at a tick does so in pieces, and loses and delays nothing. */
static void
moves_are_bounded_per_call(void **state)
{
	static struct fixture f;
	uint32_t calls = 1;

	(void)state;
	setup(&f, 5, 0);
	for (uint32_t i = 0; i < N; i++)
		arm(&f, i, 0x10001 + i % 7);
	assert_int_equal(expire_once(&f, 0xffff, 1), 0);
	assert_int_equal(corq_wheel_next(&f.w), 1);
	assert_int_equal(expire_once(&f, 0x10000, 1), 0);
	while (corq_wheel_next(&f.w) == 0) {
		disarm(&f, calls++); /* also from the slot on its way */
		assert_int_equal(expire_once(&f, 0x10000, 1), 0);
	}
	assert_in_range(calls, N / (CORQ_WHEEL_MOVES + 1), N / (CORQ_WHEEL_MOVES + 1) + 1);
	expire_all(&f, 0x10007, 64);
	assert_int_equal(f.n_armed, 0);
}

/* Work was left, then disarmed: the next deadline still counts from the `now` that was asked for.
 */
static void
next_counts_from_the_last_call(void **state)
{
	static struct fixture f;

	(void)state;
	setup(&f, 0, 0);
	arm(&f, 0, 10);
	arm(&f, 1, 10);
	arm(&f, 2, 130);
	assert_int_equal(expire_once(&f, 100, 1), 1);
	assert_int_equal(corq_wheel_next(&f.w), 0);
	disarm(&f, 0);
	disarm(&f, 1);
	assert_int_equal(corq_wheel_next(&f.w), 30);
	assert_int_equal(expire_once(&f, 129, 1), 0);
	assert_int_equal(expire_once(&f, 130, 1), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fires_on_the_tick),
		cmocka_unit_test(few_wakeups_to_a_far_deadline),
		cmocka_unit_test(moves_are_bounded_per_call),
		cmocka_unit_test(next_counts_from_the_last_call),
		cmocka_unit_test(random_ops_against_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
