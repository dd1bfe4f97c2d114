/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rcvq.h - from a segment's payload to chunks, and the queue of received bytes in order.
 *
 * Called by input.c and reasm.c (taking), verbs.c (peek, consume). One thread, the core's.
 *
 * Payload is held where it lies in its frame, one chunk a part, unless copying is better: when the
 * frames held reach held_max (they would starve the receive ring), and when less than
 * CORQ_RCV_TINY bytes would wait behind others (a frame of 2 KiB for a few bytes). Copied pieces
 * that are neighbours share a chunk, so any two copied chunks side by side hold more than a small
 * chunk's room together: memory stays in proportion to the bytes in the window.
 *
 * Who owns seg->frame: a taking function that succeeds took it (kept, or appended to `freed`) and
 * sets seg->frame to NULL; one that fails left it whole with the caller.
 */
#ifndef CORQ_TCP_RCVQ_H
#define CORQ_TCP_RCVQ_H

#include "tcp/engine.h"

#include <sys/uio.h>

#define CORQ_RCV_TINY 512

struct corq_chunk_list {
	uint32_t head, tail; /* CORQ_NONE: empty */
	uint32_t bytes;
};

/* ---- taking payload bytes [skip, skip + len) of a segment, len > 0 ---- */

/* Into chunks, held or copied; their seq is set. 0, or -ENOBUFS with nothing changed. */
int corq_rcv_take(struct corq_engine *e, const struct corq_conn *c, struct corq_seg *seg,
	uint32_t skip, uint32_t len, struct corq_chunk_list *out);
/* Into copied chunks; the frame stays with the caller in any case. */
int corq_rcv_copy(struct corq_engine *e, const struct corq_seg *seg, uint32_t skip, uint32_t len,
	struct corq_chunk_list *out);
/* Into the free room of chunk idx, when the bytes fit and should be copied at all. */
bool corq_rcv_fill(
	struct corq_engine *e, struct corq_seg *seg, uint32_t skip, uint32_t len, uint32_t idx);
/* Links [head .. tail] behind chunk `last`, or into it what fits. Returns the new last chunk. */
uint32_t corq_rcv_join(struct corq_engine *e, uint32_t last, uint32_t head, uint32_t tail);
/* Frees a chunk that only a receive queue knew, and gives its frame back. */
void corq_rcv_chunk_free(struct corq_engine *e, uint32_t idx);

/* ---- the queue ---- */

/* Takes and queues bytes that start at RCV.NXT; c->rcv_nxt is the caller's. 0 or -ENOBUFS. While
 * bytes wait out of order, use corq_reasm_insert() and _pull() instead. */
int corq_rcvq_append_seg(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg,
	uint32_t skip, uint32_t len);
/* Queues chunks taken before; c->rcv_nxt is the caller's. */
void corq_rcvq_append(
	struct corq_engine *e, struct corq_conn *c, const struct corq_chunk_list *list);
/* Bytes not consumed, in place: fills up to n iovecs, returns how many. */
int corq_rcvq_peek(struct corq_engine *e, const struct corq_conn *c, struct iovec *iov, int n);
/* Drops len bytes from the front; len <= c->rcvq_bytes. */
void corq_rcvq_consume(struct corq_engine *e, struct corq_conn *c, size_t len);
/* Takes the first chunk off without its consumed bytes (splice), CORQ_NONE when empty. */
uint32_t corq_rcvq_pop(struct corq_engine *e, struct corq_conn *c);
/* Drops everything. */
void corq_rcvq_purge(struct corq_engine *e, struct corq_conn *c);

#endif
