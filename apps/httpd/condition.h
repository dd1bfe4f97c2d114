/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * condition.h - conditional requests (RFC 9110 13): entity tags, dates, and the order in which
 * the fields count (13.2.2). Pure. A date that is none is as no field (13.1.3).
 */
#ifndef CORQ_HTTPD_CONDITION_H
#define CORQ_HTTPD_CONDITION_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* What a file is compared by. */
struct httpd_validators {
	const char *etag; /* with its quotes; strong. NULL: there is no tag */
	time_t modified;  /* 0: not known */
	bool date_strong; /* it was not written in the second in which it was read (8.8.2.2) */
};

/* The fields of the request; NULL: absent. */
struct httpd_conditions {
	const char *if_match, *if_unmodified, *if_none_match, *if_modified, *if_range;
};

enum httpd_verdict {
	HTTPD_GO_ON,
	HTTPD_NOT_MODIFIED, /* 304 */
	HTTPD_FAILED,       /* 412 */
};

/* file: NULL when there is nothing at that path (an upload). safe: GET or HEAD. */
enum httpd_verdict httpd_conditions_check(
	const struct httpd_conditions *c, const struct httpd_validators *file, bool safe);
/* Whether If-Range lets a Range count (13.1.5). True without that field. */
bool httpd_conditions_range(const struct httpd_conditions *c, const struct httpd_validators *file);
/* Any of the three forms of 5.6.7. */
bool httpd_date_parse(const char *text, time_t *out);
/* A list of tags, or "*", against ours. weak: W/"x" is as good as "x" (8.8.3.2). */
bool httpd_etag_listed(const char *list, const char *etag, bool weak);

#endif
