/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * url.h - the URL of a command line, with ab's rules: [http://]host[:port]/path; the path is not
 * optional; an IPv6 host stands in brackets (the programs refuse it so far). Pure.
 */
#ifndef CORQ_APP_URL_H
#define CORQ_APP_URL_H

#include <stdbool.h>
#include <stdint.h>

#define APP_HOST_MAX 255

struct app_url {
	char host[APP_HOST_MAX + 1]; /* without brackets */
	const char *path;            /* into the text parsed: from the first '/' on */
	uint16_t port;               /* 80 when not given */
	bool bracketed;              /* an IPv6 literal */
};

/* NULL, or what is wrong with it. */
const char *app_url_parse(const char *text, struct app_url *url);

#endif
