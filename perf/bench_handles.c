/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_handles.c - what a handle costs in one lane, beside floors measured in the same run: (a) a
 * 64-ary tree of bits, (b) the same shared by compare-and-swap, (c) a bare stack.
 *
 * alone: each contender stands at the same occupancy; then all run in turns, a slice each, so that
 * what disturbs the machine disturbs all. A run's value is the median of its slices. Loads: pairs
 * of take and put; and `holes`: of all slots a part was put back at random, then a random one of
 * the taken is put and one taken, over and over. floor_a_object is floor (a) and a touch of the 16
 * bytes that the number names, which is what a random handle costs before it is a handle. threads:
 * pairs in lanes of their own, and in floors (a) of their own; all share the CPUs given. cross: a
 * thread opens, another closes a part of the handles; beside it the same handles cross and come
 * back to be closed where they were opened (there and back through rings).
 */
#include "handle_floor.h"
#include "result.h"

#include "base/cycles.h"
#include "base/handle.h"
#include "base/rand.h"
#include "base/ring.h"

#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	SLICES = 21
};

/* One contender: its state, and the two loads. */
struct contender {
	const char *name;
	void *state;
	void (*fill)(struct contender *c, uint32_t n);
	void (*drop)(struct contender *c, uint32_t n); /* at random, down to n */
	void (*pairs)(struct contender *c, uint32_t ops);
	void (*holes)(struct contender *c, uint32_t ops);
	uint64_t *taken; /* what is out, any order */
	uint32_t n_taken;
	struct corq_rand rand;
	double slice[SLICES];
};

#define CONTENDER(name, type, take, put)                                                           \
	static void name##_fill(struct contender *c, uint32_t n)                                   \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		while (c->n_taken < n)                                                             \
			c->taken[c->n_taken++] = take;                                             \
	}                                                                                          \
	static void name##_drop(struct contender *c, uint32_t n)                                   \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		while (c->n_taken > n) {                                                           \
			uint64_t *at = &c->taken[corq_rand_below(&c->rand, c->n_taken)], x = *at;  \
                                                                                                   \
			put;                                                                       \
			*at = c->taken[--c->n_taken];                                              \
		}                                                                                  \
	}                                                                                          \
	static void name##_pairs(struct contender *c, uint32_t ops)                                \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		for (uint32_t i = 0; i < ops; i++) {                                               \
			uint64_t x = take;                                                         \
                                                                                                   \
			put;                                                                       \
		}                                                                                  \
	}                                                                                          \
	static void name##_holes(struct contender *c, uint32_t ops)                                \
	{                                                                                          \
		type *s = c->state;                                                                \
                                                                                                   \
		for (uint32_t i = 0; i < ops; i++) {                                               \
			uint64_t *at = &c->taken[corq_rand_below(&c->rand, c->n_taken)], x = *at;  \
                                                                                                   \
			put;                                                                       \
			*at = take;                                                                \
		}                                                                                  \
	}

CONTENDER(tree, struct floor_tree, floor_tree_take(s), floor_tree_put(s, (uint32_t)x))
/* The objects that floor_a_object's numbers name. */
struct object {
	uint64_t generation, rest;
};
struct tree_object {
	struct floor_tree tree;
	struct object *object;
};

static inline uint64_t
object_take(struct tree_object *t)
{
	uint64_t n = floor_tree_take(&t->tree);

	t->object[n].rest = 1;
	return n;
}

static inline void
object_put(struct tree_object *t, uint64_t n)
{
	t->object[n].generation++;
	floor_tree_put(&t->tree, (uint32_t)n);
}

CONTENDER(object, struct tree_object, object_take(s), object_put(s, x))
CONTENDER(shared, struct floor_shared, floor_shared_take(s), floor_shared_put(s, (uint32_t)x))
CONTENDER(stack, struct floor_stack, floor_stack_take(s), floor_stack_put(s, (uint32_t)x))
CONTENDER(slot, struct corq_lane, corq_lane_take(s), corq_lane_put(s, (uint32_t)x))
CONTENDER(handle, struct corq_lane, corq_lane_alloc(s, 0), corq_lane_close(s, x))

static uint32_t n_slots = 10000000, ops = 20000;
static unsigned n_runs = 5;

static void *
map(size_t bytes)
{
	void *p = mmap(NULL, bytes + (2u << 20), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("bench_handles: memory");
		exit(1);
	}
	madvise(p, bytes + (2u << 20), MADV_HUGEPAGE);
	return (void *)(((uintptr_t)p + (2u << 20) - 1) & ~(uintptr_t)((2u << 20) - 1));
}

static struct corq_lane *
new_lane(enum corq_lane_order order)
{
	struct corq_handles *h = calloc(1, sizeof(*h));
	struct corq_lane *l = calloc(1, sizeof(*l));

	corq_handles_init(h, map(corq_handles_size(n_slots, 1)), n_slots, 1, 1);
	if (corq_lane_attach(l, h, map(corq_lane_size(n_slots)),
		    &(struct corq_lane_config){.order = order}) != 0)
		abort();
	return l;
}

static double
ns_per_cycle(void)
{
	struct timespec a, b;
	uint64_t c = corq_cycles();

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec < 50000000);
	return (double)((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec) /
	       (double)(corq_cycles() - c);
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

enum {
	TREE,
	OBJECT,
	SHARED,
	STACK,
	LOWEST,
	LOWEST_HANDLE,
	FAST,
	FAST_HANDLE,
	CONTENDERS
};

#define USE(name)                                                                                  \
	name##_fill, name##_drop, name##_pairs, name##_holes, NULL, 0, {{0}},                      \
	{                                                                                          \
		0                                                                                  \
	}
static struct contender contender[CONTENDERS] = {
	[TREE] = {"floor_a", NULL, USE(tree)},
	[OBJECT] = {"floor_a_object", NULL, USE(object)},
	[SHARED] = {"floor_b", NULL, USE(shared)},
	[STACK] = {"floor_c", NULL, USE(stack)},
	[LOWEST] = {"lowest", NULL, USE(slot)},
	[LOWEST_HANDLE] = {"lowest.handle", NULL, USE(handle)},
	[FAST] = {"fast", NULL, USE(slot)},
	[FAST_HANDLE] = {"fast.handle", NULL, USE(handle)},
};

static void
make_contenders(void)
{
	struct floor_tree *tree = malloc(sizeof(*tree));
	struct tree_object *object = malloc(sizeof(*object));
	struct floor_shared *shared = malloc(sizeof(*shared));
	struct floor_stack *stack = malloc(sizeof(*stack));

	floor_tree_init(tree, n_slots);
	floor_tree_init(&object->tree, n_slots);
	object->object = map(n_slots * sizeof(struct object));
	floor_shared_init(shared, n_slots);
	floor_stack_init(stack, n_slots);
	contender[TREE].state = tree;
	contender[OBJECT].state = object;
	contender[SHARED].state = shared;
	contender[STACK].state = stack;
	for (int i = LOWEST; i < CONTENDERS; i++)
		contender[i].state = new_lane(i < FAST ? CORQ_LANE_LOWEST : CORQ_LANE_FAST);
	for (int i = 0; i < CONTENDERS; i++) {
		contender[i].taken = map(n_slots * sizeof(uint64_t));
		corq_rand_seed(&contender[i].rand, 1);
	}
}

/* A run: slices in turns; nanoseconds a take and put. */
static void
run(struct results *r, const char *load, bool holes, double ns)
{
	double v[CONTENDERS];

	for (int k = 0; k < SLICES; k++)
		for (int i = 0; i < CONTENDERS; i++) {
			struct contender *c = &contender[i];
			uint64_t start;

			(holes ? c->holes : c->pairs)(c, ops / 20); /* into the caches */
			start = corq_cycles();
			(holes ? c->holes : c->pairs)(c, ops);
			c->slice[k] = (double)(corq_cycles() - start) * ns / ops;
		}
	for (int i = 0; i < CONTENDERS; i++) {
		qsort(contender[i].slice, SLICES, sizeof(double), by_value);
		v[i] = contender[i].slice[SLICES / 2];
		result_add(r, "ns", v[i], "%s.%s", load, contender[i].name);
	}
	result_add(r, "x", v[LOWEST] / v[TREE], "%s.lowest_to_floor_a", load);
	result_add(r, "x", v[FAST] / v[STACK], "%s.fast_to_floor_c", load);
	result_add(r, "ns", v[LOWEST_HANDLE] - v[OBJECT], "%s.lowest.handle_above_floor_a_object",
		load);
}

static void
alone(struct results *r)
{
	static const struct {
		const char *name;
		double part;
		bool holes;
	} load[] = {{"empty", 0, false}, {"half", 0.5, false}, {"99.9", 0.999, false},
		{"all_but_one", 1, false}, {"99.9_holes", 0.999, true}, {"half_holes", 0.5, true}};
	double ns = ns_per_cycle();

	make_contenders();
	for (unsigned k = 0; k < sizeof(load) / sizeof(load[0]); k++) {
		uint32_t n = load[k].part == 1 ? n_slots - 1 : (uint32_t)(load[k].part * n_slots);

		for (int i = 0; i < CONTENDERS; i++) {
			contender[i].fill(&contender[i], load[k].holes ? n_slots : n);
			contender[i].drop(&contender[i], n);
		}
		for (unsigned i = 0; i < n_runs; i++)
			run(r, load[k].name, load[k].holes, ns);
	}
}

/* ---- threads ---- */

static _Atomic uint32_t ready, go;

struct worker {
	struct contender c;
	pthread_t thread;
	unsigned cpu;
	uint64_t done;
};

static void *
work(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	corq_rmw_add_seqcst_u32(&ready, 1);
	while (corq_load_acquire_u32(&go) == 0)
		sched_yield();
	while (corq_load_relaxed_u32(&go) == 1) {
		w->c.pairs(&w->c, 1000);
		w->done += 1000;
	}
	return NULL;
}

/* Pairs a second by n threads for 200 ms, threads dealt to the CPUs in turn. */
static double
rate_of(struct worker *w, unsigned n, const int *cpu, unsigned n_cpus)
{
	struct timespec window = {.tv_nsec = 200000000}, a, b;
	double done = 0;

	corq_store_relaxed_u32(&ready, 0);
	corq_store_relaxed_u32(&go, 0);
	for (unsigned i = 0; i < n; i++) {
		w[i].done = 0;
		w[i].cpu = (unsigned)cpu[i % n_cpus];
		if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
			abort();
	}
	while (corq_load_acquire_u32(&ready) < n)
		sched_yield();
	clock_gettime(CLOCK_MONOTONIC, &a);
	corq_store_release_u32(&go, 1);
	nanosleep(&window, NULL);
	corq_store_release_u32(&go, 2);
	clock_gettime(CLOCK_MONOTONIC, &b);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(w[i].thread, NULL);
		done += (double)w[i].done;
	}
	return done / ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
}

enum {
	MANY = 48
};

/* n lanes of one region; n floors of a thread each. All half full. */
static void
make_workers(struct worker *lanes, struct worker *floors)
{
	struct corq_handles *h = calloc(1, sizeof(*h));
	uint32_t n = MANY * 4096 * 8;

	corq_handles_init(h, map(corq_handles_size(n, MANY)), n, MANY, 1);
	for (unsigned i = 0; i < MANY; i++) {
		struct corq_lane *l = aligned_alloc(CORQ_CACHELINE, 2 * CORQ_CACHELINE);
		struct floor_tree *t = aligned_alloc(CORQ_CACHELINE, CORQ_CACHELINE);

		_Static_assert(sizeof(*l) <= 2 * CORQ_CACHELINE, "a thread's lines are its own");
		if (corq_lane_attach(l, h, map(corq_lane_size(n)), &(struct corq_lane_config){0}) !=
			0)
			abort();
		floor_tree_init(t, 4096 * 8);
		for (unsigned k = 0; k < 4096 * 4 + 7; k++) {
			(void)corq_lane_take(l);
			(void)floor_tree_take(t);
		}
		lanes[i].c = (struct contender){.state = l, .pairs = slot_pairs};
		floors[i].c = (struct contender){.state = t, .pairs = tree_pairs};
	}
}

static int
usable_cpus(int *cpu, int max)
{
	cpu_set_t set;
	int n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && n < max; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	return n;
}

static void
threads(struct results *r)
{
	static struct worker lanes[MANY], floors[MANY];
	int cpu[2], n_cpus = usable_cpus(cpu, 2);

	if (n_cpus < 2) {
		fprintf(stderr, "bench_handles: threads: one CPU may be used, two are needed\n");
		return;
	}
	make_workers(lanes, floors);
	for (unsigned i = 0; i < n_runs; i++) {
		double l1 = rate_of(lanes, 1, cpu, 1), f1 = rate_of(floors, 1, cpu, 1);
		double l2 = rate_of(lanes, 2, cpu, 2), f2 = rate_of(floors, 2, cpu, 2);
		double l48 = rate_of(lanes, MANY, cpu, 2), f48 = rate_of(floors, MANY, cpu, 2);

		result_add(r, "pairs/s", l1, "threads.1");
		result_add(r, "pairs/s", l2, "threads.2");
		result_add(r, "pairs/s", l48, "threads.48");
		result_add(r, "x", l2 / l1, "threads.2.scaling");
		result_add(r, "x", f2 / f1, "threads.2.scaling.floor_a");
		result_add(r, "x", l2 / l1 / (f2 / f1), "threads.2.scaling_to_floor_a");
		result_add(r, "x", l48 / l2, "threads.48_to_2");
		result_add(r, "x", f48 / f2, "threads.48_to_2.floor_a");
	}
}

/* ---- frees by another thread ---- */

struct cross {
	struct corq_lane *mine, *theirs;
	struct corq_spsc *there, *back;
	uint32_t percent; /* of the handles that go there and are closed there */
	bool come_back;   /* instead */
	int cpu;
};

static void *
closer(void *arg)
{
	struct cross *x = arg;
	uint64_t h[64];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(x->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	while (corq_load_relaxed_u32(&go) != 2 || corq_spsc_count(x->there) != 0) {
		uint32_t n = corq_spsc_pop(x->there, h, 64);

		for (uint32_t i = 0; i < n && !x->come_back; i++)
			corq_lane_close(x->theirs, h[i]);
		for (uint32_t i = 0; x->come_back && i < n;)
			i += corq_spsc_push(x->back, h + i, n - i);
	}
	return NULL;
}

/* The opener's nanoseconds a handle, until all are closed. */
static double
cross_run(struct cross *x, uint32_t n, double ns)
{
	uint64_t start, out[64], back[64];
	uint32_t closed = 0, pick = 0;
	pthread_t thread;

	corq_store_relaxed_u32(&go, 1);
	if (pthread_create(&thread, NULL, closer, x) != 0)
		abort();
	start = corq_cycles();
	for (uint32_t i = 0; i < n; i += 64) {
		uint32_t k = 0;

		for (uint32_t j = 0; j < 64; j++) {
			corq_h h = corq_lane_alloc(x->mine, 0);

			pick += x->percent;
			if (pick >= 100) {
				pick -= 100;
				out[k++] = h;
			} else {
				corq_lane_close(x->mine, h);
			}
		}
		for (uint32_t j = 0; j < k;) {
			uint32_t got = x->come_back ? corq_spsc_pop(x->back, back, 64) : 0;

			for (uint32_t b = 0; b < got; b++)
				corq_lane_close(x->mine, back[b]);
			closed += got;
			j += corq_spsc_push(x->there, out + j, k - j);
		}
	}
	corq_store_release_u32(&go, 2);
	pthread_join(thread, NULL);
	for (uint32_t got; x->come_back && (got = corq_spsc_pop(x->back, back, 64)) != 0;)
		for (uint32_t b = 0; b < got; b++)
			corq_lane_close(x->mine, back[b]);
	(void)closed;
	return (double)(corq_cycles() - start) * ns / n;
}

static void
cross(struct results *r)
{
	static const uint32_t percent[] = {0, 10, 50, 100};
	struct corq_handles *h = calloc(1, sizeof(*h));
	struct corq_lane lane[2];
	int cpu[2], n_cpus = usable_cpus(cpu, 2);
	double ns = ns_per_cycle();
	uint32_t n = 64 * 4096;

	if (n_cpus < 2)
		return;
	corq_handles_init(h, map(corq_handles_size(n, 2)), n, 2, 1);
	for (int i = 0; i < 2; i++)
		if (corq_lane_attach(&lane[i], h, map(corq_lane_size(n)),
			    &(struct corq_lane_config){0}) != 0)
			abort();
	for (unsigned i = 0; i < n_runs; i++)
		for (unsigned k = 0; k < CORQ_ARRAY_LEN(percent); k++) {
			struct cross x = {&lane[0], &lane[1], map(corq_spsc_size(1024)),
				map(corq_spsc_size(1 << 20)), percent[k], false, cpu[1]};
			double there, both;
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET(cpu[0], &set);
			pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
			corq_spsc_init(x.there, 1024);
			corq_spsc_init(x.back, 1 << 20);
			there = cross_run(&x, 20 * ops, ns);
			x.come_back = true;
			both = cross_run(&x, 20 * ops, ns);
			result_add(r, "ns", there, "cross.%u", percent[k]);
			result_add(r, "ns", both, "cross.%u.there_and_back", percent[k]);
			result_add(r, "x", there / both, "cross.%u.to_there_and_back", percent[k]);
		}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"slots", 1, NULL, 'n'}, {"runs", 1, NULL, 'r'},
		{"ops", 1, NULL, 'o'}, {"part", 1, NULL, 'p'}, {NULL, 0, NULL, 0}};
	const char *part = "";
	static struct results results;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			n_slots = (uint32_t)result_number("--slots", optarg, 1000, 1u << 24);
		else if (c == 'r')
			n_runs = (unsigned)result_number("--runs", optarg, 1, RESULT_RUNS_MAX);
		else if (c == 'o')
			ops = (uint32_t)result_number("--ops", optarg, 100, 1u << 30);
		else if (c == 'p')
			part = optarg;
		else
			return 2;
	}
	if (!*part || strcmp(part, "alone") == 0)
		alone(&results);
	if (!*part || strcmp(part, "threads") == 0)
		threads(&results);
	if (!*part || strcmp(part, "cross") == 0)
		cross(&results);
	result_print(&results, "handles");
	return 0;
}
