/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * range.h - the Range field of a request (RFC 9110 14.1.2 and 14.2). Pure.
 *
 * Limits: 16 ranges. More of them, ranges that share a byte, and a field that is no "bytes=" list
 * are as no Range at all: the whole file is sent. Ranges that begin behind the end are left out.
 */
#ifndef CORQ_HTTPD_RANGE_H
#define CORQ_HTTPD_RANGE_H

#include <stddef.h>
#include <stdint.h>

#define HTTPD_RANGES_MAX 16

struct httpd_range {
	uint64_t first, len; /* len is not 0 */
};

struct httpd_ranges {
	unsigned n;
	struct httpd_range r[HTTPD_RANGES_MAX];
};

enum httpd_range_result {
	HTTPD_RANGE_WHOLE, /* 200 */
	HTTPD_RANGE_PART,  /* 206 with ranges->n ranges */
	HTTPD_RANGE_NONE,  /* 416 */
};

/* value: the field, NUL-terminated; size: of the file. */
enum httpd_range_result httpd_range_parse(
	const char *value, uint64_t size, struct httpd_ranges *ranges);

#endif
