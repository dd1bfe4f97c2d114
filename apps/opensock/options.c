/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - see options.h.
 */
#include "opensock/options.h"
#include "common/app.h"

#include <corq/socket.h>
#include <string.h>

enum {
	OPT_HELP = 1000,
	OPT_VERSION,
	OPT_BACKEND,
	OPT_ORDER,
	OPT_HOLES,
	OPT_CROSS,
	OPT_KERNEL_COUNT,
	OPT_KERNEL_FILL,
	OPT_JSON,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"order", required_argument, NULL, OPT_ORDER},
	{"holes", no_argument, NULL, OPT_HOLES},
	{"cross", required_argument, NULL, OPT_CROSS},
	{"kernel-n", required_argument, NULL, OPT_KERNEL_COUNT},
	{"kernel-fill", required_argument, NULL, OPT_KERNEL_FILL},
	{"json", required_argument, NULL, OPT_JSON},
	{NULL, 0, NULL, 0},
};

static const char *const side_names[] = {[OPENSOCK_CORQ] = "corq", [OPENSOCK_KERNEL] = "kernel"};
static const char *const order_names[] = {
	[OPENSOCK_LIFO] = "lifo", [OPENSOCK_FIFO] = "fifo", [OPENSOCK_RANDOM] = "random"};

const char *
opensock_side_name(enum opensock_side side)
{
	return side_names[side];
}

const char *
opensock_order_name(enum opensock_order order)
{
	return order_names[order];
}

static bool
take_number(struct opensock_options *opts, int opt, const char *arg)
{
	switch (opt) {
	case 't':
		return app_option_u32("-t", arg, 1, CORQ_MAX_THREADS, &opts->threads);
	case 'n':
		return app_option_u64("-n", arg, 0, CORQ_MAX_HANDLES, &opts->count);
	case 'l':
		return app_option_u32("-l", arg, 1, 86400, &opts->seconds);
	case OPT_KERNEL_COUNT:
		opts->kernel_count_given = true;
		return app_option_u64("--kernel-n", arg, 0, CORQ_MAX_HANDLES, &opts->kernel_count);
	default:
		return app_option_u32("--cross", arg, 0, 100, &opts->cross);
	}
}

static bool
take_word(struct opensock_options *opts, int opt, const char *arg)
{
	static const char *const backends[] = {"corq", "kernel", "both"};
	static const char *const fills[] = {"socket", "dup"};
	int at;

	switch (opt) {
	case OPT_BACKEND:
		at = app_option_word("--backend", arg, backends, 3);
		opts->use[OPENSOCK_CORQ] = at != 1;
		opts->use[OPENSOCK_KERNEL] = at != 0;
		break;
	case OPT_ORDER:
		at = app_option_word("--order", arg, order_names, 3);
		if (at >= 0)
			opts->order = (enum opensock_order)at;
		break;
	default:
		at = app_option_word("--kernel-fill", arg, fills, 2);
		opts->dup = at == 1;
		break;
	}
	return at >= 0;
}

/* 0 go on, an exit code, or -1: all is said. */
static int
take_option(struct opensock_options *opts, int opt, const char *arg)
{
	switch (opt) {
	case 'f':
		opts->fast = true;
		return APP_OK;
	case OPT_HOLES:
		opts->holes = true;
		return APP_OK;
	case OPT_JSON:
		opts->json = arg;
		return APP_OK;
	case 'h':
	case OPT_HELP:
		opensock_usage(stdout);
		return -1;
	case 'V':
	case OPT_VERSION:
		puts("corq opensock " CORQ_VERSION);
		return -1;
	case OPT_BACKEND:
	case OPT_ORDER:
	case OPT_KERNEL_FILL:
		return take_word(opts, opt, arg) ? APP_OK : APP_USAGE;
	default:
		return take_number(opts, opt, arg) ? APP_OK : APP_USAGE;
	}
}

static int
check(const struct opensock_options *opts)
{
	if (opts->cross != 0 && opts->threads < 2) {
		app_error("--cross %u: another thread closes, so there must be two (-t 2)",
			opts->cross);
		return APP_USAGE;
	}
	if (!opts->use[OPENSOCK_KERNEL] && (opts->kernel_count_given || opts->dup)) {
		app_error("%s is for --backend kernel or both",
			opts->dup ? "--kernel-fill" : "--kernel-n");
		return APP_USAGE;
	}
	if (opts->order != OPENSOCK_LIFO && opts->count < opts->threads) {
		app_error("--order %s closes what was open before: -n %llu is too few for -t %u",
			order_names[opts->order], (unsigned long long)opts->count, opts->threads);
		return APP_USAGE;
	}
	return APP_OK;
}

int
opensock_options_parse(struct opensock_options *opts, int argc, char **argv)
{
	int opt, rc = 0;

	*opts = (struct opensock_options){
		.threads = 1, .count = 1000, .seconds = 10, .use = {[OPENSOCK_CORQ] = true}};
	while (rc == 0 && (opt = app_next_option(argc, argv, ":t:n:l:fhV", long_options)) != -1)
		rc = opt == '?' ? APP_USAGE : take_option(opts, opt, optarg);
	if (rc != 0)
		return rc;
	if (optind < argc) {
		app_error("'%s' is left over; there are options only (--help lists all)",
			argv[optind]);
		return APP_USAGE;
	}
	return check(opts);
}
