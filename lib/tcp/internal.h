/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * internal.h - what the files of lib/tcp say to each other and to nobody else.
 */
#ifndef CORQ_TCP_INTERNAL_H
#define CORQ_TCP_INTERNAL_H

#include "base/seq.h"
#include "net/emit.h"
#include "tcp/engine.h"

/* ---- engine.c ---- */
static inline void
corq_count(struct corq_engine *e, enum corq_reason r)
{
	e->reasons[r]++;
}

static inline void
corq_conn_key(const struct corq_conn *c, struct corq_key *key)
{
	*key = (struct corq_key){
		.raddr = c->raddr, .laddr = c->laddr, .rport = c->rport, .lport = c->lport};
}

/* Hash of its tuple: of the segment in hand when it belongs to c, else computed. */
uint64_t corq_conn_hash(const struct corq_engine *e, const struct corq_conn *c);

/* The MSS option that we send, and the payload of a full segment towards a peer. */
uint16_t corq_mss_ours(const struct corq_engine *e, const struct corq_addr *laddr);
uint16_t corq_mss_effective(
	const struct corq_engine *e, const struct corq_addr *laddr, uint16_t peer_mss, bool ts);

/* ---- conn.c: life of a connection ---- */
/* A connection with tuple, handle and table entry, everything else as in CLOSED. CORQ_NONE with
 * *err set (ENOBUFS, EMFILE). */
uint32_t corq_conn_new(struct corq_engine *e, const struct corq_key *key, uint64_t hash,
	uint32_t laddr_idx, int *err);
/* The work block, made if there is none; NULL when the pool is empty (counted). */
struct corq_work *corq_conn_want_work(struct corq_engine *e, struct corq_conn *c);
/* Gives the work block back when nothing of it is in use. */
void corq_conn_drop_work(struct corq_engine *e, struct corq_conn *c);
/* Takes the tuple out of the table; a record may have replaced it before. */
void corq_conn_detach(struct corq_engine *e, struct corq_conn *c);
/* The end: no timer, no queue to send, on_close with err (0: in order) follows. */
void corq_conn_end(struct corq_engine *e, struct corq_conn *c, int err);
/* Marks an event for step 6. */
void corq_conn_event(struct corq_engine *e, struct corq_conn *c, uint16_t ev);
/* Puts the connection into the `send` list (or `urgent` for a SYN), once. */
void corq_conn_mark_send(struct corq_engine *e, struct corq_conn *c);
void corq_conn_mark_urgent(struct corq_engine *e, struct corq_conn *c);
void corq_conn_park(struct corq_engine *e, struct corq_conn *c);
uint32_t corq_fifo_pop_send(struct corq_engine *e, struct corq_fifo *f);
/* Drops all chunks of the send queue and all transmission records. */
void corq_conn_purge_send(struct corq_engine *e, struct corq_conn *c);
/* A chunk is acknowledged or dropped: copied and held ones go, borrowed ones when unreferenced. */
void corq_engine_drop_chunk(struct corq_engine *e, uint32_t idx);
/* Sends RST,ACK at SND.NXT and ends the connection. */
void corq_conn_reset(struct corq_engine *e, struct corq_conn *c, int err);
/* ESTABLISHED is reached: figures, initial window, on_open. */
void corq_conn_established(struct corq_engine *e, struct corq_conn *c);

/* ---- reply.c: segments of no connection ---- */
/* A free place in the ring of replies, zeroed; NULL when full (counted). */
struct corq_reply *corq_reply_new(struct corq_engine *e);
/* RFC 9293 3.10.7.1: the RST that answers a segment of no connection. */
void corq_reply_rst(struct corq_engine *e, const struct corq_seg *seg, const struct corq_key *key);
/* A segment in the name of a connection: RST, RST and ACK. */
void corq_reply_conn(struct corq_engine *e, const struct corq_conn *c, uint8_t flags, uint32_t seq);
/* A segment in the name of a record: ACK (seq SND.NXT), RST (seq the ACK that it answers). */
void corq_reply_record(struct corq_engine *e, const struct corq_record *rec,
	const struct corq_key *key, uint8_t flags, uint32_t seq);

/* ---- input.c, ack.c, recovery.c ---- */
struct corq_ack_result {
	bool fin_acked;
};
/* The ACK field of an acceptable segment; ACK range already checked. */
void corq_ack_input(struct corq_engine *e, struct corq_conn *c, const struct corq_seg *seg,
	struct corq_ack_result *r);
/* A segment of this connection, whatever its state. */
enum corq_reason corq_input_conn(struct corq_engine *e, struct corq_conn *c, struct corq_seg *seg);
/* A FIN that came ahead of its data takes effect once the data is in. */
void corq_fin_ooo_check(struct corq_engine *e, struct corq_conn *c);
void corq_rtt_sample(struct corq_conn *c, uint32_t rtt_us);
uint32_t corq_conn_rto_us(const struct corq_engine *e, const struct corq_conn *c);
uint32_t corq_conn_flight(const struct corq_engine *e, const struct corq_conn *c);
/* snd_una moved by `acked` (SYN and FIN not counted in). */
void corq_recovery_on_ack(
	struct corq_engine *e, struct corq_conn *c, struct corq_work *w, uint32_t acked);
void corq_recovery_on_dupack(struct corq_engine *e, struct corq_conn *c, struct corq_work *w);
void corq_recovery_on_rto(struct corq_engine *e, struct corq_conn *c, struct corq_work *w);

/* ---- txrec.c: what is in flight ---- */
/* Appends a record; false when the pool is empty (counted). */
bool corq_txrec_add(
	struct corq_engine *e, struct corq_work *w, uint32_t seq, uint32_t end, uint16_t flags);
/* Drops what lies below una. Returns the send time of the newest record that it reached, as an RTT
 * sample; 0 if one of them was retransmitted (Karn, RFC 6298 3). */
uint64_t corq_txrec_ack(struct corq_engine *e, struct corq_work *w, uint32_t una);
void corq_txrec_purge(struct corq_engine *e, struct corq_work *w);
/* Marks the first record lost, cut to at most mss bytes when a record can be had for the rest. */
void corq_txrec_lose_first(struct corq_engine *e, struct corq_work *w, uint32_t mss);
void corq_txrec_lose_all(struct corq_engine *e, struct corq_work *w);
/* Cuts a record so that it covers at most len sequence numbers; false when none is left. */
bool corq_txrec_split(struct corq_engine *e, struct corq_work *w, uint32_t idx, uint32_t len);

static inline struct corq_txrec *
corq_txrec_at(struct corq_engine *e, uint32_t idx)
{
	return corq_pool_at(&e->txrecs, idx);
}

/* ---- listen.c: listeners and their queues ---- */
struct corq_listener *corq_listener_find(struct corq_engine *e, const struct corq_key *key);
/* Whether no further connection may complete. */
bool corq_listener_full(const struct corq_listener *l);
/* A child of a listener with a queue: waits there, nothing is told of it until accept. */
void corq_listener_enqueue(struct corq_engine *e, struct corq_listener *l, struct corq_conn *c);
/* Resets children of closed listeners, at most max; how many. */
uint32_t corq_doomed_reset(struct corq_engine *e, uint32_t max);

/* ---- passive.c: half-open records ---- */
enum corq_reason corq_listen_input(struct corq_engine *e, struct corq_listener *l,
	struct corq_seg *seg, const struct corq_key *key, uint32_t min_isn);
enum corq_reason corq_half_open_input(
	struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key);
/* Drops the oldest half-open record of a listener (CORQ_MAX_LISTENERS: of any). */
void corq_half_open_evict(struct corq_engine *e, uint8_t listener);
void corq_half_open_timer(struct corq_engine *e, uint32_t rec);

/* ---- timewait.c: TIME_WAIT and FIN_WAIT_2 records ---- */
enum corq_reason corq_time_wait_input(
	struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key);
enum corq_reason corq_fin_wait2_input(
	struct corq_engine *e, uint32_t rec, struct corq_seg *seg, const struct corq_key *key);
/* The connection's tuple goes to a TIME_WAIT record now; an ACK owed is sent from it. */
void corq_time_wait_enter(struct corq_engine *e, struct corq_conn *c);
/* An orphan in FIN_WAIT_2 becomes a record, and ends; so it does when no record is to be had. */
void corq_fin_wait2_enter(struct corq_engine *e, struct corq_conn *c);
/* Whether our connect may take over a waiting tuple (reuse, lab); then *isn_above: its SND.NXT. */
bool corq_time_wait_reuse(struct corq_engine *e, uint32_t rec, uint32_t *isn_above);

/* ---- record.c: what all records share ---- */
/* Allocation at a kind's bound evicts its oldest; the caller fills and inserts. */
uint32_t corq_record_new(struct corq_engine *e, enum corq_record_kind kind);
void corq_record_free(struct corq_engine *e, uint32_t rec);
void corq_record_start(struct corq_engine *e, uint32_t rec, enum corq_record_class cls);
void corq_record_key(
	const struct corq_engine *e, const struct corq_record *r, struct corq_key *key);
/* Makes room at a kind's bound: its oldest goes, counted. */
void corq_record_evict(struct corq_engine *e, enum corq_record_kind kind);
void corq_record_set_kind(struct corq_engine *e, struct corq_record *r, enum corq_record_kind kind);
/* Frees what is due, or asks SYN-ACKs again; at most `budget`. */
uint32_t corq_record_timers(struct corq_engine *e, uint32_t budget);

/* ---- output.c, build.c ---- */
/* Where built packets go; the caller owns the array. */
struct corq_outbuf {
	struct corq_frame **v;
	uint16_t n, max;
};

/* What may leave of the connection now. Returns true when it stopped for want of room or frames
 * and wants to go on. */
bool corq_output_conn(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob);
/*
 * Payload [seq, seq + len) with flags (FIN and PSH on the last packet only), cut to the MSS unless
 * the port cuts. Returns the payload bytes built; *whole: all of it left, flags included (a bare
 * FIN: len 0). Stops early without room or frames.
 */
uint32_t corq_build_data(struct corq_engine *e, struct corq_conn *c, uint32_t seq, uint32_t len,
	uint8_t flags, struct corq_outbuf *ob, bool *whole);
/* Payload of a full segment now: SACK blocks take their room from it (RFC 9293 3.7.1, RFC 6691). */
uint32_t corq_mss_now(struct corq_engine *e, const struct corq_conn *c);
/* A segment without payload; false without room or frame. */
bool corq_build_ack(
	struct corq_engine *e, struct corq_conn *c, uint32_t seq, struct corq_outbuf *ob);
bool corq_build_syn(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob);
bool corq_reply_build(struct corq_engine *e, const struct corq_reply *r, struct corq_outbuf *ob);
/* A tx frame, or NULL when there is none left for this purpose (counted). */
enum corq_txf_use {
	CORQ_TXF_DATA,
	CORQ_TXF_CONTROL
};
struct corq_frame *corq_txf_take(struct corq_engine *e, enum corq_txf_use use);
/* Emits headers and appends to ob, or lets the neighbour hold the packet until it is resolved, or
 * drops it (counted). ob has room. *neigh: the next hop's entry, a hint. */
void corq_egress(struct corq_engine *e, struct corq_frame *f, const struct corq_tcp_out *o,
	uint16_t *neigh, struct corq_outbuf *ob);
/* The window to advertise now, unscaled and never left of what was told. */
uint32_t corq_rcv_window(const struct corq_engine *e, const struct corq_conn *c);
/* Whether it moved enough to tell without being asked (RFC 9293 3.8.6.2.2). */
bool corq_window_moved(const struct corq_engine *e, const struct corq_conn *c);
/* An ACK of rcv_nxt left: nothing is owed. */
void corq_ack_paid(struct corq_engine *e, struct corq_conn *c);

/* ---- timer.c ---- */
/* The wheel entry stands at the earliest deadline; moves it only when it became earlier. */
void corq_timer_update(struct corq_engine *e, struct corq_conn *c);
void corq_timer_rtx(struct corq_engine *e, struct corq_conn *c, struct corq_work *w,
	enum corq_rtx_kind kind, uint32_t us);
void corq_timer_dack(struct corq_engine *e, struct corq_conn *c, struct corq_work *w);
void corq_timer_dack_off(struct corq_engine *e, struct corq_work *w);

static inline uint32_t
corq_us_to_ticks(uint64_t us)
{
	uint64_t t = (us * 1000 + (1u << CORQ_TICK_SHIFT) - 1) >> CORQ_TICK_SHIFT;

	return t > INT32_MAX ? INT32_MAX : (uint32_t)t;
}

/* ---- conn.c: lists of connections ---- */
/* Appends idx; *tail_next: the link of the connection that is last now (unused when empty). */
void corq_fifo_push(struct corq_fifo *f, uint32_t idx, uint32_t *tail_next);

/* ---- connect.c, verbs.c, splice.c ---- */
/* Bytes that the send buffer still takes; 0, -ENOTCONN or -EPIPE. */
uint32_t corq_send_room(const struct corq_engine *e, const struct corq_conn *c);
int corq_conn_writable(const struct corq_conn *c);
/* The next local address for a connect to raddr, in turn; CORQ_NONE when there is none. */
uint32_t corq_connect_addr(struct corq_engine *e, const struct corq_addr *raddr);
/* Links a chunk to the end of the send queue; snd_end is the caller's. */
void corq_sndq_append(struct corq_engine *e, struct corq_conn *c, uint32_t idx);
void corq_splice_end(struct corq_engine *e, struct corq_conn *c);
void corq_splice_shut(struct corq_engine *e, struct corq_conn *to);
void corq_splice_room(struct corq_engine *e, const struct corq_conn *to);

#endif
