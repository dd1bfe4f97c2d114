/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ep.c - one end of a simulated connection: a program with a plan drawn from the seed (how much it
 * writes and how, how it reads, how it ends) that checks what it is told and every byte it reads.
 *
 * The streams are functions of a key and an offset. A passive end knows whose stream it reads by
 * the tuple and the initial sequence number of the SYN: a connection from nowhere is a failure.
 */
#include "ep.h"

#include <errno.h>
#include <string.h>

void
sim_stream(uint64_t key, uint32_t off, uint8_t *out, size_t len)
{
	while (len > 0) {
		uint64_t x = key + off / 8, w = corq_splitmix64(&x);
		size_t at = off % 8, n = CORQ_MIN(8 - at, len);

		memcpy(out, (uint8_t *)&w + at, n);
		out += n;
		off += (uint32_t)n;
		len -= n;
	}
}

/* ---- making one ---- */

static uint32_t
draw_total(struct world *w)
{
	switch (sim_below(&w->rand, 8)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return 1 + (uint32_t)sim_below(&w->rand, 300);
	case 3:
	case 4:
		return 1 + (uint32_t)sim_below(&w->rand, CORQ_MIN(w->p.max_bytes, 6000));
	case 5: /* whole segments: the edges of cork and FIN */
		return 1448 * (1 + (uint32_t)sim_below(&w->rand, 6));
	default:
		return 1 + (uint32_t)sim_below(&w->rand, w->p.max_bytes);
	}
}

static void
draw_plan(struct world *w, struct sim_ep *ep)
{
	static const uint8_t ends[] = {SIM_SHUTDOWN, SIM_SHUTDOWN, SIM_FIN_FLAG, SIM_AFTER_PEER,
		SIM_AFTER_PEER, SIM_AFTER_PEER, SIM_CLOSE, SIM_ABORT, SIM_LINGER0};
	struct corq_rand *r = &w->rand;

	ep->total = draw_total(w);
	ep->end = ends[sim_below(r, CORQ_ARRAY_LEN(ends))];
	ep->read = (uint8_t)(sim_below(r, 2) ? SIM_READ_AT_ONCE : sim_below(r, SIM_READ_POLICIES));
	ep->abort_at = (uint32_t)sim_below(r, 2 * ep->total + 2);
	ep->piece_max = 1 + (uint32_t)sim_below(r, 1ull << sim_below(r, 15));
	if (ep->total / ep->piece_max > 2000)
		ep->piece_max = ep->total / 1000;
	ep->lockstep = sim_below(r, 6) == 0 && ep->total / ep->piece_max < 40;
	ep->fiddle = sim_below(r, 3) == 0 ? 1500 : 0;
	ep->read_delay_ns = 1 + sim_below(r, CORQ_NS_PER_MS << sim_below(r, 14));
	ep->pace_ns = sim_below(r, 4) == 0 ? sim_below(r, 20 * CORQ_NS_PER_MS) : 0;
	ep->life_at_ns = w->now_ns + CORQ_NS_PER_S * (5 + sim_below(r, 60));
	if (sim_below(r, 2) == 0) /* outlives any backoff */
		ep->life_at_ns += 300 * CORQ_NS_PER_S;
}

struct sim_ep *
ep_new(struct sim_side *s, struct corq_conn *conn, bool active)
{
	struct world *w = s->w;
	struct corq_conn_info info;
	struct sim_ep *ep;

	if (w->n_ep == SIM_MAX_EPS) {
		sim_fail(w, "more than %d ends", SIM_MAX_EPS);
		return NULL;
	}
	ep = &w->ep[w->n_ep];
	memset(ep, 0, sizeof(*ep));
	ep->w = w;
	ep->id = w->n_ep++;
	ep->side = (uint8_t)(s - w->side);
	ep->conn = conn;
	ep->active = active;
	ep->key = (w->p.seed + ep->id) * 0x9e3779b97f4a7c15ull;
	ep->handle = corq_conn_handle(s->tc.core, conn);
	if (corq_conn_of(s->tc.core, ep->handle) != conn)
		sim_fail(w, "end %u: its handle names another connection", ep->id);
	corq_conn_get_info(s->tc.core, conn, &info);
	ep->laddr = info.laddr;
	ep->raddr = info.raddr;
	ep->lport = info.lport;
	ep->rport = info.rport;
	draw_plan(w, ep);
	w->n_live++;
	return ep;
}

/* ---- the other end ---- */

static bool
mirrors(const struct sim_ep *a, const struct sim_ep *b)
{
	return a->side != b->side && a->lport == b->rport && a->rport == b->lport &&
	       corq_addr_eq(&a->laddr, &b->raddr) && corq_addr_eq(&a->raddr, &b->laddr);
}

/* Finds whose SYN this one answered. */
void
ep_find_peer(struct sim_side *s, struct sim_ep *ep)
{
	struct world *w = s->w;
	struct corq_conn_info info;
	uint32_t irs;

	corq_conn_get_info(s->tc.core, ep->conn, &info);
	irs = info.rcv_nxt - info.readable_bytes - info.peer_fin - 1;
	for (uint32_t i = w->n_ep; i-- > 0;) {
		struct sim_ep *o = &w->ep[i];

		if (o == ep || !o->active || !mirrors(o, ep) || o->iss != irs)
			continue;
		if (o->peer && o->peer != ep)
			sim_fail(w, "end %u: opened twice, by %u and %u", o->id, o->peer->id,
				ep->id);
		ep->peer = o;
		o->peer = ep;
		if (ep->proxy)
			o->via = ep;
		if (o->proxy && o->partner && o->partner->peer) { /* who reads whom */
			ep->via = o;
			ep->peer = o->partner->peer;
			ep->peer->peer = ep;
		}
		return;
	}
	sim_fail(w, "end %u: a connection from port %u with ISN %u that nobody opened", ep->id,
		ep->rport, irs);
}

static void
cb_open(struct corq_core *core, struct corq_conn *conn)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = corq_conn_user(conn);

	if (!ep) {
		ep = ep_new(s, conn, false);
		if (!ep)
			return;
		corq_conn_set_user(conn, ep);
		ep_find_peer(s, ep);
	} else if (ep->opened || ep->ended) {
		sim_fail(
			s->w, "end %u: on_open %s", ep->id, ep->ended ? "after on_close" : "twice");
	} else if (ep->dual) {
		ep_find_peer(s, ep);
	}
	sim_say(s->w, "end %u %c%s opened, port %u to %u, peer %d, plan: end %d read %d total %u",
		ep->id, 'A' + ep->side, ep->active ? "" : " (passive)", ep->lport, ep->rport,
		ep->peer ? (int)ep->peer->id : -1, ep->end, ep->read, ep->total);
	ep->opened = true;
	ep->opened_at_ns = corq_core_now(core);
	ep_go(s, ep);
	ep_leave(s);
}

/* Any other callback: the end must be open, and alive. */
static struct sim_ep *
enter_open(struct sim_side *s, struct corq_conn *conn, const char *what)
{
	struct sim_ep *ep = corq_conn_user(conn);

	if (!ep || ep->conn != conn || ep->ended)
		sim_fail(s->w, "%s for a connection that is not ours any more", what);
	else if (!ep->opened)
		sim_fail(s->w, "end %u: %s before on_open", ep->id, what);
	else if (ep->closed)
		sim_fail(s->w, "end %u: %s after close", ep->id, what);
	else
		return ep;
	return NULL;
}

static void
cb_data(struct corq_core *core, struct corq_conn *conn)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = enter_open(s, conn, "on_data");

	if (ep) {
		if (ep->data_turn == s->turn)
			sim_fail(s->w, "end %u: on_data twice in a turn", ep->id);
		ep->data_turn = s->turn;
		ep_go(s, ep);
	}
	ep_leave(s);
}

static void
cb_sent(struct corq_core *core, struct corq_conn *conn)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = enter_open(s, conn, "on_sent");

	if (ep) {
		if (!ep->want_sent && !ep->came_short && corq_conn_unsent(conn) != 0 &&
			!ep->wrote_in_turn)
			sim_fail(s->w,
				"end %u: on_sent, but no write came short and %zu bytes wait",
				ep->id, corq_conn_unsent(conn));
		ep->want_sent = ep->came_short = false;
		ep_go(s, ep);
	}
	ep_leave(s);
}

static void
cb_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = enter_open(s, conn, "on_peer_fin");

	if (ep && ep->peer) {
		uint64_t got = ep->consumed + corq_conn_readable(conn);

		if (ep->peer_fin)
			sim_fail(s->w, "end %u: on_peer_fin twice", ep->id);
		if (!ep->peer->fin_called && !ep->peer->closed)
			sim_fail(
				s->w, "end %u: a FIN that end %u never sent", ep->id, ep->peer->id);
		if (got != ep->peer->written)
			sim_fail(s->w, "end %u: FIN after %llu of %u bytes", ep->id,
				(unsigned long long)got, ep->peer->written);
		ep->peer_fin = true;
		ep_go(s, ep);
	}
	ep_leave(s);
}

static void
cb_timer(struct corq_core *core, struct corq_conn *conn)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = enter_open(s, conn, "on_timer");
	uint64_t now = corq_core_now(core);

	if (ep) {
		uint64_t late = 2 * s->w->p.gap_ns + 4ull * (1u << CORQ_TICK_SHIFT);

		if (ep->deadline_ns == 0 || now < ep->deadline_ns)
			sim_fail(s->w, "end %u: on_timer at %llu, deadline %llu", ep->id,
				(unsigned long long)now, (unsigned long long)ep->deadline_ns);
		else if (!s->w->p.pause && now - ep->deadline_ns > late)
			sim_fail(s->w, "end %u: on_timer %llu ns late", ep->id,
				(unsigned long long)(now - ep->deadline_ns));
		ep->deadline_ns = 0;
		ep_go(s, ep);
	}
	ep_leave(s);
}

void
ep_ended(struct sim_side *s, struct sim_ep *ep, struct corq_conn *conn, int reason)
{
	if (ep->conn != conn || ep->ended) {
		sim_fail(s->w, "on_close(%d) for a connection that is not ours any more", reason);
		return;
	}
	sim_say(s->w, "end %u %c closed: %s; wrote %u of %u, read %u", ep->id, 'A' + ep->side,
		reason ? strerrorname_np(-reason) : "in order", ep->written, ep->total,
		ep->consumed);
	ep->ended = true;
	ep->ended_at_ns = corq_core_now(s->tc.core);
	ep->reason = reason;
	ep->conn = NULL;
	s->w->n_live--;
}

static void
cb_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = corq_conn_user(conn);

	if (ep) {
		if (!ep->closed && corq_conn_readable(conn) > 0)
			ep_take(s, ep, UINT32_MAX);
		ep_ended(s, ep, conn, reason);
	} else if (!s->w->p.tight || reason == 0) { /* a passive one that never opened */
		sim_fail(s->w, "on_close(%d) of a connection that never opened", reason);
	}
	ep_leave(s);
}

void
ep_batch_end(struct corq_core *core)
{
	struct sim_side *s = sim_side_of(core);

	if (!s->cb_ran)
		sim_fail(s->w, "on_batch_end without a callback");
	s->batch_ended = true;
}

const struct corq_ops sim_ops = {
	.on_open = cb_open,
	.on_data = cb_data,
	.on_sent = cb_sent,
	.on_peer_fin = cb_peer_fin,
	.on_timer = cb_timer,
	.on_close = cb_close,
	.on_batch_end = ep_batch_end,
};

/* ---- opening ---- */

static bool
may_refuse(const struct world *w, int rc, bool lport)
{
	switch (rc) {
	case -EADDRNOTAVAIL:
		return w->p.few_ports;
	case -EADDRINUSE:
		return lport;
	case -ENOBUFS:
	case -EMFILE:
		return w->p.tight;
	default:
		return false;
	}
}

struct sim_ep *
sim_ep_connect(struct sim_side *s, uint16_t rport, uint16_t lport, enum sim_kind kind)
{
	struct world *w = s->w;
	struct corq_connect_opts o = {
		.raddr = w->side[s == w->side].tc.cfg.ranges[0].first,
		.rport = rport,
		.lport = lport,
		.ops = kind == SIM_KIND_PROXY ? &sim_proxy_ops : &sim_ops,
		.nodelay = sim_below(&w->rand, 4) == 0,
		.cork = sim_below(&w->rand, 8) == 0,
	};
	struct corq_conn_info info;
	struct corq_conn *conn;
	struct sim_ep *ep;
	int rc = corq_core_connect(s->tc.core, &o, &conn);

	if (rc != 0) {
		if (!may_refuse(w, rc, lport != 0))
			sim_fail(w, "connect: %s", strerrorname_np(-rc));
		return NULL;
	}
	ep = ep_new(s, conn, true);
	if (!ep)
		return NULL;
	corq_conn_set_user(conn, ep);
	corq_conn_get_info(s->tc.core, conn, &info);
	ep->iss = info.snd_una;
	ep->dual = kind == SIM_KIND_DUAL;
	ep->proxy = kind == SIM_KIND_PROXY;
	if (!ep->proxy &&
		sim_below(&w->rand, 50) == 0) /* changes its mind: closes or aborts in SYN_SENT */
		ep_close(s, ep, sim_below(&w->rand, 2) == 0);
	return ep;
}
