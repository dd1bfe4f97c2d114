/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * condition.c - see condition.h.
 */
#include "httpd/condition.h"

#include <string.h>

bool
httpd_date_parse(const char *text, time_t *out)
{
	static const char *const forms[] = {
		"%a, %d %b %Y %H:%M:%S GMT", /* RFC 5322's */
		"%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850's */
		"%a %b %e %H:%M:%S %Y",      /* asctime's */
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm;
		const char *end;

		memset(&tm, 0, sizeof(tm));
		end = strptime(text, forms[i], &tm);
		if (end != NULL && *end == '\0') {
			*out = timegm(&tm);
			return true;
		}
	}
	return false;
}

/* The end of the tag that begins at `at` (behind W/), NULL: it is none. */
static const char *
tag_end(const char *at)
{
	if (*at != '"')
		return NULL;
	for (at++; *at != '"'; at++) {
		unsigned char c = (unsigned char)*at;

		if (c < 0x21 || c == 0x7f)
			return NULL;
	}
	return at + 1;
}

bool
httpd_etag_listed(const char *list, const char *etag, bool weak)
{
	const char *at = list, *end;

	if (strcmp(list, "*") == 0)
		return true;
	for (;;) {
		bool is_weak;

		at += strspn(at, " \t,");
		is_weak = at[0] == 'W' && at[1] == '/';
		at += is_weak ? 2 : 0;
		end = tag_end(at);
		if (end == NULL)
			return false;
		if (etag != NULL && (weak || !is_weak) && (size_t)(end - at) == strlen(etag) &&
			memcmp(at, etag, (size_t)(end - at)) == 0)
			return true;
		at = end + strspn(end, " \t");
		if (*at != ',')
			return false;
	}
}

enum httpd_verdict
httpd_conditions_check(
	const struct httpd_conditions *c, const struct httpd_validators *file, bool safe)
{
	bool dated = file != NULL && file->modified != 0;
	time_t date;

	if (c->if_match != NULL) {
		if (file == NULL || !httpd_etag_listed(c->if_match, file->etag, false))
			return HTTPD_FAILED;
	} else if (c->if_unmodified != NULL && dated && httpd_date_parse(c->if_unmodified, &date) &&
		   file->modified > date) {
		return HTTPD_FAILED;
	}
	if (c->if_none_match != NULL) {
		if (file != NULL && httpd_etag_listed(c->if_none_match, file->etag, true))
			return safe ? HTTPD_NOT_MODIFIED : HTTPD_FAILED;
	} else if (safe && c->if_modified != NULL && dated &&
		   httpd_date_parse(c->if_modified, &date) && file->modified <= date) {
		return HTTPD_NOT_MODIFIED;
	}
	return HTTPD_GO_ON;
}

bool
httpd_conditions_range(const struct httpd_conditions *c, const struct httpd_validators *file)
{
	time_t date;

	if (c->if_range == NULL)
		return true;
	if (c->if_range[0] == '"')
		return file->etag != NULL && strcmp(c->if_range, file->etag) == 0;
	return file->modified != 0 && file->date_strong && httpd_date_parse(c->if_range, &date) &&
	       date == file->modified;
}
