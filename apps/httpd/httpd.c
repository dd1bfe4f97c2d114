/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * httpd.c - `corq httpd`: from the command line to the last line, around server.h. Main thread,
 * but start_core, which corq_run calls on each core.
 */
#include "common/addr.h"
#include "httpd/options.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct job {
	struct httpd_command command;
	struct httpd_server *server;
	struct app_core *cores;
	struct app_json json;
	_Atomic unsigned ready;
	_Atomic int listen_error;
};

static struct corq_instance *running;

static void
on_signal(int count)
{
	(void)count;
	if (running != NULL)
		corq_stop(running);
}

static void
say_ready(const struct job *job)
{
	const struct httpd_opts *opts = &job->command.opts;
	struct corq_addr addr = corq_address(opts->inst, CORQ_SIDE_A, NULL);
	unsigned cores = corq_cores(opts->inst);
	char at[APP_ENDPOINT_TEXT], what[64], more[48] = "";
	uint64_t files, skipped;

	app_endpoint_text(&addr, opts->port, at);
	files = httpd_server_files(job->server, &skipped);
	if (opts->fixed)
		snprintf(what, sizeof(what), "%u byte%s for every path", opts->size,
			httpd_plural(opts->size));
	else
		snprintf(what, sizeof(what), "%llu file%s", (unsigned long long)files,
			httpd_plural(files));
	if (skipped != 0)
		snprintf(more, sizeof(more), ", %llu skipped", (unsigned long long)skipped);
	fprintf(app_json_text(&job->json),
		"corq httpd: listening on http://%s/ (%u core%s, %s%s)\n", at, cores,
		httpd_plural(cores), what, more);
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
	else if (atomic_fetch_add(&job->ready, 1) + 1 == corq_cores(job->command.opts.inst))
		say_ready(job);
	return rc;
}

/* Before the device: DPDK ties this thread, and with it each that it starts, to one CPU. */
static int
start_log(struct job *job)
{
	unsigned cores = job->command.device.config.cores;
	char err[200];

	if (job->command.access_log == NULL)
		return APP_OK;
	if (httpd_log_start(job->command.access_log, cores != 0 ? cores : 1, &job->command.opts.log,
		    err, sizeof(err)) == 0)
		return APP_OK;
	app_error("%s", err);
	return APP_USAGE;
}

static int
prepare(struct job *job)
{
	struct httpd_opts *opts = &job->command.opts;
	char err[200];
	int rc;

	rc = app_json_open(&job->json, job->command.device.json);
	if (rc == 0)
		rc = start_log(job);
	if (rc == 0)
		rc = app_device_start(&job->command.device, &opts->inst);
	if (rc != 0)
		return rc;
	if (httpd_server_create(opts, &job->server, err, sizeof(err)) != 0) {
		app_error("%s", err);
		return APP_FAILED;
	}
	job->cores = calloc(corq_cores(opts->inst), sizeof(*job->cores));
	if (job->cores == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	return APP_OK;
}

static int
serve(struct job *job)
{
	int rc;

	running = job->command.opts.inst;
	app_catch_signals(on_signal);
	rc = corq_run(running, start_core, job);
	app_catch_signals(NULL);
	if (rc == 0)
		return APP_OK;
	if (atomic_load(&job->listen_error) != 0)
		app_error("cannot listen on port %u: %s", job->command.opts.port, strerror(-rc));
	else
		app_error("cannot run: %s", strerror(-rc));
	return APP_FAILED;
}

static int
run_job(struct job *job)
{
	struct httpd_log_figures log;
	struct httpd_counts counts;
	int rc = prepare(job);

	if (rc == 0)
		rc = serve(job);
	httpd_log_end(job->command.opts.log, &log);
	if (rc != 0)
		return rc;
	httpd_server_counts(job->server, &counts);
	return httpd_figures_report(&job->json, job->command.opts.inst, &counts, &log);
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
	rc = httpd_options_parse(&job->command, argc, argv);
	if (rc == 0)
		rc = run_job(job);
	if (job->command.opts.inst != NULL)
		corq_end(job->command.opts.inst);
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
	.usage = httpd_usage,
};
