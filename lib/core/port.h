/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h - the seam between a core and whatever carries its packets.
 *
 * A port is one queue pair of one device, used by one core: a batch of frames in, a batch of
 * frames out, a clock. DPDK fills this in for real devices (lib/port), plain memory in tests
 * (tests/lib). Functions here are called once a burst, never once a packet.
 *
 * All functions are called on the owning core's thread only. None may block.
 */
#ifndef CORQ_CORE_PORT_H
#define CORQ_CORE_PORT_H

#include "net/frame.h"

#define CORQ_BURST_MAX 64

struct corq_port;

/* What the port below can do; the core asks for nothing else. */
enum corq_port_cap {
	CORQ_PORT_CAP_CHAIN = 1u << 0,    /* tx takes chains, and CORQ_FRAME_EXT parts */
	CORQ_PORT_CAP_L4_CSUM = 1u << 1,  /* tx fills TCP checksums */
	CORQ_PORT_CAP_IP_CSUM = 1u << 2,  /* tx fills IPv4 header checksums */
	CORQ_PORT_CAP_TSO = 1u << 3,      /* tx cuts super-segments (up to tso_max bytes) */
	CORQ_PORT_CAP_TRUST_RX = 1u << 4, /* rx checksum flags may be trusted */
};

struct corq_port_ops {
	/* Up to n packets (chains) into frames[]; returns how many. The core owns them then. */
	uint16_t (*rx_burst)(struct corq_port *port, struct corq_frame **frames, uint16_t n);
	/* Offers n packets in order; returns how many the device took (a prefix). What it took is
	 * the port's; what it did not take stays the core's. */
	uint16_t (*tx_burst)(struct corq_port *port, struct corq_frame **frames, uint16_t n);
	/* Up to n empty tx frames: one part each, data = buf_start + CORQ_FRAME_HEADROOM, len 0,
	 * pkt_len 0, flags 0, next NULL. Returns how many there were. */
	uint16_t (*tx_alloc)(struct corq_port *port, struct corq_frame **frames, uint16_t n);
	/* Gives back n chains, received ones or unsent tx ones. CORQ_FRAME_EXT parts are reported
	 * in the `released` ring like sent ones. */
	void (*free_bulk)(struct corq_port *port, struct corq_frame **frames, uint16_t n);
	/* Nanoseconds of a monotonic clock (virtual in tests). */
	uint64_t (*now_ns)(struct corq_port *port);
	/*
	 * Ends of borrowed memory: up to n `ext` words of CORQ_FRAME_EXT parts whose frame the
	 * device has finished with since the last call. `provoke` non-zero asks the port to make
	 * the device complete what it can (virtio completes only inside the next tx_burst).
	 * NULL where the port has no CORQ_PORT_CAP_CHAIN.
	 */
	uint16_t (*released)(struct corq_port *port, void **ext, uint16_t n, int provoke);
	/* Sleeps at most ns, or until a packet may be there (a hint). NULL: the core spins. */
	void (*idle)(struct corq_port *port, uint64_t ns);
	/* Brings the counters below up to date, which otherwise is done now and then. Called at the
	 * end of a run. NULL: they always are. */
	void (*count)(struct corq_port *port);
};

struct corq_port {
	const struct corq_port_ops *ops;
	uint32_t caps;    /* enum corq_port_cap */
	uint32_t tso_max; /* bytes of payload in one super-segment, 0 without TSO */
	uint16_t mtu;     /* largest L3 packet */
	uint16_t queue;   /* this core's queue on the device */
	uint8_t mac[6];   /* our Ethernet address on this device */
	bool syscalls;    /* each tx_burst is a system call: collecting pays (core/idle.c) */
	/* Set by the port, read by the core: packets that wait in the device beyond what rx_burst
	 * returned last; where it cannot tell, the packets of full bursts in a row. Holds back
	 * retransmission timers, and new packets when it is large. */
	uint32_t backlog;
	/* Counted by the port; the first three are figures of the core (core/figures.c). */
	uint64_t n_rx_missed, n_rx_nombuf, n_tx_full, n_rx_oversize;
};

#endif
