/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rcv_fixture.h - for the tests of the receive side: an engine with chunk pools and nothing else,
 * and segments whose frames are malloc'd to size, so that sanitizers see each byte too many.
 *
 * Frames are counted: rig_sweep() takes the engine's `freed` array to pieces and frees them;
 * rig_end() asserts that no frame and no chunk is left.
 */
#ifndef RCV_FIXTURE_H
#define RCV_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "base/seq.h"
#include "tcp/rcvq.h"
#include "tcp/reasm.h"

#include <errno.h>
#include <stdlib.h>

#define RIG_HEADERS 66

struct rig {
	struct corq_engine *e;
	struct corq_conn c;
	struct corq_work w;
	void *mem;
	uint32_t n_frames; /* malloc'd and not freed */
};

static inline void
rig_start(struct rig *r, uint32_t plain, uint32_t small, uint32_t large, uint32_t held_max,
	uint32_t rcv_nxt)
{
	uint32_t n[CORQ_CHUNK_CLASS_COUNT] = {plain, small, large};

	memset(r, 0, sizeof(*r));
	r->e = calloc(1, sizeof(*r->e));
	r->e->freed = calloc(CORQ_FREED_MAX, sizeof(struct corq_frame *));
	r->mem = aligned_alloc(CORQ_CACHELINE, corq_chunks_bytes(n));
	corq_chunks_init(&r->e->chunks, r->mem, n, held_max);
	r->c.rcvq_head = r->c.rcvq_tail = CORQ_NONE;
	r->c.rcv_nxt = rcv_nxt;
	corq_reasm_init(&r->w);
}

static inline uint32_t
rig_used(const struct rig *r)
{
	uint32_t n = 0;

	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++)
		n += corq_pool_used(&r->e->chunks.pool[i]);
	return n;
}

/* A segment with the bytes in `parts` parts: the first begins with the headers; with more than one,
 * the first may hold headers alone. */
static inline struct corq_seg
rig_seg(struct rig *r, uint32_t seq, const uint8_t *bytes, uint32_t len, unsigned parts,
	struct corq_rand *rnd)
{
	struct corq_seg s = {.seq = seq, .len = len, .payload_off = RIG_HEADERS};
	struct corq_frame **link = &s.frame;
	uint32_t at = 0;

	for (unsigned i = 0; i < parts; i++) {
		uint32_t head = i == 0 ? RIG_HEADERS : 0;
		uint32_t n =
			i + 1 == parts ? len - at : (uint32_t)corq_rand_below(rnd, len - at + 1);
		struct corq_frame *f = calloc(1, sizeof(*f));

		f->buf_start = f->data = malloc(head + n ? head + n : 1);
		f->len = (uint16_t)(head + n);
		memset(f->data, 0xee, head);
		memcpy(f->data + head, bytes + at, n);
		at += n;
		*link = f;
		link = &f->next;
		r->n_frames++;
	}
	s.frame->pkt_len = RIG_HEADERS + len;
	return s;
}

static inline void
rig_free_chain(struct rig *r, struct corq_frame *f)
{
	while (f) {
		struct corq_frame *next = f->next;

		free(f->buf_start);
		free(f);
		r->n_frames--;
		f = next;
	}
}

static inline void
rig_sweep(struct rig *r)
{
	for (uint32_t i = 0; i < r->e->n_freed; i++)
		rig_free_chain(r, r->e->freed[i]);
	r->e->n_freed = 0;
}

static inline void
rig_end(struct rig *r)
{
	corq_reasm_drop(r->e, &r->w);
	corq_rcvq_purge(r->e, &r->c);
	rig_sweep(r);
	assert_int_equal(r->n_frames, 0);
	assert_int_equal(rig_used(r), 0);
	assert_int_equal(r->e->chunks.n_held, 0);
	free(r->e->freed);
	free(r->e);
	free(r->mem);
}

/* Reads up to n bytes by peek and consume, as a program does. Returns how many. */
static inline size_t
rig_read(struct rig *r, uint8_t *dst, size_t n)
{
	struct iovec iov[5];
	size_t total = 0;
	int k;

	while (total < n && (k = corq_rcvq_peek(r->e, &r->c, iov, 5)) > 0) {
		size_t got = 0;

		for (int i = 0; i < k && total + got < n; i++) {
			size_t m = CORQ_MIN(iov[i].iov_len, n - total - got);

			assert_true(iov[i].iov_len > 0);
			memcpy(dst + total + got, iov[i].iov_base, m);
			got += m;
		}
		corq_rcvq_consume(r->e, &r->c, got);
		total += got;
	}
	return total;
}

/* Walks the receive queue: links, sums, the count of held chunks. */
static inline void
rig_check_rcvq(const struct rig *r)
{
	uint32_t idx = r->c.rcvq_head, last = CORQ_NONE, bytes = 0, held = 0;

	for (; idx != CORQ_NONE; last = idx, idx = corq_chunk_at(&r->e->chunks, idx)->next) {
		const struct corq_chunk *k = corq_chunk_at(&r->e->chunks, idx);

		assert_true(k->len > 0 && !k->done);
		bytes += k->len;
		if (k->kind == CORQ_CHUNK_HELD) {
			held++;
			assert_null(k->frame->next);
		}
	}
	assert_int_equal(last, r->c.rcvq_tail);
	assert_int_equal(bytes - r->c.rcv_off, r->c.rcvq_bytes);
	assert_int_equal(CORQ_MIN(held, 255u), r->c.rcv_true);
}

/* The same for the out-of-order queue: runs in order, apart, as long as they say. */
static inline void
rig_check_ooo(const struct rig *r)
{
	struct corq_chunks *cs = &r->e->chunks;
	uint32_t idx = r->w.ooo_head, last = CORQ_NONE, n = 0, bytes = 0, end = r->c.rcv_nxt;

	while (idx != CORQ_NONE) {
		const struct corq_chunk *run = corq_chunk_at(cs, idx), *k = run;
		uint32_t seq = run->seq, i = idx;

		assert_true(n == 0 ? corq_seq_ge(seq, end) : corq_seq_gt(seq, end));
		for (;;) {
			assert_int_equal(k->seq, seq);
			assert_true(k->len > 0);
			seq += k->len;
			if (k->next == CORQ_NONE)
				break;
			i = k->next;
			/* Copied neighbours are worth their room. */
			if (k->kind == CORQ_CHUNK_COPIED &&
				corq_chunk_at(cs, i)->kind == CORQ_CHUNK_COPIED &&
				corq_chunk_at(cs, i)->len < CORQ_RCV_TINY)
				assert_true(k->len + corq_chunk_at(cs, i)->len > 448);
			k = corq_chunk_at(cs, i);
		}
		assert_int_equal(run->run.last, i);
		assert_int_equal(run->run.end, seq);
		end = seq;
		bytes += seq - run->seq;
		n++;
		last = idx;
		idx = run->run.next;
	}
	assert_int_equal(last, r->w.ooo_tail);
	assert_int_equal(n, r->w.ooo_n);
	assert_int_equal(bytes, r->w.ooo_bytes);
	assert_true(n <= CORQ_OOO_MAX + 1);
}

#endif
