/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api.c - the on-core API (<corq/core.h>) over the engine's verbs. Nothing but the step from core
 * to engine, and from registered memory to its region number. The core's thread only.
 */
#include "core/core.h"

#include <errno.h>

unsigned
corq_core_index(const struct corq_core *core)
{
	return core->cfg.index;
}

enum corq_side
corq_core_side(const struct corq_core *core)
{
	return core->cfg.side;
}

uint64_t
corq_core_now(const struct corq_core *core)
{
	return core->eng.now_ns;
}

void *
corq_core_user(const struct corq_core *core)
{
	return core->user;
}

void
corq_core_set_user(struct corq_core *core, void *user)
{
	core->user = user;
}

void
corq_core_set_hook(struct corq_core *core, corq_hook_fn fn, void *arg)
{
	core->hook = fn;
	core->hook_arg = arg;
	core->hook_at = 0;
}

int
corq_core_listen(
	struct corq_core *core, const struct corq_listen_opts *opts, struct corq_listener **out)
{
	int rc = corq_tcp_listen(&core->eng, opts, out);

	if (rc == 0)
		corq_owner_set_listens(&core->owner, opts->port, true);
	return rc;
}

void
corq_listener_close(struct corq_core *core, struct corq_listener *listener)
{
	uint16_t port = listener->opts.port;

	corq_tcp_unlisten(&core->eng, listener);
	for (unsigned i = 0; i < core->eng.n_listeners; i++)
		if (core->eng.listeners[i].used && core->eng.listeners[i].opts.port == port)
			return;
	corq_owner_set_listens(&core->owner, port, false);
}

void
corq_listener_drain(struct corq_core *core, struct corq_listener *listener)
{
	(void)core;
	corq_tcp_listener_drain(listener);
}

int
corq_listener_accept(struct corq_core *core, struct corq_listener *listener, struct corq_conn **out)
{
	return corq_tcp_accept(&core->eng, listener, out);
}

int
corq_core_connect(
	struct corq_core *core, const struct corq_connect_opts *opts, struct corq_conn **out)
{
	/* The answers must come to this core: among several, a port of its own. */
	if (core->cfg.n > 1 && opts->lport &&
		!corq_owner_port(&core->owner, opts->lport, core->cfg.index - core->cfg.group))
		return -EADDRNOTAVAIL;
	return corq_tcp_connect(&core->eng, opts, out);
}

ssize_t
corq_conn_write(struct corq_core *core, struct corq_conn *conn, const void *data, size_t len,
	unsigned flags)
{
	corq_idle_asked(core, conn);
	return corq_tcp_write(&core->eng, conn, data, len, flags);
}

ssize_t
corq_conn_write_mem(struct corq_core *core, struct corq_conn *conn, struct corq_mem *mem,
	const void *data, size_t len, unsigned flags, uint64_t cookie)
{
	const struct corq_region *r = (const void *)mem;
	const uint8_t *p = data;

	CORQ_ASSERT(p >= r->base && len <= r->len && (size_t)(p - r->base) <= r->len - len);
	corq_idle_asked(core, conn);
	return corq_tcp_write_mem(
		&core->eng, conn, (uint16_t)(r - core->regions), data, len, flags, cookie);
}

void *
corq_conn_reserve(struct corq_core *core, struct corq_conn *conn, size_t *len)
{
	return corq_tcp_reserve(&core->eng, conn, len);
}

int
corq_conn_commit(struct corq_core *core, struct corq_conn *conn, size_t len, unsigned flags)
{
	corq_idle_asked(core, conn);
	return corq_tcp_commit(&core->eng, conn, len, flags);
}

int
corq_conn_peek(struct corq_core *core, struct corq_conn *conn, struct iovec *iov, int n)
{
	return corq_tcp_peek(&core->eng, conn, iov, n);
}

void
corq_conn_consume(struct corq_core *core, struct corq_conn *conn, size_t len)
{
	corq_tcp_consume(&core->eng, conn, len);
}

size_t
corq_conn_readable(const struct corq_conn *conn)
{
	return conn->rcvq_bytes;
}

size_t
corq_conn_unsent(const struct corq_conn *conn)
{
	return conn->sndq_head == CORQ_NONE ? 0 : conn->snd_end - conn->snd_una;
}

int
corq_splice(struct corq_core *core, struct corq_conn *from, struct corq_conn *to)
{
	return corq_tcp_splice(&core->eng, from, to);
}

int
corq_conn_shutdown(struct corq_core *core, struct corq_conn *conn)
{
	return corq_tcp_shutdown(&core->eng, conn);
}

int
corq_conn_shutdown_read(struct corq_core *core, struct corq_conn *conn)
{
	(void)core;
	return corq_tcp_shutdown_read(conn);
}

void
corq_conn_close_linger(struct corq_core *core, struct corq_conn *conn, uint64_t ms)
{
	corq_tcp_close_linger(&core->eng, conn, ms);
}

void
corq_conn_close(struct corq_core *core, struct corq_conn *conn)
{
	corq_tcp_close(&core->eng, conn);
}

void
corq_conn_abort(struct corq_core *core, struct corq_conn *conn)
{
	corq_tcp_abort(&core->eng, conn);
}

void
corq_conn_set_cork(struct corq_core *core, struct corq_conn *conn, bool on)
{
	corq_tcp_set_cork(&core->eng, conn, on);
}

void
corq_conn_set_nodelay(struct corq_core *core, struct corq_conn *conn, bool on)
{
	corq_tcp_set_nodelay(&core->eng, conn, on);
}

void
corq_conn_set_linger0(struct corq_conn *conn, bool on)
{
	if (on)
		conn->flags |= CORQ_CF_LINGER0;
	else
		conn->flags &= ~(uint32_t)CORQ_CF_LINGER0;
}

void
corq_conn_set_linger2(struct corq_conn *conn, int seconds)
{
	corq_tcp_set_linger2(conn, seconds);
}

void
corq_conn_hold(struct corq_conn *conn)
{
	conn->held = 1;
}

ssize_t
corq_conn_recv(struct corq_core *core, struct corq_conn *conn, void *buf, size_t len)
{
	return corq_tcp_recv(&core->eng, conn, buf, len);
}

ssize_t
corq_conn_send(struct corq_core *core, struct corq_conn *conn, const void *data, size_t len,
	unsigned flags)
{
	corq_idle_asked(core, conn);
	return corq_tcp_send(&core->eng, conn, data, len, flags);
}

int
corq_conn_error(struct corq_conn *conn)
{
	return corq_tcp_take_error(conn);
}

unsigned
corq_conn_ready(struct corq_core *core, const struct corq_conn *conn)
{
	return corq_tcp_ready(&core->eng, conn);
}

void
corq_conn_set_ops(struct corq_conn *conn, struct corq_core *core, const struct corq_ops *ops)
{
	conn->ops = (uint8_t)corq_ops_index(&core->eng, ops);
}

void
corq_conn_set_user(struct corq_conn *conn, void *user)
{
	conn->user = user;
}

void *
corq_conn_user(const struct corq_conn *conn)
{
	return conn->user;
}

void
corq_conn_set_deadline(struct corq_core *core, struct corq_conn *conn, uint64_t at_ns)
{
	corq_tcp_set_deadline(&core->eng, conn, at_ns);
}

corq_h
corq_conn_handle(struct corq_core *core, const struct corq_conn *conn)
{
	uint64_t word = corq_load_relaxed_u64(&core->eng.handles->slot[conn->slot].word);

	return word >> CORQ_H_SLOT_BITS << CORQ_H_SLOT_BITS | conn->slot;
}

struct corq_conn *
corq_conn_of(struct corq_core *core, corq_h h)
{
	uint32_t idx;

	if (corq_handle_lookup(core->eng.handles, h, &idx) < 0)
		return NULL;
	return corq_conn_at(&core->eng, idx);
}

const char *
corq_state_name(enum corq_state state)
{
	static const char *const name[] = {
		[CORQ_CLOSED] = "CLOSED",
		[CORQ_SYN_SENT] = "SYN_SENT",
		[CORQ_SYN_RCVD] = "SYN_RCVD",
		[CORQ_ESTABLISHED] = "ESTABLISHED",
		[CORQ_FIN_WAIT_1] = "FIN_WAIT_1",
		[CORQ_FIN_WAIT_2] = "FIN_WAIT_2",
		[CORQ_CLOSE_WAIT] = "CLOSE_WAIT",
		[CORQ_CLOSING] = "CLOSING",
		[CORQ_LAST_ACK] = "LAST_ACK",
		[CORQ_TIME_WAIT] = "TIME_WAIT",
	};

	_Static_assert(CORQ_ARRAY_LEN(name) == CORQ_STATE_COUNT, "a name for each state");
	return (unsigned)state < CORQ_STATE_COUNT ? name[state] : "?";
}

void
corq_conn_get_info(
	struct corq_core *core, const struct corq_conn *conn, struct corq_conn_info *info)
{
	corq_tcp_get_info(&core->eng, conn, info);
}
