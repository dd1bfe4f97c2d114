/* SPDX-License-Identifier: BSD-3-Clause */
/* net_neigh.h - the fixture of test_neigh.c and test_neigh_held.c: a table in memory of its exact
 * size, ARP packets named by what they say, one poll at a time. */
#ifndef CORQ_TESTS_NET_NEIGH_H
#define CORQ_TESTS_NET_NEIGH_H

#include "net_frames.h"

#include "net/neigh.h"

#define S    CORQ_NS_PER_S
#define HELD 100 /* packets that may wait */

struct fix {
	struct corq_neigh nt;
	void *mem;
	struct corq_neigh_action act;
};

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xaa}, mac_b[6] = {2, 0, 0, 0, 0, 0xbb};

static inline void
open_table_held(struct fix *x, uint16_t max, uint32_t held_max)
{
	memset(x, 0, sizeof(*x));
	x->mem = aligned_alloc(CORQ_CACHELINE, (corq_neigh_bytes(max) + 63) / 64 * 64);
	assert_non_null(x->mem);
	corq_neigh_init(&x->nt, x->mem, max, held_max, 0x1234);
}

static inline void
open_table(struct fix *x, uint16_t max)
{
	open_table_held(x, max, HELD);
}

static inline struct corq_addr
ip(uint32_t i)
{
	const uint8_t v[4] = {10, 0, (uint8_t)(i >> 8), (uint8_t)i};
	struct corq_addr a;

	corq_addr_from_v4(&a, v);
	return a;
}

static inline uint16_t
look(struct fix *x, uint32_t i, uint64_t now)
{
	struct corq_addr a = ip(i);

	return corq_neigh_lookup(&x->nt, &a, now);
}

static inline uint16_t
arp(struct fix *x, uint32_t sender, const uint8_t mac[6], enum corq_arp_op op, bool unicast,
	enum corq_neigh_learn learn, uint64_t now)
{
	struct corq_arp a = {
		.spa = ip(sender), .tpa = ip(1), .op = (uint16_t)op, .unicast = unicast};

	memcpy(a.sha, mac, 6);
	return corq_neigh_arp_input(&x->nt, &a, learn, now);
}

/* A unicast reply to us, and an announcement. */
static inline uint16_t
replied(struct fix *x, uint32_t i, const uint8_t mac[6], uint64_t now)
{
	return arp(x, i, mac, CORQ_ARP_REPLY, true, CORQ_NEIGH_UPDATE_ONLY, now);
}

static inline uint16_t
announced(struct fix *x, uint32_t i, const uint8_t mac[6], enum corq_arp_op op, uint64_t now)
{
	struct corq_arp a = {.spa = ip(i), .tpa = ip(i), .op = (uint16_t)op};

	memcpy(a.sha, mac, 6);
	return corq_neigh_arp_input(&x->nt, &a, CORQ_NEIGH_MAY_CREATE, now);
}

static inline bool
poll(struct fix *x, uint64_t now)
{
	return corq_neigh_poll(&x->nt, now, CORQ_NEIGH_PART, &x->act);
}

/* Exactly one action, of this kind. */
static inline void
one(struct fix *x, uint64_t now, enum corq_neigh_todo todo)
{
	struct corq_neigh_action none;

	assert_true(poll(x, now));
	assert_int_equal(x->act.todo, todo);
	assert_false(corq_neigh_poll(&x->nt, now, 1, &none));
}

static inline int
state_of(struct fix *x, uint16_t i)
{
	return x->nt.entries[i].state;
}

#endif
