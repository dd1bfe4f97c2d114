/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arp.h - ARP packets (RFC 826): parse, build, and the watch for address conflicts (RFC 5227).
 *
 * Called on the core's thread, a few times a second. Keeps no table: see neigh.h.
 */
#ifndef CORQ_NET_ARP_H
#define CORQ_NET_ARP_H

#include "net/addr.h"
#include "net/frame.h"
#include "net/reasons.h"

enum corq_arp_op {
	CORQ_ARP_REQUEST = 1,
	CORQ_ARP_REPLY = 2,
};

struct corq_arp {
	struct corq_addr spa, tpa; /* sender's and target's protocol address, mapped */
	uint8_t sha[6], tha[6];    /* hardware addresses */
	uint16_t op;               /* enum corq_arp_op, nothing else */
	bool unicast;              /* the frame was sent to one station */
};

/*
 * Reads an ARP frame (data at the Ethernet header). Returns CORQ_R_ARP_BAD for anything but
 * Ethernet and IPv4, an op other than request and reply, a sender hardware address that is zero or
 * multicast, or a sender protocol address that is loopback, multicast or broadcast. 0.0.0.0 (an
 * RFC 5227 probe) passes.
 */
enum corq_reason corq_arp_parse(const struct corq_frame *f, struct corq_arp *out);

/* Sender and target address are the same: an announcement, or a "gratuitous" reply. */
static inline bool
corq_arp_is_gratuitous(const struct corq_arp *a)
{
	return corq_addr_eq(&a->spa, &a->tpa);
}

/* All builders write a whole frame at f->data of an empty frame (42 bytes; the device pads). */

/* "Who has target?" dmac NULL broadcasts, otherwise it is a unicast probe. */
void corq_arp_build_request(struct corq_frame *f, const uint8_t smac[6],
	const struct corq_addr *self, const struct corq_addr *target, const uint8_t *dmac);

/* The answer to req, whose tpa is ours and is at smac. Unicast. */
void corq_arp_build_reply(struct corq_frame *f, const uint8_t smac[6], const struct corq_arp *req);

/* ARP Announcement (RFC 5227 2.3): broadcast request with spa = tpa = self. */
void corq_arp_build_announce(
	struct corq_frame *f, const uint8_t smac[6], const struct corq_addr *self);

/* Conflicts of one address; zeroed at start. */
struct corq_arp_guard {
	uint64_t defended_ns; /* when the last defence was sent, valid with n_defended */
	uint64_t n_conflicts, n_defended;
};

enum corq_arp_verdict {
	CORQ_ARP_CLEAN,    /* nobody claims our address */
	CORQ_ARP_CONFLICT, /* somebody does; defended less than 10 s ago: only counted */
	CORQ_ARP_DEFEND,   /* somebody does: send one announcement now (RFC 5227 2.4 (c)) */
};

/* Does `a` claim `self` from another station than smac? Counts in g. */
enum corq_arp_verdict corq_arp_conflict(struct corq_arp_guard *g, const struct corq_arp *a,
	const struct corq_addr *self, const uint8_t smac[6], uint64_t now_ns);

#endif
