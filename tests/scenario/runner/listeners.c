/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listeners.c - the calls of a script on listeners. Called by calls.c inside a turn, as the
 * program.
 *
 * `accept` is made on a flow and must hand out that flow's connection: so a script says in which
 * order the queue gives.
 */
#include "world.h"

#include <errno.h>
#include <string.h>

static void
on_acceptable(struct corq_core *core, struct corq_listener *listener)
{
	struct world *w = corq_core_user(core);

	(void)listener;
	world_log_event(core, w->flows, EVENT_ACCEPTABLE, 0);
}

static int64_t
call_listen(struct world *w, struct flow *f, const struct stmt *st)
{
	struct corq_listen_opts o = {.port = (uint16_t)world_number_of(w, st, 1),
		.ops = &world_ops,
		.queue = world_has_word(st, "queue"),
		.abort_on_overflow = world_has_word(st, "abort_on_overflow"),
		.on_acceptable = on_acceptable};
	struct corq_listener *l;
	unsigned i = 0;
	int rc;

	for (unsigned k = 2; k + 1 < st->n_words; k++) {
		if (!strcmp(st->words[k], "backlog"))
			o.backlog = (int)world_number_of(w, st, k + 1);
		if (!strcmp(st->words[k], "defer"))
			o.defer_s = (unsigned)world_number_of(w, st, k + 1);
	}
	rc = corq_core_listen(w->tc.core, &o, &l);
	if (rc != 0)
		return rc;
	while (w->listeners[i] != NULL && ++i < WORLD_LISTENERS)
		;
	if (i == WORLD_LISTENERS)
		world_fail(w, st, "the runner keeps %d listeners", WORLD_LISTENERS);
	w->listeners[i] = l;
	w->listener_port[i] = o.port;
	if (f->lport == 0)
		f->lport = o.port;
	return 0;
}

/* The listener on the port that the call names, or on the flow's. */
static struct corq_listener **
listener_of(struct world *w, struct flow *f, const struct stmt *st)
{
	int64_t port = st->n_words > 1 ? world_number_of(w, st, 1) : f->lport;

	for (unsigned i = 0; i < WORLD_LISTENERS; i++)
		if (w->listeners[i] != NULL && w->listener_port[i] == port)
			return &w->listeners[i];
	world_fail(w, st, "nobody listens on %lld", (long long)port);
}

static int64_t
call_accept(struct world *w, struct flow *f, const struct stmt *st)
{
	struct corq_listener *l = *listener_of(w, f, st);
	struct corq_conn_info info;
	struct corq_conn *conn;
	int rc = corq_listener_accept(w->tc.core, l, &conn);

	if (rc != 0)
		return rc;
	corq_conn_get_info(w->tc.core, conn, &info);
	if (world_flow_of(w, &info.raddr, info.rport, &info.laddr, info.lport) != f)
		world_fail(w, st, "accept gave the connection from port %u", info.rport);
	f->conn = conn;
	f->wrote = f->read = 0;
	corq_conn_set_user(conn, f);
	return 0;
}

bool
world_call_listener(struct world *w, struct flow *f, const struct stmt *st, int64_t *rc)
{
	const char *verb = st->words[0];
	struct corq_listener **l;

	*rc = 0;
	if (!strcmp(verb, "listen")) {
		*rc = call_listen(w, f, st);
	} else if (!strcmp(verb, "accept")) {
		*rc = call_accept(w, f, st);
	} else if (!strcmp(verb, "drain")) {
		corq_listener_drain(w->tc.core, *listener_of(w, f, st));
	} else if (!strcmp(verb, "unlisten")) {
		l = listener_of(w, f, st);
		corq_listener_close(w->tc.core, *l);
		*l = NULL;
	} else {
		return false;
	}
	return true;
}
