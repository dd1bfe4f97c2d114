/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.c - who closes first: the program says it is done, and by which policy; this file does the
 * rest. The core's thread only.
 *
 *   policy          on the wire                                            TIME_WAIT is
 *   first           what is queued, FIN                                    ours
 *   after-peer      what is queued; FIN after the peer's, or after a time  the peer's (ours then)
 *   abort-if-empty  RST if no byte was ever sent or received; else first   nobody's; else ours
 *   rst             RST                                                    nobody's
 *
 * While a connection waits for the peer's FIN its callbacks are ours: a twin of the program's
 * table, made at its first use, which takes what arrives and drops it. Only on_close and
 * on_batch_end of the program's own table stand in it. A program's tables are few and constant, and
 * so are the twins.
 */
#include "core/core.h"
#include "tcp/internal.h"

static void
drop_input(struct corq_core *core, struct corq_conn *conn)
{
	size_t n = corq_conn_readable(conn);

	if (n)
		corq_conn_consume(core, conn, n);
}

static void
on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	drop_input(core, conn);
	corq_count(&core->eng, CORQ_R_TCP_CLOSE_AFTER_PEER);
	corq_conn_close(core, conn);
}

static void
on_time_over(struct corq_core *core, struct corq_conn *conn)
{
	drop_input(core, conn);
	corq_count(&core->eng, CORQ_R_TCP_CLOSE_WAIT_OVER);
	corq_conn_close(core, conn);
}

/* The number of the table under which a connection of that table waits. */
static uint8_t
twin_of(struct corq_core *core, uint8_t ops)
{
	const struct corq_ops *own = ops ? core->eng.ops[ops] : NULL;
	struct corq_ops *twin = &core->twins[ops];

	if (own && own->on_peer_fin == on_peer_fin) /* it waits already */
		return ops;
	if (!twin->on_peer_fin)
		*twin = (struct corq_ops){.on_data = drop_input,
			.on_peer_fin = on_peer_fin,
			.on_timer = on_time_over,
			.on_close = own ? own->on_close : NULL,
			.on_batch_end = own ? own->on_batch_end : NULL,
			.under = own};
	return (uint8_t)corq_ops_index(&core->eng, twin);
}

static void
wait_for_peer(struct corq_core *core, struct corq_conn *c, uint64_t wait_ns)
{
	struct corq_engine *e = &core->eng;

	drop_input(core, c);
	if ((c->flags & CORQ_CF_PEER_FIN) || c->state != CORQ_ESTABLISHED) {
		if (c->flags & CORQ_CF_PEER_FIN)
			corq_count(e, CORQ_R_TCP_CLOSE_AFTER_PEER);
		corq_conn_close(core, c);
		return;
	}
	corq_splice_shut(e, c); /* nothing is passed on any more, either way */
	corq_splice_end(e, c);
	c->ops = twin_of(core, c->ops);
	c->held = 0;
	corq_conn_set_cork(core, c, false); /* nothing follows: what is queued leaves */
	c->flags &= ~(uint32_t)CORQ_CF_MORE;
	corq_conn_mark_send(e, c);
	corq_conn_set_deadline(core, c, wait_ns ? e->now_ns + wait_ns : 0);
}

void
corq_conn_finish(struct corq_core *core, struct corq_conn *conn, enum corq_close_policy policy,
	uint64_t wait_ns)
{
	if ((conn->flags & CORQ_CF_ORPHAN) || (conn->ev & CORQ_EV_CLOSE))
		return;
	if (policy == CORQ_CLOSE_AFTER_PEER) {
		wait_for_peer(core, conn, wait_ns);
	} else if (policy == CORQ_CLOSE_RST) {
		corq_conn_abort(core, conn);
	} else if (policy == CORQ_CLOSE_ABORT_IF_EMPTY && !conn->exchanged) {
		corq_count(&core->eng, CORQ_R_TCP_CLOSE_EMPTY);
		corq_conn_abort(core, conn);
	} else {
		corq_conn_close(core, conn);
	}
}
