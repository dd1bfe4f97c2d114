/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_httpd.c - what httpd takes from a peer: paths, which never leave the root, and request
 * headers, cut at every byte. And what a connection that ended badly did not deliver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "httpd/path.h"
#include "httpd/request.h"
#include "httpd/unacked.h"

static void
path_is(const char *url, const char *want)
{
	char out[HTTPD_URL_MAX + 16];
	ssize_t n = httpd_path_decode(url, strlen(url), out);

	if (want == NULL) {
		if (n >= 0)
			fail_msg("'%s' gave '%s'", url, out);
		return;
	}
	if (n < 0)
		fail_msg("'%s' was refused", url);
	assert_string_equal(out, want);
	assert_int_equal(n, strlen(want));
}

static void
test_paths(void **state)
{
	(void)state;
	path_is("/", "/");
	path_is("/a", "/a");
	path_is("/a/", "/a/");
	path_is("/a/b.html?x=/../..", "/a/b.html");
	path_is("/a#b", "/a");
	path_is("/%61%2fb", "/a/b");
	path_is("//a///b", "/a/b");
	path_is("/./a/./b/.", "/a/b/");
	path_is("/a/../b", "/b");
	path_is("/a/b/..", "/a/");
	path_is("/a/..", "/");
	path_is("/...", "/...");
	path_is("/.a", "/.a");
	path_is("/..a/b..", "/..a/b..");
	path_is("http://h/x", "/x");
	path_is("http://h", "/");
	path_is("//", "/");
	path_is("/a%20b", "/a b");
	path_is("/%25%32%65", "/%2e");
}

static void
test_bad_paths(void **state)
{
	(void)state;
	path_is("", NULL);
	path_is("a", NULL);
	path_is("*", NULL);
	path_is("?", NULL);
	path_is("/..", NULL);
	path_is("/../etc/passwd", NULL);
	path_is("/a/../../etc/passwd", NULL);
	path_is("/%2e%2e/etc/passwd", NULL);
	path_is("/%2E%2e%2Fetc", NULL);
	path_is("/a/..%2f..%2fetc", NULL);
	path_is("/%", NULL);
	path_is("/%4", NULL);
	path_is("/%zz", NULL);
	path_is("/a%00b", NULL);
	path_is("/./..", NULL);
	path_is("//..", NULL);
}

/* Whatever comes in: no dot segment, no empty segment inside, starts with '/', not longer. */
static void
test_any_path(void **state)
{
	static const char alphabet[] = "/.%2e2Fa?#5";
	uint64_t x = 0x9e3779b97f4a7c15ull;

	(void)state;
	for (int round = 0; round < 200000; round++) {
		char in[24], out[sizeof(in) + 2];
		size_t len;
		ssize_t n;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		len = 1 + (x >> 33) % (sizeof(in) - 1);
		in[0] = '/';
		for (size_t i = 1; i < len; i++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			in[i] = alphabet[(x >> 33) % (sizeof(alphabet) - 1)];
		}
		n = httpd_path_decode(in, len, out);
		if (n < 0)
			continue;
		assert_true((size_t)n <= len);
		assert_int_equal(out[0], '/');
		assert_int_equal(strlen(out), n);
		assert_null(strstr(out, "//"));
		assert_null(strstr(out, "/./"));
		assert_null(strstr(out, "/../"));
		assert_false(n >= 3 && strcmp(out + n - 3, "/..") == 0);
		assert_false(n >= 2 && strcmp(out + n - 2, "/.") == 0);
	}
}

static void
test_types(void **state)
{
	(void)state;
	assert_string_equal(httpd_path_type("/a.html"), "text/html");
	assert_string_equal(httpd_path_type("/a.HTML"), "text/html");
	assert_string_equal(httpd_path_type("/a.b/c"), "application/octet-stream");
	assert_string_equal(httpd_path_type("/x.unknown"), "application/octet-stream");
	assert_string_equal(httpd_path_type("/"), "application/octet-stream");
}

static uint16_t
feed(struct httpd_request *req, const char *text, size_t len, size_t cut, size_t *used)
{
	static llhttp_settings_t settings;

	httpd_request_settings(&settings);
	httpd_request_start(req, &settings);
	*used = 0;
	if (cut > 0)
		*used = httpd_request_feed(req, text, cut);
	if (cut < len && req->status == 0) {
		/* The second part goes to a copy, as a header in pieces does. */
		struct httpd_request copy;

		memset(&copy, 0xa5, sizeof(copy));
		httpd_request_copy(&copy, req);
		*used += httpd_request_feed(&copy, text + cut, len - cut);
		httpd_request_copy(req, &copy);
	}
	return req->status;
}

static void
request_is(const char *text, uint16_t status, size_t left)
{
	struct httpd_request req;
	size_t len = strlen(text), used;

	for (size_t cut = 0; cut <= len; cut++) {
		if (feed(&req, text, len, cut, &used) != status)
			fail_msg("'%s' cut at %zu: %u, not %u", text, cut, req.status, status);
		if (status == 200)
			assert_int_equal(used, len - left);
	}
}

static void
test_requests(void **state)
{
	struct httpd_request req;
	size_t used;

	(void)state;
	request_is("GET / HTTP/1.0\r\n\r\n", 200, 0);
	request_is("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, 0);
	request_is("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /x HT", 200, 9);
	request_is("HEAD /y HTTP/1.1\r\nhOsT: a\r\nHostile: b\r\n\r\n", 200, 0);
	request_is("\r\n\r\nGET / HTTP/1.0\r\n\r\n", 200, 0);
	request_is("GET / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", 200, 3);
	request_is("GET / HTTP/1.1\r\n\r\n", 400, 0);
	request_is("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, 0);
	request_is("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400, 0);
	request_is("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n", 405, 0);
	request_is("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", 405, 0);
	request_is("GET / HTTP/1.0\r\nContent-Length: 1048577\r\n\r\n", 413, 0);
	request_is("GET / HTTP/1.0\r\nContent-Length: -1\r\n\r\n", 400, 0);
	request_is("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0);
	request_is("GET / HTTP/3.7\r\n\r\n", 505, 0);
	request_is("\x16\x03\x01\x02", 400, 0);
	request_is("GET / HTTP/1.0\r\n", 0, 0);
	feed(&req, "GET /a%20?b HTTP/1.1\r\nHost: h\r\n\r\n", 33, 0, &used);
	assert_int_equal(req.url_len, 7);
	assert_memory_equal(req.url, "/a%20?b", 7);
	assert_true(req.keep);
	feed(&req, "GET / HTTP/1.0\r\n\r\n", 18, 0, &used);
	assert_false(req.keep);
	feed(&req, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 42, 0, &used);
	assert_true(req.keep);
	feed(&req, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 46, 0, &used);
	assert_false(req.keep);
}

/* The bounds themselves pass, one byte more does not. */
static void
test_bounds(void **state)
{
	static char text[3 * HTTPD_HEADER_MAX];
	struct httpd_request req;
	size_t used, len;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		memset(text, 'u', sizeof(text));
		memcpy(text, "GET /", 5);
		strcpy(text + 4 + HTTPD_URL_MAX + more, " HTTP/1.0\r\n\r\n");
		for (size_t cut = 0; cut < 3000; cut += 999)
			assert_int_equal(
				feed(&req, text, strlen(text), cut, &used), more ? 414 : 200);
	}
	for (size_t more = 0; more < 2; more++) {
		memset(text, 'v', sizeof(text));
		memcpy(text, "GET / HTTP/1.0\r\nX: ", 19);
		len = HTTPD_HEADER_MAX + more;
		memcpy(text + len - 4, "\r\n\r\n", 4);
		for (size_t cut = 0; cut < 8000; cut += 999)
			assert_int_equal(feed(&req, text, len, cut, &used), more ? 431 : 200);
	}
}

static void
unacked_is(uint64_t bytes, uint64_t head, uint64_t body, uint64_t responses, uint64_t missing)
{
	struct httpd_unacked lost = httpd_unacked(bytes, head, body);

	assert_int_equal(lost.responses, responses);
	assert_int_equal(lost.body, missing);
}

static void
test_unacked(void **state)
{
	(void)state;
	unacked_is(0, 200, 100, 0, 0);
	unacked_is(1, 200, 100, 1, 1);
	unacked_is(100, 200, 100, 1, 100);
	unacked_is(101, 200, 100, 1, 100); /* one byte of the header is missing too */
	unacked_is(300, 200, 100, 1, 100);
	unacked_is(301, 200, 100, 2, 101); /* pipelined: one byte of the response before it */
	unacked_is(900, 200, 100, 3, 300);
	unacked_is(150, 200, 0, 1, 0);
	unacked_is(1u << 31, 200, 1u << 30, 2, (1ull << 31) - 200);
	unacked_is(5, 0, 0, 1, 0); /* always ends */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_bad_paths),
		cmocka_unit_test(test_any_path),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_unacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
