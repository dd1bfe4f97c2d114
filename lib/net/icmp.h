/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp.h - ICMP for IPv4 (RFC 792, 1122 3.2.2): echo replies, and errors about our segments.
 *
 * Called on the core's thread for packets that corq_net_parse named CORQ_PKT_ICMP4 and whose
 * destination is ours. Keeps no state but the rate limit. corq sends no ICMP error.
 */
#ifndef CORQ_NET_ICMP_H
#define CORQ_NET_ICMP_H

#include "net/addr.h"
#include "net/emit.h"
#include "net/frame.h"
#include "net/reasons.h"
#include "net/seg.h"

enum {
	CORQ_ICMP_ECHO_REPLY = 0,
	CORQ_ICMP_UNREACH = 3,
	CORQ_ICMP_ECHO = 8,
	CORQ_ICMP_TIME_EXCEEDED = 11,
	CORQ_ICMP_PARAM = 12,
};

/* Codes of CORQ_ICMP_UNREACH that an engine tells apart (RFC 1122 4.2.3.9, RFC 5461). */
enum {
	CORQ_ICMP_UNREACH_NET = 0,
	CORQ_ICMP_UNREACH_HOST = 1,
	CORQ_ICMP_UNREACH_PROTO = 2,
	CORQ_ICMP_UNREACH_PORT = 3,
	CORQ_ICMP_UNREACH_FRAG = 4, /* fragmentation needed: mtu */
	CORQ_ICMP_UNREACH_ADMIN = 13,
};

struct corq_icmp {
	uint8_t type, code;
	uint16_t mtu;  /* next hop's MTU of "fragmentation needed"; 0: an old router did not say */
	bool is_error; /* key and seq are valid */
	uint32_t seq;  /* the quoted segment's sequence number */
	struct corq_key
		key; /* the quoted tuple from this host's point of view: laddr was its source */
};

/*
 * Verifies the message that seg (payload_off, len) describes and reads it: an echo request, or an
 * unreachable, time-exceeded or parameter-problem error that quotes one of our TCP segments.
 * key is the outer packet's: the quoted source must be the address that this came to. Everything
 * else returns a reason: source quench and redirects are ICMP_TYPE (RFC 6633).
 */
enum corq_reason corq_icmp_parse(const struct corq_frame *f, const struct corq_seg *seg,
	const struct corq_key *key, struct corq_icmp *out);

/*
 * Builds into the empty frame `out` the answer to the echo request in f (as parsed), from
 * key->laddr to key->raddr. The payload is cut to what mtu and out's room allow (RFC 1122
 * 3.2.2.6). caps: enum corq_emit_flag.
 */
void corq_icmp_build_echo_reply(struct corq_frame *out, const struct corq_frame *f,
	const struct corq_seg *seg, const struct corq_key *key, uint16_t mtu, const uint8_t dmac[6],
	const uint8_t smac[6], uint32_t caps);

/* A token bucket: `rate` replies a second, bursts of at most a tenth of that. */
struct corq_icmp_limit {
	uint64_t cost_ns;  /* of one reply */
	uint64_t burst_ns; /* the bucket's depth */
	uint64_t full_ns;  /* the time at which the bucket, if left alone, is full again */
};

#define CORQ_ICMP_RATE_DEFAULT 1000

/* rate 0: nothing passes. */
void corq_icmp_limit_init(struct corq_icmp_limit *l, uint32_t rate, uint64_t now_ns);

/* True if one reply may leave now; else the packet is CORQ_R_ICMP_LIMIT. */
bool corq_icmp_limit_take(struct corq_icmp_limit *l, uint64_t now_ns);

#endif
