/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_tables.c - the HTML table of -w, and the files of -e and -g.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ab/report.h"
#include "ab/tables.h"
#include "common/app.h"

/* The expected text is what Debian's ab 2.4 printed with these figures, but for the escapes. */
static void
test_html(void **state)
{
	struct ab_report r = {
		.server = "a<b>&c",
		.host = "127.0.0.1",
		.path = "/?a&b",
		.port = 8971,
		.document_length = 1000,
		.concurrency = 1,
		.seconds = 0.004,
		.done = 10,
		.bad = 3,
		.bad_receive = 1,
		.bad_length = 1,
		.bad_except = 1,
		.not_2xx = 4,
		.keepalive = true,
		.kept_alive = 2,
		.send_body = true,
		.bytes_read = 8192,
		.bytes_posted = 4096,
		.bytes_body = 9000,
		.table_attrs = "X='1'",
		.row_attrs = "class=y",
		.cell_attrs = "align=z",
	};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	r.times.processing = (struct ab_row){.min_us = 200, .mean_us = 1400, .max_us = 1600};
	r.times.total = (struct ab_row){.min_us = 900, .mean_us = 1900, .max_us = 2600};
	ab_html_print(out, &r);
	fclose(out);
#define ROW(label, value)                                                                          \
	"<tr class=y><th colspan=2 align=z>" label ":</th><td colspan=2 align=z>" value            \
	"</td></tr>\n"
#define RATE(value)                                                                                \
	"<tr class=y><td colspan=2 align=z>&nbsp;</td><td colspan=2 align=z>" value "</td></tr>\n"
#define TIMES(label, min, avg, max)                                                                \
	"<tr class=y><th align=z>" label ":</th><td align=z>" min "</td><td align=z>" avg          \
	"</td><td align=z>" max "</td></tr>\n"
	/* clang-format off */
	assert_string_equal(text,
		"<table X='1'>\n"
		ROW("Server Software", "a&lt;b&gt;&amp;c")
		ROW("Server Hostname", "127.0.0.1")
		ROW("Server Port", "8971")
		ROW("Document Path", "/?a&amp;b")
		ROW("Document Length", "1000 bytes")
		ROW("Concurrency Level", "1")
		ROW("Time taken for tests", "0.004 seconds")
		ROW("Complete requests", "10")
		ROW("Failed requests", "3")
		"<tr class=y><td colspan=4 align=z >   (Connect: 0, Length: 1, Exceptions: 1)</td></tr>\n"
		ROW("Non-2xx responses", "4")
		ROW("Keep-Alive requests", "2")
		ROW("Total transferred", "8192 bytes")
		ROW("Total body sent", "4096")
		ROW("HTML transferred", "9000 bytes")
		ROW("Requests per second", "2500.00")
		ROW("Transfer rate", "2000.00 kb/s received")
		RATE("1000.00 kb/s sent")
		RATE("3000.00 kb/s total")
		"<tr class=y><th align=z colspan=4>Connection Times (ms)</th></tr>\n"
		"<tr class=y><th align=z>&nbsp;</th> <th align=z>min</th>   "
		"<th align=z>avg</th>   <th align=z>max</th></tr>\n"
		TIMES("Connect", "    0", "    0", "    0")
		TIMES("Processing", "    0", "    1", "    2")
		TIMES("Total", "    1", "    2", "    3")
		"</table>\n");
	/* clang-format on */
	free(text);
}

static void
contents(const char *path, char *text, size_t room)
{
	FILE *in = fopen(path, "r");
	size_t n;

	assert_non_null(in);
	n = fread(text, 1, room - 1, in);
	text[n] = '\0';
	fclose(in);
}

static char path[40], other[48]; /* of one test, and a second name for it */

static void
make_name(void)
{
	int fd;

	strcpy(path, "/tmp/corq-tables-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(other, sizeof(other), "%s.link", path);
}

static int
remove_names(void **state)
{
	(void)state;
	unlink(other);
	unlink(path);
	return 0;
}

/* The row of i percent is the sample nearest to it; what the file held before is gone. */
static void
test_csv(void **state)
{
	struct ab_sample samples[5];
	struct ab_sample_list list = {samples, 5};
	struct ab_times times;
	struct app_out out;
	char text[4096];

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		samples[i] = (struct ab_sample){0, 1000 * i + 266, 0};
	assert_int_equal(ab_times_compute(&list, 1, &times), 0);
	make_name();
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(app_out_open(&out, "-e", path), 0);
		assert_int_equal(ab_csv_write(&out, &times, 5), 0);
		app_out_drop(&out);
	}
	contents(path, text, sizeof(text));
	assert_true(strncmp(text, "Percentage served,Time in ms\n0,0.266\n1,0.266\n", 45) == 0);
	assert_non_null(strstr(text, "\n9,0.266\n10,1.266\n"));
	assert_non_null(strstr(text, "\n89,4.266\n90,4.266\n"));
	assert_non_null(strstr(text, "\n99,4.266\n100,4.266\n"));
	assert_null(strstr(text, "\n101,"));
	assert_int_equal(app_out_open(&out, "-e", path), 0);
	assert_int_equal(ab_csv_write(&out, &times, 0), 0);
	contents(path, text, sizeof(text));
	assert_string_equal(text, "Percentage served,Time in ms\n");
}

/* Lists of several cores become one, sorted by total time. */
static void
test_gnuplot(void **state)
{
	struct ab_record one[] = {
		{1796072781600000, 26124, 35559, 9435}, {1796072781000000, 0, 499, 400}};
	struct ab_record two[] = {{1796072782000000, 500, 1700, 600}};
	struct ab_record_list lists[] = {{one, 2}, {NULL, 0}, {two, 1}};
	struct app_out out;
	char text[4096];

	(void)state;
	setenv("TZ", "UTC", 1);
	make_name();
	assert_int_equal(app_out_open(&out, "-g", path), 0);
	assert_int_equal(ab_gnuplot_write(&out, lists, 3), 0);
	contents(path, text, sizeof(text));
	assert_string_equal(text, "starttime\tseconds\tctime\tdtime\tttime\twait\n"
				  "Mon Nov 30 21:06:21 2026\t1796072781\t0\t0\t0\t0\n"
				  "Mon Nov 30 21:06:22 2026\t1796072782\t1\t1\t2\t1\n"
				  "Mon Nov 30 21:06:21 2026\t1796072781\t26\t9\t36\t9\n");
}

/* A file keeps what it held until something is written, and is gone if it was made for nothing. One
 * file under two names is found out; what cannot hold anything may stand for several. */
static void
test_files(void **state)
{
	struct app_out a, b;
	char text[4096];

	(void)state;
	make_name();
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(app_out_open(&a, "-e", path), 0);
	assert_int_equal(app_out_open(&b, "-g", other), 0);
	assert_true(app_out_same(&a, &b));
	app_out_drop(&b);
	app_out_drop(&a);
	assert_int_equal(access(path, F_OK), 0); /* make_name made it */
	unlink(path);
	assert_int_equal(app_out_open(&b, "-g", other), 0); /* the link leads to nothing yet */
	fputs("kept", b.file);
	assert_int_equal(app_out_end(&b, 0), 0);
	assert_int_equal(app_out_open(&a, "-e", path), 0);
	app_out_drop(&a);
	contents(path, text, sizeof(text));
	assert_string_equal(text, "kept");
	unlink(other);
	unlink(path);
	assert_int_equal(app_out_open(&a, "-e", path), 0);
	assert_int_equal(access(path, F_OK), 0);
	app_out_drop(&a);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_not_equal(app_out_open(&a, "-e", "/nosuch/x"), 0);
	assert_int_equal(app_out_open(&a, "-e", "/dev/full"), 0);
	assert_int_equal(app_out_open(&b, "-g", "/dev/full"), 0);
	assert_false(app_out_same(&a, &b));
	app_out_drop(&b);
	assert_int_equal(ab_csv_write(&a, &(struct ab_times){0}, 1), 1);
	assert_non_null(strstr(app_last_error(), "'/dev/full': No space left"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_html),
		cmocka_unit_test_teardown(test_csv, remove_names),
		cmocka_unit_test_teardown(test_gnuplot, remove_names),
		cmocka_unit_test_teardown(test_files, remove_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
