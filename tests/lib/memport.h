/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memport.h - a port of plain memory: a NIC, its buffers and its clock for tests.
 *
 * The test injects packets and takes what the core sent; time stands still until the test moves
 * it. Every frame and every buffer is a block of its own from malloc, received data end where the
 * block ends, so AddressSanitizer sees each byte read too far and each frame used after it was
 * given back. Pools are counted and can run dry; a frame that never came back is named.
 *
 * On the send side memport is the NIC: with CORQ_PORT_CAP_TSO it cuts super-segments, with the
 * checksum capabilities it fills checksums, before the packet is captured; so the capture is what
 * a wire would carry whatever the capabilities are. What a device would not forgive (an offload
 * that was not offered, a chain without CORQ_PORT_CAP_CHAIN, lengths that do not add up, data
 * outside the buffer, a packet above the MTU) is a *violation*: counted, the first one kept as
 * text, and the test must ask for it.
 *
 * One thread. Frames may be given back through another memport (hand-off): they know their owner.
 */
#ifndef CORQ_TEST_MEMPORT_H
#define CORQ_TEST_MEMPORT_H

#include "core/port.h"
#include "pcapbuf.h"

struct memport;

#define MEMPORT_FRAMES 1024 /* default of both pools */

struct memport_config {
	uint32_t rx_frames, tx_frames; /* pool sizes; 0: MEMPORT_FRAMES each */
	uint32_t rx_ring;              /* packets that wait unreceived; 0: all that the pool has */
	uint16_t mtu;                  /* 0: 1500 */
	uint32_t caps;                 /* enum corq_port_cap */
	uint32_t tso_max;              /* with CORQ_PORT_CAP_TSO; 0: 65536 - 120 */
	uint8_t mac[6];                /* all zero: 02:00:00:00:00:01 */
	uint16_t queue;
	uint64_t start_ns; /* of the clock; 0: 1000 s */
	/* Taken packets complete only inside the next tx_burst or when provoked (as virtio does);
	 * off: at once. Borrowed bytes that changed before completion are a violation. */
	bool late_completion;
};

/* A packet that left. Freed by the test with free(). */
struct memport_pkt {
	struct memport_pkt *next;
	uint64_t at_ns;
	uint32_t len;
	uint8_t bytes[];
};

/* How an injected packet arrives; zero is one part, no flag. */
struct memport_how {
	const uint16_t *split; /* sizes of the first parts of the chain; the rest is the last */
	unsigned n_split;
	uint16_t flags; /* enum corq_frame_flag: what the device says */
	uint32_t rx_hash;
};

struct memport_counts {
	uint64_t injected, received, sent, captured; /* packets; captured: after cutting */
	uint32_t rx_out, tx_out; /* frames that the core has (or the device has not completed) */
	uint32_t rx_queued;      /* packets injected and not received yet */
	uint32_t violations;
};

struct memport *memport_new(const struct memport_config *cfg);
/* Frees everything, also what leaked. */
void memport_free(struct memport *mp);
struct corq_port *memport_port(struct memport *mp);

/* False when the rx pool or ring is full (counted in the port as a NIC would). */
bool memport_inject(struct memport *mp, const void *bytes, uint32_t len);
bool memport_inject_as(
	struct memport *mp, const void *bytes, uint32_t len, const struct memport_how *how);

/* Oldest packet sent and not taken, or NULL. peek leaves it in the queue. */
struct memport_pkt *memport_take_tx(struct memport *mp);
const struct memport_pkt *memport_peek_tx(const struct memport *mp);

/* The device takes this many packets more, in all, then none. UINT32_MAX (default): any number. */
void memport_set_tx_room(struct memport *mp, uint32_t packets);
/* Leaves only n more tx frames in the pool (exhaustion); UINT32_MAX: all of them again. */
void memport_limit_tx(struct memport *mp, uint32_t n);
void memport_limit_rx(struct memport *mp, uint32_t n);
/* Added to what port->backlog shows after a rx_burst. */
void memport_set_backlog(struct memport *mp, uint32_t packets);
/* At most n packets a rx_burst; 0: as the core asks. */
void memport_set_rx_max(struct memport *mp, uint16_t n);

uint64_t memport_now(const struct memport *mp);
void memport_set_clock(struct memport *mp, uint64_t ns); /* never backwards */
void memport_advance(struct memport *mp, uint64_t ns);

/* Copies what arrives and what leaves into pb (which stays the test's). NULL: stop. */
void memport_set_pcap(struct memport *mp, struct pcapbuf *pb, bool tx, bool rx);

void memport_counts(const struct memport *mp, struct memport_counts *out);
/* Text of the first violation, or NULL. */
const char *memport_violation(const struct memport *mp);
/* Completes everything the device still holds (late_completion). */
void memport_complete(struct memport *mp);

#endif
