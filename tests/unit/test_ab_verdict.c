/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ab_verdict.c - the verdict of corq ab: each cause by itself, each threshold from below and
 * at it, and which cause goes before which.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ab/verdict.h"

/* A run that waits for its target: half busy, now and then a frame. */
static struct ab_verdict_in
usual(void)
{
	return (struct ab_verdict_in){.concurrency = 50,
		.own_busy = 50,
		.own_cpu_lost = 1,
		.slots_late = 1,
		.batch = 1.5,
		.peer_busy = -1,
		.peer_cpu_lost = -1,
		.rx_packets = 1000000};
}

static void
expect(const struct ab_verdict_in *in, const char *name, const char *in_reason)
{
	struct ab_verdict out;

	ab_verdict_find(in, &out);
	assert_string_equal(out.name, name);
	if (strstr(out.reason, in_reason) == NULL)
		fail_msg("'%s' is not in '%s'", in_reason, out.reason);
}

static void
not_said(const struct ab_verdict_in *in, const char *text)
{
	struct ab_verdict out;

	ab_verdict_find(in, &out);
	if (strstr(out.reason, text) != NULL)
		fail_msg("'%s' is in '%s'", text, out.reason);
}

static void
test_target(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	expect(&in, "target", "waited for replies");
	in.zero_windows = 7;
	expect(&in, "target", "7 zero windows, 0 ports refused");
}

/* Half of the CPU is another's, and most of the slots wait in each turn: not the target's fault. */
static void
test_most_wait_here(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.own_busy = 99;
	in.own_cpu_lost = 48;
	in.batch = 24.9;
	expect(&in, "target", "24.9 frames");
	in.batch = 25;
	expect(&in, "generator", "busy 99 %");
	in.concurrency = 1000; /* a turn takes 64 */
	in.batch = 31.9;
	expect(&in, "target", "31.9 frames");
	in.batch = 32;
	expect(&in, "generator", "32.0 frames");
	in.own_busy = 89;
	expect(&in, "target", "busy 89 %");
}

/* A polling core that finds one frame a turn looks busy and is not behind. */
static void
test_busy(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.own_busy = 99;
	expect(&in, "target", "busy 99 %");
	in.batch = 3.9;
	expect(&in, "target", "3.9 frames");
	in.batch = 4;
	expect(&in, "generator", "busy 99 %");
	in.own_busy = 90.9; /* less the one percent that others took: below 90 */
	expect(&in, "target", "busy 91 %");
	in.own_busy = 91;
	expect(&in, "generator", "busy 91 %");
	in.concurrency = 1; /* no more than one frame can be there */
	in.batch = 1;
	expect(&in, "generator", "1.0 frames");
	in.concurrency = 16;
	in.batch = 1.9;
	expect(&in, "target", "1.9 frames");
	in.batch = 2;
	expect(&in, "generator", "2.0 frames");
}

static void
test_late(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.own_cpu_lost = 95; /* by itself it says nothing: an idle core loses nothing by it */
	in.slots_late = 32.9;
	expect(&in, "target", "waited for replies");
	in.slots_late = 33;
	expect(&in, "generator", "95 % of its CPU");
	in.own_cpu_lost = -1;
	expect(&in, "generator", "an unknown share of its CPU");
	in.slots_late = -1;
	expect(&in, "target", "waited for replies");
}

static void
test_blocked(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.tx_blocked = 24.9;
	expect(&in, "target", "waited for replies");
	in.tx_blocked = 25;
	expect(&in, "nic", "25 % of the time");
	in.own_busy = 99;
	in.batch = 10;
	expect(&in, "nic", "25 % of the time"); /* a core that pushes is busy */
	in.slots_late = 40;
	expect(&in, "generator", "40 %");
	in.slots_late = 1;
	in.loop = in.both_ends = true;
	expect(&in, "target", "did not fetch");
}

/* A driver that sleeps in its sending calls refuses nothing. A ring in memory does not sleep. */
static void
test_held(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.tx_waited = 24.9;
	expect(&in, "target", "waited for replies");
	in.tx_waited = 25;
	expect(&in, "nic", "held our core in long calls that send, 25 % of the time");
	in.tx_blocked = 30;
	expect(&in, "nic", "did not take the frames");
	in.tx_blocked = 0;
	in.loop = in.both_ends = true;
	expect(&in, "generator", "share one core");
}

static void
test_lost(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.rx_lost = 100; /* 1e-4 of a million */
	expect(&in, "target", "waited for replies");
	in.rx_lost = 101;
	expect(&in, "nic", "lost 101 frames");
	in.own_busy = 99;
	in.batch = 10;
	expect(&in, "generator", "busy 99 %"); /* who is behind loses frames */
}

/* Both sides are known: the figures of both are in the reason, and say what the verdict says. */
static void
test_loop(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.loop = true;
	in.own_busy = 95;
	in.own_backlog = 1.5;
	in.peer_busy = 85;
	in.peer_backlog = 9; /* far enough apart: not asked */
	expect(&in, "generator", "busy 95 %, with 1.5 requests a turn; the server's 85 %");
	in.peer_busy = 85.1;
	expect(&in, "target", "the server's 85 %, with 9.0");
	in.peer_backlog = 1.4;
	expect(&in, "generator", "busy 95 %, with 1.5 requests a turn");
	in.peer_backlog = 1.5; /* neither tells: the busier */
	expect(&in, "generator", "the server's 85 %");
	in.peer_busy = 96;
	expect(&in, "target", "the server's 96 %");
	in.tx_blocked = 25;
	in.peer_busy = 20;
	expect(&in, "target", "did not fetch the frames that were ready for it, 25 %");
	in.both_ends = true;
	in.tx_blocked = 0;
	expect(&in, "generator", "share one core");
}

/* 64 and 65 percent: who is busier by a hair says little, and nobody is full. */
static void
test_loop_not_full(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.loop = true;
	in.own_busy = 64;
	in.own_backlog = 30;
	in.peer_busy = 65;
	in.peer_backlog = 4;
	expect(&in, "generator", "neither is full");
	in.peer_backlog = 31;
	expect(&in, "target", "neither is full");
	in.peer_busy = 89.9;
	expect(&in, "target", "neither is full");
	in.peer_busy = 90;
	not_said(&in, "full");
}

/* Figures of a machine that others load: 82 % of ours was lost and the server's 60.5 % busy. */
static void
test_loop_loaded(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.loop = true;
	in.concurrency = 256;
	in.own_busy = 82.4;
	in.own_cpu_lost = 82.3;
	in.slots_late = 24.4;
	in.batch = 64;
	in.own_backlog = 21;
	in.peer_busy = 60.5;
	in.peer_cpu_lost = 50;
	in.peer_backlog = 20;
	expect(&in, "generator",
		"busy 82 % and without its CPU 82 %, with 21.0 requests a turn; "
		"the server's 60 % and without its CPU 50 %, with 20.0");
	expect(&in, "generator", "both lost their CPU to others");
	not_said(&in, "waited for replies");
	assert_int_equal(ab_verdict_loaded(&in), 50);
	in.slots_late = 40; /* ours alone: it does not decide what both suffer */
	in.peer_cpu_lost = 95;
	expect(&in, "target", "without its CPU 95 %");
	in.peer_cpu_lost = 9.9;
	not_said(&in, "both lost");
	assert_int_equal(ab_verdict_loaded(&in), 0);
	in.peer_cpu_lost = 10;
	expect(&in, "generator", "both lost");
	in.peer_cpu_lost = -1; /* not known */
	not_said(&in, "both lost");
	in.peer_cpu_lost = 50;
	in.loop = false;
	assert_int_equal(ab_verdict_loaded(&in), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_most_wait_here),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_loop_not_full),
		cmocka_unit_test(test_loop_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
