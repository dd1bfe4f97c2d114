/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handles_alone.c - one thread: what taking and putting a number, or opening and closing a handle,
 * costs at each occupancy, beside floors that stand at the same one.
 *
 * All contenders run in turns, a slice each, so that what disturbs the machine disturbs all; a
 * run's value is the median of its slices. Loads: `pairs` of take and put, which touch the same few
 * lines over and over; and `holes`: of all slots a part was put back at random, then a random one
 * of those that are out is put and one taken, over and over.
 *
 * Like with like: in `pairs` everything that a contender touches is in the first cache. In `holes`
 * the 16 bytes of a handle's slot are not, and floor (a) has no such bytes: so a handle is compared
 * with floor_a_slot, which is floor (a) and a write of 16 bytes by number at take and at put, as
 * plain stores, which the CPU does behind its back; and with floor_a_cas, the same with the
 * generation raised by compare-and-swap, for which the CPU waits. The difference of the two is what
 * one compare-and-swap on a line that no cache has costs, whoever does it.
 */
#include "handle_floor.h"
#include "handles.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Floor (a), and the objects that its numbers name. */
struct slot_floor {
	struct floor_tree tree;
	struct {
		_Atomic uint64_t generation;
		uint64_t rest;
	} * slot;
};

static inline uint64_t
slot_floor_take(struct slot_floor *f)
{
	uint64_t n = floor_tree_take(&f->tree);

	f->slot[n].rest = 1;
	return n;
}

static inline void
slot_floor_put(struct slot_floor *f, uint64_t n)
{
	_Atomic uint64_t *g = &f->slot[n].generation;

	corq_store_relaxed_u64(g, corq_load_relaxed_u64(g) + 1);
	floor_tree_put(&f->tree, (uint32_t)n);
}

static inline void
slot_floor_put_cas(struct slot_floor *f, uint64_t n)
{
	uint64_t seen = corq_load_relaxed_u64(&f->slot[n].generation);

	if (corq_cas_acqrel_u64(&f->slot[n].generation, &seen, seen + 1))
		floor_tree_put(&f->tree, (uint32_t)n);
}

CONTENDER(tree, struct floor_tree, floor_tree_take(s), floor_tree_put(s, (uint32_t)x))
CONTENDER(written, struct slot_floor, slot_floor_take(s), slot_floor_put(s, x))
CONTENDER(swapped, struct slot_floor, slot_floor_take(s), slot_floor_put_cas(s, x))
CONTENDER(shared, struct floor_shared, floor_shared_take(s), floor_shared_put(s, (uint32_t)x))
CONTENDER(stack, struct floor_stack, floor_stack_take(s), floor_stack_put(s, (uint32_t)x))
CONTENDER(kernel, void, (uint64_t)socket(AF_INET, SOCK_STREAM, 0), close((int)x))
CONTENDER(number, struct corq_lane, corq_lane_take(s), corq_lane_put(s, (uint32_t)x))
CONTENDER(handle, struct corq_lane, corq_lane_alloc(s, 0), corq_lane_close(s, x))

enum {
	TREE,
	WRITTEN,
	SWAPPED,
	SHARED,
	STACK,
	KERNEL,
	LOWEST,
	LOWEST_HANDLE,
	FAST,
	FAST_HANDLE,
	CONTENDERS
};

static struct contender contender[CONTENDERS] = {
	[TREE] = {"floor_a", CONTENDER_CALLS(tree)},
	[WRITTEN] = {"floor_a_slot", CONTENDER_CALLS(written)},
	[SWAPPED] = {"floor_a_cas", CONTENDER_CALLS(swapped)},
	[SHARED] = {"floor_b", CONTENDER_CALLS(shared)},
	[STACK] = {"floor_c", CONTENDER_CALLS(stack)},
	[KERNEL] = {"floor_d", CONTENDER_CALLS(kernel)},
	[LOWEST] = {"lowest", CONTENDER_CALLS(number)},
	[LOWEST_HANDLE] = {"lowest_handle", CONTENDER_CALLS(handle)},
	[FAST] = {"fast", CONTENDER_CALLS(number)},
	[FAST_HANDLE] = {"fast_handle", CONTENDER_CALLS(handle)},
};

/* Sockets that the kernel lets this process have; some are left for others. */
static uint32_t
kernel_slots(uint32_t most)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max < 64 ? 1 : (uint32_t)CORQ_MIN(limit.rlim_max - 32, most);
}

static struct slot_floor *
new_slot_floor(uint32_t slots)
{
	struct slot_floor *f = handles_map(sizeof(*f));

	floor_tree_init(&f->tree, slots);
	f->slot = handles_map(slots * sizeof(*f->slot));
	return f;
}

static void
make_contenders(const struct handles_bench *b)
{
	static struct floor_tree tree;
	static struct floor_shared shared;
	static struct floor_stack stack;

	floor_tree_init(&tree, b->slots);
	floor_shared_init(&shared, b->slots);
	floor_stack_init(&stack, b->slots);
	contender[TREE].state = &tree;
	contender[WRITTEN].state = new_slot_floor(b->slots);
	contender[SWAPPED].state = new_slot_floor(b->slots);
	contender[SHARED].state = &shared;
	contender[STACK].state = &stack;
	for (int i = LOWEST; i < CONTENDERS; i++)
		contender[i].state =
			handles_new_lane(b->slots, i < FAST ? CORQ_LANE_LOWEST : CORQ_LANE_FAST);
	for (int i = 0; i < CONTENDERS; i++) {
		struct contender *c = &contender[i];

		c->slots = i == KERNEL ? kernel_slots(b->slots) : b->slots;
		c->ops = i == KERNEL ? CORQ_MAX(b->ops / 100, 10u) : b->ops;
		c->taken = handles_map(c->slots * sizeof(uint64_t));
		corq_rand_seed(&c->rand, 1);
	}
	fprintf(stderr, "seed 1; floor_d: %u descriptors\n", contender[KERNEL].slots);
}

static const struct load {
	const char *name;
	uint32_t permille;
	bool but_one, holes;
} loads[] = {
	{"empty", 0, false, false},
	{"half", 500, false, false},
	{"99.9", 999, false, false},
	{"all_but_one", 1000, true, false},
	{"99.9_holes", 999, false, true},
	{"half_holes", 500, false, true},
};

/* A run: slices in turns. Nanoseconds a take and put. */
static void
run(struct handles_bench *b, const struct load *load)
{
	double v[CONTENDERS];

	for (int k = 0; k < HANDLES_SLICES; k++)
		for (int i = 0; i < CONTENDERS; i++) {
			struct contender *c = &contender[i];
			void (*work)(struct contender *, uint32_t) =
				load->holes ? c->holes : c->pairs;
			uint64_t start;

			work(c, c->ops / 20); /* into the caches */
			start = corq_cycles();
			work(c, c->ops);
			c->slice[k] = (double)(corq_cycles() - start) * b->ns / c->ops;
		}
	for (int i = 0; i < CONTENDERS; i++) {
		v[i] = result_median_of(contender[i].slice, HANDLES_SLICES);
		result_add(&b->results, "ns", v[i], "%s.%s", load->name, contender[i].name);
	}
	for (int i = LOWEST_HANDLE; i < CONTENDERS; i += FAST - LOWEST) {
		int floor = load->holes ? WRITTEN : TREE;

		result_add(&b->results, "ns", v[i] - v[floor], "%s.%s.above_%s", load->name,
			contender[i].name, contender[floor].name);
		result_add(&b->results, "ns", v[i] - v[SWAPPED], "%s.%s.above_%s", load->name,
			contender[i].name, contender[SWAPPED].name);
	}
}

static void
set_peers(struct handles_bench *b, const char *load)
{
	static const int peer[][2] = {{LOWEST, TREE}, {LOWEST_HANDLE, TREE}, {FAST, STACK},
		{FAST_HANDLE, STACK}, {SHARED, TREE}, {KERNEL, LOWEST_HANDLE}};

	for (unsigned i = 0; i < CORQ_ARRAY_LEN(peer); i++)
		result_peer(
			&b->results, load, contender[peer[i][0]].name, contender[peer[i][1]].name);
}

void
handles_alone(struct handles_bench *b)
{
	handles_pin(b->cpu[0]);
	make_contenders(b);
	for (unsigned k = 0; k < CORQ_ARRAY_LEN(loads); k++) {
		for (int i = 0; i < CONTENDERS; i++) {
			struct contender *c = &contender[i];
			uint32_t n = (uint32_t)((uint64_t)c->slots * loads[k].permille / 1000) -
				     loads[k].but_one;

			c->fill(c, loads[k].holes ? c->slots : n);
			c->drop(c, n);
		}
		for (unsigned i = 0; i < b->runs; i++)
			run(b, &loads[k]);
		set_peers(b, loads[k].name);
	}
	contender[KERNEL].drop(&contender[KERNEL], 0);
}
