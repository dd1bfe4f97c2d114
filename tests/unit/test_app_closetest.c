/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_closetest.c - which stages a run of corq closetest has, how its words are read, and the
 * form of its lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "closetest/plan.h"

static const char *
policy(int i)
{
	return closetest_policy_name((enum corq_close_policy)i);
}

static void
test_sets(void **state)
{
	static const char *const bad[] = {"", "firs", "first,", ",first", "first,,rst", "First",
		"firstrst", "after-peer;rst", "all"};
	char wrong[CLOSETEST_LINE];
	bool set[CLOSETEST_POLICIES];

	(void)state;
	assert_true(closetest_parse_set("rst,first,rst", policy, CLOSETEST_POLICIES, set, wrong));
	assert_true(set[CORQ_CLOSE_FIRST] && set[CORQ_CLOSE_RST]);
	assert_false(set[CORQ_CLOSE_AFTER_PEER] || set[CORQ_CLOSE_ABORT_IF_EMPTY]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(closetest_parse_set(bad[i], policy, CLOSETEST_POLICIES, set, wrong));
	assert_false(closetest_parse_set("first,none", policy, CLOSETEST_POLICIES, set, wrong));
	assert_string_equal(wrong, "none");
}

/* Each kind of stage once a round; kinds have ports of their own, rounds share them. */
static void
test_steps(void **state)
{
	struct closetest_plan plan = {.part = {true, true, true},
		.close = {true, true, true, true},
		.server_ours = true,
		.rounds = CLOSETEST_ROUNDS};
	struct closetest_step steps[CLOSETEST_STAGES];
	unsigned n = closetest_plan_steps(&plan, steps);

	(void)state;
	assert_int_equal(n, CLOSETEST_STAGES);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++) {
			bool same =
				steps[i].part == steps[j].part && steps[i].close == steps[j].close;

			if (steps[i].part == CLOSETEST_EXTERN || steps[j].part == CLOSETEST_EXTERN)
				continue;
			assert_true(!same || steps[i].round != steps[j].round);
			assert_int_equal(same, steps[i].port_offset == steps[j].port_offset);
		}
	plan.server_ours = false;
	plan.rounds = 1;
	assert_int_equal(closetest_plan_steps(&plan, steps), 3);
	assert_string_equal(closetest_step_close(&steps[1]), "-");
	assert_int_equal(steps[1].port_offset, 0);
	assert_int_equal(steps[2].port_offset, 1);
}

static void
test_stuck(void **state)
{
	struct closetest_plan plan = {.part = {false, true, false},
		.close = {true, false, true, true},
		.server_ours = true,
		.client = CORQ_CLOSE_AFTER_PEER,
		.rounds = 1};
	struct closetest_step steps[CLOSETEST_STAGES];

	(void)state;
	assert_null(closetest_plan_stuck(&plan, steps, closetest_plan_steps(&plan, steps)));
	plan.close[CORQ_CLOSE_AFTER_PEER] = true;
	assert_non_null(closetest_plan_stuck(&plan, steps, closetest_plan_steps(&plan, steps)));
	plan.client = CORQ_CLOSE_FIRST;
	assert_null(closetest_plan_stuck(&plan, steps, closetest_plan_steps(&plan, steps)));
	plan.client = CORQ_CLOSE_AFTER_PEER;
	plan.part[CLOSETEST_SIMPLE] = false;
	plan.part[CLOSETEST_PROPER] = true;
	plan.server_ours = false;
	assert_non_null(closetest_plan_stuck(&plan, steps, closetest_plan_steps(&plan, steps)));
}

static void
test_closes(void **state)
{
	struct closetest_step step = {.part = CLOSETEST_SIMPLE, .close = CORQ_CLOSE_FIRST};

	(void)state;
	assert_true(closetest_at_accept(&step));
	step.close = CORQ_CLOSE_AFTER_PEER;
	assert_false(closetest_at_accept(&step));
	step = (struct closetest_step){.part = CLOSETEST_PROPER, .close = CORQ_CLOSE_RST};
	assert_false(closetest_at_accept(&step));
	assert_true(closetest_by_reset(CORQ_CLOSE_RST));
	assert_true(closetest_by_reset(CORQ_CLOSE_ABORT_IF_EMPTY));
	assert_false(closetest_by_reset(CORQ_CLOSE_FIRST));
	assert_false(closetest_by_reset(CORQ_CLOSE_AFTER_PEER));
}

static void
check_rate(uint64_t ns, uint64_t n, const char *want)
{
	char line[CLOSETEST_LINE];

	closetest_rate_line(ns, n, line);
	assert_string_equal(line, want);
}

static void
test_lines(void **state)
{
	char line[CLOSETEST_LINE];

	(void)state;
	closetest_heading(CLOSETEST_SIMPLE, line);
	assert_string_equal(line, "================== simple-close =====================");
	closetest_heading(CLOSETEST_EXTERN, line);
	assert_string_equal(line, "================== extern =====================");
	closetest_count_line(1500, line);
	assert_string_equal(line, "----------------------------------------\t1500");
	check_rate(97000, 50, "1.94000 µs/# 50 # 515464 #/sec 0.097 net-ms");
	check_rate(50 * 123456, 50, "123.456 µs/# 50 # 8100 #/sec 6.173 net-ms");
	check_rate(5000000000, 50, "100000 µs/# 50 # 10.000 #/sec 5000.000 net-ms");
	check_rate(90000000000, 3, "30000000 µs/# 3 # 0.033 #/sec 90000.000 net-ms");
	check_rate(0, 0, "0.00000 µs/# 0 # 0.000 #/sec 0.000 net-ms");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_closes),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
