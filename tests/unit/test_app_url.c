/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_app_url.c - the URL of a command line, addresses as text, and ab's request bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ab/options.h"
#include "common/addr.h"
#include "common/url.h"

static void
good(const char *text, const char *host, uint16_t port, const char *path, bool bracketed)
{
	struct app_url url;

	assert_null(app_url_parse(text, &url));
	assert_string_equal(url.host, host);
	assert_int_equal(url.port, port);
	assert_string_equal(url.path, path);
	assert_int_equal(url.bracketed, bracketed);
}

static void
test_good(void **state)
{
	(void)state;
	good("http://10.0.0.1/", "10.0.0.1", 80, "/", false);
	good("HTTP://a.b:8080/x/y?z=1#f", "a.b", 8080, "/x/y?z=1#f", false);
	good("10.0.0.1:1/", "10.0.0.1", 1, "/", false);
	good("http://[fd77::1]/", "fd77::1", 80, "/", true);
	good("http://[::1]:65535/a", "::1", 65535, "/a", true);
}

static void
test_bad(void **state)
{
	static const char *const texts[] = {"", "/", "http://", "http:///", "foo", "http://a",
		"http://a:/", "http://a:0/", "http://a:65536/", "http://a:99999999999/",
		"http://a:8x/", "http://a:-1/", "http://u@h/", "http://a b/", "http://a/b c",
		"http://[::1/", "http://[]/", "http://[::1]x/", "https://a/", "ftp://a/",
		"ws+x://a:1/", "http://fd77::1/", "http://a/\r\nX: y"};
	struct app_url url;
	char longer[400] = "http://";

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (app_url_parse(texts[i], &url) == NULL)
			fail_msg("'%s' was taken", texts[i]);
	}
	memset(longer + 7, 'h', 256);
	strcpy(longer + 7 + 256, "/");
	assert_non_null(app_url_parse(longer, &url));
	strcpy(longer + 7 + 255, "/");
	assert_null(app_url_parse(longer, &url));
}

/* The reason is the thing that is wrong, not what the parser stumbled over. */
static void
test_reasons(void **state)
{
	struct app_url url;

	(void)state;
	assert_non_null(strstr(app_url_parse("ftp://10.0.0.1:21/", &url), "http://"));
	assert_non_null(strstr(app_url_parse("gopher://h", &url), "http://"));
	assert_non_null(strstr(app_url_parse("http://fd77::1/", &url), "IPv6"));
	assert_non_null(strstr(app_url_parse("http://a:8x/", &url), "port"));
}

static void
test_addr(void **state)
{
	static const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 1, 2, 3};
	struct corq_addr addr;
	char text[APP_ADDR_TEXT], endpoint[APP_ENDPOINT_TEXT];

	(void)state;
	assert_true(app_addr_parse("10.1.2.3", &addr));
	assert_memory_equal(addr.b, mapped, 16);
	assert_true(app_addr_is_v4(&addr));
	app_addr_text(&addr, text);
	assert_string_equal(text, "10.1.2.3");
	app_endpoint_text(&addr, 65535, endpoint);
	assert_string_equal(endpoint, "10.1.2.3:65535");
	assert_true(app_addr_parse("fd77::2", &addr));
	assert_false(app_addr_is_v4(&addr));
	app_addr_text(&addr, text);
	assert_string_equal(text, "fd77::2");
	app_endpoint_text(&addr, 80, endpoint);
	assert_string_equal(endpoint, "[fd77::2]:80");
	assert_false(app_addr_parse("10.1.2", &addr));
	assert_false(app_addr_parse("x", &addr));
}

static void
request_is(const struct ab_options *opts, uint16_t port, const char *want)
{
	size_t len;
	char *bytes = ab_request_build(opts, "h", port, "/p", &len);

	assert_non_null(bytes);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(bytes, want, len);
	free(bytes);
}

/* The order and the spelling are what Debian's ab sends. */
static void
test_request(void **state)
{
	struct ab_options opts;

	(void)state;
	memset(&opts, 0, sizeof(opts));
	request_is(&opts, 80,
		"GET /p HTTP/1.0\r\nHost: h\r\nUser-Agent: corq/" CORQ_VERSION
		"\r\nAccept: */*\r\n\r\n");
	opts.keepalive = true;
	opts.headers = (char *)"X: 1\r\nAccept: a\r\n";
	opts.accept_given = true;
	request_is(&opts, 8099,
		"GET /p HTTP/1.0\r\nConnection: Keep-Alive\r\nX: 1\r\nAccept: a\r\n"
		"Host: h:8099\r\nUser-Agent: corq/" CORQ_VERSION "\r\n\r\n");
	opts.method = "POST";
	opts.body = (char *)"abc";
	opts.body_len = 3;
	opts.headers = (char *)"Host: z\r\n";
	opts.host_given = opts.agent_given = true;
	request_is(&opts, 80,
		"POST /p HTTP/1.0\r\nConnection: Keep-Alive\r\nContent-length: 3\r\n"
		"Content-type: text/plain\r\nHost: z\r\n\r\nabc");
	opts.method = "PATCH";
	opts.content_type = "a/b";
	opts.keepalive = false;
	request_is(&opts, 80,
		"PATCH /p HTTP/1.0\r\nContent-length: 3\r\nContent-type: a/b\r\nHost: "
		"z\r\n\r\nabc");
}

/* The whole URL for a proxy, then Connection, Cookie and authorizations, as Debian's ab does. */
static void
test_request_by_proxy(void **state)
{
	struct ab_options opts;

	(void)state;
	memset(&opts, 0, sizeof(opts));
	opts.via_proxy = true;
	opts.url_text = "http://h:8099/p";
	opts.cookies = (char *)"a=b; c=d";
	opts.auth = (char *)"Authorization: Basic eDp5\r\nProxy-Authorization: Basic dTpw\r\n";
	opts.keepalive = true;
	opts.method = "HEAD";
	request_is(&opts, 8099,
		"HEAD http://h:8099/p HTTP/1.0\r\nConnection: Keep-Alive\r\nCookie: a=b; c=d\r\n"
		"Authorization: Basic eDp5\r\nProxy-Authorization: Basic dTpw\r\n"
		"Host: h:8099\r\nUser-Agent: corq/" CORQ_VERSION "\r\nAccept: */*\r\n\r\n");
	opts.url_text = "h:8099/p"; /* ab would send it like this, which no proxy takes */
	opts.cookies = opts.auth = NULL;
	opts.keepalive = false;
	request_is(&opts, 8099,
		"HEAD http://h:8099/p HTTP/1.0\r\nHost: h:8099\r\nUser-Agent: corq/" CORQ_VERSION
		"\r\nAccept: */*\r\n\r\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_addr),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_request_by_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
