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
#include "httpd/type.h"
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
	path_is("http://h?x=/../y", "/");
	path_is("HTTP://h:80/x?y", "/x");
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
	path_is("http:///page", NULL);
	path_is("http://", NULL);
	path_is("http://?x", NULL);
	path_is("http://:80/", NULL);
	path_is("http://user@/", NULL);
	path_is("http://user@h/page", NULL);
	path_is("http://h:x/page", NULL);
	path_is("http://h/../x", NULL);
	path_is("https://h/", NULL);
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

/* What is encoded comes back, and holds nothing but what a header or a link may hold. */
static void
test_encoded_path(void **state)
{
	char in[258] = "/", out[3 * sizeof(in)], back[3 * sizeof(in)];
	size_t n = 1;

	(void)state;
	for (int c = 1; c < 256; c++) {
		if (c != '/' && c != '.')
			in[n++] = (char)c;
	}
	in[n] = '\0';
	n = httpd_path_encode(in, out);
	assert_int_equal(strlen(out), n);
	assert_int_equal(
		strspn(out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "/-._~%"),
		n);
	assert_int_equal(httpd_path_decode(out, n, back), strlen(in));
	assert_string_equal(back, in);
}

static void
test_types(void **state)
{
	static const char *const known[][2] = {{"7z", "application/x-7z-compressed"},
		{"c", "text/plain"}, {"css", "text/css"}, {"gif", "image/gif"},
		{"gz", "application/gzip"}, {"html", "text/html"}, {"jpg", "image/jpeg"},
		{"js", "text/javascript"}, {"json", "application/json"}, {"mp4", "video/mp4"},
		{"png", "image/png"}, {"svg", "image/svg+xml"}, {"txt", "text/plain"},
		{"wasm", "application/wasm"}, {"webp", "image/webp"}, {"woff", "font/woff"},
		{"woff2", "font/woff2"}, {"xml", "application/xml"}, {"zst", "application/zstd"}};
	char path[32], field[HTTPD_TYPE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		snprintf(path, sizeof(path), "/a.%s", known[i][0]);
		assert_string_equal(httpd_type(path), known[i][1]);
	}
	assert_string_equal(httpd_type("/a.HTML"), "text/html");
	assert_string_equal(httpd_type("/a.b/c"), "application/octet-stream");
	assert_string_equal(httpd_type("/x.unknown"), "application/octet-stream");
	assert_string_equal(httpd_type("/x."), "application/octet-stream");
	assert_string_equal(httpd_type("/"), "application/octet-stream");
	assert_string_equal(
		httpd_type_field("/a.txt", "\xc3\xa9", 2, field), "text/plain; charset=utf-8");
	assert_string_equal(httpd_type_field("/a.txt", "\xe9", 1, field), "text/plain");
	assert_string_equal(httpd_type_field("/a.png", "a", 1, field), "image/png");
	assert_string_equal(httpd_type_field("/a.docx", "", 0, field),
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document");
}

static void
test_utf8(void **state)
{
	static const char *const good[] = {"", "abc", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa9z"};
	static const char *const bad[] = {"\x80", "\xc1\x80", "\xc2", "\xc2z", "\xe0\x9f\x80",
		"\xed\xa0\x80", "\xe1\x80", "\xf0\x8f\x80\x80", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\xff", "\xe1\x80z"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(httpd_is_utf8(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(httpd_is_utf8(bad[i], strlen(bad[i])));
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
	request_is("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 200, 0);
	request_is("POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n", 200, 0);
	request_is("GET / HTTP/1.0\r\nContent-Length: -1\r\n\r\n", 400, 0);
	request_is("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501, 0);
	request_is("GETS / HTTP/1.1\r\nHost: a\r\n\r\n", 501, 0);
	request_is("get / HTTP/1.1\r\nHost: a\r\n\r\n", 501, 0);
	request_is("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0);
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
	/* "close" is stronger, whatever the version (RFC 9112 9.3). */
	feed(&req, "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", 49, 0, &used);
	assert_int_equal(req.status, 200);
	assert_false(req.keep);
}

static void
test_authorities(void **state)
{
	static const char *const good[] = {
		"", "h", "h:", "h:80", "a.b-c_d", "[::1]", "[::1]:80", "h%2e", "[v1.a:b]", ":80"};
	static const char *const bad[] = {"a b", "a/b", "u@h", "h:a", "h:80:", "[", "[]", "[::1",
		"[::1]x", "a\\b", "a?", "a#", "\xc3\xa4", "[::1]:80a", "a,b:c", "]"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (!httpd_authority_is_right(good[i], strlen(good[i])))
			fail_msg("'%s' was refused", good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (httpd_authority_is_right(bad[i], strlen(bad[i])))
			fail_msg("'%s' was taken", bad[i]);
	}
	assert_false(httpd_authority_is_right("a\0b", 3));
}

/* What two readers could take apart in two ways. */
static void
test_strict(void **state)
{
	(void)state;
#define HOST "GET / HTTP/1.1\r\nHost: a\r\n"
	request_is(HOST "X: a\r\n b\r\n\r\n", 400, 0);
	request_is(HOST "X: a\r\n\tb\r\n\r\n", 400, 0);
	request_is(HOST " X: a\r\n\r\n", 400, 0);
	request_is(HOST "X : a\r\n\r\n", 400, 0);
	request_is(HOST "X\t: a\r\n\r\n", 400, 0);
	request_is(HOST ": a\r\n\r\n", 400, 0);
	request_is(HOST "X\r\n\r\n", 400, 0);
	request_is(HOST "X: a\n\r\n", 400, 0);
	request_is(HOST "X: a\rY: b\r\n\r\n", 400, 0);
	request_is("GET / HTTP/1.0\n\n", 400, 0);
	request_is("GET /\r\n\r\n", 400, 0); /* HTTP/0.9 */
	request_is("GET  / HTTP/1.0\r\n\r\n", 400, 0);
	request_is("GET /  HTTP/1.0\r\n\r\n", 400, 0);
	request_is("GET /a\tb HTTP/1.0\r\n\r\n", 400, 0);
	request_is("GET /a\fb HTTP/1.0\r\n\r\n", 400, 0);
	request_is("OPTIONS / RTSP/1.0\r\n\r\n", 400, 0);
	request_is("SOURCE / ICE/1.0\r\n\r\n", 400, 0);
	request_is("GET / HTTP/1.0\r\nHost: a b\r\n\r\n", 400, 0);
	request_is("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400, 0);
	request_is("GET / HTTP/1.1\r\nHost: \r\n\r\n", 200, 0);
	request_is("GET / HTTP/1.1\r\nHost: a:80\r\nRange: bytes=0-\r\n\r\n", 200, 0);
	request_is(HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", 400, 0);
	request_is(HOST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400, 0);
	request_is(HOST "Content-Length: 3, 3\r\n\r\n", 400, 0);
	request_is(HOST "Content-Length: +3\r\n\r\n", 400, 0);
	request_is(HOST "Content-Length: 0x3\r\n\r\n", 400, 0);
	request_is(HOST "Content-Length: \r\n\r\n", 400, 0);
	request_is(HOST "Content-Length: 99999999999999999999\r\n\r\n", 400, 0);
	request_is(HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400, 0);
	request_is(HOST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", 400, 0);
	request_is(HOST "Transfer-Encoding:\r\n\r\n", 400, 0);
	request_is(HOST "Transfer-Encoding: chunked, identity\r\n\r\n", 400, 0);
	request_is(HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, 0);
	request_is(HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400, 0);
	request_is("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, 0);
	request_is(HOST "Expect: 100-continue\r\n\r\n", 200, 0);
	request_is(HOST "Expect: 100-Continue \r\n\r\n", 200, 0);
	request_is(HOST "Expect: miracles\r\n\r\n", 417, 0);
#undef HOST
}

static void
value_is(const char *text, enum httpd_field field, const char *want)
{
	struct httpd_request req;
	size_t len = strlen(text), used;

	for (size_t cut = 0; cut <= len; cut++) {
		const char *got;

		assert_int_equal(feed(&req, text, len, cut, &used), 200);
		got = httpd_request_value(&req, field);
		if ((got == NULL) != (want == NULL) || (got != NULL && strcmp(got, want) != 0))
			fail_msg("'%s' cut at %zu: '%s'", text, cut, got != NULL ? got : "none");
	}
}

static void
test_values(void **state)
{
	(void)state;
	value_is("GET / HTTP/1.0\r\nRange: bytes=0-1 \r\n\r\n", HTTPD_RANGE, "bytes=0-1");
	value_is("GET / HTTP/1.0\r\nrAnGe:bytes=0-1\r\nX: y\r\n\r\n", HTTPD_RANGE, "bytes=0-1");
	value_is("GET / HTTP/1.0\r\nRange:\r\n\r\n", HTTPD_RANGE, "");
	value_is("GET / HTTP/1.0\r\nX-Range: a\r\nRang: b\r\nRanges: c\r\n\r\n", HTTPD_RANGE, NULL);
	value_is("GET / HTTP/1.0\r\nIf-Match: \"a\"\r\nRange: x\r\nIf-Match: \"b\"\r\n"
		 "If-Match: \"c\"\r\n\r\n",
		HTTPD_IF_MATCH, "\"a\", \"b\", \"c\"");
	value_is("GET / HTTP/1.0\r\nIf-Unmodified-Since: now\r\n\r\n", HTTPD_IF_UNMODIFIED, "now");
	value_is("GET / HTTP/1.0\r\nIf-Unmodified-Sincerely: now\r\n\r\n", HTTPD_IF_UNMODIFIED,
		NULL);
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
		for (size_t cut = 0; cut < HTTPD_URL_MAX; cut += 999)
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
	for (size_t more = 0; more < 2; more++) {
		memset(text, 'r', sizeof(text));
		memcpy(text, "GET / HTTP/1.0\r\nRange: ", 23);
		len = 23 + HTTPD_VALUES_MAX - 2 + more;
		memcpy(text + len, "\r\n\r\n", 4);
		for (size_t cut = 0; cut < 1000; cut += 99)
			assert_int_equal(feed(&req, text, len + 4, cut, &used), more ? 431 : 200);
	}
	/* A list that grows out of its room by being copied. */
	len = (size_t)sprintf(text, "GET / HTTP/1.0\r\n");
	for (int i = 0; i < 60; i++)
		len += (size_t)sprintf(text + len, "If-Match: \"%d\"\r\n", i);
	len += (size_t)sprintf(text + len, "\r\n");
	for (size_t cut = 0; cut < len; cut += 7)
		assert_int_equal(feed(&req, text, len, cut, &used), 431);
}

static void
unacked_is(uint64_t bytes, struct httpd_sent last, struct httpd_sent before, uint64_t answers,
	uint64_t body, uint64_t last_body)
{
	struct httpd_unacked lost = httpd_unacked(bytes, &last, &before);

	assert_int_equal(lost.answers, answers);
	assert_int_equal(lost.body, body);
	assert_int_equal(lost.last_body, last_body);
}

static void
test_unacked(void **state)
{
	const struct httpd_sent none = {0, 0, 0}, page = {1, 200, 100}, text = {1, 200, 0};

	(void)state;
	unacked_is(0, page, none, 0, 0, 0);
	unacked_is(1, page, none, 1, 1, 1);
	unacked_is(100, page, none, 1, 100, 100);
	unacked_is(101, page, none, 1, 100, 100); /* one byte of the header is missing too */
	unacked_is(300, page, none, 1, 100, 100);
	unacked_is(150, text, none, 1, 0, 0);
	unacked_is(1ull << 31, (struct httpd_sent){1, 200, 1ull << 31}, none, 1, 1ull << 31,
		1ull << 31);
	/* Pipelined, behind equal ones. */
	unacked_is(300, page, (struct httpd_sent){9, 1800, 900}, 1, 100, 100);
	unacked_is(301, page, (struct httpd_sent){9, 1800, 900}, 2, 100, 100);
	unacked_is(900, page, (struct httpd_sent){9, 1800, 900}, 3, 300, 100);
	/* A page behind texts, a text behind pages: what was not queued cannot be lost. */
	unacked_is(100000, page, (struct httpd_sent){600, 120000, 0}, 500, 100, 100);
	unacked_is(3200, text, (struct httpd_sent){10, 2000, 1000}, 11, 1000, 0);
	/* More than is known of (100 Continue): no more than that. */
	unacked_is(99999, page, (struct httpd_sent){9, 1800, 900}, 10, 1000, 100);
	unacked_is(99999, page, none, 1, 100, 100);
	unacked_is(5, none, none, 1, 0, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_bad_paths),
		cmocka_unit_test(test_any_path),
		cmocka_unit_test(test_encoded_path),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_authorities),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_unacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
