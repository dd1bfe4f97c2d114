/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arp.c - ARP packets in and out, and who else claims our address. See arp.h.
 *
 * Called on the core's thread; slow path. The only state is the caller's guard of an address.
 */
#include "net/arp.h"
#include "net/wire.h"

/* RFC 5227 1.1. */
#define DEFEND_INTERVAL_NS (10 * CORQ_NS_PER_S)

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t nobody[6];

/* A station's address: not a group, not zero. */
static bool
is_station(const uint8_t mac[6])
{
	return !(mac[0] & 1) && memcmp(mac, nobody, 6) != 0;
}

/* 0.0.0.0 is a probe's; the rest of 0/8, loopback, multicast and broadcast are nobody's. */
static bool
sender_possible(const uint8_t a[4])
{
	uint32_t v = corq_get_be32(a);

	return v == 0 || (a[0] != 0 && a[0] != 127 && (a[0] & 0xf0) != 0xe0 && v != UINT32_MAX);
}

enum corq_reason
corq_arp_parse(const struct corq_frame *f, struct corq_arp *out)
{
	const struct corq_wire_eth *eth = (const void *)f->data;
	const struct corq_wire_arp *w = (const void *)(f->data + CORQ_ETH_HLEN);

	if (f->len < CORQ_ETH_HLEN + CORQ_ARP_LEN)
		return CORQ_R_ARP_BAD;
	if (w->hrd != CORQ_BE16(1) || w->pro != CORQ_BE16(CORQ_ETHERTYPE_IP4) || w->hln != 6 ||
		w->pln != 4)
		return CORQ_R_ARP_BAD;
	out->op = corq_ntoh16(w->op);
	if (out->op != CORQ_ARP_REQUEST && out->op != CORQ_ARP_REPLY)
		return CORQ_R_ARP_BAD;
	if (!is_station(w->sha) || !sender_possible(w->spa))
		return CORQ_R_ARP_BAD;
	corq_addr_from_v4(&out->spa, w->spa);
	corq_addr_from_v4(&out->tpa, w->tpa);
	memcpy(out->sha, w->sha, 6);
	memcpy(out->tha, w->tha, 6);
	out->unicast = !(eth->dst[0] & 1);
	return CORQ_R_NONE;
}

struct arp_out {
	enum corq_arp_op op;
	const uint8_t *dmac, *sha, *tha;
	const struct corq_addr *spa, *tpa;
};

static void
build(struct corq_frame *f, const struct arp_out *o)
{
	struct corq_wire_eth *eth = (void *)f->data;
	struct corq_wire_arp *w = (void *)(f->data + CORQ_ETH_HLEN);

	CORQ_ASSERT(
		f->len == 0 && f->data + CORQ_ETH_HLEN + CORQ_ARP_LEN <= f->buf_start + f->room);
	memcpy(eth->dst, o->dmac, 6);
	memcpy(eth->src, o->sha, 6);
	eth->type = CORQ_BE16(CORQ_ETHERTYPE_ARP);
	w->hrd = CORQ_BE16(1);
	w->pro = CORQ_BE16(CORQ_ETHERTYPE_IP4);
	w->hln = 6;
	w->pln = 4;
	w->op = CORQ_BE16(o->op);
	memcpy(w->sha, o->sha, 6);
	memcpy(w->spa, &o->spa->w[3], 4);
	memcpy(w->tha, o->tha, 6);
	memcpy(w->tpa, &o->tpa->w[3], 4);
	f->len = CORQ_ETH_HLEN + CORQ_ARP_LEN;
	f->pkt_len = f->len;
	f->l2_len = CORQ_ETH_HLEN;
}

void
corq_arp_build_request(struct corq_frame *f, const uint8_t smac[6], const struct corq_addr *self,
	const struct corq_addr *target, const uint8_t *dmac)
{
	build(f, &(struct arp_out){.op = CORQ_ARP_REQUEST,
			 .dmac = dmac ? dmac : broadcast,
			 .sha = smac,
			 .spa = self,
			 .tha = nobody,
			 .tpa = target});
}

void
corq_arp_build_reply(struct corq_frame *f, const uint8_t smac[6], const struct corq_arp *req)
{
	build(f, &(struct arp_out){.op = CORQ_ARP_REPLY,
			 .dmac = req->sha,
			 .sha = smac,
			 .spa = &req->tpa,
			 .tha = req->sha,
			 .tpa = &req->spa});
}

void
corq_arp_build_announce(struct corq_frame *f, const uint8_t smac[6], const struct corq_addr *self)
{
	corq_arp_build_request(f, smac, self, self, NULL);
}

enum corq_arp_verdict
corq_arp_conflict(struct corq_arp_guard *g, const struct corq_arp *a, const struct corq_addr *self,
	const uint8_t smac[6], uint64_t now_ns)
{
	if (!corq_addr_eq(&a->spa, self) || memcmp(a->sha, smac, 6) == 0)
		return CORQ_ARP_CLEAN;
	g->n_conflicts++;
	if (g->n_defended && now_ns - g->defended_ns < DEFEND_INTERVAL_NS)
		return CORQ_ARP_CONFLICT;
	g->n_defended++;
	g->defended_ns = now_ns;
	return CORQ_ARP_DEFEND;
}
