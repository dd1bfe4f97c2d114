/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit.h - headers in front of a payload, and the writers of TCP options.
 *
 * The per-packet send path; called on the core's thread in step 7 of its turn. Pure: no state, no
 * allocation. corq sends IPv4 without options, DF set and id 0 (RFC 6864 4.1), IPv6 with flow
 * label 0, no extension headers, and never sets the urgent pointer.
 */
#ifndef CORQ_NET_EMIT_H
#define CORQ_NET_EMIT_H

#include "net/addr.h"
#include "net/frame.h"
#include "net/wire.h"

/* What the device below does; the core derives it from the port's capabilities once. */
enum corq_emit_flag {
	CORQ_EMIT_L4_OFFLOAD = 1u << 0, /* leave TCP checksums to the device */
	CORQ_EMIT_IP_OFFLOAD = 1u << 1, /* leave IPv4 header checksums to the device */
};

#define CORQ_EMIT_OPTS_MAX 40

struct corq_tcp_out {
	const struct corq_addr *src, *dst; /* both mapped IPv4, or both IPv6 */
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint16_t wnd;    /* already scaled down */
	uint8_t flags;   /* CORQ_TH_* */
	uint8_t opt_len; /* multiple of 4, at most 40 */
	uint8_t opts[CORQ_EMIT_OPTS_MAX];
	uint8_t ecn; /* the two ECN bits */
	uint8_t ttl; /* TTL or hop limit */
};

/*
 * Pushes TCP, IP and Ethernet headers in front of head->data (needs the headroom: up to 114
 * bytes). On entry head->len and head->pkt_len count payload only, further parts may hang at
 * head->next; on return both count the headers too, l2_len, l3_len, l4_len are set, and the
 * checksums are in, or flags ask the device for them. Other flags are left alone: for TSO the
 * caller has set CORQ_FRAME_TX_TSO and tso_segsz; then the TCP checksum is always left to the
 * device or splitter, with a pseudo-header sum whose length is 0 (DPDK's convention). The L3
 * packet must not exceed 65535 bytes.
 */
void corq_emit_tcp(struct corq_frame *head, const struct corq_tcp_out *o, const uint8_t dmac[6],
	const uint8_t smac[6], uint32_t caps /* enum corq_emit_flag */);

struct corq_ip_out {
	const struct corq_addr *src, *dst;
	uint8_t proto, ttl, ecn;
};

/* IP and Ethernet headers only, in front of an L4 packet that is already complete. Sets l2_len
 * and l3_len. */
void corq_emit_ip(struct corq_frame *head, const struct corq_ip_out *o, const uint8_t dmac[6],
	const uint8_t smac[6], uint32_t caps /* enum corq_emit_flag */);

/*
 * Option writers: append to o->opts at o->opt_len, padded with NOPs to whole words. The caller
 * keeps the total within 40.
 */
static inline void
corq_opt_put_word(struct corq_tcp_out *o, uint32_t w)
{
	corq_put_be32(o->opts + o->opt_len, w);
	o->opt_len = (uint8_t)(o->opt_len + 4);
}

/* NOP NOP TS: 12 bytes. */
static inline void
corq_opt_put_ts(struct corq_tcp_out *o, uint32_t tsval, uint32_t tsecr)
{
	corq_opt_put_word(o, 0x0101080au);
	corq_opt_put_word(o, tsval);
	corq_opt_put_word(o, tsecr);
}

static inline void
corq_opt_put_mss(struct corq_tcp_out *o, uint16_t mss)
{
	corq_opt_put_word(o, 0x02040000u | mss);
}

/* NOP NOP SACK-permitted, for a SYN without timestamps. */
static inline void
corq_opt_put_sack_ok(struct corq_tcp_out *o)
{
	corq_opt_put_word(o, 0x01010402u);
}

/* SACK-permitted TS: 12 bytes, the pair in the room that the padding of TS would take. */
static inline void
corq_opt_put_sack_ok_ts(struct corq_tcp_out *o, uint32_t tsval, uint32_t tsecr)
{
	corq_opt_put_word(o, 0x0402080au);
	corq_opt_put_word(o, tsval);
	corq_opt_put_word(o, tsecr);
}

static inline void
corq_opt_put_wscale(struct corq_tcp_out *o, uint8_t shift)
{
	corq_opt_put_word(o, 0x01030300u | shift);
}

/* What a SYN or SYN-ACK carries. */
struct corq_syn_opts {
	uint32_t tsval, tsecr;
	uint16_t mss;   /* 0: no option */
	uint8_t wscale; /* valid with has_wscale */
	bool has_ts, has_sack, has_wscale;
};

/* MSS, SACK-permitted and TS, window scale, in the order that Linux sends: at most 20 bytes. */
void corq_opt_put_syn(struct corq_tcp_out *o, const struct corq_syn_opts *s);

struct corq_sack_block {
	uint32_t start, end; /* host order, end is one past the last */
};

/* NOP NOP SACK with as many of the n blocks as fit (4, or 3 beside TS). Returns how many. */
uint8_t corq_opt_put_sack(struct corq_tcp_out *o, const struct corq_sack_block *b, uint8_t n);

#endif
