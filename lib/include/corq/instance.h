/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instance.h - starting and stopping corq: configuration, cores, registered memory, figures.
 *
 * One process may start one instance (DPDK's EAL can be started once). Functions here are called
 * from the program's main thread unless they say otherwise.
 */
#ifndef CORQ_INSTANCE_H
#define CORQ_INSTANCE_H

#include <corq/core.h>
#include <corq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct corq_instance;

enum corq_timewait {
	CORQ_TW_STRICT, /* full time; a tuple returns by a newer SYN only (RFC 6191) */
	CORQ_TW_REUSE,  /* our own connects may take a waiting tuple after reuse_delay */
	CORQ_TW_LAB,    /* as reuse, and tw_time_ms may be short; counted */
};

struct corq_config {
	const char *dev;       /* "loop" (default), another of corq_device_at, or "none": no device
				and no core, for handles alone */
	const char *ip;        /* "A[-B]/len": our address or range; default by device */
	const char *peer_ip;   /* loop only: the server side's address or range */
	const char *gw;        /* next hop off-link, or NULL */
	const char *mac;       /* "xx:xx:xx:xx:xx:xx" or NULL: the device's */
	const char *name;      /* instance name (file prefix), or NULL */
	unsigned mtu;          /* 0: the interface's, 1500 where there is none */
	unsigned cores;        /* 0: 1. On loop: each side has this many; see loop_one_core */
	bool loop_one_core;    /* loop: both ends on one core */
	bool share_cpus;       /* more cores than CPUs is allowed (slow: for tests) */
	bool no_huge;          /* do not even look for huge pages */
	bool busy_poll;        /* an idle core spins and never sleeps */
	bool verbose;          /* let DPDK's own log through */
	char *const *eal_args; /* arguments after "--", NULL-terminated, or NULL */

	/* Sockets of <corq/socket.h> that can be open at once; 0: 1048576, at most 2^26. Dealt in
	 * blocks of 4096, so that a thread has one at least. */
	uint32_t max_handles;

	uint32_t max_conns;     /* a core; 0: 65536 */
	uint32_t max_time_wait; /* records a core; 0: 4 * max_conns */
	uint32_t max_half_open; /* records a core; 0: max_conns / 4, at least 256 */
	uint32_t max_fin_wait2; /* records a core; 0: max_conns / 4, at least 256 */
	uint32_t rx_frames;     /* a core; 0: 8192 each */
	uint32_t tx_frames;
	/* copied send bytes a core, MiB; 0: 1 KiB a connection and 16 at least */
	uint32_t chunk_bytes_mb;

	/* TCP, each with its source */
	uint32_t snd_buf, rcv_buf; /* bytes a connection; 0: 256 KiB, 256 KiB */
	uint32_t rto_min_ms;       /* 0: 200 (RFC 6298 says 1000; Linux and we 200) */
	uint32_t rto_init_ms;      /* 0: 1000 (RFC 6298 2.1) */
	uint32_t rto_max_ms;       /* 0: 60000 (RFC 6298 2.5) */
	uint32_t delack_ms;        /* 0: 40; at most 500 (RFC 1122 4.2.3.2) */
	uint32_t syn_retries;  /* 0: 7, in all 183 s (RFC 1122 4.2.3.5: at least 180); SYN-ACK 5 */
	uint32_t data_retries; /* 0: 15 (R2, RFC 9293 3.8.3) */
	uint32_t fin_wait2_ms; /* orphaned; 0: 60000 */
	enum corq_timewait timewait;
	uint32_t tw_time_ms;     /* 0: 60000 */
	uint32_t reuse_delay_ms; /* 0: 2 timestamp ticks = 2 */
	bool no_rfc1337;         /* the default is RFC 1337's protection on */
	bool no_timestamps, no_sack, no_wscale;
	uint16_t port_first, port_last; /* local ports for connect; 0: 1024..65535 */
	uint64_t seed;                  /* 0: from the system; else secrets are derived from it */
	/* Where lines for people go (warnings, one line each); NULL: stderr. */
	void (*log)(void *arg, const char *line);
	void *log_arg;
};

/*
 * Starts devices, pools and cores (not yet running). 0 and *out, or a negative errno and one line
 * in err that says what, where and what to do.
 */
int corq_start(
	const struct corq_config *config, struct corq_instance **out, char *err, size_t err_len);
/* The kinds of device by number: how such a device is written, and one line about it. NULL past the
 * end. Any thread, any time. */
const char *corq_device_at(unsigned i, const char **text);
/* On which end of the loop device a core stands. Cores of other devices are all CORQ_SIDE_A. */
enum corq_side {
	CORQ_SIDE_A,
	CORQ_SIDE_B,
	CORQ_SIDE_BOTH
};
enum corq_side corq_core_side(const struct corq_core *core);
unsigned corq_cores(const struct corq_instance *inst); /* of all sides */
struct corq_core *corq_core_at(struct corq_instance *inst, unsigned index);
/* First address of a side's range (side B: loop only) and how many there are. */
struct corq_addr corq_address(
	const struct corq_instance *inst, enum corq_side side, uint64_t *count);
/* NULL, or what this address is that no host can have, neither here nor as a peer: "a multicast
 * address", "the broadcast address of --ip's network"... */
const char *corq_address_unfit(const struct corq_instance *inst, const struct corq_addr *addr);
/*
 * Runs all cores, each on its own thread, until corq_stop; the calling thread waits asleep. `start`
 * is called on each core's thread first; a negative return ends the run with it.
 */
int corq_run(
	struct corq_instance *inst, int (*start)(struct corq_core *core, void *arg), void *arg);
/* From any thread, a callback or a signal handler. Connections still open are reset, and told by
 * on_close(-ECONNABORTED), before corq_run returns. */
void corq_stop(struct corq_instance *inst);
/* Frees everything. After corq_run returned. */
void corq_end(struct corq_instance *inst);

/*
 * Registers memory for corq_conn_write_mem on all cores. `release` (may be NULL) is called on the
 * core that sent, once per write, when the bytes are free again. 0 and *out; -ENOBUFS.
 */
int corq_mem_register(struct corq_instance *inst, const void *base, size_t len,
	void (*release)(struct corq_core *core, void *arg, uint64_t cookie), void *arg,
	struct corq_mem **out);

/* ---- figures: readable from any thread without asking the core. While it turns they are at most
 * 1 ms old, when it stands still or has ended they are of now. Each word is exact, the set is not a
 * snapshot ---- */

struct corq_stats {
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes;
	uint64_t conn_opened_active, conn_opened_passive; /* SYN sent / SYN taken */
	uint64_t conn_established, conn_closed, conn_failed;
	uint64_t conn_live, half_open_live, time_wait_live, fin_wait2_live;
	uint64_t segs_retransmitted, syn_retransmitted, fin_retransmitted, rto_fired,
		fast_recoveries;
	uint64_t rst_in, rst_out, dup_acks_in, ooo_in, zero_window_in;
	uint64_t tw_entered, tw_recycled_syn, tw_reused_own, tw_evicted, tw_expired;
	uint64_t ports_total, ports_used, ports_waiting, ports_recycled, ports_refused;
	uint64_t handoff_out, handoff_in, handoff_dropped;
	uint64_t turns, turns_busy;
	uint64_t cycles_busy; /* TSC of turns that received, sent, fired a timer or ran an event */
	uint64_t cycles_rx, cycles_input, cycles_timers, cycles_events, cycles_build, cycles_tx;
	uint64_t tx_full, rx_missed, rx_nombuf; /* frames refused for now; lost; lost */
	uint64_t tx_blocked_ns;                 /* with frames that the device did not take */
	uint64_t cycles_tx_long; /* of cycles_tx: where sending took a million at once, and 200000 a
				  * frame, as when a driver sleeps until its ring has room */
	/* pools: in use now */
	uint64_t used_conns, used_chunks, used_blocks, used_work, used_txrec, used_records,
		used_handles, used_held_frames, used_tx_frames;
};
void corq_core_stats(const struct corq_core *core, struct corq_stats *out);
void corq_stats(const struct corq_instance *inst, struct corq_stats *out); /* sum over cores */
/* The reasons (drops and events) by number: name, text, count. NULL name past the end. */
const char *corq_reason_at(unsigned i, const char **text, bool *is_drop);
uint64_t corq_reason_count(const struct corq_instance *inst, unsigned i);
uint64_t corq_tsc_hz(void);

#ifdef __cplusplus
}
#endif
#endif
