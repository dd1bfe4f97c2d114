/* SPDX-License-Identifier: BSD-3-Clause */
/* testcore.c - a core, its memory, its ARP peer and its clock. See testcore.h. */
#include "testcore.h"
#include "base/seq.h"
#include "net/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SETTLE_TURNS 1000

struct corq_addr
testcore_addr(const char *text)
{
	struct corq_addr a;

	if (corq_addr_parse(text, &a) != 0) {
		fprintf(stderr, "testcore: bad address '%s'\n", text);
		abort();
	}
	return a;
}

/* Small pools: an exhaustion is near, and a leak is seen. */
static struct corq_config
small_pools(const struct testcore_opts *o)
{
	struct corq_config c = o->cfg;

	if (c.max_conns == 0)
		c.max_conns = 64;
	if (c.max_time_wait == 0)
		c.max_time_wait = 64;
	if (c.max_half_open == 0)
		c.max_half_open = 64;
	if (c.max_fin_wait2 == 0)
		c.max_fin_wait2 = 64;
	if (c.chunk_bytes_mb == 0)
		c.chunk_bytes_mb = 2;
	if (c.rx_frames == 0)
		c.rx_frames = o->port.rx_frames ? o->port.rx_frames : MEMPORT_FRAMES;
	if (c.tx_frames == 0)
		c.tx_frames = o->port.tx_frames ? o->port.tx_frames : MEMPORT_FRAMES;
	if (c.seed == 0)
		c.seed = 1;
	return c;
}

int
testcore_init(struct testcore *tc, const struct testcore_opts *o, char *err, size_t err_len)
{
	struct corq_config c = small_pools(o);
	struct corq_core_config *cc = &tc->cfg;
	int rc;

	memset(tc, 0, sizeof(*tc));
	tc->no_arp = o->no_arp;
	tc->mp = memport_new(&o->port);
	rc = corq_tcp_config_resolve(&cc->tcp, &c, memport_port(tc->mp)->mtu, err, err_len);
	if (rc != 0) {
		testcore_end(tc);
		return rc;
	}
	cc->index = o->index;
	cc->group = o->group;
	cc->n = o->n ? o->n : 1;
	cc->seed = o->seed ? o->seed : c.seed;
	cc->n_ranges = 1;
	cc->ranges[0].first = testcore_addr(o->addr ? o->addr : TESTCORE_ADDR);
	cc->ranges[0].count = o->addr_count ? o->addr_count : 1;
	cc->ranges[0].connect = 1;
	cc->prefix_len = 96 + 24;
	cc->max_neigh = o->max_neigh ? o->max_neigh : 16;
	cc->tx_frames = c.tx_frames;
	cc->log = o->log;
	cc->idle_sleep = o->idle_sleep;
	tc->mem_bytes = corq_core_bytes(cc);
	tc->mem = mmap(NULL, tc->mem_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tc->mem == MAP_FAILED) {
		tc->mem = NULL;
		testcore_end(tc);
		snprintf(err, err_len, "no memory for a core");
		return -ENOMEM;
	}
	rc = corq_core_init(&tc->core, tc->mem, cc, memport_port(tc->mp), err, err_len);
	if (rc != 0) {
		testcore_end(tc);
		return rc;
	}
	tc->core->regions = tc->regions;
	tc->core->n_regions = &tc->n_regions;
	if (cc->n == 1) /* others turn once their rings are joined */
		testcore_settle(tc);
	corq_core_usage(tc->core, &tc->start);
	return 0;
}

void
testcore_end(struct testcore *tc)
{
	struct memport_pkt *p;

	while ((p = testcore_take(tc)) != NULL)
		free(p);
	if (tc->mem != NULL)
		munmap(tc->mem, tc->mem_bytes);
	memport_free(tc->mp);
	memset(tc, 0, sizeof(*tc));
}

void
testcore_neighbour(struct testcore *tc, const char *addr, const uint8_t mac[6])
{
	struct corq_addr a = testcore_addr(addr);

	corq_neigh_set_static(&tc->core->neigh, &a, mac, memport_now(tc->mp));
}

uint16_t
testcore_region(struct testcore *tc, const void *base, size_t len,
	void (*release)(struct corq_core *core, void *arg, uint64_t cookie), void *arg)
{
	struct corq_region *r = &tc->regions[tc->n_regions];

	CORQ_ASSERT(tc->n_regions < CORQ_ARRAY_LEN(tc->regions));
	r->base = base;
	r->len = len;
	r->release = release;
	r->arg = arg;
	return (uint16_t)tc->n_regions++;
}

/* ---- what was sent ---- */

static bool
is_local(const struct testcore *tc, const uint8_t v4[4])
{
	const struct corq_range *r = &tc->cfg.ranges[0];
	uint32_t off = corq_get_be32(v4) - corq_get_be32(&r->first.b[12]);

	return off < r->count;
}

/* Answers an ARP request of the core for a host that is not the core. True: it was one. */
static bool
answer_arp(struct testcore *tc, const struct memport_pkt *p)
{
	const uint8_t *arp = p->bytes + CORQ_ETH_HLEN;
	uint8_t reply[CORQ_ETH_HLEN + CORQ_ARP_LEN];
	uint8_t *r = reply + CORQ_ETH_HLEN;

	if (p->len < sizeof(reply) || corq_get_be16(p->bytes + 12) != CORQ_ETHERTYPE_ARP ||
		corq_get_be16(arp + 6) != 1 /* request */ || is_local(tc, arp + 24))
		return false;
	memcpy(reply, p->bytes + 6, 6);
	memcpy(reply + 6, TESTCORE_PEER_MAC, 6);
	memcpy(reply + 12, p->bytes + 12, 2 + 6); /* type, hrd, pro, hln, pln */
	corq_put_be16(r + 6, 2 /* reply */);
	memcpy(r + 8, TESTCORE_PEER_MAC, 6);
	memcpy(r + 14, arp + 24, 4);
	memcpy(r + 18, arp + 8, 6 + 4);
	memport_inject(tc->mp, reply, sizeof(reply));
	return true;
}

static void
collect(struct testcore *tc)
{
	struct memport_pkt *p;

	while ((p = memport_take_tx(tc->mp)) != NULL) {
		if (tc->on_tx != NULL)
			tc->on_tx(tc->on_tx_arg, p);
		if (!tc->no_arp && answer_arp(tc, p)) {
			free(p);
			continue;
		}
		if (tc->tx_last != NULL)
			tc->tx_last->next = p;
		else
			tc->tx_first = p;
		tc->tx_last = p;
	}
}

struct memport_pkt *
testcore_take(struct testcore *tc)
{
	struct memport_pkt *p = tc->tx_first;

	if (p == NULL)
		return NULL;
	tc->tx_first = p->next;
	if (p->next == NULL)
		tc->tx_last = NULL;
	p->next = NULL;
	return p;
}

/* ---- turns and time ---- */

bool
testcore_turn(struct testcore *tc)
{
	bool busy = corq_core_turn(tc->core);

	collect(tc);
	return busy;
}

bool
testcore_settle(struct testcore *tc)
{
	struct memport_counts n;

	for (int i = 0; i < SETTLE_TURNS; i++) {
		bool busy = testcore_turn(tc);

		memport_counts(tc->mp, &n);
		/* Events marked after step 6 are told in the next turn. */
		if (!busy && n.rx_queued == 0 && tc->core->eng.events.n == 0)
			return true;
	}
	return false;
}

uint64_t
testcore_next(const struct testcore *tc)
{
	struct corq_core *core = tc->core;
	uint64_t now = memport_now(tc->mp), at = UINT64_MAX;
	uint32_t d = corq_tcp_next_deadline(&core->eng);

	if (d != UINT32_MAX)
		at = ((now >> CORQ_TICK_SHIFT) + CORQ_MAX(d, 1u)) << CORQ_TICK_SHIFT;
	at = CORQ_MIN(at, corq_neigh_next(&core->neigh));
	if (core->hook_at != 0)
		at = CORQ_MIN(at, core->hook_at);
	return at > now ? at : now + 1;
}

bool
testcore_run_to(struct testcore *tc, uint64_t ns, bool until_tx)
{
	while (tc->tx_first == NULL || !until_tx) {
		uint64_t at = testcore_next(tc);

		if (memport_now(tc->mp) >= ns)
			return false;
		memport_set_clock(tc->mp, CORQ_MIN(at, ns));
		testcore_settle(tc);
	}
	return true;
}

/* ---- leaks ---- */

static unsigned
more(FILE *out, const char *what, uint64_t start, uint64_t now)
{
	if (now <= start)
		return 0;
	fprintf(out, "leak: %s: %llu at the start, %llu now\n", what, (unsigned long long)start,
		(unsigned long long)now);
	return 1;
}

unsigned
testcore_leaks(struct testcore *tc, FILE *out)
{
	const struct corq_stats *a = &tc->start;
	struct memport_counts n;
	struct corq_stats b;
	unsigned bad = 0;

	corq_core_usage(tc->core, &b);
	memport_complete(tc->mp);
	memport_counts(tc->mp, &n);
	bad += more(out, "connections", a->used_conns, b.used_conns);
	bad += more(out, "chunks", a->used_chunks, b.used_chunks);
	bad += more(out, "work blocks", a->used_work, b.used_work);
	bad += more(out, "transmission records", a->used_txrec, b.used_txrec);
	bad += more(out, "records", a->used_records, b.used_records);
	bad += more(out, "handles", a->used_handles, b.used_handles);
	bad += more(out, "held frames", a->used_held_frames, b.used_held_frames);
	bad += more(out, "ports", a->ports_used, b.ports_used);
	bad += more(out, "received frames out", b.used_held_frames + n.rx_queued, n.rx_out);
	/* Empty frames that the core keeps for the next turn are no leak. */
	bad += more(out, "sent frames out", b.used_tx_frames + tc->core->eng.n_txf, n.tx_out);
	return bad;
}
