/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mkseg.h - whole Ethernet frames with a TCP segment in them, from numbers; for tests that play
 * the peer. Its own writing of every header, with checksums filled in, so that what is wrong in a
 * frame is wrong on purpose. IPv4 when both addresses are mapped, IPv6 otherwise. Pure functions.
 */
#ifndef CORQ_TEST_MKSEG_H
#define CORQ_TEST_MKSEG_H

#include "net/addr.h"
#include "net/seg.h"

#define MKSEG_MAX 2048

struct mkseg {
	struct corq_addr src, dst;
	uint8_t smac[6], dmac[6];
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint16_t wnd, urg;
	uint8_t flags;    /* CORQ_TH_* */
	uint8_t ecn, ttl; /* ttl 0: 64 */
	uint8_t opt_len;  /* multiple of 4 when built by the functions below */
	uint8_t opt[40];
	const uint8_t *data;
	uint16_t len;
};

/* Options; each leaves opt_len a multiple of 4, and does nothing when there is no room. */
void mkseg_opt_ts(struct mkseg *m, uint32_t val, uint32_t ecr);
void mkseg_opt_mss(struct mkseg *m, uint16_t mss);
void mkseg_opt_wscale(struct mkseg *m, uint8_t shift);
void mkseg_opt_sack_ok(struct mkseg *m);
/* n blocks of [start, end). */
void mkseg_opt_sack(struct mkseg *m, const uint32_t (*block)[2], unsigned n);

/* Writes the frame; returns its length (at most MKSEG_MAX: payload that does not fit is cut). */
uint32_t mkseg_build(const struct mkseg *m, uint8_t out[MKSEG_MAX]);
/* Fills in the checksums of a frame whose headers are as they should be; else leaves it alone. */
void mkseg_fix_checksums(uint8_t *frame, uint32_t len);

#endif
