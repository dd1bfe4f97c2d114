/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse.h - one received packet into a seg and a key, or a reason to drop it.
 *
 * Called once a packet by the core's turn, on its thread; pure but for marking the frame
 * (CORQ_FRAME_TX_PARTIAL). Never reads outside the frame's bytes. Headers (Ethernet, IP with
 * options, TCP with options: at most 14 + 60 + 60) must lie in the first part of the chain; ports
 * deliver at least 128 contiguous bytes when the packet has them, and a packet that breaks this
 * is dropped as short. Payload may go on in `next`.
 *
 * Not checked here: whether the destination address is ours (the core's address table), anything
 * that needs connection state, and what ARP and ICMP carry (arp.h, icmp.h).
 */
#ifndef CORQ_NET_PARSE_H
#define CORQ_NET_PARSE_H

#include "net/addr.h"
#include "net/frame.h"
#include "net/reasons.h"
#include "net/seg.h"

enum corq_pkt {
	CORQ_PKT_DROP,  /* the returned reason says why */
	CORQ_PKT_TCP,   /* seg and key whole */
	CORQ_PKT_ARP,   /* seg: payload_off, len of the ARP packet */
	CORQ_PKT_ICMP4, /* seg: payload_off, len of the ICMP message; key: addresses, ports 0 */
	CORQ_PKT_ICMP6, /* the same */
};

struct corq_parse_ctx {
	uint8_t mac[6]; /* ours on this device */
	uint16_t mtu;   /* largest L3 packet; only tells "cut short" from "above the MTU". 0: off */
	bool trust_rx;  /* believe the device's checksum flags (CORQ_PORT_CAP_TRUST_RX) */
};

/*
 * Returns CORQ_R_NONE with *kind other than DROP, or the reason with *kind = CORQ_PKT_DROP (then
 * *seg and *key hold nothing). On success seg->hint is CORQ_NONE, seg->hash 0, key->zero 0;
 * key->raddr and rport are the packet's source, laddr and lport its destination.
 *
 * Checksums: with trust_rx, a GOOD flag is believed and a BAD flag drops; otherwise they are
 * computed. A wrong TCP checksum that equals the pseudo-header sum is CORQ_R_TCP_CSUM_PARTIAL and
 * marks the frame: the sender left it to a device that never did it.
 *
 * TCP options: the first of a kind wins; unknown ones, and known ones with a wrong length, are
 * skipped; MSS, window scale and SACK-permitted count on a SYN only, SACK blocks on others only
 * (RFC 9293 3.7.1, 7323 2.2, 2018 2). A length below 2 or beyond the header drops the segment.
 */
enum corq_reason corq_net_parse(struct corq_frame *f, const struct corq_parse_ctx *ctx,
	struct corq_seg *seg, struct corq_key *key, enum corq_pkt *kind);

#endif
