/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_engine.c - the engine-wide half of check_engine.h: pools, lists, records, names.
 *
 * Marks: word = epoch << 2 | kind. Objects are first marked free by walking free lists, then
 * marked used by whoever reaches them; at the end the numbers must fit the pools'.
 */
#include "check_engine.h"

#include "base/seq.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	MARK_FREE = 1,
	MARK_USED = 2
};

int
corq_check_fail(struct corq_check *ck, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ck->msg, sizeof(ck->msg), fmt, ap);
	va_end(ap);
	return -1;
}

static bool
marks_init(struct corq_check_marks *m, const struct corq_pool *p)
{
	m->at = calloc(p->n ? p->n : 1, sizeof(*m->at));
	return m->at != NULL;
}

bool
corq_check_init(struct corq_check *ck, const struct corq_engine *e)
{
	bool ok;

	memset(ck, 0, sizeof(*ck));
	ok = marks_init(&ck->conns, &e->conns) && marks_init(&ck->records, &e->records) &&
	     marks_init(&ck->works, &e->works) && marks_init(&ck->txrecs, &e->txrecs) &&
	     marks_init(&ck->splices, &e->splices);
	for (int i = 0; ok && i < CORQ_CHUNK_CLASS_COUNT; i++)
		ok = marks_init(&ck->chunks[i], &e->chunks.pool[i]);
	return ok;
}

void
corq_check_end(struct corq_check *ck)
{
	free(ck->conns.at);
	free(ck->records.at);
	free(ck->works.at);
	free(ck->txrecs.at);
	free(ck->splices.at);
	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++)
		free(ck->chunks[i].at);
	memset(ck, 0, sizeof(*ck));
}

int
corq_check_use(struct corq_check *ck, struct corq_check_marks *m, const struct corq_pool *p,
	uint32_t idx, const char *what)
{
	CORQ_CHECK(ck, idx < p->n_fresh, "%s %u was never handed out (%u were)", what, idx,
		p->n_fresh);
	CORQ_CHECK(ck, m->at[idx] != (ck->epoch << 2 | MARK_FREE), "%s %u is in use and free", what,
		idx);
	CORQ_CHECK(
		ck, m->at[idx] != (ck->epoch << 2 | MARK_USED), "%s %u is linked twice", what, idx);
	m->at[idx] = ck->epoch << 2 | MARK_USED;
	m->n_used++;
	return 0;
}

bool
corq_check_is_free(const struct corq_check *ck, const struct corq_check_marks *m, uint32_t idx)
{
	return m->at[idx] == (ck->epoch << 2 | MARK_FREE);
}

/* Marks the free list; its length is what the pool says. */
static int
walk_free(struct corq_check *ck, struct corq_check_marks *m, const struct corq_pool *p,
	const char *what)
{
	uint32_t n = 0;

	for (uint32_t i = p->free_head; i != CORQ_NONE; i = corq_pool_link(p, i)) {
		CORQ_CHECK(ck, i < p->n_fresh, "%s pool: free list names %u", what, i);
		CORQ_CHECK(ck, !corq_check_is_free(ck, m, i), "%s %u is free twice", what, i);
		m->at[i] = ck->epoch << 2 | MARK_FREE;
		n++;
	}
	CORQ_CHECK(ck, n + (p->n - p->n_fresh) == p->n_free,
		"%s pool: %u on the free list, %u fresh, but %u free", what, n, p->n - p->n_fresh,
		p->n_free);
	m->free_walked = true;
	return 0;
}

static int
start_pool(struct corq_check *ck, struct corq_check_marks *m, const struct corq_pool *p,
	const char *what, bool walk)
{
	m->n_used = 0;
	m->free_walked = false;
	CORQ_CHECK(ck, corq_pool_deferred(p) == 0, "%s pool: %u deferred frees between turns", what,
		corq_pool_deferred(p));
	return walk ? walk_free(ck, m, p, what) : 0;
}

static int
start_pools(struct corq_check *ck, struct corq_engine *e, bool full)
{
	static const char *const chunk[] = {"plain chunk", "small chunk", "large chunk"};

	if (start_pool(ck, &ck->conns, &e->conns, "connection", true) ||
		start_pool(ck, &ck->records, &e->records, "record", full) ||
		start_pool(ck, &ck->works, &e->works, "work block", full) ||
		start_pool(ck, &ck->txrecs, &e->txrecs, "transmission", full) ||
		start_pool(ck, &ck->splices, &e->splices, "splice", full))
		return -1;
	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++)
		if (start_pool(ck, &ck->chunks[i], &e->chunks.pool[i], chunk[i], full))
			return -1;
	return 0;
}

static int
end_pool(struct corq_check *ck, const struct corq_check_marks *m, const struct corq_pool *p,
	const char *what)
{
	CORQ_CHECK(ck, m->n_used == corq_pool_used(p), "%s pool: %u out, %u reachable", what,
		corq_pool_used(p), m->n_used);
	return 0;
}

/* Chunks on no list: unlinked ones that a frame out there refers to, and nothing else. */
static int
loose_chunks(struct corq_check *ck, struct corq_engine *e, int class)
{
	struct corq_check_marks *m = &ck->chunks[class];
	struct corq_pool *p = &e->chunks.pool[class];

	if (m->n_used == corq_pool_used(p))
		return 0;
	if (!m->free_walked && walk_free(ck, m, p, "chunk"))
		return -1;
	for (uint32_t i = 0; i < p->n_fresh; i++) {
		const struct corq_chunk *c = corq_pool_at(p, i);

		if (m->at[i] >> 2 == ck->epoch)
			continue;
		CORQ_CHECK(ck, c->done && c->refs > 0,
			"chunk %d:%u (kind %u, %u bytes) leaked: on no list, done %u, refs %u",
			class, i, c->kind, c->len, c->done, c->refs);
		m->n_used++;
		ck->n_ref_unlinked++;
		ck->n_held += c->kind == CORQ_CHUNK_HELD;
	}
	return 0;
}

static int
release_list(struct corq_check *ck, struct corq_engine *e)
{
	for (uint32_t i = e->release_head; i != CORQ_NONE; i = corq_chunk_at(&e->chunks, i)->next) {
		if (corq_check_use(ck, &ck->chunks[i >> 30], &e->chunks.pool[i >> 30],
			    i & 0x3fffffff, "released chunk"))
			return -1;
		CORQ_CHECK(ck, corq_chunk_at(&e->chunks, i)->refs == 0,
			"released chunk %#x has %u frames out", i,
			corq_chunk_at(&e->chunks, i)->refs);
	}
	return 0;
}

static int
end_pools(struct corq_check *ck, struct corq_engine *e)
{
	if (end_pool(ck, &ck->conns, &e->conns, "connection") ||
		end_pool(ck, &ck->records, &e->records, "record") ||
		end_pool(ck, &ck->works, &e->works, "work block") ||
		end_pool(ck, &ck->txrecs, &e->txrecs, "transmission") ||
		end_pool(ck, &ck->splices, &e->splices, "splice"))
		return -1;
	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++)
		if (loose_chunks(ck, e, i) ||
			end_pool(ck, &ck->chunks[i], &e->chunks.pool[i], "chunk"))
			return -1;
	CORQ_CHECK(ck, ck->n_held == e->chunks.n_held, "held chunks: %u alive, %u counted",
		ck->n_held, e->chunks.n_held);
	return 0;
}

/* ---- lists of connections ---- */

static int
walk_fifo(struct corq_check *ck, struct corq_engine *e, const struct corq_fifo *f, uint32_t flag,
	const char *what)
{
	uint32_t n = 0, last = CORQ_NONE;

	for (uint32_t i = f->head; i != CORQ_NONE;) {
		const struct corq_conn *c = corq_conn_at(e, i);

		CORQ_CHECK(ck, i < e->conns.n_fresh && !corq_check_is_free(ck, &ck->conns, i),
			"%s queue names connection %u, which is free", what, i);
		CORQ_CHECK(ck, c->flags & flag, "connection %u is in the %s queue, unflagged", i,
			what);
		CORQ_CHECK(ck, ++n <= f->n, "%s queue: more than its %u entries", what, f->n);
		last = i;
		i = flag == CORQ_CF_IN_EVENTS ? c->ev_next : c->send_next;
	}
	CORQ_CHECK(ck, n == f->n, "%s queue: %u linked, %u counted", what, n, f->n);
	CORQ_CHECK(
		ck, n == 0 || last == f->tail, "%s queue: tail is %u, not %u", what, f->tail, last);
	return 0;
}

/* Accept queues are linked through the event list's words. */
static int
check_accept_queues(struct corq_check *ck, struct corq_engine *e, uint32_t *n)
{
	*n = e->events.n + e->doomed.n;
	for (unsigned i = 0; i < e->n_listeners; i++) {
		const struct corq_listener *l = &e->listeners[i];

		if (!l->used)
			continue;
		if (walk_fifo(ck, e, &l->queue, CORQ_CF_IN_EVENTS, "accept"))
			return -1;
		CORQ_CHECK(ck, l->queue.n <= (l->opts.queue ? l->max_queue : 0),
			"listener %u: %u connections wait", i, l->queue.n);
		*n += l->queue.n;
	}
	return walk_fifo(ck, e, &e->doomed, CORQ_CF_IN_EVENTS, "doomed");
}

static int
check_fifos(struct corq_check *ck, struct corq_engine *e)
{
	uint32_t n;

	if (walk_fifo(ck, e, &e->urgent, CORQ_CF_IN_URGENT, "urgent") ||
		walk_fifo(ck, e, &e->parked, CORQ_CF_IN_URGENT, "parked") ||
		walk_fifo(ck, e, &e->send, CORQ_CF_IN_SEND, "send") ||
		walk_fifo(ck, e, &e->events, CORQ_CF_IN_EVENTS, "event") ||
		check_accept_queues(ck, e, &n))
		return -1;
	CORQ_CHECK(ck, ck->n_urgent == e->urgent.n + e->parked.n,
		"%u connections flagged urgent, %u queued, %u parked", ck->n_urgent, e->urgent.n,
		e->parked.n);
	CORQ_CHECK(ck, ck->n_send == e->send.n, "%u connections flagged for send, %u queued",
		ck->n_send, e->send.n);
	CORQ_CHECK(ck, ck->n_events == n, "%u connections flagged for events, %u queued",
		ck->n_events, n);
	CORQ_CHECK(ck, e->reply_n <= CORQ_URGENT_MAX, "%u stateless replies", e->reply_n);
	return 0;
}

static int
check_dack(struct corq_check *ck, struct corq_engine *e)
{
	const struct corq_dlist *l = &e->dack;
	uint32_t n = 0, prev = CORQ_NONE;

	for (uint32_t i = l->head; i != CORQ_NONE; i = corq_dlist_next(&e->dack_space, i)) {
		const struct corq_work *w = corq_pool_at(&e->works, i);

		CORQ_CHECK(ck, w->dack_armed, "work block %u stands in the ACK list, not armed", i);
		CORQ_CHECK(ck, w->dack.prev == prev, "ACK list: %u's prev is %u, not %u", i,
			w->dack.prev, prev);
		if (prev != CORQ_NONE)
			CORQ_CHECK(ck,
				corq_seq_le(((struct corq_work *)corq_pool_at(&e->works, prev))
						    ->dack_at,
					w->dack_at),
				"ACK list out of order at %u", i);
		prev = i;
		CORQ_CHECK(ck, ++n <= l->count, "ACK list longer than %u", l->count);
	}
	CORQ_CHECK(ck, n == l->count && prev == l->tail, "ACK list: %u linked, %u counted", n,
		l->count);
	CORQ_CHECK(ck, n == ck->n_dack, "%u ACKs armed, %u in the list", ck->n_dack, n);
	return 0;
}

/* ---- records ---- */

static int
check_record(struct corq_check *ck, struct corq_engine *e, uint32_t i, uint32_t class)
{
	const struct corq_record *r = corq_record_at(e, i);
	struct corq_key key = {.raddr = r->raddr, .rport = r->rport, .lport = r->lport};
	uint32_t val;

	CORQ_CHECK(ck, r->kind > CORQ_REC_FREE && r->kind < CORQ_REC_KIND_COUNT,
		"record %u of kind %u", i, r->kind);
	CORQ_CHECK(ck, r->class == class, "record %u of class %u in list %u", i, r->class, class);
	CORQ_CHECK(ck,
		(r->kind == CORQ_REC_HALF_OPEN) == (class <= CORQ_RC_SYNACK5) &&
			(r->kind == CORQ_REC_TIME_WAIT) == (class == CORQ_RC_TIME_WAIT),
		"record %u of kind %u in class %u", i, r->kind, class);
	CORQ_CHECK(ck, r->laddr_idx < e->n_addrs, "record %u: local address %u", i, r->laddr_idx);
	key.laddr = corq_engine_laddr_at(e, r->laddr_idx);
	val = corq_engine_lookup(e, &key, corq_engine_hash(e, &key));
	CORQ_CHECK(ck, val == (CORQ_VAL_RECORD | i), "record %u: the table says %#x", i, val);
	if (r->kind == CORQ_REC_HALF_OPEN) {
		CORQ_CHECK(ck, r->listener < CORQ_MAX_LISTENERS && e->listeners[r->listener].used,
			"half-open record %u of listener %u, which is closed", i, r->listener);
		ck->half_open[r->listener]++;
		CORQ_CHECK(ck, r->retries <= e->cfg.synack_retries, "record %u: %u SYN-ACK retries",
			i, r->retries);
	}
	if (r->flags & CORQ_RF_ACTIVE) {
		ck->n_active_tw += r->kind == CORQ_REC_TIME_WAIT;
		ck->n_port_held += r->kind != CORQ_REC_TIME_WAIT;
	}
	return 0;
}

static int
check_record_class(struct corq_check *ck, struct corq_engine *e, uint32_t class, uint32_t *n_kind)
{
	const struct corq_dlist *l = &e->rec_list[class];
	uint32_t n = 0, prev = CORQ_NONE;

	for (uint32_t i = l->head; i != CORQ_NONE; i = corq_dlist_next(&e->rec_space, i)) {
		const struct corq_record *r = corq_record_at(e, i);

		if (corq_check_use(ck, &ck->records, &e->records, i, "record") ||
			check_record(ck, e, i, class))
			return -1;
		CORQ_CHECK(ck, r->link.prev == prev, "record list %u: %u's prev is %u, not %u",
			class, i, r->link.prev, prev);
		if (prev != CORQ_NONE)
			CORQ_CHECK(ck, corq_seq_le(corq_record_at(e, prev)->deadline, r->deadline),
				"record list %u out of order at %u", class, i);
		n_kind[r->kind]++;
		prev = i;
		n++;
	}
	CORQ_CHECK(ck, n == l->count && prev == l->tail, "record list %u: %u linked, %u counted",
		class, n, l->count);
	return 0;
}

static int
check_records(struct corq_check *ck, struct corq_engine *e)
{
	uint32_t n_kind[CORQ_REC_KIND_COUNT] = {0};

	memset(ck->half_open, 0, sizeof(ck->half_open));
	for (uint32_t c = 0; c < CORQ_RC_COUNT; c++)
		if (check_record_class(ck, e, c, n_kind))
			return -1;
	for (int k = 1; k < CORQ_REC_KIND_COUNT; k++) {
		CORQ_CHECK(ck, n_kind[k] == e->rec_n[k],
			"records of kind %d: %u listed, %u counted", k, n_kind[k], e->rec_n[k]);
		CORQ_CHECK(ck, n_kind[k] <= e->rec_max[k], "records of kind %d: %u, bound %u", k,
			n_kind[k], e->rec_max[k]);
	}
	for (int i = 0; i < CORQ_MAX_LISTENERS; i++)
		CORQ_CHECK(ck,
			!e->listeners[i].used || e->listeners[i].n_half_open == ck->half_open[i],
			"listener %d: %u half-open, %u counted", i, ck->half_open[i],
			e->listeners[i].n_half_open);
	return 0;
}

/* ---- names ---- */

static int
check_names(struct corq_check *ck, struct corq_engine *e)
{
	uint32_t dest_used = 0;

	CORQ_CHECK(ck, e->table.count == ck->n_attached + corq_pool_used(&e->records),
		"table: %u entries for %u connections and %u records", e->table.count,
		ck->n_attached, corq_pool_used(&e->records));
	CORQ_CHECK(ck, corq_lane_used(e->lane) == ck->n_handles,
		"handles: %u out, %u connections have one", corq_lane_used(e->lane), ck->n_handles);
	for (uint32_t i = 0; i <= e->ports.n_dests; i++) /* the last one is the shared one */
		dest_used += e->ports.dests[i].used;
	CORQ_CHECK(ck, dest_used == ck->n_port_held + ck->n_active_tw,
		"ports: destinations count %u, %u connections and %u records hold one", dest_used,
		ck->n_port_held, ck->n_active_tw);
	return 0;
}

/* Every entry is used once, and away entries are counted where they are at home. */
static int
check_table(struct corq_check *ck, struct corq_engine *e)
{
	const struct corq_table *t = &e->table;
	uint64_t n = 0, n_over = 0, n_away = 0;

	for (uint32_t i = 0; i <= t->mask; i++) {
		const struct corq_table_bucket *b = &t->bucket[i];

		CORQ_CHECK(ck, (b->home & b->away) == 0, "table: bucket %u, %#x and %#x", i,
			b->home, b->away);
		n += (uint64_t)__builtin_popcount(b->home) + (uint64_t)__builtin_popcount(b->away);
		n_away += (uint64_t)__builtin_popcount(b->away);
		n_over += b->n_over;
	}
	CORQ_CHECK(ck, n == t->count && n_over == n_away,
		"table: %llu entries, %u counted; %llu away, %llu counted", (unsigned long long)n,
		t->count, (unsigned long long)n_away, (unsigned long long)n_over);
	return 0;
}

int
corq_check_engine(struct corq_check *ck, struct corq_engine *e, enum corq_check_depth depth)
{
	bool full = depth == CORQ_CHECK_FULL;

	ck->epoch = (ck->epoch + 1) & 0x3fffffff;
	ck->msg[0] = '\0';
	ck->n_attached = ck->n_port_held = ck->n_held = ck->n_splice = ck->n_handles = 0;
	ck->n_send = ck->n_urgent = ck->n_events = ck->n_dack = 0;
	ck->n_ref_unlinked = ck->n_active_tw = 0;
	CORQ_CHECK(ck, e->n_freed == 0, "%u frames not given back at the turn's end", e->n_freed);
	if (start_pools(ck, e, full))
		return -1;
	for (uint32_t i = 0; i < e->conns.n_fresh; i++)
		if (!corq_check_is_free(ck, &ck->conns, i) && corq_check_conn(ck, e, i))
			return -1;
	if (check_fifos(ck, e) || check_dack(ck, e) || check_records(ck, e) ||
		release_list(ck, e) || end_pools(ck, e) || check_names(ck, e))
		return -1;
	return full ? check_table(ck, e) : 0;
}

int
corq_check_empty(struct corq_check *ck, struct corq_engine *e)
{
	if (corq_check_engine(ck, e, CORQ_CHECK_FULL))
		return -1;
	CORQ_CHECK(ck, corq_pool_used(&e->conns) == 0, "%u connections left",
		corq_pool_used(&e->conns));
	CORQ_CHECK(ck, corq_pool_used(&e->records) == 0, "%u records left (%u %u %u)",
		corq_pool_used(&e->records), e->rec_n[1], e->rec_n[2], e->rec_n[3]);
	CORQ_CHECK(ck, corq_pool_used(&e->works) == 0, "%u work blocks left",
		corq_pool_used(&e->works));
	for (int i = 0; i < CORQ_CHUNK_CLASS_COUNT; i++)
		CORQ_CHECK(ck, corq_pool_used(&e->chunks.pool[i]) == 0,
			"%u chunks of class %d left", corq_pool_used(&e->chunks.pool[i]), i);
	CORQ_CHECK(ck, e->wheel.n_armed == 0, "%u timers left", e->wheel.n_armed);
	CORQ_CHECK(ck, e->ports.n_used == 0 && e->ports.n_waiting == 0,
		"%llu ports used, %llu waiting", (unsigned long long)e->ports.n_used,
		(unsigned long long)e->ports.n_waiting);
	CORQ_CHECK(ck, e->reply_n == 0, "%u replies left", e->reply_n);
	return 0;
}
