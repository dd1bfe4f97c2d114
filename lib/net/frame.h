/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h - one buffer of a packet, as every layer above the port sees it.
 *
 * A packet is a chain of frames linked by `next`; the first frame is the head and carries the
 * fields of the whole packet (pkt_len, flags, rx_*, tso_*). corq never sees a driver's buffer
 * type: the port keeps a `struct corq_frame` beside each of its buffers (for DPDK in the mbuf's
 * private area, in tests beside a malloc'd block) and converts between the two by address
 * arithmetic, so crossing the seam costs no look-up.
 *
 * Ownership: the port owns frames in its pools. rx_burst hands frames to the core, which gives
 * each chain back exactly once through free_bulk (or keeps it: a held chunk). tx_alloc hands
 * frames to the core, which gives each back through tx_burst or free_bulk. One thread, the core's.
 */
#ifndef CORQ_NET_FRAME_H
#define CORQ_NET_FRAME_H

#include "base/base.h"

/* corq_frame.flags. On receive the port sets what the device said; on send the core asks. */
enum corq_frame_flag {
	CORQ_FRAME_L4_CSUM_GOOD = 1u << 0, /* rx: the device verified the TCP checksum */
	CORQ_FRAME_L4_CSUM_BAD = 1u << 1,  /* rx: the device found it wrong: drop, count */
	CORQ_FRAME_IP_CSUM_GOOD = 1u << 2, /* rx: IPv4 header checksum verified */
	CORQ_FRAME_IP_CSUM_BAD = 1u << 3,
	CORQ_FRAME_RX_HASH = 1u << 4,    /* rx: rx_hash is valid */
	CORQ_FRAME_VLAN = 1u << 5,       /* rx/tx: vlan_tci is valid (tag outside the data) */
	CORQ_FRAME_TX_L4_CSUM = 1u << 6, /* tx: device fills the TCP checksum (pseudo sum is in) */
	CORQ_FRAME_TX_IP_CSUM = 1u << 7, /* tx: device fills the IPv4 header checksum */
	CORQ_FRAME_TX_TSO = 1u << 8,     /* tx: device cuts the packet to tso_segsz */
	CORQ_FRAME_TX_PARTIAL = 1u << 9, /* rx: the sender left the checksum to its device (the
					    field holds the pseudo-header sum): the peer's
					    offloads are on */
	CORQ_FRAME_EXT =
		1u << 10, /* data lies in memory that `ext` keeps alive, not in this buffer */
	CORQ_FRAME_HANDED = 1u << 11, /* rx: came through a hand-off ring, hop count in `hops` */
};

struct corq_frame {
	uint8_t *data;           /* first byte of this frame's part (the head: the L2 header) */
	struct corq_frame *next; /* next part of the same packet, NULL at the end */
	uint32_t pkt_len;        /* head: bytes of the whole chain */
	uint16_t len;            /* bytes at `data` in this part */
	uint16_t room;    /* bytes usable from buf_start on (buffer's size); set by the port */
	uint32_t rx_hash; /* head: the device's RSS hash */
	uint16_t flags;   /* enum corq_frame_flag */
	uint16_t vlan_tci;
	uint16_t rx_queue; /* head: the queue it arrived on */
	uint16_t tso_segsz;
	uint8_t l2_len, l3_len, l4_len; /* tx offload: header lengths */
	uint8_t hops;                   /* hand-off hops so far */
	uint8_t *buf_start;             /* first byte of the buffer; headroom is data - buf_start */
	void *ext;     /* CORQ_FRAME_EXT: the chunk that owns `data`; see core/port.h */
	uint64_t user; /* the holder's scratch word (index of a chunk, a tx stamp) */
};

_Static_assert(sizeof(struct corq_frame) == 64, "a frame head is one cache line");

/* Headroom that every tx frame has in front of `data` when tx_alloc returns it: room for
 * L2 + VLAN + IPv6 + TCP with full options (14 + 4 + 40 + 60). */
#define CORQ_FRAME_HEADROOM 128

/* Bytes of payload room behind the headroom that each pool buffer has at least, for MTU 1500. */
#define CORQ_FRAME_DATAROOM 2048

#endif
