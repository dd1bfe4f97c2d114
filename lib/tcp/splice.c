/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * splice.c - what one connection receives another one sends, without a copy.
 *
 * Chunks move from the receive queue of `from` to the send queue of `to`; held ones keep their
 * frame, so the payload lies where the device put it until the peer of `to` has acknowledged it.
 * Backpressure: no more than the send buffer waits in `to`; the rest stays in `from`, whose window
 * closes. A FIN follows the last byte. While there is a rest, what was moved counts as written with
 * MORE: a short end of it waits for company; the last chunk is pushed. Runs in step 6, in the place
 * of on_data and on_peer_fin of `from`. Both connections are of this core.
 */
#include "tcp/internal.h"
#include "tcp/rcvq.h"

#include <errno.h>

static struct corq_splice_link *
link_of(struct corq_engine *e, const struct corq_conn *c)
{
	return c->splice == CORQ_NONE ? NULL : corq_pool_at(&e->splices, c->splice);
}

static struct corq_splice_link *
want_link(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_splice_link *l = link_of(e, c);

	if (l)
		return l;
	c->splice = corq_pool_alloc(&e->splices);
	l = link_of(e, c);
	if (l)
		*l = (struct corq_splice_link){CORQ_NONE, CORQ_NONE};
	return l;
}

static void
drop_empty(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_splice_link *l = link_of(e, c);

	if (!l || l->to != CORQ_NONE || l->from != CORQ_NONE)
		return;
	corq_pool_free(&e->splices, c->splice);
	c->splice = CORQ_NONE;
}

int
corq_tcp_splice(struct corq_engine *e, struct corq_conn *from, struct corq_conn *to)
{
	struct corq_splice_link *lf, *lt;

	if (from == to)
		return -EINVAL;
	if ((from->flags & CORQ_CF_ORPHAN) || (from->ev & CORQ_EV_CLOSE))
		return -ENOTCONN; /* it has ended: its end would not end the splice */
	if ((to->flags & (CORQ_CF_ORPHAN | CORQ_CF_FIN_QUEUED)) ||
		(to->state != CORQ_ESTABLISHED && to->state != CORQ_CLOSE_WAIT))
		return -EPIPE;
	lf = want_link(e, from);
	lt = want_link(e, to);
	if (!lf || !lt || lf->to != CORQ_NONE || lt->from != CORQ_NONE) {
		int err = lf && lt ? -EBUSY : -ENOBUFS;

		drop_empty(e, from);
		drop_empty(e, to);
		return err;
	}
	lf->to = corq_conn_idx(e, to);
	lt->from = corq_conn_idx(e, from);
	if (from->rcvq_bytes)
		corq_conn_event(e, from, CORQ_EV_DATA);
	if (from->flags & CORQ_CF_PEER_FIN)
		corq_conn_event(e, from, CORQ_EV_PEER_FIN);
	return 0;
}

bool
corq_tcp_spliced(struct corq_engine *e, const struct corq_conn *from)
{
	struct corq_splice_link *l = link_of(e, from);

	return l && l->to != CORQ_NONE;
}

static void
unlink_from(struct corq_engine *e, struct corq_conn *from)
{
	struct corq_splice_link *l = link_of(e, from);
	struct corq_conn *to = corq_conn_at(e, l->to);

	link_of(e, to)->from = CORQ_NONE;
	l->to = CORQ_NONE;
	drop_empty(e, to);
	drop_empty(e, from);
}

void
corq_splice_end(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_splice_link *l = link_of(e, c);

	if (CORQ_LIKELY(!l))
		return;
	if (l->to != CORQ_NONE)
		unlink_from(e, c);
	l = link_of(e, c);
	if (l && l->from != CORQ_NONE)
		unlink_from(e, corq_conn_at(e, l->from));
}

/* `to` sends nothing more: what `from` receives is its program's again. */
void
corq_splice_shut(struct corq_engine *e, struct corq_conn *to)
{
	struct corq_splice_link *l = link_of(e, to);
	struct corq_conn *from;

	if (CORQ_LIKELY(!l) || l->from == CORQ_NONE)
		return;
	from = corq_conn_at(e, l->from);
	unlink_from(e, from);
	if (from->rcvq_bytes)
		corq_conn_event(e, from, CORQ_EV_DATA);
	if (from->flags & CORQ_CF_PEER_FIN)
		corq_conn_event(e, from, CORQ_EV_PEER_FIN);
}

/* Moves what fits; called for `from` in step 6. */
void
corq_splice_pull(struct corq_engine *e, struct corq_conn *from)
{
	struct corq_splice_link *l = link_of(e, from);
	struct corq_conn *to = corq_conn_at(e, l->to);
	uint32_t moved = 0;

	while (from->rcvq_bytes && to->snd_end - to->snd_una < e->cfg.snd_buf) {
		uint32_t idx = corq_rcvq_pop(e, from);
		uint32_t len = corq_chunk_at(&e->chunks, idx)->len;

		corq_sndq_append(e, to, idx);
		to->snd_end += len;
		moved += len;
	}
	if (moved) {
		to->exchanged = 1;
		to->flags &= ~(uint32_t)CORQ_CF_MORE;
		to->flags |= from->rcvq_bytes ? CORQ_CF_MORE : 0;
		corq_conn_mark_send(e, to);
		from->flags |= CORQ_CF_WND_UPDATE;
		corq_conn_mark_send(e, from);
	}
	if (from->rcvq_bytes == 0 && (from->flags & CORQ_CF_PEER_FIN)) {
		unlink_from(e, from);
		corq_tcp_shutdown(e, to);
	}
}

/* `to` got room: `from` may have more. */
void
corq_splice_room(struct corq_engine *e, const struct corq_conn *to)
{
	struct corq_splice_link *l = link_of(e, to);
	struct corq_conn *from;

	if (CORQ_LIKELY(!l) || l->from == CORQ_NONE)
		return;
	from = corq_conn_at(e, l->from);
	if (from->rcvq_bytes)
		corq_conn_event(e, from, CORQ_EV_DATA);
}
