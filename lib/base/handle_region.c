/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_region.c - the global region: its layout, views of it, and the blocks that nobody has.
 *
 * Layout and views are the control side's business. Blocks are grabbed and dropped by any lane's
 * thread, once in 4096 handles at most. The directory is the truth; `taken` is a hint that is never
 * set for a block that nobody has: so whatever a thread that dies half way leaves, the block stands
 * in the directory under a lane, and comes back by that lane's reclaimer or its audit.
 */
#include "base/handle_int.h"

#include <errno.h>

#define MAGIC   0x736c646e68716f63ull
#define VERSION 1u
/* Blocks start at a page, so that a NUMA node's part has pages of its own. */
#define PAGE    4096u

/* Where each piece begins. */
struct layout {
	size_t dir, taken, line, remote, slot, end;
};

static uint32_t
blocks_for(uint32_t n_slots)
{
	return n_slots / CORQ_BLOCK_SLOTS + (n_slots % CORQ_BLOCK_SLOTS != 0);
}

static size_t
up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static struct layout
layout_of(uint32_t n_slots, uint32_t n_lanes)
{
	size_t n = blocks_for(n_slots);
	struct layout at;

	at.dir = sizeof(struct corq_handles_head);
	at.taken = up(at.dir + n * sizeof(uint32_t), CORQ_CACHELINE);
	at.line = up(at.taken + up(n, 64) / 8, CORQ_CACHELINE);
	at.remote = up(at.line + n_lanes * sizeof(struct corq_lane_line), PAGE);
	at.slot = up(at.remote + n * sizeof(struct corq_remote), PAGE);
	at.end = at.slot + n * CORQ_BLOCK_SLOTS * sizeof(struct corq_slot);
	return at;
}

size_t
corq_handles_size(uint32_t n_slots, uint32_t n_lanes)
{
	if (n_slots == 0 || n_slots > 1u << CORQ_H_SLOT_BITS || n_lanes == 0 ||
		n_lanes > CORQ_LANES_MAX)
		return 0;
	return layout_of(n_slots, n_lanes).end;
}

static void
make_view(struct corq_handles *h, void *mem)
{
	struct layout at = layout_of(h->n_slots, h->n_lanes);
	uint8_t *base = mem;

	h->head = mem;
	h->dir = (void *)(base + at.dir);
	h->taken = (void *)(base + at.taken);
	h->line = (void *)(base + at.line);
	h->remote = (void *)(base + at.remote);
	h->slot = (void *)(base + at.slot);
	for (uint32_t i = 0; i < h->n_lanes; i++)
		corq_store_relaxed_u64(&h->lane_at[i], 0);
}

void
corq_handles_init(
	struct corq_handles *h, void *mem, uint32_t n_slots, uint32_t n_lanes, uint32_t n_nodes)
{
	struct corq_handles_head *head = mem;

	CORQ_ASSERT(corq_handles_size(n_slots, n_lanes) != 0 && n_nodes != 0);
	CORQ_ASSERT((uintptr_t)mem % CORQ_CACHELINE == 0);
	head->magic = MAGIC;
	head->version = VERSION;
	head->word_shift = CORQ_WORD_SHIFT;
	head->n_slots = h->n_slots = n_slots;
	head->n_blocks = h->n_blocks = blocks_for(n_slots);
	head->n_lanes = h->n_lanes = n_lanes;
	head->n_nodes = h->n_nodes = n_nodes;
	corq_store_relaxed_u32(&head->n_free, h->n_blocks);
	make_view(h, mem);
}

int
corq_handles_map(struct corq_handles *h, void *mem, size_t bytes)
{
	const struct corq_handles_head *head = mem;
	size_t size;

	if (bytes < sizeof(*head) || (uintptr_t)mem % CORQ_CACHELINE != 0 || head->magic != MAGIC ||
		head->version != VERSION || head->word_shift != CORQ_WORD_SHIFT)
		return -EINVAL;
	h->n_slots = head->n_slots; /* copied first, then judged: another domain may write them */
	h->n_lanes = head->n_lanes;
	h->n_nodes = head->n_nodes;
	size = corq_handles_size(h->n_slots, h->n_lanes);
	if (size == 0 || size > bytes || h->n_nodes == 0)
		return -EINVAL;
	h->n_blocks = blocks_for(h->n_slots);
	make_view(h, mem);
	return 0;
}

uint32_t
corq_handles_first_block(const struct corq_handles *h, uint32_t node)
{
	return (uint32_t)((uint64_t)h->n_blocks * CORQ_MIN(node, h->n_nodes) / h->n_nodes);
}

struct corq_handles_part
corq_handles_part_of(const struct corq_handles *h, uint32_t node)
{
	uint32_t first = corq_handles_first_block(h, node);
	uint32_t n = corq_handles_first_block(h, node + 1) - first;

	return (struct corq_handles_part){h->slot + (size_t)first * CORQ_BLOCK_SLOTS,
		h->remote + first, (size_t)n * CORQ_BLOCK_SLOTS * sizeof(struct corq_slot),
		(size_t)n * sizeof(struct corq_remote)};
}

/* Clear bits of word i of `taken` that stand for a block in [from, n_blocks). */
static uint64_t
free_blocks(const struct corq_handles *h, uint32_t i, uint32_t from)
{
	uint64_t bits = ~corq_load_relaxed_u64(&h->taken[i]);

	if (h->n_blocks - i * 64 < 64)
		bits &= (1ull << h->n_blocks % 64) - 1;
	if (from / 64 == i)
		bits &= ~0ull << from % 64;
	return from / 64 > i ? 0 : bits;
}

/* The first free block from `from` on, ours by the compare-and-swap of its entry. */
static uint32_t
grab_from(struct corq_handles *h, uint32_t from, uint32_t entry)
{
	uint32_t words = (h->n_blocks + 63) / 64;

	for (uint32_t i = from / 64; i < words; i++) {
		for (uint64_t bits = free_blocks(h, i, from); bits != 0; bits &= bits - 1) {
			uint32_t block = i * 64 + (uint32_t)__builtin_ctzll(bits), nobody = 0;

			if (!corq_cas_acqrel_u32(&h->dir[block], &nobody, entry)) /* R3 */
				continue; /* another lane was faster, or is about to drop it */
			corq_rmw_or_acqrel_u64(&h->taken[i], bits & -bits);
			corq_rmw_add_relaxed_u32(&h->head->n_free, UINT32_MAX);
			return block;
		}
	}
	return CORQ_NONE;
}

uint32_t
corq_block_grab(struct corq_handles *h, uint32_t from, uint32_t entry)
{
	uint32_t block;

	if (corq_load_relaxed_u32(&h->head->n_free) == 0)
		return CORQ_NONE;
	block = grab_from(h, from, entry);
	return block == CORQ_NONE && from != 0 ? grab_from(h, 0, entry) : block;
}

void
corq_block_drop(struct corq_handles *h, uint32_t block)
{
	corq_rmw_add_relaxed_u32(&h->head->n_free, 1); /* before the bit: never below */
	corq_rmw_and_acqrel_u64(&h->taken[block / 64], ~(1ull << block % 64));
	corq_store_release_u32(&h->dir[block], 0); /* last: until then it is somebody's */
}

int
corq_handle_lookup(const struct corq_handles *h, corq_h handle, uint32_t *conn)
{
	uint32_t n = corq_h_slot(handle);
	uint64_t word;

	if (n >= h->n_slots)
		return -EBADF;
	word = corq_load_acquire_u64(&h->slot[n].word); /* A1 <-> R1 */
	if (!slot_names(word, handle))
		return -EBADF;
	if (conn)
		*conn = corq_load_relaxed_u32(&h->slot[n].conn);
	return 0;
}
