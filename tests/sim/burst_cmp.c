/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * burst_cmp.c - are two engines equal? Everything but addresses of frames, cycle counts and counts
 * of turns: connections, work blocks, transmission records, queues with their bytes, records,
 * lists, timers, ports, handles, random numbers, statistics and reasons.
 *
 * The two took the same steps in the same order, so pools handed out the same indices, and most
 * structures can be compared as bytes. Between turns only.
 */
#include "burst.h"

#include <stdio.h>
#include <stdlib.h>

#define SAME(b, what, cond, ...)                                                                   \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			burst_fail(b, what " differs " __VA_ARGS__);                               \
			return -1;                                                                 \
		}                                                                                  \
	} while (0)

static int
cmp_chunk_list(struct burst *b, struct corq_engine *x, struct corq_engine *y, uint32_t i,
	uint32_t j, uint32_t conn)
{
	while (i != CORQ_NONE && j != CORQ_NONE) {
		const struct corq_chunk *c = corq_chunk_at(&x->chunks, i);
		const struct corq_chunk *d = corq_chunk_at(&y->chunks, j);

		SAME(b, "chunk",
			i == j && c->len == d->len && c->kind == d->kind && c->done == d->done &&
				c->refs == d->refs &&
				(c->kind == CORQ_CHUNK_BORROWED || c->seq == d->seq),
			"(conn %u, %#x and %#x, %u and %u bytes)", conn, i, j, c->len, d->len);
		SAME(b, "payload", memcmp(c->data, d->data, c->len) == 0, "(conn %u, chunk %#x)",
			conn, i);
		i = c->next;
		j = d->next;
	}
	SAME(b, "length of a queue", i == j, "(conn %u: %#x, %#x)", conn, i, j);
	return 0;
}

static int
cmp_work(struct burst *b, struct corq_engine *x, struct corq_engine *y, const struct corq_conn *c,
	uint32_t idx)
{
	const struct corq_work *w;

	if (c->work == CORQ_NONE)
		return 0;
	w = corq_pool_at(&x->works, c->work);
	SAME(b, "work block", memcmp(w, corq_pool_at(&y->works, c->work), sizeof(*w)) == 0,
		"(conn %u, block %u)", idx, c->work);
	for (uint32_t i = w->tx_head; i != CORQ_NONE;) {
		const struct corq_txrec *t = corq_pool_at(&x->txrecs, i);

		SAME(b, "transmission", memcmp(t, corq_pool_at(&y->txrecs, i), sizeof(*t)) == 0,
			"(conn %u, [%u, %u))", idx, t->seq, t->end);
		i = t->next;
	}
	for (uint32_t i = w->ooo_head; i != CORQ_NONE; i = corq_chunk_at(&x->chunks, i)->run.next) {
		const struct corq_chunk *r = corq_chunk_at(&x->chunks, i);
		const struct corq_chunk *q = corq_chunk_at(&y->chunks, i);

		SAME(b, "run",
			memcmp(&r->run, &q->run, sizeof(r->run)) == 0 &&
				r->run_stamp == q->run_stamp,
			"(conn %u, at %u)", idx, r->seq);
		if (cmp_chunk_list(b, x, y, i, i, idx))
			return -1;
	}
	return 0;
}

static void
describe(char *out, size_t len, const struct corq_conn *c)
{
	snprintf(out, len, "%s flags %#x rcv %u una %u nxt %u ev %#x acks %u",
		corq_state_name(c->state), c->flags, c->rcv_nxt, c->snd_una, c->snd_nxt, c->ev,
		c->acks_owed);
}

static int
cmp_conns(struct burst *b, struct burst_twin *tx, struct burst_twin *ty)
{
	struct corq_engine *x = &tx->tc.core->eng, *y = &ty->tc.core->eng;
	char dx[200], dy[200];

	SAME(b, "number of connections",
		x->conns.n_fresh == y->conns.n_fresh && x->conns.n_free == y->conns.n_free);
	for (uint32_t i = 0; i < x->conns.n_fresh; i++) {
		const struct corq_conn *c = corq_conn_at(x, i), *d = corq_conn_at(y, i);
		bool is_free = corq_check_is_free(&tx->check, &tx->check.conns, i);

		SAME(b, "which connections live",
			is_free == corq_check_is_free(&ty->check, &ty->check.conns, i), "(%u)", i);
		if (is_free)
			continue;
		describe(dx, sizeof(dx), c);
		describe(dy, sizeof(dy), d);
		for (size_t k = 0; k < sizeof(*c); k++)
			SAME(b, "connection", ((const uint8_t *)c)[k] == ((const uint8_t *)d)[k],
				"(%u at byte %zu)\n  %s\n  %s", i, k, dx, dy);
		if (cmp_work(b, x, y, c, i) ||
			cmp_chunk_list(b, x, y, c->sndq_head, d->sndq_head, i) ||
			cmp_chunk_list(b, x, y, c->rcvq_head, d->rcvq_head, i))
			return -1;
	}
	return 0;
}

static int
cmp_records(struct burst *b, struct corq_engine *x, struct corq_engine *y)
{
	SAME(b, "records by kind", memcmp(x->rec_n, y->rec_n, sizeof(x->rec_n)) == 0);
	SAME(b, "record lists", memcmp(x->rec_list, y->rec_list, sizeof(x->rec_list)) == 0);
	for (uint32_t c = 0; c < CORQ_RC_COUNT; c++)
		for (uint32_t i = x->rec_list[c].head; i != CORQ_NONE;
			i = corq_dlist_next(&x->rec_space, i))
			SAME(b, "record",
				memcmp(corq_record_at(x, i), corq_record_at(y, i),
					sizeof(struct corq_record)) == 0,
				"(%u of class %u)", i, c);
	for (int i = 0; i < CORQ_MAX_LISTENERS; i++)
		SAME(b, "half-open count",
			x->listeners[i].n_half_open == y->listeners[i].n_half_open, "(listener %d)",
			i);
	return 0;
}

static void
strip_turns(struct corq_stats *s)
{
	s->turns = s->turns_busy = s->cycles_busy = s->cycles_rx = s->cycles_input = 0;
	s->cycles_timers = s->cycles_events = s->cycles_build = s->cycles_tx = s->cycles_tx_long =
		0;
}

static int
cmp_figures(struct burst *b, struct corq_engine *x, struct corq_engine *y)
{
	struct corq_stats s = x->stats, t = y->stats;
	const uint64_t *p = (const uint64_t *)&s, *q = (const uint64_t *)&t;

	strip_turns(&s);
	strip_turns(&t);
	for (size_t i = 0; i < sizeof(s) / sizeof(*p); i++)
		SAME(b, "figure", p[i] == q[i], "(word %zu of the statistics: %llu, %llu)", i,
			(unsigned long long)p[i], (unsigned long long)q[i]);
	for (int i = 0; i < CORQ_R_COUNT; i++)
		SAME(b, "reason", x->reasons[i] == y->reasons[i], "(%s: %llu, %llu)",
			corq_reason_name((enum corq_reason)i), (unsigned long long)x->reasons[i],
			(unsigned long long)y->reasons[i]);
	return 0;
}

static int
cmp_lists(struct burst *b, struct corq_engine *x, struct corq_engine *y)
{
	SAME(b, "send queue", memcmp(&x->send, &y->send, sizeof(x->send)) == 0);
	SAME(b, "urgent queue", memcmp(&x->urgent, &y->urgent, sizeof(x->urgent)) == 0);
	SAME(b, "parked SYNs", memcmp(&x->parked, &y->parked, sizeof(x->parked)) == 0);
	SAME(b, "event queue", memcmp(&x->events, &y->events, sizeof(x->events)) == 0);
	SAME(b, "ACK list", memcmp(&x->dack, &y->dack, sizeof(x->dack)) == 0);
	SAME(b, "number of replies", x->reply_n == y->reply_n, "(%u, %u)", x->reply_n, y->reply_n);
	SAME(b, "timers", x->wheel.n_armed == y->wheel.n_armed, "(%u, %u armed)", x->wheel.n_armed,
		y->wheel.n_armed);
	SAME(b, "random numbers", memcmp(&x->rand, &y->rand, sizeof(x->rand)) == 0);
	SAME(b, "table", x->table.count == y->table.count);
	SAME(b, "ports",
		x->ports.n_used == y->ports.n_used && x->ports.n_waiting == y->ports.n_waiting);
	SAME(b, "handles", corq_lane_used(x->lane) == corq_lane_used(y->lane));
	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++)
		SAME(b, "chunks out",
			corq_pool_used(&x->chunks.pool[i]) == corq_pool_used(&y->chunks.pool[i]),
			"(class %d)", i);
	return 0;
}

static int
cmp_events(struct burst *b, const struct burst_twin *x, const struct burst_twin *y)
{
	for (uint32_t i = 0; i < x->n_ev && i < y->n_ev; i++)
		SAME(b, "callback", memcmp(&x->ev[i], &y->ev[i], sizeof(x->ev[i])) == 0,
			"(%u: type %u port %u bytes %u, type %u port %u bytes %u)", i,
			x->ev[i].type, x->ev[i].rport, x->ev[i].bytes, y->ev[i].type,
			y->ev[i].rport, y->ev[i].bytes);
	SAME(b, "number of callbacks", x->n_ev == y->n_ev, "(%u, %u)", x->n_ev, y->n_ev);
	return 0;
}

static int
cmp_sent(struct burst *b, struct burst_twin *x, struct burst_twin *y)
{
	for (uint32_t n = 0;; n++) {
		struct memport_pkt *p = testcore_take(&x->tc), *q = testcore_take(&y->tc);
		bool both = p && q;
		bool same =
			both ? p->len == q->len && memcmp(p->bytes, q->bytes, p->len) == 0 : p == q;

		if (!same)
			burst_fail(b, "sent frame %u differs (%u bytes, %u bytes)", n,
				p ? p->len : 0, q ? q->len : 0);
		free(p);
		free(q);
		b->n_compared += both;
		if (!same || !both)
			return same ? 0 : -1;
	}
}

int
burst_compare(struct burst *b, struct burst_twin *tx, struct burst_twin *ty)
{
	struct corq_engine *x = &tx->tc.core->eng, *y = &ty->tc.core->eng;

	if (cmp_events(b, tx, ty) || cmp_sent(b, tx, ty) || cmp_conns(b, tx, ty) ||
		cmp_records(b, x, y) || cmp_lists(b, x, y) || cmp_figures(b, x, y))
		return -1;
	return 0;
}

/* Large, and seldom written: once in some sequences. */
int
burst_compare_isn(struct burst *b, struct burst_twin *tx, struct burst_twin *ty)
{
	const struct corq_isn *x = &tx->tc.core->eng.isn, *y = &ty->tc.core->eng.isn;

	SAME(b, "ISN cache", memcmp(x->cache, y->cache, (x->mask + 1) * sizeof(*x->cache)) == 0);
	return 0;
}

/* ---- the core that got a turn a frame ---- */

static int
cmp_streams(struct burst *b, const struct burst_twin *y, const struct burst_twin *z)
{
	SAME(b, "tuples that delivered (spread)", y->n_stream == z->n_stream, "(%u, %u)",
		y->n_stream, z->n_stream);
	for (uint32_t i = 0; i < y->n_stream; i++) {
		const struct burst_stream *s = &y->stream[i], *t = NULL;

		for (uint32_t k = 0; k < z->n_stream; k++)
			if (z->stream[k].peer == s->peer && z->stream[k].lport == s->lport &&
				z->stream[k].rport == s->rport)
				t = &z->stream[k];
		SAME(b, "what a tuple delivered (spread)",
			t && t->count == s->count && t->hash == s->hash,
			"(port %u to %u: %u and %u bytes)", s->rport, s->lport, s->count,
			t ? t->count : 0);
	}
	return 0;
}

/* State by tuple: what Y has, Z has. The counts then make it both ways. */
static int
cmp_states(struct burst *b, struct corq_engine *y, struct corq_engine *z)
{
	for (uint32_t i = 0; i < y->conns.n_fresh; i++) {
		const struct corq_conn *c = corq_conn_at(y, i), *d;
		struct corq_key key = {c->raddr, c->laddr, c->rport, c->lport, 0};
		uint32_t v;

		if (corq_engine_lookup(y, &key, corq_engine_hash(y, &key)) != i)
			continue;
		v = corq_engine_lookup(z, &key, corq_engine_hash(z, &key));
		SAME(b, "where a tuple lives (spread)", !(v & CORQ_VAL_RECORD),
			"(port %u to %u: %s, %#x)", c->rport, c->lport, corq_state_name(c->state),
			v);
		d = corq_conn_at(z, v);
		SAME(b, "state (spread)",
			c->state == d->state && c->rcv_nxt == d->rcv_nxt &&
				c->snd_nxt == d->snd_nxt,
			"(port %u to %u: %s rcv_nxt %u, %s rcv_nxt %u)", c->rport, c->lport,
			corq_state_name(c->state), c->rcv_nxt, corq_state_name(d->state),
			d->rcv_nxt);
	}
	SAME(b, "records (spread)", memcmp(y->rec_n, z->rec_n, sizeof(y->rec_n)) == 0,
		"(%u %u %u, %u %u %u)", y->rec_n[1], y->rec_n[2], y->rec_n[3], z->rec_n[1],
		z->rec_n[2], z->rec_n[3]);
	SAME(b, "entries of the table (spread)", y->table.count == z->table.count, "(%u, %u)",
		y->table.count, z->table.count);
	return 0;
}

int
burst_compare_spread(struct burst *b, struct burst_twin *y, struct burst_twin *z)
{
	struct memport_pkt *p;

	while ((p = testcore_take(&z->tc)) != NULL)
		free(p);
	return cmp_streams(b, y, z) || cmp_states(b, &y->tc.core->eng, &z->tc.core->eng) ? -1 : 0;
}
