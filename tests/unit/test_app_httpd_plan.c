/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_httpd_plan.c - a directory as httpd serves it, with its listings, and what each request
 * to it is answered with. The access log under a writer that is faster than its thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "httpd/access.h"
#include "httpd/plan.h"

#define A_ROOT "/tmp/corq-test-httpd-XXXXXX"

static char root[] = A_ROOT;
static char other_root[sizeof(A_ROOT)]; /* of one test, gone after it */
static struct httpd_site site;

static void
make(const char *path, const char *text)
{
	char name[512];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	if (text == NULL) {
		assert_int_equal(mkdir(name, 0755), 0);
		return;
	}
	f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int
set_up(void **state)
{
	char err[200] = "";

	(void)state;
	assert_non_null(mkdtemp(root));
	make("with", NULL);
	make("with/index.html", "<p>index</p>");
	make("without", NULL);
	make("without/b<i>&\"c", "x");
	make("without/a b.txt", "0123456789");
	make("without/javascript:alert(1)", "");
	make("without/sub", NULL);
	make("without/.hidden", "no");
	make("empty", NULL);
	make("latin.txt", "\xe9");
	if (httpd_site_load(&site, root, true, err, sizeof(err)) != 0)
		fail_msg("%s", err);
	return 0;
}

static int
remove_folder(const char *path)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	return system(command);
}

static int
tear_down(void **state)
{
	(void)state;
	httpd_site_free(&site);
	return remove_folder(root);
}

static void
make_other_root(void)
{
	strcpy(other_root, A_ROOT);
	assert_non_null(mkdtemp(other_root));
}

static int
remove_other_root(void **state)
{
	(void)state;
	return remove_folder(other_root);
}

static const struct httpd_file *
find(const char *path)
{
	char name[HTTPD_URL_MAX + 16];

	strcpy(name, path);
	return httpd_site_find(&site, name, strlen(name));
}

static bool
has(const struct httpd_file *file, const char *text)
{
	return memmem(file->body, file->len, text, strlen(text)) != NULL;
}

static void
test_site(void **state)
{
	struct httpd_site bare;
	char err[200], path[64];

	(void)state;
	assert_int_equal(site.served, 5);
	assert_int_equal(site.skipped, 1);
	assert_true(find("/with")->directory);
	assert_string_equal(find("/with/")->path, "/with/index.html");
	assert_true(find("/without")->directory);
	assert_true(find("/without/")->listing);
	assert_true(find("/")->listing);
	assert_null(find("/nothing"));
	assert_null(find("/latin.txt/"));
	assert_null(find("/without/.hidden"));
	assert_string_equal(find("/latin.txt")->type, "text/plain");
	assert_string_equal(find("/without/a b.txt")->type, "text/plain; charset=utf-8");
	assert_string_not_equal(find("/latin.txt")->etag, find("/with/")->etag);
	assert_int_equal(httpd_site_load(&bare, root, false, err, sizeof(err)), 0);
	assert_null(httpd_site_find(&bare, strcpy(path, "/"), 1));
	assert_null(httpd_site_find(&bare, strcpy(path, "/without"), 8));
	assert_null(httpd_site_find(&bare, strcpy(path, "/without/"), 9));
	assert_non_null(httpd_site_find(&bare, strcpy(path, "/with"), 5));
	/* The tag is of the content, not of the time. */
	assert_string_equal(httpd_site_find(&bare, strcpy(path, "/latin.txt"), 10)->etag,
		find("/latin.txt")->etag);
	httpd_site_free(&bare);
}

static void
test_listing(void **state)
{
	const struct httpd_file *page = find("/without/"), *top = find("/");
	const char *sub, *file;

	(void)state;
	assert_true(has(page, "<a href=\"./b%3Ci%3E%26%22c\">b&lt;i&gt;&amp;&quot;c</a>"));
	assert_true(has(page, "<a href=\"./a%20b.txt\">a b.txt</a></td><td class=\"n\">10</td>"));
	assert_true(has(page, "<a href=\"./javascript%3Aalert%281%29\">"));
	assert_true(has(page, "<a href=\"./sub/\">sub/</a>"));
	assert_true(has(page, "<a href=\"../\">"));
	assert_false(has(page, "hidden"));
	assert_false(has(page, "<i>"));
	assert_false(has(top, "\"../\""));
	assert_true(has(top, "\"./with/\""));
	assert_false(has(top, "index.html")); /* of a directory below */
	assert_false(has(top, "a%20b"));
	/* Directories first, then in order. */
	sub = memmem(page->body, page->len, "./sub/", 6);
	file = memmem(page->body, page->len, "./a%20b", 7);
	assert_true(sub < file);
	assert_true(file < (const char *)memmem(page->body, page->len, "./b%3C", 6));
	assert_string_equal(page->type, "text/html; charset=utf-8");
	assert_true(find("/empty/")->listing);
}

static struct httpd_plan
plan(const char *line, const char *fields)
{
	static const struct httpd_rules rules = {.upload = "/up", .upload_max = 100};
	llhttp_settings_t settings;
	struct httpd_request req;
	struct httpd_plan out;
	char text[1024];

	httpd_request_settings(&settings);
	httpd_request_start(&req, &settings);
	snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: a\r\n%s\r\n", line, fields);
	httpd_request_feed(&req, text, strlen(text));
	assert_int_not_equal(req.status, 0);
	httpd_plan_make(&site, &rules, &req, &out);
	return out;
}

static void
test_plans(void **state)
{
	static const struct {
		const char *line, *fields;
		uint16_t status;
		bool keep, linger, plain;
		uint64_t body;
	} cases[] = {
		{"GET /latin.txt", "", 200, true, false, true, 0},
		{"HEAD /latin.txt", "", 200, true, false, true, 0},
		{"GET /latin.txt", "Connection: close\r\n", 200, false, false, true, 0},
		{"GET /latin.txt", "Range: bytes=0-\r\n", 206, true, false, false, 0},
		{"HEAD /latin.txt", "Range: bytes=0-\r\n", 200, true, false, false, 0},
		{"GET /latin.txt", "Range: bytes=1-\r\n", 416, true, false, false, 0},
		{"GET /latin.txt", "Range: bytes=0-\r\nIf-Range: \"x\"\r\n", 200, true, false,
			false, 0},
		{"GET /latin.txt", "If-None-Match: *\r\n", 304, true, false, false, 0},
		{"GET /latin.txt", "If-Match: \"x\"\r\nRange: bytes=1-\r\n", 412, true, false,
			false, 0},
		{"GET /nothing", "If-None-Match: *\r\n", 404, true, false, false, 0},
		{"GET /nothing", "If-Match: \"x\"\r\n", 404, true, false, false, 0},
		{"GET /with", "", 301, true, false, false, 0},
		{"GET /with/", "", 200, true, false, true, 0},
		{"GET /../x", "", 400, true, false, false, 0},
		{"GET http:///page", "", 400, true, false, false, 0},
		{"GET /latin.txt", "Content-Length: 3\r\n", 200, true, true, false, HTTPD_BODY_MAX},
		{"GET /latin.txt", "Transfer-Encoding: chunked\r\n", 200, true, true, false,
			HTTPD_BODY_MAX},
		{"GET /latin.txt", "Content-Length: 1048577\r\n", 413, false, true, false, 0},
		{"GET /nothing", "Content-Length: 3\r\n", 404, false, true, false, 0},
		{"POST /latin.txt", "Content-Length: 3\r\n", 405, false, true, false, 0},
		{"POST /upper", "Content-Length: 3\r\n", 405, false, true, false, 0},
		{"POST /up", "Content-Length: 3\r\n", 200, true, true, false, 100},
		{"PUT /x/../up/y", "Transfer-Encoding: chunked\r\n", 200, true, true, false, 100},
		{"PUT /up/../x", "Content-Length: 3\r\n", 405, false, true, false, 0},
		{"POST /up/x", "", 200, true, false, false, 0},
		{"POST /up/x", "Content-Length: 101\r\n", 413, false, true, false, 0},
		{"PUT /up/x", "If-Match: *\r\nContent-Length: 3\r\n", 412, false, true, false, 0},
		{"PUT /up/x", "If-None-Match: *\r\nContent-Length: 3\r\n", 200, true, true, false,
			100},
		{"GET /up/x", "", 404, true, false, false, 0},
		{"DELETE /latin.txt", "", 405, true, false, false, 0},
		{"DELETE /up/x", "", 405, true, false, false, 0},
		{"TRACE /", "", 405, true, false, false, 0},
		{"OPTIONS *", "", 204, true, false, false, 0},
		{"OPTIONS /up", "", 204, true, false, false, 0},
		{"GET *", "", 400, true, false, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct httpd_plan p = plan(cases[i].line, cases[i].fields);

		if (p.status != cases[i].status || p.keep != cases[i].keep ||
			p.linger != cases[i].linger || p.plain != cases[i].plain ||
			p.body != cases[i].body)
			fail_msg("%s %s: %u, keep %d, linger %d, plain %d, body %llu",
				cases[i].line, cases[i].fields, p.status, p.keep, p.linger, p.plain,
				(unsigned long long)p.body);
	}
	assert_true(plan("DELETE /up/x", "").accepts);
	assert_false(plan("DELETE /x", "").accepts);
	assert_true(plan("PUT /up/x", "Content-Length: 3\r\nExpect: 100-continue\r\n").go_on);
	assert_false(plan("PUT /x", "Content-Length: 3\r\nExpect: 100-continue\r\n").go_on);
	assert_false(plan("PUT /up/x", "Expect: 100-continue\r\n").go_on); /* no body */
}

/* Every record is either a line or counted as dropped, in order. */
static void
test_log_thread(void **state)
{
	struct httpd_log_record record = {.status = 200};
	struct httpd_log_figures figures;
	struct httpd_log *log;
	char path[sizeof(root) + 8], err[200], line[512];
	uint64_t lines = 0, before = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/log", root);
	assert_true(httpd_log_start("/nosuch/log", 1, &log, err, sizeof(err)) < 0);
	assert_non_null(strstr(err, "/nosuch/log"));
	assert_int_equal(httpd_log_start(path, 1, &log, err, sizeof(err)), 0);
	for (int i = 1; i <= 50000; i++) {
		record.line_len = (uint16_t)sprintf(record.line, "%d", i);
		httpd_log_push(httpd_log_ring(log, 0), &record);
	}
	httpd_log_end(log, &figures);
	assert_int_equal(figures.error, 0);
	assert_int_equal(figures.lines + figures.dropped, 50000);
	assert_true(figures.lines >= 4096); /* a ring of them */
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		uint64_t n = strtoull(strchr(line, '"') + 1, NULL, 10);

		assert_true(n > before);
		before = n;
		lines++;
	}
	fclose(f);
	assert_int_equal(lines, figures.lines);
}

/* What cannot be written is counted as dropped; nobody is waited for. */
static void
test_log_lost(void **state)
{
	struct httpd_log_record record = {.status = 200};
	struct httpd_log_figures figures;
	struct httpd_log *log;
	char path[sizeof(root) + 8], err[200];

	(void)state;
	assert_int_equal(httpd_log_start("/dev/full", 1, &log, err, sizeof(err)), 0);
	for (int i = 0; i < 100; i++)
		httpd_log_push(httpd_log_ring(log, 0), &record);
	httpd_log_end(log, &figures);
	assert_int_equal(figures.error, ENOSPC);
	assert_int_equal(figures.lines, 0);
	assert_int_equal(figures.dropped, 100);
	snprintf(path, sizeof(path), "%s/fifo", root);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(httpd_log_start(path, 1, &log, err, sizeof(err)), -ENXIO);
	assert_non_null(strstr(err, "nobody reads"));
}

/* The last link of a listing, in percent form, may be asked for, however long and odd the path. */
static void
test_long_links(void **state)
{
	char path[1200], link[3 * 1024 + 1];
	struct httpd_site deep;
	size_t longest = 0;
	char err[200];
	int n;

	(void)state;
	make_other_root();
	n = sprintf(path, "%s", other_root);
	for (int i = 0; i < 3; i++) {
		path[n++] = '/';
		memset(path + n, 0xff, 255);
		path[n += 255] = '\0';
		assert_int_equal(mkdir(path, 0755), 0);
	}
	path[n++] = '/';
	memset(path + n, 0xff, 254);
	path[n + 254] = '\0';
	fclose(fopen(path, "w"));
	assert_int_equal(httpd_site_load(&deep, other_root, true, err, sizeof(err)), 0);
	for (size_t i = 0; i < deep.count; i++) {
		size_t len = httpd_path_encode(deep.files[i].path, link);

		longest = len > longest ? len : longest;
	}
	assert_in_range(longest, 3000, HTTPD_URL_MAX);
	httpd_site_free(&deep);
}

/* A date of the future is now, one before 1970 is none. */
static void
test_file_times(void **state)
{
	const struct timespec odd[][2] = {{{9999999999, 0}, {9999999999, 0}}, {{-5, 0}, {-5, 0}}};
	char path[64], name[16];
	struct httpd_site dated;
	char err[200];

	(void)state;
	make_other_root();
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", other_root, i);
		fclose(fopen(path, "w"));
		assert_int_equal(utimensat(AT_FDCWD, path, odd[i], 0), 0);
	}
	assert_int_equal(httpd_site_load(&dated, other_root, true, err, sizeof(err)), 0);
	assert_in_range(
		httpd_site_find(&dated, strcpy(name, "/0"), 2)->validators.modified, 1, time(NULL));
	assert_int_equal(httpd_site_find(&dated, strcpy(name, "/1"), 2)->validators.modified, 0);
	assert_null(strstr(httpd_site_find(&dated, name, 2)->head, "Last-Modified"));
	assert_non_null(
		strstr(httpd_site_find(&dated, strcpy(name, "/0"), 2)->head, "Last-Modified"));
	httpd_site_free(&dated);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_site),
		cmocka_unit_test(test_listing),
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_log_thread),
		cmocka_unit_test(test_log_lost),
		cmocka_unit_test_teardown(test_long_links, remove_other_root),
		cmocka_unit_test_teardown(test_file_times, remove_other_root),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
