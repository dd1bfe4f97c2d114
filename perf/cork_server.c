/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cork_server.c - the corq end of perf/cork_close: sends CORK_BYTES bytes to whoever connects and
 * closes, in the four ways of cork_modes.h. Public headers only.
 *
 *	cork_server --dev DEVICE --ip A/LEN [--port FIRST] [-- EAL arguments]
 *
 * One core. Until SIGINT or SIGTERM; then one line a mode: how many connections, and how many did
 * not end in order. Exit code 1 if one did not.
 */
#include "cork_modes.h"
#include "result.h"

#include <corq/instance.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct mode_count {
	uint64_t connections, failed;
};

static struct server {
	struct corq_config config;
	uint16_t port;
	struct mode_count counts[CORK_MODES]; /* the core's, until the run is over */
} server = {.port = 7000};

static struct corq_instance *running;
static const char bytes[CORK_BYTES];

/* The word of a connection is its mode's number. */
static unsigned
mode_of(const struct corq_conn *conn)
{
	return (unsigned)(uintptr_t)corq_conn_user(conn);
}

static void
on_open(struct corq_core *core, struct corq_conn *conn)
{
	const struct cork_mode *mode = &cork_modes[mode_of(conn)];

	server.counts[mode_of(conn)].connections++;
	if (mode->cork)
		corq_conn_set_cork(core, conn, true);
	if (corq_conn_write(core, conn, bytes, CORK_BYTES, 0) != CORK_BYTES) {
		corq_conn_abort(core, conn);
		return;
	}
	if (mode->uncork)
		corq_conn_set_cork(core, conn, false);
	if (mode->shutdown)
		corq_conn_shutdown(core, conn);
	corq_conn_close(core, conn);
}

static void
on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	(void)core;
	if (reason != 0)
		server.counts[mode_of(conn)].failed++;
}

static const struct corq_ops ops = {.on_open = on_open, .on_close = on_close};

static int
start_core(struct corq_core *core, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < CORK_MODES; i++) {
		struct corq_listener *listener;
		int rc = corq_core_listen(core,
			&(struct corq_listen_opts){.port = (uint16_t)(server.port + i),
				.ops = &ops,
				.user = (void *)(uintptr_t)i},
			&listener);

		if (rc < 0)
			return rc;
	}
	puts("cork_server: listening");
	fflush(stdout);
	return 0;
}

static void
on_signal(int sig)
{
	(void)sig;
	if (running)
		corq_stop(running);
}

static bool
report(void)
{
	uint64_t failed = 0;

	for (unsigned i = 0; i < CORK_MODES; i++) {
		printf("%s: %" PRIu64 " connections, %" PRIu64 " failed\n", cork_modes[i].name,
			server.counts[i].connections, server.counts[i].failed);
		failed += server.counts[i].failed;
	}
	return failed == 0;
}

static int
run(void)
{
	char err[256] = "";
	int rc;

	if (corq_start(&server.config, &running, err, sizeof(err)) != 0) {
		fprintf(stderr, "cork_server: %s\n", err);
		return 1;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	rc = corq_run(running, start_core, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	corq_end(running);
	if (rc < 0) {
		fprintf(stderr, "cork_server: %s\n", strerror(-rc));
		return 1;
	}
	return report() ? 0 : 1;
}

static const struct option options[] = {
	{"dev", required_argument, NULL, 'd'},
	{"ip", required_argument, NULL, 'i'},
	{"port", required_argument, NULL, 'p'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int
main(int argc, char **argv)
{
	int opt, own = argc;

	for (int i = 1; i < own; i++)
		if (strcmp(argv[i], "--") == 0) {
			server.config.eal_args = &argv[i + 1];
			own = i;
		}
	while ((opt = getopt_long(own, argv, "h", options, NULL)) != -1) {
		if (opt == 'd')
			server.config.dev = optarg;
		else if (opt == 'i')
			server.config.ip = optarg;
		else if (opt == 'p')
			server.port = (uint16_t)result_number("port", optarg, 1, 65532);
		else
			break;
	}
	if (opt != -1 || optind != own || server.config.dev == NULL || server.config.ip == NULL) {
		fputs("usage: cork_server --dev DEVICE --ip A/LEN [--port FIRST]"
		      " [-- EAL arguments]\n",
			opt == 'h' ? stdout : stderr);
		return opt == 'h' ? 0 : 2;
	}
	return run();
}
