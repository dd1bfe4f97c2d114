/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h - two cores, a link between them that loses and disturbs, programs on both that check
 * every byte, and virtual time. A newcomer to tests/sim reads this first.
 *
 *   sim.c     options, seeds, what happens after a failure     link.c  one direction of the wire
 *   params.c  what a seed means                                ep.c    one end: what it is told
 *   plan.c    one end: what it does                            proxy.c ends that splice
 *   world.c   time, turns, invariants, the end of a run        ends.c  why connections ended
 *   churn.c   many short connections, one after another
 *   burst.c   (a program of its own) one burst equals one by one
 *
 * All randomness comes from the seed: a run with the same options is the same to the last frame.
 * One thread. A world holds everything of one run.
 */
#ifndef CORQ_SIM_H
#define CORQ_SIM_H

#include "base/rand.h"
#include "check_engine.h"
#include "testcore.h"

#define SIM_MAX_EPS      1024
#define SIM_SLOTS        48     /* borrowed pieces that may be out a side */
#define SIM_SLOT_BYTES   20000u /* of each */
#define SIM_PORT_LISTEN  80     /* .. + 2: listeners of both sides */
#define SIM_PORT_PROXY   83     /* its program connects on, and splices the two */
#define SIM_PORT_CLOSED  99     /* nobody listens */
#define SIM_PORT_DUAL    7000   /* .. : simultaneous opens, from both sides */
#define SIM_CHANCE_WHOLE 10000  /* probabilities are parts of this */

struct sim_link_params {
	uint64_t rate_bps, delay_ns;
	uint64_t queue_bytes;
	uint64_t reorder_ns; /* a reordered or doubled packet comes up to this much later */
	uint32_t loss, reorder, dup, corrupt; /* of SIM_CHANCE_WHOLE */
	uint32_t outage; /* chance a second that the link is dead for a while */
};

/* What options ask for: a range a value is drawn from by the seed. */
struct sim_range {
	double lo, hi;
	bool set;
};

struct sim_options {
	struct sim_range loss, reorder, dup, corrupt; /* percent */
	struct sim_range delay_us, rate_mbps;
	uint32_t conns;       /* 0: by seed */
	uint32_t max_bytes;   /* 0: by seed */
	uint32_t check_every; /* full check every n turns; 0: 16 */
	uint64_t churn;
	bool verbose, plain; /* plain: no corruption of the usual parameters by the seed */
};

struct sim_params {
	uint64_t seed;
	struct sim_link_params link[2]; /* [0] A to B */
	struct corq_config cfg[2];
	struct memport_config port[2];
	uint32_t n_conns, max_bytes;
	uint64_t open_gap_ns; /* mean time between opens */
	uint64_t gap_ns;      /* longest time between a turn and the next */
	uint32_t pause;       /* chance a turn that the core then stands still for long */
	uint64_t pause_ns;
	bool clean; /* nothing is lost, reordered or late: nothing may be sent twice */
	bool tight; /* pools so small that the core may have to give connections up */
	bool few_ports;
	bool refuse; /* listeners are closed now and then */
	bool dual;   /* simultaneous opens */
	bool proxies;
	uint32_t tx_room; /* most packets that a device takes a turn, at random; 0: all */
	uint32_t split;   /* chance that a packet arrives in several parts */
	uint32_t check_every;
};

struct sim_packet {
	struct sim_packet *next;
	uint64_t at_ns;
	struct memport_pkt *pkt;
	bool corrupt;
};

struct sim_link {
	const struct sim_link_params *p;
	struct corq_rand rand;
	uint64_t free_at_ns; /* the last bit of what was sent has left then */
	uint64_t outage_until_ns, outage_drawn_ns;
	struct sim_packet *head, *tail; /* under way, by arrival */
	uint64_t n_sent, n_lost, n_full, n_dup, n_corrupt, n_reordered;
};

/* Why a connection is opened. */
enum sim_kind {
	SIM_KIND_USUAL,
	SIM_KIND_DUAL, /* from both sides at once */
	SIM_KIND_PROXY,
};

enum sim_end_policy {
	SIM_SHUTDOWN,   /* all written: shutdown, read to the peer's FIN, close */
	SIM_FIN_FLAG,   /* the same by CORQ_FIN on the last write */
	SIM_AFTER_PEER, /* read to the peer's FIN, then close */
	SIM_CLOSE,      /* all written: close at once, whatever was read */
	SIM_ABORT,      /* abort somewhere on the way */
	SIM_LINGER0,    /* all written and read: close with linger 0 */
	SIM_END_POLICIES,
};

enum sim_read_policy {
	SIM_READ_AT_ONCE,
	SIM_READ_PARTS, /* a part now, the rest by the deadline */
	SIM_READ_LATE,  /* nothing until a time */
	SIM_READ_POLICIES,
};

/* One end of a connection, from connect or on_open to on_close. */
struct sim_ep {
	struct world *w;
	struct sim_ep *peer;    /* whose bytes it reads; NULL: not known (yet) */
	struct sim_ep *partner; /* a proxy's other connection */
	struct sim_ep *via;     /* the proxy's end that it is connected to */
	bool proxy;
	struct corq_conn *conn; /* NULL: over */
	corq_h handle;
	uint64_t key; /* of the stream that we send */
	uint32_t id;
	uint32_t iss;
	struct corq_addr laddr, raddr;
	uint16_t lport, rport;
	uint8_t side;
	uint8_t end, read; /* enum sim_*_policy */
	bool active, dual;

	/* the plan */
	uint32_t total;    /* bytes to write */
	uint32_t abort_at; /* SIM_ABORT: when so many were written or read */
	uint32_t piece_max;
	bool lockstep;   /* goes on writing in on_sent only */
	uint32_t fiddle; /* chance a write that an option is changed */
	uint64_t read_delay_ns, pace_ns;

	/* what happened */
	uint32_t written, consumed;
	uint32_t loaned; /* borrowed pieces not released */
	bool opened, want_sent, ended, all_written, fin_called, peer_fin, closed, aborted;
	bool closed_unread, given_up, lingers;
	uint32_t consumed_at_close;
	uint64_t pace_at_ns, read_at_ns, life_at_ns, deadline_ns;
	uint64_t opened_at_ns, ended_at_ns;
	uint64_t data_turn, wrote_turn; /* turn of the last on_data, of the last call */
	bool wrote_in_turn, came_short;
	bool watched;       /* near its end: do its bytes move? */
	uint32_t watch_una; /* SND.UNA when the watch began */
	int reason;
};

/* A piece of registered memory, lent to a core until its release. */
struct sim_slot {
	struct sim_ep *ep;
	bool out;
};

struct sim_side {
	struct world *w;
	struct testcore tc;
	struct corq_check check;
	uint64_t busy_until_ns;
	bool again; /* the last turn did something */
	uint32_t idle_turns;
	struct corq_listener *listener[4];
	uint8_t *arena; /* SIM_SLOTS * SIM_SLOT_BYTES */
	struct sim_slot slot[SIM_SLOTS];
	uint32_t n_out; /* slots lent */
	uint16_t region;
	uint64_t turn;
	bool in_cb, cb_ran, batch_ended;
	uint64_t next_open_ns, next_listen_ns;
	uint64_t next_ns; /* when the core has something to do, as of its last turn */
	uint16_t dual_port;
};

struct sim_totals {
	uint64_t seeds, conns, bytes, turns, packets, virtual_ns;
	uint64_t reset, refused, timed_out, in_order;
};

struct world {
	struct sim_params p;
	const struct sim_options *opt;
	struct corq_rand rand; /* programs */
	struct corq_rand plan; /* when what is opened */
	struct sim_side side[2];
	struct sim_link link[2];
	struct sim_ep *ep;
	uint32_t n_ep, n_open_calls, n_live;
	uint64_t start_ns, now_ns, last_open_ns;
	uint64_t bytes_read;
	struct pcapbuf *pcap;
	bool failed;
	bool listener_closed; /* ever */
	uint64_t dual_at_ns[2];
	uint16_t dual_port;
	char msg[640];
};

/* ---- params.c ---- */
void sim_params_draw(struct sim_params *p, const struct sim_options *o, uint64_t seed);
void sim_params_print(const struct sim_params *p);

/* ---- link.c ---- */
void sim_link_init(struct sim_link *l, const struct sim_link_params *p, uint64_t seed);
/* Takes pkt, which left at now_ns. */
void sim_link_send(struct sim_link *l, struct memport_pkt *pkt, uint64_t now_ns);
/* When the next packet arrives; UINT64_MAX: none is under way. */
uint64_t sim_link_next(const struct sim_link *l);
/* The next packet that arrived by now_ns, free() it; NULL: none. */
struct memport_pkt *sim_link_take(struct sim_link *l, uint64_t now_ns);
void sim_link_end(struct sim_link *l);

/* ---- ep.c ---- */
extern const struct corq_ops sim_ops, sim_proxy_ops;
/* Opens a connection from `side`; raddr port by kind. */
/* NULL: refused, for a reason that may be. */
struct sim_ep *sim_ep_connect(
	struct sim_side *s, uint16_t rport, uint16_t lport, enum sim_kind kind);
void sim_mem_release(struct corq_core *core, void *arg, uint64_t cookie);
/* Byte `off` of the stream named by key. */
void sim_stream(uint64_t key, uint32_t off, uint8_t *out, size_t len);

/* ---- ends.c ---- */
/* Looks at every connection after all is over. */
void sim_check_ends(struct world *w);

/* ---- world.c ---- */
/* 0: the run was right; -1: w->msg says what was wrong. */
int sim_run(struct world *w, const struct sim_options *o, uint64_t seed, struct pcapbuf *pcap,
	struct sim_totals *t);
/* Gives back what worlds keep from run to run. */
void sim_end(struct world *w);
void sim_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_say(const struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- churn.c ---- */
int sim_churn(const struct sim_options *o, uint64_t seed);

static inline struct sim_side *
sim_side_of(struct corq_core *core)
{
	return corq_core_user(core);
}

static inline uint64_t
sim_below(struct corq_rand *r, uint64_t n)
{
	return corq_rand_below(r, n);
}

static inline bool
sim_chance(struct corq_rand *r, uint32_t parts)
{
	return parts != 0 && corq_rand_below(r, SIM_CHANCE_WHOLE) < parts;
}

#endif
