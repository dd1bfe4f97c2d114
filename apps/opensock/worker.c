/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - see worker.h. The loop is compiled once a side, so that nothing stands between it and
 * the calls it measures.
 */
#include "opensock/worker.h"
#include "opensock/plan.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>

INLINE uint64_t
cycles(void)
{
	return __rdtsc();
}
#else
INLINE uint64_t
cycles(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
#endif

uint64_t
opensock_cycles(void)
{
	return cycles();
}

double
opensock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- one socket ---- */

static void
note_error(struct opensock_lot *lot, int error)
{
	if (lot->error == 0)
		lot->error = error;
}

INLINE bool
open_one(struct opensock_worker *w, enum opensock_side side, uint64_t *x)
{
	struct opensock_lot *lot = &w->lot[side];
	int rc;

	if (side == OPENSOCK_CORQ) {
		rc = corq_socket(w->att, AF_INET, SOCK_STREAM, 0, x);
	} else {
		rc = socket(AF_INET, SOCK_STREAM, 0);
		*x = (uint64_t)rc;
		rc = rc < 0 ? -errno : 0;
	}
	if (rc == 0) {
		lot->opened++;
		return true;
	}
	lot->not_opened++;
	note_error(lot, -rc);
	return false;
}

INLINE void
close_one(struct opensock_worker *w, enum opensock_side side, uint64_t x)
{
	struct opensock_lot *lot = &w->lot[side];
	int rc;

	if (side == OPENSOCK_CORQ)
		rc = corq_close(w->att, x);
	else
		rc = close((int)x) != 0 ? -errno : 0;
	if (rc == 0) {
		lot->closed++;
		return;
	}
	lot->not_closed++;
	note_error(lot, -rc);
}

/* xorshift64 */
INLINE uint64_t
below(struct opensock_worker *w, uint64_t n)
{
	w->rand ^= w->rand << 13;
	w->rand ^= w->rand >> 7;
	w->rand ^= w->rand << 17;
	return (uint64_t)((unsigned __int128)w->rand * n >> 64);
}

/* ---- the loop ---- */

INLINE bool
is_going(const struct opensock_worker *w)
{
	return atomic_load_explicit(&w->run->going, memory_order_relaxed) != 0;
}

void
opensock_end_turn(struct opensock_run *run)
{
	if (atomic_exchange(&run->going, 0) != 0)
		run->ended = opensock_now();
}

/* Closes what others sent here. */
INLINE uint64_t
drain(struct opensock_worker *w, enum opensock_side side)
{
	struct opensock_lot *lot = &w->lot[side];
	uint64_t x, n = 0;

	for (; opensock_ring_pop(&lot->in, &x); n++)
		close_one(w, side, x);
	return n;
}

/* Waits for room, and works for others meanwhile: so no two wait for each other. */
static void
send_slow(struct opensock_worker *w, enum opensock_side side, uint64_t x)
{
	struct opensock_lot *lot = &w->lot[side];
	uint64_t n;

	while (!opensock_ring_push(lot->out, x)) {
		n = drain(w, side);
		lot->crossed += n;
		if (n == 0)
			sched_yield();
		if (cycles() >= w->run->deadline)
			opensock_end_turn(w->run);
		if (!is_going(w)) {
			close_one(w, side, x); /* the turn is over, and nobody makes room */
			return;
		}
	}
}

/* What is closed for x, which was just opened. */
INLINE uint64_t
exchange(struct opensock_worker *w, struct opensock_lot *lot, enum opensock_order order, uint64_t x)
{
	uint64_t *at, old;

	if (order == OPENSOCK_LIFO || lot->n == 0)
		return x;
	if (order == OPENSOCK_FIFO) {
		at = &lot->held[lot->next];
		lot->next = lot->next + 1 == lot->n ? 0 : lot->next + 1;
	} else {
		at = &lot->held[below(w, lot->n)];
	}
	old = *at;
	*at = x;
	return old;
}

INLINE void
pair(struct opensock_worker *w, enum opensock_side side, enum opensock_order order, uint32_t cross)
{
	struct opensock_lot *lot = &w->lot[side];
	uint64_t x;

	if (!open_one(w, side, &x))
		return;
	x = exchange(w, lot, order, x);
	w->cross += cross;
	if (w->cross >= 100) {
		w->cross -= 100;
		if (!opensock_ring_push(lot->out, x))
			send_slow(w, side, x);
		return;
	}
	close_one(w, side, x);
}

INLINE void
turn(struct opensock_worker *w, enum opensock_side side, enum opensock_order order, uint32_t cross)
{
	struct opensock_lot *lot = &w->lot[side];
	uint64_t before = lot->closed, deadline = w->run->deadline, start, end;

	while (is_going(w)) {
		start = cycles();
		for (int i = 0; i < OPENSOCK_BATCH; i++)
			pair(w, side, order, cross);
		if (cross != 0)
			lot->crossed += drain(w, side);
		end = cycles();
		corq_hist_record(&lot->cycles, end - start);
		if (end >= deadline)
			opensock_end_turn(w->run);
	}
	lot->pairs += lot->closed - before;
}

/* The plain loop, as it was in 2015, has no word more in it than need be. */
static void
take_turn(struct opensock_worker *w)
{
	enum opensock_order order = w->run->opts->order;
	uint32_t cross = w->run->opts->cross;
	bool plain = order == OPENSOCK_LIFO && cross == 0;

	if (w->run->side == OPENSOCK_CORQ && plain)
		turn(w, OPENSOCK_CORQ, OPENSOCK_LIFO, 0);
	else if (w->run->side == OPENSOCK_CORQ)
		turn(w, OPENSOCK_CORQ, order, cross);
	else if (plain)
		turn(w, OPENSOCK_KERNEL, OPENSOCK_LIFO, 0);
	else
		turn(w, OPENSOCK_KERNEL, order, cross);
}

/* ---- before and after ---- */

static void
touch(struct opensock_worker *w)
{
	for (int side = 0; side < OPENSOCK_SIDES; side++) {
		struct opensock_run *run = w->run;
		struct opensock_lot *lot = &w->lot[side], *to;
		uint64_t n = opensock_share(run->count[side], run->opts->threads, w->index);
		uint32_t ring = side == OPENSOCK_CORQ ? OPENSOCK_RING : OPENSOCK_RING_KERNEL;
		uint64_t *slots;

		if (!run->opts->use[side])
			continue;
		n += opensock_extra(run->opts, n);
		lot->held = malloc((n + ring) * sizeof(uint64_t));
		if (lot->held == NULL) {
			w->error = ENOMEM;
			return;
		}
		memset(lot->held, 0xff, (n + ring) * sizeof(uint64_t));
		slots = lot->held + n;
		opensock_ring_init(&lot->in, slots, ring);
		to = &run->worker[(w->index + 1) % run->opts->threads].lot[side];
		lot->out = &to->in;
		corq_hist_init(&lot->cycles);
	}
}

/* The kernel's table can be filled with names of one socket. */
static bool
occupy(struct opensock_worker *w, enum opensock_side side, uint64_t *x)
{
	struct opensock_lot *lot = &w->lot[side];
	int fd;

	if (side == OPENSOCK_CORQ || !w->run->opts->dup || lot->n == 0)
		return side == OPENSOCK_CORQ ? open_one(w, OPENSOCK_CORQ, x)
					     : open_one(w, OPENSOCK_KERNEL, x);
	fd = dup((int)lot->held[0]);
	if (fd < 0) {
		lot->not_opened++;
		note_error(lot, errno);
		return false;
	}
	lot->opened++;
	*x = (uint64_t)fd;
	return true;
}

static void
close_any(struct opensock_worker *w, enum opensock_side side, uint64_t x)
{
	if (side == OPENSOCK_CORQ)
		close_one(w, OPENSOCK_CORQ, x);
	else
		close_one(w, OPENSOCK_KERNEL, x);
}

static void
fill(struct opensock_worker *w, enum opensock_side side)
{
	const struct opensock_options *opts = w->run->opts;
	struct opensock_lot *lot = &w->lot[side];
	uint64_t share = opensock_share(w->run->count[side], opts->threads, w->index);
	uint64_t extra = opensock_extra(opts, share);
	struct corq_attach_opts how = {.order = opts->fast ? CORQ_ORDER_FAST : CORQ_ORDER_LOWEST};

	if (side == OPENSOCK_CORQ) {
		w->error = -corq_attach(w->run->inst, &how, &w->att);
		if (w->error != 0) {
			w->att = NULL;
			return;
		}
	}
	while (lot->n < share + extra && occupy(w, side, &lot->held[lot->n]))
		lot->n++;
	while (lot->n > share) {
		uint64_t *at = &lot->held[below(w, lot->n)];

		close_any(w, side, *at);
		*at = lot->held[--lot->n];
	}
}

static void
empty(struct opensock_worker *w, enum opensock_side side)
{
	struct opensock_lot *lot = &w->lot[side];

	if (side == OPENSOCK_CORQ && w->att == NULL)
		return;
	while (lot->n > 0)
		close_any(w, side, lot->held[--lot->n]);
}

void
opensock_work(void *arg, uint32_t index, int step)
{
	struct opensock_run *run = arg;
	struct opensock_worker *w = &run->worker[index];

	switch ((enum opensock_step)step) {
	case OPENSOCK_TOUCH:
		touch(w);
		break;
	case OPENSOCK_FILL:
		fill(w, run->side);
		break;
	case OPENSOCK_TURN:
		take_turn(w);
		break;
	case OPENSOCK_DRAIN:
		if (run->side == OPENSOCK_CORQ)
			drain(w, OPENSOCK_CORQ);
		else
			drain(w, OPENSOCK_KERNEL);
		break;
	case OPENSOCK_EMPTY:
		empty(w, run->side);
		break;
	case OPENSOCK_LEAVE:
		if (w->att != NULL)
			corq_detach(w->att);
		w->att = NULL;
		break;
	}
}

bool
opensock_workers_make(struct opensock_run *run)
{
	size_t bytes = run->opts->threads * sizeof(struct opensock_worker);

	run->worker = aligned_alloc(_Alignof(struct opensock_worker), bytes);
	if (run->worker == NULL)
		return false;
	memset(run->worker, 0, bytes);
	for (uint32_t i = 0; i < run->opts->threads; i++) {
		run->worker[i].run = run;
		run->worker[i].index = i;
		run->worker[i].rand = 0x9e3779b97f4a7c15ull * (i + 1);
	}
	return true;
}

void
opensock_workers_free(struct opensock_run *run)
{
	for (uint32_t i = 0; i < run->opts->threads; i++)
		for (int side = 0; side < OPENSOCK_SIDES; side++)
			free(run->worker[i].lot[side].held);
	free(run->worker);
}
