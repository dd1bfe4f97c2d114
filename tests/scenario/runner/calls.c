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

const char *const world_event_names[EVENT_COUNT] = {"on_open", "on_data", "on_peer_fin", "on_sent",
	"on_timer", "on_close", "on_end", "on_acceptable"};

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

void
world_log_event(struct corq_core *core, struct flow *f, enum event_kind kind, int arg)
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
	if (kind == EVENT_CLOSE || kind == EVENT_END)
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
	world_log_event(core, flow_of(core, conn), EVENT_OPEN, 0);
}

static void
on_data(struct corq_core *core, struct corq_conn *conn)
{
	world_log_event(core, flow_of(core, conn), EVENT_DATA, 0);
}

static void
on_sent(struct corq_core *core, struct corq_conn *conn)
{
	world_log_event(core, flow_of(core, conn), EVENT_SENT, 0);
}

static void
on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	world_log_event(core, flow_of(core, conn), EVENT_PEER_FIN, 0);
}

static void
on_timer(struct corq_core *core, struct corq_conn *conn)
{
	world_log_event(core, flow_of(core, conn), EVENT_TIMER, 0);
}

static void
on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct flow *f = flow_of(core, conn);

	world_log_event(core, f, EVENT_CLOSE, reason);
	if (f->conn == conn)
		f->conn = NULL;
}

static void
on_end(struct corq_core *core, struct corq_conn *conn, int reason)
{
	world_log_event(core, flow_of(core, conn), EVENT_END, reason);
}

const struct corq_ops world_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_sent = on_sent,
	.on_peer_fin = on_peer_fin,
	.on_timer = on_timer,
	.on_close = on_close,
	.on_end = on_end,
};

/* ---- calls ---- */

int64_t
world_number_of(struct world *w, const struct stmt *st, unsigned i)
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

bool
world_has_word(const struct stmt *st, const char *word)
{
	for (unsigned i = 1; i < st->n_words; i++)
		if (!strcmp(st->words[i], word))
			return true;
	return false;
}

static int64_t
call_connect(struct world *w, struct flow *f, const struct stmt *st)
{
	struct corq_connect_opts o = {.raddr = f->paddr,
		.rport = (uint16_t)world_number_of(w, st, 1),
		.ops = &world_ops,
		.user = f,
		.nodelay = world_has_word(st, "nodelay"),
		.cork = world_has_word(st, "cork")};
	struct corq_conn_info info;
	int rc;

	if (st->n_words > 3 && !strcmp(st->words[2], "from"))
		o.lport = (uint16_t)world_number_of(w, st, 3);
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
	size_t n = (size_t)world_number_of(w, st, 1);
	unsigned flags = (world_has_word(st, "more") ? CORQ_MORE : 0) |
			 (world_has_word(st, "fin") ? CORQ_FIN : 0);
	const uint8_t *data = w->pattern + f->wrote % 251;
	ssize_t rc;

	if (n > WORLD_PATTERN)
		world_fail(w, st, "the runner writes at most %u bytes a call", WORLD_PATTERN);
	if (world_has_word(st, "borrowed"))
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
	size_t n = (size_t)world_number_of(w, st, 1), room = n;
	uint8_t *p = corq_conn_reserve(w->tc.core, f->conn, &room);
	int rc;

	if (p == NULL)
		return -ENOBUFS;
	if (room < n)
		n = room;
	memcpy(p, w->pattern + f->wrote % 251, n);
	rc = corq_conn_commit(w->tc.core, f->conn, n, world_has_word(st, "more") ? CORQ_MORE : 0);
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
	size_t want = world_has_word(st, "all") ? SIZE_MAX : (size_t)world_number_of(w, st, 1),
	       got = 0;
	bool any = world_has_word(st, "unchecked");

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
	for (struct flow *to = w->flows; to != NULL; to = to->next) {
		int rc;

		if (st->n_words < 2 || strcmp(to->name, st->words[1]) != 0)
			continue;
		rc = corq_splice(w->tc.core, f->conn, to->conn);
		to->spliced |= rc == 0;
		return rc;
	}
	world_fail(w, st, "splice to which flow?");
}

/* recv N: as a socket's read; the bytes are compared. */
static int64_t
call_recv(struct world *w, struct flow *f, const struct stmt *st)
{
	uint8_t buf[65536];
	int64_t n = world_number_of(w, st, 1);
	ssize_t rc;

	if (n > (int64_t)sizeof(buf))
		world_fail(w, st, "the runner receives at most %zu bytes a call", sizeof(buf));
	rc = corq_conn_recv(w->tc.core, f->conn, buf, (size_t)n);
	if (rc > 0)
		verify_read(w, f, st, buf, (size_t)rc);
	return rc;
}

static int64_t
call_send(struct world *w, struct flow *f, const struct stmt *st)
{
	size_t n = (size_t)world_number_of(w, st, 1);
	ssize_t rc;

	if (n > WORLD_PATTERN)
		world_fail(w, st, "the runner writes at most %u bytes a call", WORLD_PATTERN);
	rc = corq_conn_send(w->tc.core, f->conn, w->pattern + f->wrote % 251, n,
		world_has_word(st, "more") ? CORQ_MORE : 0);
	if (rc > 0)
		f->wrote += (uint64_t)rc;
	return rc;
}

/* ready NAME ..: exactly these. */
static int64_t
call_ready(struct world *w, struct flow *f, const struct stmt *st)
{
	static const struct {
		const char *name;
		unsigned bit;
	} bits[] = {{"IN", CORQ_READY_IN}, {"OUT", CORQ_READY_OUT}, {"ERR", CORQ_READY_ERR},
		{"HUP", CORQ_READY_HUP}, {"RDHUP", CORQ_READY_RDHUP}};
	unsigned got = corq_conn_ready(w->tc.core, f->conn), want = 0, named = 0;

	for (unsigned i = 0; i < CORQ_ARRAY_LEN(bits); i++)
		if (world_has_word(st, bits[i].name)) {
			want |= bits[i].bit;
			named++;
		}
	if (named + 1 != st->n_words)
		world_fail(w, st, "of IN OUT ERR HUP RDHUP");
	if (got != want)
		world_fail(w, st, "readiness is 0x%x, expected 0x%x", got, want);
	return 0;
}

/* finish POLICY [MS] */
static int64_t
call_finish(struct world *w, struct flow *f, const struct stmt *st)
{
	static const char *const names[] = {"first", "after-peer", "abort-if-empty", "rst"};

	for (unsigned i = 0; i < CORQ_ARRAY_LEN(names); i++) {
		if (st->n_words < 2 || strcmp(st->words[1], names[i]) != 0)
			continue;
		corq_conn_finish(w->tc.core, f->conn, (enum corq_close_policy)i,
			st->n_words > 2 ? (uint64_t)world_number_of(w, st, 2) * CORQ_NS_PER_MS : 0);
		return 0;
	}
	world_fail(w, st, "finish first, after-peer [MS], abort-if-empty or rst");
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
	else if (!strcmp(verb, "hold"))
		corq_conn_hold(f->conn);
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
	if (!strcmp(verb, "shutdown_read"))
		return corq_conn_shutdown_read(core, f->conn);
	if (!strcmp(verb, "recv"))
		return call_recv(w, f, st);
	if (!strcmp(verb, "send"))
		return call_send(w, f, st);
	if (!strcmp(verb, "ready"))
		return call_ready(w, f, st);
	if (!strcmp(verb, "error"))
		return corq_conn_error(f->conn);
	if (!strcmp(verb, "close_linger")) { /* ms */
		corq_conn_close_linger(core, f->conn, (uint64_t)world_number_of(w, st, 1));
		return 0;
	}
	if (!strcmp(verb, "linger2")) { /* seconds */
		corq_conn_set_linger2(f->conn, (int)world_number_of(w, st, 1));
		return 0;
	}
	if (!strcmp(verb, "readable"))
		return (int64_t)corq_conn_readable(f->conn);
	if (!strcmp(verb, "unsent"))
		return (int64_t)corq_conn_unsent(f->conn);
	if (!strcmp(verb, "splice"))
		return call_splice(w, f, st);
	if (!strcmp(verb, "finish"))
		return call_finish(w, f, st);
	if (!strcmp(verb, "set_mss")) {
		corq_tcp_set_mss(&core->eng, f->conn, (uint16_t)world_number_of(w, st, 1));
		return 0;
	}
	if (!strcmp(verb, "deadline")) { /* ms from now, 0: off */
		int64_t ms = world_number_of(w, st, 1);

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

	if (!strcmp(verb, "readable") || !strcmp(verb, "unsent") || !strcmp(verb, "error"))
		world_fail(w, st, "say what '%s' returns: = N", verb);
	if (!strcmp(verb, "read") && world_has_word(st, "all"))
		world_fail(w, st, "say how many bytes: = N");
	if (!strcmp(verb, "write") || !strcmp(verb, "reserve") || !strcmp(verb, "read") ||
		!strcmp(verb, "recv") || !strcmp(verb, "send"))
		return world_number_of(w, st, 1);
	return 0;
}

void
world_call(struct world *w, struct flow *f, const struct stmt *st)
{
	const char *verb = st->words[0];
	int64_t rc, want;

	world_trace(w, "call %s%s%s", st->text, f == w->flows ? "" : " on ",
		f == w->flows ? "" : f->name);
	if (world_call_listener(w, f, st, &rc))
		;
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
