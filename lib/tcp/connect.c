/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - an active open: which tuple it gets, and the connection in SYN_SENT. The body of
 * corq_core_connect; the core's thread only.
 *
 * Local addresses are taken in turn, ports along the destination's walk (ports.h). Exhaustion is
 * known without a walk where the mode allows no reuse; else the walk is bounded by REUSE_TRIES.
 */
#include "tcp/internal.h"

#include <errno.h>

/* The walk comes to the longest waiting tuples first: if these may not be reused, none may. */
#define REUSE_TRIES 64u

static bool
is_any(const struct corq_addr *a)
{
	return (a->q[0] | a->q[1]) == 0;
}

/* Whether the tuple is free for us now; takes over a waiting one where the mode allows. */
static bool
tuple_free(struct corq_engine *e, const struct corq_key *key, uint64_t hash, uint32_t *isn_above)
{
	uint32_t val;

	/* A listener's port belongs to whoever the owner function says, not to this core's
	 * connects. */
	if (corq_listener_find(e, key))
		return false;
	val = corq_engine_lookup(e, key, hash);
	if (val == CORQ_NONE)
		return true;
	return (val & CORQ_VAL_RECORD) &&
	       corq_time_wait_reuse(e, val & ~CORQ_VAL_RECORD, isn_above);
}

struct hashes {
	uint64_t table, isn;
};

static struct hashes
hash_tuple(const struct corq_engine *e, const struct corq_key *key)
{
	return (struct hashes){corq_engine_hash(e, key), corq_isn_hash(&e->isn, key)};
}

/* The next port of the destination's walk, into key; returns the tuple's hashes. */
static struct hashes
next_port(struct corq_engine *e, struct corq_dest *d, struct corq_key *key)
{
	if (CORQ_LIKELY(d->ahead)) {
		key->lport = d->ahead;
		d->ahead = 0;
		return (struct hashes){d->ahead_hash, d->ahead_isn};
	}
	key->lport = corq_ports_next(&e->ports, d);
	return hash_tuple(e, key);
}

/* The table is large and tuples are scattered on purpose: the lines that the next connect to this
 * destination would miss are fetched during this one. Not for the shared entry (never live). */
static void
look_ahead(struct corq_engine *e, struct corq_dest *d, struct corq_key key)
{
	struct hashes h;

	if (!d->live)
		return;
	h = next_port(e, d, &key);
	d->ahead = key.lport;
	d->ahead_hash = h.table;
	d->ahead_isn = h.isn;
	corq_table_prefetch(&e->table, h.table);
}

/* A free port towards the destination from laddr; false when there is none. */
static bool
choose_port(struct corq_engine *e, struct corq_key *key, uint32_t laddr, struct hashes *hash,
	uint32_t *isn_above)
{
	struct corq_dest *d = corq_ports_dest(&e->ports, &key->raddr, key->rport, laddr);
	uint32_t tries = e->ports.n;

	if (corq_ports_free(&e->ports, d) == 0) {
		if (e->cfg.timewait == CORQ_TW_STRICT || e->ports.n_waiting == 0)
			return false;
		tries = CORQ_MIN(tries, REUSE_TRIES);
	}
	while (tries--) {
		*hash = next_port(e, d, key);
		if (tuple_free(e, key, hash->table, isn_above)) {
			corq_ports_take(&e->ports, d);
			look_ahead(e, d, *key);
			return true;
		}
	}
	return false;
}

/* Local addresses are taken in turn; all are tried before the open is refused. */
static int
choose_tuple(struct corq_engine *e, const struct corq_connect_opts *o, struct corq_key *key,
	uint32_t *laddr, struct hashes *hash, uint32_t *isn_above)
{
	uint32_t n = is_any(&o->laddr) ? e->n_addrs : 1;

	for (uint32_t i = 0; i < n; i++) {
		if (is_any(&o->laddr)) {
			*laddr = corq_connect_addr(e, &o->raddr);
			if (*laddr == CORQ_NONE)
				break;
			key->laddr = corq_engine_laddr_at(e, *laddr);
		} else {
			*laddr = corq_engine_laddr(e, &o->laddr);
			if (*laddr == CORQ_NONE)
				return -EADDRNOTAVAIL;
			key->laddr = o->laddr;
		}
		if (o->lport) {
			key->lport = o->lport;
			*hash = hash_tuple(e, key);
			return tuple_free(e, key, hash->table, isn_above) ? 0 : -EADDRINUSE;
		}
		if (choose_port(e, key, *laddr, hash, isn_above))
			return 0;
	}
	e->ports.n_refused++;
	return -EADDRNOTAVAIL;
}

/* The next local address for connects, of the peer's family; CORQ_NONE when there is none. */
uint32_t
corq_connect_addr(struct corq_engine *e, const struct corq_addr *raddr)
{
	bool v4 = corq_addr_is_v4(raddr);

	for (unsigned tried = 0; tried <= e->n_ranges; tried++) {
		for (unsigned i = 0; i < e->n_ranges; i++) {
			const struct corq_range *r = &e->ranges[i];

			if (e->next_laddr - r->base_idx >= r->count)
				continue;
			if (r->connect && corq_addr_is_v4(&r->first) == v4) {
				uint32_t idx = e->next_laddr;

				e->next_laddr = (idx + 1) % e->n_addrs;
				return idx;
			}
			e->next_laddr = (r->base_idx + r->count) % e->n_addrs;
			break;
		}
	}
	return CORQ_NONE;
}

int
corq_tcp_connect(struct corq_engine *e, const struct corq_connect_opts *o, struct corq_conn **out)
{
	struct corq_key key = {.raddr = o->raddr, .rport = o->rport};
	uint32_t laddr = CORQ_NONE, isn_above = 0, idx, iss;
	struct corq_conn *c;
	struct hashes hash;
	int err;

	if (!corq_next_hop(e, &o->raddr))
		return -ENETUNREACH;
	if (e->conns.n_free == 0)
		return -ENOBUFS;
	err = choose_tuple(e, o, &key, &laddr, &hash, &isn_above);
	if (err)
		return err;
	idx = corq_conn_new(e, &key, hash.table, laddr, &err);
	if (idx == CORQ_NONE) {
		if (!o->lport)
			corq_ports_give(&e->ports, &key.raddr, key.rport, laddr, false);
		return -err;
	}
	c = corq_conn_at(e, idx);
	iss = corq_isn_of(&e->isn, hash.isn, e->now_ns, &c->ts_off);
	if (isn_above && corq_seq_lt(iss, isn_above))
		iss = isn_above;
	c->snd_una = c->snd_nxt = iss;
	c->snd_end = iss + 1;
	c->state = CORQ_SYN_SENT;
	c->flags = CORQ_CF_SYN | (o->lport ? 0 : CORQ_CF_PORT_HELD) |
		   (o->nodelay ? CORQ_CF_NODELAY : 0) | (o->cork ? CORQ_CF_CORK : 0);
	c->ops = (uint8_t)corq_ops_index(e, o->ops);
	c->user = o->user;
	c->mss = corq_mss_effective(e, &c->laddr, 0, false);
	e->stats.conn_opened_active++;
	corq_conn_mark_urgent(e, c);
	*out = c;
	return 0;
}
