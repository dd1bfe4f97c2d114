/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of `corq ab`, and the request bytes that it asks for. Main thread,
 * before the run.
 */
#ifndef CORQ_AB_OPTIONS_H
#define CORQ_AB_OPTIONS_H

#include "common/device.h"
#include "common/url.h"

struct ab_options {
	struct app_device device;
	struct app_url url;
	bool url_given;
	uint64_t requests;
	uint32_t concurrency;
	uint32_t time_limit_s; /* -t; 0: none */
	uint32_t timeout_s;    /* -s */
	bool requests_given;
	bool keepalive, quiet, recv_ok, any_length;
	int verbosity;
	const char *method; /* NULL: GET, or POST with a body */
	bool host_given, agent_given, accept_given;
	char *headers; /* lines of -H, each with CRLF; NULL: none */
	const char *content_type;
	void *body; /* -p; NULL: none */
	size_t body_len;
	uint32_t page_size;     /* of the embedded server */
	uint32_t half_open_max; /* SYNs outstanding a core */
	uint32_t pause_ms, pause_at_ms;
};

/* 0 and *opts, or an exit code (the error line is out), or -1: a help or version was printed. */
int ab_options_parse(struct ab_options *opts, int argc, char **argv);
void ab_options_usage(FILE *out);
const char *ab_options_method(const struct ab_options *opts);
/*
 * The request as ab 2.4 writes it, with our User-Agent. `host` is what goes into Host (with
 * brackets if IPv6). malloc'ed; NULL: no memory.
 */
char *ab_request_build(const struct ab_options *opts, const char *host, uint16_t port,
	const char *path, size_t *len);

#endif
