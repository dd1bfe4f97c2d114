/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - states, fields, counters, events and options of a script. See world.h. */
#include "world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- state: what the wire tuple is, in a connection or in a record ---- */

static enum corq_state
tuple_state(struct world *w, const struct flow *f)
{
	static const enum corq_state of_record[CORQ_REC_KIND_COUNT] = {
		[CORQ_REC_TIME_WAIT] = CORQ_TIME_WAIT,
		[CORQ_REC_FIN_WAIT2] = CORQ_FIN_WAIT_2,
		[CORQ_REC_HALF_OPEN] = CORQ_SYN_RCVD,
	};
	struct corq_engine *e = &w->tc.core->eng;
	struct corq_key key = {
		.raddr = f->paddr, .laddr = f->laddr, .rport = f->pport, .lport = f->lport};
	uint32_t v = corq_engine_lookup(e, &key, corq_engine_hash(e, &key));

	if (v == CORQ_NONE)
		return CORQ_CLOSED;
	if (v & CORQ_VAL_RECORD)
		return of_record[corq_record_at(e, v & ~CORQ_VAL_RECORD)->kind];
	return (enum corq_state)corq_conn_at(e, v)->state;
}

void
world_check_state(struct world *w, const struct stmt *st)
{
	enum corq_state want = CORQ_CLOSED, is = tuple_state(w, w->cur);
	struct corq_conn_info info;

	while (want < CORQ_STATE_COUNT && strcmp(corq_state_name(want), st->words[0]) != 0)
		want++;
	if (want == CORQ_STATE_COUNT)
		world_fail(w, st, "no such state");
	if (is != want)
		world_fail(w, st, "the tuple is in %s", corq_state_name(is));
	if (w->cur->conn == NULL)
		return;
	corq_conn_get_info(w->tc.core, w->cur->conn, &info);
	if (info.state != want)
		world_fail(w, st, "corq_conn_get_info says %s", corq_state_name(info.state));
}

/* ---- fields of struct corq_conn_info ---- */

enum base {
	BASE_NONE,
	BASE_OURS,
	BASE_PEERS
};

static const struct {
	const char *name;
	size_t off, size;
	enum base base;
} fields[] = {
#define FIELD(member, base)                                                                        \
	{                                                                                          \
#member, offsetof(struct corq_conn_info, member),                                  \
			sizeof(((struct corq_conn_info *)0)->member), base                         \
	}
	FIELD(snd_una, BASE_OURS),
	FIELD(snd_nxt, BASE_OURS),
	FIELD(rcv_nxt, BASE_PEERS),
	FIELD(snd_wnd_bytes, BASE_NONE),
	FIELD(rcv_wnd_bytes, BASE_NONE),
	FIELD(cwnd_bytes, BASE_NONE),
	FIELD(ssthresh_bytes, BASE_NONE),
	FIELD(mss_bytes, BASE_NONE),
	FIELD(srtt_us, BASE_NONE),
	FIELD(rttvar_us, BASE_NONE),
	FIELD(rto_us, BASE_NONE),
	FIELD(unacked_bytes, BASE_NONE),
	FIELD(unsent_bytes, BASE_NONE),
	FIELD(readable_bytes, BASE_NONE),
	FIELD(ooo_bytes, BASE_NONE),
	FIELD(snd_wscale, BASE_NONE),
	FIELD(rcv_wscale, BASE_NONE),
	FIELD(backoff, BASE_NONE),
	FIELD(timestamps, BASE_NONE),
	FIELD(sack, BASE_NONE),
	FIELD(cork, BASE_NONE),
	FIELD(nodelay, BASE_NONE),
	FIELD(fin_queued, BASE_NONE),
	FIELD(fin_sent, BASE_NONE),
	FIELD(peer_fin, BASE_NONE),
	FIELD(read_shut, BASE_NONE),
	FIELD(held, BASE_NONE),
#undef FIELD
};

void
world_check_field(struct world *w, const struct stmt *st)
{
	struct flow *f = w->cur;
	struct corq_conn_info info;
	uint32_t v = 0, base;
	char buf[64];
	size_t i = 0;

	if (f->conn == NULL)
		world_fail(w, st, "flow '%s' has no connection", f->name);
	corq_conn_get_info(w->tc.core, f->conn, &info);
	while (i < CORQ_ARRAY_LEN(fields) && strcmp(fields[i].name, st->words[0]) != 0)
		i++;
	if (i == CORQ_ARRAY_LEN(fields))
		world_fail(w, st, "no such field of struct corq_conn_info");
	memcpy(&v, (char *)&info + fields[i].off, fields[i].size); /* little-endian */
	base = fields[i].base == BASE_OURS    ? f->our_isn
	       : fields[i].base == BASE_PEERS ? f->peer_isn
					      : 0;
	if (!value_holds(&st->value, base, v, 0))
		world_fail(w, st, "it is %u, expected %s", v - base,
			value_text(&st->value, buf, sizeof(buf)));
}

/* ---- counters: struct corq_stats, the reasons, and the runner's own ---- */

static const struct {
	const char *name;
	size_t off;
} counters[] = {
#define COUNTER(member)                                                                            \
	{                                                                                          \
#member, offsetof(struct corq_stats, member)                                       \
	}
	COUNTER(rx_packets),
	COUNTER(tx_packets),
	COUNTER(conn_opened_active),
	COUNTER(conn_opened_passive),
	COUNTER(conn_established),
	COUNTER(conn_closed),
	COUNTER(conn_failed),
	COUNTER(conn_live),
	COUNTER(half_open_live),
	COUNTER(time_wait_live),
	COUNTER(fin_wait2_live),
	COUNTER(segs_retransmitted),
	COUNTER(syn_retransmitted),
	COUNTER(fin_retransmitted),
	COUNTER(rto_fired),
	COUNTER(fast_recoveries),
	COUNTER(rst_in),
	COUNTER(rst_out),
	COUNTER(dup_acks_in),
	COUNTER(ooo_in),
	COUNTER(zero_window_in),
	COUNTER(tw_entered),
	COUNTER(tw_recycled_syn),
	COUNTER(tw_reused_own),
	COUNTER(tw_evicted),
	COUNTER(tw_expired),
	COUNTER(ports_used),
	COUNTER(ports_waiting),
	COUNTER(ports_recycled),
	COUNTER(ports_refused),
#undef COUNTER
};

static uint64_t
counter_of(struct world *w, const struct stmt *st)
{
	const char *name = st->words[0];
	struct corq_stats stats;
	struct memport_counts n;

	corq_core_usage(w->tc.core, &stats);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(counters); i++) {
		uint64_t v;

		if (strcmp(counters[i].name, name) != 0)
			continue;
		memcpy(&v, (char *)&stats + counters[i].off, sizeof(v));
		return v;
	}
	for (int r = 0; r < CORQ_R_COUNT; r++)
		if (!strcmp(corq_reason_name((enum corq_reason)r), name))
			return w->tc.core->eng.reasons[r];
	if (!strcmp(name, "released"))
		return w->released;
	memport_counts(w->tc.mp, &n);
	if (!strcmp(name, "rx_frames_out"))
		return n.rx_out;
	world_fail(w, st, "no such counter or reason");
}

void
world_check_counter(struct world *w, const struct stmt *st)
{
	uint64_t v = counter_of(w, st);
	char buf[64];

	if (!value_holds(&st->value, 0, (uint32_t)v, 0))
		world_fail(w, st, "it is %llu, expected %s", (unsigned long long)v,
			value_text(&st->value, buf, sizeof(buf)));
}

/* ---- events ---- */

void
world_check_event(struct world *w, const struct stmt *st)
{
	enum event_kind kind = world_event_kind(st->words[0]);

	if (kind == EVENT_COUNT)
		world_fail(w, st, "no such callback");
	for (unsigned i = 0; i < w->n_events; i++) {
		struct event *e = &w->events[i];

		if (e->taken || e->kind != kind || e->flow != w->cur)
			continue;
		if (st->kind == STMT_NO_EVENT)
			world_fail(w, st, "it was called at %.6f", (double)e->at_ns / 1e9);
		if (st->value.kind == VALUE_RANGE &&
			(e->arg < st->value.lo || e->arg > st->value.hi))
			world_fail(w, st, "its reason was %d (%s)", e->arg, strerror(-e->arg));
		e->taken = true;
		return;
	}
	if (st->kind == STMT_EVENT)
		world_fail(w, st, "it was not called");
}

/* ---- options: before the core is made ---- */

static bool
is_on(struct world *w, const struct stmt *st)
{
	if (!strcmp(st->words[1], "on"))
		return true;
	if (strcmp(st->words[1], "off") != 0)
		world_fail(w, st, "'%s' is not on or off", st->words[1]);
	return false;
}

static bool
number_option(struct world *w, const char *name, uint32_t v)
{
	struct corq_config *c = &w->opts.cfg;
	struct {
		const char *name;
		uint32_t *where;
	} words[] = {{"snd_buf", &c->snd_buf}, {"rcv_buf", &c->rcv_buf},
		{"rto_min_ms", &c->rto_min_ms}, {"rto_init_ms", &c->rto_init_ms},
		{"rto_max_ms", &c->rto_max_ms}, {"delack_ms", &c->delack_ms},
		{"syn_retries", &c->syn_retries}, {"data_retries", &c->data_retries},
		{"fin_wait2_ms", &c->fin_wait2_ms}, {"tw_time_ms", &c->tw_time_ms},
		{"reuse_delay_ms", &c->reuse_delay_ms}, {"max_conns", &c->max_conns},
		{"max_time_wait", &c->max_time_wait}, {"max_half_open", &c->max_half_open},
		{"max_fin_wait2", &c->max_fin_wait2}, {"rx_frames", &w->opts.port.rx_frames},
		{"tx_frames", &w->opts.port.tx_frames}, {"peer_isn", &w->peer_isn}};

	for (size_t i = 0; i < CORQ_ARRAY_LEN(words); i++) {
		if (!strcmp(words[i].name, name)) {
			*words[i].where = v;
			return true;
		}
	}
	if (!strcmp(name, "win"))
		w->win = (uint16_t)v;
	else if (!strcmp(name, "mtu"))
		w->opts.port.mtu = (uint16_t)v;
	else if (!strcmp(name, "seed"))
		w->opts.seed = v;
	else if (!strcmp(name, "port_first"))
		c->port_first = (uint16_t)v;
	else if (!strcmp(name, "port_last"))
		c->port_last = (uint16_t)v;
	else
		return false;
	return true;
}

static bool
switch_option(struct world *w, const struct stmt *st)
{
	static const struct {
		const char *name;
		uint32_t caps;
	} caps[] = {{"tso", CORQ_PORT_CAP_TSO | CORQ_PORT_CAP_CHAIN | CORQ_PORT_CAP_L4_CSUM |
				    CORQ_PORT_CAP_IP_CSUM},
		{"csum_offload", CORQ_PORT_CAP_L4_CSUM | CORQ_PORT_CAP_IP_CSUM},
		{"chain", CORQ_PORT_CAP_CHAIN}, {"trust_rx", CORQ_PORT_CAP_TRUST_RX}};
	struct corq_config *c = &w->opts.cfg;
	const char *name = st->words[0];

	for (size_t i = 0; i < CORQ_ARRAY_LEN(caps); i++) {
		if (!strcmp(caps[i].name, name)) {
			if (is_on(w, st))
				w->opts.port.caps |= caps[i].caps;
			return true;
		}
	}
	if (!strcmp(name, "timestamps"))
		c->no_timestamps = !is_on(w, st);
	else if (!strcmp(name, "sack"))
		c->no_sack = !is_on(w, st);
	else if (!strcmp(name, "wscale"))
		c->no_wscale = !is_on(w, st);
	else if (!strcmp(name, "rfc1337"))
		c->no_rfc1337 = !is_on(w, st);
	else if (!strcmp(name, "late_completion"))
		w->opts.port.late_completion = is_on(w, st);
	else if (!strcmp(name, "auto_ts"))
		w->auto_ts = is_on(w, st);
	else
		return false;
	return true;
}

void
world_option(struct world *w, const struct stmt *st)
{
	const char *name = st->words[0], *arg = st->words[1];
	char *end;
	long long v = strtoll(arg, &end, 0);

	if (w->up)
		world_fail(w, st, "options stand before everything else");
	if (*end == '\0' && end != arg && number_option(w, name, (uint32_t)v))
		return;
	if (!strcmp(name, "arp")) {
		w->arp_static = !strcmp(arg, "static");
		w->opts.no_arp = !strcmp(arg, "off");
		if (!w->arp_static && !w->opts.no_arp && strcmp(arg, "auto") != 0)
			world_fail(w, st, "arp is static, auto or off");
		return;
	}
	if (!strcmp(name, "timewait")) {
		w->opts.cfg.timewait = !strcmp(arg, "reuse") ? CORQ_TW_REUSE
				       : !strcmp(arg, "lab") ? CORQ_TW_LAB
							     : CORQ_TW_STRICT;
		return;
	}
	if (!switch_option(w, st))
		world_fail(w, st, "unknown option, or a value it does not take");
}
