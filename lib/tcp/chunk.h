/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chunk.h - bytes in a queue: copied, borrowed or held.
 *
 * A send or receive queue is a singly linked list of chunks. Three pools give them:
 *   plain  64 bytes, no room: borrowed (registered user memory) and held (a received frame)
 *   small  CORQ_CHUNK_SMALL bytes in all, payload behind the 64-byte head
 *   large  CORQ_CHUNK_LARGE bytes in all, likewise
 * An index carries its pool in the two top bits, so every queue link is one u32.
 *
 * Life of a borrowed chunk: linked (queue owns it) -> acknowledged (unlinked) -> the last frame
 * that refers to it is reported by the port -> release callback. `refs` counts those frames.
 * One thread, the core's.
 */
#ifndef CORQ_TCP_CHUNK_H
#define CORQ_TCP_CHUNK_H

#include "base/pool.h"
#include "net/frame.h"

#define CORQ_CHUNK_HEAD  64
#define CORQ_CHUNK_SMALL 512
#define CORQ_CHUNK_LARGE 4096

enum corq_chunk_class {
	CORQ_CHUNK_CLASS_PLAIN,
	CORQ_CHUNK_CLASS_SMALL,
	CORQ_CHUNK_CLASS_LARGE,
	CORQ_CHUNK_CLASS_COUNT,
};

enum corq_chunk_kind {
	CORQ_CHUNK_COPIED,
	CORQ_CHUNK_BORROWED,
	CORQ_CHUNK_HELD,
};

struct corq_chunk {
	uint32_t next;
	uint32_t len;             /* payload bytes at data */
	uint8_t *data;            /* first payload byte */
	uint32_t room;            /* copied: bytes that the block has in all */
	uint32_t refs;            /* frames out there that refer to data (EXT) */
	uint32_t seq;             /* out-of-order queue: sequence of data[0] */
	uint8_t kind;             /* enum corq_chunk_kind */
	uint8_t done;             /* unlinked: release when refs is 0 */
	uint16_t region;          /* borrowed: index of the registration */
	struct corq_frame *frame; /* held: the frame part that owns data */
	union {
		uint64_t cookie;    /* borrowed: for the release callback */
		uint32_t run_stamp; /* larger: touched later (order of SACK blocks) */
	};
	uint32_t self; /* its own index */
	struct {       /* out-of-order queue, first chunk of a run (reasm.h); run_stamp too */
		uint32_t last, next; /* the run's last chunk; the next run's first chunk */
		uint32_t end;        /* sequence behind the run's last byte */
	} run;
};
_Static_assert(sizeof(struct corq_chunk) == CORQ_CHUNK_HEAD, "one line");

struct corq_chunks {
	struct corq_pool pool[CORQ_CHUNK_CLASS_COUNT];
	uint32_t n_held;   /* held chunks alive, each keeps an rx frame */
	uint32_t held_max; /* above it received payload is copied out */
};

static inline struct corq_chunk *
corq_chunk_at(struct corq_chunks *cs, uint32_t idx)
{
	return corq_pool_at(&cs->pool[idx >> 30], idx & 0x3fffffff);
}

/* What became of a chunk that its queue let go, or that one frame less refers to. */
enum corq_chunk_end {
	CORQ_CHUNK_FREED,   /* gone; *frame (held) is the caller's to give back */
	CORQ_CHUNK_BUSY,    /* frames still refer to it, or its queue still has it */
	CORQ_CHUNK_RELEASE, /* borrowed and free of frames: release callback, then _released() */
};

/* Bytes for n[class] chunks of each class; n < 2^30. */
size_t corq_chunks_bytes(const uint32_t n[CORQ_CHUNK_CLASS_COUNT]);
/* mem: corq_chunks_bytes(n), line-aligned; nothing of it is written yet. */
void corq_chunks_init(struct corq_chunks *cs, void *mem, const uint32_t n[CORQ_CHUNK_CLASS_COUNT],
	uint32_t held_max);

/* An empty copied chunk (plain class: without room), or CORQ_NONE. */
uint32_t corq_chunk_alloc(struct corq_chunks *cs, enum corq_chunk_class class);
/* An empty copied chunk for len bytes: small when they fit, else large; the other class when that
 * one is out, so look at corq_chunk_space(). */
uint32_t corq_chunk_alloc_copy(struct corq_chunks *cs, size_t len);
/* A chunk of registered memory, or CORQ_NONE. */
uint32_t corq_chunk_borrow(
	struct corq_chunks *cs, uint16_t region, const void *data, uint32_t len, uint64_t cookie);
/* A chunk of a received frame's part, which it keeps from now on (part->next must be NULL by the
 * time the chunk is freed), or CORQ_NONE. held_max is the caller's to look at. */
uint32_t corq_chunk_hold(
	struct corq_chunks *cs, struct corq_frame *part, uint8_t *data, uint32_t len);
/* Its queue lets go of it. *frame: the frame of a held chunk that is FREED, else NULL. */
enum corq_chunk_end corq_chunk_free(
	struct corq_chunks *cs, uint32_t idx, struct corq_frame **frame);
/* A frame that referred to it (refs++ when it was built) is done. */
enum corq_chunk_end corq_chunk_unref(
	struct corq_chunks *cs, uint32_t idx, struct corq_frame **frame);
/* The release callback of a borrowed chunk ran: the descriptor goes. */
void corq_chunk_released(struct corq_chunks *cs, uint32_t idx);

/* Bytes that can still be appended behind a copied chunk's payload; 0 for other kinds. */
static inline uint32_t
corq_chunk_space(const struct corq_chunk *k)
{
	if (k->kind != CORQ_CHUNK_COPIED)
		return 0;
	return (uint32_t)((const uint8_t *)k + CORQ_CHUNK_HEAD + k->room - (k->data + k->len));
}

#endif
