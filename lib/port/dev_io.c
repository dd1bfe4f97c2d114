/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev_io.c - the data path of a port over an ethdev queue pair: frames to mbufs and back.
 *
 * Called by the owning core only, once a burst. Receiving copies an mbuf's few fields into the
 * frame beside it; sending does the reverse and links the mbufs of a chain. Buffers, and memory
 * that frames borrow, are dev_buf.c's.
 */
#include <rte_ethdev.h>

#include "port/port_int.h"

#define LOOKS_A_S 5 /* looks at the link and the drop counters, a second */

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

static void
eth_count(struct corq_port *port)
{
	struct eth_port *ep = eth_of(port);
	struct rte_eth_stats stats;

	if (!ep->count_missed || link_state_of(link_state(ep)) == LINK_AWAY ||
		rte_eth_stats_get(ep->port_id, &stats) != 0)
		return;
	if (ep->dev->kind->missed != NULL)
		ep->missed += ep->dev->kind->missed(&ep->dev->hold);
	port->n_rx_missed = stats.imissed + stats.ierrors + ep->missed;
	port->n_rx_nombuf = stats.rx_nombuf;
}

CORQ_NOINLINE static void
look_slow(struct eth_port *ep)
{
	ep->look_tsc = rte_rdtsc() + rte_get_tsc_hz() / LOOKS_A_S;
	corq_link_look(ep);
	eth_count(&ep->port);
}

/* AF_XDP's driver looks where its ring ends only when it has given all up to the end that it knew:
 * a burst that is not full does not say that the ring is empty. Who has a backlog asks twice. */
static CORQ_ALWAYS_INLINE uint16_t
take(struct eth_port *ep, struct rte_mbuf **m, uint16_t n, bool guarded)
{
	return guarded ? corq_memif_guarded_rx(ep->port_id, ep->queue, m, n)
		       : rte_eth_rx_burst(ep->port_id, ep->queue, m, n);
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
	got = take(ep, m, n, guarded);
	if (CORQ_UNLIKELY(got < n && got != 0 && port->backlog != 0))
		got += take(ep, m + got, (uint16_t)(n - got), guarded);
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
		corq_ext_attach(ep, f, m);
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

/* The link is down: what is sent is lost, and counted. */
CORQ_NOINLINE static uint16_t
drop_slow(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	away(eth_of(port));
	corq_eth_free_bulk(port, frames, n);
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
			corq_ext_lost(frames + done, ready);
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

#define ETH_OPS(rx, tx)                                                                            \
	{                                                                                          \
		.rx_burst = (rx), .tx_burst = (tx), .tx_alloc = corq_eth_tx_alloc,                 \
		.free_bulk = corq_eth_free_bulk, .now_ns = corq_eth_now_ns,                        \
		.released = corq_eth_released, .idle = corq_eth_idle, .count = eth_count           \
	}

const struct corq_port_ops corq_eth_ops = ETH_OPS(eth_rx_burst, eth_tx_burst);
const struct corq_port_ops corq_eth_guarded_ops =
	ETH_OPS(eth_rx_burst_guarded, eth_tx_burst_guarded);
