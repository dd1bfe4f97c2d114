/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core.h - the on-core API: what a program calls from inside a corq core.
 *
 * A core is one thread that owns its queues, connections and memory. Everything here is called on
 * that thread only: from a callback, from the hook, from the start function that corq_run gave to
 * the core, or between two corq_core_turn calls of a program that runs the turns itself.
 * No call here blocks, sleeps, makes a system call or calls a callback: callbacks come later in
 * the same turn (step 6), frames leave after them (step 7). So what one callback writes and then
 * closes leaves as one segment with FIN.
 *
 * Errors are negative errno values. Bytes are bytes; times are nanoseconds of corq_core_now.
 */
#ifndef CORQ_CORE_H
#define CORQ_CORE_H

#include <corq/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct corq_core;
struct corq_conn;     /* one TCP connection; the pointer is good until its on_close returned */
struct corq_listener; /* one listening endpoint of this core */
struct corq_mem;      /* registered memory, see corq_mem_register in instance.h */

/*
 * Callbacks of a connection. Any may be NULL. All run on the core in step 6 of its turn, with all
 * input of the turn done; they may call anything in this header on any connection of the core.
 * The table is const and shared; `user` words tell connections apart. A table may stand on
 * another: `under` is free for its owner (a TLS layer keeps the application's table there).
 */
struct corq_ops {
	/* The connection is ESTABLISHED (active or passive). What is written here rides on the ACK
	 * of the SYN-ACK. */
	void (*on_open)(struct corq_core *core, struct corq_conn *conn);
	/* New bytes in order: corq_conn_peek shows them, corq_conn_consume takes them. Called once
	 * a turn at most, and again only when more arrives. */
	void (*on_data)(struct corq_core *core, struct corq_conn *conn);
	/* The send queue has room again after a write that came short, or has run empty (all of it
	 * acknowledged by the peer). */
	void (*on_sent)(struct corq_core *core, struct corq_conn *conn);
	/* The peer's FIN is in, after all its data (RFC 9293 3.10.7.4, eighth step). */
	void (*on_peer_fin)(struct corq_core *core, struct corq_conn *conn);
	/* The deadline set by corq_conn_set_deadline has passed; it is off now. */
	void (*on_timer)(struct corq_core *core, struct corq_conn *conn);
	/*
	 * The last call for this connection, exactly one, also when it never opened. reason: 0 it
	 * ended in order after corq_conn_close: the peer has acknowledged everything, FIN included;
	 * -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -EHOSTUNREACH what ended it; -ECONNABORTED
	 * corq_conn_abort or the core itself did; -EINPROGRESS the time of corq_conn_close_linger
	 * is over, and delivery goes on without the program.
	 * Bytes not consumed are still readable in this call. The pointer is dead after it.
	 */
	void (*on_close)(struct corq_core *core, struct corq_conn *conn, int reason);
	/* A held connection (corq_conn_hold) has ended; reason as on_close's. What was received is
	 * still readable, on_close comes after corq_conn_close. */
	void (*on_end)(struct corq_core *core, struct corq_conn *conn, int reason);
	/* Once at the end of step 6 of each turn in which a callback of this table ran. */
	void (*on_batch_end)(struct corq_core *core);
	const struct corq_ops *under;
};

enum corq_write_flag {
	CORQ_MORE = 1u << 0, /* more follows soon: a short tail may wait (MSG_MORE) */
	CORQ_FIN = 1u << 1,  /* as corq_conn_shutdown after this write, if all of it was taken */
};

/* ---- the core ---- */

unsigned corq_core_index(const struct corq_core *core); /* 0 .. cores-1 */
uint64_t corq_core_now(const struct corq_core *core);   /* the turn's clock, ns */
void *corq_core_user(const struct corq_core *core);
void corq_core_set_user(struct corq_core *core, void *user);
/* Runs one turn. For programs that own the thread; corq_run does it for others.
 * Returns true when the turn did something (a hint for backing off). */
bool corq_core_turn(struct corq_core *core);
/*
 * A function called once a turn, after the callbacks and before frames are built: the place to
 * open connections at a rate. Returns the time at which it wants to be called again at the latest
 * (ns, 0: no wish), which bounds the idle sleep.
 */
typedef uint64_t (*corq_hook_fn)(struct corq_core *core, void *arg, uint64_t now_ns);
void corq_core_set_hook(struct corq_core *core, corq_hook_fn fn, void *arg);

/* ---- opening ---- */

struct corq_listen_opts {
	struct corq_addr addr; /* all zero: every address of the core */
	uint16_t port;
	int backlog;                /* half-open bound of this listener on this core; 0: default.
				       With queue: as listen(2) means it, see there */
	const struct corq_ops *ops; /* of the connections accepted */
	void *user;                 /* their first user word */
	/*
	 * With an accept queue: connections that complete wait there, at most backlog + 1 (backlog
	 * 0 to 4096), until corq_listener_accept; no callback of theirs comes before. While it is
	 * full a SYN is dropped, and so is a third ACK, whose SYN-ACK comes again
	 * (abort_on_overflow: RST instead). All counted.
	 */
	bool queue, abort_on_overflow;
	/* Step 6 of a turn in which the queue stopped being empty; may be NULL. */
	void (*on_acceptable)(struct corq_core *core, struct corq_listener *listener);
	/* DEFER_ACCEPT: for so many seconds, rounded up to the SYN-ACK's waits, a bare third ACK
	 * makes no connection, data does; then the SYN-ACK comes once more, and its ACK makes one.
	 */
	unsigned defer_s;
};
/* 0 and *out; -EADDRINUSE, -EADDRNOTAVAIL (not our address), -EINVAL (port 0), -ENOBUFS (too many
 * listeners). */
int corq_core_listen(
	struct corq_core *core, const struct corq_listen_opts *opts, struct corq_listener **out);
/* New SYNs are refused (RST) at once; half-open ones are dropped; accepted connections stay; those
 * that wait in its queue are reset, without on_close. */
void corq_listener_close(struct corq_core *core, struct corq_listener *listener);
/* The listener is going to leave: SYNs are dropped without a word (a peer asks again, and finds who
 * listens then), half-open ones may still complete, its queue can be emptied. corq_listener_close
 * ends it. */
void corq_listener_drain(struct corq_core *core, struct corq_listener *listener);
/* Takes the connection that waits longest out of the queue; its callbacks follow in this turn or
 * the next, on_open first. One that has ended while it waited comes too, with its on_close; what it
 * had received is lost then, corq_conn_hold comes too late for it. 0 and *out; -EAGAIN none waits,
 * -EOPNOTSUPP a listener without a queue. */
int corq_listener_accept(
	struct corq_core *core, struct corq_listener *listener, struct corq_conn **out);

struct corq_connect_opts {
	struct corq_addr raddr;
	uint16_t rport;
	uint16_t lport; /* 0: chosen from this core's ports (RFC 6056). Among several cores only a
			   port of this core is possible, else -EADDRNOTAVAIL */
	struct corq_addr laddr; /* all zero: chosen, in turn over the address range */
	const struct corq_ops *ops;
	void *user;
	bool nodelay, cork;
};
/*
 * Starts an active open (SYN leaves in step 7). 0 and *out; -EADDRNOTAVAIL every local tuple to
 * that peer is taken (at once, counted), -EADDRINUSE the tuple asked for is, -ENETUNREACH no
 * route, -EMFILE no handle, -ENOBUFS no connection left.
 */
int corq_core_connect(
	struct corq_core *core, const struct corq_connect_opts *opts, struct corq_conn **out);

/* ---- bytes ---- */

/*
 * Copies up to len bytes into the send queue; returns how many were taken (short when the send
 * buffer or the pool is full: on_sent tells when to go on). -EPIPE after shutdown, close or a
 * peer's RST; -ENOTCONN before ESTABLISHED.
 */
ssize_t corq_conn_write(struct corq_core *core, struct corq_conn *conn, const void *data,
	size_t len, unsigned flags);
/*
 * Queues bytes of registered memory without a copy. They must not change until `release` of the
 * registration is called with `cookie`: acknowledged, and no frame refers to them any more.
 * Takes all or nothing: len, or -ENOBUFS, -EPIPE, -ENOTCONN. Not bounded by the send buffer.
 */
ssize_t corq_conn_write_mem(struct corq_core *core, struct corq_conn *conn, struct corq_mem *mem,
	const void *data, size_t len, unsigned flags, uint64_t cookie);
/* A place to write up to *len bytes (set to what there is) straight into the send queue; commit
 * says how many were written. NULL when there is no room. No other write and no turn in between. */
void *corq_conn_reserve(struct corq_core *core, struct corq_conn *conn, size_t *len);
int corq_conn_commit(struct corq_core *core, struct corq_conn *conn, size_t len, unsigned flags);
/* Bytes received and not consumed, in place: fills up to n iovecs, returns how many. Valid until
 * the next consume. */
int corq_conn_peek(struct corq_core *core, struct corq_conn *conn, struct iovec *iov, int n);
/* Drops len bytes from the front (CORQ_ASSERT: not more than there are) and opens the window. */
void corq_conn_consume(struct corq_core *core, struct corq_conn *conn, size_t len);
size_t corq_conn_readable(const struct corq_conn *conn);
size_t corq_conn_unsent(const struct corq_conn *conn); /* queued and not acknowledged */
/*
 * From now on what `from` receives is what `to` sends, without a copy, FIN included; two calls
 * make a proxy. Both on this core. on_data and on_peer_fin of `from` rest. Ends with either
 * connection, or when `to` is shut down: then `from` is told again what it has. -EINVAL same
 * connection, -ENOTCONN `from` has ended, -EBUSY already spliced, -EPIPE `to` cannot send.
 */
int corq_splice(struct corq_core *core, struct corq_conn *from, struct corq_conn *to);

/* ---- ending ---- */

/* FIN after what is queued; it cancels cork, MORE and Nagle for all of it and rides on the last
 * segment. 0; -ENOTCONN. Twice is 0. Receiving goes on. */
int corq_conn_shutdown(struct corq_core *core, struct corq_conn *conn);
/* The program will not read: nothing leaves, bytes that arrive are acknowledged and readable as
 * before; with corq_conn_shutdown as well, peer data is answered by RST. 0; -ENOTCONN. */
int corq_conn_shutdown_read(struct corq_core *core, struct corq_conn *conn);
/*
 * The program is done with the connection: FIN as in shutdown; RST if received bytes were not
 * consumed (RFC 1122 4.2.2.13) or linger 0 is set. Later peer data is answered by RST.
 * on_close follows when the connection has ended, entered TIME_WAIT or became a record.
 */
void corq_conn_close(struct corq_core *core, struct corq_conn *conn);
/*
 * Close, and hear of it in ms milliseconds at the latest (at most 30000000): on_close is called
 * when the peer has acknowledged everything (0), or when the time is over (-EINPROGRESS): then the
 * connection goes on delivering, as after SO_LINGER's time, and the program hears no more of it.
 * ms 0: RST, as with linger 0.
 */
void corq_conn_close_linger(struct corq_core *core, struct corq_conn *conn, uint64_t ms);
void corq_conn_abort(struct corq_core *core, struct corq_conn *conn); /* RST now */

/* Who closes first; one vocabulary for every program. */
enum corq_close_policy {
	CORQ_CLOSE_FIRST,          /* we: as corq_conn_close */
	CORQ_CLOSE_AFTER_PEER,     /* the peer: we answer its FIN, so TIME_WAIT is its */
	CORQ_CLOSE_ABORT_IF_EMPTY, /* RST if no byte was ever sent or received; else as first */
	CORQ_CLOSE_RST,            /* as corq_conn_abort */
};
/*
 * The program is done with the connection, and the policy says how it ends. Only on_close follows.
 * After-peer: what is queued leaves (cork and MORE are over), what arrives is dropped, and close
 * follows the peer's FIN, or comes after wait_ns (0: waits without end). The other policies do not
 * wait.
 */
void corq_conn_finish(struct corq_core *core, struct corq_conn *conn, enum corq_close_policy policy,
	uint64_t wait_ns);

/* ---- options, words, facts ---- */

void corq_conn_set_cork(struct corq_core *core, struct corq_conn *conn, bool on);
void corq_conn_set_nodelay(struct corq_core *core, struct corq_conn *conn, bool on);
void corq_conn_set_linger0(struct corq_conn *conn, bool on); /* close sends RST */
/* LINGER2: how long it may wait in FIN_WAIT_2 after close. Seconds, rounded up to 1, 2, 4, 8, 16,
 * 32 or the core's fin_wait2_ms, which is the most; 0 the core's; below 0 RST instead of waiting.
 */
void corq_conn_set_linger2(struct corq_conn *conn, int seconds);
void corq_conn_set_ops(struct corq_conn *conn, struct corq_core *core, const struct corq_ops *ops);
void corq_conn_set_user(struct corq_conn *conn, void *user);
void *corq_conn_user(const struct corq_conn *conn);
/* One deadline a connection, absolute ns; 0 turns it off. Fires on_timer, never early. */
void corq_conn_set_deadline(struct corq_core *core, struct corq_conn *conn, uint64_t at_ns);
corq_h corq_conn_handle(struct corq_core *core, const struct corq_conn *conn);
/* The connection of a handle, NULL when it is gone (EBADF). */
struct corq_conn *corq_conn_of(struct corq_core *core, corq_h h);

/* The states of RFC 9293 3.3.2, in its order. TIME_WAIT lives in records: a connection whose
 * tuple went there reports TIME_WAIT until it is closed. */
enum corq_state {
	CORQ_CLOSED,
	CORQ_SYN_SENT,
	CORQ_SYN_RCVD,
	CORQ_ESTABLISHED,
	CORQ_FIN_WAIT_1,
	CORQ_FIN_WAIT_2,
	CORQ_CLOSE_WAIT,
	CORQ_CLOSING,
	CORQ_LAST_ACK,
	CORQ_TIME_WAIT,
	CORQ_STATE_COUNT,
};
const char *corq_state_name(enum corq_state state);

struct corq_conn_info {
	struct corq_addr laddr, raddr;
	uint16_t lport, rport;
	enum corq_state state;
	uint32_t snd_una, snd_nxt, rcv_nxt;
	uint32_t snd_wnd_bytes, rcv_wnd_bytes, cwnd_bytes, ssthresh_bytes;
	uint32_t mss_bytes, srtt_us, rttvar_us, rto_us;
	uint32_t unacked_bytes, unsent_bytes, readable_bytes, ooo_bytes;
	uint8_t snd_wscale, rcv_wscale, backoff;
	bool timestamps, sack, cork, nodelay, fin_queued, fin_sent, peer_fin;
	bool read_shut, held;
};
void corq_conn_get_info(
	struct corq_core *core, const struct corq_conn *conn, struct corq_conn_info *info);

/* ---- as a socket means it ---- */

/* The connection stays after its end (on_end) until corq_conn_close, so that data and the error can
 * be taken in order. The on_close after that says 0. */
void corq_conn_hold(struct corq_conn *conn);
/* Up to len bytes into buf: how many; when there are none: the error that ended it, once; 0 nothing
 * will come (peer's FIN, shutdown_read, the end); -EAGAIN. */
ssize_t corq_conn_recv(struct corq_core *core, struct corq_conn *conn, void *buf, size_t len);
/* As corq_conn_write, but: the error that ended it, once (then -EPIPE); -EAGAIN when nothing fits.
 */
ssize_t corq_conn_send(struct corq_core *core, struct corq_conn *conn, const void *data, size_t len,
	unsigned flags);
/* SO_ERROR: the error that ended a held connection, once; else 0. */
int corq_conn_error(struct corq_conn *conn);

/* poll(2)'s bits. The peer's FIN: IN OUT RDHUP; FINs of both sides, or the end: HUP too; an error
 * not taken yet: ERR too. */
enum corq_ready {
	CORQ_READY_IN = 0x001,
	CORQ_READY_OUT = 0x004,
	CORQ_READY_ERR = 0x008,
	CORQ_READY_HUP = 0x010,
	CORQ_READY_RDHUP = 0x2000,
};
unsigned corq_conn_ready(struct corq_core *core, const struct corq_conn *conn);

#ifdef __cplusplus
}
#endif
#endif
