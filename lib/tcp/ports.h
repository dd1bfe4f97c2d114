/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports.h - local ports for our own connects.
 *
 * The ports a core may use are walked in the order of a keyed permutation, with a position per
 * destination (remote address, remote port, local address) kept in a bounded table (as RFC 6056
 * algorithm 4 does): O(1), unpredictable from outside, and a tuple rests as long as possible
 * before it comes back. Each destination counts the tuples it has out (connections and our own
 * TIME_WAIT records), so exhaustion is told at once, without a walk. Destinations that do not fit
 * the table share one entry, whose walk is bounded instead.
 * One thread, the core's.
 */
#ifndef CORQ_TCP_PORTS_H
#define CORQ_TCP_PORTS_H

#include "base/siphash.h"
#include "net/addr.h"

struct corq_dest {
	struct corq_addr raddr;
	uint32_t laddr_idx;
	uint16_t rport;
	uint16_t live;     /* entry in use */
	uint32_t position; /* in the permutation */
	uint32_t used;     /* tuples out */
	uint16_t ahead;    /* 0, or a port already taken from the walk for the next connect */
	uint64_t ahead_hash, ahead_isn; /* of that tuple (engine.h, isn.h): their lines are on
					   their way to the cache */
};

struct corq_ports {
	struct corq_sipkey key;
	uint16_t *list; /* this core's ports, ascending */
	bool gaps;      /* in the list; without it is not read */
	uint32_t n;     /* how many */
	struct corq_dest
		*dests; /* open addressing, bounded probe; the last one is the shared one */
	uint32_t n_dests;
	uint64_t n_used, n_waiting, n_recycled, n_refused; /* figures over all destinations */
};

size_t corq_ports_bytes(uint32_t n_dests);
/* mem: zeroed. */
void corq_ports_init(
	struct corq_ports *p, void *mem, uint32_t n_dests, const struct corq_sipkey *key);
/* Adds a port to this core's list (at set-up, ascending). */
void corq_ports_add(struct corq_ports *p, uint16_t port);
/* The entry of a destination, made if there is room (idle entries are taken over), else the shared
 * one. Never NULL. */
struct corq_dest *corq_ports_dest(
	struct corq_ports *p, const struct corq_addr *raddr, uint16_t rport, uint32_t laddr_idx);
/* Tuples still free towards the destination. An upper bound for the shared entry (n), and for a
 * destination that has tuples counted there: so callers bound their walk by n. */
uint32_t corq_ports_free(const struct corq_ports *p, const struct corq_dest *d);
/* The next candidate port of the destination; moves its position. */
uint16_t corq_ports_next(struct corq_ports *p, struct corq_dest *d);
/* Bookkeeping of one tuple: taken, moved to waiting (TIME_WAIT), given back. */
void corq_ports_take(struct corq_ports *p, struct corq_dest *d);
void corq_ports_wait(struct corq_ports *p);
void corq_ports_give(struct corq_ports *p, const struct corq_addr *raddr, uint16_t rport,
	uint32_t laddr_idx, bool was_waiting);

#endif
