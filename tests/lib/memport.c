/* SPDX-License-Identifier: BSD-3-Clause */
/* memport.c - frames, queues and the clock of the memory port. See memport.h; nic.c is the NIC. */
#include "memport.h"
#include "memport_nic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame and its place in its owner's list of frames out. */
struct mframe {
	struct corq_frame f; /* first: a frame's address is its mframe's */
	struct memport *owner;
	struct mframe *prev, *next;
	bool is_rx;
	uint32_t captured_len; /* head of a taken packet: its bytes when it was taken */
	uint8_t *captured;
};

struct ring {
	void **v;
	uint32_t head, n, cap;
};

struct memport {
	struct corq_port port; /* first: the core knows the memport by it */
	struct memport_config cfg;
	uint64_t now_ns;
	struct mframe out; /* list head of all frames out */
	struct ring rx;    /* injected packets (head frames) */
	struct ring done;  /* ext words to report */
	struct ring taken; /* packets in the device (late completion) */
	struct memport_pkt *tx_first, *tx_last;
	uint32_t tx_room, rx_limit, tx_limit, backlog;
	uint16_t rx_max;
	struct pcapbuf *pcap;
	bool pcap_tx, pcap_rx;
	struct memport_counts n;
	char violation[256];
};

static void *
alloc(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	if (p == NULL)
		abort();
	return p;
}

static void
ring_push(struct ring *r, void *p)
{
	if (r->n == r->cap) {
		uint32_t cap = r->cap ? 2 * r->cap : 64;
		void **v = alloc(cap * sizeof(*v));

		for (uint32_t i = 0; i < r->n; i++)
			v[i] = r->v[(r->head + i) % r->cap];
		free(r->v);
		r->v = v;
		r->cap = cap;
		r->head = 0;
	}
	r->v[(r->head + r->n++) % r->cap] = p;
}

static void *
ring_pop(struct ring *r)
{
	void *p = r->v[r->head];

	r->head = (r->head + 1) % r->cap;
	r->n--;
	return p;
}

void
memport_violate(struct memport *mp, const char *fmt, ...)
{
	va_list ap;

	if (mp->n.violations++ == 0) {
		va_start(ap, fmt);
		vsnprintf(mp->violation, sizeof(mp->violation), fmt, ap);
		va_end(ap);
	}
}

/* ---- frames ---- */

static struct mframe *
frame_new(struct memport *mp, bool is_rx, uint32_t room)
{
	struct mframe *m = alloc(sizeof(*m));

	m->owner = mp;
	m->is_rx = is_rx;
	m->f.buf_start = alloc(room);
	m->f.room = (uint16_t)room;
	m->next = mp->out.next;
	m->prev = &mp->out;
	m->next->prev = m;
	mp->out.next = m;
	if (is_rx)
		mp->n.rx_out++;
	else
		mp->n.tx_out++;
	return m;
}

static void
frame_free(struct mframe *m)
{
	struct memport *mp = m->owner;

	m->prev->next = m->next;
	m->next->prev = m->prev;
	if (m->is_rx)
		mp->n.rx_out--;
	else
		mp->n.tx_out--;
	free(m->captured);
	free(m->f.buf_start);
	free(m);
}

/* Each part goes to its own owner; the links are read before a part is freed. */
static void
chain_free(struct corq_frame *f)
{
	while (f != NULL) {
		struct mframe *m = (struct mframe *)f;

		f = f->next;
		if (m->f.flags & CORQ_FRAME_EXT)
			ring_push(&m->owner->done, m->f.ext);
		frame_free(m);
	}
}

/* ---- receive ---- */

static uint32_t
parts_of(const struct memport_how *how, uint32_t len)
{
	uint32_t n = 1, left = len;

	for (unsigned i = 0; i < how->n_split && how->split[i] < left; i++) {
		left -= how->split[i];
		n++;
	}
	return n;
}

static struct corq_frame *
rx_chain(struct memport *mp, const uint8_t *bytes, uint32_t len, const struct memport_how *how)
{
	struct corq_frame *head = NULL, **link = &head;
	uint32_t off = 0;

	for (unsigned i = 0; off < len || head == NULL; i++) {
		uint32_t n = len - off;
		struct mframe *m;

		if (i < how->n_split && how->split[i] < n)
			n = how->split[i];
		m = frame_new(mp, true, CORQ_FRAME_HEADROOM + n);
		m->f.data = m->f.buf_start + CORQ_FRAME_HEADROOM;
		memcpy(m->f.data, bytes + off, n);
		m->f.len = (uint16_t)n;
		*link = &m->f;
		link = &m->f.next;
		off += n;
	}
	head->pkt_len = len;
	head->flags = how->flags;
	head->rx_hash = how->rx_hash;
	head->rx_queue = mp->port.queue;
	return head;
}

bool
memport_inject_as(
	struct memport *mp, const void *bytes, uint32_t len, const struct memport_how *how)
{
	uint32_t room = CORQ_MIN(mp->cfg.rx_frames, mp->rx_limit);

	if (mp->pcap != NULL && mp->pcap_rx)
		pcapbuf_add(mp->pcap, mp->now_ns, bytes, len);
	mp->n.injected++;
	if (mp->n.rx_out + parts_of(how, len) > room) {
		mp->port.n_rx_nombuf++;
		return false;
	}
	if (mp->cfg.rx_ring != 0 && mp->rx.n >= mp->cfg.rx_ring) {
		mp->port.n_rx_missed++;
		return false;
	}
	ring_push(&mp->rx, rx_chain(mp, bytes, len, how));
	return true;
}

bool
memport_inject(struct memport *mp, const void *bytes, uint32_t len)
{
	const struct memport_how how = {0};

	return memport_inject_as(mp, bytes, len, &how);
}

static uint16_t
op_rx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct memport *mp = (struct memport *)port;
	uint16_t got = 0;

	if (mp->rx_max != 0 && n > mp->rx_max)
		n = mp->rx_max;
	while (got < n && mp->rx.n != 0)
		frames[got++] = ring_pop(&mp->rx);
	port->backlog = mp->rx.n + mp->backlog;
	mp->n.received += got;
	return got;
}

/* ---- send ---- */

void
memport_capture(struct memport *mp, const uint8_t *bytes, uint32_t len)
{
	struct memport_pkt *p = alloc(sizeof(*p) + len);

	p->at_ns = mp->now_ns;
	p->len = len;
	memcpy(p->bytes, bytes, len);
	if (mp->tx_last != NULL)
		mp->tx_last->next = p;
	else
		mp->tx_first = p;
	mp->tx_last = p;
	mp->n.captured++;
	if (mp->pcap != NULL && mp->pcap_tx)
		pcapbuf_add(mp->pcap, mp->now_ns, bytes, len);
}

static void
check_part(struct memport *mp, const struct corq_frame *f)
{
	const struct mframe *m = (const struct mframe *)f;

	if (m->is_rx)
		memport_violate(mp, "tx_burst of a received frame");
	if (f->flags & CORQ_FRAME_EXT) {
		if (!(mp->port.caps & CORQ_PORT_CAP_CHAIN))
			memport_violate(mp, "borrowed part without CORQ_PORT_CAP_CHAIN");
	} else if (f->data < f->buf_start || f->data + f->len > f->buf_start + f->room) {
		memport_violate(mp, "data outside the frame's buffer");
	}
}

/* The packet's bytes in one block, with everything checked that a device relies on. */
static uint8_t *
linearize(struct memport *mp, const struct corq_frame *head, uint32_t *len)
{
	uint32_t total = 0, off = 0;
	uint8_t *bytes;

	for (const struct corq_frame *f = head; f != NULL; f = f->next) {
		check_part(mp, f);
		total += f->len;
	}
	if (total != head->pkt_len)
		memport_violate(mp, "pkt_len %u, but the parts have %u", head->pkt_len, total);
	if (head->next != NULL && !(mp->port.caps & CORQ_PORT_CAP_CHAIN))
		memport_violate(mp, "chain without CORQ_PORT_CAP_CHAIN");
	bytes = alloc(total);
	for (const struct corq_frame *f = head; f != NULL; f = f->next) {
		memcpy(bytes + off, f->data, f->len);
		off += f->len;
	}
	*len = total;
	return bytes;
}

/* The device is done with a packet; borrowed bytes must still be what was sent. */
static void
complete(struct memport *mp, struct corq_frame *head)
{
	struct mframe *m = (struct mframe *)head;
	uint32_t off = 0;

	for (const struct corq_frame *f = head; f != NULL; f = f->next) {
		if (off + f->len > m->captured_len || memcmp(m->captured + off, f->data, f->len))
			memport_violate(mp, "a packet changed while the device had it");
		off += f->len;
	}
	chain_free(head);
}

void
memport_complete(struct memport *mp)
{
	while (mp->taken.n != 0)
		complete(mp, ring_pop(&mp->taken));
}

static void
take(struct memport *mp, struct corq_frame *f)
{
	struct mframe *m = (struct mframe *)f;
	uint8_t *nic;

	m->captured = linearize(mp, f, &m->captured_len);
	nic = alloc(m->captured_len);
	memcpy(nic, m->captured, m->captured_len);
	memport_nic_send(mp, &mp->port, f, nic, m->captured_len);
	free(nic);
	mp->n.sent++;
	if (mp->cfg.late_completion)
		ring_push(&mp->taken, f);
	else
		complete(mp, f);
}

static uint16_t
op_tx_burst(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct memport *mp = (struct memport *)port;
	uint16_t done = 0;

	memport_complete(mp);
	while (done < n && mp->tx_room != 0) {
		if (mp->tx_room != UINT32_MAX)
			mp->tx_room--;
		take(mp, frames[done++]);
	}
	if (done < n)
		port->n_tx_full++;
	return done;
}

static uint16_t
op_tx_alloc(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	struct memport *mp = (struct memport *)port;
	uint32_t room = CORQ_MIN(mp->cfg.tx_frames, mp->tx_limit);
	uint16_t got = 0;

	while (got < n && mp->n.tx_out < room) {
		struct mframe *m = frame_new(mp, false, CORQ_FRAME_HEADROOM + CORQ_FRAME_DATAROOM);

		m->f.data = m->f.buf_start + CORQ_FRAME_HEADROOM;
		frames[got++] = &m->f;
	}
	return got;
}

static void
op_free_bulk(struct corq_port *port, struct corq_frame **frames, uint16_t n)
{
	(void)port;
	for (uint16_t i = 0; i < n; i++)
		chain_free(frames[i]);
}

static uint64_t
op_now(struct corq_port *port)
{
	return ((struct memport *)port)->now_ns;
}

static uint16_t
op_released(struct corq_port *port, void **ext, uint16_t n, int provoke)
{
	struct memport *mp = (struct memport *)port;
	uint16_t got = 0;

	if (provoke)
		memport_complete(mp);
	while (got < n && mp->done.n != 0)
		ext[got++] = ring_pop(&mp->done);
	return got;
}

static const struct corq_port_ops memport_ops = {
	.rx_burst = op_rx_burst,
	.tx_burst = op_tx_burst,
	.tx_alloc = op_tx_alloc,
	.free_bulk = op_free_bulk,
	.now_ns = op_now,
	.released = op_released,
};

/* ---- the test's side ---- */

struct memport *
memport_new(const struct memport_config *cfg)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, zero[6];
	struct memport *mp = alloc(sizeof(*mp));

	mp->cfg = *cfg;
	if (mp->cfg.rx_frames == 0)
		mp->cfg.rx_frames = MEMPORT_FRAMES;
	if (mp->cfg.tx_frames == 0)
		mp->cfg.tx_frames = MEMPORT_FRAMES;
	if (mp->cfg.mtu == 0)
		mp->cfg.mtu = 1500;
	if (mp->cfg.tso_max == 0)
		mp->cfg.tso_max = 65536 - 120;
	memcpy(mp->port.mac, memcmp(cfg->mac, zero, 6) ? cfg->mac : mac, 6);
	mp->now_ns = cfg->start_ns ? cfg->start_ns : 1000 * CORQ_NS_PER_S;
	mp->out.next = mp->out.prev = &mp->out;
	mp->tx_room = mp->tx_limit = mp->rx_limit = UINT32_MAX;
	mp->port.ops = &memport_ops;
	mp->port.caps = cfg->caps;
	mp->port.tso_max = cfg->caps & CORQ_PORT_CAP_TSO ? mp->cfg.tso_max : 0;
	mp->port.mtu = mp->cfg.mtu;
	mp->port.queue = cfg->queue;
	return mp;
}

void
memport_free(struct memport *mp)
{
	struct memport_pkt *p;

	if (mp == NULL)
		return;
	while ((p = memport_take_tx(mp)) != NULL)
		free(p);
	while (mp->out.next != &mp->out)
		frame_free(mp->out.next);
	free(mp->rx.v);
	free(mp->done.v);
	free(mp->taken.v);
	free(mp);
}

struct corq_port *
memport_port(struct memport *mp)
{
	return &mp->port;
}

struct memport_pkt *
memport_take_tx(struct memport *mp)
{
	struct memport_pkt *p = mp->tx_first;

	if (p == NULL)
		return NULL;
	mp->tx_first = p->next;
	if (p->next == NULL)
		mp->tx_last = NULL;
	p->next = NULL;
	return p;
}

const struct memport_pkt *
memport_peek_tx(const struct memport *mp)
{
	return mp->tx_first;
}

void
memport_set_tx_room(struct memport *mp, uint32_t packets)
{
	mp->tx_room = packets;
}

void
memport_limit_tx(struct memport *mp, uint32_t n)
{
	mp->tx_limit = n == UINT32_MAX ? n : mp->n.tx_out + n;
}

void
memport_limit_rx(struct memport *mp, uint32_t n)
{
	mp->rx_limit = n == UINT32_MAX ? n : mp->n.rx_out + n;
}

void
memport_set_backlog(struct memport *mp, uint32_t packets)
{
	mp->backlog = packets;
}

void
memport_set_rx_max(struct memport *mp, uint16_t n)
{
	mp->rx_max = n;
}

uint64_t
memport_now(const struct memport *mp)
{
	return mp->now_ns;
}

void
memport_set_clock(struct memport *mp, uint64_t ns)
{
	if (ns < mp->now_ns)
		abort();
	mp->now_ns = ns;
}

void
memport_advance(struct memport *mp, uint64_t ns)
{
	mp->now_ns += ns;
}

void
memport_set_pcap(struct memport *mp, struct pcapbuf *pb, bool tx, bool rx)
{
	mp->pcap = pb;
	mp->pcap_tx = tx;
	mp->pcap_rx = rx;
}

void
memport_counts(const struct memport *mp, struct memport_counts *out)
{
	*out = mp->n;
	out->rx_queued = mp->rx.n;
}

const char *
memport_violation(const struct memport *mp)
{
	return mp->n.violations ? mp->violation : NULL;
}
