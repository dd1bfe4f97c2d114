/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - see options.h.
 */
#include "closetest/options.h"
#include "common/app.h"

#include <stdio.h>
#include <string.h>

enum {
	OPT_HELP = APP_OPT_OWN,
	OPT_VERSION,
	OPT_BACKEND,
	OPT_BLOCK,
	OPT_PARTS,
	OPT_CLIENT,
	OPT_ROUNDS,
	OPT_TIMEOUT,
};

static const struct option long_options[] = {
	APP_DEVICE_LONG,
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"block", required_argument, NULL, OPT_BLOCK},
	{"parts", required_argument, NULL, OPT_PARTS},
	{"client", required_argument, NULL, OPT_CLIENT},
	{"rounds", required_argument, NULL, OPT_ROUNDS},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{NULL, 0, NULL, 0},
};

static const char *
part_word(int i)
{
	return closetest_part_name((enum closetest_part)i);
}

static const char *
policy_word(int i)
{
	return closetest_policy_name((enum corq_close_policy)i);
}

static bool
take_set(const char *option, const char *arg, const char *(*name)(int), int n, bool *set)
{
	char wrong[CLOSETEST_LINE], all[CLOSETEST_LINE] = "";

	if (closetest_parse_set(arg, name, n, set, wrong))
		return true;
	for (int i = 0; i < n; i++)
		strcat(strcat(all, i == 0 ? "" : ", "), name(i));
	app_error("%s: '%s' is none of %s (several: with commas)", option, wrong, all);
	return false;
}

static bool
take_word(struct closetest_options *opts, int opt, const char *arg)
{
	static const char *const backends[] = {"corq", "kernel"};
	const char *policies[CLOSETEST_POLICIES];
	int at;

	if (opt == OPT_BACKEND) {
		at = app_option_word("--backend", arg, backends, 2);
		opts->kernel = at == 1;
		return at >= 0;
	}
	for (int i = 0; i < CLOSETEST_POLICIES; i++)
		policies[i] = policy_word(i);
	at = app_option_word("--client", arg, policies, CLOSETEST_POLICIES);
	opts->plan.client = (enum corq_close_policy)at;
	return at >= 0;
}

static bool
take_number(struct closetest_options *opts, int opt, const char *arg)
{
	switch (opt) {
	case 'n':
		return app_option_u64("-n", arg, 1, 100000000, &opts->connections);
	case 'c':
		return app_option_u32("-c", arg, 1, 1024, &opts->at_a_time);
	case OPT_BLOCK:
		return app_option_u32("--block", arg, 1, 1000000, &opts->block);
	case OPT_ROUNDS:
		return app_option_u32("--rounds", arg, 1, CLOSETEST_ROUNDS, &opts->plan.rounds);
	default:
		return app_option_u32("--timeout", arg, 1, 600, &opts->timeout_s);
	}
}

/* 0 go on, an exit code, or -1: all is said. */
static int
take_option(struct closetest_options *opts, int opt, const char *arg)
{
	int rc;

	switch (opt) {
	case 'h':
	case OPT_HELP:
		closetest_usage(stdout);
		return -1;
	case 'V':
	case OPT_VERSION:
		puts("corq closetest " CORQ_VERSION);
		return -1;
	case 'q':
		opts->quiet = true;
		return APP_OK;
	case OPT_BACKEND:
	case OPT_CLIENT:
		return take_word(opts, opt, arg) ? APP_OK : APP_USAGE;
	case OPT_PARTS:
		return take_set("--parts", arg, part_word, CLOSETEST_PARTS, opts->plan.part)
			       ? APP_OK
			       : APP_USAGE;
	case APP_OPT_CLOSE:
		return take_set("--close", arg, policy_word, CLOSETEST_POLICIES, opts->plan.close)
			       ? APP_OK
			       : APP_USAGE;
	case 'n':
	case 'c':
	case OPT_BLOCK:
	case OPT_ROUNDS:
	case OPT_TIMEOUT:
		return take_number(opts, opt, arg) ? APP_OK : APP_USAGE;
	default:
		rc = app_device_option(&opts->device, opt, arg);
		return rc == 1 ? APP_OK : APP_USAGE;
	}
}

static int
take_url(struct closetest_options *opts, const char *text)
{
	const char *error = app_url_parse(text, &opts->url);

	if (error != NULL) {
		app_error("'%s': %s", text, error);
		return APP_USAGE;
	}
	opts->url_text = text;
	opts->has_url = true;
	return APP_OK;
}

static int
check_parts(struct closetest_options *opts, bool parts_given)
{
	bool loop = !opts->kernel && app_device_is_loop(&opts->device);

	opts->plan.server_ours = opts->kernel || loop;
	if (!parts_given)
		opts->plan.part[CLOSETEST_EXTERN] = opts->has_url && !loop;
	if (opts->plan.part[CLOSETEST_EXTERN] && loop) {
		app_error(
			"--parts extern: nothing is outside of the loop device; name a device with "
			"--dev, or --backend kernel");
		return APP_USAGE;
	}
	if (loop && opts->has_url) {
		app_error(
			"'%s': nothing is outside of the loop device; name a device with --dev, or "
			"--backend kernel",
			opts->url_text);
		return APP_USAGE;
	}
	if (!opts->has_url && (opts->plan.part[CLOSETEST_EXTERN] || !opts->plan.server_ours)) {
		app_error("which server? Give its URL, as http://10.0.0.1:80/");
		return APP_USAGE;
	}
	if (!opts->plan.server_ours && opts->url.port == UINT16_MAX &&
		opts->plan.part[CLOSETEST_PROPER]) {
		app_error("'%s': proper-close is at the port after that, and there is none",
			opts->url_text);
		return APP_USAGE;
	}
	return APP_OK;
}

static int
check(struct closetest_options *opts, bool parts_given, bool close_given)
{
	struct closetest_step steps[CLOSETEST_STAGES];
	const struct closetest_step *stuck;
	unsigned n;
	int rc = check_parts(opts, parts_given);

	if (rc != APP_OK)
		return rc;
	if (opts->device.config.cores > 1 || (opts->kernel && opts->at_a_time > 1)) {
		app_error("%s: this experiment is one loop of connects and closes%s",
			opts->kernel ? "-c" : "--cores",
			opts->kernel ? "; with --backend kernel one at a time"
				     : ", on one core; -c has more connections at a time");
		return APP_USAGE;
	}
	if (close_given && !opts->plan.server_ours) {
		app_error("--close is of our own server; on this device the peer's is what it is");
		return APP_USAGE;
	}
	if (opts->kernel && opts->device.config.dev != NULL) {
		app_error("--dev: --backend kernel has plain sockets and no device of corq's");
		return APP_USAGE;
	}
	n = closetest_plan_steps(&opts->plan, steps);
	stuck = closetest_plan_stuck(&opts->plan, steps, n);
	if (stuck == NULL)
		return APP_OK;
	app_error("--client after-peer: in %s%s%s the server waits for the client too, and nobody "
		  "would close first",
		closetest_part_name(stuck->part), stuck->close_known ? " with --close " : "",
		stuck->close_known ? closetest_policy_name(stuck->close) : "");
	return APP_USAGE;
}

int
closetest_options_parse(struct closetest_options *opts, int argc, char **argv)
{
	bool parts_given = false, close_given = false;
	int opt, rc = 0;

	*opts = (struct closetest_options){
		.connections = 250, .block = 50, .at_a_time = 1, .timeout_s = 5};
	app_device_init(&opts->device);
	opts->plan = (struct closetest_plan){.part = {false, true, true},
		.close = {[CORQ_CLOSE_FIRST] = true, [CORQ_CLOSE_ABORT_IF_EMPTY] = true},
		.client = CORQ_CLOSE_FIRST,
		.rounds = 1};
	argc = app_device_split(&opts->device, argc, argv);
	while (rc == 0 && (opt = app_next_option(argc, argv, ":n:c:qhV", long_options)) != -1) {
		parts_given |= opt == OPT_PARTS;
		close_given |= opt == APP_OPT_CLOSE;
		rc = opt == '?' ? APP_USAGE : take_option(opts, opt, optarg);
	}
	if (rc == 0 && optind < argc)
		rc = take_url(opts, argv[optind++]);
	if (rc != 0)
		return rc;
	if (optind < argc) {
		app_error("'%s' is left over; one URL at the end (--help lists all)", argv[optind]);
		return APP_USAGE;
	}
	return check(opts, parts_given, close_given);
}
