/* SPDX-License-Identifier: BSD-3-Clause */
/* memwire.c - frames, rings and the self-timing of the two ends. See memwire.h. */
#include "memwire.h"

#include "base/cycles.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAUSE (1u << 17) /* cycles: no burst takes so long, a pause of the machine does */
#define RING  4096u      /* frames on the wire in one direction, as the loop device's */

struct ring {
	struct corq_frame *v[RING];
	uint32_t head, tail; /* ever pushed, ever popped */
};

struct end {
	struct corq_port port; /* first: the port's address is its end's */
	struct memwire *mw;
	struct ring *out, *in;
	struct memwire_cost cost;
} CORQ_ALIGNED_LINE;

struct memwire {
	struct end end[2];
	struct ring ring[2]; /* [i]: what end i sends */
	uint32_t n_free, n_frames;
	uint64_t tsc_cost;
	uint64_t tsc0; /* the clock starts here */
	double tsc_hz;
	uint64_t ns_mult; /* ns = cycles * ns_mult >> 32 */
	struct corq_frame **stack;
	size_t mapped; /* bytes of this mapping, frames behind it */
};

static inline struct end *
end_of(struct corq_port *port)
{
	return (struct end *)(void *)port;
}

static inline void
charge(struct end *e, enum memwire_fn fn, uint64_t t0, uint32_t frames)
{
	uint64_t d = corq_cycles() - t0, base = e->mw->tsc_cost;

	if (d < PAUSE)
		e->cost.cycles[fn] += d > base ? d - base : 0;
	e->cost.calls[fn]++;
	e->cost.frames[fn] += frames;
}

static uint16_t
wire_rx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	uint64_t t0 = corq_cycles();
	struct end *e = end_of(port);
	struct ring *r = e->in;
	uint32_t have = r->head - r->tail;
	uint16_t got = (uint16_t)CORQ_MIN(have, (uint32_t)n);

	for (uint16_t i = 0; i < got; i++) {
		struct corq_frame *f = r->v[(r->tail + i) & (RING - 1)];

		CORQ_PREFETCH(f);
		frames[i] = f;
	}
	r->tail += got;
	port->backlog = have - got;
	charge(e, MEMWIRE_RX, t0, got);
	return got;
}

static uint16_t
wire_tx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	uint64_t t0 = corq_cycles();
	struct end *e = end_of(port);
	struct ring *r = e->out;
	uint32_t room = RING - (r->head - r->tail);
	uint16_t took = (uint16_t)CORQ_MIN(room, (uint32_t)n);

	for (uint16_t i = 0; i < took; i++) {
		struct corq_frame *f = frames[i];

		CORQ_ASSERT(f->next == NULL && !(f->flags & CORQ_FRAME_EXT));
		f->flags &= CORQ_FRAME_VLAN;
		f->pkt_len = f->len;
		f->rx_queue = 0;
		f->hops = 0;
		r->v[(r->head + i) & (RING - 1)] = f;
	}
	r->head += took;
	port->n_tx_full += (uint64_t)(n - took);
	charge(e, MEMWIRE_TX, t0, took);
	return took;
}

static inline void
frame_reset(struct corq_frame *f)
{
	*f = (struct corq_frame){.buf_start = f->buf_start,
		.data = f->buf_start + CORQ_FRAME_HEADROOM,
		.room = f->room};
}

static uint16_t
wire_tx_alloc(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	uint64_t t0 = corq_cycles();
	struct end *e = end_of(port);
	struct memwire *mw = e->mw;
	uint16_t got = (uint16_t)CORQ_MIN(mw->n_free, (uint32_t)n);

	for (uint16_t i = 0; i < got; i++) {
		struct corq_frame *f = mw->stack[--mw->n_free];

		frame_reset(f);
		frames[i] = f;
	}
	charge(e, MEMWIRE_ALLOC, t0, got);
	return got;
}

static void
wire_free_bulk(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	uint64_t t0 = corq_cycles();
	struct end *e = end_of(port);
	struct memwire *mw = e->mw;

	memcpy(mw->stack + mw->n_free, frames, n * sizeof(frames[0]));
	mw->n_free += n;
	charge(e, MEMWIRE_FREE, t0, n);
}

static uint64_t
wire_now_ns(struct corq_port *port)
{
	uint64_t t0 = corq_cycles();
	struct end *e = end_of(port);
	struct memwire *mw = e->mw;
	uint64_t ns = (uint64_t)(((unsigned __int128)(t0 - mw->tsc0) * mw->ns_mult) >> 32);

	charge(e, MEMWIRE_NOW, t0, 0);
	return ns + CORQ_NS_PER_S; /* no zero: 0 means "not set" to the engine */
}

static const struct corq_port_ops wire_ops = {
	.rx_burst = wire_rx_burst,
	.tx_burst = wire_tx_burst,
	.tx_alloc = wire_tx_alloc,
	.free_bulk = wire_free_bulk,
	.now_ns = wire_now_ns,
};

/* The least of many pairs of reads: what charge() measures of itself. */
static uint64_t
measure_tsc_cost(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 10000; i++) {
		uint64_t t0 = corq_cycles(), d = corq_cycles() - t0;

		best = CORQ_MIN(best, d);
	}
	return best;
}

static uint64_t
system_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CORQ_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static double
measure_tsc_hz(void)
{
	uint64_t t0 = corq_cycles(), n0 = system_ns(), n1;

	do
		n1 = system_ns();
	while (n1 - n0 < 20 * CORQ_NS_PER_MS);
	return (double)(corq_cycles() - t0) * 1e9 / (double)(n1 - n0);
}

struct memwire *
memwire_new(uint32_t n_frames, uint16_t mtu)
{
	size_t head = (sizeof(struct memwire) + 63) & ~(size_t)63;
	size_t stack = (n_frames * sizeof(struct corq_frame *) + 63) & ~(size_t)63;
	size_t room = CORQ_FRAME_HEADROOM + CORQ_FRAME_DATAROOM;
	size_t bytes = head + stack + n_frames * (sizeof(struct corq_frame) + room);
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct memwire *mw = (void *)at;

	if (at == MAP_FAILED)
		return NULL;
	mw->mapped = bytes;
	mw->stack = (void *)(at + head);
	mw->n_frames = mw->n_free = n_frames;
	at += head + stack;
	for (uint32_t i = 0; i < n_frames; i++, at += sizeof(struct corq_frame) + room) {
		struct corq_frame *f = (void *)at;

		f->buf_start = (uint8_t *)(f + 1);
		f->room = (uint16_t)room;
		mw->stack[n_frames - 1 - i] = f;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct end *e = &mw->end[i];

		e->mw = mw;
		e->out = &mw->ring[i];
		e->in = &mw->ring[!i];
		e->port.ops = &wire_ops;
		e->port.mtu = mtu;
		memcpy(e->port.mac, (const uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(1 + i)}, 6);
	}
	mw->tsc_cost = measure_tsc_cost();
	mw->tsc_hz = measure_tsc_hz();
	mw->ns_mult = (uint64_t)(1e9 * 4294967296.0 / mw->tsc_hz);
	mw->tsc0 = corq_cycles();
	return mw;
}

void
memwire_free(struct memwire *mw)
{
	if (mw)
		munmap(mw, mw->mapped);
}

struct corq_port *
memwire_port(struct memwire *mw, unsigned end)
{
	return &mw->end[end].port;
}

const struct memwire_cost *
memwire_costs(const struct memwire *mw, unsigned end)
{
	return &mw->end[end].cost;
}

void
memwire_reset_costs(struct memwire *mw)
{
	for (unsigned i = 0; i < 2; i++)
		memset(&mw->end[i].cost, 0, sizeof(mw->end[i].cost));
}

uint32_t
memwire_frames_out(const struct memwire *mw)
{
	uint32_t on_wire = 0;

	for (unsigned i = 0; i < 2; i++)
		on_wire += mw->ring[i].head - mw->ring[i].tail;
	return mw->n_frames - mw->n_free - on_wire;
}

uint64_t
memwire_tsc_cost(const struct memwire *mw)
{
	return mw->tsc_cost;
}

double
memwire_tsc_hz(const struct memwire *mw)
{
	return mw->tsc_hz;
}
