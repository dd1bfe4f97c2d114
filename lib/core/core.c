/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.c - a core in given memory: sizes, set-up, addresses and ports.
 *
 * Called by the thread that sets up, before the core runs or when it has stopped.
 */
#include "core/core.h"

#include <errno.h>
#include <stdio.h>

static size_t
line_up(size_t n)
{
	return (n + CORQ_CACHELINE - 1) & ~(size_t)(CORQ_CACHELINE - 1);
}

size_t
corq_core_bytes(const struct corq_core_config *cfg)
{
	return line_up(sizeof(struct corq_core)) + line_up(corq_neigh_bytes(cfg->max_neigh)) +
	       corq_engine_bytes(&cfg->tcp);
}

static uint32_t
or_default(uint32_t v, uint32_t def)
{
	return v ? v : def;
}

static uint32_t
ms_to_ticks(uint64_t ms)
{
	uint64_t t = (ms * CORQ_NS_PER_MS + (1u << CORQ_TICK_SHIFT) - 1) >> CORQ_TICK_SHIFT;

	return t > INT32_MAX ? INT32_MAX : (uint32_t)t;
}

/* Pools follow the number of connections: untouched memory costs nothing, so they are generous. */
static void
resolve_pools(struct corq_tcp_config *out, const struct corq_config *in)
{
	uint64_t mb;

	out->max_conns = or_default(in->max_conns, 65536);
	/* Half is for pieces of 512 bytes: an answer of each connection may be on its way. */
	mb = or_default(in->chunk_bytes_mb, CORQ_MAX(out->max_conns >> 10, 16));
	out->max_time_wait =
		or_default(in->max_time_wait, CORQ_MIN(4ull * out->max_conns, 1u << 29));
	out->max_half_open = or_default(in->max_half_open, CORQ_MAX(out->max_conns / 4, 256));
	out->max_fin_wait2 = or_default(in->max_fin_wait2, CORQ_MAX(out->max_conns / 4, 256));
	out->n_work = out->max_conns;
	out->n_txrec = 2 * out->max_conns + 4096;
	out->n_chunk[CORQ_CHUNK_CLASS_PLAIN] = 2 * out->max_conns + 8192;
	out->n_chunk[CORQ_CHUNK_CLASS_SMALL] =
		(uint32_t)CORQ_MIN((mb << 19) / CORQ_CHUNK_SMALL, (1u << 30) - 1);
	out->n_chunk[CORQ_CHUNK_CLASS_LARGE] =
		(uint32_t)CORQ_MIN((mb << 19) / CORQ_CHUNK_LARGE, (1u << 30) - 1);
	out->held_max = CORQ_MAX(or_default(in->rx_frames, 8192) / 2, 64);
	out->n_dests = 1024;
	out->isn_cache = 65536;
}

static uint8_t
wscale_for(uint32_t buf)
{
	uint8_t ws = 0;

	while (ws < 14 && buf >> ws > 65535)
		ws++;
	return ws;
}

static int
check_knobs(const struct corq_tcp_config *c, char *err, size_t err_len)
{
	if (c->rto_min_us > c->rto_max_us || c->rto_init_us > c->rto_max_us) {
		snprintf(err, err_len,
			"rto_min_ms %u, rto_init_ms %u: above rto_max_ms %u; lower them or raise "
			"it",
			c->rto_min_us / 1000, c->rto_init_us / 1000, c->rto_max_us / 1000);
		return -EINVAL;
	}
	if (c->delack_ticks > ms_to_ticks(500)) {
		snprintf(err, err_len, "delack_ms: at most 500 (RFC 1122 4.2.3.2)");
		return -EINVAL;
	}
	if (c->port_first > c->port_last) {
		snprintf(err, err_len, "ports %u-%u: the first is above the last", c->port_first,
			c->port_last);
		return -EINVAL;
	}
	if (c->mtu < 576 || c->mtu > 9216) {
		snprintf(err, err_len, "mtu %u: give one from 576 to 9216", c->mtu);
		return -EINVAL;
	}
	if (c->rcv_buf > 1u << 30 || c->snd_buf > 1u << 30) {
		snprintf(err, err_len, "snd_buf, rcv_buf: at most 1 GiB (RFC 7323 2.3)");
		return -EINVAL;
	}
	if (c->max_conns > 1u << 26 || c->max_conns < 16) {
		snprintf(err, err_len, "max_conns %u: give 16 to 67108864 a core", c->max_conns);
		return -EINVAL;
	}
	return 0;
}

int
corq_tcp_config_resolve(struct corq_tcp_config *out, const struct corq_config *in, uint16_t mtu,
	char *err, size_t err_len)
{
	memset(out, 0, sizeof(*out));
	resolve_pools(out, in);
	out->snd_buf = or_default(in->snd_buf, 256 << 10);
	out->rcv_buf = or_default(in->rcv_buf, 256 << 10);
	out->rto_min_us = or_default(in->rto_min_ms, 200) * 1000;
	out->rto_init_us = or_default(in->rto_init_ms, 1000) * 1000;
	out->rto_max_us = or_default(in->rto_max_ms, 60000) * 1000;
	out->cork_min_us = 200000; /* as Linux: SEMANTICS of TCP_CORK(7), 200 ms */
	out->delack_ticks = ms_to_ticks(or_default(in->delack_ms, 40));
	out->fin_wait2_ticks = ms_to_ticks(or_default(in->fin_wait2_ms, 60000));
	out->tw_ticks = ms_to_ticks(or_default(in->tw_time_ms, 60000));
	out->reuse_delay_ticks = ms_to_ticks(or_default(in->reuse_delay_ms, 2));
	out->syn_retries = (uint8_t)CORQ_MIN(or_default(in->syn_retries, 7), 100u);
	out->synack_retries = 5;
	out->data_retries = (uint8_t)CORQ_MIN(or_default(in->data_retries, 15), 100u);
	out->timewait = (uint8_t)in->timewait;
	out->rfc1337 = !in->no_rfc1337;
	out->timestamps = !in->no_timestamps;
	out->sack = !in->no_sack;
	out->wscale = !in->no_wscale;
	out->rcv_wscale = out->wscale ? wscale_for(out->rcv_buf) : 0;
	if (!out->wscale)
		out->rcv_buf = CORQ_MIN(out->rcv_buf, 65535u);
	out->port_first = in->port_first ? in->port_first : 1024;
	out->port_last = in->port_last ? in->port_last : 65535;
	out->mtu = mtu;
	return check_knobs(out, err, err_len);
}

static void
init_owner(struct corq_core *core)
{
	struct corq_owner *o = &core->owner;
	uint64_t seed = core->cfg.seed ^ 0x6f776e6572ull; /* equal on all cores of the group */

	o->key.k0 = corq_splitmix64(&seed);
	o->key.k1 = corq_splitmix64(&seed);
	o->port_first = core->cfg.tcp.port_first;
	o->port_last = core->cfg.tcp.port_last;
	o->n_epochs = 1;
	o->epoch[0].n = (uint16_t)core->cfg.n;
	for (unsigned i = 0; i < core->cfg.n; i++)
		o->epoch[0].core[i] = (uint8_t)i;
}

static void
init_ports(struct corq_core *core)
{
	unsigned us = core->cfg.index - core->cfg.group;

	for (uint32_t p = core->cfg.tcp.port_first; p <= core->cfg.tcp.port_last; p++)
		if (corq_owner_port(&core->owner, (uint16_t)p, us))
			corq_ports_add(&core->eng.ports, (uint16_t)p);
}

static int
init_ranges(struct corq_core *core, char *err, size_t err_len)
{
	struct corq_engine *e = &core->eng;
	uint64_t n = 0;

	for (unsigned i = 0; i < core->cfg.n_ranges; i++) {
		e->ranges[i] = core->cfg.ranges[i];
		e->ranges[i].base_idx = (uint32_t)n;
		n += e->ranges[i].count;
	}
	if (n == 0 || n > UINT16_MAX) { /* records keep a 16-bit index */
		snprintf(err, err_len, "%llu local addresses: give 1 to 65535",
			(unsigned long long)n);
		return -EINVAL;
	}
	e->n_ranges = core->cfg.n_ranges;
	e->n_addrs = (uint32_t)n;
	return 0;
}

static void
mask_net(struct corq_addr *a, unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned left = bits > i * 8 ? bits - i * 8 : 0;

		if (left < 8)
			a->b[i] &= (uint8_t)(0xff00 >> left);
	}
}

static void
init_way_out(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;
	uint32_t caps = core->port->caps;

	e->neigh = &core->neigh;
	e->route.net = core->cfg.ranges[0].first;
	memset(&e->route.mask, 0xff, sizeof(e->route.mask));
	mask_net(&e->route.mask, core->cfg.prefix_len);
	mask_net(&e->route.net, core->cfg.prefix_len);
	e->route.has_gw = core->cfg.has_gw;
	e->route.gw = core->cfg.gw;
	memcpy(e->smac, core->port->mac, 6);
	e->emit_caps = (caps & CORQ_PORT_CAP_L4_CSUM ? CORQ_EMIT_L4_OFFLOAD : 0) |
		       (caps & CORQ_PORT_CAP_IP_CSUM ? CORQ_EMIT_IP_OFFLOAD : 0);
	e->cap_chain = caps & CORQ_PORT_CAP_CHAIN;
	e->tso_max = caps & CORQ_PORT_CAP_TSO ? core->port->tso_max : 0;
	core->parse = (struct corq_parse_ctx){
		.mtu = core->port->mtu, .trust_rx = caps & CORQ_PORT_CAP_TRUST_RX};
	memcpy(core->parse.mac, core->port->mac, 6);
}

int
corq_core_init(struct corq_core **out, void *mem, const struct corq_core_config *cfg,
	struct corq_port *port, char *err, size_t err_len)
{
	struct corq_core *core = mem;
	uint8_t *at = (uint8_t *)mem + line_up(sizeof(*core));
	uint64_t seed = cfg->seed + 0x9e3779b97f4a7c15ull * (cfg->index + 1), now;
	int rc;

	core->cfg = *cfg;
	core->port = port;
	now = port->ops->now_ns(port);
	corq_neigh_init(&core->neigh, at, cfg->max_neigh, corq_neigh_held_max(cfg->tx_frames),
		corq_splitmix64(&seed));
	at += line_up(corq_neigh_bytes(cfg->max_neigh));
	corq_engine_init(&core->eng, at, &cfg->tcp, corq_splitmix64(&seed),
		(uint32_t)(now >> CORQ_TICK_SHIFT));
	corq_engine_clock(&core->eng, now);
	rc = init_ranges(core, err, err_len);
	if (rc)
		return rc;
	init_owner(core);
	init_ports(core);
	init_way_out(core);
	corq_icmp_limit_init(&core->icmp_limit, CORQ_ICMP_RATE_DEFAULT, now);
	core->log_limit.per_s = 5;
	*out = core;
	return 0;
}

/* A free object's state is CLOSED, or no state at all (poison). */
static bool
is_left(const struct corq_conn *c)
{
	return (unsigned)c->state - 1 < CORQ_STATE_COUNT - 1 && !(c->ev & CORQ_EV_CLOSE);
}

/* Whose FIN has left needs no reset: its peer knows. */
bool
corq_core_reset_some(struct corq_core *core, uint32_t *from, uint32_t max)
{
	struct corq_engine *e = &core->eng;
	uint32_t n = 0;

	corq_tcp_end_queues(e);
	for (; *from < e->conns.n_fresh && n < max; ++*from) {
		struct corq_conn *c = corq_conn_at(e, *from);

		if (!is_left(c) || (c->flags & CORQ_CF_FIN_SENT))
			continue;
		corq_tcp_abort(e, c);
		n++;
	}
	return n > 0;
}

bool
corq_core_forget_some(struct corq_core *core, uint32_t *from, uint32_t max)
{
	struct corq_engine *e = &core->eng;
	uint32_t n = 0;

	corq_tcp_end_queues(e);
	for (; *from < e->conns.n_fresh && n < max; ++*from) {
		struct corq_conn *c = corq_conn_at(e, *from);

		if (!is_left(c))
			continue;
		corq_tcp_forget(e, c);
		n++;
	}
	return n > 0;
}

void
corq_core_drain(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;

	core->port->ops->free_bulk(core->port, core->tx, (uint16_t)core->n_tx);
	core->port->ops->free_bulk(core->port, e->txf, (uint16_t)e->n_txf);
	core->n_tx = e->n_txf = 0;
}
