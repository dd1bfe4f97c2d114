/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.c - the program of a script: its calls, made inside a turn, and its log of callbacks.
 *
 * A `call` is made by the core's hook, so it runs as a program's would: after the callbacks of the
 * turn, before frames are built. The calls of an `on EVENT` block run inside that callback, once.
 */
#include "world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const world_event_names[EVENT_COUNT] = {
	"on_open", "on_data", "on_peer_fin", "on_sent", "on_timer", "on_close"};

enum event_kind
world_event_kind(const char *name)
{
	enum event_kind k = EVENT_OPEN;

	while (k < EVENT_COUNT && strcmp(world_event_names[k], name) != 0 &&
		strcmp(world_event_names[k] + 3, name) != 0)
		k++;
	return k;
}

/* ---- callbacks ---- */

static void
run_block(struct world *w, struct flow *f, const struct stmt *body)
{
	for (const struct stmt *st = body; st != NULL; st = st->next)
		world_call(w, f, st);
}

static void
log_event(struct corq_core *core, struct flow *f, enum event_kind kind, int arg)
{
	struct world *w = corq_core_user(core);
	const struct stmt *block;

	if (w->n_events == w->cap_events) {
		w->cap_events = w->cap_events ? 2 * w->cap_events : 64;
		w->events = realloc(w->events, w->cap_events * sizeof(*w->events));
		if (w->events == NULL)
			abort();
	}
	w->events[w->n_events++] = (struct event){f, kind, arg, w->cleaning, world_time(w)};
	if (kind == EVENT_CLOSE)
		world_trace(w, "event %s %s%s%s", world_event_names[kind],
			arg ? strerrorname_np(-arg) : "0", f->next || f != w->flows ? " " : "",
			f->next || f != w->flows ? f->name : "");
	else
		world_trace(w, "event %s%s%s", world_event_names[kind],
			f->next || f != w->flows ? " " : "",
			f->next || f != w->flows ? f->name : "");
	block = f->on[kind];
	f->on[kind] = NULL;
	if (block != NULL && !w->cleaning)
		run_block(w, f, block->body);
}

/* The flow of a connection; a passive one is known by its tuple when it opens. */
static struct flow *
flow_of(struct corq_core *core, struct corq_conn *conn)
{
	struct world *w = corq_core_user(core);
	struct flow *f = corq_conn_user(conn);
	struct corq_conn_info info;

	if (f != NULL)
		return f;
	corq_conn_get_info(core, conn, &info);
	f = world_flow_of(w, &info.raddr, info.rport, &info.laddr, info.lport);
	if (f == NULL)
		world_fail(w, w->at, "a connection opened that is of no flow (ports %u -> %u)",
			info.rport, info.lport);
	f->conn = conn;
	f->wrote = f->read = 0;
	corq_conn_set_user(conn, f);
	return f;
}

static void
on_open(struct corq_core *core, struct corq_conn *conn)
{
	log_event(core, flow_of(core, conn), EVENT_OPEN, 0);
}

static void
on_data(struct corq_core *core, struct corq_conn *conn)
{
	log_event(core, flow_of(core, conn), EVENT_DATA, 0);
}

static void
on_sent(struct corq_core *core, struct corq_conn *conn)
{
	log_event(core, flow_of(core, conn), EVENT_SENT, 0);
}

static void
on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	log_event(core, flow_of(core, conn), EVENT_PEER_FIN, 0);
}

static void
on_timer(struct corq_core *core, struct corq_conn *conn)
{
	log_event(core, flow_of(core, conn), EVENT_TIMER, 0);
}

static void
on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct flow *f = flow_of(core, conn);

	log_event(core, f, EVENT_CLOSE, reason);
	if (f->conn == conn)
		f->conn = NULL;
}

const struct corq_ops world_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_sent = on_sent,
	.on_peer_fin = on_peer_fin,
	.on_timer = on_timer,
	.on_close = on_close,
};

/* ---- calls ---- */

static int64_t
number_of(struct world *w, const struct stmt *st, unsigned i)
{
	char *end;
	int64_t v;

	if (i >= st->n_words)
		world_fail(w, st, "a number is missing");
	v = strtoll(st->words[i], &end, 0);
	if (end == st->words[i] || *end != '\0')
		world_fail(w, st, "'%s' is not a number", st->words[i]);
	return v;
}

static bool
has_word(const struct stmt *st, const char *word)
{
	for (unsigned i = 1; i < st->n_words; i++)
		if (!strcmp(st->words[i], word))
			return true;
	return false;
}

static int64_t
call_listen(struct world *w, struct flow *f, const struct stmt *st)
{
	struct corq_listen_opts o = {.port = (uint16_t)number_of(w, st, 1), .ops = &world_ops};
	struct corq_listener *l;
	unsigned i = 0;
	int rc;

	if (st->n_words > 3 && !strcmp(st->words[2], "backlog"))
		o.backlog = (int)number_of(w, st, 3);
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

static int64_t
call_unlisten(struct world *w, struct flow *f, const struct stmt *st)
{
	int64_t port = st->n_words > 1 ? number_of(w, st, 1) : f->lport;

	for (unsigned i = 0; i < WORLD_LISTENERS; i++) {
		if (w->listeners[i] == NULL || w->listener_port[i] != port)
			continue;
		corq_listener_close(w->tc.core, w->listeners[i]);
		w->listeners[i] = NULL;
		return 0;
	}
	world_fail(w, st, "nobody listens on %lld", (long long)port);
}

static int64_t
call_connect(struct world *w, struct flow *f, const struct stmt *st)
{
	struct corq_connect_opts o = {.raddr = f->paddr,
		.rport = (uint16_t)number_of(w, st, 1),
		.ops = &world_ops,
		.user = f,
		.nodelay = has_word(st, "nodelay"),
		.cork = has_word(st, "cork")};
	struct corq_conn_info info;
	int rc;

	if (st->n_words > 3 && !strcmp(st->words[2], "from"))
		o.lport = (uint16_t)number_of(w, st, 3);
	rc = corq_core_connect(w->tc.core, &o, &f->conn);
	if (rc != 0)
		return rc;
	corq_conn_get_info(w->tc.core, f->conn, &info);
	for (struct flow *old = w->flows; old != NULL; old = old->next)
		if (old != f && old->conn == NULL && old->lport == info.lport &&
			old->pport == o.rport && corq_addr_eq(&old->paddr, &f->paddr))
			old->pport = 0; /* the tuple is this flow's now */
	f->pport = o.rport;
	f->lport = info.lport;
	f->laddr = info.laddr;
	f->have_our_isn = f->have_peer_isn = f->have_our_ts = false;
	f->our_ts = f->peer_ts = false;
	f->wrote = f->read = 0;
	return 0;
}

static int64_t
call_write(struct world *w, struct flow *f, const struct stmt *st)
{
	size_t n = (size_t)number_of(w, st, 1);
	unsigned flags =
		(has_word(st, "more") ? CORQ_MORE : 0) | (has_word(st, "fin") ? CORQ_FIN : 0);
	const uint8_t *data = w->pattern + f->wrote % 251;
	ssize_t rc;

	if (n > WORLD_PATTERN)
		world_fail(w, st, "the runner writes at most %u bytes a call", WORLD_PATTERN);
	if (has_word(st, "borrowed"))
		rc = corq_tcp_write_mem(
			&w->tc.core->eng, f->conn, w->region, data, n, flags, f->wrote);
	else
		rc = corq_conn_write(w->tc.core, f->conn, data, n, flags);
	if (rc > 0)
		f->wrote += (uint64_t)rc;
	return rc;
}

/* reserve N: asks for room, fills N bytes of it and commits them. */
static int64_t
call_reserve(struct world *w, struct flow *f, const struct stmt *st)
{
	size_t n = (size_t)number_of(w, st, 1), room = n;
	uint8_t *p = corq_conn_reserve(w->tc.core, f->conn, &room);
	int rc;

	if (p == NULL)
		return -ENOBUFS;
	if (room < n)
		n = room;
	memcpy(p, w->pattern + f->wrote % 251, n);
	rc = corq_conn_commit(w->tc.core, f->conn, n, has_word(st, "more") ? CORQ_MORE : 0);
	if (rc < 0)
		return rc;
	f->wrote += n;
	return (int64_t)n;
}

static void
verify_read(struct world *w, struct flow *f, const struct stmt *st, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != wire_pattern_in(f->read + i))
			world_fail(w, st, "received byte %llu is 0x%02x, the peer sent 0x%02x",
				(unsigned long long)(f->read + i), p[i],
				wire_pattern_in(f->read + i));
	f->read += n;
}

static int64_t
call_read(struct world *w, struct flow *f, const struct stmt *st)
{
	size_t want = has_word(st, "all") ? SIZE_MAX : (size_t)number_of(w, st, 1), got = 0;
	bool any = has_word(st, "unchecked");

	while (got < want) {
		struct iovec iov[2];
		size_t n = 0;
		int k = corq_conn_peek(w->tc.core, f->conn, iov, 2);

		if (k <= 0)
			break;
		for (int i = 0; i < k; i++) {
			size_t len = CORQ_MIN(iov[i].iov_len, want - got - n);

			if (any)
				f->read += len;
			else
				verify_read(w, f, st, iov[i].iov_base, len);
			n += len;
		}
		if (n == 0)
			world_fail(w, st, "peek shows empty pieces");
		corq_conn_consume(w->tc.core, f->conn, n);
		got += n;
	}
	return (int64_t)got;
}

static int64_t
call_splice(struct world *w, struct flow *f, const struct stmt *st)
{
	for (struct flow *to = w->flows; to != NULL; to = to->next)
		if (st->n_words > 1 && !strcmp(to->name, st->words[1]))
			return corq_splice(w->tc.core, f->conn, to->conn);
	world_fail(w, st, "splice to which flow?");
}

/* Calls that take no number and return nothing. */
static bool
call_simple(struct world *w, struct flow *f, const char *verb)
{
	struct corq_core *core = w->tc.core;

	if (!strcmp(verb, "close"))
		corq_conn_close(core, f->conn);
	else if (!strcmp(verb, "abort"))
		corq_conn_abort(core, f->conn);
	else if (!strcmp(verb, "cork"))
		corq_conn_set_cork(core, f->conn, true);
	else if (!strcmp(verb, "uncork"))
		corq_conn_set_cork(core, f->conn, false);
	else if (!strcmp(verb, "nodelay"))
		corq_conn_set_nodelay(core, f->conn, true);
	else if (!strcmp(verb, "nagle"))
		corq_conn_set_nodelay(core, f->conn, false);
	else if (!strcmp(verb, "linger0"))
		corq_conn_set_linger0(f->conn, true);
	else
		return false;
	return true;
}

static int64_t
call_on_conn(struct world *w, struct flow *f, const struct stmt *st)
{
	const char *verb = st->words[0];
	struct corq_core *core = w->tc.core;

	if (f->conn == NULL)
		world_fail(w, st, "flow '%s' has no connection", f->name);
	if (call_simple(w, f, verb))
		return 0;
	if (!strcmp(verb, "write"))
		return call_write(w, f, st);
	if (!strcmp(verb, "reserve"))
		return call_reserve(w, f, st);
	if (!strcmp(verb, "read"))
		return call_read(w, f, st);
	if (!strcmp(verb, "shutdown"))
		return corq_conn_shutdown(core, f->conn);
	if (!strcmp(verb, "readable"))
		return (int64_t)corq_conn_readable(f->conn);
	if (!strcmp(verb, "unsent"))
		return (int64_t)corq_conn_unsent(f->conn);
	if (!strcmp(verb, "splice"))
		return call_splice(w, f, st);
	if (!strcmp(verb, "set_mss")) {
		corq_tcp_set_mss(&core->eng, f->conn, (uint16_t)number_of(w, st, 1));
		return 0;
	}
	if (!strcmp(verb, "deadline")) { /* ms from now, 0: off */
		int64_t ms = number_of(w, st, 1);

		corq_conn_set_deadline(core, f->conn,
			ms ? corq_core_now(core) + (uint64_t)ms * CORQ_NS_PER_MS : 0);
		return 0;
	}
	world_fail(w, st, "unknown call '%s'", verb);
}

/* What a call without `= VALUE` must return. */
static int64_t
default_result(struct world *w, const struct stmt *st)
{
	const char *verb = st->words[0];

	if (!strcmp(verb, "readable") || !strcmp(verb, "unsent"))
		world_fail(w, st, "say what '%s' returns: = N", verb);
	if (!strcmp(verb, "read") && has_word(st, "all"))
		world_fail(w, st, "say how many bytes: = N");
	if (!strcmp(verb, "write") || !strcmp(verb, "reserve") || !strcmp(verb, "read"))
		return number_of(w, st, 1);
	return 0;
}

void
world_call(struct world *w, struct flow *f, const struct stmt *st)
{
	const char *verb = st->words[0];
	int64_t rc, want;

	world_trace(w, "call %s%s%s", st->text, f == w->flows ? "" : " on ",
		f == w->flows ? "" : f->name);
	if (!strcmp(verb, "listen"))
		rc = call_listen(w, f, st);
	else if (!strcmp(verb, "unlisten"))
		rc = call_unlisten(w, f, st);
	else if (!strcmp(verb, "connect"))
		rc = call_connect(w, f, st);
	else
		rc = call_on_conn(w, f, st);
	if (st->value.kind == VALUE_RANGE) {
		char buf[64];

		if (rc < st->value.lo || rc > st->value.hi)
			world_fail(w, st, "returned %lld (%s), expected %s", (long long)rc,
				rc < 0 ? strerror((int)-rc) : "",
				value_text(&st->value, buf, sizeof(buf)));
		return;
	}
	want = default_result(w, st);
	if (rc != want)
		world_fail(w, st, "returned %lld (%s), expected %lld", (long long)rc,
			rc < 0 ? strerror((int)-rc) : "", (long long)want);
}

uint64_t
world_hook(struct corq_core *core, void *arg, uint64_t now_ns)
{
	struct world *w = arg;
	const struct stmt *st = w->calls;

	(void)core;
	(void)now_ns;
	w->calls = NULL;
	if (st != NULL && !w->batch)
		world_call(w, w->cur, st);
	for (; st != NULL && w->batch; st = st->next)
		if (st->kind == STMT_CALL)
			world_call(w, w->cur, st);
	return 0;
}
