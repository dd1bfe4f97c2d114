/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - what is not TCP: ARP, ICMP, and the due work of the neighbour table.
 *
 * ARP packets go round the cores of a group, so that each learns from them; the first one answers.
 * Echo requests are answered where they come in. ICMP errors go to the core that has the connection
 * they quote, as its segments do. The core's thread only.
 */
#include "core/core.h"
#include "core/handoff.h"

static void
put_tx(struct corq_core *core, struct corq_frame *f)
{
	core->eng.stats.tx_bytes += f->pkt_len;
	core->tx[core->n_tx++] = f;
}

/* A frame for a control packet, when there is one and room to send it. */
static struct corq_frame *
control_frame(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;

	if (core->n_tx == CORQ_TX_BUDGET)
		return NULL;
	if (e->n_txf == 0)
		e->n_txf = core->port->ops->tx_alloc(core->port, e->txf, CORQ_TXF_RESERVE);
	if (e->n_txf == 0) {
		e->reasons[CORQ_R_TCP_NO_TXFRAME]++;
		return NULL;
	}
	return e->txf[--e->n_txf];
}

static void
drop(struct corq_core *core, struct corq_frame *f, enum corq_reason why)
{
	if (why != CORQ_R_NONE)
		core->eng.reasons[why]++;
	corq_engine_free_frame(&core->eng, f);
}

/* Somebody else says he is us (RFC 5227 2.4 (c)): defended at most every 10 s. */
static void
watch_conflict(struct corq_core *core, const struct corq_arp *arp)
{
	struct corq_engine *e = &core->eng;
	enum corq_arp_verdict v;
	struct corq_frame *f;

	v = corq_arp_conflict(&core->arp_guard, arp, &arp->spa, core->port->mac, e->now_ns);
	if (v == CORQ_ARP_CLEAN)
		return;
	e->reasons[CORQ_R_ARP_CONFLICT]++;
	if (core->cfg.log && !core->conflict_said)
		corq_log_limited(core->cfg.log, &core->log_limit, e->now_ns, CORQ_LOG_WARN,
			"another station claims our address: give corq another --ip");
	core->conflict_said = true; /* counted from here on */
	if (v != CORQ_ARP_DEFEND || !(f = control_frame(core)))
		return;
	corq_arp_build_announce(f, core->port->mac, &arp->spa);
	put_tx(core, f);
}

static void
answer_arp(struct corq_core *core, const struct corq_arp *arp)
{
	struct corq_frame *f = control_frame(core);

	if (!f)
		return;
	corq_arp_build_reply(f, core->port->mac, arp);
	put_tx(core, f);
}

/* Every core of the group keeps its own neighbours: the packet goes round. */
static bool
pass_on(struct corq_core *core, struct corq_frame *frame)
{
	unsigned us = core->cfg.index - core->cfg.group;
	unsigned hops = frame->flags & CORQ_FRAME_HANDED ? frame->hops : 0;

	if (hops + 1 >= core->cfg.n)
		return false;
	frame->hops = (uint8_t)(hops + 1);
	return corq_handoff_send(core, (us + 1) % core->cfg.n, frame);
}

/* Somebody that we may send to: on the link, or the gateway itself. */
static bool
is_next_hop(const struct corq_engine *e, const struct corq_addr *a)
{
	const struct corq_addr *hop = corq_next_hop(e, a);

	return hop && corq_addr_eq(hop, a);
}

void
corq_link_arp_input(struct corq_core *core, struct corq_frame *frame)
{
	struct corq_engine *e = &core->eng;
	enum corq_reason why;
	struct corq_arp arp;
	bool for_us;

	why = corq_arp_parse(frame, &arp);
	if (why != CORQ_R_NONE) {
		drop(core, frame, why);
		return;
	}
	for_us = corq_engine_laddr(e, &arp.tpa) != CORQ_NONE;
	/* Our own packet, when one core runs both ends of loop, is no conflict. */
	if (corq_engine_laddr(e, &arp.spa) != CORQ_NONE && memcmp(arp.sha, core->port->mac, 6) != 0)
		watch_conflict(core, &arp);
	else
		corq_neigh_arp_input(&core->neigh, &arp,
			for_us && arp.op == CORQ_ARP_REQUEST && is_next_hop(e, &arp.spa)
				? CORQ_NEIGH_MAY_CREATE
				: CORQ_NEIGH_UPDATE_ONLY,
			e->now_ns);
	if (for_us && arp.op == CORQ_ARP_REQUEST && !(frame->flags & CORQ_FRAME_HANDED))
		answer_arp(core, &arp);
	if (!pass_on(core, frame))
		drop(core, frame, for_us ? CORQ_R_NONE : CORQ_R_ARP_NOT_US);
}

/* ---- ICMP ---- */

static void
answer_echo(struct corq_core *core, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_engine *e = &core->eng;
	const struct corq_addr *hop = corq_next_hop(e, &key->raddr);
	struct corq_frame *f;
	const uint8_t *mac;
	uint16_t nh;

	if (!hop || !corq_icmp_limit_take(&core->icmp_limit, e->now_ns)) {
		e->reasons[hop ? CORQ_R_ICMP_LIMIT : CORQ_R_NO_ROUTE]++;
		return;
	}
	nh = corq_neigh_lookup(&core->neigh, hop, e->now_ns);
	f = nh == CORQ_NEIGH_NONE ? NULL : control_frame(core);
	if (!f)
		return;
	mac = corq_neigh_mac(&core->neigh, nh, e->now_ns);
	corq_icmp_build_echo_reply(f, seg->frame, seg, key, core->port->mtu,
		mac ? mac : (const uint8_t[6]){0}, core->port->mac, e->emit_caps);
	if (!mac)
		f = corq_neigh_hold(&core->neigh, nh, f);
	if (mac)
		put_tx(core, f);
	else if (f)
		drop(core, f, CORQ_R_NEIGH_UNRESOLVED);
}

/* The error is about a connection of another core: true when that one gets it, or when it is lost.
 */
static bool
pass_error(struct corq_core *core, struct corq_frame *frame, const struct corq_key *quoted)
{
	struct corq_engine *e = &core->eng;
	int to;

	if (core->cfg.n == 1 ||
		corq_engine_lookup(e, quoted, corq_engine_hash(e, quoted)) != CORQ_NONE)
		return false;
	to = corq_handoff_target(core, quoted, frame);
	if (to == CORQ_HANDOFF_OURS)
		return false;
	if (to == CORQ_HANDOFF_DROP || !corq_handoff_send(core, (unsigned)to, frame))
		drop(core, frame, CORQ_R_HANDOFF_FULL);
	return true;
}

void
corq_link_icmp_input(struct corq_core *core, struct corq_seg *seg, const struct corq_key *key)
{
	struct corq_icmp icmp;
	enum corq_reason why;

	if (corq_engine_laddr(&core->eng, &key->laddr) == CORQ_NONE)
		why = CORQ_R_IP_NOT_US;
	else
		why = corq_icmp_parse(seg->frame, seg, key, &icmp);
	if (why == CORQ_R_NONE && icmp.is_error && pass_error(core, seg->frame, &icmp.key))
		return;
	if (why == CORQ_R_NONE && icmp.is_error)
		why = corq_tcp_icmp(&core->eng, &icmp);
	else if (why == CORQ_R_NONE)
		answer_echo(core, seg, key);
	drop(core, seg->frame, why);
}

/* ---- due work of the neighbour table ---- */

static void
send_request(struct corq_core *core, const struct corq_neigh_action *a)
{
	struct corq_addr self = corq_engine_laddr_at(&core->eng, 0);
	struct corq_frame *f = control_frame(core);

	if (!f)
		return; /* asked again in a second */
	corq_arp_build_request(f, core->port->mac, &self, &a->addr, a->unicast ? a->mac : NULL);
	put_tx(core, f);
}

static void
flush_held(struct corq_core *core, const struct corq_neigh_action *a)
{
	for (unsigned i = 0; i < a->n_frames; i++) {
		memcpy(a->frames[i]->data, a->mac, 6);
		put_tx(core, a->frames[i]);
	}
}

/* Nobody answers: what was held goes, and opens that waited for it are over. */
static void
gave_up(struct corq_core *core, const struct corq_neigh_action *a)
{
	for (unsigned i = 0; i < a->n_frames; i++) {
		corq_tcp_unreachable(&core->eng, a->frames[i]);
		drop(core, a->frames[i], CORQ_R_NEIGH_UNRESOLVED);
	}
}

void
corq_link_poll(struct corq_core *core)
{
	struct corq_neigh_action a;

	if (CORQ_LIKELY(corq_neigh_next(&core->neigh) > core->eng.now_ns))
		return;
	while (core->n_tx < CORQ_TX_BUDGET &&
		corq_neigh_poll(&core->neigh, core->eng.now_ns, CORQ_TX_BUDGET - core->n_tx, &a)) {
		switch (a.todo) {
		case CORQ_NEIGH_SEND_REQUEST:
			send_request(core, &a);
			break;
		case CORQ_NEIGH_FLUSH:
			flush_held(core, &a);
			corq_tcp_unpark(&core->eng);
			break;
		case CORQ_NEIGH_GAVE_UP:
			gave_up(core, &a);
			corq_tcp_unpark(&core->eng);
			break;
		}
	}
}
