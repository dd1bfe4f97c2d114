/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - the state of one TCP connection (the tcb) and of what it owns while busy.
 *
 * A connection is three cache lines: [0] look-up and receive, [1] acknowledge and send, [2] events,
 * timers and the program's words. What exists only while something is in flight, corked, out of
 * order or owed lives in a work block (128 bytes, pooled): an idle connection has none, and no
 * chunk, buffer or transmission record either.
 *
 * All of it belongs to one core. Indices are of the engine's pools; CORQ_NONE is none. Sequence
 * numbers are compared by base/seq.h only. A *tick* is 2^14 ns (16.4 us): u32 ticks wrap after
 * 19.5 hours, deadlines may be 9.7 hours ahead.
 */
#ifndef CORQ_TCP_CONN_H
#define CORQ_TCP_CONN_H

#include "base/dlist.h"
#include "base/wheel.h"
#include "net/addr.h"
#include <corq/core.h>

#define CORQ_TICK_SHIFT 14

/* corq_conn.flags */
enum corq_conn_flag {
	/* agreed in the handshake */
	CORQ_CF_TS = 1u << 0,
	CORQ_CF_SACK = 1u << 1,
	CORQ_CF_WSCALE = 1u << 2,
	CORQ_CF_PASSIVE = 1u << 3,
	/* asked by the program */
	CORQ_CF_NODELAY = 1u << 4,
	CORQ_CF_CORK = 1u << 5,
	CORQ_CF_MORE = 1u << 6, /* the tail of the send queue was written with MORE */
	CORQ_CF_LINGER0 = 1u << 7,
	CORQ_CF_ORPHAN = 1u << 8,    /* closed by the program: only on_close may follow */
	CORQ_CF_WANT_ROOM = 1u << 9, /* a write came short: on_sent when there is room */
	/* send side */
	CORQ_CF_FLUSH = 1u << 10,      /* what is queued now may leave despite cork, MORE, Nagle */
	CORQ_CF_FIN_QUEUED = 1u << 11, /* no byte is appended after it (R10) */
	CORQ_CF_FIN_SENT = 1u << 12,
	CORQ_CF_PROBE = 1u << 13, /* a window probe is owed */
	CORQ_CF_RTX = 1u << 14,   /* a retransmission is owed (work block says what) */
	CORQ_CF_SYN = 1u << 15,   /* a SYN or SYN-ACK of this connection is owed */
	/* receive side */
	CORQ_CF_PEER_FIN = 1u << 16,  /* FIN received in order */
	CORQ_CF_ACK_DELAY = 1u << 17, /* an ACK is owed, not at once */
	CORQ_CF_WND_UPDATE =
		1u << 18, /* the program consumed: see whether the window moved enough */
	/* lists */
	CORQ_CF_IN_SEND = 1u << 19,
	CORQ_CF_IN_URGENT = 1u << 20,
	CORQ_CF_IN_EVENTS = 1u << 21,
	CORQ_CF_DETACHED = 1u << 22,  /* the tuple lives in a record now, or nowhere */
	CORQ_CF_OPENED = 1u << 23,    /* on_open was or will be called */
	CORQ_CF_PORT_HELD = 1u << 24, /* counted in the destination's port figures */
	CORQ_CF_SYN_RTX = 1u << 25, /* the SYN was retransmitted: RTO 3 s for data (RFC 6298 5.7) */
	CORQ_CF_ACK_NOW = 1u << 26, /* one ACK is owed at once; any segment pays it */
	CORQ_CF_ZOMBIE = 1u << 27,  /* reaped while in a sender queue: freed when taken from it */
};

/* The top four bits: LINGER2. 0 the engine's time; 1 to 6 the class of record.h, counted from 1; 15
 * RST at close. */
#define CORQ_CF_LINGER2_SHIFT 28
#define CORQ_LINGER2_RST      15

/* corq_conn.ev: what step 6 calls, in this order. */
enum corq_conn_event {
	CORQ_EV_OPEN = 1u << 0,
	CORQ_EV_DATA = 1u << 1,
	CORQ_EV_PEER_FIN = 1u << 2,
	CORQ_EV_SENT = 1u << 3,
	CORQ_EV_TIMER = 1u << 4,
	CORQ_EV_CLOSE = 1u << 5,
	CORQ_EV_END = 1u << 6, /* a held connection ended; told before CLOSE */
};

struct corq_conn {
	/* [0] look-up and receive: read for every segment */
	struct corq_addr raddr, laddr;
	uint16_t rport, lport;
	uint8_t state;     /* enum corq_state */
	uint8_t wscale;    /* low nibble: ours (rcv), high nibble: the peer's (snd) */
	uint8_t backoff;   /* RTO doublings; also the retry count of SYN, data, probes */
	uint8_t acks_owed; /* immediate ACKs owed in this turn */
	uint32_t flags;    /* enum corq_conn_flag */
	uint32_t rcv_nxt;
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t ts_recent; /* RFC 7323 4.3 */
	uint32_t work;      /* work block or CORQ_NONE */

	/* [1] acknowledge and send */
	uint32_t snd_wnd; /* bytes, scaled */
	uint32_t snd_wl1, snd_wl2;
	uint32_t snd_end; /* sequence behind the last queued byte; FIN's own number when queued */
	uint32_t rcv_adv; /* right edge that the peer was told */
	uint32_t last_ack_sent;
	uint32_t cwnd, ssthresh;       /* bytes */
	uint32_t srtt_us, rttvar_us;   /* srtt 0: no sample yet; both plain microseconds */
	uint32_t ts_off;               /* RFC 7323 5.4: added to the 1 ms clock */
	uint32_t sndq_head, sndq_tail; /* chunks not fully acknowledged */
	uint32_t sndq_off;             /* acknowledged bytes of the head chunk */
	uint16_t mss;                  /* payload bytes of a full segment, options counted off */
	uint16_t neigh;                /* next hop's entry: a hint, checked by address */
	uint16_t max_wnd;              /* largest window seen, unscaled: silly-window avoidance */
	uint16_t ts_age; /* when ts_recent was taken, units of 2^36 ns (68.7 s): 24-day rule */

	/* [2] events, timers, the program's words */
	struct corq_wheel_node timer; /* earliest of all deadlines */
	uint32_t user_at;             /* tick of the program's deadline; 0 none */
	void *user;
	uint32_t rcvq_head, rcvq_tail; /* chunks received in order, not consumed */
	uint32_t rcvq_bytes;
	uint32_t slot : 26;     /* handle's slot */
	uint32_t rd_shut : 1;   /* the program shut the receiving side down */
	uint32_t told : 1;      /* on_close is not called (again): only memory goes */
	uint32_t held : 1;      /* stays after its end until the program closes it (sock.c) */
	uint32_t failed : 1;    /* its error was taken from a held connection: counted as failed */
	uint32_t exchanged : 1; /* a byte was written or received, ever */
	uint32_t : 1;
	uint32_t send_next, ev_next;
	uint32_t splice; /* pool index of a struct corq_splice_link, or CORQ_NONE */
	uint16_t ev;     /* enum corq_conn_event */
	uint16_t laddr_idx;
	uint8_t ops;      /* index of the ops table in the engine's list */
	uint8_t told_at;  /* when a segment without data was last told that it is not acceptable:
			     0 never, else 128 + half seconds modulo 128 (input.c) */
	uint8_t err;      /* errno that ended it, 0 none */
	uint8_t rcv_true; /* frames that the receive queue holds (true size), saturating */
	uint16_t rcv_mss; /* largest segment seen: when a second full one is in (delayed ACK) */
	uint16_t rcv_off; /* consumed bytes of the first receive chunk */
};

_Static_assert(sizeof(struct corq_conn) == 192, "three cache lines");
_Static_assert(offsetof(struct corq_conn, snd_wnd) == 64, "look-up and receive fill line 0");
_Static_assert(offsetof(struct corq_conn, timer) == 128, "acknowledge and send fill line 1");

static inline unsigned
corq_conn_linger2(const struct corq_conn *c)
{
	return c->flags >> CORQ_CF_LINGER2_SHIFT;
}

static inline unsigned
corq_conn_rcv_wscale(const struct corq_conn *c)
{
	return c->wscale & 15;
}

static inline unsigned
corq_conn_snd_wscale(const struct corq_conn *c)
{
	return c->wscale >> 4;
}

/*
 * One transmission: a range of sequence space that left in one (super-)segment. In order of
 * sequence, oldest first; RACK and SACK need exactly this. 32 bytes.
 */
enum corq_txrec_flag {
	CORQ_TXREC_RTX = 1u << 0,  /* was retransmitted at least once (Karn) */
	CORQ_TXREC_SYN = 1u << 1,  /* its first number is the SYN */
	CORQ_TXREC_FIN = 1u << 2,  /* its last number is the FIN */
	CORQ_TXREC_LOST = 1u << 3, /* to be sent again */
	CORQ_TXREC_SACKED = 1u << 4,
	CORQ_TXREC_PROBE = 1u << 5, /* a window probe: never counts as loss */
};

struct corq_txrec {
	uint32_t next;
	uint32_t seq, end; /* [seq, end): SYN and FIN included */
	uint16_t flags;
	uint16_t rtx_count;
	uint64_t tx_ns; /* when it (last) left */
	uint64_t first_tx_ns;
};
_Static_assert(sizeof(struct corq_txrec) == 32, "half a line");

enum corq_rtx_kind {
	CORQ_RTX_NONE,
	CORQ_RTX_RTO,     /* retransmission timeout (RFC 6298) */
	CORQ_RTX_PERSIST, /* zero or silly window (RFC 9293 3.8.6.1) */
};

struct corq_work {
	uint32_t conn; /* whose it is */
	/* timers, ticks */
	uint32_t rtx_at;
	uint8_t rtx_kind; /* enum corq_rtx_kind */
	uint8_t dupacks;
	uint8_t in_recovery; /* fast recovery (RFC 6582); 2: after an RTO */
	uint8_t cork_armed;
	uint32_t cork_at;
	struct corq_dlink dack; /* in the delayed-ACK list when dack_armed */
	uint32_t dack_at;
	uint8_t dack_armed;
	uint8_t fin_ooo; /* a FIN waits out of order at fin_seq */
	uint16_t ooo_n;  /* runs */
	/* in flight */
	uint32_t tx_head, tx_tail, tx_n;
	uint32_t recover;            /* RFC 6582: highest sequence sent when loss was found */
	uint32_t snd_sml;            /* Minshall: end of the last small segment sent */
	uint32_t acked;              /* bytes acked towards the next cwnd step (RFC 3465) */
	uint32_t cur_chunk, cur_seq; /* cursor: the chunk in which snd_nxt lies, its first number */
	/* out of order */
	uint32_t ooo_head, ooo_tail; /* first and last run (reasm.h) */
	uint32_t ooo_bytes;
	uint32_t ooo_last; /* newest run stamp: order of SACK blocks (reasm.h) */
	uint32_t fin_seq;
	uint32_t lost;      /* bytes of records marked LOST: not in the pipe */
	uint32_t flush_end; /* CORQ_CF_FLUSH: bytes before it leave whatever holds the rest */
	uint64_t rtx_since; /* ns of the first probe that nobody answered: R2 of persist */
};
_Static_assert(sizeof(struct corq_work) <= 128, "two lines");

/* What makes a spliced pair: bytes that `conn` receives are sent by `to`. */
struct corq_splice_link {
	uint32_t to;   /* conn that sends what we receive, or CORQ_NONE */
	uint32_t from; /* conn whose bytes we send, or CORQ_NONE */
};

#endif
