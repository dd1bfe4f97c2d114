/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev_buf.c - the buffers of a port over an ethdev: empty ones, given back, borrowed memory; and
 * its clock and its sleep. What comes and goes is dev_io.c's.
 *
 * Borrowed parts (CORQ_FRAME_EXT): the mbuf is attached to the foreign memory as an external
 * buffer whose shared info lies in the mbuf's own, then unused, buffer. When the driver frees the
 * mbuf, wherever in its code that is, ext_done puts the frame's `ext` into the port's ring, which
 * the core drains through `released`. The ring holds twice the tx pool: tx takes no more parts than
 * half of it has room for, so parts that come back unsent always fit.
 *
 * Called by the owning core only, once a burst, but for corq_ext_attach: once a borrowed part.
 */
#include <sched.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_mempool.h>
#include <rte_pause.h>

#include "port/port_int.h"

#define IDLE_SPIN_NS 10000u /* a sleep takes some microseconds more than it was told */

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

void
corq_ext_attach(struct eth_port *ep, struct corq_frame *f, struct rte_mbuf *m)
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

/* The peer vanished in the middle of a burst: what borrowed memory still hangs on it is over. */
void
corq_ext_lost(struct corq_frame **frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		for (struct corq_frame *f = frames[i]; f != NULL; f = f->next)
			if ((f->flags & CORQ_FRAME_EXT) &&
				rte_mbuf_ext_refcnt_read(shinfo_of(f)) != 0) {
				rte_mbuf_ext_refcnt_set(shinfo_of(f), 0);
				ext_done(NULL, f);
			}
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

void
corq_eth_free_bulk(struct corq_port *port, struct corq_frame **frames, uint16_t n)
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

uint16_t
corq_eth_tx_alloc(struct corq_port *port, struct corq_frame **frames, uint16_t n)
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

uint16_t
corq_eth_released(struct corq_port *port, void **ext, uint16_t n, int provoke)
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

uint64_t
corq_eth_now_ns(struct corq_port *port)
{
	return corq_clock_now(&eth_of(port)->clock);
}

/* Short waits spin (or give the CPU to the core that shares it), longer ones sleep. */
void
corq_port_idle(const struct corq_clock *clock, bool yield, uint64_t ns)
{
	struct timespec ts = {.tv_nsec = (long)CORQ_MIN(ns, CORQ_NS_PER_S - 1)};
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

void
corq_eth_idle(struct corq_port *port, uint64_t ns)
{
	struct eth_port *ep = eth_of(port);

	corq_port_idle(&ep->clock, ep->yield, ns);
}
