/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - the figures as JSON, as schema.json describes them. A figure that was not measured is
 * null, never 0. Main thread.
 */
#include "common/app.h"
#include "opensock/figures.h"

#include <sys/utsname.h>
#include <unistd.h>

static json_t *
whole(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *
real(double value)
{
	return value < 0 ? json_null() : json_real(value);
}

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

		json_object_set_new(
			o, points[i].name, real(s->cycles.count != 0 ? v / OPENSOCK_BATCH : -1));
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
	json_object_set_new(o, "count", whole(s->count));
	json_object_set_new(o, "count_asked", whole(s->asked));
	json_object_set_new(
		o, "count_bound_by", s->bound[0] != '\0' ? json_string(s->bound) : json_null());
	json_object_set_new(o, "total", whole(s->total));
	json_object_set_new(o, "seconds", json_real(s->seconds));
	json_object_set_new(o, "ops_per_second", real(s->rate));
	json_object_set_new(o, "ops_per_second_by_turn", turns);
	json_object_set_new(o, "ops_per_second_a_thread", spread(&s->thread));
	json_object_set_new(o, "cycles", cycles(s));
	json_object_set_new(o, "opened", whole(s->opened));
	json_object_set_new(o, "closed", whole(s->closed));
	json_object_set_new(o, "crossed", whole(s->crossed));
	json_object_set_new(o, "failed", whole(s->not_opened + s->not_closed));
	return o;
}

static json_t *
handles(const struct opensock_figures *f)
{
	json_t *o = json_object();

	json_object_set_new(o, "open_filled", whole(f->filled.open));
	json_object_set_new(o, "slots_lent_filled", whole(f->filled.blocks_lent * 4096));
	json_object_set_new(o, "open_after_loop", whole(f->loop_end.open));
	json_object_set_new(o, "open_at_end", whole(f->end.open));
	json_object_set_new(o, "open_detached", whole(f->left.open));
	json_object_set_new(o, "blocks_lent_detached", whole(f->left.blocks_lent));
	json_object_set_new(o, "stranded_detached", whole(f->left.stranded));
	json_object_set_new(o, "threads_detached", whole(f->left.threads));
	json_object_set_new(
		o, "resident_bytes", f->resident < 0 ? json_null() : json_integer(f->resident));
	return o;
}

static json_t *
environment(const struct opensock_figures *f, int argc, char **argv)
{
	json_t *o = json_object(), *args = json_array();
	char host[256] = "";
	struct utsname name;

	for (int i = 0; i < argc; i++)
		json_array_append_new(args, json_string(argv[i]));
	gethostname(host, sizeof(host) - 1);
	uname(&name);
	json_object_set_new(o, "version", json_string(CORQ_VERSION));
	json_object_set_new(o, "arguments", args);
	json_object_set_new(o, "tsc_hz", json_real(f->tsc_hz));
	json_object_set_new(o, "cpus", whole((uint64_t)sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(o, "kernel", json_string(name.release));
	json_object_set_new(o, "host", json_string(host));
	return o;
}

json_t *
opensock_json_make(const struct opensock_figures *f, int argc, char **argv)
{
	const struct opensock_options *opts = f->opts;
	bool corq = opts->use[OPENSOCK_CORQ];
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_string("corq-opensock/1"));
	json_object_set_new(o, "error", f->error != NULL ? json_string(f->error) : json_null());
	json_object_set_new(o, "threads", whole(opts->threads));
	json_object_set_new(o, "allocation", json_string(opts->fast ? "fast" : "lowest"));
	json_object_set_new(o, "order", json_string(opensock_order_name(opts->order)));
	json_object_set_new(o, "holes", json_boolean(opts->holes));
	json_object_set_new(o, "cross_percent", whole(opts->cross));
	json_object_set_new(o, "kernel_fill", json_string(opts->dup ? "dup" : "socket"));
	json_object_set_new(o, "corq", side(&f->side[OPENSOCK_CORQ]));
	json_object_set_new(o, "kernel", side(&f->side[OPENSOCK_KERNEL]));
	json_object_set_new(o, "ratio", real(f->ratio));
	json_object_set_new(o, "bytes_per_handle", real(f->bytes_per_handle));
	json_object_set_new(o, "cycles", cycles(&f->side[corq ? OPENSOCK_CORQ : OPENSOCK_KERNEL]));
	json_object_set_new(o, "handles", corq ? handles(f) : json_null());
	json_object_set_new(o, "adds_up", json_boolean(f->adds_up));
	json_object_set_new(o, "environment", environment(f, argc, argv));
	return o;
}
