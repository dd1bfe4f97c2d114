/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.c - the summary: three tables, a row a stage. apps/README.md explains the columns. Main
 * thread.
 */
#include "closetest/figures.h"

#include <inttypes.h>

static void
name(const struct closetest_stage *s, FILE *out)
{
	fprintf(out, "%-12s  %-14s  %5u", closetest_part_name(s->step.part),
		closetest_step_close(&s->step), s->step.round);
}

static void
figure(double value, int width, FILE *out)
{
	if (value < 0)
		fprintf(out, "  %*s", width, "-");
	else
		fprintf(out, "  %*.0f", width, value);
}

static void
connections(const struct closetest_run *run)
{
	FILE *out = run->out;

	fprintf(out, "%-12s  %-14s  %5s  %11s  %8s  %13s  %9s  %9s  %8s  %8s\n", "part", "close",
		"round", "connections", "failed", "EADDRNOTAVAIL", "reset", "conn/s", "p99.9-ms",
		"max-ms");
	for (unsigned i = 0; i < run->n; i++) {
		const struct closetest_stage *s = &run->stage[i];

		if (!s->ran)
			continue;
		name(s, out);
		fprintf(out, "  %11" PRIu64 "  %8" PRIu64 "  %13" PRIu64 "  %9" PRIu64 "  %9.0f",
			s->tried, closetest_failed(s), s->failed[CLOSETEST_NO_PORT], s->reset_after,
			s->net_ns != 0 ? (double)s->good / ((double)s->net_ns / 1e9) : 0);
		if (s->good == 0) { /* none was opened: there is no time */
			fprintf(out, "  %8s  %8s\n", "-", "-");
			continue;
		}
		fprintf(out, "  %8.3f  %8.3f\n",
			(double)corq_hist_percentile(&s->connect, 99.9) / 1e6,
			(double)s->connect.max / 1e6);
	}
}

static void
time_waits(const struct closetest_run *run)
{
	FILE *out = run->out;

	fprintf(out, "\n%-12s  %-14s  %5s  %9s  %9s  %9s  %9s  %11s  %8s  %8s  %8s\n", "TIME_WAIT",
		"close", "round", "client", "server", "now", "peak", "bytes", "recycled", "reused",
		"evicted");
	for (unsigned i = 0; i < run->n; i++) {
		const struct closetest_stage *s = &run->stage[i];

		if (!s->ran)
			continue;
		name(s, out);
		figure(s->tw_client, 9, out);
		figure(s->tw_server, 9, out);
		fprintf(out, "  %9" PRIu64 "  %9" PRIu64 "  %11" PRIu64, s->tw_now, s->tw_peak,
			closetest_bytes(run, s));
		figure(s->recycled, 8, out);
		figure(s->reused, 8, out);
		figure(s->evicted, 8, out);
		fputc('\n', out);
	}
}

static void
ports(const struct closetest_run *run)
{
	FILE *out = run->out;

	fprintf(out, "\n%-12s  %-14s  %5s  %9s  %9s  %9s  %9s  %9s  %9s  %9s\n", "ports", "close",
		"round", "total", "free", "used", "waiting", "recycled", "refused", "pkts/conn");
	for (unsigned i = 0; i < run->n; i++) {
		const struct closetest_stage *s = &run->stage[i];

		if (!s->ran)
			continue;
		name(s, out);
		figure(s->ports_total, 9, out);
		figure(s->ports_used < 0 ? -1 : s->ports_total - s->ports_used - s->ports_waiting,
			9, out);
		figure(s->ports_used, 9, out);
		figure(s->ports_waiting, 9, out);
		figure(s->ports_recycled, 9, out);
		figure(s->ports_refused, 9, out);
		if (s->packets < 0 || s->good == 0)
			fprintf(out, "  %9s\n", "-");
		else
			fprintf(out, "  %9.2f\n", s->packets / (double)s->good);
	}
}

void
closetest_report(const struct closetest_run *run)
{
	fprintf(run->out, "\nbackend: %s, timewait: %s\n", run->opts->kernel ? "kernel" : "corq",
		run->opts->kernel                                     ? "the kernel's"
		: run->opts->device.config.timewait == CORQ_TW_STRICT ? "strict"
		: run->opts->device.config.timewait == CORQ_TW_REUSE  ? "reuse"
								      : "lab");
	fprintf(run->out, "bytes of a TIME_WAIT: %u and %u of the table%s\n\n", run->record_bytes,
		run->table_bytes,
		run->record_exact ? "" : " (as usual; /proc/slabinfo is not to be read)");
	connections(run);
	time_waits(run);
	ports(run);
}
