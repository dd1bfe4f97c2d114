/* SPDX-License-Identifier: BSD-3-Clause */
/* test_log.c - log lines: levels, cutting, rate limit on virtual time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"

#include <string.h>

struct sink {
	char line[CORQ_LOG_LINE];
	enum corq_log_level level;
	int n;
};

static void
keep(void *arg, enum corq_log_level level, const char *line)
{
	struct sink *s = arg;

	s->n++;
	s->level = level;
	strncpy(s->line, line, sizeof(s->line) - 1);
}

static void
levels_filter(void **state)
{
	struct sink s = {.n = 0};
	struct corq_log log = {keep, &s, CORQ_LOG_WARN}, mute = {NULL, NULL, CORQ_LOG_DEBUG};

	(void)state;
	corq_log_write(&log, CORQ_LOG_INFO, "no");
	corq_log_write(&mute, CORQ_LOG_ERR, "no");
	corq_log_write(NULL, CORQ_LOG_ERR, "no");
	assert_int_equal(s.n, 0);
	corq_log_write(&log, CORQ_LOG_WARN, "%s %d", "port", 80);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.level, CORQ_LOG_WARN);
	assert_string_equal(s.line, "port 80");
	assert_string_equal(corq_log_level_name(CORQ_LOG_WARN), "warning");
}

static void
long_lines_are_cut(void **state)
{
	struct sink s = {.n = 0};
	struct corq_log log = {keep, &s, CORQ_LOG_DEBUG};
	char big[3 * CORQ_LOG_LINE];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	corq_log_write(&log, CORQ_LOG_ERR, "%s", big);
	assert_int_equal(strlen(s.line), CORQ_LOG_LINE - 1);
}

static void
limit_counts_what_it_leaves_out(void **state)
{
	struct sink s = {.n = 0};
	struct corq_log log = {keep, &s, CORQ_LOG_INFO};
	struct corq_log_limit limit = {.per_s = 3};
	uint64_t t = 77 * CORQ_NS_PER_S;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_true(corq_log_limited(&log, &limit, t + (uint64_t)i, CORQ_LOG_WARN, "bad %d",
				    i) == (i < 3));
	assert_int_equal(s.n, 3);
	assert_string_equal(s.line, "bad 2");
	assert_false(corq_log_limited(&log, &limit, t + CORQ_NS_PER_S - 1, CORQ_LOG_WARN, "x"));
	assert_false(corq_log_limited(&log, &limit, t + CORQ_NS_PER_S, CORQ_LOG_DEBUG, "filtered"));
	assert_true(corq_log_limited(&log, &limit, t + CORQ_NS_PER_S, CORQ_LOG_WARN, "again"));
	assert_string_equal(s.line, "again (8 similar lines left out)");
	assert_true(corq_log_limited(&log, &limit, t + CORQ_NS_PER_S, CORQ_LOG_WARN, "again"));
	assert_string_equal(s.line, "again");
	assert_int_equal(s.n, 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_filter),
		cmocka_unit_test(long_lines_are_cut),
		cmocka_unit_test(limit_counts_what_it_leaves_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
