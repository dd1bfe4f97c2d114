/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ab_sizes.c - what a run of corq ab needs from -c, whether its addresses are enough, and the
 * text of the progress bar.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ab/progress.h"
#include "ab/sizes.h"
#include "ab/times.h"

static void
test_sizes(void **state)
{
	struct ab_sizes s;

	(void)state;
	ab_sizes_find(1, 1, 1, true, &s);
	assert_int_equal(s.max_conns, 65536);
	assert_int_equal(s.addresses, 1);
	assert_string_equal(s.range, "");
	ab_sizes_find(32256, 1, 1000000, true, &s); /* twice that are the ports of one */
	assert_int_equal(s.addresses, 1);
	ab_sizes_find(32257, 1, 1000000, true, &s);
	assert_int_equal(s.addresses, 2);
	assert_string_equal(s.range, "10.0.0.1-10.0.0.2/16");
	ab_sizes_find(32767, 1, 1000000, true, &s);
	assert_int_equal(s.max_conns, 65536);
	ab_sizes_find(32768, 1, 1000000, true, &s);
	assert_int_equal(s.max_conns, 131072);
	ab_sizes_find(1000000, 1, 1000000, false, &s);
	assert_int_equal(s.addresses, 32);
	assert_string_equal(s.range, "");
	ab_sizes_find(1u << 22, 1, AB_SAMPLES_MAX, true, &s); /* more than the largest -c */
	assert_int_equal(s.addresses, 131);
	assert_string_equal(s.range, "10.0.0.1-10.0.0.131/16");
	assert_int_equal(s.max_conns, 1u << 24);
	assert_true(s.bytes > 5ull << 30 && s.bytes < 8ull << 30);
	ab_sizes_find(1u << 22, 4, AB_SAMPLES_MAX, true, &s);
	assert_int_equal(s.max_conns, 1u << 22);
}

static void
test_apply(void **state)
{
	struct ab_options opts = {.requests = 100000, .concurrency = 100000};
	struct ab_sizes s;

	(void)state;
	assert_int_equal(ab_sizes_apply(&opts, true, &s), APP_OK);
	assert_string_equal(opts.device.config.ip, "10.0.0.1-10.0.0.4/16");
	assert_int_equal(opts.device.config.max_conns, 262144);
	opts.device.config.ip = "10.0.0.9/16"; /* what was asked for stays */
	opts.device.config.max_conns = 100000;
	assert_int_equal(ab_sizes_apply(&opts, true, &s), APP_OK);
	assert_string_equal(opts.device.config.ip, "10.0.0.9/16");
	assert_int_equal(opts.device.config.max_conns, 100000);
	assert_int_equal(ab_sizes_check(&opts, 1), APP_USAGE);
	assert_non_null(strstr(app_last_error(), "-c 100000 needs 2 addresses"));
	assert_int_equal(ab_sizes_check(&opts, 2), APP_OK);
	opts.concurrency = AB_PORTS;
	assert_int_equal(ab_sizes_check(&opts, 1), APP_OK);
	opts.concurrency++;
	assert_int_equal(ab_sizes_check(&opts, 1), APP_USAGE);
}

static void
bar_is(const struct ab_progress_view *v, unsigned columns, const char *want)
{
	char line[256];

	ab_progress_line(v, columns, line, sizeof(line));
	assert_string_equal(line, want);
	assert_true(strlen(line) <= columns);
}

static void
test_bar(void **state)
{
	struct ab_progress_view v = {.requests = 1000, .seconds = 0.2};

	(void)state;
	bar_is(&v, 90,
		"[>                             ]   0 %        0/s  "
		"p99         ?  0 failed  ETA       ?");
	v = (struct ab_progress_view){.done = 500,
		.failed = 3,
		.requests = 1000,
		.rate = 250.4,
		.seconds = 2,
		.p99_ns = 1234567};
	bar_is(&v, 90,
		"[===============>              ]  50 %      250/s  "
		"p99  1.235 ms  3 failed  ETA    0:02");
	bar_is(&v, 68, "[=====>    ]  50 %      250/s  p99  1.235 ms  3 failed  ETA    0:02");
	bar_is(&v, 40, " 50 %      250/s  p99  1.235 ms  3 faile");
	v.limit_s = 8; /* a quarter of the time, half of the requests: -n ends it */
	bar_is(&v, 40, " 50 %      250/s  p99  1.235 ms  3 faile");
	v.limit_s = 2.4;
	v.p99_ns = 123000000;
	bar_is(&v, 55, " 83 %      250/s  p99    123 ms  3 failed  ETA    0:00");
	v = (struct ab_progress_view){
		.done = 1, .requests = 7200, .seconds = 1, .rate = 1, .p99_ns = 61000000000};
	bar_is(&v, 68, "[>         ]   0 %        1/s  p99    61.0 s  0 failed  ETA 1:59:59");
	v.done = v.requests;
	bar_is(&v, 68, "[==========] 100 %        1/s  p99    61.0 s  0 failed  ETA    0:00");
}

/* What stands beside the bar changes all the time; the bar's end must stay where it is. */
static void
test_bar_stays(void **state)
{
	static const uint64_t p99s[] = {
		0, 900, 1234567, 99999000, 123000000, 9999000000, 10000000000, 99900000000};
	static const double rates[] = {0, 7, 999.7, 123456, 9999999};
	char line[256];

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		for (unsigned j = 0; j < 5; j++) {
			for (uint64_t done = 0; done <= 1000; done += 50) {
				struct ab_progress_view v = {.done = done,
					.requests = 1000,
					.rate = rates[j],
					.seconds = 150,
					.p99_ns = p99s[i]};

				ab_progress_line(&v, 79, line, sizeof(line));
				assert_int_equal(strcspn(line, "]"), 22);
				assert_int_equal(strlen(line), 78);
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_apply),
		cmocka_unit_test(test_bar),
		cmocka_unit_test(test_bar_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
