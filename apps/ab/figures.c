/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.c - see figures.h.
 */
#include "ab/figures.h"
#include "common/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
add_core(struct ab_figures *f, const struct ab_core *ab)
{
	f->started += ab->started;
	f->done += ab->done;
	f->good += ab->good;
	f->bad += ab->bad;
	f->bad_connect += ab->bad_connect;
	f->bad_receive += ab->bad_receive;
	f->bad_length += ab->bad_length;
	f->bad_except += ab->bad_except;
	f->not_2xx += ab->not_2xx;
	f->kept_alive += ab->kept_alive;
	f->aborted += ab->aborted_requests;
	f->outstanding += ab_core_outstanding(ab);
	f->write_errors += ab->write_errors;
	f->timeouts += ab->timeouts;
	f->resets += ab->resets;
	f->refused += ab->refused;
	f->cut_short += ab->cut_short;
	f->garbage += ab->garbage;
	f->idle_closed += ab->idle_closed;
	f->not_closed += ab->not_closed;
	f->bytes_read += ab->bytes_read;
	f->bytes_posted += ab->bytes_posted;
	f->bytes_body += ab->bytes_body;
	f->opened += ab->opened;
	f->closed += ab->closed;
	f->live += ab->live;
	f->half_open_peak += ab->half_open_peak;
	f->live_peak += ab->live_peak;
	f->samples_short |= ab->sample_count < ab->done;
	if (ab->port_util_peak > f->port_util_peak)
		f->port_util_peak = ab->port_util_peak;
	for (int i = 0; i < AB_LATS; i++)
		corq_hist_merge(&f->lat[i], &ab->lat[i]);
}

static void
add_stats(struct corq_stats *sum, const struct corq_stats *one)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)one;

	_Static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "words only");
	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

static double
percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static double
at_most_all(double share)
{
	return share > 100 ? 100 : share;
}

/* As cpu_lost, of a server's core; its thread is still there. */
static double
server_lost(const struct ab_figures *f, unsigned core)
{
	const struct ab_server_cpu *cpu = &f->run->server_cpus[core];
	int64_t waited = app_cpu_waited(cpu->fd);

	if (cpu->first < 0 || waited < cpu->first || f->elapsed_ns == 0)
		return -1;
	return at_most_all(percent((double)(waited - cpu->first), (double)f->elapsed_ns));
}

static void
collect_sides(struct ab_figures *f)
{
	double cycles = f->seconds * (double)corq_tsc_hz();

	for (unsigned i = 0; i < corq_cores(f->run->inst); i++) {
		struct corq_core *core = corq_core_at(f->run->inst, i);
		enum corq_side side = corq_core_side(core);
		struct corq_stats stats;
		double busy, blocked;

		corq_core_stats(core, &stats);
		busy = at_most_all(percent((double)stats.cycles_busy, cycles));
		f->both_ends |= side == CORQ_SIDE_BOTH;
		if (side == CORQ_SIDE_B) {
			add_stats(&f->peer, &stats);
			f->peer_lost[f->peer_cores] = server_lost(f, i);
			f->peer_busy[f->peer_cores++] = busy;
		} else {
			add_stats(&f->own, &stats);
			blocked = percent((double)stats.tx_blocked_ns, (double)f->elapsed_ns);
			if (blocked > f->tx_blocked_pct)
				f->tx_blocked_pct = at_most_all(blocked);
			f->tx_waited[f->own_cores] = percent((double)stats.cycles_tx_long, cycles);
			f->own_busy[f->own_cores++] = busy;
		}
	}
}

/* ---- an injected pause ---- */

static uint64_t
bucket_sum(const struct ab_run *run, uint64_t i)
{
	uint64_t sum = 0;

	for (unsigned c = 0; c < run->generators && i < AB_BUCKETS; c++)
		sum += run->cores[c]->buckets[i];
	return sum;
}

/* From the end of the pause to the first two buckets at 90 % of the rate in the second before. */
static int64_t
recovery(const struct ab_run *run, uint64_t elapsed_ns)
{
	const struct ab_core *ab = run->cores[0];
	uint64_t from, to, end = elapsed_ns / AB_BUCKET_NS, before = 0, n = 0;

	if (!ab->paused)
		return -1;
	from = (ab->pause_from - ab->first_start) / AB_BUCKET_NS;
	to = (ab->pause_to - ab->first_start + AB_BUCKET_NS - 1) / AB_BUCKET_NS;
	for (uint64_t i = from > 10 ? from - 10 : 0; i < from; i++, n++)
		before += bucket_sum(run, i);
	for (uint64_t i = to; i + 1 < end && n > 0; i++) {
		uint64_t two = bucket_sum(run, i) + bucket_sum(run, i + 1);

		if ((double)two / 2 >= 0.9 * (double)before / (double)n)
			return (int64_t)((i - to) * (AB_BUCKET_NS / 1000000));
	}
	return -2;
}

/* ---- verdict ---- */

static double
highest(const double *v, unsigned n)
{
	double max = -1;

	for (unsigned i = 0; i < n; i++)
		max = v[i] > max ? v[i] : max;
	return max;
}

static double
requests_a_turn(const struct ab_figures *f, const struct corq_stats *side)
{
	return side->turns_busy != 0 ? (double)f->done / (double)side->turns_busy : 0;
}

static void
judge(struct ab_figures *f)
{
	const struct corq_stats *own = &f->own;
	struct ab_verdict_in in = {
		.loop = app_device_is_loop(&f->run->opts->device),
		.both_ends = f->both_ends,
		.concurrency = f->run->opts->concurrency,
		.own_busy = highest(f->own_busy, f->own_cores),
		.own_cpu_lost = highest(f->cpu_lost, f->run->generators),
		.slots_late = f->late_pct,
		.batch = f->rx_batch,
		.peer_busy = highest(f->peer_busy, f->peer_cores),
		.peer_cpu_lost = highest(f->peer_lost, f->peer_cores),
		.own_backlog = requests_a_turn(f, own),
		.peer_backlog = requests_a_turn(f, &f->peer),
		.tx_blocked = f->tx_blocked_pct,
		.tx_waited = f->tx_waited_pct,
		.rx_lost = own->rx_missed + own->rx_nombuf,
		.rx_packets = own->rx_packets,
		.zero_windows = own->zero_window_in,
		.ports_refused = own->ports_refused,
	};

	f->both_lost_pct = ab_verdict_loaded(&in);
	ab_verdict_find(&in, &f->verdict);
}

/* The shares of time that the verdict is made of. */
static void
collect_shares(struct ab_figures *f)
{
	const struct corq_hist *total = &f->lat[AB_LAT_TOTAL];
	double waited = corq_hist_mean(total) * (double)total->count, late = 0, sending;
	bool known = true;

	for (unsigned i = 0; i < f->run->generators; i++) {
		const struct ab_core *ab = f->run->cores[i];

		late += (double)ab->late_ns;
		f->cpu_lost[i] = ab->cpu_waited >= 0 && ab->cpu_time != 0
					 ? percent((double)(ab->cpu_waited - ab->cpu_first),
						   (double)ab->cpu_time)
					 : -1;
		known = known && (f->cpu_lost[i] >= 0 || ab->paused);
		/* Others may have had the CPU in the middle of such a call. */
		sending = f->tx_waited[i] - (f->cpu_lost[i] > 0 ? f->cpu_lost[i] : 0);
		if (sending > f->tx_waited_pct)
			f->tx_waited_pct = at_most_all(sending);
	}
	f->late_pct = waited > 0 && known ? at_most_all(percent(late, waited)) : -1;
	f->rx_batch =
		f->own.turns_busy != 0 ? (double)f->own.rx_packets / (double)f->own.turns_busy : -1;
}

/* ---- all ---- */

static struct ab_row
row_of(const struct corq_hist *h, uint64_t zeros)
{
	uint64_t all = h->count + zeros;
	double share = all == 0 ? 0 : (double)h->count / (double)all;
	double mean = corq_hist_mean(h) * share, sd = corq_hist_stddev(h);
	struct ab_row row = {0};
	double median_at;

	if (all == 0)
		return row;
	median_at = share > 0 ? 100.0 * (1 - 0.5 / share) : 0;
	row.min_us = zeros != 0 || h->count == 0 ? 0 : h->min / 1000;
	row.max_us = h->max / 1000;
	row.mean_us = (uint64_t)(mean / 1000);
	row.sd_us = (zeros == 0 ? sd : corq_hist_stddev(h) * share) / 1000;
	row.median_us = zeros == 0      ? corq_hist_percentile(h, 50) / 1000
			: median_at > 0 ? corq_hist_percentile(h, median_at) / 1000
					: 0;
	row.true_median_us = row.median_us;
	return row;
}

/* More requests than exact times are kept of: the rows come from the histograms. */
static void
times_from_hist(struct ab_figures *f)
{
	uint64_t connects = f->lat[AB_LAT_CONNECT].count;

	f->times.connect =
		row_of(&f->lat[AB_LAT_CONNECT], f->done > connects ? f->done - connects : 0);
	f->times.processing = row_of(&f->lat[AB_LAT_PROC], 0);
	f->times.waiting = row_of(&f->lat[AB_LAT_FIRST], 0);
	f->times.total = row_of(&f->lat[AB_LAT_TOTAL], 0);
	for (int i = 0; i < AB_PERCENTS; i++)
		f->times.served_us[i] =
			corq_hist_percentile(&f->lat[AB_LAT_TOTAL], ab_percents[i]) / 1000;
	for (int i = 0; i <= 100; i++)
		f->times.csv_us[i] = corq_hist_percentile(&f->lat[AB_LAT_TOTAL], i) / 1000;
}

static int
collect_times(struct ab_figures *f)
{
	const struct ab_run *run = f->run;
	struct ab_sample_list lists[APP_CORES_MAX];

	if (f->samples_short) {
		times_from_hist(f);
		return 0;
	}
	for (unsigned i = 0; i < run->generators; i++) {
		lists[i].samples = run->cores[i]->samples;
		lists[i].count = run->cores[i]->sample_count;
	}
	return ab_times_compute(lists, run->generators, &f->times);
}

int
ab_figures_collect(struct ab_run *run, struct ab_figures *f)
{
	uint64_t first = 0, last = 0;
	double live = 0;

	memset(f, 0, sizeof(*f));
	f->run = run;
	f->port_util_peak = -1;
	f->lat = calloc(AB_LATS, sizeof(*f->lat));
	if (f->lat == NULL)
		return -ENOMEM;
	for (int i = 0; i < AB_LATS; i++)
		corq_hist_init(&f->lat[i]);
	for (unsigned i = 0; i < run->generators; i++) {
		const struct ab_core *ab = run->cores[i];

		add_core(f, ab);
		if (ab->first_start != 0 && (first == 0 || ab->first_start < first))
			first = ab->first_start;
		if (ab->last_done > last)
			last = ab->last_done;
		/* ab takes the time of the interrupt when it is interrupted. */
		if (atomic_load(&run->stop) != AB_RUNNING && ab->last_turn > last)
			last = ab->last_turn;
		live += (double)ab->live_ns;
	}
	f->elapsed_ns = last > first && first != 0 ? last - first : 0;
	f->seconds = (double)f->elapsed_ns / 1e9;
	f->live_mean = f->elapsed_ns != 0 ? live / (double)f->elapsed_ns : -1;
	f->recovery_ms = recovery(run, f->elapsed_ns);
	f->csum_partial = app_reason_count(run->inst, "tcp_csum_partial");
	f->syn_met_time_wait = app_reason_count(run->inst, "tcp_syn_sent_bad_ack");
	collect_sides(f);
	collect_shares(f);
	judge(f);
	return collect_times(f);
}

void
ab_figures_free(struct ab_figures *f)
{
	free(f->lat);
	f->lat = NULL;
}

bool
ab_figures_add_up(const struct ab_figures *f)
{
	return f->started == f->done + f->aborted + f->outstanding &&
	       f->opened == f->closed + f->live;
}

static double
packets_per(const struct ab_figures *f, uint64_t n)
{
	double packets = (double)(f->own.rx_packets + f->own.tx_packets);

	/* On one core for both ends each packet is sent and received here. */
	return n == 0 ? -1 : packets / (f->both_ends ? 2 : 1) / (double)n;
}

double
ab_figures_packets(const struct ab_figures *f)
{
	return packets_per(f, f->opened);
}

double
ab_figures_packets_request(const struct ab_figures *f)
{
	return packets_per(f, f->done);
}

double
ab_figures_cycles(const struct ab_figures *f)
{
	if (f->opened == 0 || f->both_ends)
		return -1;
	return (double)f->own.cycles_busy / (double)f->opened;
}
