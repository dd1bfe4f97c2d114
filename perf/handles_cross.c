/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handles_cross.c - a thread opens handles; 0, 10, 50 or 100 % of them go through a ring to another
 * thread, on another CPU, which closes them. The rest it closes itself.
 *
 * The figure is the opener's time for a handle in the steady state, when it waits for room in the
 * ring as often as it must: so it is that of the slower of the two. A slice is 4096 handles; a
 * run's value is the median of its slices. Beside it, by the same two threads in turns:
 *   ring.round_trip    one word goes there and comes back, alone, through two such rings: what a
 *                      program pays that sends a handle home to be closed, and waits for it
 *   ring.stream        words go there and come back in batches of 64, nobody waits: what a word
 *                      costs then; the least that sending handles home could cost
 *   cross_N.sent_home  the same handles as in cross_N are closed by their opener when they are back
 * The bound is cross_N <= cross_0 + ring.round_trip; what is left above cross_0 + ring.stream is
 * printed too.
 */
#include "handles.h"

#include "base/ring.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	BATCH = 64,
	SLICE = 64 * BATCH,
	RING = 1024,
	SLICES_MAX = 512,
	TRIPS = 256, /* round trips of a slice */
};

enum mode {
	CLOSE_THERE,
	SEND_HOME,
	WORDS, /* no handles at all */
	TRIP   /* one word at a time */
};

struct cross {
	struct corq_lane *mine, *theirs;
	struct corq_spsc *there, *back;
	uint32_t percent;
	enum mode mode;
	int cpu;
	_Atomic uint32_t stop, ended;
	_Atomic uint64_t bad;            /* closes that were refused */
	CORQ_ALIGNED_LINE uint32_t pick; /* the opener's */
	double slice[SLICES_MAX];
};

static void *
far_end(void *arg)
{
	struct cross *x = arg;
	uint64_t h[BATCH], bad = 0;

	handles_pin(x->cpu);
	while (corq_load_acquire_u32(&x->stop) == 0 || corq_spsc_count(x->there) != 0) {
		uint32_t n = corq_spsc_pop(x->there, h, BATCH);

		if (x->mode == CLOSE_THERE)
			for (uint32_t i = 0; i < n; i++)
				bad += corq_lane_close(x->theirs, h[i]) != 0;
		else
			for (uint32_t i = 0; i < n;)
				i += corq_spsc_push(x->back, h + i, n - i);
	}
	corq_rmw_add_relaxed_u64(&x->bad, bad);
	corq_store_release_u32(&x->ended, 1);
	return NULL;
}

static void
close_here(struct cross *x, corq_h h)
{
	if (CORQ_UNLIKELY(corq_lane_close(x->mine, h) != 0))
		corq_rmw_add_relaxed_u64(&x->bad, 1);
}

/* What came back is closed here. */
static void
take_home(struct cross *x)
{
	uint64_t h[BATCH];
	uint32_t n = corq_spsc_pop(x->back, h, BATCH);

	for (uint32_t i = 0; i < n && x->mode == SEND_HOME; i++)
		close_here(x, h[i]);
}

/* Opens a batch, closes its part here, and sends the rest. */
static void
batch(struct cross *x)
{
	uint64_t out[BATCH];
	uint32_t k = 0;

	for (uint32_t j = 0; j < BATCH; j++) {
		corq_h h = x->mode == WORDS ? j : corq_lane_alloc(x->mine, 0);

		x->pick += x->percent;
		if (x->pick >= 100) {
			x->pick -= 100;
			out[k++] = h;
		} else {
			close_here(x, h);
		}
	}
	for (uint32_t j = 0; j < k;) {
		j += corq_spsc_push(x->there, out + j, k - j);
		if (x->mode != CLOSE_THERE)
			take_home(x);
	}
}

static void
round_trips(struct cross *x)
{
	uint64_t w = 0;

	for (uint32_t i = 0; i < TRIPS; i++) {
		corq_spsc_push(x->there, &w, 1);
		while (corq_spsc_pop(x->back, &w, 1) == 0)
			;
	}
}

/* Nanoseconds a handle (a word, a round trip): the median of n slices. */
static double
measure(struct handles_bench *b, struct cross *x, enum mode mode, uint32_t percent, uint32_t n)
{
	pthread_t thread;

	x->mode = mode;
	x->percent = percent;
	x->pick = 0;
	corq_store_relaxed_u32(&x->stop, 0);
	corq_store_relaxed_u32(&x->ended, 0);
	if (pthread_create(&thread, NULL, far_end, x) != 0)
		exit(1);
	for (uint32_t s = 0; s < n; s++) {
		uint64_t start = corq_cycles();

		if (mode == TRIP)
			round_trips(x);
		else
			for (uint32_t i = 0; i < SLICE; i += BATCH)
				batch(x);
		x->slice[s] =
			(double)(corq_cycles() - start) * b->ns / (mode == TRIP ? TRIPS : SLICE);
	}
	corq_store_release_u32(&x->stop, 1);
	while (corq_load_acquire_u32(&x->ended) == 0 || corq_spsc_count(x->back) != 0)
		take_home(x); /* or it waits for room */
	pthread_join(thread, NULL);
	return result_median_of(x->slice, n);
}

static struct cross *
make_cross(const struct handles_bench *b)
{
	struct corq_handles *h = handles_map(sizeof(*h));
	struct cross *x = handles_map(sizeof(*x));
	uint32_t slots = 64 * CORQ_BLOCK_SLOTS;

	corq_handles_init(h, handles_map(corq_handles_size(slots, 2)), slots, 2, 1);
	x->mine = handles_add_lane(h, CORQ_LANE_LOWEST);
	x->theirs = handles_add_lane(h, CORQ_LANE_LOWEST);
	x->there = handles_map(corq_spsc_size(RING));
	x->back = handles_map(corq_spsc_size(RING));
	corq_spsc_init(x->there, RING);
	corq_spsc_init(x->back, RING);
	x->cpu = b->cpu[1];
	return x;
}

/* Every handle was closed once, and its slot is free. */
static void
check(const struct cross *x)
{
	uint64_t bad = corq_load_relaxed_u64(&x->bad);
	struct corq_handles_counts c;

	corq_handles_count(x->mine->h, &c);
	if (bad != 0 || c.open != 0) {
		fprintf(stderr, "bench_handles: %llu closes were refused, %llu handles are open\n",
			(unsigned long long)bad, (unsigned long long)c.open);
		exit(1);
	}
}

void
handles_cross(struct handles_bench *b)
{
	static const uint32_t percent[] = {0, 10, 50, 100};
	uint32_t n = CORQ_MAX(CORQ_MIN(b->ops / 64, (uint32_t)SLICES_MAX), 5u);
	struct cross *x = make_cross(b);
	struct results *r = &b->results;

	handles_pin(b->cpu[0]);
	for (unsigned i = 0; i < b->runs; i++) {
		double v[CORQ_ARRAY_LEN(percent)], trip, stream;

		trip = measure(b, x, TRIP, 100, n);
		stream = measure(b, x, WORDS, 100, n);
		result_add(r, "ns", trip, "ring.round_trip");
		result_add(r, "ns", stream, "ring.stream");
		for (unsigned k = 0; k < CORQ_ARRAY_LEN(percent); k++) {
			v[k] = measure(b, x, CLOSE_THERE, percent[k], n);
			result_add(r, "ns", v[k], "cross_%u.closed_there", percent[k]);
			result_add(r, "ns", measure(b, x, SEND_HOME, percent[k], n),
				"cross_%u.sent_home", percent[k]);
			result_add(r, "ns", v[k] - v[0], "cross_%u.above_local", percent[k]);
			result_add(r, "x", v[k] / (v[0] + trip), "cross_%u.to_local_and_round_trip",
				percent[k]);
			result_add(r, "x", v[k] / (v[0] + stream), "cross_%u.to_local_and_stream",
				percent[k]);
		}
		check(x);
	}
	result_peer(r, "cross_10", "closed_there", "sent_home");
	result_peer(r, "cross_50", "closed_there", "sent_home");
	result_peer(r, "cross_100", "closed_there", "sent_home");
}
