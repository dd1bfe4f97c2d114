/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - one direction of the simulated wire: a rate, a queue in front of it, a delay, and what
 * goes wrong. Packets under way stand in a list by arrival; equal times keep their order.
 *
 * Damage is one flipped bit behind the Ethernet header of an IPv4 packet: a checksum always finds
 * that. ARP has none, so ARP is lost or late, but never damaged.
 */
#include "sim.h"

#include "net/wire.h"
#include <stdlib.h>
#include <string.h>

void
sim_link_init(struct sim_link *l, const struct sim_link_params *p, uint64_t seed)
{
	memset(l, 0, sizeof(*l));
	l->p = p;
	corq_rand_seed(&l->rand, seed);
}

static void
insert(struct sim_link *l, struct memport_pkt *pkt, uint64_t at_ns)
{
	struct sim_packet *n = calloc(1, sizeof(*n)), **at = &l->head;

	if (!n)
		abort();
	n->pkt = pkt;
	n->at_ns = at_ns;
	if (l->tail && l->tail->at_ns <= at_ns)
		at = &l->tail->next;
	else
		while (*at && (*at)->at_ns <= at_ns)
			at = &(*at)->next;
	n->next = *at;
	*at = n;
	if (!n->next)
		l->tail = n;
}

static struct memport_pkt *
copy(const struct memport_pkt *p)
{
	struct memport_pkt *c = malloc(sizeof(*c) + p->len);

	if (!c)
		abort();
	memcpy(c, p, sizeof(*c) + p->len);
	return c;
}

static void
damage(struct sim_link *l, struct memport_pkt *p)
{
	uint32_t bit;

	if (p->len <= CORQ_ETH_HLEN || corq_get_be16(p->bytes + 12) != CORQ_ETHERTYPE_IP4)
		return;
	bit = (uint32_t)corq_rand_below(&l->rand, (p->len - CORQ_ETH_HLEN) * 8u);
	p->bytes[CORQ_ETH_HLEN + bit / 8] ^= (uint8_t)(1u << bit % 8);
	l->n_corrupt++;
}

/* Once a second of virtual time the link may go dead for up to two seconds. */
static bool
is_out(struct sim_link *l, uint64_t now_ns)
{
	if (now_ns >= l->outage_drawn_ns) {
		l->outage_drawn_ns = now_ns + CORQ_NS_PER_S;
		if (sim_chance(&l->rand, l->p->outage))
			l->outage_until_ns = now_ns + corq_rand_below(&l->rand, 2 * CORQ_NS_PER_S);
	}
	return now_ns < l->outage_until_ns;
}

static bool
queue_is_full(const struct sim_link *l, uint64_t now_ns)
{
	uint64_t waits_ns = l->free_at_ns > now_ns ? l->free_at_ns - now_ns : 0;

	return waits_ns > l->p->queue_bytes * 8 * CORQ_NS_PER_S / l->p->rate_bps;
}

void
sim_link_send(struct sim_link *l, struct memport_pkt *pkt, uint64_t now_ns)
{
	uint64_t at;

	l->n_sent++;
	if (queue_is_full(l, now_ns)) {
		l->n_full++;
		free(pkt);
		return;
	}
	/* 24 bytes: preamble, gap and check sequence. */
	l->free_at_ns = CORQ_MAX(l->free_at_ns, now_ns) +
			(pkt->len + 24u) * 8 * CORQ_NS_PER_S / l->p->rate_bps;
	at = l->free_at_ns + l->p->delay_ns;
	if (is_out(l, now_ns) || sim_chance(&l->rand, l->p->loss)) {
		l->n_lost++;
		free(pkt);
		return;
	}
	if (sim_chance(&l->rand, l->p->dup)) {
		l->n_dup++;
		insert(l, copy(pkt), at + corq_rand_below(&l->rand, l->p->reorder_ns));
	}
	if (sim_chance(&l->rand, l->p->reorder)) {
		l->n_reordered++;
		at += corq_rand_below(&l->rand, l->p->reorder_ns);
	}
	if (sim_chance(&l->rand, l->p->corrupt))
		damage(l, pkt);
	insert(l, pkt, at);
}

uint64_t
sim_link_next(const struct sim_link *l)
{
	return l->head ? l->head->at_ns : UINT64_MAX;
}

struct memport_pkt *
sim_link_take(struct sim_link *l, uint64_t now_ns)
{
	struct sim_packet *n = l->head;
	struct memport_pkt *p;

	if (!n || n->at_ns > now_ns)
		return NULL;
	l->head = n->next;
	if (!l->head)
		l->tail = NULL;
	p = n->pkt;
	free(n);
	return p;
}

void
sim_link_end(struct sim_link *l)
{
	struct memport_pkt *p;

	while ((p = sim_link_take(l, UINT64_MAX)) != NULL)
		free(p);
}
