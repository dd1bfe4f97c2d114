/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - the figures as JSON, as schema.json describes them. A figure that was not measured is
 * null, never 0. Main thread.
 */
#include "common/app.h"
#include "opensock/figures.h"

static json_t *
cycles(const struct opensock_side_figures *s)
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}};
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		double v = (double)corq_hist_percentile(&s->cycles, points[i].percent);

		app_json_put_real(
			o, points[i].name, s->cycles.count != 0 ? v / OPENSOCK_BATCH : -1);
	}
	return o;
}

static json_t *
spread(const struct opensock_spread *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "mean", json_real(s->mean));
	json_object_set_new(o, "min", json_real(s->min));
	json_object_set_new(o, "max", json_real(s->max));
	json_object_set_new(o, "sd", json_real(s->sd));
	return o;
}

static json_t *
side(const struct opensock_side_figures *s)
{
	json_t *o, *turns = json_array();

	if (s->n_turns == 0) {
		json_decref(turns);
		return json_null();
	}
	for (uint32_t i = 0; i < s->n_turns; i++)
		json_array_append_new(turns, json_real(s->turn[i].rate));
	o = json_object();
	app_json_put(o, "count", s->count);
	app_json_put(o, "count_asked", s->asked);
	json_object_set_new(
		o, "count_bound_by", s->bound[0] != '\0' ? json_string(s->bound) : json_null());
	app_json_put(o, "total", s->total);
	json_object_set_new(o, "seconds", json_real(s->seconds));
	app_json_put_real(o, "ops_per_second", s->rate);
	json_object_set_new(o, "ops_per_second_by_turn", turns);
	json_object_set_new(o, "ops_per_second_a_thread", spread(&s->thread));
	json_object_set_new(o, "cycles", cycles(s));
	app_json_put(o, "opened", s->opened);
	app_json_put(o, "closed", s->closed);
	app_json_put(o, "crossed", s->crossed);
	app_json_put(o, "failed", s->not_opened + s->not_closed);
	return o;
}

static json_t *
handles(const struct opensock_figures *f)
{
	json_t *o = json_object();

	app_json_put(o, "open_filled", f->filled.open);
	app_json_put(o, "slots_lent_filled", f->filled.blocks_lent * OPENSOCK_BLOCK);
	app_json_put(o, "open_after_loop", f->loop_end.open);
	app_json_put(o, "open_at_end", f->end.open);
	app_json_put(o, "open_detached", f->left.open);
	app_json_put(o, "blocks_lent_detached", f->left.blocks_lent);
	app_json_put(o, "stranded_detached", f->left.stranded);
	app_json_put(o, "threads_detached", f->left.threads);
	json_object_set_new(
		o, "resident_bytes", f->resident < 0 ? json_null() : json_integer(f->resident));
	return o;
}

static json_t *
environment(const struct opensock_figures *f, int argc, char **argv)
{
	json_t *o = json_object();

	json_object_set_new(o, "version", json_string(CORQ_VERSION));
	app_json_put_arguments(o, argc, argv);
	json_object_set_new(o, "tsc_hz", json_real(f->tsc_hz));
	app_json_put_machine(o);
	return o;
}

json_t *
opensock_json_make(const struct opensock_figures *f, int argc, char **argv)
{
	const struct opensock_options *opts = f->opts;
	bool corq = opts->use[OPENSOCK_CORQ];
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_string("corq-opensock/1"));
	json_object_set_new(o, "error", app_json_string(f->error));
	app_json_put(o, "threads", opts->threads);
	json_object_set_new(o, "allocation", json_string(opts->fast ? "fast" : "lowest"));
	json_object_set_new(o, "order", json_string(opensock_order_name(opts->order)));
	json_object_set_new(o, "holes", json_boolean(opts->holes));
	app_json_put(o, "cross_percent", opts->cross);
	json_object_set_new(o, "kernel_fill", json_string(opts->dup ? "dup" : "socket"));
	json_object_set_new(o, "corq", side(&f->side[OPENSOCK_CORQ]));
	json_object_set_new(o, "kernel", side(&f->side[OPENSOCK_KERNEL]));
	app_json_put_real(o, "ratio", f->ratio);
	app_json_put_real(o, "bytes_per_handle", f->bytes_per_handle);
	json_object_set_new(o, "cycles", cycles(&f->side[corq ? OPENSOCK_CORQ : OPENSOCK_KERNEL]));
	json_object_set_new(o, "handles", corq ? handles(f) : json_null());
	json_object_set_new(o, "adds_up", json_boolean(f->adds_up));
	json_object_set_new(o, "environment", environment(f, argc, argv));
	return o;
}
