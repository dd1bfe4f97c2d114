/* SPDX-License-Identifier: BSD-3-Clause */
/* load.c - client and server of the benches. See load.h. */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_WRITE 65536u
#define PENDING_MAX  1024u /* opens on their way, when there are many to make */

/* Byte i of what either side sends: by position, so that a loss or a shift is seen. */
static uint8_t
pattern(uint64_t i, uint8_t salt)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + salt);
}

static uint8_t *
pattern_new(size_t n, uint8_t salt)
{
	uint8_t *p = malloc(n ? n : 1);

	for (size_t i = 0; p && i < n; i++)
		p[i] = pattern(i, salt);
	return p;
}

/* ---- client ---- */

static void
client_failed(struct load_client *c, int error)
{
	if (c->failed++ == 0)
		c->first_error = error;
}

static void
client_ask(struct load_client *c, struct load_slot *s)
{
	s->got = 0;
	if (corq_conn_write(c->core, s->conn, c->out, c->o.request, 0) != (ssize_t)c->o.request)
		corq_conn_abort(c->core, s->conn);
}

static void
client_stream(struct load_client *c, struct load_slot *s)
{
	while (c->bytes < c->limit) {
		uint64_t left = c->limit - c->bytes;
		size_t want = left < STREAM_WRITE ? (size_t)left : STREAM_WRITE;
		ssize_t n = corq_conn_write(c->core, s->conn, c->out, want, 0);

		if (n <= 0)
			return;
		c->bytes += (uint64_t)n;
		if ((size_t)n < want)
			return;
	}
}

static void
client_on_open(struct corq_core *core, struct corq_conn *conn)
{
	struct load_slot *s = corq_conn_user(conn);
	struct load_client *c = s->owner;

	(void)core;
	c->opened++;
	if (c->o.kind == LOAD_STREAM)
		client_stream(c, s);
	else if (c->o.kind != LOAD_IDLE)
		client_ask(c, s);
}

static void
client_answered(struct load_client *c, struct load_slot *s)
{
	c->requests++;
	if (c->o.kind != LOAD_KEEPALIVE)
		return; /* the end of the stream is still to come */
	if (c->started < c->limit) {
		c->started++;
		client_ask(c, s);
	} /* else it rests until load_client_add */
}

static void
client_on_data(struct corq_core *core, struct corq_conn *conn)
{
	struct load_slot *s = corq_conn_user(conn);
	struct load_client *c = s->owner;
	size_t total = 0;
	struct iovec iov[16];
	int n;

	while ((n = corq_conn_peek(core, conn, iov, 16)) > 0) {
		size_t len = 0;

		for (int i = 0; i < n; i++) {
			if (c->o.check && (s->got + len + iov[i].iov_len > c->o.response ||
						  memcmp(c->expect + s->got + len, iov[i].iov_base,
							  iov[i].iov_len) != 0))
				c->wrong++;
			len += iov[i].iov_len;
		}
		corq_conn_consume(core, conn, len);
		s->got += len;
		total += len;
	}
	c->bytes += total;
	if (s->got == c->o.response)
		client_answered(c, s);
}

static void
client_on_sent(struct corq_core *core, struct corq_conn *conn)
{
	struct load_slot *s = corq_conn_user(conn);

	(void)core;
	if (s->owner->o.kind == LOAD_STREAM)
		client_stream(s->owner, s);
}

static void
client_on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	struct load_slot *s = corq_conn_user(conn);
	struct load_client *c = s->owner;

	if (c->o.kind == LOAD_CONN && s->got != c->o.response)
		c->wrong++;
	corq_conn_close(core, conn);
}

static void
client_on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct load_slot *s = corq_conn_user(conn);
	struct load_client *c = s->owner;

	(void)core;
	if (reason == 0)
		c->done++;
	else
		client_failed(c, reason);
	s->conn = NULL;
	s->next_free = c->free;
	c->free = s;
	c->live--;
}

static const struct corq_ops client_ops = {
	.on_open = client_on_open,
	.on_data = client_on_data,
	.on_peer_fin = client_on_peer_fin,
	.on_close = client_on_close,
};

/* Apart, since an on_sent that does nothing is still called. */
static const struct corq_ops stream_ops = {
	.on_open = client_on_open,
	.on_data = client_on_data,
	.on_sent = client_on_sent,
	.on_peer_fin = client_on_peer_fin,
	.on_close = client_on_close,
};

static bool
client_open(struct load_client *c)
{
	struct load_slot *s = c->free;
	struct corq_connect_opts o = {
		.raddr = c->o.server,
		.rport = c->o.port,
		.ops = c->o.kind == LOAD_STREAM ? &stream_ops : &client_ops,
		.user = s,
	};

	if (corq_core_connect(c->core, &o, &s->conn) != 0) {
		c->refused++;
		return false;
	}
	c->free = s->next_free;
	s->got = 0;
	c->live++;
	return true;
}

/* Whether one more connection is wanted; a connection of keepalive does many requests. */
static bool
client_wants(const struct load_client *c)
{
	if (c->hold || !c->free)
		return false;
	if (c->o.kind == LOAD_STREAM)
		return c->live == 0 && c->bytes < c->limit;
	if (c->o.kind == LOAD_IDLE && c->started - c->opened - c->failed >= PENDING_MAX)
		return false;
	return c->started < c->limit;
}

uint64_t
load_client_hook(struct corq_core *core, void *arg, uint64_t now_ns)
{
	struct load_client *c = arg;
	uint32_t n = 0, max = c->o.open_max ? c->o.open_max : 256;

	(void)core;
	while (n < max && client_wants(c)) {
		if (!client_open(c))
			break;
		if (c->o.kind != LOAD_STREAM)
			c->started++;
		n++;
	}
	return client_wants(c) ? now_ns + 1 : 0;
}

void
load_client_add(struct load_client *c, uint64_t n)
{
	c->limit += n;
	for (uint32_t i = 0; i < c->o.slots; i++) {
		struct load_slot *s = &c->slots[i];

		if (!s->conn)
			continue;
		if (c->o.kind == LOAD_STREAM) {
			client_stream(c, s);
		} else if (c->o.kind == LOAD_KEEPALIVE && c->started < c->limit) {
			c->started++;
			client_ask(c, s);
		}
	}
}

bool
load_client_idle(const struct load_client *c)
{
	switch (c->o.kind) {
	case LOAD_CONN:
		return c->done + c->failed == c->limit && c->live == 0;
	case LOAD_KEEPALIVE:
		return c->requests + c->failed >= c->limit;
	case LOAD_STREAM:
		return c->bytes == c->limit &&
		       (!c->slots[0].conn || corq_conn_unsent(c->slots[0].conn) == 0);
	case LOAD_IDLE:
		return c->opened + c->failed == c->limit;
	}
	return true;
}

void
load_client_close_all(struct load_client *c)
{
	c->hold = true;
	for (uint32_t i = 0; i < c->o.slots; i++)
		if (c->slots[i].conn)
			corq_conn_close(c->core, c->slots[i].conn);
}

int
load_client_init(struct load_client *c, struct corq_core *core, const struct load_opts *o)
{
	size_t out = o->kind == LOAD_STREAM ? STREAM_WRITE : o->request;

	*c = (struct load_client){.o = *o, .core = core};
	c->slots = calloc(o->slots, sizeof(*c->slots));
	c->out = pattern_new(out, 1);
	c->expect = pattern_new(o->response, 2);
	if (!c->slots || !c->out || !c->expect)
		return -ENOMEM;
	for (uint32_t i = o->slots; i-- > 0;) {
		c->slots[i].owner = c;
		c->slots[i].next_free = c->free;
		c->free = &c->slots[i];
	}
	corq_core_set_hook(core, load_client_hook, c);
	return 0;
}

void
load_client_end(struct load_client *c)
{
	free(c->slots);
	free(c->out);
	free(c->expect);
}

/* ---- server ---- */

static struct load_server *
server_of(const struct corq_conn *conn)
{
	return corq_conn_user(conn);
}

static void
server_on_open(struct corq_core *core, struct corq_conn *conn)
{
	(void)core;
	server_of(conn)->accepted++;
}

/* Takes len bytes from the front; they must be the request. */
static void
server_take(struct load_server *s, struct corq_conn *conn, size_t len)
{
	size_t at = 0;
	struct iovec iov[16];

	if (s->o.check) {
		int n = corq_conn_peek(s->core, conn, iov, 16);

		for (int i = 0; i < n && at < len; i++) {
			size_t part = iov[i].iov_len < len - at ? iov[i].iov_len : len - at;

			if (memcmp(s->expect + at, iov[i].iov_base, part) != 0)
				s->wrong++;
			at += part;
		}
	}
	corq_conn_consume(s->core, conn, len);
	s->bytes += len;
}

static void
server_on_data(struct corq_core *core, struct corq_conn *conn)
{
	struct load_server *s = server_of(conn);

	if (s->o.kind == LOAD_STREAM) {
		size_t len = corq_conn_readable(conn);

		corq_conn_consume(core, conn, len);
		s->bytes += len;
		return;
	}
	while (corq_conn_readable(conn) >= s->o.request) {
		server_take(s, conn, s->o.request);
		s->requests++;
		if (corq_conn_write(core, conn, s->out, s->o.response, 0) !=
			(ssize_t)s->o.response) {
			corq_conn_abort(core, conn);
			return;
		}
		if (s->o.kind == LOAD_CONN) {
			corq_conn_close(core, conn);
			return;
		}
	}
}

static void
server_on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	corq_conn_close(core, conn);
}

static void
server_on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct load_server *s = server_of(conn);

	(void)core;
	s->closed++;
	if (reason != 0 && s->failed++ == 0)
		s->first_error = reason;
}

static const struct corq_ops server_ops = {
	.on_open = server_on_open,
	.on_data = server_on_data,
	.on_peer_fin = server_on_peer_fin,
	.on_close = server_on_close,
};

int
load_server_init(struct load_server *s, struct corq_core *core, const struct load_opts *o)
{
	struct corq_listen_opts l = {.port = o->port, .ops = &server_ops, .user = s};
	struct corq_listener *listener;

	*s = (struct load_server){.o = *o, .core = core};
	s->out = pattern_new(o->response, 2);
	s->expect = pattern_new(o->request, 1);
	if (!s->out || !s->expect)
		return -ENOMEM;
	return corq_core_listen(core, &l, &listener);
}

void
load_server_end(struct load_server *s)
{
	free(s->out);
	free(s->expect);
}
