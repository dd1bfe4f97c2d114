/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h - 64 bytes for a tuple without a connection: TIME_WAIT, an orphan in FIN_WAIT_2, or a
 * half-open passive connection.
 *
 * Records of one duration stand in one list, oldest deadline first: expiry looks at the head only,
 * restart is a move to the tail, both O(1). A half-open record moves from class to class as its
 * SYN-ACK is retransmitted with doubled waits. Each kind has its own bound; at the bound the
 * oldest of that kind goes, counted: a SYN flood evicts no TIME_WAIT.
 */
#ifndef CORQ_TCP_RECORD_H
#define CORQ_TCP_RECORD_H

#include "base/dlist.h"
#include "net/addr.h"

enum corq_record_kind {
	CORQ_REC_FREE,
	CORQ_REC_TIME_WAIT,
	CORQ_REC_FIN_WAIT2,
	CORQ_REC_HALF_OPEN,
	CORQ_REC_KIND_COUNT,
};

/* corq_record.flags */
enum {
	CORQ_RF_TS = 1u << 0,
	CORQ_RF_SACK = 1u << 1,
	CORQ_RF_WSCALE = 1u << 2,
	CORQ_RF_ACTIVE = 1u << 3, /* our connect chose the port: counted in the port figures */
	CORQ_RF_ANSWERED_SYN = 1u << 4, /* TIME_WAIT answered a SYN: one exact RST frees it */
	CORQ_RF_SYNACK_RTX = 1u << 5,   /* the SYN-ACK was sent more than once: no RTT sample */
	CORQ_RF_DEFERRED = 1u << 6,     /* the third ACK came bare and waits for data */
};

struct corq_record {
	struct corq_dlink link; /* in its class's list */
	struct corq_addr raddr;
	uint16_t rport, lport;
	uint16_t laddr_idx; /* in the core's address table */
	uint8_t kind;       /* enum corq_record_kind */
	uint8_t class;      /* duration class */
	uint32_t deadline;  /* tick */
	uint32_t snd_nxt;   /* half-open: ISS + 1 */
	uint32_t rcv_nxt;   /* half-open: IRS + 1 */
	uint32_t ts_recent;
	uint32_t stamp; /* tick: TIME_WAIT last answer (rate limit); half-open SYN-ACK sent */
	uint16_t wnd;   /* window that we say, unscaled; half-open: the peer's from its SYN */
	uint8_t flags;  /* CORQ_RF_* */
	uint8_t wscale; /* as in corq_conn */
	union {
		struct { /* half-open */
			uint16_t mss;
			uint8_t retries;
			uint8_t listener;
		};
		uint32_t entered; /* TIME_WAIT: tick it was entered (reuse delay) */
	};
	uint32_t ts_off; /* timestamp offset of the tuple (isn.h) */
};
_Static_assert(sizeof(struct corq_record) == 64, "a record is one line");

/* Duration classes. SYN-ACK waits are 1, 2, 4, 8, 16, 32 s times rto_init. An orphan in FIN_WAIT_2
 * waits as long as the engine is configured to, or, as its LINGER2 says, 1, 2, 4, 8, 16 or 32 s:
 * the next one up, and never longer than the engine's time. */
enum corq_record_class {
	CORQ_RC_SYNACK0, /* .. + 5 */
	CORQ_RC_SYNACK5 = CORQ_RC_SYNACK0 + 5,
	CORQ_RC_FIN_WAIT2_0, /* .. + 5 */
	CORQ_RC_FIN_WAIT2_5 = CORQ_RC_FIN_WAIT2_0 + 5,
	CORQ_RC_FIN_WAIT2,
	CORQ_RC_TIME_WAIT,
	CORQ_RC_COUNT,
	CORQ_RC_NONE = CORQ_RC_COUNT, /* in no list */
};

#endif
