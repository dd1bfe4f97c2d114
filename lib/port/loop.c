/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.c - the device "loop": cores of one process joined by wires in memory.
 *
 * Two sides: A (n_queues ports) and B (n_peers ports). What a port of A sends, a port of B
 * receives, and the reverse; without B, A receives what it sends, so that one core can run both
 * ends. There is one single-producer single-consumer ring for each ordered pair of ports that can
 * meet. As a NIC with RSS would, the sender picks the receiving port by a keyed hash of addresses
 * and ports, so a frame may well arrive on a core that does not own its connection: the engine's
 * hand-off repairs that. What has no ports (ARP, fragments, other protocols) goes to the first
 * port, or by its addresses.
 *
 * Loop is a wire: a frame that crosses owns its bytes. The buffer itself crosses, nothing is
 * copied, and the sender must not look at it again; so there are no chains and no borrowed parts
 * here (no CORQ_PORT_CAP_CHAIN). A frame's fields are put in order by the sender, in whose cache
 * they are, so receiving touches nothing but the ring.
 *
 * Buffers: one pool for all ports of a loop. RX and TX pools apart would change nothing, since what
 * a receiver holds is what the sender allocated; and with one pool each core reuses for its replies
 * the buffers that it just freed, which are in its cache. The mbuf of a frame is never read or
 * written after start (one part, one reference): frames are bare objects of the mempool. That
 * wants an EAL thread, whose lcore has a cache in the pool; others work, slowly.
 *
 * A full ring takes no more: tx_burst returns the part before the first frame that did not fit.
 */
#include <string.h>
#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>
#include <rte_mempool.h>

#include "base/ring.h"
#include "port/port_int.h"

#define LOOP_RING  4096 /* frames a wire holds: 4 ms at 1 Mpps */
#define LOOP_BATCH 64

struct loop_port {
	struct corq_port port; /* first: ops get its address */
	struct corq_clock clock;
	struct rte_mempool *pool;
	uint64_t key[2];
	uint32_t max_frame;
	uint16_t n_to, n_from; /* wires out, wires in */
	uint16_t next_from;    /* where the next rx_burst starts, so that no wire starves */
	bool yield;
	struct corq_spsc *to[CORQ_EAL_CORES_MAX];
	struct corq_spsc *from[CORQ_EAL_CORES_MAX];
} CORQ_ALIGNED_LINE;

struct corq_loop {
	uint32_t n_ports, n_wires;
	struct rte_mempool *pool;
	struct corq_spsc **wires;
	struct loop_port *ports[CORQ_EAL_CORES_MAX];
};

static inline struct loop_port *
loop_of(struct corq_port *port)
{
	return (struct loop_port *)(void *)port;
}

/* ---- receive ---- */

static uint16_t
loop_rx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct loop_port *lp = loop_of(port);
	uint32_t backlog = 0;
	uint16_t got = 0, w = lp->next_from;

	_Static_assert(sizeof(uint64_t) == sizeof(struct corq_frame *), "words are pointers");
	for (uint16_t i = 0; i < lp->n_from && got < n; i++) {
		got += (uint16_t)corq_spsc_pop(
			lp->from[w], (uint64_t *)(void *)(frames + got), (uint32_t)(n - got));
		if (++w == lp->n_from)
			w = 0;
	}
	/* the frame's own line, and the line where headers start with the usual headroom */
	for (uint16_t i = 0; i < got; i++) {
		CORQ_PREFETCH(frames[i]);
		CORQ_PREFETCH((uint8_t *)(frames[i] + 1) + CORQ_FRAME_HEADROOM - 64);
	}
	if (got == n) {
		for (uint16_t i = 0; i < lp->n_from; i++)
			backlog += corq_spsc_count(lp->from[i]);
		lp->next_from = w;
	}
	port->backlog = backlog;
	return got;
}

/* ---- send ---- */

static inline uint64_t
load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t
load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t
mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

/* Which of lp's wires: the RSS of this device. */
static uint16_t
pick_wire(const struct loop_port *lp, const struct corq_frame *f)
{
	const uint8_t *p = f->data + 14;
	uint16_t type = (uint16_t)(f->data[12] << 8 | f->data[13]);
	uint64_t h;

	if (type == 0x0800 && f->len >= 38) {
		bool fragment = ((p[6] & 0x3f) | p[7]) != 0; /* MF or an offset */
		bool tcp = p[9] == 6 && (p[0] & 0xf) == 5 && !fragment;

		h = mix(lp->key[0], load64(p + 12));
		h = mix(h, lp->key[1] ^ (tcp ? load32(p + 20) : 0));
	} else if (type == 0x86dd && f->len >= 58) {
		h = mix(lp->key[0], load64(p + 8));
		h = mix(h, load64(p + 16));
		h = mix(h, load64(p + 24));
		h = mix(h, load64(p + 32));
		h = mix(h, lp->key[1] ^ (p[6] == 6 ? load32(p + 40) : 0));
	} else {
		return 0;
	}
	return (uint16_t)(((h & 0xffffffff) * lp->n_to) >> 32);
}

/* Puts a frame's fields in order for its receiver. `user` stays: the frame may yet come back. */
static inline void
cross(struct loop_port *lp, struct corq_frame *f)
{
	CORQ_ASSERT(f->next == NULL && f->len <= lp->max_frame && !(f->flags & CORQ_FRAME_EXT));
	f->flags &= CORQ_FRAME_VLAN;
	f->pkt_len = f->len;
	f->rx_queue = 0;
	f->hops = 0;
}

CORQ_NOINLINE static uint16_t
tx_full_slow(struct corq_port *port, uint16_t offered, uint16_t took)
{
	port->n_tx_full += (uint64_t)(offered - took);
	return took;
}

/* Several wires: sort the burst, then see how much of it, from its start, all wires can take. Only
 * we push, so room that is seen stays. */
static uint16_t
tx_spread(struct loop_port *lp, struct corq_frame **frames, uint16_t n)
{
	uint8_t wire[LOOP_BATCH];
	uint32_t room[CORQ_EAL_CORES_MAX], seen[CORQ_EAL_CORES_MAX] = {0};
	struct corq_frame *sorted[LOOP_BATCH];
	uint16_t i;

	for (i = 0; i < n; i++) {
		uint16_t w = pick_wire(lp, frames[i]);

		if (seen[w] == 0)
			room[w] = corq_spsc_capacity(lp->to[w]) - corq_spsc_count(lp->to[w]);
		if (seen[w] == room[w])
			break;
		seen[w]++;
		wire[i] = (uint8_t)w;
	}
	n = i;
	for (uint16_t w = 0; w < lp->n_to; w++) {
		uint32_t k = 0;

		if (seen[w] == 0)
			continue;
		for (i = 0; i < n; i++)
			if (wire[i] == w)
				sorted[k++] = frames[i];
		CORQ_ASSERT(corq_spsc_push(lp->to[w], (uint64_t *)(void *)sorted, k) == k);
	}
	return n;
}

static uint16_t
loop_tx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct loop_port *lp = loop_of(port);
	uint16_t done = 0;

	while (done < n) {
		uint16_t part = CORQ_MIN((uint16_t)(n - done), (uint16_t)LOOP_BATCH), sent;

		for (uint16_t i = 0; i < part; i++)
			cross(lp, frames[done + i]);
		if (lp->n_to == 1)
			sent = (uint16_t)corq_spsc_push(
				lp->to[0], (uint64_t *)(void *)(frames + done), part);
		else
			sent = tx_spread(lp, frames + done, part);
		done += sent;
		if (CORQ_UNLIKELY(sent < part))
			return tx_full_slow(port, n, done);
	}
	return n;
}

/* ---- buffers ---- */

static uint16_t
loop_tx_alloc(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct loop_port *lp = loop_of(port);
	void **objs = (void **)(void *)frames;
	uint16_t done = 0;

	while (done < n) {
		uint16_t part = CORQ_MIN((uint16_t)(n - done), (uint16_t)LOOP_BATCH);

		if (CORQ_UNLIKELY(rte_mempool_get_bulk(lp->pool, objs + done, part) != 0)) {
			/* all or nothing: the last few one by one */
			if (rte_mempool_get(lp->pool, objs + done) != 0)
				break;
			part = 1;
		}
		done += part;
	}
	for (uint16_t i = 0; i < done; i++) {
		if (i + 4 < done)
			CORQ_PREFETCH_W(frame_of(objs[i + 4]));
		frames[i] = frame_of(objs[i]);
		frame_reset_tx(frames[i]);
	}
	return done;
}

static void
loop_free_bulk(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct loop_port *lp = loop_of(port);
	void *objs[LOOP_BATCH];

	while (n > 0) {
		uint16_t part = CORQ_MIN(n, (uint16_t)LOOP_BATCH);

		for (uint16_t i = 0; i < part; i++)
			objs[i] = mbuf_of(frames[i]);
		rte_mempool_put_bulk(lp->pool, objs, part);
		frames += part;
		n -= part;
	}
}

static uint64_t
loop_now_ns(struct corq_port *port)
{
	return corq_clock_now(&loop_of(port)->clock);
}

static void
loop_idle(struct corq_port *port, uint64_t ns)
{
	struct loop_port *lp = loop_of(port);

	corq_port_idle(&lp->clock, lp->yield, ns);
}

static const struct corq_port_ops loop_ops = {
	.rx_burst = loop_rx_burst,
	.tx_burst = loop_tx_burst,
	.tx_alloc = loop_tx_alloc,
	.free_bulk = loop_free_bulk,
	.now_ns = loop_now_ns,
	.idle = loop_idle,
};

/* ---- make, destroy ---- */

static uint32_t
loop_mtu(const struct corq_dev_conf *conf)
{
	return conf->mtu != 0 ? conf->mtu : 1500;
}

static uint32_t
loop_room(const struct corq_dev_conf *conf)
{
	return CORQ_MAX((uint32_t)CORQ_FRAME_DATAROOM, (loop_mtu(conf) + PORT_L2_MAX + 63) & ~63u);
}

/* Tx buffers alone: what is received is what was sent. */
static uint32_t
loop_frames(const struct corq_dev_conf *conf)
{
	return (conf->n_queues + conf->n_peers) * conf->tx_frames;
}

static uint32_t
loop_wires(const struct corq_dev_conf *conf)
{
	return conf->n_peers == 0 ? conf->n_queues * conf->n_queues
				  : 2 * conf->n_queues * conf->n_peers;
}

uint32_t
corq_loop_mem_mb(const struct corq_dev_conf *conf)
{
	uint64_t wire = corq_spsc_size(LOOP_RING) + 256;

	return corq_pool_mem_mb(loop_frames(conf), loop_room(conf)) +
	       (uint32_t)((loop_wires(conf) * wire) >> 20) + 2;
}

static struct loop_port *
port_new(struct corq_eal *eal, const struct corq_dev_conf *conf, uint32_t i)
{
	int socket = corq_eal_core_socket(eal, i);
	bool side_b = i >= conf->n_queues;
	struct loop_port *lp = rte_zmalloc_socket("corq_loop", sizeof(*lp), CORQ_CACHELINE, socket);

	if (lp == NULL)
		return NULL;
	lp->port.ops = &loop_ops;
	lp->port.mtu = (uint16_t)loop_mtu(conf);
	lp->port.queue = (uint16_t)(side_b ? i - conf->n_queues : i);
	if (conf->mac != NULL)
		memcpy(lp->port.mac, conf->mac, 6);
	else
		memcpy(lp->port.mac, "\x02\x63\x6f\x72\x71\x00", 6); /* locally administered */
	/* the sides are two hosts; without side B, one that talks to itself */
	lp->port.mac[5] = (uint8_t)(lp->port.mac[5] ^ side_b);
	lp->clock = *corq_eal_clock(eal);
	lp->max_frame = loop_mtu(conf) + PORT_L2_MAX;
	lp->yield = corq_eal_shares_cpus(eal);
	return lp;
}

/* A wire from port a to port b, in the memory of the receiver's node. */
static int
wire_new(struct corq_loop *loop, struct loop_port *a, struct loop_port *b, int socket)
{
	struct corq_spsc *r = rte_zmalloc_socket(
		"corq_wire", corq_spsc_size(LOOP_RING), 2 * CORQ_CACHELINE, socket);

	if (r == NULL)
		return -ENOMEM;
	corq_spsc_init(r, LOOP_RING);
	loop->wires[loop->n_wires++] = r;
	a->to[a->n_to++] = r;
	b->from[b->n_from++] = r;
	return 0;
}

static int
connect_ports(struct corq_loop *loop, struct corq_eal *eal, const struct corq_dev_conf *conf)
{
	uint32_t n_a = conf->n_queues, n = loop->n_ports;

	for (uint32_t a = 0; a < n; a++) {
		/* the receivers of a: the other side, or all when there is but one */
		uint32_t b = n == n_a || a >= n_a ? 0 : n_a;
		uint32_t end = n == n_a || a < n_a ? n : n_a;

		for (; b < end; b++) {
			int socket = corq_eal_core_socket(eal, b);

			if (wire_new(loop, loop->ports[a], loop->ports[b], socket) != 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int
make_ports(struct corq_loop *loop, struct corq_eal *eal, const struct corq_dev_conf *conf)
{
	uint64_t key[2] = {corq_eal_now_ns(eal) * 0x9e3779b97f4a7c15ull, rte_rdtsc()};

	for (uint32_t i = 0; i < loop->n_ports; i++) {
		loop->ports[i] = port_new(eal, conf, i);
		if (loop->ports[i] == NULL)
			return -ENOMEM;
		loop->ports[i]->pool = loop->pool;
		memcpy(loop->ports[i]->key, key, sizeof(key));
	}
	return connect_ports(loop, eal, conf);
}

int
corq_loop_create(struct corq_loop **out, struct corq_eal *eal, const struct corq_dev_conf *conf,
	char *err, size_t errlen)
{
	struct corq_loop *loop = calloc(1, sizeof(*loop));
	int rc = -ENOMEM;

	if (loop == NULL)
		goto no_memory;
	loop->n_ports = conf->n_queues + conf->n_peers;
	loop->wires = calloc(loop_wires(conf), sizeof(*loop->wires));
	if (loop->wires == NULL)
		goto no_memory;
	loop->pool = corq_pool_create(eal,
		&(struct pool_conf){.name = "loop",
			.n = loop_frames(conf),
			.data_room = loop_room(conf),
			.socket = corq_eal_core_socket(eal, 0),
			.many = true,
			.own_memory = !corq_eal_on_huge_pages(eal)},
		err, errlen);
	if (loop->pool == NULL)
		goto failed;
	rc = make_ports(loop, eal, conf);
	if (rc != 0)
		goto no_memory;
	*out = loop;
	return 0;
no_memory:
	corq_port_err(err, errlen, "too little memory");
failed:
	corq_loop_destroy(loop);
	*out = NULL;
	return rc;
}

void
corq_loop_destroy(struct corq_loop *loop)
{
	if (loop == NULL)
		return;
	for (uint32_t i = 0; i < loop->n_wires; i++)
		rte_free(loop->wires[i]);
	for (uint32_t i = 0; i < loop->n_ports; i++)
		rte_free(loop->ports[i]);
	rte_mempool_free(loop->pool);
	free(loop->wires);
	free(loop);
}

struct corq_port *
corq_loop_port(struct corq_loop *loop, uint32_t i)
{
	return &loop->ports[i]->port;
}

/* Frames on a wire are nobody's: what stopped cores left in flight is no leak. */
uint32_t
corq_loop_frames_out(const struct corq_loop *loop)
{
	uint32_t on_wires = 0;

	for (uint32_t i = 0; i < loop->n_wires; i++)
		on_wires += corq_spsc_count(loop->wires[i]);
	return rte_mempool_in_use_count(loop->pool) - on_wires;
}
