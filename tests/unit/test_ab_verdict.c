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
test_target(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	expect(&in, "target", "waited for replies");
	in.zero_windows = 7;
	expect(&in, "target", "7 zero windows, 0 ports refused");
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
	in.loop = true;
	expect(&in, "target", "did not fetch");
	in.slots_late = 40;
	expect(&in, "generator", "40 %");
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

static void
test_loop(void **state)
{
	struct ab_verdict_in in = usual();

	(void)state;
	in.loop = true;
	in.own_busy = 95;
	in.batch = 10;
	in.peer_busy = 94;
	expect(&in, "generator", "busy 95 %");
	in.peer_busy = 96;
	expect(&in, "target", "busy 96 %, ours 95 %");
	in.both_ends = true;
	expect(&in, "generator", "share one core");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
