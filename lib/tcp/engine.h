/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - one core's TCP: its state and the verbs on it. A newcomer to lib/tcp reads this first.
 *
 * The engine has no clock, no I/O, no malloc and no globals. Time comes in by corq_engine_clock;
 * segments come in by corq_tcp_input; what is to leave is built into frames by corq_engine_build
 * and appended to an array that the caller owns; what happened is marked in event bits; buffers to
 * give back are appended to `freed`. Nothing is sent from input or from a verb: they mark, step 7
 * builds.
 *
 * Rooms of lib/tcp:
 *   conn.h record.h chunk.h   what is kept          input.c    RFC 9293 3.10.7, step by step
 *   ack.c                     the ACK field, RTT    recovery.c NewReno, RTO (RFC 6298, 6582)
 *   reasm.c                   out-of-order bytes    passive.c  half-open records
 *   listen.c                  listeners, queues     sock.c     recv, send, ... as sockets mean them
 *   timewait.c                TIME_WAIT, FIN_WAIT_2 output.c   what may leave now
 *   build.c                   frames                cork.h     the one decision of output
 *   timer.c                   deadlines             verbs.c    write, shutdown, close, ...
 *   ports.c isn.c             numbers               reply.c    stateless answers
 *   connect.c                 active opens
 */
#ifndef CORQ_TCP_ENGINE_H
#define CORQ_TCP_ENGINE_H

#include "base/handle.h"
#include "base/pool.h"
#include "base/rand.h"
#include "base/siphash.h"
#include "base/table.h"
#include "net/icmp.h"
#include "net/neigh.h"
#include "net/reasons.h"
#include "net/seg.h"
#include "tcp/chunk.h"
#include "tcp/conn.h"
#include "tcp/isn.h"
#include "tcp/ports.h"
#include "tcp/record.h"
#include <corq/instance.h>

/* Values in the connection table: an index and, in the top bit, what it is an index of. */
#define CORQ_VAL_RECORD 0x80000000u

#define CORQ_MAX_LISTENERS 64
#define CORQ_MAX_OPS       64
#define CORQ_MAX_RANGES    8
#define CORQ_MAX_REGIONS   256
#define CORQ_URGENT_MAX    1024 /* stateless replies waiting; beyond: dropped, counted */
#define CORQ_OOO_MAX       64   /* out-of-order pieces a connection keeps */
#define CORQ_TXF_MAX       512  /* tx frames that a turn may have at hand */
#define CORQ_TXF_RESERVE   32   /* of them kept for ACK, RST and control when data runs short */

/* Knobs, resolved: no zero means "default" here. Times in ticks unless named otherwise. */
struct corq_tcp_config {
	uint32_t max_conns, max_time_wait, max_half_open, max_fin_wait2;
	uint32_t n_work, n_txrec, n_chunk[CORQ_CHUNK_CLASS_COUNT];
	uint32_t held_max;
	uint32_t snd_buf, rcv_buf;
	uint32_t rto_min_us, rto_init_us, rto_max_us;
	uint32_t delack_ticks, fin_wait2_ticks, tw_ticks;
	uint32_t cork_min_us; /* ceiling of a corked tail is max(RTO, this) */
	uint8_t syn_retries, synack_retries, data_retries;
	uint8_t timewait;   /* enum corq_timewait */
	uint8_t rcv_wscale; /* from rcv_buf */
	bool rfc1337, timestamps, sack, wscale;
	uint32_t reuse_delay_ticks;
	uint16_t port_first, port_last;
	uint16_t mtu;
	uint32_t n_dests; /* destinations whose port figures are kept */
	uint32_t isn_cache;
};

/* A range of local addresses: `count` from `first` on. */
struct corq_range {
	struct corq_addr first;
	uint32_t count;
	uint32_t base_idx; /* index of `first` in the core's address table */
	uint8_t connect;   /* our own connects may use it */
};

struct corq_fifo { /* singly linked through send_next or ev_next */
	uint32_t head, tail, n;
};

struct corq_listener {
	struct corq_listen_opts opts; /* as given */
	uint32_t n_half_open, max_half_open;
	struct corq_fifo queue; /* children that wait for accept, through ev_next (listen.c) */
	uint32_t max_queue;
	uint8_t used, any_addr;
	uint8_t draining; /* no new SYN is taken */
	uint8_t defer;    /* SYN-ACK waits for which a bare third ACK is not enough */
	uint16_t ops;
};

/* A segment without a connection, complete in itself: RST, SYN-ACK, answers of records. */
struct corq_reply {
	struct corq_addr src, dst;
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint32_t ts_off, tsecr;
	uint16_t wnd, mss; /* mss, wscale: SYN-ACK only */
	uint8_t flags;     /* CORQ_TH_* */
	uint8_t opts;      /* CORQ_OPT_* to be sent */
	uint8_t wscale;
	uint8_t pad;
};

/* Where a destination's frames go: on-link, or to the gateway. */
struct corq_route {
	struct corq_addr net, mask; /* net is masked */
	bool has_gw;
	struct corq_addr gw;
};

/* Frames to give back at the end of the turn, and borrowed bytes to release. */
#define CORQ_FREED_MAX 1024

struct corq_engine {
	struct corq_tcp_config cfg;

	/* clock of this turn */
	uint64_t now_ns;
	uint32_t now_tick, now_ms;
	uint32_t changes; /* table insertions and removals so far: a look-up miss older than the
			     last one is looked up again */
	/* The object of the segment in hand, or CORQ_NONE, and its tuple's hash: what the segment
	 * changes in the table needs no second hash. */
	uint32_t in_val;
	uint64_t in_hash;

	struct corq_table table;
	struct corq_sipkey key_table, key_isn, key_port;
	struct corq_pool conns, records, works, txrecs, splices;
	struct corq_chunks chunks;
	struct corq_wheel wheel;
	struct corq_lane *lane;
	struct corq_handles *handles;
	struct corq_rand rand;

	struct corq_dlist dack; /* delayed ACKs: one duration, oldest first */
	struct corq_dlist_space dack_space;
	struct corq_dlist rec_list[CORQ_RC_COUNT];
	struct corq_dlist_space rec_space;
	uint32_t rec_ticks[CORQ_RC_COUNT];
	uint32_t rec_n[CORQ_REC_KIND_COUNT], rec_max[CORQ_REC_KIND_COUNT];
	uint32_t rec_ahead, rec_ahead_n; /* record.c: the TIME_WAIT record fetched last, and how
					    many stand before it (about) */

	/* sender queues (step 7 of the turn) */
	struct corq_fifo urgent; /* connections with a SYN to send */
	struct corq_fifo parked; /* connections whose SYN waits for its next hop's address */
	struct corq_fifo send;
	uint32_t reply_head, reply_n;
	struct corq_reply *replies; /* ring of CORQ_URGENT_MAX */
	struct corq_fifo events;

	struct corq_frame **freed; /* CORQ_FREED_MAX; the turn empties it in step 9 */
	uint32_t n_freed;
	uint32_t release_head; /* borrowed chunks acknowledged and unreferenced: list */

	struct corq_range ranges[CORQ_MAX_RANGES];
	unsigned n_ranges;
	uint32_t n_addrs, next_laddr;
	struct corq_listener listeners[CORQ_MAX_LISTENERS];
	unsigned n_listeners;    /* one past the last used place */
	uint64_t acceptable;     /* bit per listener: its queue stopped being empty in this turn */
	struct corq_fifo doomed; /* children of closed listeners: reset a few a turn */
	const struct corq_ops *ops[CORQ_MAX_OPS];
	unsigned n_ops;
	uint64_t ops_ran; /* bit per ops table: a callback ran in this turn (on_batch_end) */
	struct corq_ports ports;
	struct corq_isn isn;

	/* the way out: link, next hops, what the device does for us */
	struct corq_neigh *neigh;
	struct corq_route route;
	uint16_t last_neigh; /* next hop of the last packet: first guess for replies, new conns */
	uint8_t smac[6];
	uint32_t emit_caps; /* enum corq_emit_flag */
	bool cap_chain;     /* the port takes chains with borrowed parts */
	uint32_t tso_max;   /* payload bytes of a super-segment that the port cuts; 0: none */
	/* tx frames of this turn (filled in bulk by the turn before step 7) */
	struct corq_frame **txf;
	uint32_t n_txf;

	struct corq_stats stats;
	uint64_t reasons[CORQ_R_COUNT];
};

/* ---- life ---- */
size_t corq_engine_bytes(const struct corq_tcp_config *cfg);
/* mem: zeroed, corq_engine_bytes long, line-aligned; seed: secrets are derived from it. */
void corq_engine_init(struct corq_engine *e, void *mem, const struct corq_tcp_config *cfg,
	uint64_t seed, uint32_t now_tick);
void corq_engine_clock(struct corq_engine *e, uint64_t now_ns);
/* Index of a local address, or CORQ_NONE. */
uint32_t corq_engine_laddr(const struct corq_engine *e, const struct corq_addr *a);
struct corq_addr corq_engine_laddr_at(const struct corq_engine *e, uint32_t idx);
uint64_t corq_engine_hash(const struct corq_engine *e, const struct corq_key *key);

/* ---- step 3: input ---- */
/* Table value of the key, or CORQ_NONE. */
uint32_t corq_engine_lookup(struct corq_engine *e, const struct corq_key *key, uint64_t hash);
/* Whether a value looked up earlier in this turn still names the live object of that tuple. */
bool corq_engine_hint_ok(struct corq_engine *e, uint32_t hint, const struct corq_key *key);
/*
 * Takes one segment. seg->hint may be stale or CORQ_NONE. Takes seg->frame: kept in a queue or
 * appended to `freed`. Returns the reason it was dropped (counted here), or CORQ_R_NONE.
 */
enum corq_reason corq_tcp_input(
	struct corq_engine *e, struct corq_seg *seg, const struct corq_key *key);

/* The same for who has just seen that val is what the tuple names now (CORQ_NONE: nothing). */
enum corq_reason corq_tcp_input_at(
	struct corq_engine *e, struct corq_seg *seg, const struct corq_key *key, uint32_t val);

/* An ICMP error about one of our segments. Returns why it was ignored, or CORQ_R_NONE. */
enum corq_reason corq_tcp_icmp(struct corq_engine *e, const struct corq_icmp *icmp);
/* A next hop was resolved or given up: SYNs that waited for one are tried again. */
void corq_tcp_unpark(struct corq_engine *e);
/* A packet of ours that no next hop took: an open that it belongs to ends with EHOSTUNREACH. */
void corq_tcp_unreachable(struct corq_engine *e, struct corq_frame *f);
/* The next hop of a destination (dst itself on-link, or the gateway), NULL without a route. */
const struct corq_addr *corq_next_hop(const struct corq_engine *e, const struct corq_addr *dst);
/* Number of a callback table, 0: none. */
uint16_t corq_ops_index(struct corq_engine *e, const struct corq_ops *ops);

/* ---- step 5: timers ---- */
/* Fires what is due, at most `budget` entries; hold_rtx: no retransmission timer now (the ACKs may
 * be here already). Returns how many fired. */
uint32_t corq_tcp_timers(struct corq_engine *e, uint32_t budget, bool hold_rtx);
/* Ticks until the next deadline (never late), UINT32_MAX when there is none. */
uint32_t corq_tcp_next_deadline(struct corq_engine *e);

/* ---- step 7: build ---- */
/* Builds up to n packets into out[], in order; returns how many. At most n_send of them are what
 * connections send; replies and SYNs are not held by that. What does not fit stays queued. */
uint16_t corq_tcp_build(
	struct corq_engine *e, struct corq_frame **out, uint16_t n, uint16_t n_send);
bool corq_tcp_wants_build(const struct corq_engine *e);

/* ---- verbs (bodies of the on-core API; see <corq/core.h> for their contracts) ---- */
int corq_tcp_listen(
	struct corq_engine *e, const struct corq_listen_opts *o, struct corq_listener **out);
void corq_tcp_unlisten(struct corq_engine *e, struct corq_listener *l);
void corq_tcp_listener_drain(struct corq_listener *l);
int corq_tcp_accept(struct corq_engine *e, struct corq_listener *l, struct corq_conn **out);
/* Closes the listeners that have queues, and resets what waited there: for a core that stops. */
void corq_tcp_end_queues(struct corq_engine *e);
int corq_tcp_connect(
	struct corq_engine *e, const struct corq_connect_opts *o, struct corq_conn **out);
ssize_t corq_tcp_write(
	struct corq_engine *e, struct corq_conn *c, const void *data, size_t len, unsigned flags);
ssize_t corq_tcp_write_mem(struct corq_engine *e, struct corq_conn *c, uint16_t region,
	const void *data, size_t len, unsigned flags, uint64_t cookie);
void *corq_tcp_reserve(struct corq_engine *e, struct corq_conn *c, size_t *len);
int corq_tcp_commit(struct corq_engine *e, struct corq_conn *c, size_t len, unsigned flags);
int corq_tcp_peek(struct corq_engine *e, struct corq_conn *c, struct iovec *iov, int n);
void corq_tcp_consume(struct corq_engine *e, struct corq_conn *c, size_t len);
int corq_tcp_splice(struct corq_engine *e, struct corq_conn *from, struct corq_conn *to);
/* Whether step 6 pulls for this connection instead of calling on_data; and the pull. */
bool corq_tcp_spliced(struct corq_engine *e, const struct corq_conn *from);
void corq_splice_pull(struct corq_engine *e, struct corq_conn *from);
int corq_tcp_shutdown(struct corq_engine *e, struct corq_conn *c);
int corq_tcp_shutdown_read(struct corq_conn *c);
void corq_tcp_close(struct corq_engine *e, struct corq_conn *c);
void corq_tcp_close_linger(struct corq_engine *e, struct corq_conn *c, uint64_t ms);
ssize_t corq_tcp_recv(struct corq_engine *e, struct corq_conn *c, void *buf, size_t len);
ssize_t corq_tcp_send(
	struct corq_engine *e, struct corq_conn *c, const void *data, size_t len, unsigned flags);
int corq_tcp_take_error(struct corq_conn *c);
unsigned corq_tcp_ready(const struct corq_engine *e, const struct corq_conn *c);
void corq_tcp_abort(struct corq_engine *e, struct corq_conn *c);
/* The end without a word to the peer: for a core that stops. */
void corq_tcp_forget(struct corq_engine *e, struct corq_conn *c);
void corq_tcp_set_cork(struct corq_engine *e, struct corq_conn *c, bool on);
void corq_tcp_set_nodelay(struct corq_engine *e, struct corq_conn *c, bool on);
/* How long the orphan may wait in FIN_WAIT_2: seconds, rounded up to a class (record.h); 0 the
 * engine's time; below 0 close sends RST (LINGER2). */
void corq_tcp_set_linger2(struct corq_conn *c, int seconds);
void corq_tcp_set_deadline(struct corq_engine *e, struct corq_conn *c, uint64_t at_ns);
void corq_tcp_get_info(struct corq_engine *e, const struct corq_conn *c, struct corq_conn_info *i);
/* A lower MTU towards the peer (path MTU, or the program's word): what is queued is cut anew. */
void corq_tcp_set_mss(struct corq_engine *e, struct corq_conn *c, uint16_t mss);

/* ---- events, for core/events.c ---- */
/* Takes the next connection with events, CORQ_NONE when there is none; its bits into *ev. */
uint32_t corq_tcp_next_event(struct corq_engine *e, uint16_t *ev);
/* on_close is called before the end (lingering): the program's handle goes, the rest lives on. */
void corq_tcp_told(struct corq_engine *e, struct corq_conn *c);
/* After on_close returned: the connection's memory goes (usable from the next turn on). */
void corq_tcp_reap(struct corq_engine *e, struct corq_conn *c);
/* A borrowed part's frame is done (from port->released). */
void corq_tcp_frame_released(struct corq_engine *e, void *ext);
/* End of the turn: deferred frees become usable. */
void corq_engine_turn_end(struct corq_engine *e);

/* Gives a frame chain back to the port at the end of the turn. */
static inline void
corq_engine_free_frame(struct corq_engine *e, struct corq_frame *f)
{
	struct corq_frame *tail = f;

	if (CORQ_LIKELY(e->n_freed < CORQ_FREED_MAX)) {
		e->freed[e->n_freed++] = f;
		return;
	}
	while (tail->next) /* full: ride on the last chain; free_bulk takes parts one by one */
		tail = tail->next;
	tail->next = e->freed[CORQ_FREED_MAX - 1];
	e->freed[CORQ_FREED_MAX - 1] = f;
}

static inline struct corq_conn *
corq_conn_at(struct corq_engine *e, uint32_t idx)
{
	return corq_pool_at(&e->conns, idx);
}

static inline uint32_t
corq_conn_idx(const struct corq_engine *e, const struct corq_conn *c)
{
	return corq_pool_index(&e->conns, c);
}

static inline struct corq_record *
corq_record_at(struct corq_engine *e, uint32_t idx)
{
	return corq_pool_at(&e->records, idx);
}

static inline struct corq_work *
corq_conn_work(struct corq_engine *e, const struct corq_conn *c)
{
	return c->work == CORQ_NONE ? NULL : corq_pool_at(&e->works, c->work);
}

#endif
