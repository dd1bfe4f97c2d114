/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - a script being carried out: the core under test, its flows, packets and events.
 *
 * A *flow* is one pair of endpoints as the script sees it: numbers in the script count from the
 * initial sequence numbers of both sides, which the flow learns from the SYNs that pass. What the
 * core sends waits in the order it was sent; every statement that makes something happen or lets
 * time pass fails while a packet waits that no `expect` took: silence is always checked.
 *
 * A failed check prints what was expected and what came, the trace, and the path of a capture, and
 * leaves the script by longjmp: nothing of the core is used afterwards.
 */
#ifndef SCENARIO_WORLD_H
#define SCENARIO_WORLD_H

#include "check_engine.h"
#include "script.h"
#include "testcore.h"

#include <setjmp.h>

enum event_kind {
	EVENT_OPEN,
	EVENT_DATA,
	EVENT_PEER_FIN,
	EVENT_SENT,
	EVENT_TIMER,
	EVENT_CLOSE,
	EVENT_END,        /* of a held connection */
	EVENT_ACCEPTABLE, /* of a listener; logged on the first flow */
	EVENT_COUNT,
};

struct flow {
	struct flow *next;
	char name[16];
	struct corq_addr paddr, laddr; /* peer's, ours */
	uint16_t pport, lport;         /* 0: not known yet */
	bool have_our_isn, have_peer_isn;
	uint32_t our_isn, peer_isn;
	uint32_t our_syn, peer_syn; /* numbers of the last SYN each way (rebase) */
	uint32_t our_end;           /* number behind all that we sent: `ack last` */
	bool our_ts, peer_ts;       /* the SYN had timestamps */
	bool have_our_ts;
	uint32_t our_ts_base, our_ts_last, peer_ts_last;
	struct corq_conn *conn;
	uint64_t wrote, read; /* stream offsets of the program */
	bool spliced;         /* it sends what another flow's peer sent, from its first byte on */
	const struct stmt *on[EVENT_COUNT];
};

struct event {
	struct flow *flow;
	enum event_kind kind;
	int arg;
	bool taken;
	uint64_t at_ns;
};

/* A frame taken apart. */
struct packet {
	uint64_t at_ns;
	enum packet_kind kind;
	const uint8_t *bytes;
	uint32_t len;
	struct corq_addr src, dst;
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint16_t win, urg;
	uint8_t flags;
	const uint8_t *payload;
	uint32_t payload_len;
	unsigned n_opts;
	struct opt opts[SEG_OPTS_MAX]; /* values absolute in v[].lo and sack[] */
	uint16_t arp_op;
	uint8_t icmp_type, icmp_code;
};

#define WORLD_LISTENERS 8
#define WORLD_PATTERN   (1u << 20)
#define WORLD_TRACE_MAX 4000

struct world {
	struct script *script;
	struct testcore tc;
	bool up;
	struct corq_check check; /* of the engine, after every statement */
	struct testcore_opts opts;
	bool arp_static;
	bool auto_ts;
	uint16_t win; /* of injected segments that do not say */
	uint32_t peer_isn;
	uint64_t start_ns, prev_ns; /* prev: when the line before happened, script time */
	struct flow *flows, *cur;
	struct event *events;
	unsigned n_events, cap_events;
	const struct stmt *calls; /* made by the hook of this turn */
	bool batch;               /* calls is a list of mixed statements */
	struct corq_listener *listeners[WORLD_LISTENERS];
	uint16_t listener_port[WORLD_LISTENERS];
	uint8_t *pattern; /* what the program writes: WORLD_PATTERN bytes and one period */
	uint16_t region;
	uint64_t released; /* borrowed writes given back */
	struct pcapbuf *pcap;
	char **trace;
	unsigned n_trace;
	uint64_t dropped_trace;
	const struct stmt *at; /* statement being carried out */
	bool verbose;
	bool cleaning; /* after the script: packets and events are only logged */
	const char *pcap_dir;
	jmp_buf fail;
};

/* ---- run.c ---- */

/* Runs a script. True if it held. */
bool world_run(struct script *s, bool verbose, const char *pcap_dir);
/* Turns until the core has nothing to do at this moment. */
void world_settle(struct world *w, const struct stmt *st);
/* Forgets what was sent. */
void world_drain(struct world *w);

/* ---- world.c ---- */

void world_init(struct world *w, struct script *s, bool verbose, const char *pcap_dir);
void world_free(struct world *w);
/* Makes the core, at the first statement that is no option. */
void world_start(struct world *w, const struct stmt *st);
/* After the last statement: nothing unexpected; then everything ends and is counted. */
void world_check_end(struct world *w);
void world_clean_up(struct world *w);
_Noreturn void world_fail(struct world *w, const struct stmt *st, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void world_fail_unexpected(struct world *w, const struct stmt *st);
void world_trace(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Trace and capture of a script that ends by a signal. */
void world_dump_now(void);
uint64_t world_time(const struct world *w); /* since the start of the script */
struct flow *world_flow_new(struct world *w, const char *name);
struct flow *world_flow_of(struct world *w, const struct corq_addr *peer, uint16_t pport,
	const struct corq_addr *local, uint16_t lport);

/* ---- calls.c ---- */

extern const struct corq_ops world_ops;
extern const char *const world_event_names[EVENT_COUNT];
/* Makes the call of st on flow f and checks its result. */
void world_call(struct world *w, struct flow *f, const struct stmt *st);
uint64_t world_hook(struct corq_core *core, void *arg, uint64_t now_ns);
enum event_kind world_event_kind(const char *name); /* EVENT_COUNT: no such */

/* ---- listeners.c: listen, unlisten, drain, accept ---- */

/* False: not such a call. Else *rc is its result. */
bool world_call_listener(struct world *w, struct flow *f, const struct stmt *st, int64_t *rc);

/* ---- calls.c, for listeners.c ---- */

void world_log_event(struct corq_core *core, struct flow *f, enum event_kind kind, int arg);
int64_t world_number_of(struct world *w, const struct stmt *st, unsigned i);
bool world_has_word(const struct stmt *st, const char *word);

/* ---- check.c ---- */

void world_check_state(struct world *w, const struct stmt *st);
void world_check_field(struct world *w, const struct stmt *st);
void world_check_counter(struct world *w, const struct stmt *st);
void world_check_event(struct world *w, const struct stmt *st);
void world_option(struct world *w, const struct stmt *st);
bool value_holds(const struct value *v, uint32_t base, uint32_t actual, uint32_t slack);
const char *value_text(const struct value *v, char *buf, size_t len);

/* ---- wire.c ---- */

#define WIRE_MAX 66000

/* Byte of the stream at an offset: what our program writes, what the peer sends. */
uint8_t wire_pattern_out(uint64_t off);
uint8_t wire_pattern_in(uint64_t off);
/* Takes a frame apart and checks its lengths and checksums. NULL, or what is wrong. */
const char *wire_decode(const uint8_t *bytes, uint32_t len, uint64_t at_ns, struct packet *out);
/* Builds a frame of the spec; returns its length. *why is set when a number is not known yet. */
uint32_t wire_build(struct world *w, struct flow *f, const struct packet_spec *spec, uint8_t *out,
	const char **why);
/* Does the packet fit the spec? Otherwise says why not. */
bool wire_match(const struct flow *f, const struct packet_spec *spec, const struct packet *p,
	char *why, size_t why_len);
/* One line; f may be NULL (absolute numbers). out: our packet. */
void wire_format(const struct packet *p, const struct flow *f, bool out, char *buf, size_t len);

#endif
