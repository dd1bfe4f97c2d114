/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rcvq.c - taking payload out of frames, and the in-order receive queue. One thread, the core's.
 *
 * Taking is two passes: descriptors first, frames untouched, so that running out of chunks can be
 * undone; then the frame chain is taken apart. c->rcv_true counts held chunks in the queue; at 255
 * it says "255 or more", and is counted anew once the bytes left may be fewer than 255 chunks.
 */
#include "tcp/rcvq.h"

#include <errno.h>

#define TRUE_MAX     UINT8_MAX
#define RECOUNT_WALK 1024

/* A walk over the payload bytes of a frame chain. */
struct cursor {
	struct corq_frame *part;
	uint32_t off;  /* into the part */
	uint32_t left; /* payload bytes not yet seen */
};

static CORQ_ALWAYS_INLINE struct cursor
cursor_at(const struct corq_seg *seg, uint32_t skip, uint32_t len)
{
	struct cursor cu = {seg->frame, seg->payload_off + skip, len};

	CORQ_ASSERT(len > 0 && skip + len <= seg->len);
	return cu;
}

/* The next run of bytes, at *data; 0 at the end. The parser saw to it that the bytes are there. */
static CORQ_ALWAYS_INLINE uint32_t
cursor_next(struct cursor *cu, struct corq_frame **part, uint8_t **data)
{
	uint32_t n;

	if (cu->left == 0)
		return 0;
	while (cu->off >= cu->part->len) {
		cu->off -= cu->part->len;
		cu->part = cu->part->next;
		CORQ_ASSERT(cu->part != NULL);
	}
	*part = cu->part;
	*data = cu->part->data + cu->off;
	n = CORQ_MIN(cu->part->len - cu->off, cu->left);
	cu->off += n;
	cu->left -= n;
	return n;
}

static inline uint32_t
payload_seq(const struct corq_seg *seg, uint32_t skip)
{
	return seg->seq + !!(seg->flags & CORQ_TH_SYN) + skip;
}

static uint32_t
count_parts(const struct corq_seg *seg, uint32_t skip, uint32_t len)
{
	struct cursor cu = cursor_at(seg, skip, len);
	struct corq_frame *part;
	uint8_t *data;
	uint32_t n = 0;

	while (cursor_next(&cu, &part, &data))
		n++;
	return n;
}

/* May all parts be held without passing held_max? */
static inline bool
may_hold(const struct corq_engine *e, const struct corq_seg *seg, uint32_t skip, uint32_t len)
{
	const struct corq_chunks *cs = &e->chunks;

	if (CORQ_UNLIKELY(cs->n_held >= cs->held_max))
		return false;
	return CORQ_LIKELY(seg->frame->next == NULL) ||
	       count_parts(seg, skip, len) <= cs->held_max - cs->n_held;
}

static inline void
list_add(struct corq_engine *e, struct corq_chunk_list *l, uint32_t idx, uint32_t len)
{
	if (l->head == CORQ_NONE)
		l->head = idx;
	else
		corq_chunk_at(&e->chunks, l->tail)->next = idx;
	l->tail = idx;
	l->bytes += len;
}

void
corq_rcv_chunk_free(struct corq_engine *e, uint32_t idx)
{
	struct corq_frame *frame;
	enum corq_chunk_end end = corq_chunk_free(&e->chunks, idx, &frame);

	CORQ_ASSERT(end == CORQ_CHUNK_FREED); /* nothing sends from a receive queue */
	if (frame)
		corq_engine_free_frame(e, frame);
}

static void
list_free(struct corq_engine *e, uint32_t idx)
{
	while (idx != CORQ_NONE) {
		uint32_t next = corq_chunk_at(&e->chunks, idx)->next;

		corq_rcv_chunk_free(e, idx);
		idx = next;
	}
}

/* Copies the next len bytes at the cursor to dst. */
static void
cursor_read(struct cursor *cu, uint8_t *dst, uint32_t len)
{
	uint32_t after = cu->left - len, n;
	struct corq_frame *part;
	uint8_t *data;

	cu->left = len;
	while ((n = cursor_next(cu, &part, &data))) {
		memcpy(dst, data, n);
		dst += n;
	}
	cu->left = after;
}

int
corq_rcv_copy(struct corq_engine *e, const struct corq_seg *seg, uint32_t skip, uint32_t len,
	struct corq_chunk_list *out)
{
	struct corq_chunk_list l = {CORQ_NONE, CORQ_NONE, 0};
	struct cursor cu = cursor_at(seg, skip, len);

	while (cu.left) {
		uint32_t idx = corq_chunk_alloc_copy(&e->chunks, cu.left), n;
		struct corq_chunk *k;

		if (idx == CORQ_NONE) {
			list_free(e, l.head);
			return -ENOBUFS;
		}
		k = corq_chunk_at(&e->chunks, idx);
		n = CORQ_MIN(cu.left, k->room);
		k->seq = payload_seq(seg, skip) + l.bytes;
		k->len = n;
		cursor_read(&cu, k->data, n);
		list_add(e, &l, idx, n);
	}
	*out = l;
	return 0;
}

/* Chunks that refer to the parts; the frames are not touched yet. */
static int
hold_parts(struct corq_engine *e, const struct corq_seg *seg, uint32_t skip, uint32_t len,
	struct corq_chunk_list *out)
{
	struct corq_chunk_list l = {CORQ_NONE, CORQ_NONE, 0};
	struct cursor cu = cursor_at(seg, skip, len);
	struct corq_frame *part;
	uint8_t *data;
	uint32_t n;

	while ((n = cursor_next(&cu, &part, &data))) {
		uint32_t idx = corq_chunk_hold(&e->chunks, part, data, n);

		if (CORQ_UNLIKELY(idx == CORQ_NONE)) {
			while (l.head != CORQ_NONE) {
				uint32_t next = corq_chunk_at(&e->chunks, l.head)->next;

				corq_chunk_free(&e->chunks, l.head, &part); /* part: not ours yet */
				l.head = next;
			}
			return -ENOBUFS;
		}
		corq_chunk_at(&e->chunks, idx)->seq = payload_seq(seg, skip) + l.bytes;
		list_add(e, &l, idx, n);
	}
	*out = l;
	return 0;
}

/* Takes the chain apart: held parts stand alone from now on, the others go back. */
static void
unchain(struct corq_engine *e, struct corq_frame *f, uint32_t held)
{
	while (f) {
		struct corq_frame *next = f->next;
		struct corq_chunk *k = held == CORQ_NONE ? NULL : corq_chunk_at(&e->chunks, held);

		f->next = NULL;
		if (k && k->frame == f)
			held = k->next;
		else
			corq_engine_free_frame(e, f);
		f = next;
	}
}

static inline void
give_frame(struct corq_engine *e, struct corq_seg *seg)
{
	corq_engine_free_frame(e, seg->frame);
	seg->frame = NULL;
}

/* The usual case of hold_parts and unchain together: a frame of one part. */
static inline bool
hold_one(struct corq_engine *e, struct corq_seg *seg, uint32_t skip, uint32_t len,
	struct corq_chunk_list *out)
{
	struct corq_frame *f = seg->frame;
	uint32_t off = seg->payload_off + skip, idx;

	CORQ_ASSERT(off + len <= f->len);
	idx = corq_chunk_hold(&e->chunks, f, f->data + off, len);
	if (CORQ_UNLIKELY(idx == CORQ_NONE))
		return false;
	corq_chunk_at(&e->chunks, idx)->seq = payload_seq(seg, skip);
	*out = (struct corq_chunk_list){idx, idx, len};
	seg->frame = NULL;
	return true;
}

int
corq_rcv_take(struct corq_engine *e, const struct corq_conn *c, struct corq_seg *seg, uint32_t skip,
	uint32_t len, struct corq_chunk_list *out)
{
	bool hold = may_hold(e, seg, skip, len);
	bool behind = c->rcvq_tail != CORQ_NONE || payload_seq(seg, skip) != c->rcv_nxt;
	bool copy = !hold || (len < CORQ_RCV_TINY && behind);

	if (CORQ_LIKELY(!copy && seg->frame->next == NULL) && hold_one(e, seg, skip, len, out))
		return 0;
	if (copy && corq_rcv_copy(e, seg, skip, len, out) == 0) {
		give_frame(e, seg);
		return 0;
	}
	if (hold && hold_parts(e, seg, skip, len, out) == 0) {
		unchain(e, seg->frame, out->head);
		seg->frame = NULL;
		return 0;
	}
	if (!copy && corq_rcv_copy(e, seg, skip, len, out) == 0) {
		give_frame(e, seg);
		return 0;
	}
	return -ENOBUFS;
}

bool
corq_rcv_fill(
	struct corq_engine *e, struct corq_seg *seg, uint32_t skip, uint32_t len, uint32_t idx)
{
	struct corq_chunk *k = corq_chunk_at(&e->chunks, idx);
	struct cursor cu;

	if (corq_chunk_space(k) < len)
		return false;
	if (len >= CORQ_RCV_TINY && may_hold(e, seg, skip, len))
		return false;
	cu = cursor_at(seg, skip, len);
	cursor_read(&cu, k->data + k->len, len);
	k->len += len;
	give_frame(e, seg);
	return true;
}

uint32_t
corq_rcv_join(struct corq_engine *e, uint32_t last, uint32_t head, uint32_t tail)
{
	struct corq_chunk *a = corq_chunk_at(&e->chunks, last);
	struct corq_chunk *b = corq_chunk_at(&e->chunks, head);

	if (b->kind == CORQ_CHUNK_COPIED && b->len < CORQ_RCV_TINY &&
		corq_chunk_space(a) >= b->len) {
		memcpy(a->data + a->len, b->data, b->len);
		a->len += b->len;
		a->next = b->next;
		corq_rcv_chunk_free(e, head);
		return head == tail ? last : tail;
	}
	a->next = head;
	return tail;
}

static inline void
count_held(struct corq_engine *e, struct corq_conn *c, uint32_t idx)
{
	for (; idx != CORQ_NONE && c->rcv_true < TRUE_MAX;
		idx = corq_chunk_at(&e->chunks, idx)->next)
		c->rcv_true += corq_chunk_at(&e->chunks, idx)->kind == CORQ_CHUNK_HELD;
}

void
corq_rcvq_append(struct corq_engine *e, struct corq_conn *c, const struct corq_chunk_list *list)
{
	if (list->head == CORQ_NONE)
		return;
	count_held(e, c, list->head);
	if (c->rcvq_tail == CORQ_NONE) {
		c->rcvq_head = list->head;
		c->rcvq_tail = list->tail;
	} else {
		c->rcvq_tail = corq_rcv_join(e, c->rcvq_tail, list->head, list->tail);
	}
	c->rcvq_bytes += list->bytes;
}

int
corq_rcvq_append_seg(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg,
	uint32_t skip, uint32_t len)
{
	struct corq_chunk_list list;
	int err;

	if (c->rcvq_tail != CORQ_NONE && corq_rcv_fill(e, seg, skip, len, c->rcvq_tail)) {
		c->rcvq_bytes += len;
		return 0;
	}
	err = corq_rcv_take(e, c, seg, skip, len, &list);
	if (CORQ_UNLIKELY(err))
		return err;
	corq_rcvq_append(e, c, &list);
	return 0;
}

int
corq_rcvq_peek(struct corq_engine *e, const struct corq_conn *c, struct iovec *iov, int n)
{
	uint32_t idx = c->rcvq_head, off = c->rcv_off;
	int i = 0;

	for (; idx != CORQ_NONE && i < n; i++, off = 0) {
		struct corq_chunk *k = corq_chunk_at(&e->chunks, idx);

		iov[i].iov_base = k->data + off;
		iov[i].iov_len = k->len - off;
		idx = k->next;
	}
	return i;
}

/* After held chunks left a queue whose count had run full. */
static CORQ_NOINLINE void
recount_slow(struct corq_engine *e, struct corq_conn *c)
{
	uint32_t idx = c->rcvq_head, n = 0;
	int walk;

	if (c->rcvq_bytes >= (uint32_t)TRUE_MAX * c->rcv_mss && idx != CORQ_NONE)
		return; /* that many bytes are 255 chunks or more, mostly */
	for (walk = 0; idx != CORQ_NONE && n < TRUE_MAX && walk < RECOUNT_WALK; walk++) {
		struct corq_chunk *k = corq_chunk_at(&e->chunks, idx);

		n += k->kind == CORQ_CHUNK_HELD;
		idx = k->next;
	}
	c->rcv_true = walk == RECOUNT_WALK ? TRUE_MAX : (uint8_t)n;
}

/* Takes the first chunk off the list; the bytes are the caller's to count. */
static inline uint32_t
unlink_first(struct corq_engine *e, struct corq_conn *c)
{
	uint32_t idx = c->rcvq_head;
	struct corq_chunk *k = corq_chunk_at(&e->chunks, idx);

	c->rcvq_head = k->next;
	if (c->rcvq_head == CORQ_NONE)
		c->rcvq_tail = CORQ_NONE;
	c->rcv_off = 0;
	if (k->kind == CORQ_CHUNK_HELD && c->rcv_true < TRUE_MAX)
		c->rcv_true--;
	return idx;
}

void
corq_rcvq_consume(struct corq_engine *e, struct corq_conn *c, size_t len)
{
	CORQ_ASSERT(len <= c->rcvq_bytes);
	c->rcvq_bytes -= (uint32_t)len;
	while (len) {
		uint32_t avail = corq_chunk_at(&e->chunks, c->rcvq_head)->len - c->rcv_off;

		if (len < avail) {
			c->rcv_off += (uint16_t)len; /* a chunk is shorter than 2^16 */
			break;
		}
		corq_rcv_chunk_free(e, unlink_first(e, c));
		len -= avail;
	}
	if (CORQ_UNLIKELY(c->rcv_true == TRUE_MAX))
		recount_slow(e, c);
}

uint32_t
corq_rcvq_pop(struct corq_engine *e, struct corq_conn *c)
{
	uint32_t off = c->rcv_off, idx;
	struct corq_chunk *k;

	if (c->rcvq_head == CORQ_NONE)
		return CORQ_NONE;
	idx = unlink_first(e, c);
	k = corq_chunk_at(&e->chunks, idx);
	k->next = CORQ_NONE;
	k->data += off;
	k->len -= off;
	c->rcvq_bytes -= k->len;
	if (CORQ_UNLIKELY(c->rcv_true == TRUE_MAX))
		recount_slow(e, c);
	return idx;
}

void
corq_rcvq_purge(struct corq_engine *e, struct corq_conn *c)
{
	list_free(e, c->rcvq_head);
	c->rcvq_head = c->rcvq_tail = CORQ_NONE;
	c->rcvq_bytes = 0;
	c->rcv_off = 0;
	c->rcv_true = 0;
}
