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
	const char *url_text; /* as given; NULL: none */
	struct app_url proxy; /* -X: host and port */
	bool via_proxy;
	uint64_t requests;
	uint32_t concurrency;
	uint32_t time_limit_s; /* -t; 0: none */
	uint32_t timeout_s;    /* -s */
	bool keepalive, quiet, recv_ok, any_length;
	bool ab_strict; /* progress on stderr exactly as ab writes it */
	uint32_t verbosity;
	bool bind_given;
	struct corq_addr bind; /* -B */
	const char *method;    /* NULL: GET */
	bool host_given, agent_given, accept_given;
	char *headers; /* lines of -H, each with CRLF; NULL: none */
	char *auth;    /* lines of -A and -P, in their order, each with CRLF; NULL: none */
	char *cookies; /* values of -C, joined with "; "; NULL: none */
	const char *content_type;
	void *body; /* -p, -u; NULL: none */
	size_t body_len;
	/* the report */
	bool no_percentages;                              /* -d */
	bool no_deviation;                                /* -S */
	bool html;                                        /* -w */
	const char *table_attrs, *row_attrs, *cell_attrs; /* -x -y -z */
	const char *csv, *gnuplot;                        /* -e, -g: file names, or NULL */
	uint32_t page_size;                               /* of the embedded server */
	uint32_t half_open_max;                           /* SYNs outstanding a core */
	uint32_t pause_ms, pause_at_s;
	uint64_t exact_times; /* exact times are kept of so many requests */
};

/* -g keeps a record of each request; more than so many are refused before the run. */
#define AB_RECORDS_MAX 100000000ull

/* 0 and *opts, or an exit code (the error line is out), or -1: a help or version was printed. */
int ab_options_parse(struct ab_options *opts, int argc, char **argv);
void ab_options_free(struct ab_options *opts);
/* usage.c */
void ab_options_usage(FILE *out);
/* request.c */
const char *ab_options_method(const struct ab_options *opts);
/*
 * The request as ab 2.4 writes it, with our User-Agent. `host` is what goes into Host (with
 * brackets if IPv6). With a proxy the request line has the whole URL. malloc'ed; NULL: no memory.
 */
char *ab_request_build(const struct ab_options *opts, const char *host, uint16_t port,
	const char *path, size_t *len);

#endif
