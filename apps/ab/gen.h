/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen.h - the closed-loop generator on one core: its share of the slots and of the requests.
 *
 * A slot carries one request at a time: connect, write, read, finish, again. Connections are
 * opened in the core's hook only, in turn, and no more SYNs are outstanding than the peer's
 * answers allow: after a pause of the machine, or with far more slots than the peer can serve,
 * an unbounded crowd of SYNs is what keeps a generator from coming back. The bound starts at 1
 * until the first response is in (as ab tries one connection first), then at 32; each completed
 * handshake adds one up to half of --half-open; a handshake that takes much longer than usual
 * halves it, stops counting as outstanding and is left to TCP; --half-open bounds all of them.
 *
 * Each core writes its own struct ab_core; struct ab_run holds what is shared, by atomics.
 */
#ifndef CORQ_AB_GEN_H
#define CORQ_AB_GEN_H

#include "ab/options.h"
#include "ab/response.h"
#include "ab/times.h"

#include <corq/hist.h>
#include <stdatomic.h>

#define AB_BUCKET_NS 100000000ull /* progress is kept by 100 ms */
#define AB_BUCKETS   36000        /* for an hour */
#define AB_LATE_NS   500000ull    /* as long as a core sleeps that was idle for 0.1 s */

enum ab_stop {
	AB_RUNNING,
	AB_STOP_SIGNAL,
	AB_STOP_TIME,
	AB_STOP_RECEIVE, /* stop_errno says what */
	AB_STOP_CONNECT, /* stop_errno says what */
	AB_STOP_SILENT,  /* no byte within -s */
	AB_STOP_PORTS,   /* no local port within -s */
};

/* What a server's core of the loop device sets when it starts; see app_cpu_open. */
struct ab_server_cpu {
	int fd;
	int64_t first;
};

struct ab_run {
	const struct ab_options *opts;
	struct corq_instance *inst;
	struct corq_mem *request_mem;
	const char *request;
	size_t request_len;
	struct corq_addr target;
	struct corq_addr local; /* -B; all zero: in turn over --ip */
	uint16_t port;
	FILE *text;                        /* where -v writes */
	unsigned generators, servers;      /* cores of each kind */
	struct ab_core **cores;            /* the generators */
	struct ab_server_cpu *server_cpus; /* by core of the instance */
	uint64_t heartbeat;                /* a progress line every so many; 0: none */
	bool bar;                          /* progress is a bar on the terminal instead */

	_Atomic unsigned servers_ready, finished;
	_Atomic int stop; /* enum ab_stop; the first reason stays */
	_Atomic int stop_errno;
	_Atomic int64_t document_length; /* -1: no response yet */
	_Atomic int first_header;        /* 1 taken, 2 readable */
	char server_software[1024];
};

struct ab_slot;

enum ab_lat {
	AB_LAT_CONNECT,
	AB_LAT_FIRST,
	AB_LAT_LAST,
	AB_LAT_TOTAL,
	AB_LAT_CLOSE,
	AB_LAT_PROC,
	AB_LATS
};

struct ab_list {
	uint32_t first, last, count; /* slot + 1; 0: none */
};

struct ab_core {
	struct ab_run *run;
	struct corq_core *core;
	uint32_t n_slots;
	struct ab_slot *slots;
	llhttp_t *parsers; /* one a slot, touched when a header is really parsed */
	struct ab_resp_core resp;

	uint64_t quota, claimed;
	uint32_t active;  /* slots with a request claimed */
	uint32_t live;    /* connections not closed */
	uint32_t kept;    /* of those: slots in KEPT */
	uint32_t kept_at; /* the next slot to look at when they are closed */
	uint32_t fresh, stale, open_limit;
	struct ab_list want, half_open, resend, tail;
	bool finishing, finished;
	uint64_t drain_until, ports_since, retry_at;
	uint64_t connect_ewma;
	uint64_t last_shrink;
	uint64_t last_rx; /* last byte of a response, or the start */
	uint64_t last_turn;
	uint64_t drain_seen; /* connections closed when drain_until was set */
	uint64_t time_limit_at;
	bool paused;

	/* figures */
	uint64_t first_start, last_done; /* ns; 0: none */
	uint64_t started, done, good, bad, bad_connect, bad_receive, bad_length, bad_except;
	uint64_t not_2xx, kept_alive, aborted_requests, write_errors;
	uint64_t timeouts, resets, refused, cut_short, garbage, idle_closed, not_closed;
	uint64_t bytes_read, bytes_posted, bytes_body;
	uint64_t opened, closed;
	uint32_t half_open_peak, live_peak;
	unsigned __int128 live_ns; /* integral of live over time */
	uint64_t pause_from, pause_to;
	double port_util_peak; /* 0..1, looked at every 100 ms; < 0: not looked at */
	uint64_t port_look_at;
	struct ab_sample *samples;
	uint64_t sample_room, sample_count;
	struct ab_record *records; /* NULL: none are kept */
	uint64_t record_room, record_count;
	int64_t wall_ns; /* to be added to the core's clock: since 1970 */
	/* Requests that waited for this core; see ab_core_late. */
	uint64_t usual_ns[2]; /* connect, first byte; moving averages of turns in time */
	uint64_t late_ns;
	uint64_t off_ns;   /* in gaps between turns, above AB_LATE_NS each: others had the CPU */
	uint64_t off_seen; /* off_ns at the last turn that found nothing to receive */
	uint32_t came;     /* answers in this turn */
	int cpu_fd;
	int64_t cpu_first, cpu_waited; /* app_cpu_waited at the start and lately; -1: not known */
	uint64_t cpu_from, cpu_time;   /* over which it is measured */
	/* What other threads may read while it runs; renewed some five times a second. */
	_Atomic uint64_t shown_p99, shown_bad;
	uint64_t show_at;
	uint32_t *buckets;
	struct corq_hist lat[AB_LATS];
};

/* Before the run; -ENOMEM. Share i of n. */
int ab_core_create(struct ab_run *run, unsigned index, unsigned n, struct ab_core **out);
void ab_core_destroy(struct ab_core *ab);
/* On the core, from corq_run's start function. */
void ab_core_start(struct ab_core *ab, struct corq_core *core);
void ab_run_stop(struct ab_run *run, enum ab_stop why, int error);
/* Requests begun and neither complete nor aborted. After the run. */
uint64_t ab_core_outstanding(const struct ab_core *ab);

/* What ab_core_tick leaves to be done after a gap; and the integral of connections. */
void ab_core_gap_slow(struct ab_core *ab, uint64_t gap);

/* First in each callback and in the hook: does its work once a turn. */
static inline void
ab_core_tick(struct ab_core *ab, uint64_t now)
{
	uint64_t gap = now - ab->last_turn;

	if (gap == 0 || now < ab->last_turn) /* the latter after an injected pause */
		return;
	if (ab->came == 0)
		ab->off_seen = ab->off_ns;
	ab->came = 0;
	ab->last_turn = now;
	/* What closes after the last request is no load any more. */
	if (ab->active != 0)
		ab->live_ns += (unsigned __int128)ab->live * gap;
	if (gap >= AB_LATE_NS)
		ab_core_gap_slow(ab, gap);
}

/*
 * An answer came `took` after its question (what: 0 connect, 1 first byte, 2 later bytes), when the
 * core had been off for off_us. What it took above the usual it waited for us, as far as we were
 * off since the question, and since a turn found nothing to receive.
 */
static inline void
ab_core_late(struct ab_core *ab, unsigned what, uint64_t took, uint32_t off_us)
{
	uint64_t off = ab->off_ns, usual = what < 2 ? ab->usual_ns[what] : 0;
	uint64_t since_asked = (uint64_t)((uint32_t)(off / 1000) - off_us) * 1000;

	ab->came++;
	off -= ab->off_seen;
	off = off < since_asked ? off : since_asked;
	if (off == 0) {
		if (what < 2)
			ab->usual_ns[what] = usual == 0 ? took : (15 * usual + took) / 16;
		return;
	}
	took = took > usual ? took - usual : 0;
	ab->late_ns += took < off ? took : off;
}

#endif
