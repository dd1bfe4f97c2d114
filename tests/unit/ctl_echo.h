/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctl_echo.h - what runs on the cores of test_ctl.c, on public headers only: clients that send a
 * pattern and compare what comes back, servers that echo. Every connection ends in order, client
 * first. A failure is counted, because nobody may leave a thread that is not the test's own.
 */
#ifndef CTL_ECHO_H
#define CTL_ECHO_H

#include "base/atomic.h"
#include <corq/instance.h>

#define CONNS 300  /* a client core */
#define SLOTS 24   /* at a time */
#define BYTES 6000 /* a connection, at most */

/* ---- the programs on the cores ---- */

struct slot { /* a connection's */
	struct client *client;
	uint32_t seed, want, sent, got;
};

struct client { /* of one core; the test reads it after the join */
	struct app *app;
	struct slot slot[SLOTS];
	unsigned n_free, n_opened, n_ended, bad;
	struct slot *free[SLOTS];
};

struct app {
	struct corq_instance *inst;
	struct corq_addr server;
	unsigned n_servers;
	_Atomic uint32_t listening;
	struct client client[2];
	unsigned server_bad[4];
};

static uint8_t
pattern(uint32_t seed, uint32_t at)
{
	return (uint8_t)((seed + at) * 2654435761u >> 24);
}

static void
client_send(struct corq_core *core, struct corq_conn *conn)
{
	struct slot *s = corq_conn_user(conn);
	uint8_t bytes[2000];

	while (s->sent < s->want) {
		uint32_t n = CORQ_MIN(s->want - s->sent, sizeof(bytes));
		ssize_t taken;

		for (uint32_t i = 0; i < n; i++)
			bytes[i] = pattern(s->seed, s->sent + i);
		taken = corq_conn_write(core, conn, bytes, n, 0);
		if (taken <= 0)
			return; /* on_sent goes on */
		s->sent += (uint32_t)taken;
	}
	corq_conn_shutdown(core, conn);
}

static void
client_data(struct corq_core *core, struct corq_conn *conn)
{
	struct slot *s = corq_conn_user(conn);
	struct iovec v[8];
	int n;

	while ((n = corq_conn_peek(core, conn, v, 8)) > 0) {
		size_t len = 0;

		for (int i = 0; i < n; i++) {
			const uint8_t *p = v[i].iov_base;

			for (size_t j = 0; j < v[i].iov_len; j++)
				s->client->bad += p[j] != pattern(s->seed, s->got++);
			len += v[i].iov_len;
		}
		corq_conn_consume(core, conn, len);
	}
}

static void
client_fin(struct corq_core *core, struct corq_conn *conn)
{
	struct slot *s = corq_conn_user(conn);

	s->client->bad += s->got != s->want;
	corq_conn_close(core, conn);
}

static void
client_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct slot *s = corq_conn_user(conn);
	struct client *c = s->client;

	(void)core;
	c->bad += reason != 0 || s->got != s->want;
	c->free[c->n_free++] = s;
	c->n_ended++;
}

static const struct corq_ops client_ops = {
	.on_open = client_send,
	.on_sent = client_send,
	.on_data = client_data,
	.on_peer_fin = client_fin,
	.on_close = client_close,
};

/* Opens what is free, once all servers listen. */
static uint64_t
client_hook(struct corq_core *core, void *arg, uint64_t now)
{
	struct client *c = arg;

	(void)now;
	if (corq_load_acquire_u32(&c->app->listening) < c->app->n_servers)
		return corq_core_now(core) + 1;
	while (c->n_free && c->n_opened < CONNS) {
		struct slot *s = c->free[c->n_free - 1];
		struct corq_connect_opts o = {
			.raddr = c->app->server, .rport = 80, .ops = &client_ops, .user = s};
		struct corq_conn *conn;

		s->seed = corq_core_index(core) << 20 | c->n_opened;
		s->want = 1 + s->seed * 2654435761u % BYTES;
		s->sent = s->got = 0;
		if (corq_core_connect(core, &o, &conn) < 0) {
			c->bad++;
			return 0;
		}
		c->n_free--;
		c->n_opened++;
	}
	return 0;
}

static void
server_echo(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info info;
	struct iovec v[8];
	int n;

	while ((n = corq_conn_peek(core, conn, v, 8)) > 0) {
		ssize_t taken = 0, len = 0;

		for (int i = 0; i < n && taken == len; i++) {
			ssize_t k = corq_conn_write(core, conn, v[i].iov_base, v[i].iov_len, 0);

			len += (ssize_t)v[i].iov_len;
			taken += k > 0 ? k : 0;
		}
		corq_conn_consume(core, conn, (size_t)taken);
		if (taken < len)
			return; /* on_sent goes on */
	}
	corq_conn_get_info(core, conn, &info);
	if (info.peer_fin)
		corq_conn_close(core, conn);
}

static void
server_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct app *app = corq_conn_user(conn);

	app->server_bad[corq_core_index(core)] += reason != 0;
}

static const struct corq_ops server_ops = {
	.on_data = server_echo,
	.on_sent = server_echo,
	.on_peer_fin = server_echo,
	.on_close = server_close,
};

static int
serve(struct corq_core *core, struct app *app)
{
	struct corq_listen_opts o = {
		.addr = app->server, .port = 80, .ops = &server_ops, .user = app};
	struct corq_listener *l;
	int rc = corq_core_listen(core, &o, &l);

	corq_rmw_add_seqcst_u32(&app->listening, 1);
	return rc;
}

static void
load(struct corq_core *core, struct app *app)
{
	struct client *c = &app->client[corq_core_index(core)];

	c->app = app;
	for (unsigned i = 0; i < SLOTS; i++) {
		c->slot[i].client = c;
		c->free[c->n_free++] = &c->slot[i];
	}
	corq_core_set_hook(core, client_hook, c);
}

static int
on_core(struct corq_core *core, void *arg)
{
	struct app *app = arg;

	if (corq_core_side(core) == CORQ_SIDE_A) {
		load(core, app);
		return 0;
	}
	return serve(core, app);
}

#endif
