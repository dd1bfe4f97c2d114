/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - one core: engine, port, neighbours, ownership, hand-off, and the turn over them.
 *
 * A newcomer to lib/core reads this first. Everything is owned by the core's thread; the hand-off
 * rings are the only memory that another core writes, the stats words the only memory that other
 * threads read. A core is created in memory that the caller gives and never allocates afterwards.
 *
 * Steps of a turn (turn.c): 1 rx_burst  2 parse  3 look-up, input  4 hand-off  5 timers  6 events
 * 7 build  8 tx_burst  9 give back  10 cycles by stage.
 */
#ifndef CORQ_CORE_CORE_H
#define CORQ_CORE_CORE_H

#include "base/log.h"
#include "base/ring.h"
#include "core/idle.h"
#include "core/owner.h"
#include "core/port.h"
#include "net/icmp.h"
#include "net/neigh.h"
#include "net/parse.h"
#include "tcp/engine.h"

#define CORQ_TX_BUDGET    256 /* packets built in a turn */
#define CORQ_RX_DEEP      512 /* so many in a receive ring are a danger: half of it at MTU 1500 */
#define CORQ_TIMER_BUDGET 512
#define CORQ_EVENT_BUDGET 512
#define CORQ_RTX_HOLD_MAX 8 /* turns in a row that a full rx_burst holds retransmissions back */

struct corq_core_config {
	struct corq_tcp_config tcp;
	unsigned index;    /* this core, 0.. */
	unsigned group, n; /* cores that share one address set: first index, how many */
	enum corq_side side;
	uint64_t seed; /* same on all cores of a group: the owner function is keyed by it */
	struct corq_range ranges[CORQ_MAX_RANGES];
	unsigned n_ranges;
	uint8_t prefix_len; /* of the link, as bits of the mapped address (IPv4 /24 = 120) */
	bool has_gw;
	struct corq_addr gw;
	uint16_t max_neigh;
	uint32_t tx_frames; /* of the port, 0: many */
	struct corq_log *log;
	const char *offload_hint; /* the line for a peer that leaves checksums to its device */
	bool idle_sleep;          /* back off by sleeping when idle (off: pause only) */
};

#define CORQ_STATS_WORDS (sizeof(struct corq_stats) / sizeof(uint64_t))

struct corq_region { /* registered memory, shared by all cores, fixed after start */
	const uint8_t *base;
	size_t len;
	void (*release)(struct corq_core *core, void *arg, uint64_t cookie);
	void *arg;
};

struct corq_core {
	struct corq_engine eng;
	struct corq_port *port;
	struct corq_core_config cfg;
	struct corq_neigh neigh;
	struct corq_owner owner;

	struct corq_parse_ctx parse;
	struct corq_icmp_limit icmp_limit;
	struct corq_arp_guard arp_guard;
	struct corq_log_limit log_limit;
	bool hinted;        /* offload_hint was said */
	bool conflict_said; /* so was that another station claims our address */

	struct corq_spsc **hand_in;  /* [n] rings from the other cores of the group; own: NULL */
	struct corq_spsc **hand_out; /* [n] rings to them */
	unsigned hand_next;

	struct corq_seg seg[CORQ_BURST_MAX];
	struct corq_key key[CORQ_BURST_MAX];
	struct corq_frame *rx[CORQ_BURST_MAX];
	struct corq_frame *tx[CORQ_TX_BUDGET]; /* built, not yet taken by the device */
	uint32_t n_tx;
	uint64_t blocked_at; /* the turn that left frames in tx, 0: none is left */
	uint32_t rtx_held;   /* turns in a row that held retransmissions back */
	uint32_t idle_turns;
	struct corq_idle idle;
	uint64_t cycles_start, stage[6]; /* of this turn: rx, input, timers, events, build, tx */

	corq_hook_fn hook;
	void *hook_arg;
	uint64_t hook_at;
	void *user;
	struct corq_ops twins[CORQ_MAX_OPS]; /* policy.c */
	struct corq_region *regions;         /* of the instance */
	uint32_t *n_regions;
	struct corq_instance *inst;
	_Atomic uint32_t stop; /* written by any thread, read by the run loop */
	uint64_t figures_at;   /* when they were copied last */
	bool figures_old;      /* something was done since then */
	/* Read by any thread (figures.c): the words of struct corq_stats, then the reasons. */
	_Atomic uint64_t figures[CORQ_STATS_WORDS + CORQ_R_COUNT];
};

/* Bytes of zeroed, line-aligned memory that a core wants (sparse: untouched pages cost nothing). */
size_t corq_core_bytes(const struct corq_core_config *cfg);
/* Builds a core in mem. 0, or -EINVAL with one line in err. */
int corq_core_init(struct corq_core **out, void *mem, const struct corq_core_config *cfg,
	struct corq_port *port, char *err, size_t err_len);
/* The two halves of corq_core_turn: steps 1-3, and 4-10. Tests compare bursts with them. */
unsigned corq_core_input_burst(struct corq_core *core);
bool corq_core_turn_tail(struct corq_core *core, unsigned n_rx);
/* Fills in the defaults of the TCP configuration from the public one. */
int corq_tcp_config_resolve(struct corq_tcp_config *out, const struct corq_config *in, uint16_t mtu,
	char *err, size_t err_len);
/* Joins the cores of one group by hand-off rings in memory that the caller gives. */
size_t corq_handoff_bytes(unsigned n);
void corq_handoff_join(struct corq_core **cores, unsigned n, void *mem);
/* Resets up to `max` of the connections that are left, from number *from on, which it moves. False
 * when there was none to reset any more. For a core that stops: the replies need turns to leave. */
bool corq_core_reset_some(struct corq_core *core, uint32_t *from, uint32_t max);
/* Ends up to `max` of those that are left without a word to the peer; the same. */
bool corq_core_forget_some(struct corq_core *core, uint32_t *from, uint32_t max);
/* Gives the frames that the core holds for sending back to the port: before the port closes. */
void corq_core_drain(struct corq_core *core);
/* Step 6 (events.c). Returns how many connections it served. */
unsigned corq_core_events(struct corq_core *core);
/* What is not TCP (link.c): ARP and ICMP input, due work of the neighbour table. */
void corq_link_arp_input(struct corq_core *core, struct corq_frame *f);
void corq_link_icmp_input(struct corq_core *core, struct corq_seg *seg, const struct corq_key *key);
void corq_link_poll(struct corq_core *core);
/* The core's figures as they are now, on its own thread: all of struct corq_stats, with everything
 * that is alive (used_*) for leak checks. */
void corq_core_usage(struct corq_core *core, struct corq_stats *out);
/* Copies them for other threads (figures.c): now, or at the end of a turn when it is time to. */
void corq_core_publish(struct corq_core *core);
void corq_core_publish_due(struct corq_core *core, bool busy);
/* The reason's count in that copy. Any thread. */
uint64_t corq_core_reason_count(const struct corq_core *core, unsigned i);

#endif
