/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_response.c - how ab follows a response: every way a body ends, cut at every byte, with
 * and without the header cache, which must change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ab/response.h"

#define OK   "HTTP/1.1 200 OK\r\nServer: s\r\n"
#define KEEP OK "Connection: keep-alive\r\n"

static struct ab_resp
feed(struct ab_resp_core *core, const char *text, size_t len, size_t cut)
{
	llhttp_t parser;
	struct ab_resp resp;

	memset(&parser, 0xa5, sizeof(parser));
	ab_resp_start(&resp);
	if (cut > 0)
		ab_resp_feed(core, &resp, &parser, text, cut);
	if (cut < len)
		ab_resp_feed(core, &resp, &parser, text + cut, len - cut);
	return resp;
}

static void
same(const struct ab_resp *a, const struct ab_resp *b)
{
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->keep, b->keep);
	assert_int_equal(a->extra, b->extra);
	assert_int_equal(a->left, b->left);
	assert_int_equal(a->body, b->body);
}

/* Cut anywhere, twice over with the cache warm, the result is the same. */
static struct ab_resp
all_ways(bool head, bool keep, const char *text)
{
	struct ab_resp_core core;
	struct ab_resp want, got;
	size_t len = strlen(text);

	ab_resp_core_init(&core, head, keep);
	want = feed(&core, text, len, 0);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t cut = 0; cut <= len; cut++) {
			if (pass == 0)
				ab_resp_core_init(&core, head, keep);
			got = feed(&core, text, len, cut);
			same(&got, &want);
		}
	}
	return want;
}

static void
expect(const char *text, enum ab_resp_mode mode, unsigned status, uint64_t body, bool keep)
{
	struct ab_resp resp = all_ways(false, true, text);

	assert_int_equal(resp.mode, mode);
	assert_int_equal(resp.status, status);
	assert_int_equal(resp.body, body);
	assert_int_equal(resp.keep, keep);
}

static void
test_lengths(void **state)
{
	struct ab_resp resp;

	(void)state;
	expect(KEEP "Content-Length: 5\r\n\r\nabcde", AB_RESP_DONE, 200, 5, true);
	expect(KEEP "Content-Length: 5\r\n\r\nabcd", AB_RESP_LENGTH, 200, 4, true);
	expect(KEEP "Content-Length: 0\r\n\r\n", AB_RESP_DONE, 200, 0, true);
	expect(OK "Connection: close\r\nContent-Length: 1\r\n\r\na", AB_RESP_DONE, 200, 1, false);
	expect("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", AB_RESP_DONE, 200, 1, false);
	expect("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na",
		AB_RESP_DONE, 200, 1, true);
	expect("HTTP/1.0 200 OK\nContent-Length: 2\n\nab", AB_RESP_DONE, 200, 2, false);
	expect(KEEP "\r\nabc", AB_RESP_TO_END, 200, 3, false);
	expect("HTTP/1.1 204 No Content\r\nConnection: Keep-Alive\r\n\r\n", AB_RESP_DONE, 204, 0,
		true);
	expect("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nConnection: Keep-Alive\r\n\r\n",
		AB_RESP_DONE, 304, 0, true);
	expect("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", AB_RESP_DONE, 404, 2,
		false);
	/* The request is HTTP/1.0: HTTP/1.1 in the answer keeps nothing by itself. */
	expect(OK "Content-Length: 5\r\n\r\nabcde", AB_RESP_DONE, 200, 5, false);
	expect("HTTP/1.1 100 Continue\r\n\r\n" KEEP "Content-Length: 2\r\n\r\nab", AB_RESP_DONE,
		200, 2, true);
	resp = all_ways(true, true, KEEP "Content-Length: 5000\r\n\r\n");
	assert_int_equal(resp.mode, AB_RESP_DONE);
	assert_true(resp.keep);
	resp = all_ways(true, true, OK "Content-Length: 5000\r\n\r\n");
	assert_false(resp.keep);
	resp = all_ways(false, false, KEEP "Content-Length: 1\r\n\r\na");
	assert_false(resp.keep);
}

static void
test_chunked(void **state)
{
	struct ab_resp resp;

	(void)state;
	expect(KEEP "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", AB_RESP_DONE, 200,
		13, true);
	expect(KEEP "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", AB_RESP_CHUNKED, 200, 8,
		true);
	/* Garbage among the chunks: the header was there, so all of it is body. */
	resp = all_ways(false, true, OK "Transfer-Encoding: chunked\r\n\r\nzz\r\nmore");
	assert_int_equal(resp.mode, AB_RESP_GARBAGE);
	assert_int_equal(resp.status, 200);
	assert_int_equal(resp.body, 8);
	assert_true(ab_resp_headed(&resp));
	assert_false(ab_resp_complete_at_end(&resp));
}

static void
test_extra(void **state)
{
	struct ab_resp resp;

	(void)state;
	resp = all_ways(false, true, OK "Content-Length: 2\r\n\r\nabcde");
	assert_int_equal(resp.mode, AB_RESP_DONE);
	assert_true(resp.extra);
	assert_int_equal(resp.body, 5);
	resp = all_ways(false, true, OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nX");
	assert_true(resp.extra);
}

static void
test_garbage(void **state)
{
	struct ab_resp_core core;
	struct ab_resp resp;
	static char big[AB_HEADER_MAX + 100];

	(void)state;
	resp = all_ways(false, true, "SSH-2.0-OpenSSH_9.2\r\n");
	assert_int_equal(resp.mode, AB_RESP_GARBAGE);
	assert_int_equal(resp.body, 0);
	assert_false(ab_resp_headed(&resp));
	/* As in ab the body begins after the first blank line, and without a status it is 500. */
	resp = all_ways(false, true, "SSH-2.0\r\n\r\nfive!");
	assert_int_equal(resp.body, 5);
	assert_int_equal(resp.status, 500);
	assert_true(ab_resp_headed(&resp));
	resp = all_ways(false, true, "\x01\n\nfour");
	assert_int_equal(resp.body, 4);
	resp = all_ways(false, true, OK "Content-Length: x\r\n\r\nabc");
	assert_int_equal(resp.mode, AB_RESP_GARBAGE);
	assert_int_equal(resp.body, 3);
	assert_int_equal(resp.status, 200);
	memset(big, 'a', sizeof(big));
	memcpy(big, OK "X: ", strlen(OK "X: "));
	ab_resp_core_init(&core, false, true);
	resp = feed(&core, big, sizeof(big), 0);
	assert_int_equal(resp.mode, AB_RESP_GARBAGE);
	resp = feed(&core, big, sizeof(big), sizeof(big) / 2);
	assert_int_equal(resp.mode, AB_RESP_GARBAGE);
}

/* A header in pieces is put together for those who print it, for one connection at a time. */
static void
test_joined(void **state)
{
	static const char text[] = KEEP "Content-Length: 1\r\n\r\na";
	size_t header = sizeof(text) - 2;
	struct ab_resp_core core;
	struct ab_resp one, two;
	llhttp_t parsers[2];

	(void)state;
	for (size_t cut = 1; cut < header; cut++) {
		ab_resp_core_init(&core, false, true);
		ab_resp_start(&one);
		ab_resp_start(&two);
		ab_resp_feed(&core, &one, &parsers[0], text, cut);
		assert_null(core.header);
		ab_resp_feed(&core, &two, &parsers[1], text, cut);
		ab_resp_feed(&core, &two, &parsers[1], text + cut, header + 1 - cut);
		assert_null(core.header);
		ab_resp_feed(&core, &one, &parsers[0], text + cut, header + 1 - cut);
		assert_int_equal(core.header_len, header);
		assert_memory_equal(core.header, text, header);
		same(&one, &two);
	}
}

/* The cache holds the last header only, and a longer one that starts alike is not mistaken. */
static void
test_cache(void **state)
{
	static const char one[] = OK "Content-Length: 1\r\n\r\na";
	static const char other[] = OK "Content-Length: 10\r\n\r\n0123456789";
	struct ab_resp_core core;
	struct ab_resp resp;

	(void)state;
	ab_resp_core_init(&core, false, true);
	for (int i = 0; i < 3; i++) {
		resp = feed(&core, one, sizeof(one) - 1, 0);
		assert_int_equal(resp.body, 1);
		assert_true(resp.parsing);
		resp = feed(&core, one, sizeof(one) - 1, 0);
		assert_false(resp.parsing);
		resp = feed(&core, other, sizeof(other) - 1, 0);
		assert_int_equal(resp.body, 10);
		assert_true(resp.parsing);
	}
}

/* Interim responses without end are no header of 64 KiB; up to that they are skipped, and the
 * header behind them is still joined from its pieces. */
static void
test_interim_flood(void **state)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	static const char answer[] = OK "Content-Length: 1\r\n\r\na";
	size_t len = sizeof(interim) - 1, half = 20;

	(void)state;
	for (unsigned n = AB_HEADER_MAX / len - 10; n <= AB_HEADER_MAX / len + 1; n += 11) {
		struct ab_resp_core core;
		struct ab_resp resp;
		llhttp_t parser;

		ab_resp_core_init(&core, false, false);
		ab_resp_start(&resp);
		for (unsigned i = 0; i < n; i++)
			ab_resp_feed(&core, &resp, &parser, interim, len);
		ab_resp_feed(&core, &resp, &parser, answer, half);
		ab_resp_feed(&core, &resp, &parser, answer + half, sizeof(answer) - 1 - half);
		if (n > AB_HEADER_MAX / len) {
			assert_int_equal(resp.mode, AB_RESP_GARBAGE);
			continue;
		}
		assert_int_equal(resp.mode, AB_RESP_DONE);
		assert_int_equal(core.header_len, sizeof(answer) - 2);
		assert_memory_equal(core.header, answer, core.header_len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_chunked),
		cmocka_unit_test(test_extra),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_interim_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
