/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk.c - gives and takes back the chunks of send and receive queues. One thread, the core's.
 *
 * A chunk ends when two things are over: its queue let go of it (`done`) and no frame refers to its
 * bytes (`refs` 0), in either order. That holds for every kind: a frame may refer to copied bytes
 * and, in a splice, to held ones too. Only a borrowed chunk outlives that moment, until the program
 * was told. Queues are the callers'.
 */
#include "tcp/chunk.h"

static const uint32_t class_bytes[CORQ_CHUNK_CLASS_COUNT] = {
	[CORQ_CHUNK_CLASS_PLAIN] = CORQ_CHUNK_HEAD,
	[CORQ_CHUNK_CLASS_SMALL] = CORQ_CHUNK_SMALL,
	[CORQ_CHUNK_CLASS_LARGE] = CORQ_CHUNK_LARGE,
};

size_t
corq_chunks_bytes(const uint32_t n[CORQ_CHUNK_CLASS_COUNT])
{
	size_t bytes = 0;

	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++)
		bytes += corq_pool_size(n[i], class_bytes[i]);
	return bytes;
}

void
corq_chunks_init(struct corq_chunks *cs, void *mem, const uint32_t n[CORQ_CHUNK_CLASS_COUNT],
	uint32_t held_max)
{
	uint8_t *at = mem;

	CORQ_ASSERT((uintptr_t)mem % CORQ_CACHELINE == 0);
	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++) {
		CORQ_ASSERT(n[i] < 1u << 30);
		corq_pool_init(&cs->pool[i], at, n[i], class_bytes[i]);
		at += corq_pool_size(n[i], class_bytes[i]);
	}
	cs->n_held = 0;
	cs->held_max = held_max;
}

static CORQ_ALWAYS_INLINE uint32_t
chunk_new(struct corq_chunks *cs, enum corq_chunk_class class, struct corq_chunk **out)
{
	uint32_t idx = corq_pool_alloc(&cs->pool[class]);

	if (CORQ_UNLIKELY(idx == CORQ_NONE))
		return CORQ_NONE;
	*out = corq_pool_at(&cs->pool[class], idx);
	/* run is left as it is: only the out-of-order queue reads it, and writes it first. */
	(*out)->next = CORQ_NONE;
	(*out)->refs = 0;
	(*out)->seq = 0;
	(*out)->done = 0;
	(*out)->region = 0;
	(*out)->cookie = 0;
	(*out)->self = idx | (uint32_t) class << 30;
	return (*out)->self;
}

uint32_t
corq_chunk_alloc(struct corq_chunks *cs, enum corq_chunk_class class)
{
	struct corq_chunk *k;
	uint32_t idx = chunk_new(cs, class, &k);

	if (idx == CORQ_NONE)
		return CORQ_NONE;
	k->kind = CORQ_CHUNK_COPIED;
	k->len = 0;
	k->data = (uint8_t *)k + CORQ_CHUNK_HEAD;
	k->room = class_bytes[class] - CORQ_CHUNK_HEAD;
	k->frame = NULL;
	return idx;
}

uint32_t
corq_chunk_alloc_copy(struct corq_chunks *cs, size_t len)
{
	bool small = len <= CORQ_CHUNK_SMALL - CORQ_CHUNK_HEAD;
	uint32_t idx =
		corq_chunk_alloc(cs, small ? CORQ_CHUNK_CLASS_SMALL : CORQ_CHUNK_CLASS_LARGE);

	if (CORQ_LIKELY(idx != CORQ_NONE))
		return idx;
	return corq_chunk_alloc(cs, small ? CORQ_CHUNK_CLASS_LARGE : CORQ_CHUNK_CLASS_SMALL);
}

uint32_t
corq_chunk_borrow(
	struct corq_chunks *cs, uint16_t region, const void *data, uint32_t len, uint64_t cookie)
{
	struct corq_chunk *k;
	uint32_t idx = chunk_new(cs, CORQ_CHUNK_CLASS_PLAIN, &k);

	if (idx == CORQ_NONE)
		return CORQ_NONE;
	k->kind = CORQ_CHUNK_BORROWED;
	k->len = len;
	k->data = (uint8_t *)(uintptr_t)data; /* never written through */
	k->room = 0;
	k->frame = NULL;
	k->region = region;
	k->cookie = cookie;
	return idx;
}

uint32_t
corq_chunk_hold(struct corq_chunks *cs, struct corq_frame *part, uint8_t *data, uint32_t len)
{
	struct corq_chunk *k;
	uint32_t idx = chunk_new(cs, CORQ_CHUNK_CLASS_PLAIN, &k);

	if (idx == CORQ_NONE)
		return CORQ_NONE;
	k->kind = CORQ_CHUNK_HELD;
	k->len = len;
	k->data = data;
	k->room = 0;
	k->frame = part;
	cs->n_held++;
	return idx;
}

static inline void
chunk_put(struct corq_chunks *cs, uint32_t idx)
{
	corq_pool_free(&cs->pool[idx >> 30], idx & 0x3fffffff);
}

/* Done and unreferenced. */
static enum corq_chunk_end
chunk_end(struct corq_chunks *cs, uint32_t idx, struct corq_chunk *k, struct corq_frame **frame)
{
	if (k->kind == CORQ_CHUNK_BORROWED)
		return CORQ_CHUNK_RELEASE;
	if (k->kind == CORQ_CHUNK_HELD) {
		*frame = k->frame;
		cs->n_held--;
	}
	chunk_put(cs, idx);
	return CORQ_CHUNK_FREED;
}

enum corq_chunk_end
corq_chunk_free(struct corq_chunks *cs, uint32_t idx, struct corq_frame **frame)
{
	struct corq_chunk *k = corq_chunk_at(cs, idx);

	*frame = NULL;
	k->done = 1;
	return k->refs ? CORQ_CHUNK_BUSY : chunk_end(cs, idx, k, frame);
}

enum corq_chunk_end
corq_chunk_unref(struct corq_chunks *cs, uint32_t idx, struct corq_frame **frame)
{
	struct corq_chunk *k = corq_chunk_at(cs, idx);

	CORQ_ASSERT(k->refs > 0);
	*frame = NULL;
	return --k->refs || !k->done ? CORQ_CHUNK_BUSY : chunk_end(cs, idx, k, frame);
}

void
corq_chunk_released(struct corq_chunks *cs, uint32_t idx)
{
	struct corq_chunk *k = corq_chunk_at(cs, idx);

	CORQ_ASSERT(k->kind == CORQ_CHUNK_BORROWED && k->done && k->refs == 0);
	chunk_put(cs, idx);
}
