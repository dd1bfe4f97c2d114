/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memwire.h - two ports of plain memory joined by a wire, as lean as the loop device, for timing.
 *
 * What one end sends, the other receives: the frame itself crosses, nothing is copied. Frames are
 * allocated at the start, free ones stand in one stack that both ends share (the loop device's pool
 * is shared too: what is freed last is in the cache and goes out next). No malloc, no look-up, no
 * system call after memwire_new.
 *
 * The port times itself: each function of the seam adds its cycles (less the cost of reading the
 * counter) and its packets to struct memwire_cost. That is what "crossing the seam" costs: the
 * call through the table, the copy of pointers, the reset of a frame, the clock.
 *
 * One thread drives both ends, turn by turn. No chains, no offloads, no loss: a full wire refuses.
 */
#ifndef CORQ_PERF_MEMWIRE_H
#define CORQ_PERF_MEMWIRE_H

#include "core/port.h"

enum memwire_fn {
	MEMWIRE_RX,
	MEMWIRE_TX,
	MEMWIRE_ALLOC,
	MEMWIRE_FREE,
	MEMWIRE_NOW,
	MEMWIRE_FN_COUNT,
};

struct memwire_cost {
	uint64_t cycles[MEMWIRE_FN_COUNT];
	uint64_t calls[MEMWIRE_FN_COUNT];
	uint64_t frames[MEMWIRE_FN_COUNT]; /* packets in and out, frames taken and given back */
};

struct memwire;

/* n_frames in the shared stack; mtu as of Ethernet. NULL without memory. */
struct memwire *memwire_new(uint32_t n_frames, uint16_t mtu);
void memwire_free(struct memwire *mw);
/* end: 0 or 1. Its MAC address is 02:00:00:00:00:01 + end. */
struct corq_port *memwire_port(struct memwire *mw, unsigned end);
/* Sums since the last reset. */
const struct memwire_cost *memwire_costs(const struct memwire *mw, unsigned end);
void memwire_reset_costs(struct memwire *mw);
/* Frames that neither stand in the stack nor wait on the wire. */
uint32_t memwire_frames_out(const struct memwire *mw);
/* Cycles that a pair of counter reads costs, taken off each call. */
uint64_t memwire_tsc_cost(const struct memwire *mw);
/* Ticks of the cycle counter in a second, measured against the system's clock. */
double memwire_tsc_hz(const struct memwire *mw);

#endif
