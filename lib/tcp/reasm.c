/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reasm.c - the out-of-order queue; reasm.h says how it is built. Called by input.c and, for SACK
 * blocks, by build.c. One thread, the core's.
 */
#include "tcp/reasm.h"

#include "base/seq.h"
#include "tcp/rcvq.h"

#include <errno.h>

#define SACK_MAX 4 /* RFC 2018, 3 */

/* A piece on its way in: [seq, end) of the sequence space, payload bytes from skip on. */
struct piece {
	uint32_t seq, end, skip;
};

static inline uint32_t
piece_seq(const struct corq_seg *seg, uint32_t skip)
{
	return seg->seq + !!(seg->flags & CORQ_TH_SYN) + skip;
}

static inline struct corq_chunk *
run_at(struct corq_engine *e, uint32_t idx)
{
	return idx == CORQ_NONE ? NULL : corq_chunk_at(&e->chunks, idx);
}

void
corq_reasm_init(struct corq_work *w)
{
	w->ooo_head = w->ooo_tail = CORQ_NONE;
	w->ooo_n = 0;
	w->ooo_bytes = 0;
	w->ooo_last = 0;
}

/* The last run that starts at or below seq, CORQ_NONE when there is none. */
static uint32_t
run_below(struct corq_engine *e, const struct corq_work *w, uint32_t seq)
{
	uint32_t idx = w->ooo_head, next;

	if (idx == CORQ_NONE || corq_seq_lt(seq, run_at(e, idx)->seq))
		return CORQ_NONE;
	if (corq_seq_ge(seq, run_at(e, w->ooo_tail)->seq))
		return w->ooo_tail;
	while ((next = run_at(e, idx)->run.next) != CORQ_NONE &&
		corq_seq_ge(seq, run_at(e, next)->seq))
		idx = next;
	return idx;
}

/* A run of its own between prev and next. */
static void
run_new(struct corq_engine *e, struct corq_work *w, uint32_t prev, uint32_t next,
	const struct corq_chunk_list *list)
{
	struct corq_chunk *r = run_at(e, list->head), *p = run_at(e, prev);

	r->run.last = list->tail;
	r->run.next = next;
	r->run.end = r->seq + list->bytes;
	if (p)
		p->run.next = list->head;
	else
		w->ooo_head = list->head;
	if (next == CORQ_NONE)
		w->ooo_tail = list->head;
	w->ooo_n++;
}

/* Run `next`, which begins where `idx` ends, becomes part of it. */
static void
run_absorb(struct corq_engine *e, struct corq_work *w, uint32_t idx, uint32_t next)
{
	struct corq_chunk *r = run_at(e, idx), *n = run_at(e, next);
	uint32_t tail = n->run.last;

	r->run.end = n->run.end;
	r->run.next = n->run.next;
	if (w->ooo_tail == next)
		w->ooo_tail = idx;
	w->ooo_n--;
	r->run.last = corq_rcv_join(e, r->run.last, next, tail); /* n may be gone now */
}

static inline bool
touches(const struct corq_chunk *prev, const struct piece *p)
{
	return prev && prev->run.end == p->seq;
}

/* Puts bytes that fill [p->seq, p->end) between runs prev and next. Returns the run they are in. */
static uint32_t
link_list(struct corq_engine *e, struct corq_work *w, uint32_t prev, uint32_t next,
	const struct piece *p, const struct corq_chunk_list *list)
{
	struct corq_chunk *r = run_at(e, prev), *n = run_at(e, next);
	uint32_t idx = prev;

	if (touches(r, p)) {
		r->run.last = corq_rcv_join(e, r->run.last, list->head, list->tail);
		r->run.end = p->end;
	} else {
		run_new(e, w, prev, next, list);
		idx = list->head;
	}
	if (n && n->seq == p->end)
		run_absorb(e, w, idx, next);
	return idx;
}

static inline int
kept(struct corq_engine *e, struct corq_work *w, uint32_t idx, uint32_t bytes)
{
	run_at(e, idx)->run_stamp = ++w->ooo_last;
	w->ooo_bytes += bytes;
	return 0;
}

/* The usual case: the piece lies in one gap; the frame can be taken. */
static int
insert_one(struct corq_engine *e, const struct corq_conn *c, struct corq_work *w,
	struct corq_seg *seg, uint32_t prev, uint32_t next, const struct piece *p)
{
	struct corq_chunk *r = run_at(e, prev), *n = run_at(e, next);
	uint32_t len = p->end - p->seq, idx;
	bool joins = touches(r, p) || (n && n->seq == p->end);
	struct corq_chunk_list list;

	if (!joins && w->ooo_n >= CORQ_OOO_MAX && p->seq != c->rcv_nxt)
		return -ENOSPC;
	if (touches(r, p) && corq_rcv_fill(e, seg, p->skip, len, r->run.last)) {
		r->run.end = p->end;
		if (n && n->seq == p->end)
			run_absorb(e, w, prev, next);
		return kept(e, w, prev, len);
	}
	if (corq_rcv_take(e, c, seg, p->skip, len, &list))
		return -ENOBUFS;
	idx = link_list(e, w, prev, next, p, &list);
	return kept(e, w, idx, len);
}

/* The piece covers whole runs: a frame cannot lie in several gaps, so each gap gets a copy. What
 * no chunk can be had for is left out: the peer sends it again. */
static CORQ_NOINLINE int
insert_many_slow(struct corq_engine *e, struct corq_work *w, struct corq_seg *seg, uint32_t prev,
	uint32_t next, struct piece p, uint32_t end)
{
	struct corq_chunk_list list;
	struct corq_chunk *n;
	uint32_t bytes = 0;

	while (p.seq != end) {
		uint32_t len;

		n = run_at(e, next);
		p.end = n ? corq_seq_min(end, n->seq) : end;
		len = p.end - p.seq;
		if (corq_rcv_copy(e, seg, p.skip, len, &list))
			break;
		prev = link_list(e, w, prev, next, &p, &list);
		bytes += len;
		n = run_at(e, prev);
		next = n->run.next;
		p.skip += corq_seq_min(end, n->run.end) - p.seq;
		p.seq = corq_seq_min(end, n->run.end);
	}
	if (bytes == 0)
		return -ENOBUFS;
	corq_engine_free_frame(e, seg->frame);
	seg->frame = NULL;
	return kept(e, w, prev, bytes);
}

static int
insert(struct corq_engine *e, const struct corq_conn *c, struct corq_work *w, struct corq_seg *seg,
	uint32_t skip, uint32_t len)
{
	uint32_t seq = piece_seq(seg, skip);
	struct piece p = {seq, seq + len, skip};
	uint32_t prev = run_below(e, w, seq), next;
	struct corq_chunk *r = run_at(e, prev), *n;

	if (r && corq_seq_lt(p.seq, r->run.end)) {
		p.seq = corq_seq_min(p.end, r->run.end);
		p.skip += p.seq - seq;
		if (p.seq == p.end) { /* nothing new */
			corq_engine_free_frame(e, seg->frame);
			seg->frame = NULL;
			return kept(e, w, prev, 0);
		}
	}
	next = r ? r->run.next : w->ooo_head;
	n = run_at(e, next);
	if (n && corq_seq_gt(p.end, n->run.end))
		return insert_many_slow(e, w, seg, prev, next, p, p.end);
	if (n)
		p.end = corq_seq_min(p.end, n->seq);
	return insert_one(e, c, w, seg, prev, next, &p);
}

int
corq_reasm_insert(struct corq_engine *e, const struct corq_conn *c, struct corq_work *w,
	struct corq_seg *seg, uint32_t skip, uint32_t len)
{
	int err;

	CORQ_ASSERT(len > 0 && corq_seq_ge(piece_seq(seg, skip), c->rcv_nxt));
	err = insert(e, c, w, seg, skip, len);
	if (CORQ_LIKELY(err != -ENOBUFS) || w->ooo_n == 0 || piece_seq(seg, skip) != c->rcv_nxt)
		return err;
	corq_reasm_drop(e, w);
	e->reasons[CORQ_R_TCP_RCV_NOMEM]++;
	return insert(e, c, w, seg, skip, len);
}

/* Frees the chunks of a run below seq and cuts the one that reaches across it. Returns the first
 * chunk left. */
static uint32_t
cut_front(struct corq_engine *e, uint32_t idx, uint32_t seq)
{
	while (idx != CORQ_NONE) {
		struct corq_chunk *k = corq_chunk_at(&e->chunks, idx);
		uint32_t next = k->next, dup = seq - k->seq;

		if (corq_seq_ge(k->seq, seq))
			break;
		if (dup < k->len) {
			k->seq = seq;
			k->data += dup;
			k->len -= dup;
			break;
		}
		corq_rcv_chunk_free(e, idx);
		idx = next;
	}
	return idx;
}

uint32_t
corq_reasm_pull(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	uint32_t moved = 0;

	while (w->ooo_head != CORQ_NONE) {
		struct corq_chunk *r = run_at(e, w->ooo_head);
		struct corq_chunk_list list = {w->ooo_head, r->run.last, 0};
		uint32_t end = r->run.end;

		if (corq_seq_gt(r->seq, c->rcv_nxt))
			break;
		w->ooo_bytes -= end - r->seq;
		w->ooo_n--;
		w->ooo_head = r->run.next;
		if (w->ooo_head == CORQ_NONE)
			w->ooo_tail = CORQ_NONE;
		list.head = cut_front(e, list.head, c->rcv_nxt);
		if (list.head == CORQ_NONE)
			continue;
		list.bytes = end - c->rcv_nxt;
		corq_rcvq_append(e, c, &list);
		c->rcv_nxt = end;
		moved += list.bytes;
	}
	return moved;
}

unsigned
corq_reasm_sack(struct corq_engine *e, const struct corq_work *w, struct corq_sack_block *blocks,
	unsigned max)
{
	uint32_t age[SACK_MAX]; /* of the blocks found so far, youngest first */
	unsigned n = 0;

	max = CORQ_MIN(max, (unsigned)SACK_MAX);
	for (uint32_t idx = w->ooo_head; idx != CORQ_NONE; idx = run_at(e, idx)->run.next) {
		struct corq_chunk *r = run_at(e, idx);
		uint32_t a = w->ooo_last - r->run_stamp;
		unsigned i = n;

		for (; i > 0 && a < age[i - 1]; i--) {
			if (i == max)
				continue; /* the oldest falls off */
			age[i] = age[i - 1];
			blocks[i] = blocks[i - 1];
		}
		if (i == max)
			continue;
		age[i] = a;
		blocks[i] = (struct corq_sack_block){r->seq, r->run.end};
		n = CORQ_MIN(n + 1, max);
	}
	return n;
}

void
corq_reasm_drop(struct corq_engine *e, struct corq_work *w)
{
	while (w->ooo_head != CORQ_NONE) {
		struct corq_chunk *r = run_at(e, w->ooo_head);
		uint32_t idx = w->ooo_head, next;

		w->ooo_head = r->run.next;
		for (; idx != CORQ_NONE; idx = next) {
			next = corq_chunk_at(&e->chunks, idx)->next;
			corq_rcv_chunk_free(e, idx);
		}
	}
	corq_reasm_init(w);
}
