/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * burst.h - the property "one burst equals one by one": twin cores with the same seed get the same
 * frames, one as a burst, the other in bursts of one, both before the same step 7. Their states and
 * what they send must be equal to the byte. In some sequences a third core gets a turn a frame: it
 * must deliver the same bytes and end in the same states.
 *
 *   burst.c      sequences, rounds
 *   burst_app.c  the programs on the cores
 *   burst_gen.c  the next frame, chosen by the state of the core that takes them one by one
 *   burst_cmp.c  are two cores equal?
 */
#ifndef CORQ_SIM_BURST_H
#define CORQ_SIM_BURST_H

#include "base/rand.h"
#include "check_engine.h"
#include "mkseg.h"
#include "testcore.h"

#define BURST_EVENTS  4096
#define BURST_STREAMS 128
#define BURST_FRAMES  60 /* below CORQ_BURST_MAX: a full burst holds timers back */
#define BURST_PEERS   3
#define BURST_LISTEN  80 /* and 81 */

enum {
	ONE_BURST,
	ONE_BY_ONE,
	SPREAD,
	TWINS
};

/* What a callback saw. Compared as bytes: no padding. */
struct burst_event {
	uint32_t type, reason;
	uint32_t peer, lport, rport, bytes;
	uint64_t hash;
};
_Static_assert(sizeof(struct burst_event) == 32, "no padding");

/* All bytes that a tuple delivered, over all its connections. */
struct burst_stream {
	uint32_t peer, lport, rport, count;
	uint64_t hash;
};

struct burst_twin {
	struct testcore tc;
	struct corq_check check;
	struct burst_event ev[BURST_EVENTS];
	uint32_t n_ev;
	struct burst_stream stream[BURST_STREAMS];
	uint32_t n_stream;
	bool bad_byte; /* a stream had a byte that its peer did not send there */
	bool plain;    /* programs only read, and some close after the peer's FIN */
};

struct burst {
	uint64_t seed;
	struct corq_rand rand;
	struct burst_twin t[TWINS];
	bool spread, failed, verbose, shifted;
	uint32_t budget; /* spread: bytes of data that this round may still bring */
	uint32_t round;
	uint64_t n_frames, n_compared; /* in; out */
	uint64_t taken, dropped;
	uint64_t done[16]; /* which special bursts happened, for the report */
	struct pcapbuf *pcap;
	char msg[600];
};

/* A frame that says where it came from, for -v. */
struct burst_frame {
	uint32_t len;
	uint8_t bytes[MKSEG_MAX];
	char what[48];
};

void burst_fail(struct burst *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- burst_gen.c ---- */
/* The next frame, by the state of t[ONE_BY_ONE] as it is now. */
void burst_gen(struct burst *b, struct burst_frame *f);
/* Frames of the tuple `peer`:rport to lport, by the state of t[ONE_BY_ONE] as it is now. */
enum burst_special {
	BURST_SYN,  /* a SYN, above whatever the tuple had */
	BURST_ACK,  /* acknowledges all that the core sent or will have sent */
	BURST_DATA, /* in order */
	BURST_FIN,
	BURST_DATA_FIN,
	BURST_RST,     /* exact */
	BURST_OLD_FIN, /* the FIN before RCV.NXT again */
};
void burst_gen_special(struct burst *b, enum burst_special what, uint32_t peer, uint16_t rport,
	uint16_t lport, struct burst_frame *f);

/* ---- burst_app.c ---- */
extern const struct corq_ops burst_ops;
void burst_write(struct corq_core *core, struct corq_conn *conn, size_t len, unsigned flags);

/* ---- burst_cmp.c ---- */
/* 0, or -1 with b->msg. */
int burst_compare(struct burst *b, struct burst_twin *x, struct burst_twin *y);
int burst_compare_isn(struct burst *b, struct burst_twin *x, struct burst_twin *y);
int burst_compare_spread(struct burst *b, struct burst_twin *y, struct burst_twin *z);

static inline struct corq_addr
burst_peer(uint32_t i)
{
	const uint8_t v4[4] = {10, 0, 0, (uint8_t)(2 + i)};
	struct corq_addr a;

	corq_addr_from_v4(&a, v4);
	return a;
}

/* What a peer's stream has at sequence number seq, whatever segment brings it. */
static inline uint8_t
burst_byte(uint16_t rport, uint32_t seq)
{
	return (uint8_t)((seq + rport * 2654435761u) * 167u >> 8 ^ seq);
}

static inline uint64_t
burst_below(struct burst *b, uint64_t n)
{
	return corq_rand_below(&b->rand, n);
}

#endif
