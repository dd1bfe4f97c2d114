/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * txrec.c - the list of transmissions in flight of one connection.
 *
 * Records are contiguous, ordered by sequence and cover exactly [snd_una, snd_nxt) (window probes
 * take no sequence space and no record). `lost` of the work block is the sum of the bytes of
 * records marked LOST: they are not in the pipe. One thread, the core's.
 */
#include "tcp/internal.h"

bool
corq_txrec_add(
	struct corq_engine *e, struct corq_work *w, uint32_t seq, uint32_t end, uint16_t flags)
{
	uint32_t idx = corq_pool_alloc(&e->txrecs);
	struct corq_txrec *r;

	if (idx == CORQ_NONE) {
		corq_count(e, CORQ_R_TCP_NO_TXREC);
		return false;
	}
	r = corq_txrec_at(e, idx);
	*r = (struct corq_txrec){.next = CORQ_NONE,
		.seq = seq,
		.end = end,
		.flags = flags,
		.tx_ns = e->now_ns,
		.first_tx_ns = e->now_ns};
	if (w->tx_tail == CORQ_NONE)
		w->tx_head = idx;
	else
		corq_txrec_at(e, w->tx_tail)->next = idx;
	w->tx_tail = idx;
	w->tx_n++;
	return true;
}

static void
pop_head(struct corq_engine *e, struct corq_work *w)
{
	uint32_t idx = w->tx_head;
	struct corq_txrec *r = corq_txrec_at(e, idx);

	if (r->flags & CORQ_TXREC_LOST)
		w->lost -= r->end - r->seq;
	w->tx_head = r->next;
	if (w->tx_head == CORQ_NONE)
		w->tx_tail = CORQ_NONE;
	w->tx_n--;
	corq_pool_free(&e->txrecs, idx);
}

uint64_t
corq_txrec_ack(struct corq_engine *e, struct corq_work *w, uint32_t una)
{
	uint64_t sample = 0;
	bool twice = false;

	while (w->tx_head != CORQ_NONE) {
		struct corq_txrec *r = corq_txrec_at(e, w->tx_head);

		if (!corq_seq_gt(una, r->seq))
			break;
		/* Karn: an ACK of something sent twice tells no time, nor does one that covers it.
		 */
		twice = twice || (r->flags & CORQ_TXREC_RTX);
		sample = twice ? 0 : r->tx_ns;
		if (corq_seq_lt(una, r->end)) { /* partly: trim */
			if (r->flags & CORQ_TXREC_LOST)
				w->lost -= una - r->seq;
			r->seq = una;
			r->flags &= (uint16_t)~CORQ_TXREC_SYN;
			break;
		}
		pop_head(e, w);
	}
	return sample;
}

void
corq_txrec_purge(struct corq_engine *e, struct corq_work *w)
{
	while (w->tx_head != CORQ_NONE)
		pop_head(e, w);
}

bool
corq_txrec_split(struct corq_engine *e, struct corq_work *w, uint32_t idx, uint32_t len)
{
	struct corq_txrec *r = corq_txrec_at(e, idx);
	uint32_t rest = corq_pool_alloc(&e->txrecs);
	struct corq_txrec *t;

	if (rest == CORQ_NONE) {
		corq_count(e, CORQ_R_TCP_NO_TXREC);
		return false;
	}
	t = corq_txrec_at(e, rest);
	*t = *r;
	t->seq = r->seq + len;
	t->flags &= (uint16_t)~CORQ_TXREC_SYN;
	r->end = t->seq;
	r->flags &= (uint16_t)~CORQ_TXREC_FIN;
	r->next = rest;
	if (w->tx_tail == idx)
		w->tx_tail = rest;
	w->tx_n++;
	return true;
}

void
corq_txrec_lose_first(struct corq_engine *e, struct corq_work *w, uint32_t mss)
{
	struct corq_txrec *r;

	if (w->tx_head == CORQ_NONE)
		return;
	r = corq_txrec_at(e, w->tx_head);
	if (r->flags & CORQ_TXREC_LOST)
		return;
	/* The FIN costs no byte of the segment: mss bytes and the FIN stay together (R3, R7). */
	if (r->end - r->seq > mss + !!(r->flags & CORQ_TXREC_FIN))
		corq_txrec_split(e, w, w->tx_head, mss);
	r->flags |= CORQ_TXREC_LOST;
	w->lost += r->end - r->seq;
}

void
corq_txrec_lose_all(struct corq_engine *e, struct corq_work *w)
{
	for (uint32_t i = w->tx_head; i != CORQ_NONE; i = corq_txrec_at(e, i)->next) {
		struct corq_txrec *r = corq_txrec_at(e, i);

		if (!(r->flags & CORQ_TXREC_LOST)) {
			r->flags |= CORQ_TXREC_LOST;
			w->lost += r->end - r->seq;
		}
	}
}
