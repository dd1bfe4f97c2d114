/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * testcore.h - one core on a memory port, on virtual time, for scenario, simulation and unit tests.
 *
 * testcore_init makes pools that are small and defaults that are those of the product; the local
 * address is 10.0.0.1/24. ARP requests for any other address of the link are answered by
 * TESTCORE_PEER_MAC unless `no_arp`. Time moves by testcore_advance and testcore_run_to, which
 * stops at every deadline the core has: a turn runs at each, none is late.
 *
 * At the end testcore_leaks compares what the core and the port have out with what they had at the
 * start. One thread.
 */
#ifndef CORQ_TEST_TESTCORE_H
#define CORQ_TEST_TESTCORE_H

#include "core/core.h"
#include "memport.h"

#include <stdio.h>

#define TESTCORE_ADDR     "10.0.0.1"
#define TESTCORE_PEER     "10.0.0.2"
#define TESTCORE_PEER_MAC ((const uint8_t[6]){2, 0, 0, 0, 0, 2})

struct testcore_opts {
	struct corq_config cfg; /* zero: defaults, but the small pools below */
	struct memport_config port;
	const char *addr;    /* first local address; NULL: TESTCORE_ADDR */
	uint32_t addr_count; /* 0: 1 */
	bool no_arp;         /* leave ARP requests in the queue of sent packets, answer none */
	bool idle_sleep;
	uint64_t seed;            /* 0: 1 */
	uint16_t max_neigh;       /* 0: 16 */
	unsigned index, group, n; /* several cores of one group, to be joined; n 0: 1 */
	struct corq_log *log;
};

struct testcore {
	struct corq_core *core;
	struct memport *mp;
	struct corq_core_config cfg;
	struct corq_stats start;
	struct corq_region regions[4];
	uint32_t n_regions;
	bool no_arp;
	struct memport_pkt *tx_first, *tx_last;                /* sent, not taken by the test */
	void (*on_tx)(void *arg, const struct memport_pkt *p); /* sees every packet first */
	void *on_tx_arg;
	void *mem;
	size_t mem_bytes;
};

/* 0, or a negative errno with one line in err. */
int testcore_init(struct testcore *tc, const struct testcore_opts *o, char *err, size_t err_len);
void testcore_end(struct testcore *tc);

/* The address text as corq_addr; aborts on bad text. */
struct corq_addr testcore_addr(const char *text);
/* Makes addr a neighbour that needs no ARP. */
void testcore_neighbour(struct testcore *tc, const char *addr, const uint8_t mac[6]);

/* One turn. True when it did something. What was sent is in the queue of testcore_take. */
bool testcore_turn(struct testcore *tc);
/* Turns at this moment until one does nothing (at most 1000: then false, the core spins). */
bool testcore_settle(struct testcore *tc);
/* Earliest moment, after now, at which the core has something to do; UINT64_MAX: never. */
uint64_t testcore_next(const struct testcore *tc);
/* Moves the clock to `ns`, with a settle at every deadline before it and at ns itself. Stops early
 * (true) as soon as a packet waits to be taken, when `until_tx`. */
bool testcore_run_to(struct testcore *tc, uint64_t ns, bool until_tx);

/* Oldest packet sent and not taken (free() it), or NULL. */
struct memport_pkt *testcore_take(struct testcore *tc);

/* Registers memory for corq_tcp_write_mem; returns the region's number. */
uint16_t testcore_region(struct testcore *tc, const void *base, size_t len,
	void (*release)(struct corq_core *core, void *arg, uint64_t cookie), void *arg);

/* Prints a line for each thing that is out now and was not at the start; returns how many. */
unsigned testcore_leaks(struct testcore *tc, FILE *out);

#endif
