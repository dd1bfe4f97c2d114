/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ab.c - `corq ab`: sets a run up, runs it and reports. Main thread, but start_core, which
 * corq_run calls on each core.
 *
 * On the loop device the target is an embedded httpd on the other side's cores.
 */
#include "ab/figures.h"
#include "ab/outcome.h"
#include "ab/progress.h"
#include "ab/report.h"
#include "ab/sizes.h"
#include "ab/tables.h"
#include "ab/target.h"
#include "common/cpu.h"
#include "httpd/server.h"

#include <corq/instance.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	struct ab_options opts;
	struct ab_sizes sizes;
	struct ab_run run;
	struct httpd_server *server; /* loop only */
	struct app_core *cores;      /* one a core of the instance */
	struct app_json json;
	struct app_out csv, gnuplot;
	struct ab_target to;
	char *request;
	FILE *out; /* where text for people goes */
};

static struct ab_run *volatile running; /* while corq_run is at work */

/* In a run the first signal makes the generators' hooks end it, the second resets all connections
 * at once; both report. Before and after a run the first is remembered. One more is the end. */
static void
on_signal(int count)
{
	struct ab_run *run = running;

	if (count > (run != NULL ? 2 : 1)) {
		app_die();
	} else if (run != NULL) {
		ab_run_stop(run, AB_STOP_SIGNAL, 0);
		if (count == 2)
			corq_stop(run->inst);
	}
}

/* ---- setting up ---- */

/* The port in the report and in Host is the URL's, also through a proxy. */
static uint16_t
named_port(const struct job *job)
{
	return job->opts.url_text != NULL ? job->opts.url.port : job->run.port;
}

static int
build_request(struct job *job)
{
	struct ab_run *run = &job->run;
	char bracketed[APP_HOST_MAX + 3];
	size_t len;
	char *bytes;

	snprintf(bracketed, sizeof(bracketed), job->opts.url.bracketed ? "[%s]" : "%s",
		job->to.host);
	bytes = ab_request_build(&job->opts, bracketed, named_port(job), job->to.path, &len);
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
		.idle_s = 3600, /* connections are kept until we close them */
		.max_conns = job->opts.device.config.max_conns,
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
	run->server_cpus = calloc(cores, sizeof(*run->server_cpus));
	if (job->cores == NULL || run->cores == NULL || run->server_cpus == NULL)
		goto no_memory;
	for (unsigned i = 0; i < cores; i++)
		run->server_cpus[i] = (struct ab_server_cpu){-1, -1};
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

	run->opts = &job->opts;
	run->text = job->out;
	atomic_init(&run->document_length, -1);
	ab_progress_choose(run);
}

static int
set_up(struct job *job)
{
	uint64_t addresses;
	int rc;

	rc = ab_sizes_apply(&job->opts, app_device_is_loop(&job->opts.device), &job->sizes);
	if (rc == 0)
		rc = app_device_start(&job->opts.device, &job->run.inst);
	if (rc != 0)
		return rc;
	corq_address(job->run.inst, CORQ_SIDE_A, &addresses);
	rc = ab_sizes_check(&job->opts, addresses);
	init_run(job);
	if (rc == 0)
		rc = ab_target_find(&job->run, &job->opts, &job->to);
	if (rc == 0)
		rc = ab_target_local(&job->run);
	if (rc == 0)
		rc = build_request(job);
	if (rc == 0 && app_device_is_loop(&job->opts.device))
		rc = embed_server(job);
	if (rc == 0)
		rc = make_generators(job);
	return rc;
}

/* ---- running ---- */

static void
watch_cpu(struct ab_server_cpu *cpu)
{
	cpu->fd = app_cpu_open();
	cpu->first = app_cpu_waited(cpu->fd);
}

static int
start_core(struct corq_core *core, void *arg)
{
	struct job *job = arg;
	struct app_core *mine = &job->cores[corq_core_index(core)];
	int rc = 0;

	corq_core_set_user(core, mine);
	if (job->server != NULL && corq_core_side(core) != CORQ_SIDE_A) {
		rc = httpd_core_start(job->server, core);
		watch_cpu(&job->run.server_cpus[corq_core_index(core)]);
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
		.host = job->to.host,
		.path = job->to.path,
		.port = named_port(job),
		.document_length = length < 0 ? 0 : (uint64_t)length,
		.any_length = job->opts.any_length,
		.keepalive = job->opts.keepalive,
		.send_body = job->opts.body != NULL,
		.no_percentages = job->opts.no_percentages,
		.no_deviation = job->opts.no_deviation,
		.table_attrs = job->opts.table_attrs,
		.row_attrs = job->opts.row_attrs,
		.cell_attrs = job->opts.cell_attrs,
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
	if (!job->opts.html) {
		ab_report_print(job->out, &report);
		ab_extension_print(job->out, f);
		return;
	}
	ab_html_print(job->out, &report);
	fputs("<pre>", job->out);
	ab_extension_print(job->out, f);
	fputs("</pre>\n", job->out);
}

static int
write_tables(struct job *job, const struct ab_figures *f)
{
	struct ab_run *run = &job->run;
	struct ab_record_list lists[APP_CORES_MAX];
	int rc = 0;

	if (job->csv.file != NULL) {
		if (f->samples_short)
			fprintf(stderr, "corq ab: note: -e is from the histogram (within 3.2 %%): "
					"more requests than exact times are kept of\n");
		rc = ab_csv_write(&job->csv, &f->times, f->done);
	}
	if (job->gnuplot.file == NULL)
		return rc;
	for (unsigned i = 0; i < run->generators; i++) {
		lists[i].records = run->cores[i]->records;
		lists[i].count = run->cores[i]->record_count;
	}
	if (ab_gnuplot_write(&job->gnuplot, lists, run->generators) != APP_OK)
		rc = APP_FAILED;
	return rc;
}

static int
write_json(struct job *job, const struct ab_figures *f, int rc, int argc, char **argv)
{
	const char *error = rc != APP_OK ? app_last_error() : NULL;

	if (job->json.out == NULL)
		return rc;
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
	if (stop >= AB_STOP_RECEIVE) {
		rc = ab_outcome_stopped(run, &figures, job->to.endpoint, job->out);
	} else {
		if (run->heartbeat != 0 && stop != AB_STOP_SIGNAL)
			fprintf(stderr, "Finished %llu requests\n",
				(unsigned long long)figures.done);
		else if (run->heartbeat == 0 && !run->bar && stop != AB_STOP_SIGNAL)
			fputs("..done\n", job->out);
		print_block(job, &figures);
		app_flush();
		rc = write_tables(job, &figures);
		if (rc == APP_OK)
			rc = ab_outcome_judge(run, &figures, job->to.endpoint);
	}
	rc = write_json(job, &figures, rc, argc, argv);
	ab_figures_free(&figures);
	return rc;
}

static void
print_banner(const struct job *job)
{
	const struct ab_options *opts = &job->opts;

	if (opts->html) {
		fputs("<p>\n This is corq ab, version " CORQ_VERSION "<br>\n</p>\n<p>\n", job->out);
		return;
	}
	fputs("This is corq ab, version " CORQ_VERSION "\n\n", job->out);
	fprintf(job->out, "Benchmarking %s ", job->to.host);
	if (opts->via_proxy)
		fprintf(job->out, "[through %s:%u] ", opts->proxy.host, opts->proxy.port);
	fprintf(job->out, "(be patient)%s", job->run.heartbeat != 0 || job->run.bar ? "\n" : "...");
}

static int
run_job(struct job *job, int argc, char **argv)
{
	struct ab_progress *progress;
	int rc;

	running = &job->run;
	print_banner(job);
	if (job->opts.verbosity >= 2)
		fprintf(job->out, "INFO: %s header == \n---\n%.*s\n---\n",
			ab_options_method(&job->opts),
			(int)(job->run.request_len - job->opts.body_len), job->request);
	app_flush();
	progress = ab_progress_start(&job->run);
	rc = corq_run(job->run.inst, start_core, job);
	running = NULL;
	ab_progress_stop(progress);
	if (rc != 0) {
		app_error("cannot start: %s", strerror(-rc));
		return APP_FAILED;
	}
	return report(job, argc, argv);
}

static void
close_cpus(const struct ab_run *run)
{
	for (unsigned i = 0; run->server_cpus != NULL && i < corq_cores(run->inst); i++) {
		if (run->server_cpus[i].fd >= 0)
			close(run->server_cpus[i].fd);
	}
	free(run->server_cpus);
}

static void
clean_up(struct job *job)
{
	close_cpus(&job->run);
	if (job->run.inst != NULL)
		corq_end(job->run.inst);
	app_json_close(&job->json);
	httpd_server_destroy(job->server);
	for (unsigned i = 0; i < job->run.generators; i++)
		ab_core_destroy(job->run.cores[i]);
	free(job->run.cores);
	free(job->cores);
	free(job->request);
	app_out_drop(&job->csv);
	app_out_drop(&job->gnuplot);
	ab_options_free(&job->opts);
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
		app_catch_signals(on_signal);
	if (rc == 0)
		rc = app_json_open(&job->json, job->opts.device.json);
	job->out = app_json_text(&job->json);
	if (rc == 0)
		rc = ab_tables_open(&job->csv, job->opts.csv, &job->gnuplot, job->opts.gnuplot,
			&job->json.file);
	if (rc == 0)
		rc = set_up(job);
	if (rc == 0 && app_signals() != 0) {
		app_error("interrupted before the run");
		rc = APP_FAILED;
	}
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
