/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_conn.c - the half of check_engine.h that looks at one connection and all that hangs on it.
 */
#include "check_engine.h"

#include "base/seq.h"

static int
use_chunk(struct corq_check *ck, struct corq_engine *e, uint32_t i, const char *what)
{
	CORQ_CHECK(ck, i >> 30 < CORQ_CHUNK_CLASS_COUNT, "%s: chunk %#x", what, i);
	if (corq_check_use(
		    ck, &ck->chunks[i >> 30], &e->chunks.pool[i >> 30], i & 0x3fffffff, what))
		return -1;
	ck->n_held += corq_chunk_at(&e->chunks, i)->kind == CORQ_CHUNK_HELD;
	return 0;
}

/* Marks a queue's chunks; *bytes: what they hold after the first `off` bytes. */
static int
walk_queue(struct corq_check *ck, struct corq_engine *e, uint32_t head, uint32_t tail, uint32_t off,
	const char *what, uint64_t *bytes)
{
	uint32_t last = CORQ_NONE;

	*bytes = 0;
	for (uint32_t i = head; i != CORQ_NONE; i = corq_chunk_at(&e->chunks, i)->next) {
		const struct corq_chunk *c;

		if (use_chunk(ck, e, i, what))
			return -1;
		c = corq_chunk_at(&e->chunks, i);
		CORQ_CHECK(ck, !c->done, "%s: chunk %#x is done and linked", what, i);
		CORQ_CHECK(ck, c->len > 0 || c->next == CORQ_NONE, "%s: empty chunk %#x inside",
			what, i);
		CORQ_CHECK(ck, c->kind != CORQ_CHUNK_HELD || c->frame,
			"%s: chunk %#x holds nothing", what, i);
		*bytes += c->len;
		last = i;
	}
	CORQ_CHECK(ck, last == tail || head == CORQ_NONE, "%s: tail is %#x, not %#x", what, tail,
		last);
	CORQ_CHECK(ck, off == 0 || off <= *bytes, "%s: %u bytes gone of %llu", what, off,
		(unsigned long long)*bytes);
	*bytes -= off;
	return 0;
}

static int
check_send(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c)
{
	bool fin = c->flags & CORQ_CF_FIN_QUEUED;
	uint32_t end = c->snd_end + fin, want;
	uint64_t bytes;

	if (walk_queue(ck, e, c->sndq_head, c->sndq_tail, c->sndq_off, "send queue", &bytes))
		return -1;
	if (c->state == CORQ_CLOSED)
		return 0;
	CORQ_CHECK(ck, corq_seq_le(c->snd_una, c->snd_nxt) && corq_seq_le(c->snd_nxt, end),
		"conn %u %s: una %u nxt %u end %u fin %d", idx, corq_state_name(c->state),
		c->snd_una, c->snd_nxt, c->snd_end, fin);
	CORQ_CHECK(ck, !!(c->flags & CORQ_CF_FIN_SENT) == (fin && c->snd_nxt == end),
		"conn %u: nxt %u end %u, FIN queued %d sent %d", idx, c->snd_nxt, c->snd_end, fin,
		!!(c->flags & CORQ_CF_FIN_SENT));
	if (c->state == CORQ_SYN_SENT || c->state == CORQ_SYN_RCVD)
		want = 0;
	else
		want = corq_seq_lt(c->snd_una, c->snd_end) ? c->snd_end - c->snd_una : 0;
	CORQ_CHECK(ck, bytes == want, "conn %u %s: %llu bytes queued, una %u end %u", idx,
		corq_state_name(c->state), (unsigned long long)bytes, c->snd_una, c->snd_end);
	if (c->state < CORQ_ESTABLISHED)
		return 0;
	CORQ_CHECK(ck, c->mss > 0 && c->cwnd >= 1, "conn %u: mss %u cwnd %u", idx, c->mss, c->cwnd);
	return 0;
}

static int
check_txrecs(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c,
	const struct corq_work *w)
{
	uint32_t n = 0, at = c->snd_una, last = CORQ_NONE;

	for (uint32_t i = w->tx_head; i != CORQ_NONE;) {
		const struct corq_txrec *t;

		if (corq_check_use(ck, &ck->txrecs, &e->txrecs, i, "transmission"))
			return -1;
		t = corq_pool_at(&e->txrecs, i);
		CORQ_CHECK(ck, corq_seq_lt(t->seq, t->end), "conn %u: transmission [%u, %u)", idx,
			t->seq, t->end);
		CORQ_CHECK(ck,
			n == 0 ? corq_seq_le(t->seq, at) && corq_seq_gt(t->end, at) : t->seq == at,
			"conn %u: transmission %u is [%u, %u) after %u", idx, n, t->seq, t->end,
			at);
		CORQ_CHECK(ck, t->first_tx_ns <= t->tx_ns,
			"conn %u: transmission sent %llu, again %llu", idx,
			(unsigned long long)t->first_tx_ns, (unsigned long long)t->tx_ns);
		CORQ_CHECK(ck, !(t->flags & CORQ_TXREC_FIN) || t->end == c->snd_end + 1,
			"conn %u: FIN in [%u, %u), end %u", idx, t->seq, t->end, c->snd_end);
		CORQ_CHECK(ck, t->rtx_count == 0 || (t->flags & CORQ_TXREC_RTX),
			"conn %u: sent again %u times, unflagged", idx, t->rtx_count);
		at = t->end;
		last = i;
		i = t->next;
		n++;
	}
	CORQ_CHECK(ck, n == w->tx_n && last == w->tx_tail, "conn %u: %u transmissions, %u counted",
		idx, n, w->tx_n);
	CORQ_CHECK(ck, at == c->snd_nxt, "conn %u: transmissions end at %u, nxt is %u (una %u)",
		idx, at, c->snd_nxt, c->snd_una);
	return 0;
}

/* The chunks of one run, from its first to run.last, without a gap up to run.end. */
static int
check_run(struct corq_check *ck, struct corq_engine *e, uint32_t idx, uint32_t first)
{
	const struct corq_chunk *r = corq_chunk_at(&e->chunks, first);
	uint32_t at = r->seq, i = first;

	for (;;) {
		const struct corq_chunk *k = corq_chunk_at(&e->chunks, i);

		if (use_chunk(ck, e, i, "out-of-order queue"))
			return -1;
		CORQ_CHECK(ck, k->len > 0 && k->seq == at,
			"conn %u: run at %u: chunk [%u, +%u) after %u", idx, r->seq, k->seq, k->len,
			at);
		at += k->len;
		if (i == r->run.last)
			break;
		i = k->next;
		CORQ_CHECK(ck, i != CORQ_NONE, "conn %u: run at %u: its last chunk is not on it",
			idx, r->seq);
	}
	CORQ_CHECK(ck, corq_chunk_at(&e->chunks, i)->next == CORQ_NONE,
		"conn %u: run at %u goes on behind its last chunk", idx, r->seq);
	CORQ_CHECK(ck, at == r->run.end, "conn %u: run [%u, %u) has bytes up to %u", idx, r->seq,
		r->run.end, at);
	return 0;
}

/* Runs in order that neither overlap nor touch, all above rcv_nxt and inside the window. */
static int
check_ooo(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c,
	const struct corq_work *w)
{
	uint32_t at = c->rcv_nxt, n = 0, last = CORQ_NONE;
	uint64_t bytes = 0;

	for (uint32_t i = w->ooo_head; i != CORQ_NONE;) {
		const struct corq_chunk *r;

		if (check_run(ck, e, idx, i))
			return -1;
		r = corq_chunk_at(&e->chunks, i);
		CORQ_CHECK(ck, corq_seq_gt(r->seq, at), "conn %u: run at %u behind %u (rcv_nxt %u)",
			idx, r->seq, at, c->rcv_nxt);
		at = r->run.end;
		bytes += r->run.end - r->seq;
		last = i;
		i = r->run.next;
		n++;
	}
	CORQ_CHECK(ck, n == w->ooo_n && bytes == w->ooo_bytes && (n == 0 || last == w->ooo_tail),
		"conn %u: %u runs of %llu bytes, %u of %u counted", idx, n,
		(unsigned long long)bytes, w->ooo_n, w->ooo_bytes);
	CORQ_CHECK(ck, n <= CORQ_OOO_MAX, "conn %u: %u out-of-order runs", idx, n);
	CORQ_CHECK(ck, n == 0 || corq_seq_le(at, c->rcv_adv),
		"conn %u: run ends at %u, window at %u", idx, at, c->rcv_adv);
	if (w->fin_ooo)
		CORQ_CHECK(ck, !corq_seq_lt(w->fin_seq, c->rcv_nxt),
			"conn %u: FIN waits at %u, rcv_nxt %u", idx, w->fin_seq, c->rcv_nxt);
	return 0;
}

static int
check_receive(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c)
{
	uint64_t bytes;

	if (walk_queue(ck, e, c->rcvq_head, c->rcvq_tail, c->rcv_off, "receive queue", &bytes))
		return -1;
	CORQ_CHECK(ck, bytes == c->rcvq_bytes, "conn %u: %llu bytes to read, %u counted", idx,
		(unsigned long long)bytes, c->rcvq_bytes);
	CORQ_CHECK(ck, bytes <= (uint64_t)e->cfg.rcv_buf + 65535,
		"conn %u: %llu bytes received, buffer %u", idx, (unsigned long long)bytes,
		e->cfg.rcv_buf);
	if (c->state < CORQ_ESTABLISHED || (c->flags & CORQ_CF_DETACHED))
		return 0;
	CORQ_CHECK(ck, corq_seq_le(c->rcv_nxt, c->rcv_adv + 1),
		"conn %u: rcv_nxt %u, window edge %u", idx, c->rcv_nxt, c->rcv_adv);
	CORQ_CHECK(ck, corq_seq_le(c->last_ack_sent, c->rcv_nxt), "conn %u: acked %u, rcv_nxt %u",
		idx, c->last_ack_sent, c->rcv_nxt);
	return 0;
}

/* Flags that a state implies. */
static int
check_state(struct corq_check *ck, uint32_t idx, const struct corq_conn *c)
{
	static const struct {
		bool fin_queued, peer_fin;
	} want[CORQ_STATE_COUNT] = {
		[CORQ_FIN_WAIT_1] = {true, false},
		[CORQ_FIN_WAIT_2] = {true, false},
		[CORQ_CLOSE_WAIT] = {false, true},
		[CORQ_CLOSING] = {true, true},
		[CORQ_LAST_ACK] = {true, true},
		[CORQ_TIME_WAIT] = {true, true},
	};

	CORQ_CHECK(ck, c->state < CORQ_STATE_COUNT, "conn %u: state %u", idx, c->state);
	if (c->state == CORQ_CLOSED) {
		/* Ended and to be told, or closed by both sides and waiting for its program. */
		CORQ_CHECK(ck, c->flags & CORQ_CF_DETACHED, "conn %u: CLOSED and attached", idx);
		CORQ_CHECK(ck,
			c->ev & CORQ_EV_CLOSE ? !!(c->flags & CORQ_CF_IN_EVENTS)
					      : !(c->flags & CORQ_CF_ORPHAN),
			"conn %u: CLOSED and nobody will hear", idx);
		return 0;
	}
	CORQ_CHECK(ck,
		(c->state == CORQ_SYN_RCVD || /* closed before it opened: the FIN waits */
			!!(c->flags & CORQ_CF_FIN_QUEUED) == want[c->state].fin_queued) &&
			!!(c->flags & CORQ_CF_PEER_FIN) == want[c->state].peer_fin,
		"conn %u %s: flags %#x", idx, corq_state_name(c->state), c->flags);
	if (c->state == CORQ_FIN_WAIT_2 || c->state == CORQ_TIME_WAIT)
		CORQ_CHECK(ck, c->snd_una == c->snd_end + 1, "conn %u %s: una %u, FIN at %u", idx,
			corq_state_name(c->state), c->snd_una, c->snd_end);
	CORQ_CHECK(ck, c->state != CORQ_TIME_WAIT || (c->flags & CORQ_CF_DETACHED),
		"conn %u: TIME_WAIT without a record", idx);
	if (c->flags & CORQ_CF_ORPHAN) {
		CORQ_CHECK(ck, c->rcvq_bytes == 0, "conn %u: orphan holds %u bytes", idx,
			c->rcvq_bytes);
		CORQ_CHECK(ck,
			(c->ev & CORQ_EV_CLOSE) ||
				(c->state != CORQ_FIN_WAIT_2 && c->state != CORQ_TIME_WAIT),
			"conn %u: orphan in %s is no record", idx, corq_state_name(c->state));
	}
	return 0;
}

static uint32_t
earlier(uint32_t now, uint32_t a, uint32_t b)
{
	return (int32_t)(b - now) < (int32_t)(a - now) ? b : a;
}

/* One wheel entry, never later than the earliest deadline. */
static int
check_timer(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c,
	const struct corq_work *w)
{
	uint32_t first = e->now_tick + INT32_MAX / 2;
	bool any = false;

	if (c->user_at != 0)
		first = c->user_at, any = true;
	if (w && w->rtx_kind != CORQ_RTX_NONE)
		first = any ? earlier(e->now_tick, first, w->rtx_at) : w->rtx_at, any = true;
	if (w && w->cork_armed)
		first = any ? earlier(e->now_tick, first, w->cork_at) : w->cork_at, any = true;
	if (!any)
		return 0;
	CORQ_CHECK(ck, corq_wheel_armed(&c->timer), "conn %u %s: a deadline at %u, no timer", idx,
		corq_state_name(c->state), first);
	CORQ_CHECK(ck, corq_seq_le(c->timer.deadline, first),
		"conn %u %s: timer at %u, deadline %u (now %u)", idx, corq_state_name(c->state),
		c->timer.deadline, first, e->now_tick);
	return 0;
}

/* What is not at rest has something that will move it. */
static int
check_moves(
	struct corq_check *ck, uint32_t idx, const struct corq_conn *c, const struct corq_work *w)
{
	uint32_t end = c->snd_end + !!(c->flags & CORQ_CF_FIN_QUEUED);
	bool queued = c->flags & (CORQ_CF_IN_SEND | CORQ_CF_IN_URGENT);
	uint32_t owed = CORQ_CF_PROBE | CORQ_CF_RTX | CORQ_CF_SYN;

	if (c->state == CORQ_CLOSED || (c->flags & CORQ_CF_DETACHED))
		return 0;
	CORQ_CHECK(ck, queued || !(c->flags & owed) || (w && w->rtx_kind != CORQ_RTX_NONE),
		"conn %u %s: owes %#x, in no queue", idx, corq_state_name(c->state),
		c->flags & owed);
	CORQ_CHECK(ck, queued || c->acks_owed == 0, "conn %u %s: owes %u ACKs, in no queue", idx,
		corq_state_name(c->state), c->acks_owed);
	CORQ_CHECK(ck, queued || !(c->flags & CORQ_CF_ACK_DELAY) || (w && w->dack_armed),
		"conn %u: a delayed ACK that nothing will send", idx);
	CORQ_CHECK(ck, c->snd_una == c->snd_nxt || (w && w->tx_n > 0),
		"conn %u: in flight, no record", idx);
	if (w && w->tx_n > 0)
		CORQ_CHECK(ck, queued || w->rtx_kind != CORQ_RTX_NONE,
			"conn %u %s: [%u, %u) in flight, no retransmission timer", idx,
			corq_state_name(c->state), c->snd_una, c->snd_nxt);
	if (c->snd_nxt != end && c->snd_una == c->snd_nxt)
		CORQ_CHECK(ck, queued || (w && (w->rtx_kind != CORQ_RTX_NONE || w->cork_armed)),
			"conn %u %s: stalled, [%u, %u) unsent, window %u", idx,
			corq_state_name(c->state), c->snd_nxt, end, c->snd_wnd);
	if ((c->flags & CORQ_CF_WANT_ROOM) && !(c->flags & (CORQ_CF_FIN_QUEUED | CORQ_CF_ORPHAN)))
		CORQ_CHECK(ck, c->sndq_head != CORQ_NONE || (c->ev & CORQ_EV_SENT),
			"conn %u %s: a write came short, and nothing will say when to go on", idx,
			corq_state_name(c->state));
	if (w && !queued)
		CORQ_CHECK(ck,
			w->tx_n || w->ooo_n || w->fin_ooo || w->cork_armed || w->dack_armed ||
				w->rtx_kind != CORQ_RTX_NONE || c->snd_nxt != end,
			"conn %u %s: idle, but holds a work block", idx, corq_state_name(c->state));
	return 0;
}

static int
check_named(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c)
{
	struct corq_key key = {c->raddr, c->laddr, c->rport, c->lport, 0};
	uint32_t val = corq_engine_lookup(e, &key, corq_engine_hash(e, &key));
	uint64_t word;

	if (!c->told) { /* else its handle has gone before it */
		word = atomic_load_explicit(&e->handles->slot[c->slot].word, memory_order_relaxed);
		CORQ_CHECK(ck,
			(word & CORQ_SLOT_LIVE) &&
				atomic_load_explicit(&e->handles->slot[c->slot].conn,
					memory_order_relaxed) == idx,
			"conn %u: slot %u is not its own", idx, c->slot);
		ck->n_handles++;
	}
	if (c->flags & CORQ_CF_DETACHED) {
		CORQ_CHECK(ck, val != idx, "conn %u: detached, but in the table", idx);
		return 0;
	}
	ck->n_attached++;
	CORQ_CHECK(ck, val == idx, "conn %u %s: the table says %#x", idx, corq_state_name(c->state),
		val);
	CORQ_CHECK(ck, corq_engine_laddr(e, &c->laddr) == c->laddr_idx, "conn %u: local address %u",
		idx, c->laddr_idx);
	return 0;
}

static int
check_splice(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c)
{
	const struct corq_splice_link *l, *o;

	if (c->splice == CORQ_NONE)
		return 0;
	if (corq_check_use(ck, &ck->splices, &e->splices, c->splice, "splice"))
		return -1;
	l = corq_pool_at(&e->splices, c->splice);
	CORQ_CHECK(
		ck, l->to != CORQ_NONE || l->from != CORQ_NONE, "conn %u: spliced to nothing", idx);
	if (l->to != CORQ_NONE) {
		CORQ_CHECK(ck,
			!corq_check_is_free(ck, &ck->conns, l->to) &&
				corq_conn_at(e, l->to)->splice != CORQ_NONE,
			"conn %u: spliced to %u, which is not", idx, l->to);
		o = corq_pool_at(&e->splices, corq_conn_at(e, l->to)->splice);
		CORQ_CHECK(ck, o->from == idx, "conn %u: spliced to %u, which has %u", idx, l->to,
			o->from);
	}
	return 0;
}

static int
check_work(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c)
{
	const struct corq_work *w;

	if (c->work == CORQ_NONE)
		return 0;
	if (corq_check_use(ck, &ck->works, &e->works, c->work, "work block"))
		return -1;
	w = corq_pool_at(&e->works, c->work);
	CORQ_CHECK(ck, w->conn == idx, "conn %u: its work block says %u", idx, w->conn);
	CORQ_CHECK(ck, w->dack_armed || (w->dack.next == CORQ_NONE && w->dack.prev == CORQ_NONE),
		"conn %u: no delayed ACK, but linked", idx);
	CORQ_CHECK(ck, !w->dack_armed || c->last_ack_sent != c->rcv_nxt,
		"conn %u: a delayed ACK is armed, all is acknowledged", idx);
	ck->n_dack += !!w->dack_armed;
	return check_txrecs(ck, e, idx, c, w) || check_ooo(ck, e, idx, c, w) ? -1 : 0;
}

/* Reaped, but a sender queue still names it: nothing else may. */
static int
check_zombie(struct corq_check *ck, struct corq_engine *e, uint32_t idx, const struct corq_conn *c)
{
	if (corq_check_use(ck, &ck->conns, &e->conns, idx, "zombie"))
		return -1;
	CORQ_CHECK(ck,
		c->state == CORQ_CLOSED && c->work == CORQ_NONE && c->sndq_head == CORQ_NONE &&
			c->rcvq_head == CORQ_NONE && !corq_wheel_armed(&c->timer) &&
			!(c->flags & CORQ_CF_IN_EVENTS),
		"zombie %u: state %u flags %#x", idx, c->state, c->flags);
	CORQ_CHECK(
		ck, c->flags & (CORQ_CF_IN_SEND | CORQ_CF_IN_URGENT), "zombie %u in no queue", idx);
	ck->n_send += !!(c->flags & CORQ_CF_IN_SEND);
	ck->n_urgent += !!(c->flags & CORQ_CF_IN_URGENT);
	return 0;
}

int
corq_check_conn(struct corq_check *ck, struct corq_engine *e, uint32_t idx)
{
	const struct corq_conn *c = corq_conn_at(e, idx);
	const struct corq_work *w = c->work == CORQ_NONE ? NULL : corq_pool_at(&e->works, c->work);

	if (c->flags & CORQ_CF_ZOMBIE)
		return check_zombie(ck, e, idx, c);
	if (corq_check_use(ck, &ck->conns, &e->conns, idx, "connection") ||
		check_state(ck, idx, c) || check_send(ck, e, idx, c) ||
		check_receive(ck, e, idx, c) || check_work(ck, e, idx, c) ||
		check_timer(ck, e, idx, c, w) || check_moves(ck, idx, c, w) ||
		check_named(ck, e, idx, c) || check_splice(ck, e, idx, c))
		return -1;
	ck->n_send += !!(c->flags & CORQ_CF_IN_SEND);
	ck->n_urgent += !!(c->flags & CORQ_CF_IN_URGENT);
	ck->n_events += !!(c->flags & CORQ_CF_IN_EVENTS);
	ck->n_port_held += !!(c->flags & CORQ_CF_PORT_HELD);
	CORQ_CHECK(ck, !(c->flags & CORQ_CF_IN_SEND) || !(c->flags & CORQ_CF_IN_URGENT),
		"conn %u: in both sender queues", idx);
	CORQ_CHECK(ck, c->ev == 0 || (c->flags & CORQ_CF_IN_EVENTS),
		"conn %u: events %#x, flags %#x", idx, c->ev, c->flags);
	return 0;
}
