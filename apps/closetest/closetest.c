/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * closetest.c - `corq closetest`: sets a run up, runs its stages one after the other and reports.
 * Main thread.
 */
#include "closetest/figures.h"
#include "common/app.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void
prepare(struct closetest_run *run, const struct closetest_options *opts)
{
	struct closetest_step steps[CLOSETEST_STAGES];

	run->opts = opts;
	run->n = closetest_plan_steps(&opts->plan, steps);
	for (unsigned i = 0; i < run->n; i++) {
		struct closetest_stage *s = &run->stage[i];

		s->step = steps[i];
		s->tw_client = s->tw_server = s->packets = s->recycled = s->reused = s->evicted =
			s->syn_again = s->timeouts = -1;
		s->ports_total = s->ports_used = s->ports_waiting = s->ports_recycled =
			s->ports_refused = -1;
		corq_hist_init(&s->connect);
	}
}

static int
judge(const struct closetest_run *run)
{
	uint64_t tried = 0, failed = 0, no_port = 0;
	bool given_up = false;

	for (unsigned i = 0; i < run->n; i++) {
		tried += run->stage[i].tried;
		failed += closetest_failed(&run->stage[i]);
		no_port += run->stage[i].failed[CLOSETEST_NO_PORT];
		given_up |= run->stage[i].cut_short;
	}
	if (run->interrupted)
		app_error("interrupted; the figures are of the time until then");
	else if (given_up)
		; /* that line is out */
	else if (failed != 0)
		app_error("%" PRIu64 " of %" PRIu64 " connections failed, %" PRIu64
			  " of them for want of a local port (EADDRNOTAVAIL)%s",
			failed, tried, no_port,
			no_port != 0 && !run->opts->kernel
				? "; --timewait reuse, or a server with --close abort-if-empty, "
				  "avoids that"
				: "");
	return failed != 0 || run->interrupted || given_up ? APP_FAILED : APP_OK;
}

static int
run_and_report(struct closetest_run *run, struct app_json *json, int argc, char **argv)
{
	int rc, json_rc;

	rc = run->opts->kernel ? closetest_run_kernel(run) : closetest_run_corq(run);
	if (!run->stage[0].ran)
		return rc;
	closetest_report(run);
	app_flush();
	if (rc == APP_OK)
		rc = judge(run);
	if (json->out == NULL)
		return rc;
	json_rc = app_json_write(
		json, closetest_json_make(run, rc != APP_OK ? app_last_error() : NULL, argc, argv));
	return rc != APP_OK ? rc : json_rc;
}

static int
closetest_run(int argc, char **argv)
{
	struct closetest_options opts;
	struct closetest_run *run;
	struct app_json json = {0};
	int rc = closetest_options_parse(&opts, argc, argv);

	if (rc != 0)
		return rc > 0 ? rc : APP_OK;
	run = calloc(1, sizeof(*run));
	if (run == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	prepare(run, &opts);
	rc = app_json_open(&json, opts.device.json);
	if (rc == APP_OK) {
		run->out = app_json_text(&json);
		app_catch_signals(NULL);
		rc = run_and_report(run, &json, argc, argv);
	}
	app_json_close(&json);
	free(run);
	return rc;
}

const struct app app_closetest = {
	.name = "closetest",
	.summary = "a loop of connect and close: its TIME_WAITs, and when its ports end",
	.run = closetest_run,
	.usage = closetest_usage,
};
