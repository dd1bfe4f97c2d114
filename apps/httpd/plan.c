/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - see plan.h.
 */
#include "httpd/plan.h"

#include <string.h>

static bool
below(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(path, prefix, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool
is_read(const struct httpd_request *req)
{
	return req->parser.method == HTTP_GET || req->parser.method == HTTP_HEAD;
}

/* Preconditions and ranges, for a request whose answer would be 200 (RFC 9110 13.2.1). */
static uint16_t
apply_fields(const struct httpd_request *req, struct httpd_plan *plan)
{
	const struct httpd_conditions c = {
		.if_match = httpd_request_value(req, HTTPD_IF_MATCH),
		.if_unmodified = httpd_request_value(req, HTTPD_IF_UNMODIFIED),
		.if_none_match = httpd_request_value(req, HTTPD_IF_NONE_MATCH),
		.if_modified = httpd_request_value(req, HTTPD_IF_MODIFIED),
		.if_range = httpd_request_value(req, HTTPD_IF_RANGE),
	};
	const struct httpd_validators *v = plan->file != NULL ? &plan->file->validators : NULL;
	const char *range = httpd_request_value(req, HTTPD_RANGE);

	switch (httpd_conditions_check(&c, v, is_read(req))) {
	case HTTPD_NOT_MODIFIED:
		return 304;
	case HTTPD_FAILED:
		return 412;
	default:
		break;
	}
	/* GET is the only method with ranges (14.2). */
	if (req->parser.method != HTTP_GET || range == NULL || !httpd_conditions_range(&c, v))
		return 200;
	switch (httpd_range_parse(range, plan->file->len, &plan->ranges)) {
	case HTTPD_RANGE_PART:
		return 206;
	case HTTPD_RANGE_NONE:
		return 416;
	default:
		return 200;
	}
}

static bool
has_fields(const struct httpd_request *req)
{
	for (int i = 0; i < HTTPD_FIELDS; i++) {
		if (req->value_at[i] != 0)
			return true;
	}
	return false;
}

static uint16_t
find(const struct httpd_site *site, const struct httpd_request *req, char *path, size_t len,
	struct httpd_plan *plan)
{
	plan->file = httpd_site_find(site, path, len);
	if (plan->file == NULL)
		return 404;
	if (plan->file->directory)
		return 301;
	return apply_fields(req, plan);
}

static uint16_t
decide(const struct httpd_site *site, const struct httpd_rules *rules,
	const struct httpd_request *req, struct httpd_plan *plan)
{
	bool sends = req->parser.method == HTTP_POST || req->parser.method == HTTP_PUT;
	bool options = req->parser.method == HTTP_OPTIONS;
	char path[HTTPD_URL_MAX + sizeof("/index.html")];
	ssize_t len;

	if (options && req->url_len == 1 && req->url[0] == '*')
		return 204;
	if (req->parser.method == HTTP_CONNECT)
		return 405; /* its target is no path */
	len = httpd_path_decode(req->url, req->url_len, path);
	if (len < 0)
		return 400;
	plan->accepts = rules->upload != NULL && below(path, rules->upload);
	plan->upload = sends && plan->accepts;
	plan->digest = plan->upload && rules->upload_digest;
	if (!is_read(req) && !options && !plan->upload)
		return 405;
	plan->body = plan->upload ? rules->upload_max : HTTPD_BODY_MAX;
	if (req->body > plan->body)
		return 413;
	if (options)
		return 204;
	return plan->upload ? apply_fields(req, plan) : find(site, req, path, (size_t)len, plan);
}

void
httpd_plan_make(const struct httpd_site *site, const struct httpd_rules *rules,
	const struct httpd_request *req, struct httpd_plan *plan)
{
	bool body = httpd_request_has_body(req);

	memset(plan, 0, offsetof(struct httpd_plan, ranges));
	plan->ranges.n = 0;
	plan->status = req->status;
	plan->head = req->head;
	plan->linger = true;
	if (req->status != 200)
		return; /* where the next request begins is not known */
	plan->status = decide(site, rules, req, plan);
	plan->linger = body;
	/* A body that an error makes useless is not waited for: the connection ends. */
	if (!body || plan->status < 300) {
		plan->keep = req->keep;
		plan->go_on = body && req->expect;
	}
	if (!body || plan->status >= 300)
		plan->body = 0;
	plan->plain = plan->status == 200 && !body && !plan->upload && !has_fields(req);
}
