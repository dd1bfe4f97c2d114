/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extension.c - what corq knows beyond ab: `key: value` lines after ab's block. Names are fixed,
 * programs parse them. A figure that was not measured has no line.
 */
#include "ab/figures.h"
#include "ab/hints.h"

#include <inttypes.h>

static void
count(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, "%s: %" PRIu64 "\n", key, value);
}

static void
real(FILE *out, const char *key, double value, int decimals)
{
	if (value >= 0)
		fprintf(out, "%s: %.*f\n", key, decimals, value);
}

static void
latency(FILE *out, const char *key, const struct corq_hist *h)
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}, {"p9999", 99.99}};

	if (h->count == 0)
		return;
	fprintf(out, "%s: min=%" PRIu64 " mean=%.0f", key, h->min, corq_hist_mean(h));
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		fprintf(out, " %s=%" PRIu64, points[i].name,
			corq_hist_percentile(h, points[i].percent));
	fprintf(out, " max=%" PRIu64 " count=%" PRIu64 "\n", h->max, h->count);
}

static void
busy(FILE *out, const char *key, const double *percent, unsigned n)
{
	if (n == 0)
		return;
	fprintf(out, "%s:", key);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, " %.1f", percent[i]);
	fputc('\n', out);
}

static void
print_requests(FILE *out, const struct ab_figures *f)
{
	fprintf(out, "model: closed\n");
	if (f->seconds > 0)
		real(out, "rate_achieved", (double)f->done / f->seconds, 0);
	count(out, "requests_started", f->started);
	count(out, "requests_complete", f->done);
	count(out, "requests_aborted", f->aborted);
	count(out, "requests_outstanding", f->outstanding);
}

static void
print_connections(FILE *out, const struct ab_figures *f)
{
	count(out, "conn_opened", f->opened);
	count(out, "conn_established", f->lat[AB_LAT_CONNECT].count);
	count(out, "conn_closed", f->closed);
	count(out, "conn_live", f->live);
	fprintf(out,
		"counters_add_up: %s (requests started = complete + aborted + outstanding; "
		"connections opened = closed + live)\n",
		ab_figures_add_up(f) ? "yes" : "no");
	count(out, "conn_failed", f->bad_connect);
	count(out, "conn_refused", f->refused);
	count(out, "conn_reset", f->resets);
	count(out, "conn_timeout", f->timeouts);
	if (f->seconds > 0)
		real(out, "conn_per_second", (double)f->lat[AB_LAT_CONNECT].count / f->seconds, 0);
	count(out, "responses_cut_short", f->cut_short);
	count(out, "responses_garbage", f->garbage);
	count(out, "responses_length", f->bad_length);
	count(out, "responses_not_2xx", f->not_2xx);
	count(out, "write_errors", f->write_errors);
	count(out, "keepalive_closed_idle", f->idle_closed);
	count(out, "not_closed_by_peer", f->not_closed);
	count(out, "cc_peak", f->live_peak);
	real(out, "cc_mean", f->live_mean, 1);
	count(out, "half_open_peak", f->half_open_peak);
	if (f->recovery_ms >= 0)
		fprintf(out, "pause_recovery_ms: %" PRId64 "\n", f->recovery_ms);
	else if (f->recovery_ms == -2)
		fprintf(out, "pause_recovery_ms: not within the run\n");
}

static void
print_wire(FILE *out, const struct ab_figures *f)
{
	const struct corq_stats *own = &f->own;
	double conns = f->opened == 0 ? 1 : (double)f->opened;

	real(out, "pkts_per_conn", ab_figures_packets(f), 2);
	if (f->run->opts->keepalive)
		real(out, "pkts_per_request", ab_figures_packets_request(f), 2);
	if (!f->both_ends && f->opened != 0) {
		real(out, "pkts_per_conn_tx", (double)own->tx_packets / conns, 2);
		real(out, "pkts_per_conn_rx", (double)own->rx_packets / conns, 2);
	}
	count(out, "bytes_on_wire_tx", own->tx_bytes);
	count(out, "bytes_on_wire_rx", own->rx_bytes);
	count(out, "retransmitted", own->segs_retransmitted);
	count(out, "syn_rt", own->syn_retransmitted);
	count(out, "data_rt", ab_data_retransmitted(own));
	count(out, "fin_rt", own->fin_retransmitted);
	count(out, "dup_ack", own->dup_acks_in);
	count(out, "ooo_rx", own->ooo_in);
	count(out, "zero_window", own->zero_window_in);
	count(out, "rst_in", own->rst_in);
	count(out, "rst_out", own->rst_out);
	count(out, "syn_met_time_wait", f->syn_met_time_wait);
	count(out, "tw_entered", own->tw_entered);
	count(out, "tw_now", own->time_wait_live);
	count(out, "tw_recycled", own->tw_recycled_syn);
	count(out, "tw_reused_early", own->tw_reused_own);
	count(out, "tw_evicted", own->tw_evicted);
	if (f->peer_cores != 0) {
		count(out, "server_retransmitted", f->peer.segs_retransmitted);
		count(out, "server_tw_entered", f->peer.tw_entered);
		count(out, "server_tw_now", f->peer.time_wait_live);
		count(out, "server_tw_recycled", f->peer.tw_recycled_syn);
		count(out, "server_tw_evicted", f->peer.tw_evicted);
		count(out, "server_handoff_out", f->peer.handoff_out);
		count(out, "server_handoff_dropped", f->peer.handoff_dropped);
	}
	count(out, "ports_total", own->ports_total);
	count(out, "ports_used", own->ports_used);
	count(out, "ports_waiting", own->ports_waiting);
	count(out, "ports_recycled", own->ports_recycled);
	count(out, "ports_refused", own->ports_refused);
	real(out, "port_util_max_pct", f->port_util_peak * 100, 2);
	count(out, "rx_missed", own->rx_missed);
	count(out, "rx_nombuf", own->rx_nombuf);
	if (f->csum_partial != 0)
		count(out, "rx_csum_partial", f->csum_partial);
	count(out, "tx_ring_full", own->tx_full);
	real(out, "tx_blocked_pct", f->tx_blocked_pct, 1);
	real(out, "tx_waited_pct", f->tx_waited_pct, 1);
	count(out, "handoff_out", own->handoff_out);
	count(out, "handoff_dropped", own->handoff_dropped);
}

static void
print_cost(FILE *out, const struct ab_figures *f)
{
	const struct corq_stats *own = &f->own;

	busy(out, "busy_pct_per_core", f->own_busy, f->own_cores);
	if (f->run->generators != 0 && f->cpu_lost[0] >= 0)
		busy(out, "cpu_lost_pct_per_core", f->cpu_lost, f->run->generators);
	real(out, "slots_late_pct", f->late_pct, 1);
	real(out, "rx_frames_per_turn", f->rx_batch, 1);
	busy(out, "server_busy_pct_per_core", f->peer_busy, f->peer_cores);
	if (f->peer_cores != 0 && f->peer_lost[0] >= 0)
		busy(out, "server_cpu_lost_pct_per_core", f->peer_lost, f->peer_cores);
	real(out, "cycles_per_conn", ab_figures_cycles(f), 0);
	if (f->both_ends && f->opened != 0)
		real(out, "cycles_per_conn_both_ends", (double)own->cycles_busy / (double)f->opened,
			0);
	if (f->peer_cores != 0 && f->opened != 0)
		real(out, "server_cycles_per_conn", (double)f->peer.cycles_busy / (double)f->opened,
			0);
	if (f->done != 0)
		fprintf(out,
			"cycles_per_request_by_stage: rx=%.0f input=%.0f timers=%.0f events=%.0f "
			"build=%.0f tx=%.0f\n",
			(double)own->cycles_rx / (double)f->done,
			(double)own->cycles_input / (double)f->done,
			(double)own->cycles_timers / (double)f->done,
			(double)own->cycles_events / (double)f->done,
			(double)own->cycles_build / (double)f->done,
			(double)own->cycles_tx / (double)f->done);
}

static void
print_hints(FILE *out, const struct ab_figures *f)
{
	const char *key, *text;
	uint64_t n;

	for (unsigned i = 0; (key = ab_hint_at(f, i, &n, &text)) != NULL; i++) {
		if (n != 0)
			fprintf(out, "help: %s %" PRIu64 ": %s\n", key, n, text);
	}
}

void
ab_extension_print(FILE *out, const struct ab_figures *f)
{
	const struct ab_times *t = &f->times;

	fputc('\n', out);
	print_requests(out, f);
	print_connections(out, f);
	print_wire(out, f);
	print_cost(out, f);
	if (f->samples_short)
		fprintf(out,
			"times: from histograms (within 3.2 %%), exact times are kept of %" PRIu64
			" requests\n",
			f->run->opts->exact_times);
	else if (f->done != 0)
		fprintf(out, "median_ms: connect=%.3f processing=%.3f waiting=%.3f total=%.3f\n",
			(double)t->connect.true_median_us / 1000,
			(double)t->processing.true_median_us / 1000,
			(double)t->waiting.true_median_us / 1000,
			(double)t->total.true_median_us / 1000);
	latency(out, "lat_connect", &f->lat[AB_LAT_CONNECT]);
	latency(out, "lat_ttfb", &f->lat[AB_LAT_FIRST]);
	latency(out, "lat_ttlb", &f->lat[AB_LAT_LAST]);
	latency(out, "lat_total", &f->lat[AB_LAT_TOTAL]);
	latency(out, "lat_close", &f->lat[AB_LAT_CLOSE]);
	fprintf(out, "verdict: %s\n", f->verdict.name);
	fprintf(out, "verdict_reason: %s\n", f->verdict.reason);
	print_hints(out, f);
}
