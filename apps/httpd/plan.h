/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - what a complete request is answered with. Pure: the same header bytes give the same
 * plan for as long as the server runs, because the site does not change.
 */
#ifndef CORQ_HTTPD_PLAN_H
#define CORQ_HTTPD_PLAN_H

#include "httpd/range.h"
#include "httpd/request.h"
#include "httpd/site.h"

#define HTTPD_BODY_MAX (1u << 20) /* of a request that is no upload; more: 413 */

/* What the request line decides beside the site. */
struct httpd_rules {
	const char *upload; /* decoded path without a last slash ("" is the root); NULL: none */
	uint64_t upload_max;
	bool upload_digest;
};

struct httpd_plan {
	const struct httpd_file *file; /* NULL: an answer without a file */
	uint16_t status;
	bool keep;     /* the connection goes on */
	bool head;     /* no body is sent */
	bool linger;   /* what the client still sends may be long: read on after the answer */
	bool plain;    /* a whole file, no field had a say: may be remembered */
	bool accepts;  /* uploads are taken at that path */
	bool upload;   /* the body is counted; the answer says how much it was */
	bool digest;   /* and its SHA-256 */
	bool go_on;    /* 100 (Continue) is waited for */
	uint64_t body; /* most bytes of body to read first; 0: there is none */
	struct httpd_ranges ranges; /* of 206 */
};

/* req: complete. */
void httpd_plan_make(const struct httpd_site *site, const struct httpd_rules *rules,
	const struct httpd_request *req, struct httpd_plan *plan);

#endif
