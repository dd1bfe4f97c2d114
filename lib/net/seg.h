/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seg.h - what the parser leaves of a received TCP segment: one L1-hot cache line.
 *
 * Filled by corq_net_parse once a frame; the engine reads nothing of the headers again but the
 * SACK blocks (at sack_off). Numbers are host order. Lives in an array of the turn.
 */
#ifndef CORQ_NET_SEG_H
#define CORQ_NET_SEG_H

#include "net/addr.h"
#include "net/frame.h"

/* TCP header flags, as on the wire (RFC 9293 3.1; ECE, CWR RFC 3168). */
enum {
	CORQ_TH_FIN = 0x01,
	CORQ_TH_SYN = 0x02,
	CORQ_TH_RST = 0x04,
	CORQ_TH_PSH = 0x08,
	CORQ_TH_ACK = 0x10,
	CORQ_TH_URG = 0x20,
	CORQ_TH_ECE = 0x40,
	CORQ_TH_CWR = 0x80,
};

/* corq_seg.opts */
enum {
	CORQ_OPT_MSS = 1u << 0,
	CORQ_OPT_WSCALE = 1u << 1,
	CORQ_OPT_TS = 1u << 2,
	CORQ_OPT_SACK_OK = 1u << 3,
	CORQ_OPT_SACK = 1u << 4,
};

struct corq_seg {
	struct corq_frame *frame; /* the packet, data still at the L2 header */
	uint64_t hash;            /* keyed hash of the tuple */
	uint32_t hint;            /* table value found before input, or CORQ_NONE: a hint only */
	uint32_t seq, ack;
	uint32_t len;          /* payload bytes (IP's length, not the frame's: padding is cut) */
	uint32_t tsval, tsecr; /* valid with CORQ_OPT_TS */
	uint16_t wnd;          /* unscaled */
	uint16_t payload_off;  /* from frame->data; payload may go on in frame->next */
	uint16_t sack_off;     /* of the first SACK block, valid with CORQ_OPT_SACK */
	uint16_t mss;          /* valid with CORQ_OPT_MSS */
	uint8_t flags;         /* CORQ_TH_* */
	uint8_t opts;          /* CORQ_OPT_* */
	uint8_t wscale;        /* valid with CORQ_OPT_WSCALE, clamped to 14 (RFC 7323 2.3) */
	uint8_t nsack;         /* number of SACK blocks */
	uint16_t urg;
	uint8_t ecn; /* the two ECN bits of the IP header */
	uint8_t pad[5];
};
_Static_assert(sizeof(struct corq_seg) == 64, "a seg is one cache line");

/* Sequence space that the segment takes: payload, SYN and FIN (RFC 9293 3.4). */
static inline uint32_t
corq_seg_seqlen(const struct corq_seg *s)
{
	return s->len + !!(s->flags & CORQ_TH_SYN) + !!(s->flags & CORQ_TH_FIN);
}

/* RFC 9293 3.10.7.4, first step, with two allowances: at RCV.NXT a closed window still lets ACK,
 * RST and a bare FIN pass, and what is empty and no RST may stand right at the window's edge (a
 * peer whose bytes were lost on the way acknowledges from there). */
static inline bool
corq_seg_in_window(const struct corq_seg *s, uint32_t rcv_nxt, uint32_t wnd)
{
	uint32_t off = s->seq - rcv_nxt, n = corq_seg_seqlen(s);

	if (off == 0)
		return true;
	if (n == 0)
		return off < wnd || (off == wnd && !(s->flags & CORQ_TH_RST));
	return off < wnd || (n > 1 && off + n - 1 < wnd);
}

#endif
