/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c - mbuf pools whose private area is a corq_frame.
 *
 * A pool is made at start and never grows. Each lcore has a cache of up to 512 objects of each
 * pool it frees to or allocates from; threads that are no lcores go to the pool's ring each time.
 * The ring below: many producers always (frames that were handed to another core are freed there),
 * one consumer where one core allocates. Where lcores share a CPU the ring is DPDK's "relaxed tail
 * sync" one: with the plain ring everybody spins while a preempted thread holds a half-done
 * enqueue.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_mempool.h>

#include "port/port_int.h"

#define POOL_CACHE 512
#define PAGE_2M    ((size_t)2 << 20)

/* What never changes in a frame, and the proof that the frame lies where frame_of looks. */
static void
frame_init(struct rte_mempool *pool, void *opaque, void *obj, unsigned int i)
{
	struct rte_mbuf *m = obj;
	struct corq_frame *f = frame_of(m);

	(void)opaque;
	(void)i;
	CORQ_ASSERT(rte_pktmbuf_priv_size(pool) == sizeof(*f));
	CORQ_ASSERT(((uintptr_t)f & (CORQ_CACHELINE - 1)) == 0);
	CORQ_ASSERT((void *)(f + 1) == m->buf_addr);
	CORQ_ASSERT(rte_mbuf_to_priv(m) == (void *)f && mbuf_of(f) == m);
	CORQ_ASSERT(m->data_off == CORQ_FRAME_HEADROOM);
	f->buf_start = m->buf_addr;
	f->room = m->buf_len;
	frame_reset_tx(f);
}

static size_t
objs_size(const struct rte_mempool *pool, uint32_t n)
{
	return n * (size_t)(pool->header_size + pool->elt_size + pool->trailer_size) + PAGE_2M;
}

struct thp_area {
	void *p;
	size_t size;
};

static void
thp_free(struct rte_mempool_memhdr *head, void *opaque)
{
	struct thp_area *area = opaque;

	(void)head;
	corq_port_free(area->p, area->size);
	free(area);
}

/* EAL without huge pages puts its heap into a memfd, which gets no transparent ones either; a
 * mapping of ours does, and that is worth a factor of two. */
static int
populate_thp(struct rte_mempool *pool, uint32_t n, int socket)
{
	struct thp_area *area = malloc(sizeof(*area));
	int rc;

	if (area == NULL)
		return -ENOMEM;
	area->size = objs_size(pool, n);
	area->p = corq_port_alloc(area->size, socket);
	if (area->p == NULL) {
		free(area);
		return -ENOMEM;
	}
	/* on failure mempool may have called thp_free already, or not: it stays mapped then */
	rc = rte_mempool_populate_iova(pool, area->p, RTE_BAD_IOVA, area->size, thp_free, area);
	return rc != 0 ? rc : -ENOMEM;
}

static int
fill_pool(struct rte_mempool *pool, const struct pool_conf *conf, const char *ops)
{
	struct rte_pktmbuf_pool_private priv = {
		.mbuf_data_room_size = (uint16_t)(CORQ_FRAME_HEADROOM + conf->data_room),
		.mbuf_priv_size = sizeof(struct corq_frame)};
	int rc = rte_mempool_set_ops_byname(pool, ops, NULL);

	if (rc != 0)
		return rc;
	rte_pktmbuf_pool_init(pool, &priv);
	rc = conf->own_memory ? populate_thp(pool, conf->n, conf->socket)
			      : rte_mempool_populate_default(pool);
	if (rc < 0)
		return rc;
	if ((uint32_t)rc != conf->n)
		return -ENOMEM;
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	CORQ_ASSERT(rte_mempool_obj_iter(pool, frame_init, NULL) == conf->n);
	return 0;
}

struct rte_mempool *
corq_pool_create(struct corq_eal *eal, const struct pool_conf *conf, char *err, size_t errlen)
{
	const char *ops = corq_eal_shares_cpus(eal) ? "ring_mt_rts"
			  : conf->many              ? "ring_mp_mc"
						    : "ring_mp_sc";
	size_t elt = sizeof(struct rte_mbuf) + sizeof(struct corq_frame) + CORQ_FRAME_HEADROOM +
		     conf->data_room;
	struct rte_mempool *pool;
	int rc;

	CORQ_ASSERT(conf->data_room <= UINT16_MAX - CORQ_FRAME_HEADROOM);
	pool = rte_mempool_create_empty(conf->name, conf->n, (unsigned int)elt,
		CORQ_MIN((uint32_t)POOL_CACHE, conf->n / 4),
		sizeof(struct rte_pktmbuf_pool_private), conf->socket,
		/* else an object would not cross EAL's 4 KiB pages, one to each */
		conf->own_memory ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0);
	rc = pool != NULL ? fill_pool(pool, conf, ops) : -rte_errno;
	if (pool != NULL && rc == 0)
		return pool;
	rte_mempool_free(pool);
	corq_port_err(err, errlen, "too little memory for %u packet buffers of %u bytes (%s)",
		conf->n, conf->data_room, rte_strerror(-rc));
	return NULL;
}

uint32_t
corq_pool_mem_mb(uint32_t n, uint32_t data_room)
{
	/* mempool's header, and padding for the memory channels, are within these 192 bytes */
	uint64_t each = 192 + sizeof(struct rte_mbuf) + sizeof(struct corq_frame) +
			CORQ_FRAME_HEADROOM + data_room;
	uint64_t ring = 16ull * n;

	/* 2 MiB pages are not crossed by an object; and a page for the ring, one for the head */
	return (uint32_t)((n * each * 33 / 32 + ring) >> 20) + 6;
}
