/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - the figures as JSON, as schema.json describes them. A figure that was not measured is
 * null, never 0.
 */
#include "ab/figures.h"
#include "ab/hints.h"
#include "common/addr.h"

#include <corq/instance.h>

static json_t *
latency(const struct corq_hist *h)
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}, {"p9999", 99.99}};
	json_t *o = json_object();
	bool some = h->count != 0;

	app_json_put_real(o, "min", some ? (double)h->min / 1000 : -1);
	app_json_put_real(o, "mean", some ? corq_hist_mean(h) / 1000 : -1);
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		double us = (double)corq_hist_percentile(h, points[i].percent) / 1000;

		app_json_put_real(o, points[i].name, some ? us : -1);
	}
	app_json_put_real(o, "max", some ? (double)h->max / 1000 : -1);
	app_json_put(o, "count", h->count);
	return o;
}

static json_t *
requests(const struct ab_figures *f)
{
	json_t *o = json_object();

	app_json_put(o, "started", f->started);
	app_json_put(o, "complete", f->done);
	app_json_put(o, "failed", f->bad);
	app_json_put(o, "aborted", f->aborted);
	app_json_put(o, "outstanding", f->outstanding);
	app_json_put_real(o, "per_second", f->seconds > 0 ? (double)f->done / f->seconds : -1);
	app_json_put(o, "failed_connect", f->bad_connect);
	app_json_put(o, "failed_receive", f->bad_receive);
	app_json_put(o, "failed_length", f->bad_length);
	app_json_put(o, "failed_exceptions", f->bad_except);
	app_json_put(o, "not_2xx", f->not_2xx);
	app_json_put(o, "timeouts", f->timeouts);
	app_json_put(o, "cut_short", f->cut_short);
	app_json_put(o, "garbage", f->garbage);
	app_json_put(o, "write_errors", f->write_errors);
	app_json_put(o, "kept_alive", f->kept_alive);
	app_json_put_real(o, "packets", ab_figures_packets_request(f));
	return o;
}

static json_t *
connections(const struct ab_figures *f)
{
	double established = (double)f->lat[AB_LAT_CONNECT].count;
	json_t *o = json_object();

	app_json_put(o, "opened", f->opened);
	app_json_put(o, "closed", f->closed);
	app_json_put(o, "live", f->live);
	app_json_put_real(o, "per_second", f->seconds > 0 ? established / f->seconds : -1);
	app_json_put_real(o, "packets", ab_figures_packets(f));
	app_json_put_real(o, "cycles", ab_figures_cycles(f));
	app_json_put(o, "established", f->lat[AB_LAT_CONNECT].count);
	app_json_put(o, "failed", f->bad_connect);
	app_json_put(o, "refused", f->refused);
	app_json_put(o, "reset", f->resets);
	app_json_put(o, "closed_idle", f->idle_closed);
	app_json_put(o, "not_closed_by_peer", f->not_closed);
	app_json_put(o, "peak", f->live_peak);
	app_json_put_real(o, "mean", f->live_mean);
	app_json_put(o, "half_open_peak", f->half_open_peak);
	json_object_set_new(o, "pause_recovery_ms",
		f->recovery_ms < 0 ? json_null() : json_integer(f->recovery_ms));
	return o;
}

static json_t *
latencies(const struct ab_figures *f)
{
	json_t *o = json_object();

	json_object_set_new(o, "connect", latency(&f->lat[AB_LAT_CONNECT]));
	json_object_set_new(o, "first_byte", latency(&f->lat[AB_LAT_FIRST]));
	json_object_set_new(o, "last_byte", latency(&f->lat[AB_LAT_LAST]));
	json_object_set_new(o, "total", latency(&f->lat[AB_LAT_TOTAL]));
	json_object_set_new(o, "close", latency(&f->lat[AB_LAT_CLOSE]));
	return o;
}

static json_t *
tcp(const struct ab_figures *f)
{
	const struct corq_stats *s = &f->own;
	json_t *o = json_object();

	app_json_put(o, "retransmits", s->segs_retransmitted);
	app_json_put(o, "syn_retransmits", s->syn_retransmitted);
	app_json_put(o, "data_retransmits", ab_data_retransmitted(s));
	app_json_put(o, "fin_retransmits", s->fin_retransmitted);
	app_json_put(o, "dup_acks", s->dup_acks_in);
	app_json_put(o, "out_of_order", s->ooo_in);
	app_json_put(o, "zero_windows", s->zero_window_in);
	app_json_put(o, "resets_in", s->rst_in);
	app_json_put(o, "resets_out", s->rst_out);
	app_json_put(o, "syn_met_time_wait", f->syn_met_time_wait);
	app_json_put(o, "rx_csum_partial", f->csum_partial);
	app_json_put(o, "time_wait_entered", s->tw_entered);
	app_json_put(o, "time_wait_evicted", s->tw_evicted);
	app_json_put(o, "time_wait_now", s->time_wait_live);
	app_json_put(o, "time_wait_recycled", s->tw_recycled_syn + s->tw_reused_own);
	return o;
}

static json_t *
ports(const struct ab_figures *f)
{
	const struct corq_stats *s = &f->own;
	uint64_t taken = s->ports_used + s->ports_waiting;
	json_t *o = json_object();

	app_json_put(o, "free", s->ports_total > taken ? s->ports_total - taken : 0);
	app_json_put(o, "used", s->ports_used);
	app_json_put(o, "waiting", s->ports_waiting);
	app_json_put(o, "recycled", s->ports_recycled);
	app_json_put(o, "refused", s->ports_refused);
	app_json_put_real(o, "peak_percent", f->port_util_peak * 100);
	return o;
}

static json_t *
stages(const struct corq_stats *s)
{
	json_t *o = json_object();

	app_json_put(o, "rx", s->cycles_rx);
	app_json_put(o, "input", s->cycles_input);
	app_json_put(o, "timers", s->cycles_timers);
	app_json_put(o, "events", s->cycles_events);
	app_json_put(o, "build", s->cycles_build);
	app_json_put(o, "tx", s->cycles_tx);
	return o;
}

/* What the library counted, by the names that it gives: drops and events that happened. */
static json_t *
reasons(const struct corq_instance *inst)
{
	const char *name, *text;
	json_t *o = json_object();
	bool is_drop;

	for (unsigned i = 0; (name = corq_reason_at(i, &text, &is_drop)) != NULL; i++) {
		uint64_t n = corq_reason_count(inst, i);

		if (n != 0)
			app_json_put(o, name, n);
	}
	return o;
}

/* The classes of errors that happened, each with its sentence. */
static json_t *
help(const struct ab_figures *f)
{
	const char *key, *text;
	json_t *o = json_object();
	uint64_t n;

	for (unsigned i = 0; (key = ab_hint_at(f, i, &n, &text)) != NULL; i++) {
		if (n != 0)
			json_object_set_new(o, key, json_string(text));
	}
	return o;
}

static json_t *
device(const struct ab_figures *f)
{
	const struct corq_stats *s = &f->own;
	json_t *o = json_object();

	app_json_put(o, "rx_packets", s->rx_packets);
	app_json_put(o, "tx_packets", s->tx_packets);
	app_json_put(o, "rx_bytes", s->rx_bytes);
	app_json_put(o, "tx_bytes", s->tx_bytes);
	app_json_put(o, "rx_missed", s->rx_missed);
	app_json_put(o, "rx_nombuf", s->rx_nombuf);
	app_json_put_real(o, "rx_frames_per_turn", f->rx_batch);
	app_json_put_real(o, "tx_blocked_percent", f->tx_blocked_pct);
	app_json_put_real(o, "tx_waited_percent", f->tx_waited_pct);
	app_json_put_real(o, "slots_late_percent", f->late_pct);
	app_json_put(o, "handoff_dropped", s->handoff_dropped);
	return o;
}

static json_t *
busy(const double *percent, unsigned n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(a, app_json_real(percent[i]));
	return a;
}

static json_t *
environment(const struct ab_figures *f, int argc, char **argv)
{
	const struct ab_options *opts = f->run->opts;
	const char *dev = opts->device.config.dev;
	json_t *o = json_object();
	char text[APP_ADDR_TEXT];

	app_addr_text(&f->run->target, text);
	json_object_set_new(o, "version", json_string(CORQ_VERSION));
	app_json_put_arguments(o, argc, argv);
	json_object_set_new(o, "device", app_json_string(dev == NULL ? "loop" : dev));
	json_object_set_new(o, "target", json_string(text));
	app_json_put(o, "target_port", f->run->port);
	app_json_put(o, "concurrency", opts->concurrency);
	json_object_set_new(o, "keepalive", json_boolean(opts->keepalive));
	app_json_put(o, "own_cores", f->own_cores);
	app_json_put(o, "server_cores", f->peer_cores);
	json_object_set_new(o, "own_busy_percent", busy(f->own_busy, f->own_cores));
	json_object_set_new(o, "own_cpu_lost_percent", busy(f->cpu_lost, f->run->generators));
	json_object_set_new(o, "server_busy_percent", busy(f->peer_busy, f->peer_cores));
	json_object_set_new(o, "server_cpu_lost_percent", busy(f->peer_lost, f->peer_cores));
	json_object_set_new(o, "both_ends_on_one_core", json_boolean(f->both_ends));
	app_json_put(o, "tsc_hz", corq_tsc_hz());
	app_json_put_machine(o);
	return o;
}

json_t *
ab_json_make(const struct ab_figures *f, const char *error, int argc, char **argv)
{
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_string("corq-ab/1"));
	json_object_set_new(o, "error", app_json_string(error));
	json_object_set_new(o, "model", json_string("closed"));
	json_object_set_new(o, "seconds", json_real(f->seconds));
	json_object_set_new(o, "requests", requests(f));
	json_object_set_new(o, "connections", connections(f));
	json_object_set_new(o, "latency_us", latencies(f));
	json_object_set_new(o, "tcp", tcp(f));
	json_object_set_new(o, "ports", ports(f));
	json_object_set_new(o, "stages", stages(&f->own));
	json_object_set_new(o, "device", device(f));
	json_object_set_new(o, "reasons", reasons(f->run->inst));
	json_object_set_new(o, "verdict", json_string(f->verdict.name));
	json_object_set_new(o, "verdict_reason", json_string(f->verdict.reason));
	json_object_set_new(o, "help", help(f));
	json_object_set_new(o, "environment", environment(f, argc, argv));
	return o;
}
