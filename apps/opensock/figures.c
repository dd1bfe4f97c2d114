/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.c - see figures.h. Main thread, while no other works.
 */
#include "opensock/figures.h"

static void
add_thread(struct opensock_side_figures *s, const struct opensock_lot *lot)
{
	s->total += lot->pairs;
	s->opened += lot->opened;
	s->closed += lot->closed;
	s->crossed += lot->crossed;
	s->not_opened += lot->not_opened;
	s->not_closed += lot->not_closed;
	if (s->error == 0)
		s->error = lot->error;
	corq_hist_merge(&s->cycles, &lot->cycles);
}

static void
add_side(struct opensock_side_figures *s, const struct opensock_run *run, enum opensock_side side)
{
	double rate[CORQ_MAX_THREADS];
	uint32_t n = run->opts->threads;

	corq_hist_init(&s->cycles);
	for (uint32_t i = 0; i < s->n_turns; i++)
		s->seconds += s->turn[i].seconds;
	for (uint32_t i = 0; i < n; i++) {
		const struct opensock_lot *lot = &run->worker[i].lot[side];

		add_thread(s, lot);
		rate[i] = s->seconds > 0 ? (double)lot->pairs / s->seconds : 0;
	}
	s->thread = opensock_spread_of(rate, n);
	s->rate = s->seconds > 0 ? (double)s->total / s->seconds : -1;
}

/* Nothing failed, what was opened is closed, and the instance says so too. */
static bool
adds_up(const struct opensock_figures *f)
{
	for (int side = 0; side < OPENSOCK_SIDES; side++) {
		const struct opensock_side_figures *s = &f->side[side];

		if (s->not_opened + s->not_closed != 0 || s->opened != s->closed)
			return false;
	}
	if (!f->opts->use[OPENSOCK_CORQ])
		return true;
	return f->loop_end.open == f->side[OPENSOCK_CORQ].count && f->end.open == 0 &&
	       f->left.open == 0 && f->left.blocks_lent == 0 && f->left.stranded == 0 &&
	       f->left.threads == 0;
}

void
opensock_figures_add(struct opensock_figures *f, const struct opensock_run *run)
{
	const struct opensock_side_figures *corq = &f->side[OPENSOCK_CORQ];
	const struct opensock_side_figures *kernel = &f->side[OPENSOCK_KERNEL];

	for (int side = 0; side < OPENSOCK_SIDES; side++)
		if (run->opts->use[side])
			add_side(&f->side[side], run, (enum opensock_side)side);
	f->ratio = corq->n_turns != 0 && kernel->n_turns != 0 && kernel->rate > 0
			   ? corq->rate / kernel->rate
			   : -1;
	f->bytes_per_handle = f->resident >= 0 && f->filled.open != 0
				      ? (double)f->resident / (double)f->filled.open
				      : -1;
	f->adds_up = adds_up(f);
}
