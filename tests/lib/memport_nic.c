/* SPDX-License-Identifier: BSD-3-Clause */
/* memport_nic.c - segmentation and checksum offload of the memory port. See memport_nic.h. */
#include "memport_nic.h"

#include <stdlib.h>
#include <string.h>

enum {
	TH_FIN = 1,
	TH_PSH = 8,
	TH_CWR = 0x80
};

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t
get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void
put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

uint16_t
memport_sum(const uint8_t *p, uint32_t len, uint32_t start)
{
	uint64_t s = start;

	for (uint32_t i = 0; i + 1 < len; i += 2)
		s += get16(p + i);
	if (len & 1)
		s += (uint32_t)p[len - 1] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

/* Pseudo-header of the L3 packet ip for a TCP segment of tcp_len bytes. */
static uint16_t
pseudo(const uint8_t *ip, uint32_t tcp_len)
{
	uint32_t start = 6 + (tcp_len >> 16) + (tcp_len & 0xffff);

	if (ip[0] >> 4 == 4)
		return memport_sum(ip + 12, 8, start);
	return memport_sum(ip + 8, 32, start);
}

struct offload {
	uint32_t l2, l3, l4;
	bool v4, ip_csum, l4_csum, tso;
};

static void
fill_csums(uint8_t *pkt, uint32_t len, const struct offload *o)
{
	uint8_t *ip = pkt + o->l2, *tcp = ip + o->l3;
	uint32_t tcp_len = len - o->l2 - o->l3;

	if (o->v4 && o->ip_csum) {
		put16(ip + 10, 0);
		put16(ip + 10, (uint16_t)~memport_sum(ip, o->l3, 0));
	}
	if (o->l4_csum) {
		put16(tcp + 16, 0);
		put16(tcp + 16, (uint16_t)~memport_sum(tcp, tcp_len, pseudo(ip, tcp_len)));
	}
}

static void
cut(struct memport *mp, const uint8_t *pkt, uint32_t len, const struct offload *o, uint32_t mss)
{
	uint32_t hdr = o->l2 + o->l3 + o->l4, left = len - hdr, off = 0;
	const uint8_t *tcp = pkt + o->l2 + o->l3;
	uint8_t *seg = malloc(hdr + mss);

	if (seg == NULL)
		abort();
	while (left != 0) {
		uint32_t n = CORQ_MIN(left, mss);
		uint8_t *ip = seg + o->l2, *t = ip + o->l3;

		memcpy(seg, pkt, hdr);
		memcpy(seg + hdr, pkt + hdr + off, n);
		put32(t + 4, get32(tcp + 4) + off);
		if (left > n)
			t[13] &= (uint8_t) ~(TH_FIN | TH_PSH);
		if (off != 0)
			t[13] &= (uint8_t)~TH_CWR;
		if (o->v4)
			put16(ip + 2, o->l3 + o->l4 + n);
		else
			put16(ip + 4, o->l4 + n);
		fill_csums(seg, hdr + n, o);
		memport_capture(mp, seg, hdr + n);
		off += n;
		left -= n;
	}
	free(seg);
}

/* What the frame asks for against what the port offers and what the bytes say. */
static bool
check(struct memport *mp, const struct corq_port *port, const struct corq_frame *f,
	const uint8_t *bytes, uint32_t len, struct offload *o)
{
	const uint8_t *ip = bytes + o->l2, *tcp = ip + o->l3;
	uint32_t tcp_len;

	if (o->tso && !(port->caps & CORQ_PORT_CAP_TSO))
		memport_violate(mp, "TSO asked for, not offered");
	if (o->l4_csum && !o->tso && !(port->caps & CORQ_PORT_CAP_L4_CSUM))
		memport_violate(mp, "TCP checksum offload asked for, not offered");
	if (o->ip_csum && !o->tso && !(port->caps & CORQ_PORT_CAP_IP_CSUM))
		memport_violate(mp, "IPv4 checksum offload asked for, not offered");
	if (o->l2 != 14 || len < o->l2 + o->l3 + o->l4) {
		memport_violate(mp, "header lengths %u+%u+%u of a %u byte packet", o->l2, o->l3,
			o->l4, len);
		return false;
	}
	o->v4 = ip[0] >> 4 == 4;
	if (o->l3 != (o->v4 ? 4u * (ip[0] & 15) : 40)) {
		memport_violate(mp, "l3_len %u is not the header's", o->l3);
		return false;
	}
	tcp_len = len - o->l2 - o->l3;
	if (o->l4_csum || o->tso) {
		if (o->l4 != 4u * (tcp[12] >> 4)) {
			memport_violate(mp, "l4_len %u is not the header's", o->l4);
			return false;
		}
		if (get16(tcp + 16) != pseudo(ip, o->tso ? 0 : tcp_len))
			memport_violate(mp, "checksum field does not hold the pseudo-header sum");
	}
	if (o->tso && (f->tso_segsz == 0 || tcp_len - o->l4 > port->tso_max)) {
		memport_violate(mp, "TSO with segsz %u, %u bytes, tso_max %u", f->tso_segsz,
			tcp_len - o->l4, port->tso_max);
		return f->tso_segsz != 0;
	}
	return true;
}

void
memport_nic_send(struct memport *mp, const struct corq_port *port, const struct corq_frame *f,
	uint8_t *bytes, uint32_t len)
{
	struct offload o = {.l2 = f->l2_len,
		.l3 = f->l3_len,
		.l4 = f->l4_len,
		.tso = f->flags & CORQ_FRAME_TX_TSO,
		.l4_csum = f->flags & (CORQ_FRAME_TX_L4_CSUM | CORQ_FRAME_TX_TSO),
		.ip_csum = f->flags & (CORQ_FRAME_TX_IP_CSUM | CORQ_FRAME_TX_TSO)};

	if (len < 14 || memcmp(bytes + 6, port->mac, 6))
		memport_violate(mp, "packet without our Ethernet source");
	if (f->flags & CORQ_FRAME_VLAN)
		memport_violate(mp, "VLAN tag asked for");
	if (o.tso || o.l4_csum || o.ip_csum) {
		if (!check(mp, port, f, bytes, len, &o))
			return;
		if (o.tso) {
			uint32_t l3 = o.l3 + o.l4 + f->tso_segsz;

			if (l3 > port->mtu)
				memport_violate(mp, "TSO segments above the MTU");
			cut(mp, bytes, len, &o, f->tso_segsz);
			return;
		}
		fill_csums(bytes, len, &o);
	}
	if (len > 14u + port->mtu)
		memport_violate(mp, "packet of %u bytes above the MTU", len);
	memport_capture(mp, bytes, len);
}
