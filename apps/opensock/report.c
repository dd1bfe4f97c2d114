/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.c - the figures as `key: value` lines; apps/README.md explains each key. Main thread.
 */
#include "opensock/figures.h"

#include <inttypes.h>

static void
per_op(const struct opensock_figures *f, const struct opensock_side_figures *s, const char *name,
	FILE *out)
{
	static const double points[] = {50, 90, 99, 99.9};
	double v[4];

	if (s->cycles.count == 0) {
		fprintf(out, "%s_cycles_per_op: not measured\n", name);
		return;
	}
	for (int i = 0; i < 4; i++)
		v[i] = (double)corq_hist_percentile(&s->cycles, points[i]) / OPENSOCK_BATCH;
	fprintf(out, "%s_cycles_per_op: p50 %.1f p90 %.1f p99 %.1f p99.9 %.1f max %.1f\n", name,
		v[0], v[1], v[2], v[3], (double)s->cycles.max / OPENSOCK_BATCH);
	fprintf(out,
		"%s_ns_per_op: p50 %.1f p90 %.1f p99 %.1f p99.9 %.1f (batches of %d: %" PRIu64
		")\n",
		name, v[0] / f->tsc_hz * 1e9, v[1] / f->tsc_hz * 1e9, v[2] / f->tsc_hz * 1e9,
		v[3] / f->tsc_hz * 1e9, OPENSOCK_BATCH, s->cycles.count);
}

static void
side(const struct opensock_figures *f, enum opensock_side which, FILE *out)
{
	const struct opensock_side_figures *s = &f->side[which];
	const struct opensock_spread *t = &s->thread;
	const char *name = opensock_side_name(which);

	fprintf(out, "%s_count: %" PRIu64, name, s->count);
	if (s->bound[0] != '\0')
		fprintf(out, " of %" PRIu64 ": %s", s->asked, s->bound);
	fprintf(out, "\n%s_total: %" PRIu64 "\n", name, s->total);
	fprintf(out, "%s_seconds: %.3f\n", name, s->seconds);
	fprintf(out, "%s_ops_per_second: %.0f (turns:", name, s->rate);
	for (uint32_t i = 0; i < s->n_turns; i++)
		fprintf(out, " %.0f", s->turn[i].rate);
	fprintf(out,
		")\n%s_ops_per_second_a_thread: mean %.0f min %.0f max %.0f sd %.0f (%.1f %%)\n",
		name, t->mean, t->min, t->max, t->sd, t->mean > 0 ? t->sd / t->mean * 100 : 0);
	per_op(f, s, name, out);
	if (f->opts->cross != 0)
		fprintf(out, "%s_crossed: %" PRIu64 " (%.1f %%)\n", name, s->crossed,
			s->total != 0 ? (double)s->crossed / (double)s->total * 100 : 0);
	fprintf(out, "%s_opened: %" PRIu64 "\n%s_closed: %" PRIu64 "\n", name, s->opened, name,
		s->closed);
	if (s->not_opened + s->not_closed != 0)
		fprintf(out, "%s_failed: %" PRIu64 " to open, %" PRIu64 " to close\n", name,
			s->not_opened, s->not_closed);
}

static void
corq_alone(const struct opensock_figures *f, FILE *out)
{
	const struct corq_handle_counts *c = &f->filled;
	uint64_t slots = c->blocks_lent * OPENSOCK_BLOCK;

	fprintf(out, "corq_occupancy_per_lane: %.0f open of %.0f slots lent to it (%.1f %%)\n",
		(double)c->open / f->opts->threads, (double)slots / f->opts->threads,
		slots != 0 ? (double)c->open / (double)slots * 100 : 0);
	if (f->bytes_per_handle < 0)
		fprintf(out, "corq_bytes_per_handle: not measured\n");
	else
		fprintf(out, "corq_bytes_per_handle: %.2f (%.1f MiB resident, %" PRIu64 " open)\n",
			f->bytes_per_handle, (double)f->resident / (1 << 20), c->open);
	fprintf(out,
		"corq_open_after: loop %" PRIu64 ", all closed %" PRIu64 ", detached %" PRIu64
		" (blocks lent %" PRIu64 ", stranded %" PRIu64 ")\n",
		f->loop_end.open, f->end.open, f->left.open, f->left.blocks_lent, f->left.stranded);
}

static const char *
allocation(const struct opensock_options *opts)
{
	if (!opts->use[OPENSOCK_KERNEL])
		return opts->fast ? "fast" : "lowest, per lane";
	if (!opts->use[OPENSOCK_CORQ])
		return opts->fast ? "lowest, per process; the kernel has nothing like -f"
				  : "lowest, per process";
	return opts->fast ? "corq fast; kernel lowest, per process: it has nothing like -f"
			  : "lowest: per lane in corq, per process in the kernel";
}

void
opensock_report(const struct opensock_figures *f, FILE *out)
{
	const struct opensock_options *opts = f->opts;
	bool both = opts->use[OPENSOCK_CORQ] && opts->use[OPENSOCK_KERNEL];

	fprintf(out, "backend: %s\n",
		both                       ? "both, in turns"
		: opts->use[OPENSOCK_CORQ] ? "corq"
					   : "kernel");
	fprintf(out, "threads: %u\nallocation: %s\norder: %s\n", opts->threads, allocation(opts),
		opensock_order_name(opts->order));
	fprintf(out, "holes: %s\ncross_percent: %u\n", opts->holes ? "yes" : "no", opts->cross);
	if (opts->use[OPENSOCK_CORQ]) {
		side(f, OPENSOCK_CORQ, out);
		corq_alone(f, out);
	}
	if (opts->use[OPENSOCK_KERNEL]) {
		fprintf(out, "kernel_fill: %s\n", opts->dup ? "dup" : "socket");
		side(f, OPENSOCK_KERNEL, out);
	}
	if (f->ratio >= 0)
		fprintf(out, "ratio: %.1f\n", f->ratio);
	fprintf(out, "adds_up: %s\n", f->adds_up ? "yes" : "no");
}
