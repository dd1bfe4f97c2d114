/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctl_wire.h - a machine for tests of an instance: plain threads, malloc'd frames, and a wire of
 * single-producer single-consumer rings, one for each pair of ports. ThreadSanitizer sees all of
 * it.
 *
 * The wire picks the receiving port by the ports of the segment, not by who owns the tuple, so
 * about half of the connections arrive on a core that has to hand them over; every STRAY-th frame
 * goes to the other core of the side in addition. A frame crosses whole: its receiver frees it.
 *
 * Each port's words are its own thread's; the test reads them before the threads start and after
 * they are joined. What a test may make fail: wire_fail.
 */
#ifndef CTL_WIRE_H
#define CTL_WIRE_H

#include "base/atomic.h"
#include "base/ring.h"
#include "ctl/platform.h"
#include "net/wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define WIRE_PORTS 4
#define WIRE_RING  4096
#define STRAY      61

struct wire_frame {
	struct corq_frame f;
	uint8_t buf[CORQ_FRAME_HEADROOM + CORQ_FRAME_DATAROOM];
};

struct wire_port {
	struct corq_port port; /* first */
	struct wire *w;
	unsigned index, next_in;
	uint64_t n_made, n_freed, n_sent, n_strayed; /* frames */
	pthread_t thread;
	int (*fn)(void *);
	void *arg;
	int rc;
};

struct wire {
	unsigned n, n_side_a;
	struct wire_port port[WIRE_PORTS];
	struct corq_spsc *ring[WIRE_PORTS][WIRE_PORTS]; /* [from][to] */
	unsigned n_alloc, n_closed, n_launched;
};

/* What the next start is to fail at; 0: nothing. */
static struct {
	bool both_sides;   /* one port that receives what it sends */
	int open, start;   /* errno */
	unsigned alloc;    /* 1: the first allocation, 2: the second ... */
	unsigned launch;   /* likewise */
	unsigned nodes;    /* NUMA: how many there are; 0: 1 */
	struct wire *last; /* the machine opened last, until wire_forget */
} wire_test;

static struct wire_port *
wire_port_of(struct corq_port *port)
{
	return (struct wire_port *)(void *)port;
}

static uint64_t
wire_now(struct corq_port *port)
{
	struct timespec t;

	(void)port;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint16_t
wire_alloc(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct wire_frame *w = malloc(sizeof(*w));

		memset(&w->f, 0, sizeof(w->f));
		w->f.buf_start = w->buf;
		w->f.room = sizeof(w->buf);
		w->f.data = w->buf + CORQ_FRAME_HEADROOM;
		frames[i] = &w->f;
	}
	wire_port_of(port)->n_made += n;
	return n;
}

static void
wire_free(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		while (frames[i]) {
			struct corq_frame *f = frames[i];

			frames[i] = f->next;
			free(f);
			wire_port_of(port)->n_freed++;
		}
	}
}

static uint16_t
wire_rx(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct wire_port *p = wire_port_of(port);
	uint64_t word[CORQ_BURST_MAX];
	uint16_t got = 0;

	for (unsigned i = 0; i < p->w->n && got < n; i++) {
		struct corq_spsc *r = p->w->ring[p->next_in][p->index];
		uint32_t k = corq_spsc_pop(r, word, (uint32_t)CORQ_MIN(n - got, CORQ_BURST_MAX));

		for (uint32_t j = 0; j < k; j++)
			frames[got++] = (struct corq_frame *)(uintptr_t)word[j];
		p->next_in = (p->next_in + 1) % p->w->n;
	}
	return got;
}

/* The port that gets it: by the segment's ports; what has none goes to the side's first. */
static unsigned
wire_pick(struct wire_port *p, const struct corq_frame *f)
{
	struct wire *w = p->w;
	unsigned first = p->index < w->n_side_a ? w->n_side_a : 0;
	unsigned n = p->index < w->n_side_a ? w->n - w->n_side_a : w->n_side_a, at = 0;

	if (w->n == 1)
		return 0;
	if (corq_get_be16(f->data + 12) == CORQ_ETHERTYPE_IP4)
		at = (corq_get_be16(f->data + 34) ^ corq_get_be16(f->data + 36)) % n;
	if (p->n_sent % STRAY == 0) {
		at = (at + 1) % n;
		p->n_strayed++;
	}
	return first + at;
}

static uint16_t
wire_tx(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct wire_port *p = wire_port_of(port);

	for (uint16_t i = 0; i < n; i++) {
		uint64_t word = (uintptr_t)frames[i];
		unsigned to = wire_pick(p, frames[i]);

		frames[i]->flags = 0;
		frames[i]->hops = 0;
		if (corq_spsc_push(p->w->ring[p->index][to], &word, 1) == 0)
			return i;
		p->n_sent++;
	}
	return n;
}

/* Gives the CPU away. Not sched_yield: who yields all the time gets next to nothing from
 * Linux 6.18's scheduler beside others that do not. */
static void
wire_idle(struct corq_port *port, uint64_t ns)
{
	struct timespec t = {.tv_nsec = (long)CORQ_MIN(ns, 50000u)};

	(void)port;
	nanosleep(&t, NULL);
}

static const struct corq_port_ops wire_ops = {
	.rx_burst = wire_rx,
	.tx_burst = wire_tx,
	.tx_alloc = wire_alloc,
	.free_bulk = wire_free,
	.now_ns = wire_now,
	.idle = wire_idle,
};

/* ---- the platform ---- */

static int
wire_open(struct corq_machine *m, const struct corq_config *c, const struct corq_log *log,
	char *err, size_t err_len)
{
	struct wire *w;

	(void)log;
	if (wire_test.open) {
		snprintf(err, err_len, "no machine today");
		return -wire_test.open;
	}
	w = calloc(1, sizeof(*w));
	w->n_side_a = c->cores ? c->cores : 1;
	w->n = wire_test.both_sides ? 1 : 2 * w->n_side_a;
	for (unsigned i = 0; i < w->n; i++) {
		struct wire_port *p = &w->port[i];

		p->w = w;
		p->index = i;
		p->port = (struct corq_port){.ops = &wire_ops, .mtu = 1500};
		memcpy(p->port.mac, (uint8_t[]){2, 0, 0, 0, 0, i >= w->n_side_a ? 0xb : 0xa}, 6);
		m->port[i] = &p->port;
		for (unsigned j = 0; j < w->n; j++) {
			w->ring[i][j] = aligned_alloc(CORQ_CACHELINE, corq_spsc_size(WIRE_RING));
			corq_spsc_init(w->ring[i][j], WIRE_RING);
		}
	}
	m->state = wire_test.last = w;
	m->n_ports = w->n;
	m->n_side_a = w->n_side_a;
	m->both_sides = wire_test.both_sides;
	return 0;
}

static int
wire_start(struct corq_machine *m, char *err, size_t err_len)
{
	(void)m;
	if (wire_test.start)
		snprintf(err, err_len, "the link is down");
	return -wire_test.start;
}

/* Frames still on the wire go with it. */
static void
wire_close(struct corq_machine *m)
{
	struct wire *w = m->state;
	struct corq_frame *f;

	for (unsigned i = 0; i < w->n; i++)
		while (wire_rx(&w->port[i].port, &f, 1))
			wire_free(&w->port[i].port, &f, 1);
	w->n_closed++;
}

static void *
wire_mem(struct corq_machine *m, unsigned core, size_t bytes)
{
	struct wire *w = m->state;
	void *p;

	(void)core;
	if (wire_test.alloc && w->n_alloc + 1 == wire_test.alloc)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (p == MAP_FAILED)
		return NULL;
	w->n_alloc++;
	return p;
}

static void
wire_mem_free(struct corq_machine *m, void *p, size_t bytes)
{
	struct wire *w = m->state;

	munmap(p, bytes);
	w->n_alloc--;
}

/* The calling thread's NUMA node, as a test says. */
static _Thread_local unsigned wire_node;

/* Memory and the node that it was given or placed on, newest first. */
static struct {
	void *p;
	size_t bytes;
	unsigned node;
} wire_placed[64];
static unsigned wire_n_placed;

static unsigned
wire_nodes(struct corq_machine *m)
{
	(void)m;
	return wire_test.nodes ? wire_test.nodes : 1;
}

static unsigned
wire_node_here(struct corq_machine *m)
{
	(void)m;
	return wire_node;
}

static void
wire_place(struct corq_machine *m, void *p, size_t bytes, unsigned node)
{
	(void)m;
	if (wire_n_placed < CORQ_ARRAY_LEN(wire_placed)) {
		wire_placed[wire_n_placed].p = p;
		wire_placed[wire_n_placed].bytes = bytes;
		wire_placed[wire_n_placed++].node = node;
	}
}

static void *
wire_mem_on(struct corq_machine *m, unsigned node, size_t bytes, bool dense)
{
	void *p = wire_mem(m, 0, bytes);

	(void)dense;
	if (p)
		wire_place(m, p, bytes, node);
	return p;
}

static void *
wire_thread(void *arg)
{
	struct wire_port *p = arg;

	p->rc = p->fn(p->arg);
	return NULL;
}

static int
wire_launch(struct corq_machine *m, unsigned core, int (*fn)(void *), void *arg)
{
	struct wire *w = m->state;
	struct wire_port *p = &w->port[core];

	if (wire_test.launch && w->n_launched + 1 == wire_test.launch)
		return -EAGAIN;
	w->n_launched++;
	p->fn = fn;
	p->arg = arg;
	return -pthread_create(&p->thread, NULL, wire_thread, p);
}

static int
wire_join(struct corq_machine *m, unsigned core)
{
	struct wire *w = m->state;

	pthread_join(w->port[core].thread, NULL);
	w->n_launched--;
	return w->port[core].rc;
}

static const struct corq_platform wire_platform = {
	.open = wire_open,
	.start = wire_start,
	.close = wire_close,
	.alloc = wire_mem,
	.free = wire_mem_free,
	.nodes = wire_nodes,
	.node_here = wire_node_here,
	.alloc_on = wire_mem_on,
	.place = wire_place,
	.launch = wire_launch,
	.join = wire_join,
};

/* After the instance's end: frames that were made and never freed. */
static uint64_t
wire_frames_out(const struct wire *w)
{
	uint64_t out = 0;

	for (unsigned i = 0; i < w->n; i++)
		out += w->port[i].n_made - w->port[i].n_freed;
	return out;
}

static void
wire_forget(void)
{
	struct wire *w = wire_test.last;

	if (w) {
		for (unsigned i = 0; i < w->n; i++)
			for (unsigned j = 0; j < w->n; j++)
				free(w->ring[i][j]);
		free(w);
	}
	wire_n_placed = 0;
	memset(&wire_test, 0, sizeof(wire_test));
}

#endif
