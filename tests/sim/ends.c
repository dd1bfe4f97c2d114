/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends.c - when all is over: did every connection end for a reason that what happened explains,
 * and did every byte that was acknowledged in order reach the reader?
 *
 *   0              closed by its program, in order: the peer's TCP acknowledged all of it
 *   ECONNABORTED   aborted by its program (or by a core with pools too small)
 *   ECONNREFUSED   active, and nobody listened
 *   ECONNRESET     the peer aborted, closed with bytes unread or on their way, gave up, or is gone
 *   ETIMEDOUT      only where packets can be lost, and the other end was gone
 *   EHOSTUNREACH   likewise (ARP)
 *   EINPROGRESS    closed with a linger time, and its end came later; nothing is claimed then
 */
#include "ep.h"

#include <errno.h>
#include <string.h>

static bool
may_lose(const struct world *w)
{
	return !w->p.clean;
}

/* Something between the two, or behind it, ended otherwise than in order. */
static bool
is_cut(const struct sim_ep *ep)
{
	return ep && (ep->reason != 0 || ep->aborted || ep->closed_unread || ep->given_up);
}

/* Bytes that it sent: a proxy's are those of the end behind its other connection. */
static uint32_t
sent_by(const struct sim_ep *ep)
{
	if (!ep->proxy)
		return ep->written;
	return ep->partner && ep->partner->peer ? ep->partner->peer->written : 0;
}

/* Could the peer have answered something of ep's by RST? */
static bool
peer_may_reset(const struct world *w, const struct sim_ep *ep)
{
	const struct sim_ep *p = ep->peer;

	if (ep->via && (is_cut(ep->via) || is_cut(ep->via->partner)))
		return true;
	if (!p) /* half-open there, and dropped: bound, listener closed, or it never came up */
		return may_lose(w) || w->listener_closed || w->p.tight || ep->dual ||
		       w->p.few_ports;
	if (is_cut(p))
		return true;
	/* Closed before it had all: what came later met no reader. */
	if (p->closed && p->consumed_at_close < sent_by(ep))
		return true;
	/* Its record was gone before our last FIN was acknowledged. */
	return may_lose(w) || w->p.tight;
}

/* The other end was there all the time: 15 losses in a row do not happen. */
static bool
was_answered(const struct world *w, const struct sim_ep *ep)
{
	const struct sim_ep *next = ep->via ? ep->via : ep->peer;

	return ep->opened && next && next->ended_at_ns >= ep->ended_at_ns &&
	       w->p.cfg[ep->side].data_retries == 0;
}

static bool
is_explained(const struct world *w, const struct sim_ep *ep)
{
	switch (ep->reason) {
	case 0:
		return ep->closed;
	case -ECONNABORTED:
		return ep->aborted || ep->closed || w->p.tight;
	case -ECONNREFUSED:
		return ep->active && !ep->opened &&
		       (ep->rport == SIM_PORT_CLOSED || ep->dual || w->listener_closed ||
			       w->p.tight);
	case -ECONNRESET:
		return peer_may_reset(w, ep);
	case -ETIMEDOUT:
		return w->p.tight || (may_lose(w) && !was_answered(w, ep));
	case -EHOSTUNREACH:
		return may_lose(w) || w->p.tight;
	case -EINPROGRESS:
		return ep->lingers;
	case -ENOBUFS:
		return w->p.tight;
	default:
		return false;
	}
}

/* It ended in order, so the peer's TCP has all; what did the peer's program get? */
static void
check_delivery(struct world *w, const struct sim_ep *ep)
{
	const struct sim_ep *p = ep->peer;

	if (ep->reason != 0 || ep->aborted || ep->closed_unread || !ep->opened)
		return;
	if (ep->proxy || (ep->via && (is_cut(ep->via) || is_cut(ep->via->partner))))
		return; /* acknowledged by the proxy, which was cut off */
	if (!p) {
		if (ep->written > 0)
			sim_fail(w, "end %u: %u bytes acknowledged by nobody", ep->id, ep->written);
		return;
	}
	if (p->reason != 0 || p->aborted || p->given_up)
		return;
	if (!p->peer_fin && p->closed && p->consumed_at_close <= ep->written)
		return; /* it left before our FIN */
	if (!p->peer_fin)
		sim_fail(w, "end %u: its FIN was acknowledged, but end %u never heard of it",
			ep->id, p->id);
	if (p->consumed != ep->written && !p->closed_unread)
		sim_fail(w, "end %u: wrote %u bytes, all acknowledged; end %u read %u", ep->id,
			ep->written, p->id, p->consumed);
}

void
sim_check_ends(struct world *w)
{
	for (uint32_t i = 0; i < w->n_ep && !w->failed; i++) {
		const struct sim_ep *ep = &w->ep[i];

		if (!ep->ended)
			sim_fail(w, "end %u: on_close never came", i);
		else if (ep->loaned)
			sim_fail(w, "end %u: %u borrowed pieces out", i, ep->loaned);
		else if (!is_explained(w, ep))
			sim_fail(w,
				"end %u %c%s port %u to %u ended by %s, for no reason that we know "
				"(peer %d: %s)",
				i, 'A' + ep->side, ep->active ? "" : " (passive)", ep->lport,
				ep->rport, ep->reason ? strerrorname_np(-ep->reason) : "close",
				ep->peer ? (int)ep->peer->id : -1,
				ep->peer && ep->peer->reason ? strerrorname_np(-ep->peer->reason)
							     : "in order");
		else
			check_delivery(w, ep);
	}
}
