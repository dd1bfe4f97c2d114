/* SPDX-License-Identifier: BSD-3-Clause */
/* net_parse.h - shared by the two tests of the parser: parse a packet, look at everything. */
#ifndef CORQ_TESTS_NET_PARSE_H
#define CORQ_TESTS_NET_PARSE_H

#include "net_frames.h"

#include "net/parse.h"

struct np_result {
	enum corq_reason r;
	enum corq_pkt kind;
	struct corq_seg seg;
	struct corq_key key;
	uint16_t flags_after;
};

static const struct corq_parse_ctx np_ctx = {.mac = {0x02, 0, 0, 0, 0, 0x01}, .mtu = 1500};

/* What must hold whatever the bytes were. */
static inline void
np_check(const struct np_result *o, size_t n)
{
	assert_int_equal(o->r == CORQ_R_NONE, o->kind != CORQ_PKT_DROP);
	assert_true(o->r < CORQ_R_COUNT);
	if (o->kind == CORQ_PKT_DROP)
		return;
	assert_true((size_t)o->seg.payload_off + o->seg.len <= n);
	assert_int_equal(o->seg.hint, CORQ_NONE);
	assert_int_equal(o->key.zero, 0);
	if (o->seg.opts & CORQ_OPT_SACK) {
		assert_in_range(o->seg.nsack, 1, 4);
		assert_true(o->seg.sack_off + 8u * o->seg.nsack <= o->seg.payload_off);
	}
	assert_true(o->seg.wscale <= 14);
}

static inline struct np_result
np_parse_frame(struct corq_frame *f, const struct corq_parse_ctx *ctx)
{
	struct np_result o;

	memset(&o, 0xa5, sizeof(o)); /* the parser must not rely on what was there */
	o.r = corq_net_parse(f, ctx, &o.seg, &o.key, &o.kind);
	o.flags_after = f->flags;
	np_check(&o, f->pkt_len);
	return o;
}

static inline struct np_result
np_parse(const uint8_t *b, size_t n)
{
	struct corq_frame *f = nf_rx(b, n);
	struct np_result o = np_parse_frame(f, &np_ctx);

	nf_free(f);
	return o;
}

static inline struct np_result
np_parse_pkt(const struct nf_pkt *p)
{
	return np_parse(p->b, p->len);
}

#endif
