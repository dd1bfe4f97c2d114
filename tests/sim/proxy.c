/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy.c - a simulated program that connects on for each connection it accepts and splices the
 * two, both ways. It reads and writes nothing itself: the ends behind it check each other's bytes.
 *
 * It is not told when all has passed, so it looks now and then: both of its connections have sent
 * their FIN, got one, and have nothing left to send. If one ends badly it aborts the other.
 */
#include "ep.h"

#include <errno.h>

#define LOOK_NS (30 * CORQ_NS_PER_MS)

static void
look_again(struct sim_side *s, struct sim_ep *ep)
{
	corq_conn_set_deadline(s->tc.core, ep->conn, corq_core_now(s->tc.core) + LOOK_NS);
}

static void
abort_partner(struct sim_side *s, struct sim_ep *ep)
{
	struct sim_ep *o = ep->partner;

	if (o && o->conn && !o->closed)
		ep_close(s, o, true);
}

static void
connect_on(struct sim_side *s, struct sim_ep *ep)
{
	uint16_t port = (uint16_t)(SIM_PORT_LISTEN + sim_below(&s->w->rand, 3));
	struct sim_ep *out = sim_ep_connect(s, port, 0, SIM_KIND_PROXY);

	if (!out) {
		ep_close(s, ep, true);
		return;
	}
	ep->partner = out;
	out->partner = ep;
}

static void
splice_both(struct sim_side *s, struct sim_ep *a, struct sim_ep *b)
{
	int rc;

	if (!a || !a->conn || a->closed) {
		ep_close(s, b, true);
		return;
	}
	rc = corq_splice(s->tc.core, a->conn, b->conn);
	if (rc == 0)
		rc = corq_splice(s->tc.core, b->conn, a->conn);
	/* The other one may have been reset in this turn. */
	if (rc != 0 && rc != -EPIPE && rc != -ENOTCONN)
		sim_fail(s->w, "end %u: splice says %d", a->id, rc);
	if (rc != 0) {
		ep_close(s, b, true);
		abort_partner(s, b);
	}
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
		ep->proxy = ep->opened = true;
		ep_find_peer(s, ep);
		connect_on(s, ep);
	} else {
		ep->opened = true;
		splice_both(s, ep->partner, ep);
	}
	if (ep->conn && !ep->closed)
		look_again(s, ep);
	ep_leave(s);
}

static bool
has_passed_all(struct sim_side *s, const struct sim_ep *ep)
{
	struct corq_conn_info i;

	if (!ep || !ep->conn || ep->closed || !ep->opened)
		return false;
	corq_conn_get_info(s->tc.core, ep->conn, &i);
	return i.fin_queued && i.peer_fin && corq_conn_unsent(ep->conn) == 0 &&
	       i.readable_bytes == 0;
}

static void
cb_timer(struct corq_core *core, struct corq_conn *conn)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = corq_conn_user(conn);

	if (has_passed_all(s, ep) && has_passed_all(s, ep->partner)) {
		ep_close(s, ep, false);
		ep_close(s, ep->partner, false);
	} else if (corq_core_now(core) >= ep->life_at_ns && !ep_watch(s, ep)) {
		ep_close(s, ep, true);
		abort_partner(s, ep);
	} else {
		look_again(s, ep);
	}
	ep_leave(s);
}

static void
cb_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct sim_side *s = ep_enter(core);
	struct sim_ep *ep = corq_conn_user(conn);

	if (ep) {
		ep_ended(s, ep, conn, reason);
		abort_partner(s, ep);
	}
	ep_leave(s);
}

const struct corq_ops sim_proxy_ops = {
	.on_open = cb_open,
	.on_timer = cb_timer,
	.on_close = cb_close,
	.on_batch_end = ep_batch_end,
};
