/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * params.c - what a seed means: links, pools, knobs and habits of one run. Values come from the
 * ranges that the options name, and from the seed alone otherwise, so that a seed with the same
 * options is the same run.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

/* Uniform in [lo, hi]. */
static uint64_t
between(struct corq_rand *r, uint64_t lo, uint64_t hi)
{
	return lo + corq_rand_below(r, hi - lo + 1);
}

/* Spread evenly over the orders of magnitude from lo to lo * 2^doublings. */
static uint64_t
magnitude(struct corq_rand *r, uint64_t lo, unsigned doublings)
{
	uint64_t base = lo << corq_rand_below(r, doublings);

	return base + corq_rand_below(r, base);
}

static bool
one_in(struct corq_rand *r, uint32_t n)
{
	return corq_rand_below(r, n) == 0;
}

/* A value of the range as parts of SIM_CHANCE_WHOLE per 100 of the range's unit. */
static uint32_t
parts(struct corq_rand *r, const struct sim_range *g)
{
	uint64_t lo = (uint64_t)(g->lo * 100), hi = (uint64_t)(g->hi * 100);
	uint64_t v = between(r, lo, hi > lo ? hi : lo);

	return (uint32_t)v;
}

static void
draw_link(struct corq_rand *r, struct sim_link_params *l, const struct sim_options *o)
{
	l->rate_bps = o->rate_mbps.set ? between(r, (uint64_t)(o->rate_mbps.lo * 1e6),
						 (uint64_t)(o->rate_mbps.hi * 1e6))
				       : magnitude(r, 4000000, 8);
	l->delay_ns = 1000 * (o->delay_us.set ? between(r, (uint64_t)o->delay_us.lo,
							(uint64_t)o->delay_us.hi)
					      : magnitude(r, 10, 13));
	l->queue_bytes = magnitude(r, 16000, 7);
	l->reorder_ns = magnitude(r, 100000, 9);
	l->loss = parts(r, &o->loss);
	l->reorder = parts(r, &o->reorder);
	l->dup = parts(r, &o->dup);
	l->corrupt = parts(r, &o->corrupt);
	l->outage = one_in(r, 6) && l->loss > 0 ? 200 : 0;
}

/* Nothing goes wrong here, and nothing is late: a retransmission is a fault. */
static void
make_clean(struct corq_rand *r, struct sim_params *p)
{
	p->clean = true;
	p->pause = p->tx_room = 0;
	p->tight = false;
	p->gap_ns = CORQ_MIN(p->gap_ns, 50000u);
	for (int i = 0; i < 2; i++) {
		struct sim_link_params *l = &p->link[i];

		l->loss = l->reorder = l->dup = l->corrupt = l->outage = 0;
		l->rate_bps = CORQ_MAX(l->rate_bps, 400000000u);
		l->delay_ns = CORQ_MIN(l->delay_ns, 40 * CORQ_NS_PER_MS);
		l->queue_bytes = 1u << 30;
		p->cfg[i].delack_ms = (uint32_t)between(r, 5, 40);
	}
}

static uint32_t
draw_buffer(struct corq_rand *r)
{
	return one_in(r, 4) ? (uint32_t)between(r, 4096, 16384) : (uint32_t)magnitude(r, 8192, 5);
}

static void
draw_config(struct corq_rand *r, struct corq_config *c, const struct sim_params *p)
{
	static const uint32_t delack[] = {1, 10, 40, 40, 200, 500};
	uint64_t life_ns = 0;

	for (int i = 0; i < 2; i++) {
		const struct sim_link_params *l = &p->link[i];
		uint64_t ns = l->delay_ns + l->reorder_ns +
			      l->queue_bytes * 8 * CORQ_NS_PER_S / l->rate_bps;

		life_ns = CORQ_MAX(life_ns, ns);
	}
	memset(c, 0, sizeof(*c));
	c->seed = corq_rand_u64(r) | 1;
	c->max_conns = 256;
	c->max_time_wait = 256;
	c->max_half_open = c->max_fin_wait2 = 128;
	c->snd_buf = draw_buffer(r);
	c->rcv_buf = draw_buffer(r);
	c->delack_ms = delack[corq_rand_below(r, CORQ_ARRAY_LEN(delack))];
	c->timewait = (enum corq_timewait)corq_rand_below(r, 3);
	if (c->timewait == CORQ_TW_LAB) /* no packet may outlive it */
		c->tw_time_ms = (uint32_t)(2 * life_ns / CORQ_NS_PER_MS) + 2;
	c->no_rfc1337 = one_in(r, 8);
	c->no_timestamps = one_in(r, 8);
	c->no_sack = one_in(r, 6);
	c->no_wscale = one_in(r, 8);
	c->data_retries = one_in(r, 8) ? 6 : 0;
}

static void
draw_port(struct corq_rand *r, struct memport_config *c, int side)
{
	static const uint32_t caps[] = {0, CORQ_PORT_CAP_CHAIN,
		CORQ_PORT_CAP_CHAIN | CORQ_PORT_CAP_L4_CSUM,
		CORQ_PORT_CAP_CHAIN | CORQ_PORT_CAP_L4_CSUM | CORQ_PORT_CAP_IP_CSUM,
		CORQ_PORT_CAP_CHAIN | CORQ_PORT_CAP_L4_CSUM | CORQ_PORT_CAP_IP_CSUM |
			CORQ_PORT_CAP_TSO};

	memset(c, 0, sizeof(*c));
	c->caps = caps[corq_rand_below(r, CORQ_ARRAY_LEN(caps))];
	c->late_completion = one_in(r, 2);
	c->mtu = one_in(r, 3) ? (uint16_t)between(r, 576, 1500) : 1500;
	c->rx_frames = 4096;
	c->tx_frames = 2048;
	c->start_ns = CORQ_NS_PER_S * between(r, 1, 100000);
	memcpy(c->mac, ((const uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(side + 1)}), 6);
}

static void
make_tight(struct corq_rand *r, struct sim_params *p)
{
	for (int i = 0; i < 2; i++) {
		struct corq_config *c = &p->cfg[i];

		c->max_conns = (uint32_t)between(r, 16, 28);
		c->max_time_wait = (uint32_t)between(r, 2, 24);
		c->max_half_open = c->max_fin_wait2 = (uint32_t)between(r, 2, 8);
		c->chunk_bytes_mb = 1;
		p->port[i].rx_frames = (uint32_t)between(r, 70, 300);
		p->port[i].tx_frames = (uint32_t)between(r, 40, 300);
	}
}

void
sim_params_draw(struct sim_params *p, const struct sim_options *o, uint64_t seed)
{
	struct corq_rand rand, *r = &rand;
	bool disturbed, no_ts;

	corq_rand_seed(r, seed);
	memset(p, 0, sizeof(*p));
	p->seed = seed;
	for (int i = 0; i < 2; i++)
		draw_link(r, &p->link[i], o);
	for (int i = 0; i < 2; i++) {
		draw_config(r, &p->cfg[i], p);
		draw_port(r, &p->port[i], i);
	}
	p->port[1].start_ns = p->port[0].start_ns;
	p->n_conns = o->conns ? o->conns : (uint32_t)magnitude(r, 3, 4);
	p->max_bytes = o->max_bytes ? o->max_bytes : (uint32_t)magnitude(r, 1000, 7);
	p->open_gap_ns = magnitude(r, 10000, 14);
	p->gap_ns = magnitude(r, 1000, 8);
	p->pause = one_in(r, 3) ? 10 : 0;
	p->pause_ns = magnitude(r, CORQ_NS_PER_MS, 9);
	p->few_ports = one_in(r, 3);
	p->refuse = one_in(r, 8);
	p->dual = one_in(r, 4);
	p->proxies = one_in(r, 3);
	p->tx_room = one_in(r, 5) ? 2 + (uint32_t)corq_rand_below(r, 10) : 0;
	p->split = one_in(r, 4) ? 3000 : 0;
	p->tight = one_in(r, 8);
	p->check_every = o->check_every ? o->check_every : 16;
	disturbed = p->link[0].reorder || p->link[0].dup || p->link[1].reorder || p->link[1].dup;
	no_ts = p->cfg[0].no_timestamps || p->cfg[1].no_timestamps;
	/* Without timestamps a late packet of an aborted connection may fit the next one of the
	 * tuple: that is TCP's limit (RFC 7323 5.8), not ours. */
	if (disturbed && no_ts)
		p->few_ports = false;
	if (one_in(r, 8) || (o->loss.hi == 0 && o->reorder.hi == 0 && o->dup.hi == 0 &&
				    o->corrupt.hi == 0 && one_in(r, 2)))
		make_clean(r, p);
	if (p->tight)
		make_tight(r, p);
	for (int i = 0; i < 2 && p->few_ports; i++) {
		p->cfg[i].port_first = 10000;
		p->cfg[i].port_last = (uint16_t)(10000 + between(r, 1, 7));
	}
}

static void
print_side(const struct sim_params *p, int i)
{
	const struct sim_link_params *l = &p->link[i];
	const struct corq_config *c = &p->cfg[i];

	printf("  %c: loss %.2f%% reorder %.2f%% (%.1f ms) dup %.2f%% corrupt %.2f%% outage %u, "
	       "%.1f Mbit/s, delay %.3f ms, queue %llu\n",
		'A' + i, l->loss / 100.0, l->reorder / 100.0, (double)l->reorder_ns / 1e6,
		l->dup / 100.0, l->corrupt / 100.0, l->outage, (double)l->rate_bps / 1e6,
		(double)l->delay_ns / 1e6, (unsigned long long)l->queue_bytes);
	printf("     conns %u tw %u(%u ms, mode %d) snd %u rcv %u delack %u ts %d sack %d ws %d "
	       "1337 %d mtu %u caps %#x%s rx %u tx %u\n",
		c->max_conns, c->max_time_wait, c->tw_time_ms, c->timewait, c->snd_buf, c->rcv_buf,
		c->delack_ms, !c->no_timestamps, !c->no_sack, !c->no_wscale, !c->no_rfc1337,
		p->port[i].mtu, p->port[i].caps, p->port[i].late_completion ? " late" : "",
		p->port[i].rx_frames, p->port[i].tx_frames);
}

void
sim_params_print(const struct sim_params *p)
{
	printf("seed %llu: %u connections of up to %u bytes, one each %.3f ms, turns up to %.3f ms "
	       "apart%s%s%s%s%s%s%s%s%s\n",
		(unsigned long long)p->seed, p->n_conns, p->max_bytes, (double)p->open_gap_ns / 1e6,
		(double)p->gap_ns / 1e6, p->clean ? ", clean" : "", p->tight ? ", tight" : "",
		p->few_ports ? ", few ports" : "", p->refuse ? ", refusing" : "",
		p->dual ? ", dual" : "", p->proxies ? ", proxies" : "", p->pause ? ", pauses" : "",
		p->tx_room ? ", slow device" : "", p->split ? ", parts" : "");
	print_side(p, 0);
	print_side(p, 1);
}
