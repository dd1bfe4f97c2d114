/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ab.c - `corq ab`: sets a run up, runs it and reports. Main thread, but start_core, which
 * corq_run calls on each core.
 *
 * On the loop device the target is an embedded httpd on the other side's cores.
 */
#include "ab/figures.h"
#include "ab/report.h"
#include "common/addr.h"
#include "httpd/server.h"

#include <corq/instance.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct job {
	struct ab_options opts;
	struct ab_run run;
	struct httpd_server *server; /* loop only */
	struct app_core *cores;      /* one a core of the instance */
	struct app_json json;
	char endpoint[APP_ENDPOINT_TEXT]; /* target and port, as text */
	char host[APP_HOST_MAX + 1];
	const char *path;
	char *request;
	FILE *out; /* where text for people goes */
};

static struct corq_instance *running;

/* The first signal is seen by the generators' hooks, which report; the second ends it. */
static void
on_signal(int count)
{
	if (count > 1 && running != NULL)
		corq_stop(running);
}

/* ---- setting up ---- */

static bool
address_in(const struct corq_instance *inst, enum corq_side side, const struct corq_addr *addr)
{
	uint64_t count, low, want;
	struct corq_addr first = corq_address(inst, side, &count);

	if (first.q[0] != addr->q[0])
		return false;
	low = be64toh(first.q[1]);
	want = be64toh(addr->q[1]);
	return want >= low && want - low < count;
}

static int
find_target(struct job *job)
{
	struct ab_options *opts = &job->opts;
	struct ab_run *run = &job->run;
	bool loop = app_device_is_loop(&opts->device);
	enum corq_side side = CORQ_SIDE_B;
	char text[APP_ADDR_TEXT];
	const char *error;

	if (!opts->url_given) {
		run->target = corq_address(run->inst, side, NULL);
		run->port = 80;
		app_addr_text(&run->target, job->host);
		opts->url.bracketed = !app_addr_is_v4(&run->target);
		job->path = "/";
		app_endpoint_text(&run->target, run->port, job->endpoint);
		return APP_OK;
	}
	snprintf(job->host, sizeof(job->host), "%s", opts->url.host);
	run->port = opts->url.port;
	job->path = opts->url.path;
	error = app_addr_resolve(opts->url.host, &run->target);
	if (error != NULL) {
		app_error("host '%s': %s; give its IPv4 address if no name server is in reach",
			opts->url.host, error);
		return APP_FAILED;
	}
	app_endpoint_text(&run->target, run->port, job->endpoint);
	if (loop && !address_in(run->inst, side, &run->target)) {
		struct corq_addr first = corq_address(run->inst, side, NULL);

		app_addr_text(&first, text);
		app_error("'%s' is not on the loop device, whose server is %s; leave the URL out, "
			  "or name a device with --dev",
			opts->url.host, text);
		return APP_USAGE;
	}
	if (!loop && address_in(run->inst, CORQ_SIDE_A, &run->target)) {
		app_error("'%s' is our own address (--ip): nothing else may have it, and a server "
			  "there cannot be reached; give us another one",
			opts->url.host);
		return APP_USAGE;
	}
	return APP_OK;
}

static int
build_request(struct job *job)
{
	struct ab_run *run = &job->run;
	char bracketed[APP_HOST_MAX + 3];
	size_t len;
	char *bytes;

	snprintf(bracketed, sizeof(bracketed), job->opts.url.bracketed ? "[%s]" : "%s", job->host);
	bytes = ab_request_build(&job->opts, bracketed, run->port, job->path, &len);
	if (bytes == NULL)
		goto no_memory;
	/* Registered memory is DMA memory: whole pages of its own. */
	job->request = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	if (job->request == NULL) {
		free(bytes);
		goto no_memory;
	}
	memcpy(job->request, bytes, len);
	free(bytes);
	run->request = job->request;
	run->request_len = len;
	if (corq_mem_register(run->inst, job->request, (len + 4095) / 4096 * 4096, NULL, NULL,
		    &run->request_mem) == 0)
		return APP_OK;
	app_error("cannot register %zu bytes of request with the device", len);
	return APP_FAILED;
no_memory:
	app_error("not enough memory for the request");
	return APP_FAILED;
}

static int
embed_server(struct job *job)
{
	struct httpd_opts opts = {
		.inst = job->run.inst,
		.port = job->run.port,
		.close = CORQ_CLOSE_FIRST,
		.size = job->opts.page_size,
		.fixed = true,
	};
	char err[200];

	if (httpd_server_create(&opts, &job->server, err, sizeof(err)) == 0)
		return APP_OK;
	app_error("embedded server: %s", err);
	return APP_FAILED;
}

static int
make_generators(struct job *job)
{
	struct ab_run *run = &job->run;
	unsigned cores = corq_cores(run->inst), n = 0;

	job->cores = calloc(cores, sizeof(*job->cores));
	run->cores = calloc(cores, sizeof(struct ab_core *));
	if (job->cores == NULL || run->cores == NULL)
		goto no_memory;
	for (unsigned i = 0; i < cores; i++) {
		enum corq_side side = corq_core_side(corq_core_at(run->inst, i));

		n += side != CORQ_SIDE_B;
		run->servers += job->server != NULL && side != CORQ_SIDE_A;
	}
	run->generators = n < job->opts.concurrency ? n : job->opts.concurrency;
	for (unsigned i = 0, g = 0; i < cores && g < run->generators; i++) {
		if (corq_core_side(corq_core_at(run->inst, i)) == CORQ_SIDE_B)
			continue;
		if (ab_core_create(run, g, run->generators, &run->cores[g]) != 0)
			goto no_memory;
		job->cores[i].ab = run->cores[g++];
	}
	return APP_OK;
no_memory:
	app_error("not enough memory for -c %u", job->opts.concurrency);
	return APP_FAILED;
}

static void
init_run(struct job *job)
{
	struct ab_run *run = &job->run;
	uint64_t n = job->opts.requests;

	run->opts = &job->opts;
	atomic_init(&run->document_length, -1);
	if (!job->opts.quiet && n > 150)
		run->heartbeat = n / 10 < 100 ? 100 : n / 10;
}

static void
size_pools(struct ab_options *opts)
{
	struct corq_config *config = &opts->device.config;
	uint32_t cores = config->cores == 0 ? 1 : config->cores;
	uint32_t want = 2 * (opts->concurrency / cores + 1);

	if (config->max_conns != 0)
		return;
	/* The closing connections of a slot stand beside its open one. */
	for (uint32_t size = 65536; size < want; size *= 2)
		config->max_conns = size * 2;
}

static int
set_up(struct job *job)
{
	int rc;

	size_pools(&job->opts);
	rc = app_device_start(&job->opts.device, &job->run.inst);
	if (rc != 0)
		return rc;
	init_run(job);
	rc = find_target(job);
	if (rc == 0)
		rc = build_request(job);
	if (rc == 0 && app_device_is_loop(&job->opts.device))
		rc = embed_server(job);
	if (rc == 0)
		rc = make_generators(job);
	return rc;
}

/* ---- running ---- */

static int
start_core(struct corq_core *core, void *arg)
{
	struct job *job = arg;
	struct app_core *mine = &job->cores[corq_core_index(core)];
	int rc = 0;

	corq_core_set_user(core, mine);
	if (job->server != NULL && corq_core_side(core) != CORQ_SIDE_A) {
		rc = httpd_core_start(job->server, core);
		atomic_fetch_add_explicit(&job->run.servers_ready, 1, memory_order_release);
	}
	if (rc == 0 && mine->ab != NULL)
		ab_core_start(mine->ab, core);
	return rc;
}

/* ---- reporting ---- */

static void
print_block(struct job *job, const struct ab_figures *f)
{
	struct ab_run *run = &job->run;
	int64_t length = atomic_load(&run->document_length);
	struct ab_report report = {
		.server = run->server_software,
		.host = job->host,
		.path = job->path,
		.port = run->port,
		.document_length = length < 0 ? 0 : (uint64_t)length,
		.any_length = job->opts.any_length,
		.keepalive = job->opts.keepalive,
		.send_body = job->opts.body != NULL,
		.concurrency = job->opts.concurrency,
		.seconds = f->seconds,
		.done = f->done,
		.bad = f->bad,
		.bad_connect = f->bad_connect,
		.bad_receive = f->bad_receive,
		.bad_length = f->bad_length,
		.bad_except = f->bad_except,
		.write_errors = f->write_errors,
		.not_2xx = f->not_2xx,
		.kept_alive = f->kept_alive,
		.bytes_read = f->bytes_read,
		.bytes_posted = f->bytes_posted,
		.bytes_body = f->bytes_body,
		.times = f->times,
	};

	fputs("\n\n", job->out);
	ab_report_print(job->out, &report);
}

/* A hint that is worth more than the rest of the line: the other end's device is not there. */
static const char *
offload_hint(const struct ab_figures *f)
{
	return f->csum_partial != 0
		       ? "its TCP checksums are unfinished: turn its offloads off (ethtool -K IF "
			 "tx off)"
		       : "";
}

static const char *
connect_hint(int error)
{
	if (error == ECONNREFUSED)
		return ": nothing listens there";
	if (error == EHOSTUNREACH)
		return ": no host answers to this address; is it up, and on this link or behind "
		       "--gw?";
	if (error == ENETUNREACH)
		return ": it is not in the network of --ip and there is no --gw";
	return "";
}

static void
explain_silence(const struct job *job, const struct ab_figures *f)
{
	static const char expired[] = "apr_pollset_poll: The timeout specified has expired (70007)";
	const char *hint = offload_hint(f);

	if (f->lat[AB_LAT_CONNECT].count == 0)
		app_error("%s: no connection to %s within %u s; %s", expired, job->endpoint,
			job->opts.timeout_s, *hint != '\0' ? hint : "is it up? (-s waits longer)");
	else
		app_error("%s: %s sent nothing for %u s; %s", expired, job->endpoint,
			job->opts.timeout_s, *hint != '\0' ? hint : "is it up? (-s waits longer)");
}

/* Why the run stopped before its end: one line, and ab's exit code (the error's number). */
static int
explain_stop(const struct job *job, const struct ab_figures *f)
{
	const struct ab_run *run = &job->run;
	int error = atomic_load(&run->stop_errno);

	if (run->heartbeat == 0)
		fputc('\n', job->out);
	switch (atomic_load(&run->stop)) {
	case AB_STOP_RECEIVE:
		app_error("apr_socket_recv: %s (%d): %s ended a connection before its response "
			  "was complete; -r goes on",
			strerror(error), error, job->endpoint);
		break;
	case AB_STOP_CONNECT:
		app_error("apr_socket_recv: %s (%d): cannot connect to %s%s", strerror(error),
			error, job->endpoint, connect_hint(error));
		break;
	case AB_STOP_PORTS:
		app_error("no local port was free for %u s: %llu connects refused; widen --ip, or "
			  "let the server close first (--close after-peer)",
			run->opts->timeout_s, (unsigned long long)f->own.ports_refused);
		error = APP_FAILED;
		break;
	default:
		explain_silence(job, f);
		error = APP_FAILED;
		break;
	}
	/* As ab, but those that failed are not called completed. */
	if (f->good != 0)
		fprintf(job->out, "Total of %llu requests completed\n",
			(unsigned long long)f->good);
	return error > 0 && error < 256 ? error : APP_FAILED;
}

static int
judge_responses(const struct job *job, const struct ab_figures *f)
{
	if (f->garbage != 0) {
		app_error("%llu of %llu responses were not HTTP; is %s a web server?",
			(unsigned long long)f->garbage, (unsigned long long)f->done, job->endpoint);
		return APP_FAILED;
	}
	if (f->cut_short != 0) {
		app_error("%llu of %llu responses were cut short: the server closed before the end "
			  "that it had announced",
			(unsigned long long)f->cut_short, (unsigned long long)f->done);
		return APP_FAILED;
	}
	if (f->timeouts != 0 || f->bad_connect != 0 || f->bad_receive != 0) {
		const char *hint = offload_hint(f);

		app_error(
			"%llu connects failed, %llu responses failed, %llu of both by timeout%s%s",
			(unsigned long long)f->bad_connect, (unsigned long long)f->bad_receive,
			(unsigned long long)f->timeouts, *hint != '\0' ? "; " : "", hint);
		return APP_FAILED;
	}
	return APP_OK;
}

static int
write_json(struct job *job, const struct ab_figures *f, int rc, int argc, char **argv)
{
	const char *error = rc != APP_OK ? app_last_error() : NULL;

	if (job->json.out == NULL)
		return rc;
	if (atomic_load(&job->run.stop) == AB_STOP_SIGNAL && error == NULL)
		error = "interrupted by a signal";
	if (app_json_write(&job->json, ab_json_make(f, error, argc, argv)) != 0 && rc == APP_OK)
		return APP_FAILED;
	return rc;
}

static int
report(struct job *job, int argc, char **argv)
{
	struct ab_run *run = &job->run;
	struct ab_figures figures;
	int stop = atomic_load(&run->stop), rc;

	if (ab_figures_collect(run, &figures) != 0) {
		ab_figures_free(&figures);
		app_error("not enough memory for the report");
		return APP_FAILED;
	}
	ab_progress(run, figures.done);
	if (stop >= AB_STOP_RECEIVE) {
		rc = explain_stop(job, &figures);
	} else {
		if (run->heartbeat != 0)
			fprintf(stderr, "Finished %llu requests\n",
				(unsigned long long)figures.done);
		else
			fputs("..done\n", job->out);
		print_block(job, &figures);
		ab_extension_print(job->out, &figures);
		app_flush();
		rc = judge_responses(job, &figures);
	}
	rc = write_json(job, &figures, rc, argc, argv);
	ab_figures_free(&figures);
	return stop == AB_STOP_SIGNAL ? APP_FAILED : rc;
}

static int
run_job(struct job *job, int argc, char **argv)
{
	int rc;

	fprintf(job->out, "This is corq ab, version " CORQ_VERSION "\n\n");
	fprintf(job->out, "Benchmarking %s (be patient)%s", job->host,
		job->run.heartbeat != 0 ? "\n" : "...");
	if (job->opts.verbosity >= 2)
		fprintf(job->out, "INFO: %s header == \n---\n%.*s\n---\n",
			ab_options_method(&job->opts),
			(int)(job->run.request_len - job->opts.body_len), job->request);
	app_flush();
	running = job->run.inst;
	app_catch_signals(on_signal);
	rc = corq_run(job->run.inst, start_core, job);
	app_catch_signals(NULL);
	if (rc != 0) {
		app_error("cannot start: %s", strerror(-rc));
		return APP_FAILED;
	}
	return report(job, argc, argv);
}

static void
clean_up(struct job *job)
{
	if (job->run.inst != NULL)
		corq_end(job->run.inst);
	app_json_close(&job->json);
	httpd_server_destroy(job->server);
	for (unsigned i = 0; i < job->run.generators; i++)
		ab_core_destroy(job->run.cores[i]);
	free(job->run.cores);
	free(job->cores);
	free(job->request);
	free(job->opts.headers);
	free(job->opts.body);
	free(job);
}

static int
run_ab(int argc, char **argv)
{
	struct job *job = calloc(1, sizeof(*job));
	int rc;

	if (job == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	rc = ab_options_parse(&job->opts, argc, argv);
	if (rc == 0)
		rc = app_json_open(&job->json, job->opts.device.json);
	job->out = app_json_text(&job->json);
	if (rc == 0)
		rc = set_up(job);
	if (rc == 0)
		rc = run_job(job, argc, argv);
	clean_up(job);
	return rc < 0 ? APP_OK : rc;
}

const struct app app_ab = {
	.name = "ab",
	.summary = "load an HTTP server as ab does, report as ab does and more",
	.run = run_ab,
	.usage = ab_options_usage,
};
