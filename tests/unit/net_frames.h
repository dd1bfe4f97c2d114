/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_frames.h - frames for the tests of lib/net: exact-size heap buffers, packets written byte by
 * byte, a slow checksum and a seeded generator.
 *
 * Nothing here uses the code under test: the checksum sums 16-bit words one at a time, headers are
 * written by shifts. A received frame's buffer ends with its last byte, so that AddressSanitizer
 * sees one byte too far.
 */
#ifndef CORQ_TESTS_NET_FRAMES_H
#define CORQ_TESTS_NET_FRAMES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/frame.h"

static const uint8_t nf_us[6] = {0x02, 0, 0, 0, 0, 0x01};
static const uint8_t nf_peer[6] = {0x02, 0, 0, 0, 0, 0x02};

/* splitmix64 */
static inline uint64_t
nf_rand(uint64_t *s)
{
	uint64_t z = (*s += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* CORQ_SEED in the environment, or a fixed value; printed so that a failure can be replayed. */
static inline uint64_t
nf_seed(const char *test)
{
	const char *e = getenv("CORQ_SEED");
	uint64_t s = e ? strtoull(e, NULL, 0) : 0x5eed;

	printf("%s: CORQ_SEED=%#llx\n", test, (unsigned long long)s);
	return s;
}

/* RFC 1071, the slow way: the sum of big-endian words, folded, not complemented, host order. */
static inline uint32_t
nf_sum(const uint8_t *p, size_t n, uint32_t sum)
{
	for (size_t i = 0; i < n; i++) {
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static inline void
nf_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void
nf_put32(uint8_t *p, uint32_t v)
{
	nf_put16(p, v >> 16);
	nf_put16(p + 2, v);
}

static inline uint32_t
nf_get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* One part whose memory is exactly n bytes. Free with nf_free. */
static inline struct corq_frame *
nf_rx(const uint8_t *bytes, size_t n)
{
	struct corq_frame *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->data = malloc(n ? n : 1);
	assert_non_null(f->data);
	if (n)
		memcpy(f->data, bytes, n);
	f->buf_start = f->data;
	f->len = f->room = (uint16_t)n;
	f->pkt_len = (uint32_t)n;
	return f;
}

/* A chain: cuts[] are the lengths of all parts but the last. */
static inline struct corq_frame *
nf_rx_chain(const uint8_t *bytes, size_t n, const size_t *cuts, size_t n_cuts)
{
	struct corq_frame *head = NULL, **tail = &head;

	for (size_t i = 0, off = 0; i <= n_cuts; i++) {
		size_t l = i < n_cuts ? cuts[i] : n - off;

		assert_true(off + l <= n);
		*tail = nf_rx(bytes + off, l);
		tail = &(*tail)->next;
		off += l;
	}
	head->pkt_len = (uint32_t)n;
	return head;
}

/* An empty tx frame with headroom, as a port's tx_alloc gives it. */
static inline struct corq_frame *
nf_tx(size_t room)
{
	struct corq_frame *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->room = (uint16_t)(CORQ_FRAME_HEADROOM + room);
	f->buf_start = malloc(f->room);
	assert_non_null(f->buf_start);
	memset(f->buf_start, 0xee, f->room);
	f->data = f->buf_start + CORQ_FRAME_HEADROOM;
	return f;
}

static inline void
nf_free(struct corq_frame *f)
{
	while (f) {
		struct corq_frame *next = f->next;

		free(f->buf_start);
		free(f);
		f = next;
	}
}

/* A packet under construction: Ethernet, IP, TCP or whatever l4 holds. */
struct nf_pkt {
	uint8_t b[2048];
	size_t len; /* whole frame */
	size_t l4;  /* offset of the L4 header */
	size_t l3_hlen;
	bool v6;
};

/* Recomputes the IPv4 header checksum. */
static inline void
nf_fix_ip4(struct nf_pkt *p)
{
	nf_put16(p->b + 24, 0);
	nf_put16(p->b + 24, ~nf_sum(p->b + 14, p->l3_hlen, 0));
}

/* The folded pseudo-header sum for n bytes of proto, host order. */
static inline uint32_t
nf_pseudo(const struct nf_pkt *p, size_t n, uint8_t proto)
{
	uint32_t s = p->v6 ? nf_sum(p->b + 22, 32, 0) : nf_sum(p->b + 26, 8, 0);
	uint8_t tail[4] = {0, proto, 0, 0};

	nf_put16(tail + 2, (uint32_t)n);
	return nf_sum(tail, 4, s);
}

/* Recomputes the TCP checksum over n bytes of L4. */
static inline void
nf_fix_tcp_len(struct nf_pkt *p, size_t n)
{
	nf_put16(p->b + p->l4 + 16, 0);
	nf_put16(p->b + p->l4 + 16, ~nf_sum(p->b + p->l4, n, nf_pseudo(p, n, 6)));
}

static inline void
nf_fix_tcp(struct nf_pkt *p)
{
	nf_fix_tcp_len(p, p->len - p->l4);
}

/* Sets the IP length for n bytes of L4 and ends the frame there. */
static inline void
nf_set_l4_len(struct nf_pkt *p, size_t n)
{
	p->len = p->l4 + n;
	if (p->v6) {
		nf_put16(p->b + 18, (uint32_t)n);
		return;
	}
	nf_put16(p->b + 16, (uint32_t)(p->l3_hlen + n));
	nf_fix_ip4(p);
}

/* Ethernet and IP in front of n bytes of L4 that are not written yet. 192.0.2.2 -> 192.0.2.1, or
 * 2001:db8::2 -> 2001:db8::1. ip_opts: IPv4 options, a multiple of 4. */
static inline void
nf_l3(struct nf_pkt *p, bool v6, const uint8_t *ip_opts, size_t n_opts, uint8_t proto, size_t n)
{
	static const uint8_t net6[16] = {0x20, 0x01, 0x0d, 0xb8};

	memset(p, 0, sizeof(*p));
	p->v6 = v6;
	memcpy(p->b, nf_us, 6);
	memcpy(p->b + 6, nf_peer, 6);
	nf_put16(p->b + 12, v6 ? 0x86dd : 0x0800);
	if (v6) {
		p->l3_hlen = 40;
		p->b[14] = 0x60;
		p->b[20] = proto;
		p->b[21] = 64;
		memcpy(p->b + 22, net6, 16);
		memcpy(p->b + 38, net6, 16);
		p->b[37] = 2;
		p->b[53] = 1;
	} else {
		static const uint8_t src[4] = {192, 0, 2, 2}, dst[4] = {192, 0, 2, 1};

		p->l3_hlen = 20 + n_opts;
		p->b[14] = (uint8_t)(0x40 | p->l3_hlen / 4);
		p->b[20] = 0x40;
		p->b[22] = 64;
		p->b[23] = proto;
		memcpy(p->b + 26, src, 4);
		memcpy(p->b + 30, dst, 4);
		if (n_opts)
			memcpy(p->b + 34, ip_opts, n_opts);
	}
	p->l4 = 14 + p->l3_hlen;
	nf_set_l4_len(p, n);
}

/* A TCP segment 40000 -> 80, seq 1000, ack 2000, window 512, with options (a multiple of 4) and n
 * payload bytes 0, 1, 2.. */
static inline void
nf_tcp(struct nf_pkt *p, bool v6, uint8_t flags, const uint8_t *opts, size_t n_opts, size_t n)
{
	uint8_t *t;

	nf_l3(p, v6, NULL, 0, 6, 20 + n_opts + n);
	t = p->b + p->l4;
	nf_put16(t, 40000);
	nf_put16(t + 2, 80);
	nf_put32(t + 4, 1000);
	nf_put32(t + 8, 2000);
	t[12] = (uint8_t)((20 + n_opts) / 4 << 4);
	t[13] = flags;
	nf_put16(t + 14, 512);
	if (n_opts)
		memcpy(t + 20, opts, n_opts);
	for (size_t i = 0; i < n; i++)
		t[20 + n_opts + i] = (uint8_t)i;
	nf_fix_tcp(p);
}

#endif
