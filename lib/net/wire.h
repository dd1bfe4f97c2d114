/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - the layouts of Ethernet, ARP, IPv4, IPv6, ICMP and TCP headers: the only header of
 * corq that knows network order.
 *
 * The structs are packed, so a pointer to one may have any alignment; members of type be16 and
 * be32 hold network order and are read with corq_ntoh16/32. corq_get_be* and corq_put_be* are for
 * bytes at an offset. Nothing here checks a length: the caller has.
 */
#ifndef CORQ_NET_WIRE_H
#define CORQ_NET_WIRE_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "corq runs on little-endian machines");

typedef uint16_t be16;
typedef uint32_t be32;

#define CORQ_BE16(x) ((be16)__builtin_bswap16((uint16_t)(x)))
#define CORQ_BE32(x) ((be32)__builtin_bswap32((uint32_t)(x)))

static inline uint16_t
corq_ntoh16(be16 v)
{
	return __builtin_bswap16(v);
}

static inline uint32_t
corq_ntoh32(be32 v)
{
	return __builtin_bswap32(v);
}

static inline uint16_t
corq_get_be16(const void *p)
{
	be16 v;

	memcpy(&v, p, sizeof(v));
	return corq_ntoh16(v);
}

static inline uint32_t
corq_get_be32(const void *p)
{
	be32 v;

	memcpy(&v, p, sizeof(v));
	return corq_ntoh32(v);
}

static inline void
corq_put_be16(void *p, uint16_t x)
{
	be16 v = CORQ_BE16(x);

	memcpy(p, &v, sizeof(v));
}

static inline void
corq_put_be32(void *p, uint32_t x)
{
	be32 v = CORQ_BE32(x);

	memcpy(p, &v, sizeof(v));
}

#define CORQ_ETH_HLEN  14
#define CORQ_ARP_LEN   28
#define CORQ_IP4_HLEN  20 /* without options, which corq never sends */
#define CORQ_IP6_HLEN  40
#define CORQ_TCP_HLEN  20 /* without options */
#define CORQ_ICMP_HLEN 8

#define CORQ_ETHERTYPE_IP4  0x0800
#define CORQ_ETHERTYPE_ARP  0x0806
#define CORQ_ETHERTYPE_IP6  0x86dd
#define CORQ_ETHERTYPE_VLAN 0x8100

#define CORQ_IPPROTO_ICMP4 1
#define CORQ_IPPROTO_TCP   6
#define CORQ_IPPROTO_ICMP6 58

#define CORQ_IP4_DF       0x4000
#define CORQ_IP4_FRAGMENT 0x3fff /* MF and the offset: any bit set is a fragment */

#define CORQ_TCPOPT_EOL     0
#define CORQ_TCPOPT_NOP     1
#define CORQ_TCPOPT_MSS     2 /* length 4 */
#define CORQ_TCPOPT_WSCALE  3 /* length 3 */
#define CORQ_TCPOPT_SACK_OK 4 /* length 2 */
#define CORQ_TCPOPT_SACK    5 /* length 2 + 8n */
#define CORQ_TCPOPT_TS      8 /* length 10 */

#define CORQ_PACKED __attribute__((packed))

struct corq_wire_eth {
	uint8_t dst[6], src[6];
	be16 type;
} CORQ_PACKED;

struct corq_wire_arp { /* RFC 826, Ethernet and IPv4 */
	be16 hrd, pro;
	uint8_t hln, pln;
	be16 op;
	uint8_t sha[6], spa[4], tha[6], tpa[4];
} CORQ_PACKED;

struct corq_wire_ip4 { /* RFC 791 3.1 */
	uint8_t ver_ihl, tos;
	be16 len, id, frag;
	uint8_t ttl, proto;
	be16 csum;
	uint8_t src[4], dst[4];
} CORQ_PACKED;

struct corq_wire_ip6 { /* RFC 8200 3 */
	be32 ver_tc_flow;
	be16 plen;
	uint8_t next, hops;
	uint8_t src[16], dst[16];
} CORQ_PACKED;

struct corq_wire_tcp { /* RFC 9293 3.1 */
	be16 sport, dport;
	be32 seq, ack;
	uint8_t off, flags; /* off: data offset in the upper four bits */
	be16 wnd, csum, urg;
} CORQ_PACKED;

struct corq_wire_icmp { /* RFC 792; rest is id and sequence, or unused and next-hop MTU */
	uint8_t type, code;
	be16 csum;
	be16 rest[2];
} CORQ_PACKED;

_Static_assert(sizeof(struct corq_wire_eth) == CORQ_ETH_HLEN, "wire layout");
_Static_assert(sizeof(struct corq_wire_arp) == CORQ_ARP_LEN, "wire layout");
_Static_assert(sizeof(struct corq_wire_ip4) == CORQ_IP4_HLEN, "wire layout");
_Static_assert(sizeof(struct corq_wire_ip6) == CORQ_IP6_HLEN, "wire layout");
_Static_assert(sizeof(struct corq_wire_tcp) == CORQ_TCP_HLEN, "wire layout");
_Static_assert(sizeof(struct corq_wire_icmp) == CORQ_ICMP_HLEN, "wire layout");

#endif
