/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cork.h - "may this leave now, and does FIN ride on it?": the one decision of the send side.
 *
 * A pure function of what is queued and what the rules say. Order of the rules, first match wins:
 *
 *   what is queued, and the state          decision
 *   nothing, no FIN                        NOTHING
 *   nothing, FIN; window and cwnd >= 1     bare FIN (R2, R6)
 *   less than a segment, no FIN, no flush
 *     (uncork, NODELAY, ceiling), and
 *     corked or MORE                       wait, whatever the windows say (CORK wins over NODELAY)
 *     Nagle: an earlier short segment is   wait (Minshall)
 *       unacknowledged
 *   all fits the windows:
 *     FIN queued                           all at once, PSH; FIN rides if one more number fits the
 *                                          peer's window (R1, R4, R5: else it follows alone)
 *     last part is short and held as above full segments only; the tail waits
 *     otherwise                            all, PSH
 *   the windows cut it:
 *     at least one full segment fits       as many full segments as fit, no PSH
 *     cwnd cuts below one                  wait for an ACK
 *     peer's window cuts below one, and
 *       Nagle as above                     wait for an ACK (RFC 9293 3.8.6.2.1 (3), in brackets)
 *       it is at least half the largest    what fits, PSH (RFC 9293 3.8.6.2.1 (3), (4))
 *         window seen, or the override
 *         timer fired
 *       otherwise                          wait: for the window (nothing in flight: persist)
 *
 * FIN costs one sequence number and no byte of the segment (R3).
 */
#ifndef CORQ_TCP_CORK_H
#define CORQ_TCP_CORK_H

#include "base/base.h"

struct corq_cork_in {
	uint32_t unsent;    /* queued bytes behind snd_nxt */
	uint32_t wnd_room;  /* sequence numbers that the peer's window has behind snd_nxt */
	uint32_t cwnd_room; /* bytes that the congestion window allows */
	uint32_t mss;
	uint32_t max_wnd; /* largest window the peer ever offered, bytes */
	uint32_t max_len; /* most bytes to decide on at once */
	bool fin;         /* FIN is queued and was not sent */
	bool cork, more, nodelay, flush;
	bool small_out; /* an earlier short segment is unacknowledged (Minshall) */
	bool override;  /* the override timer fired: no more silly-window avoidance */
};

enum corq_cork_hold {
	CORQ_HOLD_NONE,    /* something leaves; ask again for the rest */
	CORQ_HOLD_NOTHING, /* nothing queued */
	CORQ_HOLD_CORK,    /* corked or MORE: until the ceiling when nothing is in flight */
	CORQ_HOLD_NAGLE,   /* until an ACK */
	CORQ_HOLD_WND,     /* until the window opens: persist when nothing is in flight */
	CORQ_HOLD_CWND,    /* until an ACK */
};

struct corq_cork_out {
	uint32_t len;
	bool fin, psh;
	enum corq_cork_hold hold; /* of what stays behind when len == 0 and no fin */
};

static inline struct corq_cork_out
corq_cork_held(enum corq_cork_hold why)
{
	return (struct corq_cork_out){.hold = why};
}

/* Minshall's Nagle: a short segment waits for the ACK of an earlier one. */
static inline bool
corq_cork_nagle(const struct corq_cork_in *in)
{
	return in->small_out && !in->nodelay && !in->fin && !in->flush;
}

/* What a short last segment waits for; a FIN behind it and a flush let it go. */
static inline enum corq_cork_hold
corq_cork_tail(const struct corq_cork_in *in)
{
	if ((in->cork || in->more) && !in->fin && !in->flush)
		return CORQ_HOLD_CORK;
	return corq_cork_nagle(in) ? CORQ_HOLD_NAGLE : CORQ_HOLD_NONE;
}

/* The windows cut the queue at `fit` bytes. */
static inline struct corq_cork_out
corq_cork_cut(const struct corq_cork_in *in, uint32_t fit)
{
	uint32_t full = fit - fit % in->mss;

	if (full)
		return (struct corq_cork_out){.len = full};
	if (in->cwnd_room < in->wnd_room)
		return corq_cork_held(CORQ_HOLD_CWND);
	if (corq_cork_nagle(in))
		return corq_cork_held(CORQ_HOLD_NAGLE);
	if (fit && (in->override || fit >= in->max_wnd / 2))
		return (struct corq_cork_out){.len = fit, .psh = true};
	return corq_cork_held(CORQ_HOLD_WND);
}

static inline struct corq_cork_out
corq_cork_decide(const struct corq_cork_in *in)
{
	uint32_t fit = CORQ_MIN(in->wnd_room, in->cwnd_room);
	enum corq_cork_hold tail = corq_cork_tail(in);

	if (in->unsent == 0) {
		if (!in->fin)
			return corq_cork_held(CORQ_HOLD_NOTHING);
		if (in->wnd_room == 0)
			return corq_cork_held(CORQ_HOLD_WND);
		if (in->cwnd_room == 0)
			return corq_cork_held(CORQ_HOLD_CWND);
		return (struct corq_cork_out){.fin = true};
	}
	if (in->unsent < in->mss && tail != CORQ_HOLD_NONE)
		return corq_cork_held(tail);
	if (in->unsent > fit)
		return corq_cork_cut(in, CORQ_MIN(fit, in->max_len));
	if (in->unsent > in->max_len)
		return (struct corq_cork_out){.len = in->max_len - in->max_len % in->mss};
	if (tail != CORQ_HOLD_NONE && in->unsent % in->mss)
		return (struct corq_cork_out){.len = in->unsent - in->unsent % in->mss};
	return (struct corq_cork_out){
		.len = in->unsent, .psh = true, .fin = in->fin && in->wnd_room > in->unsent};
}

#endif
