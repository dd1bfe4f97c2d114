/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c - the figures as JSON, as schema.json describes them. A figure that was not measured is
 * null, never 0.
 */
#include "ab/figures.h"
#include "ab/hints.h"
#include "common/addr.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static json_t *
count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *
real(double value)
{
	return value < 0 ? json_null() : json_real(value);
}

static json_t *
latency(const struct corq_hist *h)
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}, {"p9999", 99.99}};
	json_t *o = json_object();
	bool some = h->count != 0;

	json_object_set_new(o, "min", real(some ? (double)h->min / 1000 : -1));
	json_object_set_new(o, "mean", real(some ? corq_hist_mean(h) / 1000 : -1));
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		double us = (double)corq_hist_percentile(h, points[i].percent) / 1000;

		json_object_set_new(o, points[i].name, real(some ? us : -1));
	}
	json_object_set_new(o, "max", real(some ? (double)h->max / 1000 : -1));
	json_object_set_new(o, "count", count(h->count));
	return o;
}

static json_t *
requests(const struct ab_figures *f)
{
	json_t *o = json_object();

	json_object_set_new(o, "started", count(f->started));
	json_object_set_new(o, "complete", count(f->done));
	json_object_set_new(o, "failed", count(f->bad));
	json_object_set_new(o, "aborted", count(f->aborted));
	json_object_set_new(o, "outstanding", count(f->outstanding));
	json_object_set_new(
		o, "per_second", real(f->seconds > 0 ? (double)f->done / f->seconds : -1));
	json_object_set_new(o, "failed_connect", count(f->bad_connect));
	json_object_set_new(o, "failed_receive", count(f->bad_receive));
	json_object_set_new(o, "failed_length", count(f->bad_length));
	json_object_set_new(o, "failed_exceptions", count(f->bad_except));
	json_object_set_new(o, "not_2xx", count(f->not_2xx));
	json_object_set_new(o, "timeouts", count(f->timeouts));
	json_object_set_new(o, "cut_short", count(f->cut_short));
	json_object_set_new(o, "garbage", count(f->garbage));
	json_object_set_new(o, "write_errors", count(f->write_errors));
	json_object_set_new(o, "kept_alive", count(f->kept_alive));
	json_object_set_new(o, "packets", real(ab_figures_packets_request(f)));
	return o;
}

static json_t *
connections(const struct ab_figures *f)
{
	double established = (double)f->lat[AB_LAT_CONNECT].count;
	json_t *o = json_object();

	json_object_set_new(o, "opened", count(f->opened));
	json_object_set_new(o, "closed", count(f->closed));
	json_object_set_new(o, "live", count(f->live));
	json_object_set_new(o, "per_second", real(f->seconds > 0 ? established / f->seconds : -1));
	json_object_set_new(o, "packets", real(ab_figures_packets(f)));
	json_object_set_new(o, "cycles", real(ab_figures_cycles(f)));
	json_object_set_new(o, "established", count(f->lat[AB_LAT_CONNECT].count));
	json_object_set_new(o, "failed", count(f->bad_connect));
	json_object_set_new(o, "refused", count(f->refused));
	json_object_set_new(o, "reset", count(f->resets));
	json_object_set_new(o, "closed_idle", count(f->idle_closed));
	json_object_set_new(o, "not_closed_by_peer", count(f->not_closed));
	json_object_set_new(o, "peak", count(f->live_peak));
	json_object_set_new(o, "mean", real(f->live_mean));
	json_object_set_new(o, "half_open_peak", count(f->half_open_peak));
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

	json_object_set_new(o, "retransmits", count(s->segs_retransmitted));
	json_object_set_new(o, "syn_retransmits", count(s->syn_retransmitted));
	json_object_set_new(o, "data_retransmits", count(ab_data_retransmitted(s)));
	json_object_set_new(o, "fin_retransmits", count(s->fin_retransmitted));
	json_object_set_new(o, "dup_acks", count(s->dup_acks_in));
	json_object_set_new(o, "out_of_order", count(s->ooo_in));
	json_object_set_new(o, "zero_windows", count(s->zero_window_in));
	json_object_set_new(o, "resets_in", count(s->rst_in));
	json_object_set_new(o, "resets_out", count(s->rst_out));
	json_object_set_new(o, "syn_met_time_wait", count(f->syn_met_time_wait));
	json_object_set_new(o, "rx_csum_partial", count(f->csum_partial));
	json_object_set_new(o, "time_wait_entered", count(s->tw_entered));
	json_object_set_new(o, "time_wait_evicted", count(s->tw_evicted));
	json_object_set_new(o, "time_wait_now", count(s->time_wait_live));
	json_object_set_new(o, "time_wait_recycled", count(s->tw_recycled_syn + s->tw_reused_own));
	return o;
}

static json_t *
ports(const struct ab_figures *f)
{
	const struct corq_stats *s = &f->own;
	uint64_t taken = s->ports_used + s->ports_waiting;
	json_t *o = json_object();

	json_object_set_new(o, "free", count(s->ports_total > taken ? s->ports_total - taken : 0));
	json_object_set_new(o, "used", count(s->ports_used));
	json_object_set_new(o, "waiting", count(s->ports_waiting));
	json_object_set_new(o, "recycled", count(s->ports_recycled));
	json_object_set_new(o, "refused", count(s->ports_refused));
	json_object_set_new(o, "peak_percent", real(f->port_util_peak * 100));
	return o;
}

static json_t *
stages(const struct corq_stats *s)
{
	json_t *o = json_object();

	json_object_set_new(o, "rx", count(s->cycles_rx));
	json_object_set_new(o, "input", count(s->cycles_input));
	json_object_set_new(o, "timers", count(s->cycles_timers));
	json_object_set_new(o, "events", count(s->cycles_events));
	json_object_set_new(o, "build", count(s->cycles_build));
	json_object_set_new(o, "tx", count(s->cycles_tx));
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
			json_object_set_new(o, name, count(n));
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

	json_object_set_new(o, "rx_packets", count(s->rx_packets));
	json_object_set_new(o, "tx_packets", count(s->tx_packets));
	json_object_set_new(o, "rx_bytes", count(s->rx_bytes));
	json_object_set_new(o, "tx_bytes", count(s->tx_bytes));
	json_object_set_new(o, "rx_missed", count(s->rx_missed));
	json_object_set_new(o, "rx_nombuf", count(s->rx_nombuf));
	json_object_set_new(o, "rx_frames_per_turn", real(f->rx_batch));
	json_object_set_new(o, "tx_blocked_percent", real(f->tx_blocked_pct));
	json_object_set_new(o, "tx_waited_percent", real(f->tx_waited_pct));
	json_object_set_new(o, "slots_late_percent", real(f->late_pct));
	json_object_set_new(o, "handoff_dropped", count(s->handoff_dropped));
	return o;
}

static json_t *
busy(const double *percent, unsigned n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(a, real(percent[i]));
	return a;
}

static json_t *
environment(const struct ab_figures *f, int argc, char **argv)
{
	const struct ab_options *opts = f->run->opts;
	const char *dev = opts->device.config.dev;
	json_t *o = json_object(), *args = json_array();
	char text[APP_ADDR_TEXT], host[256] = "";
	struct utsname name;

	for (int i = 0; i < argc; i++)
		json_array_append_new(args, app_json_string(argv[i] == NULL ? "--" : argv[i]));
	app_addr_text(&f->run->target, text);
	gethostname(host, sizeof(host) - 1);
	uname(&name);
	json_object_set_new(o, "version", json_string(CORQ_VERSION));
	json_object_set_new(o, "arguments", args);
	json_object_set_new(o, "device", app_json_string(dev == NULL ? "loop" : dev));
	json_object_set_new(o, "target", json_string(text));
	json_object_set_new(o, "target_port", count(f->run->port));
	json_object_set_new(o, "concurrency", count(opts->concurrency));
	json_object_set_new(o, "keepalive", json_boolean(opts->keepalive));
	json_object_set_new(o, "own_cores", count(f->own_cores));
	json_object_set_new(o, "server_cores", count(f->peer_cores));
	json_object_set_new(o, "own_busy_percent", busy(f->own_busy, f->own_cores));
	json_object_set_new(o, "own_cpu_lost_percent", busy(f->cpu_lost, f->run->generators));
	json_object_set_new(o, "server_busy_percent", busy(f->peer_busy, f->peer_cores));
	json_object_set_new(o, "server_cpu_lost_percent", busy(f->peer_lost, f->peer_cores));
	json_object_set_new(o, "both_ends_on_one_core", json_boolean(f->both_ends));
	json_object_set_new(o, "tsc_hz", count(corq_tsc_hz()));
	json_object_set_new(o, "cpus", count((uint64_t)sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(o, "kernel", json_string(name.release));
	json_object_set_new(o, "host", app_json_string(host));
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
