/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.c - one pass of a core's loop, ten steps (lib/DESIGN.md: a turn).
 *
 * The two halves are callable alone, because a test compares "one burst" with "one by one" before
 * the same second half. Every step has a budget, so that a turn stays short however much is ready.
 * What a step cannot finish stays where it is, in order. The core's thread only.
 */
#include "base/cycles.h"
#include "core/core.h"
#include "core/handoff.h"

/* Cycles. Sending takes long when the driver waits: a third of a millisecond in all, and more a
 * frame than any driver works on one (net_tap, the dearest here, some 40000). */
#define TX_LONG       1000000u
#define TX_LONG_FRAME 200000u

/* ---- steps 1 to 3: what came ---- */

static void
drop(struct corq_core *core, struct corq_frame *f, enum corq_reason why)
{
	core->eng.reasons[why]++;
	corq_engine_free_frame(&core->eng, f);
}

/* A peer whose offloads are on sends what no wire carries: the person must hear of it once. */
static void
hint_offloads(struct corq_core *core)
{
	if (core->hinted || !core->cfg.log)
		return;
	core->hinted = true;
	corq_log_write(core->cfg.log, CORQ_LOG_WARN, "%s",
		core->cfg.offload_hint && core->cfg.offload_hint[0]
			? core->cfg.offload_hint
			: "the other end leaves checksums or segmentation to its device");
}

/* Step 2. Parses frames[0..n) into seg[], key[]; what is not TCP is dealt with here. Returns how
 * many segments are left, packed in order. */
static unsigned
parse_burst(struct corq_core *core, struct corq_frame **frames, unsigned n)
{
	unsigned m = 0;

	for (unsigned i = 0; i < n; i++) {
		CORQ_PREFETCH(frames[i]->data);
		CORQ_PREFETCH(frames[i]->data + CORQ_CACHELINE);
		if (frames[i]->len > 2 * CORQ_CACHELINE) /* the checksum reads on */
			CORQ_PREFETCH(frames[i]->data + 2 * CORQ_CACHELINE);
	}
	for (unsigned i = 0; i < n; i++) {
		struct corq_seg *seg = &core->seg[m];
		struct corq_key *key = &core->key[m];
		enum corq_reason why;
		enum corq_pkt kind;

		if (CORQ_LIKELY(!(frames[i]->flags & CORQ_FRAME_HANDED))) /* counted there */
			core->eng.stats.rx_bytes += frames[i]->pkt_len;
		why = corq_net_parse(frames[i], &core->parse, seg, key, &kind);
		if (CORQ_LIKELY(kind == CORQ_PKT_TCP)) {
			seg->hash = corq_engine_hash(&core->eng, key);
			corq_table_prefetch(&core->eng.table, seg->hash);
			m++;
			continue;
		}
		seg->frame = frames[i];
		if (kind == CORQ_PKT_ARP)
			corq_link_arp_input(core, frames[i]);
		else if (kind == CORQ_PKT_ICMP4)
			corq_link_icmp_input(core, seg, key);
		else
			drop(core, frames[i], why != CORQ_R_NONE ? why : CORQ_R_ICMP_TYPE);
		if (CORQ_UNLIKELY(why == CORQ_R_TCP_CSUM_PARTIAL || why == CORQ_R_IP_OVERSIZE))
			hint_offloads(core);
	}
	return m;
}

/* All look-ups before the first input, each with its object's lines on the way. The first entry
 * with the right tag is hint enough: input checks it against the tuple, when the lines are here. */
static void
lookup_burst(struct corq_core *core, unsigned m)
{
	struct corq_engine *e = &core->eng;

	for (unsigned i = 0; i < m; i++) {
		struct corq_table_cursor cur;
		uint32_t val = corq_table_first(&e->table, core->seg[i].hash, &cur);

		core->seg[i].hint = val;
		if (val == CORQ_NONE)
			continue;
		if (val & CORQ_VAL_RECORD) {
			CORQ_PREFETCH_W(corq_record_at(e, val & ~CORQ_VAL_RECORD));
			continue;
		}
		CORQ_PREFETCH_W(corq_conn_at(e, val));
		CORQ_PREFETCH_W(&corq_conn_at(e, val)->snd_wnd);
	}
}

/* A miss may belong to another core; an address that is not ours to nobody here. True: the segment
 * is for *val, or for nothing that is there yet. */
static bool
ours(struct corq_core *core, struct corq_seg *seg, const struct corq_key *key, uint32_t *val)
{
	int to;

	*val = corq_engine_lookup(&core->eng, key, seg->hash);
	if (*val != CORQ_NONE)
		return true;
	if (corq_engine_laddr(&core->eng, &key->laddr) == CORQ_NONE) {
		drop(core, seg->frame, CORQ_R_IP_NOT_US);
		return false;
	}
	if (core->cfg.n == 1)
		return true;
	to = corq_handoff_target(core, key, seg->frame);
	if (to == CORQ_HANDOFF_OURS)
		return true;
	if (to == CORQ_HANDOFF_DROP || !corq_handoff_send(core, (unsigned)to, seg->frame))
		drop(core, seg->frame, CORQ_R_HANDOFF_FULL);
	return false;
}

/* Steps 2 and 3 for frames of the device or of another core. */
static void
input_frames(struct corq_core *core, struct corq_frame **frames, unsigned n)
{
	unsigned m = parse_burst(core, frames, n);

	lookup_burst(core, m);
	for (unsigned i = 0; i < m; i++) {
		struct corq_seg *seg = &core->seg[i];
		uint32_t val = seg->hint;

		if (CORQ_UNLIKELY(!corq_engine_hint_ok(&core->eng, val, &core->key[i])) &&
			!ours(core, seg, &core->key[i], &val))
			continue;
		corq_tcp_input_at(&core->eng, seg, &core->key[i], val);
	}
}

unsigned
corq_core_input_burst(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;
	uint64_t t0 = corq_cycles(), t1;
	unsigned n;

	core->cycles_start = t0;
	n = core->port->ops->rx_burst(core->port, core->rx, CORQ_BURST_MAX);
	corq_engine_clock(e, core->port->ops->now_ns(core->port));
	e->stats.rx_packets += n;
	t1 = corq_cycles();
	core->stage[0] = t1 - t0;
	if (CORQ_UNLIKELY(core->port->n_rx_oversize && !core->hinted))
		hint_offloads(core);
	if (n)
		input_frames(core, core->rx, n);
	core->stage[1] = corq_cycles() - t1;
	return n;
}

/* ---- steps 4 to 10 ---- */

/* After a pause of the machine the ACKs are in the ring already: look at them first. */
static bool
hold_retransmissions(struct corq_core *core, unsigned n_rx)
{
	if ((n_rx < CORQ_BURST_MAX && !core->port->backlog) ||
		core->rtx_held >= CORQ_RTX_HOLD_MAX) {
		core->rtx_held = 0;
		return false;
	}
	core->rtx_held++;
	return true;
}

static void
fill_tx_frames(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;
	uint32_t want = CORQ_TX_BUDGET + CORQ_TXF_RESERVE;

	if (e->n_txf >= CORQ_TX_BUDGET) /* enough for a whole turn */
		return;
	e->n_txf += core->port->ops->tx_alloc(
		core->port, e->txf + e->n_txf, (uint16_t)(want - e->n_txf));
}

/* Step 7, after the second clock read. What the device did not take last time holds it back; and
 * while much waits in the receive ring, so that it cannot overflow with what our own packets bring
 * back (an ACK each, and handshakes), connections get half of a burst. */
static void
build(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;
	uint16_t n,
		share = core->port->backlog < CORQ_RX_DEEP ? CORQ_TX_BUDGET : CORQ_BURST_MAX / 2;

	corq_link_poll(core);
	if (!corq_tcp_wants_build(e) || core->n_tx == CORQ_TX_BUDGET)
		return;
	fill_tx_frames(core);
	n = corq_tcp_build(
		e, core->tx + core->n_tx, (uint16_t)(CORQ_TX_BUDGET - core->n_tx), share);
	for (unsigned i = 0; i < n; i++)
		e->stats.tx_bytes += core->tx[core->n_tx + i]->pkt_len;
	core->n_tx += n;
}

/* From the turn whose tx_burst left frames behind to the next try, each time: never with tx_full 0,
 * and nothing of the time that a driver spends inside tx_burst, be it asleep. What the core did
 * meanwhile, and what it was kept from doing, is in it. */
static void
count_blocked(struct corq_core *core)
{
	uint64_t now = core->eng.now_ns;

	if (CORQ_UNLIKELY(core->blocked_at))
		core->eng.stats.tx_blocked_ns += now - core->blocked_at;
	core->blocked_at = core->n_tx ? now : 0;
}

/* Step 8: all at once; the rest moves to the front, in order. */
static unsigned
transmit(struct corq_core *core)
{
	uint32_t sent = 0;

	while (sent < core->n_tx) {
		uint16_t n = core->port->ops->tx_burst(
			core->port, core->tx + sent, (uint16_t)(core->n_tx - sent));

		if (n == 0)
			break;
		sent += n;
	}
	if (CORQ_UNLIKELY(sent < core->n_tx))
		memmove(core->tx, core->tx + sent, (core->n_tx - sent) * sizeof(core->tx[0]));
	core->n_tx -= sent;
	core->eng.stats.tx_packets += sent;
	count_blocked(core);
	return sent;
}

static void
give_frames(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;

	if (e->n_freed)
		core->port->ops->free_bulk(core->port, e->freed, (uint16_t)e->n_freed);
	e->n_freed = 0;
}

/* Step 9: buffers in bulk, then borrowed memory that nothing refers to any more. */
static void
give_back(struct corq_core *core)
{
	struct corq_engine *e = &core->eng;

	give_frames(core);
	if (e->cap_chain) {
		void *ext[CORQ_BURST_MAX];
		uint16_t n;

		do {
			n = core->port->ops->released(
				core->port, ext, CORQ_BURST_MAX, core->idle_turns > 0);
			for (uint16_t i = 0; i < n; i++)
				corq_tcp_frame_released(e, ext[i]);
		} while (n == CORQ_BURST_MAX);
		give_frames(core); /* of held chunks that only those frames referred to */
	}
	while (e->release_head != CORQ_NONE) {
		uint32_t idx = e->release_head;
		struct corq_chunk *ch = corq_chunk_at(&e->chunks, idx);
		const struct corq_region *r = &core->regions[ch->region];

		e->release_head = ch->next;
		if (r->release)
			r->release(core, r->arg, ch->cookie);
		corq_chunk_released(&e->chunks, idx);
	}
}

static void
count_cycles(struct corq_core *core, bool busy, unsigned n_sent)
{
	struct corq_stats *s = &core->eng.stats;

	s->turns++;
	if (!busy)
		return;
	s->turns_busy++;
	s->cycles_rx += core->stage[0];
	s->cycles_input += core->stage[1];
	s->cycles_timers += core->stage[2];
	s->cycles_events += core->stage[3];
	s->cycles_build += core->stage[4];
	s->cycles_tx += core->stage[5];
	if (CORQ_UNLIKELY(core->stage[5] >= CORQ_MAX(TX_LONG, n_sent * TX_LONG_FRAME)))
		s->cycles_tx_long += core->stage[5];
	s->cycles_busy += corq_cycles() - core->cycles_start;
}

bool
corq_core_turn_tail(struct corq_core *core, unsigned n_rx)
{
	struct corq_engine *e = &core->eng;
	struct corq_frame *handed[CORQ_BURST_MAX];
	unsigned n_hand, n_fired, n_events, n_sent;
	uint64_t t = corq_cycles(), u;
	bool busy;

	n_hand = corq_handoff_recv(core, handed, CORQ_BURST_MAX); /* 4 */
	if (n_hand)
		input_frames(core, handed, n_hand);
	n_fired = corq_tcp_timers(e, CORQ_TIMER_BUDGET, hold_retransmissions(core, n_rx)); /* 5 */
	core->stage[2] = (u = corq_cycles()) - t;
	n_events = corq_core_events(core); /* 6 */
	core->stage[3] = (t = corq_cycles()) - u;
	corq_engine_clock(e, core->port->ops->now_ns(core->port)); /* 7 */
	build(core);
	core->stage[4] = (u = corq_cycles()) - t;
	n_sent = core->n_tx ? transmit(core) : 0; /* 8 */
	core->stage[5] = (t = corq_cycles()) - u;
	give_back(core); /* 9 */
	corq_engine_turn_end(e);
	core->stage[0] += corq_cycles() - t; /* giving back is part of receiving */
	busy = n_rx || n_hand || n_fired || n_events || n_sent;
	count_cycles(core, busy, n_sent); /* 10 */
	corq_core_publish_due(core, busy);
	return busy;
}

bool
corq_core_turn(struct corq_core *core)
{
	unsigned n = corq_core_input_burst(core);
	bool busy = corq_core_turn_tail(core, n);

	if (busy)
		core->idle_turns = 0;
	else
		corq_idle_turn(core);
	return busy;
}
