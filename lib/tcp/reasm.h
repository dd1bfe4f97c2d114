/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reasm.h - bytes that came before their turn, on the work block.
 *
 * The queue is a list of *runs*: bytes without a gap between them. A run is a list of chunks
 * (chunk.next), its first one carries the run's figures (chunk.run) and links to the next run.
 * w->ooo_head and ooo_tail are the first chunks of the first and last run, w->ooo_n is the number
 * of runs, w->ooo_bytes their bytes, w->ooo_last the newest stamp. Runs neither overlap nor touch.
 *
 * Where a segment brings bytes that are here already, the first to come are kept (as Linux does;
 * RFC 9293 leaves it open). At most CORQ_OOO_MAX runs: a piece that would be one more is refused,
 * whatever it is worth, because throwing out another one would take back a SACK (RFC 2018, 8).
 * Bytes at RCV.NXT always find a place: they leave with the next pull. Insertion is O(1) at both
 * ends, else a walk over at most that many runs; never over chunks.
 *
 * The caller cuts the piece to the window and to RCV.NXT, and handles FIN. While the queue is not
 * empty, in-order bytes go through insert and pull too, so that the first copy of a byte wins.
 * One thread, the core's.
 */
#ifndef CORQ_TCP_REASM_H
#define CORQ_TCP_REASM_H

#include "net/emit.h"
#include "tcp/engine.h"

/* A work block just made. */
void corq_reasm_init(struct corq_work *w);
/*
 * Payload bytes [skip, skip + len) of the segment, len > 0, none below RCV.NXT. 0: they are here
 * now (or were before) and seg->frame is taken; or it is left to the caller with -ENOSPC (too many
 * runs) or -ENOBUFS (no chunk). When no chunk is left for bytes at RCV.NXT, what waits here is
 * dropped for them (RFC 2018, 8, allows that; counted as TCP_RCV_NOMEM): the stream goes on.
 */
int corq_reasm_insert(struct corq_engine *e, const struct corq_conn *c, struct corq_work *w,
	struct corq_seg *seg, uint32_t skip, uint32_t len);
/* Moves what is in order now to the receive queue, with c->rcv_nxt. Returns the bytes. */
uint32_t corq_reasm_pull(struct corq_engine *e, struct corq_conn *c, struct corq_work *w);
/* Up to max SACK blocks, the one touched last first (RFC 2018, 4). Returns how many. */
unsigned corq_reasm_sack(struct corq_engine *e, const struct corq_work *w,
	struct corq_sack_block *blocks, unsigned max);
/* Drops everything. */
void corq_reasm_drop(struct corq_engine *e, struct corq_work *w);

#endif
