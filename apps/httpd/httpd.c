/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * httpd.c - `corq httpd`: the command line around server.h. Main thread, but start_core, which
 * corq_run calls on each core.
 */
#include "common/addr.h"
#include "common/device.h"
#include "common/json.h"
#include "httpd/server.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_HELP = APP_OPT_OWN,
	OPT_VERSION,
	OPT_PORT,
	OPT_SIZE
};

struct job {
	struct app_device device;
	struct httpd_opts opts;
	struct httpd_server *server;
	struct app_core *cores;
	struct app_json json;
	_Atomic unsigned ready;
	_Atomic int listen_error;
};

static struct corq_instance *running;

static const struct option long_options[] = {
	APP_DEVICE_LONG,
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{"port", required_argument, NULL, OPT_PORT},
	{"size", required_argument, NULL, OPT_SIZE},
	{NULL, 0, NULL, 0},
};

static void
usage(FILE *out)
{
	fputs("usage: corq httpd --dev DEVICE --ip A/LEN [options] (--size BYTES | DIRECTORY)\n"
	      "               [-- EAL arguments]\n"
	      "  DIRECTORY     serve its files, read once at start\n"
	      "  --size BYTES  serve a page of so many bytes for every path\n"
	      "  --port PORT   listen there (80)\n"
	      "  --close POLICY  who closes first: first (we, default), after-peer,\n"
	      "                  abort-if-empty, rst\n"
	      "  --json FILE   the counts as JSON at the end; - is standard output\n"
	      "Names that start with a dot are not served.\n",
		out);
	app_device_usage(out, false);
}

static void
on_signal(int count)
{
	(void)count;
	if (running != NULL)
		corq_stop(running);
}

/* ---- command line ---- */

static int
take_option(struct job *job, int opt, const char *arg)
{
	uint64_t value;
	int rc;

	switch (opt) {
	case 'h':
	case OPT_HELP:
		usage(stdout);
		return -1;
	case 'V':
	case OPT_VERSION:
		puts("corq httpd " CORQ_VERSION);
		return -1;
	case OPT_PORT:
		if (!app_option_u64("--port", arg, 1, 65535, &value))
			return APP_USAGE;
		job->opts.port = (uint16_t)value;
		return APP_OK;
	case OPT_SIZE:
		if (!app_option_u64("--size", arg, 0, 1u << 30, &value))
			return APP_USAGE;
		job->opts.size = (uint32_t)value;
		job->opts.fixed = true;
		return APP_OK;
	default:
		rc = app_device_option(&job->device, opt, arg);
		return rc > 0 ? APP_OK : APP_USAGE;
	}
}

static int
check(struct job *job, int argc, char **argv)
{
	if (argc - optind > 1) {
		app_error("one directory is enough; '%s' is left over", argv[optind + 1]);
		return APP_USAGE;
	}
	job->opts.dir = argc > optind ? argv[optind] : NULL;
	if (job->opts.fixed == (job->opts.dir != NULL)) {
		app_error(job->opts.fixed ? "--size and a directory exclude each other"
					  : "what to serve? name a directory, or --size BYTES");
		return APP_USAGE;
	}
	if (job->device.config.peer_ip != NULL) {
		app_error("--peer-ip is for the loop device, which corq httpd cannot use");
		return APP_USAGE;
	}
	if (app_device_is_loop(&job->device)) {
		app_error("the loop device has no way in; give --dev veth:IF or memif:ROLE,SOCKET "
			  "(corq ab without a URL brings its own server)");
		return APP_USAGE;
	}
	job->opts.close = job->device.close_given ? job->device.close : CORQ_CLOSE_FIRST;
	return APP_OK;
}

static int
parse(struct job *job, int argc, char **argv)
{
	int opt, rc = 0;

	app_device_init(&job->device);
	job->opts.port = 80;
	argc = app_device_split(&job->device, argc, argv);
	optind = 1;
	opterr = 0;
	while (rc == 0 && (opt = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
		if (opt == '?' || opt == ':') {
			app_bad_option(argc, argv, opt);
			return APP_USAGE;
		}
		rc = take_option(job, opt, optarg);
	}
	return rc != 0 ? rc : check(job, argc, argv);
}

/* ---- running ---- */

static const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void
say_ready(const struct job *job)
{
	struct corq_addr addr = corq_address(job->opts.inst, CORQ_SIDE_A, NULL);
	unsigned cores = corq_cores(job->opts.inst);
	char at[APP_ENDPOINT_TEXT], what[64], more[48] = "";
	uint64_t files, skipped;

	app_endpoint_text(&addr, job->opts.port, at);
	files = httpd_server_files(job->server, &skipped);
	if (job->opts.fixed)
		snprintf(what, sizeof(what), "%u byte%s for every path", job->opts.size,
			plural(job->opts.size));
	else
		snprintf(what, sizeof(what), "%llu file%s", (unsigned long long)files,
			plural(files));
	if (skipped != 0)
		snprintf(more, sizeof(more), ", %llu skipped", (unsigned long long)skipped);
	fprintf(app_json_text(&job->json),
		"corq httpd: listening on http://%s/ (%u core%s, %s%s)\n", at, cores, plural(cores),
		what, more);
	fflush(app_json_text(&job->json));
}

static int
start_core(struct corq_core *core, void *arg)
{
	struct job *job = arg;
	int rc;

	corq_core_set_user(core, &job->cores[corq_core_index(core)]);
	rc = httpd_core_start(job->server, core);
	if (rc != 0)
		atomic_store(&job->listen_error, rc);
	else if (atomic_fetch_add(&job->ready, 1) + 1 == corq_cores(job->opts.inst))
		say_ready(job);
	return rc;
}

static json_t *
count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *
make_json(const struct job *job, const struct httpd_counts *c)
{
	json_t *o = json_object(), *tcp = json_object();
	struct corq_stats stats;

	corq_stats(job->opts.inst, &stats);
	json_object_set_new(o, "schema", json_string("corq-httpd/1"));
	json_object_set_new(o, "connections", count(c->connections));
	json_object_set_new(o, "requests", count(c->requests));
	json_object_set_new(o, "ok", count(c->ok));
	json_object_set_new(o, "redirects", count(c->redirects));
	json_object_set_new(o, "client_errors", count(c->client_errors));
	json_object_set_new(o, "server_errors", count(c->server_errors));
	json_object_set_new(o, "cut_short", count(c->cut_short));
	json_object_set_new(o, "bytes_body", count(c->bytes_body - c->bytes_lost));
	json_object_set_new(o, "no_memory", count(c->no_memory));
	json_object_set_new(tcp, "retransmits", count(stats.segs_retransmitted));
	json_object_set_new(tcp, "resets_in", count(stats.rst_in));
	json_object_set_new(tcp, "resets_out", count(stats.rst_out));
	json_object_set_new(tcp, "rx_csum_partial",
		count(app_reason_count(job->opts.inst, "tcp_csum_partial")));
	json_object_set_new(tcp, "time_wait_now", count(stats.time_wait_live));
	json_object_set_new(tcp, "time_wait_recycled", count(stats.tw_recycled_syn));
	json_object_set_new(o, "tcp", tcp);
	return o;
}

static void
print_count(FILE *out, const char *before, uint64_t n, const char *what)
{
	fprintf(out, "%s%llu %s%s", before, (unsigned long long)n, what, plural(n));
}

static int
report(struct job *job)
{
	uint64_t partial = app_reason_count(job->opts.inst, "tcp_csum_partial");
	FILE *out = app_json_text(&job->json);
	struct httpd_counts c;

	httpd_server_counts(job->server, &c);
	print_count(out, "corq httpd: ", c.connections, "connection");
	print_count(out, ", ", c.requests, "request");
	fprintf(out, " (%llu ok", (unsigned long long)c.ok);
	print_count(out, ", ", c.redirects, "redirect");
	print_count(out, ", ", c.client_errors, "client error");
	print_count(out, ", ", c.server_errors, "server error");
	fprintf(out, "; %llu of them cut short)", (unsigned long long)c.cut_short);
	print_count(out, ", ", c.bytes_body - c.bytes_lost, "body byte");
	fputs(" acknowledged\n", out);
	if (partial != 0)
		fprintf(out, "rx_csum_partial: %llu\n", (unsigned long long)partial);
	if (c.no_memory + c.no_room != 0)
		app_error("%llu answers found no send memory, %llu no room for a header in pieces",
			(unsigned long long)c.no_memory, (unsigned long long)c.no_room);
	fflush(out);
	return job->json.out != NULL ? app_json_write(&job->json, make_json(job, &c)) : APP_OK;
}

static int
serve(struct job *job)
{
	char err[200];
	int rc;

	rc = app_json_open(&job->json, job->device.json);
	if (rc == 0)
		rc = app_device_start(&job->device, &job->opts.inst);
	if (rc != 0)
		return rc;
	if (httpd_server_create(&job->opts, &job->server, err, sizeof(err)) != 0) {
		app_error("%s", err);
		return APP_FAILED;
	}
	job->cores = calloc(corq_cores(job->opts.inst), sizeof(*job->cores));
	if (job->cores == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	running = job->opts.inst;
	app_catch_signals(on_signal);
	rc = corq_run(job->opts.inst, start_core, job);
	app_catch_signals(NULL);
	if (rc == 0)
		return report(job);
	if (atomic_load(&job->listen_error) != 0)
		app_error("cannot listen on port %u: %s", job->opts.port, strerror(-rc));
	else
		app_error("cannot run: %s", strerror(-rc));
	return APP_FAILED;
}

static int
run_httpd(int argc, char **argv)
{
	struct job *job = calloc(1, sizeof(*job));
	int rc;

	if (job == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	rc = parse(job, argc, argv);
	if (rc == 0)
		rc = serve(job);
	if (job->opts.inst != NULL)
		corq_end(job->opts.inst);
	app_json_close(&job->json);
	httpd_server_destroy(job->server);
	free(job->cores);
	free(job);
	return rc < 0 ? APP_OK : rc;
}

const struct app app_httpd = {
	.name = "httpd",
	.summary = "serve a directory, or a page of a given size",
	.run = run_httpd,
	.usage = usage,
};
