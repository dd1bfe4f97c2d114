/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev_io.c - the data path of a port over an ethdev queue pair: frames to mbufs and back.
 *
 * Called by the owning core only, once a burst. Receiving copies an mbuf's few fields into the
 * frame beside it; sending does the reverse and links the mbufs of a chain.
 *
 * Borrowed parts (CORQ_FRAME_EXT): the mbuf is attached to the foreign memory as an external
 * buffer whose shared info lies in the mbuf's own, then unused, buffer. When the driver frees the
 * mbuf, wherever in its code that is, ext_done puts the frame's `ext` into the port's ring, which
 * the core drains through `released`. The ring holds twice the tx pool: tx takes no more parts than
 * half of it has room for, so parts that come back unsent always fit.
 */
#include <sched.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_pause.h>

#include "port/port_int.h"

#define IO_BATCH      64
#define LOOKS_A_S     5       /* looks at the link and the drop counters, a second */
#define IDLE_SPIN_NS  10000u  /* a sleep takes some microseconds more than it was told */
#define IDLE_SLEEP_NS 100000u /* nothing wakes us when a packet comes */

static inline struct eth_port *
eth_of(struct corq_port *port)
{
	return (struct eth_port *)(void *)port;
}

/* A1 <-> R1 in link.c */
static inline unsigned int
link_state(const struct eth_port *ep)
{
	return atomic_load_explicit(&ep->dev->state, memory_order_acquire);
}

/* May this core not call the driver now? */
static inline bool
away(struct eth_port *ep)
{
	unsigned int state = link_state(ep);

	if (CORQ_LIKELY(link_state_of(state) != LINK_AWAY))
		return false;
	corq_link_park(ep, state);
	return true;
}

/* ---- receive ---- */

static uint16_t
rx_flags(uint64_t ol)
{
	uint16_t flags = 0;

	switch (ol & RTE_MBUF_F_RX_L4_CKSUM_MASK) {
	case RTE_MBUF_F_RX_L4_CKSUM_GOOD:
		flags |= CORQ_FRAME_L4_CSUM_GOOD;
		break;
	case RTE_MBUF_F_RX_L4_CKSUM_BAD:
		flags |= CORQ_FRAME_L4_CSUM_BAD;
		break;
	case RTE_MBUF_F_RX_L4_CKSUM_NONE: /* not known to be right, but the data is intact */
		flags |= CORQ_FRAME_TX_PARTIAL;
		break;
	default:
		break;
	}
	if ((ol & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		flags |= CORQ_FRAME_IP_CSUM_GOOD;
	else if ((ol & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD)
		flags |= CORQ_FRAME_IP_CSUM_BAD;
	if (ol & RTE_MBUF_F_RX_RSS_HASH)
		flags |= CORQ_FRAME_RX_HASH;
	if (ol & RTE_MBUF_F_RX_VLAN_STRIPPED)
		flags |= CORQ_FRAME_VLAN;
	return flags;
}

static inline struct corq_frame *
frame_from_rx(struct eth_port *ep, struct rte_mbuf *m)
{
	struct corq_frame *f = frame_of(m);

	frame_reset_tx(f);
	f->data = rte_pktmbuf_mtod(m, uint8_t *);
	f->len = m->data_len;
	f->pkt_len = m->pkt_len;
	f->rx_queue = ep->queue;
	if (m->ol_flags != 0) {
		f->flags = rx_flags(m->ol_flags);
		ep->port.n_rx_partial_csum += !!(f->flags & CORQ_FRAME_TX_PARTIAL);
		f->rx_hash = m->hash.rss;
		f->vlan_tci = m->vlan_tci;
	}
	return f;
}

CORQ_NOINLINE static void
rx_chain_slow(struct corq_frame *f, struct rte_mbuf *m)
{
	while ((m = m->next) != NULL) {
		struct corq_frame *part = frame_of(m);

		frame_reset_tx(part);
		part->data = rte_pktmbuf_mtod(m, uint8_t *);
		part->len = m->data_len;
		f->next = part;
		f = part;
	}
}

CORQ_NOINLINE static void
look_slow(struct eth_port *ep)
{
	struct rte_eth_stats stats;

	ep->look_tsc = rte_rdtsc() + rte_get_tsc_hz() / LOOKS_A_S;
	corq_link_look(ep);
	if (link_state_of(link_state(ep)) == LINK_AWAY ||
		rte_eth_stats_get(ep->port_id, &stats) != 0)
		return;
	ep->port.n_rx_missed = stats.imissed + stats.ierrors;
	ep->port.n_rx_nombuf = stats.rx_nombuf;
}

static CORQ_ALWAYS_INLINE uint16_t
eth_rx(struct corq_port *port, struct corq_frame **frames, uint16_t n, bool guarded)
{
	struct eth_port *ep = eth_of(port);
	struct rte_mbuf *m[IO_BATCH];
	uint16_t got;

	n = CORQ_MIN(n, (uint16_t)IO_BATCH);
	if (CORQ_UNLIKELY(ep->count_missed && rte_rdtsc() >= ep->look_tsc))
		look_slow(ep);
	if (CORQ_UNLIKELY(away(ep)))
		return 0;
	got = guarded ? corq_memif_guarded_rx(ep->port_id, ep->queue, m, n)
		      : rte_eth_rx_burst(ep->port_id, ep->queue, m, n);
	for (uint16_t i = 0; i < got; i++) {
		if (i + 4 < got) {
			CORQ_PREFETCH(m[i + 4]);
			CORQ_PREFETCH_W(frame_of(m[i + 4]));
		}
		frames[i] = frame_from_rx(ep, m[i]);
		if (CORQ_UNLIKELY(m[i]->next != NULL))
			rx_chain_slow(frames[i], m[i]);
		if (CORQ_UNLIKELY(frames[i]->pkt_len > ep->max_frame))
			port->n_rx_oversize++;
	}
	if (CORQ_UNLIKELY(got != 0 && link_state_of(link_state(ep)) == LINK_DOWN))
		corq_link_back(ep);
	port->backlog = got == n ? port->backlog + got : 0;
	return got;
}

static uint16_t
eth_rx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	return eth_rx(port, frames, n, false);
}

static uint16_t
eth_rx_burst_guarded(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	return eth_rx(port, frames, n, true);
}

/* ---- borrowed memory ---- */

static inline uint32_t
ext_room(const struct eth_port *ep)
{
	return ep->ext.slot == NULL ? 0 : ep->ext.mask + 1 - (ep->ext.head - ep->ext.tail);
}

static void
ext_push(struct eth_port *ep, void *ext)
{
	CORQ_ASSERT(ext_room(ep) != 0);
	ep->ext.slot[ep->ext.head++ & ep->ext.mask] = ext;
}

/* DPDK calls it where the last reference to an attached buffer goes, on the core's thread. */
static void
ext_done(void *addr, void *opaque)
{
	struct corq_frame *f = opaque;
	/* the shared info stands at buf_start, and the port behind it */
	struct eth_port *ep = *(
		struct eth_port **)(void *)(f->buf_start + sizeof(struct rte_mbuf_ext_shared_info));

	(void)addr;
	ep->ext_out--;
	ext_push(ep, f->ext);
}

static struct rte_mbuf_ext_shared_info *
shinfo_of(struct corq_frame *f)
{
	return (struct rte_mbuf_ext_shared_info *)(void *)f->buf_start;
}

static void
ext_attach(struct eth_port *ep, struct corq_frame *f, struct rte_mbuf *m)
{
	rte_iova_t iova =
		rte_eal_iova_mode() == RTE_IOVA_VA ? (rte_iova_t)(uintptr_t)f->data : RTE_BAD_IOVA;

	if (!RTE_MBUF_HAS_EXTBUF(m)) {
		struct rte_mbuf_ext_shared_info *info = shinfo_of(f);

		info->free_cb = ext_done;
		info->fcb_opaque = f;
		rte_mbuf_ext_refcnt_set(info, 1);
		*(struct eth_port **)(void *)(info + 1) = ep;
		m->ol_flags = 0;
		rte_pktmbuf_attach_extbuf(m, f->data, iova, f->len, info);
		ep->ext_out++;
	}
	/* a second try after a short tx_burst: the part may have been trimmed */
	m->buf_addr = f->data;
	m->buf_iova = iova;
	m->buf_len = f->len;
	m->data_off = 0;
	m->data_len = f->len;
}

/* ---- back ---- */

struct free_batch {
	struct rte_mempool *pool;
	void *obj[IO_BATCH];
	uint32_t n;
};

static inline void
batch_add(struct free_batch *b, struct rte_mbuf *m)
{
	if (b->n == IO_BATCH || (b->n != 0 && m->pool != b->pool)) {
		rte_mempool_put_bulk(b->pool, b->obj, b->n);
		b->n = 0;
	}
	b->pool = m->pool;
	b->obj[b->n++] = m;
}

static void
eth_free_bulk(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct eth_port *ep = eth_of(port);
	struct free_batch batch = {.n = 0};

	for (uint16_t i = 0; i < n; i++) {
		struct corq_frame *f = frames[i], *next;

		if (i + 2 < n)
			CORQ_PREFETCH_W(mbuf_of(frames[i + 2]));
		for (; f != NULL; f = next) {
			struct rte_mbuf *m = mbuf_of(f);

			next = f->next;
			/* never offered to tx_burst: nothing is attached yet */
			if (CORQ_UNLIKELY(f->flags & CORQ_FRAME_EXT) && !RTE_MBUF_HAS_EXTBUF(m))
				ext_push(ep, f->ext);
			m = rte_pktmbuf_prefree_seg(m);
			if (CORQ_LIKELY(m != NULL))
				batch_add(&batch, m);
		}
	}
	if (batch.n != 0)
		rte_mempool_put_bulk(batch.pool, batch.obj, batch.n);
}

/* ---- send ---- */

static uint64_t
tx_ol_flags(const struct corq_frame *f, struct rte_mbuf *m)
{
	uint64_t ol = 0;

	if (f->flags & CORQ_FRAME_VLAN) {
		ol |= RTE_MBUF_F_TX_VLAN;
		m->vlan_tci = f->vlan_tci;
	}
	if (f->flags & (CORQ_FRAME_TX_L4_CSUM | CORQ_FRAME_TX_IP_CSUM | CORQ_FRAME_TX_TSO)) {
		ol |= (f->data[f->l2_len] >> 4) == 4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
		if (f->flags & CORQ_FRAME_TX_L4_CSUM)
			ol |= RTE_MBUF_F_TX_TCP_CKSUM;
		if (f->flags & CORQ_FRAME_TX_IP_CSUM)
			ol |= RTE_MBUF_F_TX_IP_CKSUM;
		if (f->flags & CORQ_FRAME_TX_TSO)
			ol |= RTE_MBUF_F_TX_TCP_SEG;
		m->tx_offload =
			rte_mbuf_tx_offload(f->l2_len, f->l3_len, f->l4_len, f->tso_segsz, 0, 0, 0);
	}
	return ol;
}

static inline void
part_to_mbuf(struct eth_port *ep, struct corq_frame *f, struct rte_mbuf *m)
{
	if (CORQ_UNLIKELY(f->flags & CORQ_FRAME_EXT)) {
		ext_attach(ep, f, m);
		return;
	}
	m->data_len = f->len;
	CORQ_ASSERT_SLOW(!RTE_MBUF_HAS_EXTBUF(m));
	CORQ_ASSERT_SLOW(f->data >= f->buf_start && f->data + f->len <= f->buf_start + f->room);
	m->data_off = (uint16_t)(f->data - f->buf_start);
}

/* The mbufs of a chain, linked; `next` is left clean at its end, as drivers expect. */
static struct rte_mbuf *
chain_to_mbuf_slow(struct eth_port *ep, struct corq_frame *head)
{
	struct rte_mbuf *first = mbuf_of(head), *last = NULL;
	uint16_t n = 0;

	for (struct corq_frame *f = head; f != NULL; f = f->next) {
		struct rte_mbuf *m = mbuf_of(f);

		part_to_mbuf(ep, f, m);
		if (last != NULL)
			last->next = m;
		last = m;
		n++;
	}
	last->next = NULL;
	first->nb_segs = n;
	first->pkt_len = head->pkt_len;
	return first;
}

/* Parts that borrow memory in this packet. */
static uint32_t
ext_parts(const struct corq_frame *f)
{
	uint32_t n = 0;

	for (; f != NULL; f = f->next)
		n += !!(f->flags & CORQ_FRAME_EXT);
	return n;
}

static uint16_t
frames_to_mbufs(struct eth_port *ep, struct corq_frame **frames, struct rte_mbuf **m, uint16_t n)
{
	/* half of the ring stays for parts that are freed unsent */
	uint32_t used = ep->ext.slot == NULL ? 0 : ep->ext.head - ep->ext.tail + ep->ext_out;
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct corq_frame *f = frames[i];

		if (i + 2 < n)
			CORQ_PREFETCH_W(mbuf_of(frames[i + 2]));
		m[i] = mbuf_of(f);
		if (CORQ_UNLIKELY(f->next != NULL || (f->flags & CORQ_FRAME_EXT))) {
			used += ext_parts(f);
			if (used > (ep->ext.mask + 1) / 2 && ep->ext.slot != NULL)
				break;
			chain_to_mbuf_slow(ep, f);
		} else {
			CORQ_ASSERT_SLOW(m[i]->next == NULL && m[i]->nb_segs == 1);
			part_to_mbuf(ep, f, m[i]);
			m[i]->pkt_len = f->len;
		}
		/* attached parts have their flag in ol_flags */
		m[i]->ol_flags &= RTE_MBUF_F_EXTERNAL;
		if (f->flags & ~CORQ_FRAME_EXT)
			m[i]->ol_flags |= tx_ol_flags(f, m[i]);
	}
	return i;
}

/* The peer vanished in the middle of a burst: what borrowed memory still hangs on it is over. */
static void
ext_lost(struct corq_frame **frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		for (struct corq_frame *f = frames[i]; f != NULL; f = f->next)
			if ((f->flags & CORQ_FRAME_EXT) &&
				rte_mbuf_ext_refcnt_read(shinfo_of(f)) != 0) {
				rte_mbuf_ext_refcnt_set(shinfo_of(f), 0);
				ext_done(NULL, f);
			}
}

/* The link is down: what is sent is lost, and counted. */
CORQ_NOINLINE static uint16_t
drop_slow(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	away(eth_of(port));
	eth_free_bulk(port, frames, n);
	port->n_tx_full += n;
	return n;
}

static CORQ_ALWAYS_INLINE uint16_t
eth_tx(struct corq_port *port, struct corq_frame **frames, uint16_t n, bool guarded)
{
	struct eth_port *ep = eth_of(port);
	struct rte_mbuf *m[IO_BATCH];
	uint16_t done = 0;

	if (CORQ_UNLIKELY(link_state_of(link_state(ep)) != LINK_UP))
		return drop_slow(port, frames, n);
	do {
		uint16_t part = CORQ_MIN((uint16_t)(n - done), (uint16_t)IO_BATCH);
		uint16_t ready = frames_to_mbufs(ep, frames + done, m, part), sent;
		bool fault = false;

		if (guarded)
			sent = corq_memif_guarded_tx(ep->port_id, ep->queue, m, ready, &fault);
		else
			sent = rte_eth_tx_burst(ep->port_id, ep->queue, m, ready);
		if (CORQ_UNLIKELY(fault))
			ext_lost(frames + done, ready);
		done += sent;
		if (sent < part) {
			port->n_tx_full += (uint64_t)(n - done);
			break;
		}
	} while (done < n);
	return done;
}

static uint16_t
eth_tx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	return eth_tx(port, frames, n, false);
}

static uint16_t
eth_tx_burst_guarded(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	return eth_tx(port, frames, n, true);
}

static uint16_t
eth_tx_alloc(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct eth_port *ep = eth_of(port);
	struct rte_mbuf *m[IO_BATCH];
	uint16_t done = 0;

	while (done < n) {
		uint16_t part = CORQ_MIN((uint16_t)(n - done), (uint16_t)IO_BATCH);

		if (CORQ_UNLIKELY(rte_pktmbuf_alloc_bulk(ep->tx_pool, m, part) != 0)) {
			/* all or nothing: the last few one by one */
			if ((m[0] = rte_pktmbuf_alloc(ep->tx_pool)) == NULL)
				break;
			part = 1;
		}
		for (uint16_t i = 0; i < part; i++) {
			frames[done + i] = frame_of(m[i]);
			frame_reset_tx(frames[done + i]);
		}
		done += part;
	}
	return done;
}

static uint16_t
eth_released(struct corq_port *port, void **ext, uint16_t n, int provoke)
{
	struct eth_port *ep = eth_of(port);
	uint16_t i = 0;

	/* drivers that complete inside tx_burst only do so for an empty one too */
	if (provoke && ep->ext_out != 0)
		port->ops->tx_burst(port, NULL, 0);
	while (i < n && ep->ext.tail != ep->ext.head)
		ext[i++] = ep->ext.slot[ep->ext.tail++ & ep->ext.mask];
	return i;
}

/* ---- clock, idling ---- */

static uint64_t
eth_now_ns(struct corq_port *port)
{
	return corq_clock_now(&eth_of(port)->clock);
}

/* Short waits spin (or give the CPU to the core that shares it), longer ones sleep, but never so
 * long that a packet waits for us. */
void
corq_port_idle(const struct corq_clock *clock, bool yield, uint64_t ns)
{
	struct timespec ts = {.tv_nsec = (long)CORQ_MIN(ns, (uint64_t)IDLE_SLEEP_NS)};
	uint64_t end;

	if (ns > IDLE_SPIN_NS) {
		nanosleep(&ts, NULL);
		return;
	}
	if (yield) {
		sched_yield();
		return;
	}
	for (end = corq_clock_now(clock) + ns; corq_clock_now(clock) < end;)
		rte_pause();
}

static void
eth_idle(struct corq_port *port, uint64_t ns)
{
	struct eth_port *ep = eth_of(port);

	corq_port_idle(&ep->clock, ep->yield, ns);
}

const struct corq_port_ops corq_eth_ops = {
	.rx_burst = eth_rx_burst,
	.tx_burst = eth_tx_burst,
	.tx_alloc = eth_tx_alloc,
	.free_bulk = eth_free_bulk,
	.now_ns = eth_now_ns,
	.released = eth_released,
	.idle = eth_idle,
};

const struct corq_port_ops corq_eth_guarded_ops = {
	.rx_burst = eth_rx_burst_guarded,
	.tx_burst = eth_tx_burst_guarded,
	.tx_alloc = eth_tx_alloc,
	.free_bulk = eth_free_bulk,
	.now_ns = eth_now_ns,
	.released = eth_released,
	.idle = eth_idle,
};
