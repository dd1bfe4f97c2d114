/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neigh.h - a core's neighbour table: next-hop address to Ethernet address.
 *
 * Next hops only (gateway and on-link hosts), so the table is small and bounded. No I/O and no
 * clock: the core asks corq_neigh_poll what is due, and sends. One core owns a table; no other
 * thread touches it.
 *
 * An index is a hint: an entry may be taken for another address when the table is full, so a
 * connection that keeps one checks it with corq_neigh_is before use and looks up again on a miss.
 *
 * States (timing after RFC 4861 10, requests limited by RFC 1122 2.3.2.1):
 *   FREE        not in the table
 *   INCOMPLETE  asked by broadcast, at most once a second; after 3 requests and one more second
 *               -> FAILED. Its packets wait. Any ARP of that address resolves it.
 *   REACHABLE   confirmed by a unicast reply or by the upper layer within 30 s. Becomes STALE by
 *               age alone (no timer).
 *   STALE       address known, not confirmed lately. Usable; first use -> PROBE.
 *   PROBE       usable; asked by unicast, at most once a second; after 3 requests and one more
 *               second -> FAILED. A reply or a new ACK -> REACHABLE.
 *   FAILED      nobody answered. For 1 s packets are refused at once; the next use after that
 *               -> INCOMPLETE.
 *   STATIC      given by configuration: no timer, no ARP changes it.
 *
 * Packets that wait for addresses stand in one ring, oldest first. It is full only while hundreds
 * wait; then the oldest of all goes (RFC 1122 2.3.2.2 wants the latest kept). So a server that was
 * started again answers all the clients behind a router at once, and whoever asks us to send to
 * hosts that do not exist holds an eighth of the tx frames at most, and pushes out packets that
 * wait a millisecond for a live one only by sending hundreds in that millisecond.
 *
 * An entry that was evicted forgets when it last asked: only with more next hops in use than the
 * table holds can an address be asked for more often than once a second.
 */
#ifndef CORQ_NET_NEIGH_H
#define CORQ_NET_NEIGH_H

#include "net/addr.h"
#include "net/arp.h"
#include "net/frame.h"

#define CORQ_NEIGH_NONE         UINT16_MAX
#define CORQ_NEIGH_DEFAULT      256   /* entries */
#define CORQ_NEIGH_MAX          16384 /* entries */
#define CORQ_NEIGH_HELD         1024  /* packets that may wait for all addresses together */
#define CORQ_NEIGH_PART         64    /* of them, handed out by one poll */
#define CORQ_NEIGH_TRIES        3
#define CORQ_NEIGH_REACHABLE_NS (30 * CORQ_NS_PER_S)
#define CORQ_NEIGH_RETRANS_NS   CORQ_NS_PER_S
#define CORQ_NEIGH_FAILED_NS    CORQ_NS_PER_S
#define CORQ_NEIGH_NEVER        UINT64_MAX

enum corq_neigh_state {
	CORQ_NEIGH_FREE,
	CORQ_NEIGH_INCOMPLETE,
	CORQ_NEIGH_FAILED,
	CORQ_NEIGH_REACHABLE, /* this and all after it have a usable mac */
	CORQ_NEIGH_STALE,
	CORQ_NEIGH_PROBE,
	CORQ_NEIGH_STATIC,
};

struct corq_neigh_entry {
	/* read by every packet to this next hop */
	struct corq_addr addr;
	uint8_t mac[6];
	uint8_t state;         /* enum corq_neigh_state */
	uint8_t tries;         /* requests sent in this round */
	uint64_t confirmed_ns; /* FAILED: when it failed */
	uint64_t used_ns;      /* last look-up or use: the victim of a full table is the oldest */
	/* resolution only */
	uint64_t due_ns;       /* CORQ_NEIGH_NEVER: nothing to do */
	uint64_t ask_after_ns; /* no request before this: one a second */
	uint16_t next;         /* hash chain, or free list */
	uint16_t n_held;       /* its packets in the ring */
	uint8_t flush;         /* resolved: FLUSH is due */
} CORQ_ALIGNED_LINE;
_Static_assert(sizeof(struct corq_neigh_entry) == CORQ_CACHELINE, "an entry is one line");

/* A packet that waits, or a hole (NULL). */
struct corq_neigh_held {
	struct corq_frame *frame;
	uint16_t idx; /* the entry that it waits for */
};

struct corq_neigh {
	struct corq_neigh_entry *entries;
	uint16_t *buckets;            /* mask + 1 heads */
	struct corq_neigh_held *held; /* [CORQ_NEIGH_HELD]; the one at held_tail is no hole */
	uint32_t held_head, held_tail, held_max;
	uint64_t seed;
	uint64_t next_due_ns; /* no entry is due before this */
	uint16_t max, mask;
	uint16_t free;   /* head of the free list */
	uint16_t cursor; /* where poll goes on looking */
	uint16_t n_used;
	uint64_t n_full, n_evicted; /* look-ups refused; entries taken for another address */
};

/* Bytes of memory that a table of max entries (1..CORQ_NEIGH_MAX) wants, aligned to 64. */
size_t corq_neigh_bytes(uint16_t max);

/* How many packets may wait where there are tx_frames (0: many): not so many that nothing is left
 * for the others. */
static inline uint32_t
corq_neigh_held_max(uint32_t tx_frames)
{
	return tx_frames ? CORQ_MAX(CORQ_MIN(tx_frames / 8, CORQ_NEIGH_HELD), 1u) : CORQ_NEIGH_HELD;
}

/* Makes an empty table in mem (corq_neigh_bytes of it, the caller's). seed: any secret. held_max:
 * packets that may wait, 1..CORQ_NEIGH_HELD. */
void corq_neigh_init(
	struct corq_neigh *nt, void *mem, uint16_t max, uint32_t held_max, uint64_t seed);

/*
 * The entry of nexthop, made (INCOMPLETE, a request due now) if there is none. When full, takes
 * the longest unused STALE or FAILED entry; CORQ_NEIGH_NONE if there is none.
 */
uint16_t corq_neigh_lookup(struct corq_neigh *nt, const struct corq_addr *nexthop, uint64_t now_ns);

/* The entry of addr, or CORQ_NEIGH_NONE. Changes nothing. */
uint16_t corq_neigh_find(const struct corq_neigh *nt, const struct corq_addr *addr);

/* Is idx still the entry of addr? idx may be CORQ_NEIGH_NONE. */
static inline bool
corq_neigh_is(const struct corq_neigh *nt, uint16_t idx, const struct corq_addr *addr)
{
	return idx < nt->max && nt->entries[idx].state != CORQ_NEIGH_FREE &&
	       corq_addr_eq(&nt->entries[idx].addr, addr);
}

/* The slow half of corq_neigh_mac. */
const uint8_t *corq_neigh_mac_slow(struct corq_neigh *nt, uint16_t idx, uint64_t now_ns);

/*
 * The Ethernet address to send to, or NULL while unresolved (then offer the packet to
 * corq_neigh_hold). Counts as a use: ages REACHABLE, starts the probe of STALE, retries FAILED.
 * idx must pass corq_neigh_is. The pointer is good until the next call that changes the table.
 */
static inline const uint8_t *
corq_neigh_mac(struct corq_neigh *nt, uint16_t idx, uint64_t now_ns)
{
	struct corq_neigh_entry *e = &nt->entries[idx];

	if (CORQ_LIKELY(e->state == CORQ_NEIGH_STATIC ||
			(e->state == CORQ_NEIGH_REACHABLE &&
				now_ns - e->confirmed_ns < CORQ_NEIGH_REACHABLE_NS))) {
		e->used_ns = now_ns;
		return e->mac;
	}
	return corq_neigh_mac_slow(nt, idx, now_ns);
}

/*
 * Keeps the packet f (a whole chain) until idx resolves. Returns the packet to drop, or NULL: the
 * oldest of all that wait when the ring is full; f itself when the entry is FAILED. f must have no
 * Ethernet header yet, or one whose destination the core fills at FLUSH. Only while corq_neigh_mac
 * is NULL.
 */
struct corq_frame *corq_neigh_hold(struct corq_neigh *nt, uint16_t idx, struct corq_frame *f);

/*
 * The upper layer made forward progress with this neighbour (a new ACK of ours arrived, RFC 4861
 * 7.3.1): extends REACHABLE, ends PROBE. Ignored for entries without an address.
 */
static inline void
corq_neigh_confirm(struct corq_neigh *nt, uint16_t idx, uint64_t now_ns)
{
	struct corq_neigh_entry *e = &nt->entries[idx];

	if (e->state < CORQ_NEIGH_REACHABLE || e->state == CORQ_NEIGH_STATIC)
		return;
	e->confirmed_ns = now_ns;
	if (e->state != CORQ_NEIGH_REACHABLE) {
		e->state = CORQ_NEIGH_REACHABLE;
		e->due_ns = e->flush ? e->due_ns : CORQ_NEIGH_NEVER;
	}
}

/* May this ARP packet create an entry? The core says yes only for a request for one of its own
 * addresses whose sender is on-link. */
enum corq_neigh_learn {
	CORQ_NEIGH_UPDATE_ONLY,
	CORQ_NEIGH_MAY_CREATE,
};

/*
 * Learns from a parsed ARP packet. A unicast reply makes the entry REACHABLE; anything else that
 * carries a (new) address makes it STALE, and leaves a REACHABLE one with the same address alone.
 * Replies and announcements never create an entry. Returns the entry, or CORQ_NEIGH_NONE.
 */
uint16_t corq_neigh_arp_input(struct corq_neigh *nt, const struct corq_arp *a,
	enum corq_neigh_learn learn, uint64_t now_ns);

/* Sets a configured address (creating the entry). CORQ_NEIGH_NONE if the table is full. */
uint16_t corq_neigh_set_static(
	struct corq_neigh *nt, const struct corq_addr *addr, const uint8_t mac[6], uint64_t now_ns);

enum corq_neigh_todo {
	CORQ_NEIGH_SEND_REQUEST, /* ask for addr: broadcast, or to mac when `unicast` */
	CORQ_NEIGH_FLUSH,        /* resolved: send frames[] to mac (there may be none, or more
				    in the next action) */
	CORQ_NEIGH_GAVE_UP,      /* FAILED: count and release frames[], tell the engine */
};

struct corq_neigh_action {
	enum corq_neigh_todo todo;
	uint16_t idx;
	bool unicast;
	uint8_t n_frames;
	uint8_t mac[6];
	struct corq_addr addr;
	struct corq_frame *frames[CORQ_NEIGH_PART]; /* oldest first; the core owns them now */
};

/* One due action into *out, or false. Call until false, or until there is no room to send; cheap
 * when nothing is due. room: packets that may be sent, at least 1. */
bool corq_neigh_poll(
	struct corq_neigh *nt, uint64_t now_ns, unsigned room, struct corq_neigh_action *out);

/* When poll may next have something, CORQ_NEIGH_NEVER if nothing waits. Never late; may be early
 * after an entry was resolved or confirmed. */
static inline uint64_t
corq_neigh_next(const struct corq_neigh *nt)
{
	return nt->next_due_ns;
}

#endif
