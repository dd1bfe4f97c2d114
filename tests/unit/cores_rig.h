/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cores_rig.h - up to four cores of one group on memory ports, and a peer that is a core of ours
 * too. What the peer sends arrives on a core chosen at random. The group serves an echo; the test
 * drives the peer. Epochs of ownership are changed by new_epoch. Virtual time, one thread.
 */
#ifndef CORES_RIG_H
#define CORES_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "core/handoff.h"
#include "net/wire.h"
#include "testcore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CORES 4
#define CONNS 32
#define PORT  80

struct rig {
	struct testcore us[CORES], peer;
	unsigned n;
	void *rings;
	struct corq_rand rand;
	unsigned n_to_peer, n_to_us; /* packets */
	unsigned rst_from[CORES];
	unsigned n_open, n_closed, moved, bad_reason;
	uint64_t home[UINT16_MAX + 1]; /* core + 1 of each connection, by the peer's port */
	struct memport_pkt *kept;      /* the peer's last FIN */
	bool keep_acks;                /* what the peer sends stays on the wire, but for SYNs */
	struct memport_pkt *held[CONNS];
	unsigned n_held;
};

static struct rig *rig;

/* ---- the server: echo, close after the peer's FIN ---- */

static void
srv_open(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info i;

	corq_conn_get_info(core, conn, &i);
	rig->home[i.rport] = corq_core_index(core) + 1;
	rig->n_open++;
}

static void
srv_data(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info i;
	struct iovec v;

	corq_conn_get_info(core, conn, &i);
	rig->moved += rig->home[i.rport] != corq_core_index(core) + 1;
	while (corq_conn_peek(core, conn, &v, 1)) {
		corq_conn_write(core, conn, v.iov_base, v.iov_len, 0);
		corq_conn_consume(core, conn, v.iov_len);
	}
}

static void
srv_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	(void)core;
	(void)conn;
	rig->bad_reason += reason != 0;
	rig->n_closed++;
}

static const struct corq_ops srv = {
	.on_open = srv_open,
	.on_data = srv_data,
	.on_peer_fin = corq_conn_close,
	.on_close = srv_close,
};

static void
peer_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	(void)core;
	*(int *)corq_conn_user(conn) = reason ? reason : 1;
}

static const struct corq_ops cli = {.on_close = peer_close};

/* ---- the wire ---- */

static uint8_t
tcp_flags(const struct memport_pkt *p)
{
	return p->len >= 54 && p->bytes[23] == 6 ? p->bytes[47] : 0;
}

#define inject(to, p) assert_true(memport_inject((to)->mp, (p)->bytes, (p)->len))

static bool
carry(struct rig *r)
{
	struct memport_pkt *p;
	bool any = false;

	for (unsigned i = 0; i < r->n; i++) {
		while ((p = testcore_take(&r->us[i])) != NULL) {
			r->rst_from[i] += (tcp_flags(p) & CORQ_TH_RST) != 0;
			inject(&r->peer, p);
			free(p);
			any = true;
			r->n_to_peer++;
		}
	}
	while ((p = testcore_take(&r->peer)) != NULL) {
		any = true;
		if (tcp_flags(p) & CORQ_TH_FIN) {
			free(r->kept);
			r->kept = malloc(sizeof(*p) + p->len);
			memcpy(r->kept, p, sizeof(*p) + p->len);
		}
		if (r->keep_acks && !(tcp_flags(p) & CORQ_TH_SYN)) {
			assert_true(r->n_held < CONNS);
			r->held[r->n_held++] = p;
			continue;
		}
		inject(&r->us[corq_rand_below(&r->rand, r->n)], p);
		free(p);
		r->n_to_us++;
	}
	return any;
}

/* Turns of all until nothing moves any more. */
static void
run(struct rig *r)
{
	for (int i = 0; i < 1000; i++) {
		bool any = false;

		for (unsigned c = 0; c < r->n; c++)
			any |= testcore_turn(&r->us[c]);
		any |= testcore_turn(&r->peer);
		any |= carry(r);
		if (!any)
			return;
	}
	fail_msg("it never comes to rest");
}

/* ---- set-up ---- */

static void
init_core(struct testcore *tc, struct testcore_opts *o)
{
	char err[256];

	o->cfg.rto_init_ms = 60000; /* nothing is sent twice while the test looks */
	o->cfg.rto_min_ms = 60000;
	o->cfg.timewait = CORQ_TW_LAB;
	if (testcore_init(tc, o, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

static void
start(struct rig *r, unsigned n, uint64_t seed)
{
	struct corq_core *cores[CORES];
	struct corq_listen_opts l = {.port = PORT, .ops = &srv};
	struct testcore_opts o = {.addr = "10.0.0.2"};
	struct corq_listener *listener;

	memset(r, 0, sizeof(*r));
	rig = r;
	r->n = n;
	corq_rand_seed(&r->rand, seed);
	memcpy(o.port.mac, TESTCORE_PEER_MAC, 6);
	init_core(&r->peer, &o);
	testcore_neighbour(&r->peer, "10.0.0.1", (const uint8_t[6]){2, 0, 0, 0, 0, 1});
	for (unsigned i = 0; i < n; i++) {
		o = (struct testcore_opts){.index = i, .n = n, .seed = seed};
		init_core(&r->us[i], &o);
		testcore_neighbour(&r->us[i], "10.0.0.2", TESTCORE_PEER_MAC);
		cores[i] = r->us[i].core;
	}
	r->rings = aligned_alloc(CORQ_CACHELINE, corq_handoff_bytes(n));
	corq_handoff_join(cores, n, r->rings);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(corq_core_listen(cores[i], &l, &listener), 0);
	run(r);
}

static void
end(struct rig *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		assert_null(memport_violation(r->us[i].mp));
		testcore_end(&r->us[i]);
	}
	assert_null(memport_violation(r->peer.mp));
	testcore_end(&r->peer);
	free(r->rings);
	free(r->kept);
}

/* A new epoch on all cores: owners in this order. */
static void
new_epoch(struct rig *r, unsigned n, const uint8_t *core)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct corq_owner *o = &r->us[i].core->owner;

		memmove(&o->epoch[1], &o->epoch[0], (CORQ_EPOCHS - 1) * sizeof(o->epoch[0]));
		o->n_epochs = (uint16_t)CORQ_MIN(o->n_epochs + 1, CORQ_EPOCHS);
		o->epoch[0] = (struct corq_epoch){.n = (uint16_t)n};
		memcpy(o->epoch[0].core, core, n);
	}
}

static void
random_epoch(struct rig *r)
{
	uint8_t core[CORES];
	unsigned n = 1 + (unsigned)corq_rand_below(&r->rand, r->n);

	for (unsigned i = 0; i < n; i++)
		core[i] = (uint8_t)corq_rand_below(&r->rand, r->n);
	new_epoch(r, n, core);
}

/* ---- connections of the peer's ---- */

struct end {
	struct corq_conn *conn;
	uint16_t port;
	int closed; /* reason, or 1 */
};

static void
open_one(struct rig *r, struct end *e)
{
	struct corq_connect_opts o = {
		.raddr = testcore_addr("10.0.0.1"), .rport = PORT, .ops = &cli, .user = &e->closed};
	struct corq_conn_info i;

	e->closed = 0;
	assert_int_equal(corq_core_connect(r->peer.core, &o, &e->conn), 0);
	corq_conn_get_info(r->peer.core, e->conn, &i);
	e->port = i.lport;
}

/* Which core a tuple belongs to now. */
static unsigned
owner(const struct rig *r, uint16_t port)
{
	struct corq_key key = {.raddr = testcore_addr("10.0.0.2"),
		.laddr = testcore_addr("10.0.0.1"),
		.rport = port,
		.lport = PORT};

	return corq_owner_of(&r->us[0].core->owner, &key, 0);
}

/* Opened now: on the present owner, wherever the SYN came in. */
static void
open_all(struct rig *r, struct end *e, unsigned n)
{
	unsigned before = r->n_open;

	for (unsigned i = 0; i < n; i++)
		open_one(r, &e[i]);
	run(r);
	assert_int_equal(r->n_open, before + n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(r->home[e[i].port], owner(r, e[i].port) + 1);
}

/* What is sent comes back, and the connection is where it was. */
static void
talk(struct rig *r, struct end *e, unsigned n)
{
	char text[32], back[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "to %u: %llu", e[i].port,
			(unsigned long long)corq_rand_u64(&r->rand) % 1000);
		assert_int_equal(corq_conn_write(r->peer.core, e[i].conn, text, sizeof(text), 0),
			sizeof(text));
		run(r);
		for (size_t at = 0; at < sizeof(back);) {
			struct iovec v;

			assert_int_equal(corq_conn_peek(r->peer.core, e[i].conn, &v, 1), 1);
			memcpy(back + at, v.iov_base, v.iov_len);
			at += v.iov_len;
			corq_conn_consume(r->peer.core, e[i].conn, v.iov_len);
		}
		assert_string_equal(back, text);
	}
	assert_int_equal(r->moved, 0);
}

static unsigned
resets(const struct rig *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n; i++)
		n += r->rst_from[i];
	return n + (unsigned)r->peer.core->eng.stats.rst_out;
}

/* Peer first; ours answers with its own FIN and is gone; the peer keeps TIME_WAIT. */
static void
close_all(struct rig *r, struct end *e, unsigned n)
{
	unsigned before = r->n_closed;

	for (unsigned i = 0; i < n; i++)
		corq_conn_close(r->peer.core, e[i].conn);
	run(r);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(e[i].closed, 1);
	assert_int_equal(r->n_closed, before + n);
	assert_int_equal(r->bad_reason, 0);
}

static uint64_t
handed(const struct rig *r)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < r->n; i++) {
		n += r->us[i].core->eng.stats.handoff_in;
		assert_int_equal(r->us[i].core->eng.stats.handoff_dropped, 0);
	}
	return n;
}

#endif
