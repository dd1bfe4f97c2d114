/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_report.c - ab's block: the arithmetic of its rows and every byte of its text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ab/report.h"

static struct ab_times
times_of(const struct ab_sample *samples, size_t n)
{
	struct ab_sample_list lists[2] = {{samples, n / 2}, {samples + n / 2, n - n / 2}};
	struct ab_times times;

	assert_int_equal(ab_times_compute(lists, 2, &times), 0);
	return times;
}

/* ab's median: odd counts take the mean of the middle and the next, even ones the upper. */
static void
test_median(void **state)
{
	struct ab_sample s[5];
	struct ab_times t;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		s[i] = (struct ab_sample){0, (5 - i) * 1000, 100 * i};
	t = times_of(s, 5);
	assert_int_equal(t.total.median_us, 3500);
	assert_int_equal(t.total.true_median_us, 3000);
	t = times_of(s, 4); /* 2000 .. 5000 */
	assert_int_equal(t.total.median_us, 4000);
	assert_int_equal(t.total.true_median_us, 3500);
	t = times_of(s, 1);
	assert_int_equal(t.total.median_us, 5000);
	assert_int_equal(t.total.true_median_us, 5000);
	assert_true(t.total.sd_us < 1e-9);
	t = times_of(s, 0);
	assert_int_equal(t.total.max_us, 0);
}

static void
test_rows(void **state)
{
	const struct ab_sample s[4] = {
		{10, 110, 50}, {20, 320, 60}, {0, 200, 0}, {30, 4294967295u, 7}};
	struct ab_times t;

	(void)state;
	t = times_of(s, 3);
	assert_int_equal(t.connect.min_us, 0);
	assert_int_equal(t.connect.max_us, 20);
	assert_int_equal(t.connect.mean_us, 10);
	assert_true(t.connect.sd_us > 9.999 && t.connect.sd_us < 10.001);
	assert_int_equal(t.processing.min_us, 100);
	assert_int_equal(t.processing.max_us, 300);
	assert_int_equal(t.waiting.max_us, 60);
	assert_int_equal(t.total.mean_us, 210);
	t = times_of(s, 4);
	assert_int_equal(t.total.max_us, 4294967295u);
	assert_int_equal(t.served_us[AB_PERCENTS - 1], 4294967295u);
}

/* Against qsort, on values that use all three radix digits. */
static void
test_sorting(void **state)
{
	enum {
		N = 10007
	};
	static struct ab_sample s[N];
	uint64_t x = 88172645463325252ull;
	struct ab_times t;
	uint32_t below = 0;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		s[i].connect_us = 0;
		s[i].total_us = (uint32_t)x;
		s[i].wait_us = (uint32_t)(x >> 32) & 0x3ff;
	}
	t = times_of(s, N);
	for (int p = 0; p < AB_PERCENTS - 1; p++) {
		below = 0;
		for (size_t i = 0; i < N; i++)
			below += s[i].total_us < t.served_us[p];
		assert_int_equal(below, (size_t)N * (size_t)ab_percents[p] / 100);
	}
}

static void
text_is(const struct ab_report *report, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	ab_report_print(out, report);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static struct ab_row
row(uint64_t min, uint64_t mean, double sd, uint64_t median, uint64_t max)
{
	return (struct ab_row){min, mean, median, max, median, sd};
}

/* The expected text is what Debian's ab 2.4 printed against nginx, with these figures. */
static void
test_text(void **state)
{
	struct ab_report r = {
		.server = "nginx/1.22.1",
		.host = "127.0.0.1",
		.path = "/",
		.port = 8099,
		.document_length = 612,
		.concurrency = 10,
		.seconds = 0.0547329,
		.done = 1000,
		.bytes_read = 845000,
		.bytes_body = 612000,
	};

	(void)state;
	r.times.connect = row(40, 166, 66.4, 160, 560);
	r.times.processing = row(60, 380, 110.0, 370, 1100);
	r.times.waiting = row(60, 340, 110.0, 330, 1000);
	r.times.total = row(130, 546, 106.0, 499, 1200);
	for (int i = 0; i < AB_PERCENTS; i++)
		r.times.served_us[i] = i == 0 ? 499 : 1200;
	text_is(&r,
		"Server Software:        nginx/1.22.1\n"
		"Server Hostname:        127.0.0.1\n"
		"Server Port:            8099\n"
		"\n"
		"Document Path:          /\n"
		"Document Length:        612 bytes\n"
		"\n"
		"Concurrency Level:      10\n"
		"Time taken for tests:   0.055 seconds\n"
		"Complete requests:      1000\n"
		"Failed requests:        0\n"
		"Total transferred:      845000 bytes\n"
		"HTML transferred:       612000 bytes\n"
		"Requests per second:    18270.55 [#/sec] (mean)\n"
		"Time per request:       0.547 [ms] (mean)\n"
		"Time per request:       0.055 [ms] (mean, across all concurrent requests)\n"
		"Transfer rate:          15076.77 [Kbytes/sec] received\n"
		"\n"
		"Connection Times (ms)\n"
		"              min  mean[+/-sd] median   max\n"
		"Connect:        0    0   0.1      0       1\n"
		"Processing:     0    0   0.1      0       1\n"
		"Waiting:        0    0   0.1      0       1\n"
		"Total:          0    1   0.1      0       1\n"
		"ERROR: The median and mean for the total time are more than twice the standard\n"
		"       deviation apart. These results are NOT reliable.\n"
		"\n"
		"Percentage of the requests served within a certain time (ms)\n"
		"  50%      0\n"
		"  66%      1\n"
		"  75%      1\n"
		"  80%      1\n"
		"  90%      1\n"
		"  95%      1\n"
		"  98%      1\n"
		"  99%      1\n"
		" 100%      1 (longest request)\n");
}

static void
test_text_of_failures(void **state)
{
	struct ab_report r = {
		.server = "",
		.host = "h",
		.path = "/x",
		.port = 80,
		.any_length = true,
		.keepalive = true,
		.send_body = true,
		.concurrency = 1,
		.seconds = 2,
		.done = 1,
		.bad = 10,
		.bad_connect = 1,
		.bad_receive = 2,
		.bad_length = 3,
		.bad_except = 4,
		.write_errors = 5,
		.not_2xx = 6,
		.kept_alive = 7,
		.bytes_read = 2048,
		.bytes_posted = 4096,
		.bytes_body = 1,
	};

	(void)state;
	r.times.total = row(1000, 2000, 700.0, 1000, 123456000);
	text_is(&r, "Server Software:        \n"
		    "Server Hostname:        h\n"
		    "Server Port:            80\n"
		    "\n"
		    "Document Path:          /x\n"
		    "Document Length:        Variable\n"
		    "\n"
		    "Concurrency Level:      1\n"
		    "Time taken for tests:   2.000 seconds\n"
		    "Complete requests:      1\n"
		    "Failed requests:        10\n"
		    "   (Connect: 1, Receive: 2, Length: 3, Exceptions: 4)\n"
		    "Write errors:           5\n"
		    "Non-2xx responses:      6\n"
		    "Keep-Alive requests:    7\n"
		    "Total transferred:      2048 bytes\n"
		    "Total body sent:        4096\n"
		    "HTML transferred:       1 bytes\n"
		    "Requests per second:    0.50 [#/sec] (mean)\n"
		    "Time per request:       2000.000 [ms] (mean)\n"
		    "Time per request:       2000.000 [ms] (mean, across all concurrent requests)\n"
		    "Transfer rate:          1.00 [Kbytes/sec] received\n"
		    "                        2.00 kb/s sent\n"
		    "                        3.00 kb/s total\n"
		    "\n"
		    "Connection Times (ms)\n"
		    "              min  mean[+/-sd] median   max\n"
		    "Connect:        0    0   0.0      0       0\n"
		    "Processing:     0    0   0.0      0       0\n"
		    "Waiting:        0    0   0.0      0       0\n"
		    "Total:          1    2   0.7      1  123456\n"
		    "WARNING: The median and mean for the total time are not within a normal "
		    "deviation\n"
		    "        These results are probably not that reliable.\n");
	r.done = 0;
	r.bad = r.write_errors = r.not_2xx = 0;
	r.keepalive = r.send_body = false;
	text_is(&r, "Server Software:        \n"
		    "Server Hostname:        h\n"
		    "Server Port:            80\n"
		    "\n"
		    "Document Path:          /x\n"
		    "Document Length:        Variable\n"
		    "\n"
		    "Concurrency Level:      1\n"
		    "Time taken for tests:   2.000 seconds\n"
		    "Complete requests:      0\n"
		    "Failed requests:        0\n"
		    "Total transferred:      2048 bytes\n"
		    "HTML transferred:       1 bytes\n");
}

/* -d -S: as printed by Debian's ab for two requests of 1.2 s and 12 s. */
static void
test_text_averages(void **state)
{
	struct ab_report r = {.server = "s", .host = "h", .path = "/", .port = 80, .done = 2};
	char *text = NULL, *times;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	r.no_percentages = r.no_deviation = true;
	r.times.processing = row(1200100, 6603000, 7639000.0, 12005500, 12005500);
	r.times.waiting = row(1200100, 6601000, 7639000.0, 12001500, 12001500);
	r.times.total = row(1200500, 6603400, 7639000.0, 12005600, 12005600);
	ab_report_print(out, &r);
	fclose(out);
	times = strstr(text, "\nConnection Times");
	assert_non_null(times);
	assert_string_equal(times, "\nConnection Times (ms)\n"
				   "              min   avg   max\n"
				   "Connect:        0     0    0\n"
				   "Processing:  1200  660312006\n"
				   "Waiting:     1200  660112002\n"
				   "Total:       1201  660312006\n");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_sorting),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_of_failures),
		cmocka_unit_test(test_text_averages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
