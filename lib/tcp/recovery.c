/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery.c - congestion window, fast retransmit and NewReno (RFC 5681, 6582), the answer to a
 * retransmission timeout (RFC 6298 5, 5681 3.1), and the RTO itself (RFC 6298 2).
 *
 * What is lost is marked on the transmission records; output sends marked records first. The
 * window grows by bytes acknowledged (RFC 3465, L = 2 segments in slow start), so ACKs that were
 * merged on the way cost nothing.
 *
 * w->in_recovery: 0 open, 1 fast recovery until snd_una reaches w->recover, 2 after a timeout,
 * until the same (duplicate ACKs below it tell nothing new: RFC 6582 3.2 step 1, 4).
 */
#include "tcp/internal.h"

enum {
	RECOVERY_NONE,
	RECOVERY_FAST,
	RECOVERY_RTO
};

#define DUPTHRESH 3 /* RFC 5681 3.2 */

uint32_t
corq_conn_flight(const struct corq_engine *e, const struct corq_conn *c)
{
	(void)e;
	return c->snd_nxt - c->snd_una;
}

/* RFC 6298 2.2, 2.3 with alpha 1/8, beta 1/4. */
void
corq_rtt_sample(struct corq_conn *c, uint32_t rtt_us)
{
	uint32_t delta;

	rtt_us = CORQ_MAX(rtt_us, 1);
	rtt_us = CORQ_MIN(rtt_us, 1u << 27);
	if (c->srtt_us == 0) {
		c->srtt_us = rtt_us;
		c->rttvar_us = rtt_us / 2;
		return;
	}
	delta = c->srtt_us > rtt_us ? c->srtt_us - rtt_us : rtt_us - c->srtt_us;
	c->rttvar_us = (3 * c->rttvar_us + delta) / 4;
	c->srtt_us = CORQ_MAX((7 * c->srtt_us + rtt_us) / 8, 1);
}

/* RFC 6298 2.1-2.5, 5.5, 5.7: with backoff and both limits. */
uint32_t
corq_conn_rto_us(const struct corq_engine *e, const struct corq_conn *c)
{
	const struct corq_tcp_config *cfg = &e->cfg;
	uint64_t rto = cfg->rto_init_us;

	if (c->srtt_us) {
		/* Clock granularity G is the 1 ms of the timestamps' tick at most. */
		rto = c->srtt_us + CORQ_MAX(4 * (uint64_t)c->rttvar_us, 1000);
		rto = CORQ_MAX(rto, cfg->rto_min_us);
	} else if ((c->flags & CORQ_CF_SYN_RTX) && c->state >= CORQ_ESTABLISHED) {
		rto = CORQ_MAX(rto, 3000000);
	}
	rto <<= CORQ_MIN(c->backoff, 16);
	return (uint32_t)CORQ_MIN(rto, cfg->rto_max_us);
}

static uint32_t
half_flight(const struct corq_engine *e, const struct corq_conn *c)
{
	return CORQ_MAX(corq_conn_flight(e, c) / 2, 2u * c->mss);
}

/* RFC 5681 3.1, RFC 3465 2.1, 2.2. Only when the window was in use: a flow that the program
 * limits must not build up credit (RFC 9293 3.8.2, RFC 2861's point). */
static void
grow(struct corq_engine *e, struct corq_conn *c, struct corq_work *w, uint32_t acked)
{
	uint32_t used = corq_conn_flight(e, c) + acked;

	if (used + c->mss < c->cwnd && used < c->cwnd / 2)
		return;
	if (c->cwnd < c->ssthresh) {
		c->cwnd += CORQ_MIN(acked, 2u * c->mss * CORQ_MAX(acked / (2u * c->mss), 1));
		return;
	}
	w->acked += acked;
	if (w->acked >= c->cwnd) {
		w->acked -= c->cwnd;
		c->cwnd += c->mss;
	}
}

void
corq_recovery_on_ack(
	struct corq_engine *e, struct corq_conn *c, struct corq_work *w, uint32_t acked)
{
	w->dupacks = 0;
	if (CORQ_LIKELY(w->in_recovery == RECOVERY_NONE)) {
		grow(e, c, w, acked);
		goto out;
	}
	if (!corq_seq_lt(c->snd_una, w->recover)) { /* full ACK: RFC 6582 3.2 step 3 */
		if (w->in_recovery == RECOVERY_FAST) {
			uint32_t flight = CORQ_MAX(corq_conn_flight(e, c), c->mss);

			c->cwnd = CORQ_MIN(c->ssthresh, flight + c->mss);
		}
		w->in_recovery = RECOVERY_NONE;
		goto out;
	}
	if (w->in_recovery == RECOVERY_RTO) {
		grow(e, c, w, acked);
		goto out;
	}
	/* Partial ACK: the next hole starts at snd_una; deflate by what was acked. */
	corq_txrec_lose_first(e, w, c->mss);
	c->cwnd = c->cwnd > acked ? c->cwnd - acked : 0;
	if (acked >= c->mss)
		c->cwnd += c->mss;
	c->cwnd = CORQ_MAX(c->cwnd, c->mss);
out:
	c->cwnd = CORQ_MIN(c->cwnd, 1u << 30);
	if (w->lost)
		c->flags |= CORQ_CF_RTX;
	else
		c->flags &= ~(uint32_t)CORQ_CF_RTX;
}

void
corq_recovery_on_dupack(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	e->stats.dup_acks_in++;
	if (w->in_recovery == RECOVERY_FAST) {
		c->cwnd = CORQ_MIN(c->cwnd + c->mss, 1u << 30); /* a segment left: inflate */
		return;
	}
	if (w->dupacks < UINT8_MAX)
		w->dupacks++;
	if (w->dupacks != DUPTHRESH || w->in_recovery == RECOVERY_RTO)
		return;
	e->stats.fast_recoveries++;
	c->ssthresh = half_flight(e, c);
	w->recover = c->snd_nxt;
	w->in_recovery = RECOVERY_FAST;
	corq_txrec_lose_first(e, w, c->mss);
	c->cwnd = c->ssthresh + DUPTHRESH * c->mss;
	c->flags |= CORQ_CF_RTX;
}

void
corq_recovery_on_rto(struct corq_engine *e, struct corq_conn *c, struct corq_work *w)
{
	if (w->in_recovery != RECOVERY_RTO || c->backoff == 0) /* RFC 5681 3.1: once a loss */
		c->ssthresh = half_flight(e, c);
	c->cwnd = c->mss;
	w->in_recovery = RECOVERY_RTO;
	w->recover = c->snd_nxt;
	w->dupacks = 0;
	w->acked = 0;
	corq_txrec_lose_all(e, w);
	if (w->lost)
		c->flags |= CORQ_CF_RTX;
}
