/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_httpd.c - libFuzzer target: bytes of a connection through what httpd takes apart: header,
 * path, fields and their plan, body. The site is one page.
 *
 * Input: two control bytes, then the bytes of the connection. Byte 0: the length of the pieces in
 * which they come; byte 1: size of the page. The input is read once in pieces and once whole; both
 * must come to the same. Each piece lies in memory of exactly its size.
 */
#include "httpd/body.h"
#include "httpd/plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

struct result {
	struct httpd_request req;
	struct httpd_plan plan;
	struct httpd_body body;
	bool complete;
	size_t used;
};

static llhttp_settings_t settings, body_settings;
static const struct httpd_rules rules = {.upload = "/up", .upload_max = 4096};

static size_t
feed(struct result *r, const uint8_t *data, size_t n, bool body)
{
	char *copy = malloc(n);
	size_t used;

	CHECK(copy != NULL);
	memcpy(copy, data, n);
	used = body ? httpd_body_feed(&r->body, copy, n) : httpd_request_feed(&r->req, copy, n);
	CHECK(used <= n);
	free(copy);
	return used;
}

static void
check_path(const struct httpd_request *req)
{
	char path[HTTPD_URL_MAX + 16], again[sizeof(path)], coded[3 * sizeof(path)];
	ssize_t n = httpd_path_decode(req->url, req->url_len, path);

	if (n < 0)
		return;
	CHECK(n > 0 && n <= HTTPD_URL_MAX && path[0] == '/' && strlen(path) == (size_t)n);
	CHECK(strstr(path, "//") == NULL && strstr(path, "/../") == NULL &&
		strstr(path, "/./") == NULL);
	CHECK(!(n >= 3 && strcmp(path + n - 3, "/..") == 0));
	CHECK(!(n >= 2 && strcmp(path + n - 2, "/.") == 0));
	CHECK(httpd_path_decode(coded, httpd_path_encode(path, coded), again) == n);
	CHECK(strcmp(path, again) == 0);
}

static void
check_plan(const struct httpd_plan *plan, uint64_t size)
{
	CHECK(plan->status >= 200 && plan->status < 600);
	CHECK(plan->status != 206 || plan->ranges.n >= 1);
	for (unsigned i = 0; plan->status == 206 && i < plan->ranges.n; i++) {
		const struct httpd_range *r = &plan->ranges.r[i];

		CHECK(r->len >= 1 && r->len <= size && r->first <= size - r->len);
		for (unsigned j = 0; j < i; j++)
			CHECK(r->first + r->len <= plan->ranges.r[j].first ||
				plan->ranges.r[j].first + plan->ranges.r[j].len <= r->first);
	}
	CHECK(!plan->plain || (plan->status == 200 && plan->body == 0 && plan->file != NULL));
}

static void
read_input(struct result *r, const struct httpd_site *site, const uint8_t *data, size_t size,
	size_t step)
{
	size_t at = 0;

	memset(r, 0, sizeof(*r));
	httpd_request_start(&r->req, &settings);
	while (at < size && r->req.status == 0)
		at += feed(r, data + at, size - at < step ? size - at : step, false);
	if (r->req.status == 0)
		return;
	for (int f = 0; f < HTTPD_FIELDS; f++) {
		const char *value = httpd_request_value(&r->req, (enum httpd_field)f);

		CHECK(value == NULL || memchr(value, '\0', sizeof(r->req.values)) != NULL);
	}
	check_path(&r->req);
	httpd_plan_make(site, &rules, &r->req, &r->plan);
	check_plan(&r->plan, site->files[0].len);
	r->complete = true;
	if (r->plan.body != 0) {
		httpd_body_start(&r->body, &r->req, &body_settings, r->plan.body, NULL);
		while (at < size && r->body.status == 0)
			at += feed(r, data + at, size - at < step ? size - at : step, true);
		CHECK(r->body.bytes <= r->plan.body);
	}
	r->used = at;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct result pieces, whole;
	struct httpd_file file = {.etag = "\"1-2\"", .len = 0};
	struct httpd_site site = {.fixed = true, .files = &file, .count = 1};
	char line[64];

	if (size < 2)
		return 0;
	file.validators = (struct httpd_validators){file.etag, 784111777, true};
	file.len = data[1];
	httpd_request_settings(&settings);
	httpd_body_settings(&body_settings);
	read_input(&pieces, &site, data + 2, size - 2, data[0] % 64 + 1u);
	read_input(&whole, &site, data + 2, size - 2, size);
	CHECK(httpd_request_line(&whole.req, line, sizeof(line)) < sizeof(line));
	/* A fault in a piece behind the one that ends the request is not seen in both. */
	if (pieces.complete && whole.complete && whole.req.status == 200) {
		CHECK(pieces.req.status == 200);
		CHECK(pieces.plan.status == whole.plan.status &&
			pieces.plan.keep == whole.plan.keep);
		CHECK(pieces.body.status == whole.body.status);
		CHECK(pieces.body.status != 200 || pieces.body.bytes == whole.body.bytes);
		CHECK(pieces.body.status != 200 || pieces.used == whole.used);
	}
	return 0;
}
