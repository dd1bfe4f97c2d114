/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * upload.c - requests with a body: it is read as it comes, counted (with its SHA-256 if wanted)
 * and forgotten; then the request is answered. On the core.
 */
#include "httpd/state.h"

#include <stdio.h>

static bool
start_digest(struct httpd_core *hc, struct httpd_extra *extra)
{
	if (extra->digest == NULL)
		extra->digest = EVP_MD_CTX_new();
	if (extra->digest != NULL && EVP_DigestInit_ex(extra->digest, EVP_sha256(), NULL) == 1)
		return true;
	hc->counts.no_memory++;
	return false;
}

bool
httpd_body_begin(struct httpd_core *hc, struct corq_conn *conn, const struct httpd_request *req,
	const struct httpd_plan *plan)
{
	struct httpd_extra *extra = httpd_use(hc, conn, EXTRA_BODY);

	if (extra == NULL || (plan->digest && !start_digest(hc, extra))) {
		corq_conn_abort(hc->core, conn);
		return false;
	}
	extra->plan = *plan;
	httpd_body_start(&extra->body, req, &hc->body_settings, plan->body,
		plan->digest ? extra->digest : NULL);
	extra->body_seen = 0;
	httpd_record_keep(hc, conn, extra);
	httpd_partial_drop(hc, conn); /* and req with it */
	corq_conn_set_deadline(hc->core, conn, corq_core_now(hc->core) + hc->server->header_ns);
	/* A client that sends already does not wait (RFC 9110 10.1.1). */
	return !plan->go_on || corq_conn_readable(conn) != 0 || httpd_reply_continue(hc, conn);
}

/* The body is complete: the plan that waited for it is carried out. */
static bool
finish(struct httpd_core *hc, struct corq_conn *conn, struct httpd_extra *extra)
{
	bool goes_on;

	if (extra->plan.upload) {
		hc->counts.uploads++;
		hc->counts.upload_bytes += extra->body.bytes;
	}
	hc->plan = extra->plan;
	extra->plan.upload = false; /* whatever becomes of the answer, it was not cut */
	hc->plan.linger = false;
	httpd_record_recall(hc, extra);
	goes_on = httpd_answer(hc, conn, &hc->plan);
	httpd_unuse(hc, conn, EXTRA_BODY);
	return goes_on;
}

bool
httpd_body_read(struct httpd_core *hc, struct corq_conn *conn)
{
	struct httpd_extra *extra = httpd_extra_of(conn);
	struct iovec iov[16];
	int n;

	while (extra->body.status == 0 && (n = corq_conn_peek(hc->core, conn, iov, 16)) > 0) {
		size_t used = 0;

		for (int i = 0; i < n && extra->body.status == 0; i++)
			used += httpd_body_feed(&extra->body, iov[i].iov_base, iov[i].iov_len);
		corq_conn_consume(hc->core, conn, used);
	}
	if (extra->body.status == 0)
		return true;
	if (extra->body.status == 200)
		return finish(hc, conn, extra);
	httpd_refuse(hc, conn, extra->body.status);
	return false;
}

size_t
httpd_upload_text(struct httpd_body *body, bool digest, char *out, size_t room)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	size_t n;

	n = (size_t)snprintf(
		out, room, "%llu bytes", body != NULL ? (unsigned long long)body->bytes : 0ull);
	if (digest && body != NULL)
		EVP_DigestFinal_ex(body->digest, sum, &len);
	else if (digest)
		EVP_Digest("", 0, sum, &len, EVP_sha256(), NULL);
	if (len != 0)
		n += (size_t)snprintf(out + n, room - n, " sha256 ");
	for (unsigned i = 0; i < len; i++)
		n += (size_t)snprintf(out + n, room - n, "%02x", sum[i]);
	n += (size_t)snprintf(out + n, room - n, "\n");
	return n;
}
