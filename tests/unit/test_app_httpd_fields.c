/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_httpd_fields.c - the fields that httpd acts on, ranges, entity tags, dates and their
 * order; bodies, cut at every byte; lines of the access log.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "httpd/access.h"
#include "httpd/body.h"
#include "httpd/condition.h"
#include "httpd/range.h"

/* ---- ranges ---- */

/* want: "first+len ..." for 206, "200" or "416". */
static void
range_is(const char *value, uint64_t size, const char *want)
{
	struct httpd_ranges ranges;
	char got[512] = "";
	size_t n = 0;

	switch (httpd_range_parse(value, size, &ranges)) {
	case HTTPD_RANGE_WHOLE:
		strcpy(got, "200");
		break;
	case HTTPD_RANGE_NONE:
		strcpy(got, "416");
		break;
	default:
		for (unsigned i = 0; i < ranges.n; i++)
			n += (size_t)sprintf(got + n, "%s%llu+%llu", i ? " " : "",
				(unsigned long long)ranges.r[i].first,
				(unsigned long long)ranges.r[i].len);
		break;
	}
	if (strcmp(got, want) != 0)
		fail_msg("'%s' of %llu: %s, not %s", value, (unsigned long long)size, got, want);
}

static void
test_ranges(void **state)
{
	(void)state;
	range_is("bytes=0-0", 10, "0+1");
	range_is("bytes=0-9", 10, "0+10");
	range_is("bytes=0-99", 10, "0+10");
	range_is("bytes=9-", 10, "9+1");
	range_is("bytes=-1", 10, "9+1");
	range_is("bytes=-99", 10, "0+10");
	range_is("BYTES=2-3", 10, "2+2");
	range_is("bytes=10-", 10, "416");
	range_is("bytes=10-20", 10, "416");
	range_is("bytes=-0", 10, "416");
	range_is("bytes=-0, 10-, 11-12", 10, "416");
	range_is("bytes=0-1, 10-", 10, "0+2");
	range_is("bytes=0-1,4-5,-1", 10, "0+2 4+2 9+1");
	range_is("bytes=8-9 , 0-1", 10, "8+2 0+2");
	range_is("bytes=,,0-1,", 10, "0+2");
	range_is("bytes=0-4,5-9", 10, "0+5 5+5"); /* side by side is no overlap */
	range_is("bytes=0-5,5-9", 10, "200");
	range_is("bytes=0-,-1", 10, "200");
	range_is("bytes=18446744073709551615-", 10, "416");
	range_is("bytes=0-99999999999999999999999", 10, "0+10");
	range_is("bytes=99999999999999999999999-", 10, "416");
	range_is("bytes=-99999999999999999999999", 10, "0+10");
	range_is("bytes=5-4", 10, "200");
	range_is("bytes=", 10, "200");
	range_is("bytes=,", 10, "200");
	range_is("bytes", 10, "200");
	range_is("", 10, "200");
	range_is("bytes=a-b", 10, "200");
	range_is("bytes=1", 10, "200");
	range_is("bytes=-", 10, "200");
	range_is("bytes=1-2x", 10, "200");
	range_is("bytes=1-2 3-4", 10, "200");
	range_is("bytes = 1-2", 10, "200");
	range_is("lines=1-2", 10, "200");
	range_is("bytes=0-", 0, "200");
	range_is("bytes=-5", 0, "200");
}

static void
test_many_ranges(void **state)
{
	char value[256] = "bytes=";
	struct httpd_ranges ranges;

	(void)state;
	for (int i = 0; i < HTTPD_RANGES_MAX; i++)
		sprintf(value + strlen(value), "%s%d-%d", i ? "," : "", 2 * i, 2 * i);
	assert_int_equal(httpd_range_parse(value, 100, &ranges), HTTPD_RANGE_PART);
	assert_int_equal(ranges.n, HTTPD_RANGES_MAX);
	strcat(value, ",99-99");
	assert_int_equal(httpd_range_parse(value, 100, &ranges), HTTPD_RANGE_WHOLE);
}

/* ---- conditions ---- */

#define DATE     784111777 /* RFC 9110 5.6.7 */
#define DATE_IMF "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER    "Sun, 06 Nov 1994 08:49:38 GMT"
#define EARLIER  "Sun, 06 Nov 1994 08:49:36 GMT"

static void
test_dates(void **state)
{
	static const char *const good[] = {
		DATE_IMF, "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"};
	static const char *const bad[] = {"", "now", "784111777", "Sun, 06 Nov 1994 08:49:37",
		"Sun, 06 Nov 1994 08:49:37 GMT+1", "Sun, 06 Foo 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nov 1994"};
	time_t got;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(httpd_date_parse(good[i], &got));
		assert_int_equal(got, DATE);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (httpd_date_parse(bad[i], &got))
			fail_msg("'%s' passed for a date", bad[i]);
	}
}

static void
test_etags(void **state)
{
	(void)state;
	assert_true(httpd_etag_listed("\"a\"", "\"a\"", false));
	assert_true(httpd_etag_listed("*", "\"a\"", false));
	assert_true(httpd_etag_listed("*", NULL, true));
	assert_false(httpd_etag_listed("\"a\"", NULL, true));
	assert_false(httpd_etag_listed("W/\"a\"", "\"a\"", false));
	assert_true(httpd_etag_listed("W/\"a\"", "\"a\"", true));
	assert_true(httpd_etag_listed("\"x\", \"a,b\" ,\"a\"", "\"a\"", false));
	assert_true(httpd_etag_listed(", ,\"a\",", "\"a\"", false));
	assert_false(httpd_etag_listed("\"a,b\"", "\"a\"", true));
	assert_false(httpd_etag_listed("a", "\"a\"", true));
	assert_false(httpd_etag_listed("\"a", "\"a\"", true));
	assert_false(httpd_etag_listed("\"ab\"", "\"a\"", true));
	assert_false(httpd_etag_listed("\"b\" \"a\"", "\"a\"", true));
	assert_false(httpd_etag_listed("w/\"a\"", "\"a\"", true));
	assert_false(httpd_etag_listed("", "\"a\"", true));
	assert_false(httpd_etag_listed("W/", "\"a\"", true));
	assert_false(httpd_etag_listed("*, \"b\"", "\"a\"", true));
}

/* The table of RFC 9110 13.2.2, in its order. */
static void
test_precedence(void **state)
{
	const struct httpd_validators v = {.etag = "\"a\"", .modified = DATE, .date_strong = true};
	static const struct {
		struct httpd_conditions c; /* if_match, if_unmodified, if_none_match, if_modified */
		int read, write;
	} cases[] = {
		{{0}, 200, 200},
		{{.if_match = "\"a\""}, 200, 200},
		{{.if_match = "*"}, 200, 200},
		{{.if_match = "\"b\""}, 412, 412},
		{{.if_match = "W/\"a\""}, 412, 412},
		{{.if_match = "\"a\"", .if_unmodified = EARLIER}, 200, 200},
		{{.if_match = "\"b\"", .if_none_match = "\"a\""}, 412, 412},
		{{.if_match = "\"a\"", .if_none_match = "\"a\""}, 304, 412},
		{{.if_unmodified = EARLIER}, 412, 412},
		{{.if_unmodified = DATE_IMF}, 200, 200},
		{{.if_unmodified = LATER}, 200, 200},
		{{.if_unmodified = "soon"}, 200, 200},
		{{.if_unmodified = EARLIER, .if_none_match = "\"a\""}, 412, 412},
		{{.if_none_match = "\"a\""}, 304, 412},
		{{.if_none_match = "W/\"a\""}, 304, 412},
		{{.if_none_match = "*"}, 304, 412},
		{{.if_none_match = "\"b\""}, 200, 200},
		{{.if_none_match = "\"b\"", .if_modified = LATER}, 200, 200},
		{{.if_modified = EARLIER}, 200, 200},
		{{.if_modified = DATE_IMF}, 304, 200},
		{{.if_modified = LATER}, 304, 200},
		{{.if_modified = "soon"}, 200, 200},
	};
	static const int status[] = {
		[HTTPD_GO_ON] = 200, [HTTPD_NOT_MODIFIED] = 304, [HTTPD_FAILED] = 412};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int read = status[httpd_conditions_check(&cases[i].c, &v, true)];
		int write = status[httpd_conditions_check(&cases[i].c, &v, false)];

		if (read != cases[i].read || write != cases[i].write)
			fail_msg("case %zu: %d and %d", i, read, write);
	}
	/* Nothing is there yet. */
	assert_int_equal(
		httpd_conditions_check(&(struct httpd_conditions){.if_match = "*"}, NULL, false),
		HTTPD_FAILED);
	assert_int_equal(httpd_conditions_check(
				 &(struct httpd_conditions){.if_none_match = "*"}, NULL, false),
		HTTPD_GO_ON);
}

static bool
if_range(const char *value, bool date_strong)
{
	const struct httpd_validators v = {
		.etag = "\"a\"", .modified = DATE, .date_strong = date_strong};

	return httpd_conditions_range(&(struct httpd_conditions){.if_range = value}, &v);
}

static void
test_if_range(void **state)
{
	const struct httpd_validators none = {NULL, 0, false};

	(void)state;
	assert_true(if_range(NULL, true));
	assert_true(if_range("\"a\"", true));
	assert_false(if_range("W/\"a\"", true));
	assert_false(if_range("\"b\"", true));
	assert_false(if_range("\"a\", \"b\"", true));
	assert_true(if_range(DATE_IMF, true));
	assert_false(if_range(DATE_IMF, false));
	assert_false(if_range(LATER, true)); /* it must be the same, not as new */
	assert_false(if_range(EARLIER, true));
	assert_false(if_range("", true));
	assert_false(httpd_conditions_range(
		&(struct httpd_conditions){.if_range = "Thu, 01 Jan 1970 00:00:00 GMT"}, &none));
}

/* ---- bodies ---- */

#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

struct body_case {
	const char *head, *body;
	uint16_t status;
	uint64_t bytes;
	size_t left; /* of text, behind the body */
};

static void
hex(EVP_MD_CTX *digest, char *out)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned len;

	EVP_DigestFinal_ex(digest, sum, &len);
	for (unsigned i = 0; i < len; i++)
		sprintf(out + 2 * i, "%02x", sum[i]);
}

/* Fed in pieces of `step` bytes. */
static void
run_body(const struct body_case *c, size_t step, EVP_MD_CTX *digest)
{
	llhttp_settings_t settings, body_settings;
	struct httpd_request req;
	struct httpd_body body;
	size_t len = strlen(c->body), used = 0;

	httpd_request_settings(&settings);
	httpd_body_settings(&body_settings);
	httpd_request_start(&req, &settings);
	assert_int_equal(httpd_request_feed(&req, c->head, strlen(c->head)), strlen(c->head));
	assert_int_equal(req.status, 200);
	assert_true(httpd_request_has_body(&req));
	assert_int_equal(EVP_DigestInit_ex(digest, EVP_sha256(), NULL), 1);
	httpd_body_start(&body, &req, &body_settings, 20, digest);
	while (used < len && body.status == 0) {
		size_t n = len - used < step ? len - used : step;

		used += httpd_body_feed(&body, c->body + used, n);
	}
	if (body.status != c->status)
		fail_msg("'%s' in steps of %zu: %u", c->body, step, body.status);
	if (c->status != 200)
		return;
	assert_int_equal(body.bytes, c->bytes);
	assert_int_equal(used, len - c->left);
}

static void
test_bodies(void **state)
{
#define LENGTH(n) "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " #n "\r\n\r\n"
#define CHUNKED   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
#define UPGRADE                                                                                    \
	"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n"                      \
	"Content-Length: 3\r\n\r\n"
	static const struct body_case cases[] = {
		{LENGTH(3), "abc", 200, 3, 0},
		{LENGTH(3), "abcGET /", 200, 3, 5},
		{LENGTH(3), "ab", 0, 0, 0},
		{LENGTH(20), "01234567890123456789", 200, 20, 0},
		{UPGRADE, "abcx", 200, 3, 1},
		{CHUNKED, "0\r\n\r\n", 200, 0, 0},
		{CHUNKED, "3\r\nabc\r\n0\r\n\r\nGET", 200, 3, 3},
		{CHUNKED, "1\r\na\r\n02\r\nbc\r\n000\r\n\r\n", 200, 3, 0},
		{CHUNKED, "3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n", 200, 3, 0},
		{CHUNKED, "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", 200, 20, 0},
		{CHUNKED, "15\r\n012345678901234567890\r\n0\r\n\r\n", 413, 0, 0},
		{CHUNKED, "A\r\n0123456789\r\nB\r\n01234567890\r\n0\r\n\r\n", 413, 0, 0},
		{CHUNKED, "3\r\nabcXX0\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\r\nabc\n0\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\r\nabc\r0\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\r\nabcd\r\n0\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\nabc\n0\n\n", 400, 0, 0},
		{CHUNKED, "-3\r\nabc\r\n", 400, 0, 0},
		{CHUNKED, "x\r\n", 400, 0, 0},
		{CHUNKED, "ffffffffffffffffff\r\n", 400, 0, 0},
		{CHUNKED, "15\r\n", 413, 0, 0}, /* its size is enough */
		{CHUNKED, "ffffffffffffffff\r\n", 413, 0, 0},
		{CHUNKED, "3\r\nabc\r\n0\r\nA: b\r\nC: d\r\n\r\nGET", 200, 3, 3},
		{CHUNKED, "3\r\nabc\r\n0\r\n\n", 400, 0, 0},
		{CHUNKED, "3\r\nabc\r\n0\r\nA: b\r\n c\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\r\nabc\r\n0\r\nA b: c\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\r\nabc\r\n0\r\nA : c\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\r\nabc\r\n0\r\nGET / HTTP/1.1\r\n\r\n", 400, 0, 0},
		{CHUNKED, "3\r\nab", 0, 0, 0},
	};
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	char sum[2 * EVP_MAX_MD_SIZE + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t step = 1; step <= strlen(cases[i].body); step++) {
			run_body(&cases[i], step, digest);
			if (cases[i].status == 200 && cases[i].bytes == 3) {
				hex(digest, sum);
				assert_string_equal(sum, SHA_ABC);
			}
		}
	}
	EVP_MD_CTX_free(digest);
}

/* Lines between bytes of body have a bound; small chunks one after the other do not meet it. */
static void
test_body_lines(void **state)
{
	llhttp_settings_t settings, body_settings;
	struct httpd_request req;
	struct httpd_body body;

	(void)state;
	httpd_request_settings(&settings);
	httpd_body_settings(&body_settings);
	httpd_request_start(&req, &settings);
	httpd_request_feed(&req, CHUNKED, strlen(CHUNKED));
	httpd_body_start(&body, &req, &body_settings, 1u << 30, NULL);
	for (int i = 0; i < 20000; i++)
		assert_int_equal(httpd_body_feed(&body, "1\r\na\r\n", 6), 6);
	assert_int_equal(body.bytes, 20000);
	assert_int_equal(body.status, 0);
	httpd_body_feed(&body, "0\r\n", 3);
	for (int i = 0; i < 1000 && body.status == 0; i++)
		httpd_body_feed(&body, "Name: value\r\n", 13);
	assert_int_equal(body.status, 400);
}

/* ---- the access log ---- */

static void
log_is(const char *line, uint64_t bytes, enum httpd_end end, const char *want)
{
	struct httpd_log_record record = {.body_bytes = bytes,
		.wall_s = 951782400,
		.us = 1234,
		.status = 200,
		.end = (uint8_t)end};
	char out[HTTPD_LOG_TEXT_MAX];
	size_t n;

	memcpy(record.addr.b, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x4d\x00\x01", 16);
	record.line_len = (uint16_t)strlen(line);
	memcpy(record.line, line, record.line_len);
	n = httpd_log_format(&record, out);
	out[n] = '\0';
	assert_string_equal(out, want);
}

static void
test_log(void **state)
{
	struct httpd_log_record record = {.status = 65535,
		.us = UINT32_MAX,
		.body_bytes = UINT64_MAX,
		.line_len = HTTPD_LOG_LINE_MAX,
		.wall_s = 253402300799};
	char out[HTTPD_LOG_TEXT_MAX];

	(void)state;
	log_is("GET / HTTP/1.1", 5, HTTPD_END_KEPT,
		"10.77.0.1 - - [29/Feb/2000:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5 1234 kept\n");
	log_is("GET /\"\\\x1b\xff HTTP/1.0", 0, HTTPD_END_RESET,
		"10.77.0.1 - - [29/Feb/2000:00:00:00 +0000] \"GET /\\x22\\x5c\\x1b\\xff HTTP/1.0\" "
		"200 - 1234 reset\n");
	/* The longest line fits. */
	memset(record.line, 0xff, sizeof(record.line));
	memset(record.addr.b, 0xfd, sizeof(record.addr.b));
	record.end = HTTPD_END_CLOSED;
	assert_in_range(
		httpd_log_format(&record, out), 4 * HTTPD_LOG_LINE_MAX, HTTPD_LOG_TEXT_MAX - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_many_ranges),
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_etags),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_if_range),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_body_lines),
		cmocka_unit_test(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
