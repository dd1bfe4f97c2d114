/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - the figures as JSON, as schema.json describes them. What this backend cannot tell is
 * null. Main thread.
 */
#include "closetest/figures.h"
#include "common/app.h"

static void
put_counts(json_t *o, const struct closetest_stage *s)
{
	json_t *failed = json_object();

	app_json_put(o, "connections", s->tried);
	app_json_put(o, "good", s->good);
	for (int i = 0; i < CLOSETEST_FAILURES; i++)
		app_json_put(
			failed, closetest_failure_name((enum closetest_failure)i), s->failed[i]);
	json_object_set_new(o, "failed", failed);
	json_object_set_new(o, "first_no_port",
		s->first_no_port != 0 ? json_integer((json_int_t)s->first_no_port) : json_null());
	app_json_put(o, "reset_after_open", s->reset_after);
	json_object_set_new(o, "given_up", json_boolean(s->cut_short));
}

static json_t *
connect_times(const struct corq_hist *h)
{
	json_t *o = json_object();
	bool any = h->count != 0;

	app_json_put(o, "count", h->count);
	app_json_put_real(o, "p50", any ? (double)corq_hist_percentile(h, 50) / 1e3 : -1);
	app_json_put_real(o, "p99", any ? (double)corq_hist_percentile(h, 99) / 1e3 : -1);
	app_json_put_real(o, "p999", any ? (double)corq_hist_percentile(h, 99.9) / 1e3 : -1);
	app_json_put_real(o, "max", any ? (double)h->max / 1e3 : -1);
	return o;
}

static json_t *
time_wait(const struct closetest_run *run, const struct closetest_stage *s)
{
	json_t *o = json_object();

	app_json_put_real(o, "entered_client", s->tw_client);
	app_json_put_real(o, "entered_server", s->tw_server);
	app_json_put(o, "before", s->tw_before);
	app_json_put(o, "now", s->tw_now);
	app_json_put(o, "peak", s->tw_peak);
	app_json_put(o, "peak_bytes", closetest_bytes(run, s));
	app_json_put_real(o, "recycled", s->recycled);
	app_json_put_real(o, "reused", s->reused);
	app_json_put_real(o, "evicted", s->evicted);
	return o;
}

static json_t *
ports(const struct closetest_stage *s)
{
	json_t *o = json_object();

	app_json_put_real(o, "total", s->ports_total);
	app_json_put_real(o, "used", s->ports_used);
	app_json_put_real(o, "waiting", s->ports_waiting);
	app_json_put_real(o, "recycled", s->ports_recycled);
	app_json_put_real(o, "refused", s->ports_refused);
	return o;
}

static json_t *
stage(const struct closetest_run *run, const struct closetest_stage *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "part", json_string(closetest_part_name(s->step.part)));
	json_object_set_new(o, "close",
		s->step.close_known ? json_string(closetest_policy_name(s->step.close))
				    : json_null());
	app_json_put(o, "round", s->step.round);
	json_object_set_new(o, "target", json_string(s->target));
	put_counts(o, s);
	json_object_set_new(o, "seconds", json_real((double)s->net_ns / 1e9));
	json_object_set_new(o, "connect_us", connect_times(&s->connect));
	json_object_set_new(o, "time_wait", time_wait(run, s));
	json_object_set_new(o, "ports", ports(s));
	app_json_put_real(o, "packets", s->packets);
	app_json_put_real(o, "syn_retransmits", s->syn_again);
	app_json_put_real(o, "timeouts", s->timeouts);
	return o;
}

json_t *
closetest_json_make(const struct closetest_run *run, const char *error, int argc, char **argv)
{
	json_t *o = json_object(), *stages = json_array(), *env = json_object();

	json_object_set_new(o, "schema", json_string("corq-closetest/1"));
	json_object_set_new(o, "error", app_json_string(error));
	json_object_set_new(o, "backend", json_string(run->opts->kernel ? "kernel" : "corq"));
	json_object_set_new(
		o, "client", json_string(closetest_policy_name(run->opts->plan.client)));
	app_json_put(o, "record_bytes", run->record_bytes);
	app_json_put(o, "table_bytes", run->table_bytes);
	for (unsigned i = 0; i < run->n; i++) {
		if (run->stage[i].ran)
			json_array_append_new(stages, stage(run, &run->stage[i]));
	}
	json_object_set_new(o, "stages", stages);
	json_object_set_new(env, "version", json_string(CORQ_VERSION));
	app_json_put_arguments(env, argc, argv);
	app_json_put_machine(env);
	json_object_set_new(o, "environment", env);
	return o;
}
