/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handles_threads.c - 1, 2, 16 and 48 threads, each with pairs of take and put, dealt to two CPUs
 * in turn: in lanes of their own of one region; in floors (a) of their own, which share nothing, so
 * what they lose is the machine's; in one floor (b), which all share; and in the kernel, whose
 * descriptor table all share.
 *
 * The contenders run in turns, a window each (30 ms, from 16 threads on 100 ms); a run's rate is
 * the median of its windows.
 */
#include "handle_floor.h"
#include "handles.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	MANY = 48,
	WINDOWS = 5,
	BLOCKS_EACH = 8,
};

CONTENDER(tree, struct floor_tree, floor_tree_take(s), floor_tree_put(s, (uint32_t)x))
CONTENDER(shared, struct floor_shared, floor_shared_take(s), floor_shared_put(s, (uint32_t)x))
CONTENDER(kernel, void, (uint64_t)socket(AF_INET, SOCK_STREAM, 0), close((int)x))
CONTENDER(number, struct corq_lane, corq_lane_take(s), corq_lane_put(s, (uint32_t)x))

enum {
	LANES,
	TREES,
	SHARED,
	KERNEL,
	SETS
};

struct worker {
	struct contender c;
	pthread_t thread;
	int cpu;
	uint64_t done;
} CORQ_ALIGNED_LINE;

/* One word tells all: nobody writes it while they work. */
static _Atomic uint32_t ready, go;
enum {
	WAIT,
	WORK,
	STOP
};

static struct {
	const char *name;
	struct worker worker[MANY];
} set[SETS] = {{.name = "lanes"}, {.name = "floor_a"}, {.name = "floor_b"}, {.name = "floor_d"}};

static void *
work(void *arg)
{
	struct worker *w = arg;

	handles_pin(w->cpu);
	corq_rmw_add_seqcst_u32(&ready, 1);
	while (corq_load_acquire_u32(&go) == WAIT)
		sched_yield();
	while (corq_load_relaxed_u32(&go) == WORK) {
		w->c.pairs(&w->c, w->c.ops);
		w->done += w->c.ops;
	}
	return NULL;
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Pairs a second by n threads. */
static double
rate_of(const struct handles_bench *b, struct worker *w, unsigned n)
{
	struct timespec window = {.tv_nsec = (n > 2 ? 5000l : 1500l) * CORQ_MIN(b->ops, 20000u)};
	double done = 0, start, end;

	corq_store_relaxed_u32(&ready, 0);
	corq_store_relaxed_u32(&go, WAIT);
	for (unsigned i = 0; i < n; i++) {
		w[i].done = 0;
		w[i].cpu = b->cpu[i % 2];
		if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0) {
			fprintf(stderr, "bench_handles: %u threads are too many here\n", n);
			exit(1);
		}
	}
	while (corq_load_acquire_u32(&ready) < n)
		sched_yield();
	start = seconds();
	corq_store_release_u32(&go, WORK);
	nanosleep(&window, NULL);
	corq_store_release_u32(&go, STOP);
	end = seconds();
	for (unsigned i = 0; i < n; i++) {
		pthread_join(w[i].thread, NULL);
		done += (double)w[i].done;
	}
	return done / (end - start);
}

/* Each thread has its own lane, or floor, half full; or the one that all share. */
static void
make_workers(void)
{
	static struct floor_shared shared;
	struct corq_handles *h = handles_map(sizeof(*h));
	uint32_t each = BLOCKS_EACH * CORQ_BLOCK_SLOTS, n = MANY * each;

	corq_handles_init(h, handles_map(corq_handles_size(n, MANY)), n, MANY, 1);
	floor_shared_init(&shared, n);
	for (unsigned i = 0; i < MANY; i++) {
		struct corq_lane *l = handles_add_lane(h, CORQ_LANE_LOWEST);
		struct floor_tree *t = aligned_alloc(CORQ_CACHELINE, CORQ_CACHELINE);

		floor_tree_init(t, each);
		for (unsigned k = 0; k < each / 2 + 7; k++) {
			(void)corq_lane_take(l);
			(void)floor_tree_take(t);
			(void)floor_shared_take(&shared);
		}
		set[LANES].worker[i].c =
			(struct contender){.state = l, .ops = 1000, CONTENDER_CALLS(number)};
		set[TREES].worker[i].c =
			(struct contender){.state = t, .ops = 1000, CONTENDER_CALLS(tree)};
		set[SHARED].worker[i].c =
			(struct contender){.state = &shared, .ops = 100, CONTENDER_CALLS(shared)};
		set[KERNEL].worker[i].c = (struct contender){.ops = 10, CONTENDER_CALLS(kernel)};
	}
}

static void
run(struct handles_bench *b)
{
	static const unsigned threads[] = {1, 2, 16, MANY};
	double window[SETS][CORQ_ARRAY_LEN(threads)][WINDOWS], v[SETS][CORQ_ARRAY_LEN(threads)];

	for (unsigned k = 0; k < WINDOWS; k++)
		for (unsigned t = 0; t < CORQ_ARRAY_LEN(threads); t++)
			for (unsigned s = 0; s < SETS; s++)
				window[s][t][k] = rate_of(b, set[s].worker, threads[t]);
	for (unsigned s = 0; s < SETS; s++)
		for (unsigned t = 0; t < CORQ_ARRAY_LEN(threads); t++) {
			v[s][t] = result_median_of(window[s][t], WINDOWS);
			result_add(&b->results, "pairs/s", v[s][t], "threads_%u.%s", threads[t],
				set[s].name);
		}
	for (unsigned s = 0; s < SETS; s++) {
		result_add(&b->results, "x", v[s][1] / v[s][0], "scaling_2_to_1.%s", set[s].name);
		result_add(&b->results, "x", v[s][3] / v[s][1], "scaling_48_to_2.%s", set[s].name);
	}
}

void
handles_threads(struct handles_bench *b)
{
	static const char *const with_peer[] = {"threads_1", "threads_2", "threads_16",
		"threads_48", "scaling_2_to_1", "scaling_48_to_2"};

	make_workers();
	for (unsigned i = 0; i < b->runs; i++)
		run(b);
	for (unsigned i = 0; i < CORQ_ARRAY_LEN(with_peer); i++)
		result_peer(&b->results, with_peer[i], "lanes", "floor_a");
}
