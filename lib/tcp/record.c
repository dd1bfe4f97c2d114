/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.c - the pool, lists and time that all records share (record.h). What a record answers is
 * in timewait.c and passive.c.
 *
 * Called by the core's thread: from input (a record is made, started anew, freed) and from the
 * timers (the oldest ones go). Expiry takes records in batches: in a first pass the lines that the
 * removal will touch are fetched (the next record, the tuple's bucket, its place in the ISN cache),
 * in the second the records go. With ten million of them nothing of this is in a cache by itself.
 */
#include "tcp/internal.h"

#define EXPIRE_BATCH 32
#define AHEAD        512 /* the most that expire in a turn: 64 KiB of records and buckets */

static uint64_t *
live_count(struct corq_engine *e, enum corq_record_kind kind)
{
	switch (kind) {
	case CORQ_REC_TIME_WAIT:
		return &e->stats.time_wait_live;
	case CORQ_REC_FIN_WAIT2:
		return &e->stats.fin_wait2_live;
	default:
		return &e->stats.half_open_live;
	}
}

void
corq_record_set_kind(struct corq_engine *e, struct corq_record *r, enum corq_record_kind kind)
{
	if (r->kind != CORQ_REC_FREE) {
		e->rec_n[r->kind]--;
		--*live_count(e, r->kind);
	}
	r->kind = (uint8_t)kind;
	if (kind != CORQ_REC_FREE) {
		e->rec_n[kind]++;
		++*live_count(e, kind);
	}
}

/* The lines that the removal of a record touches besides its own; returns the tuple's hash. */
static uint64_t
fetch_tuple(const struct corq_engine *e, const struct corq_record *r)
{
	struct corq_key key;
	uint64_t hash;

	corq_record_key(e, r, &key);
	hash = corq_engine_hash(e, &key);
	corq_table_prefetch(&e->table, hash);
	if (r->flags & CORQ_RF_ACTIVE)
		corq_isn_prefetch(&e->isn, r->ts_off);
	return hash;
}

/* One step of the look ahead: in a list that is longer than the caches each record's line would be
 * waited for, and its link is in it. So a finger stays AHEAD records before the oldest and moves on
 * as others enter: what it stands on was fetched when it came there. */
static void
look_ahead(struct corq_engine *e)
{
	const struct corq_record *r;
	uint32_t next;

	if (CORQ_UNLIKELY(e->rec_ahead == CORQ_NONE)) {
		e->rec_ahead = e->rec_list[CORQ_RC_TIME_WAIT].head;
		e->rec_ahead_n = 0;
		return;
	}
	if (e->rec_ahead_n >= AHEAD)
		return;
	r = corq_record_at(e, e->rec_ahead);
	next = r->link.next;
	if (next == CORQ_NONE)
		return;
	CORQ_PREFETCH_W(corq_record_at(e, next));
	fetch_tuple(e, r);
	e->rec_ahead = next;
	e->rec_ahead_n++;
}

static void
unlink_record(struct corq_engine *e, uint32_t rec)
{
	struct corq_record *r = corq_record_at(e, rec);

	if (r->class == CORQ_RC_TIME_WAIT) {
		if (rec == e->rec_ahead) {
			e->rec_ahead = r->link.next;
			e->rec_ahead_n = 0;
		} else if (r->link.prev == CORQ_NONE && e->rec_ahead_n) {
			e->rec_ahead_n--;
		}
	}
	if (r->class != CORQ_RC_NONE)
		corq_dlist_remove(&e->rec_space, &e->rec_list[r->class], rec);
	r->class = CORQ_RC_NONE;
}

void
corq_record_start(struct corq_engine *e, uint32_t rec, enum corq_record_class cls)
{
	struct corq_record *r = corq_record_at(e, rec);

	unlink_record(e, rec);
	r->class = (uint8_t)cls;
	r->deadline = e->now_tick + e->rec_ticks[cls];
	corq_dlist_push_tail(&e->rec_space, &e->rec_list[cls], rec);
	if (cls == CORQ_RC_TIME_WAIT) {
		look_ahead(e);
		look_ahead(e); /* two for each that enters: it gains on the oldest */
	}
}

/* Of the FIN_WAIT_2 records the one whose time is over first. */
static uint32_t
first_fin_wait2(struct corq_engine *e)
{
	uint32_t first = CORQ_NONE;

	for (unsigned cls = CORQ_RC_FIN_WAIT2_0; cls <= CORQ_RC_FIN_WAIT2; cls++) {
		uint32_t i = e->rec_list[cls].head;

		if (i != CORQ_NONE &&
			(first == CORQ_NONE || corq_seq_lt(corq_record_at(e, i)->deadline,
						       corq_record_at(e, first)->deadline)))
			first = i;
	}
	return first;
}

void
corq_record_evict(struct corq_engine *e, enum corq_record_kind kind)
{
	switch (kind) {
	case CORQ_REC_TIME_WAIT:
		corq_count(e, CORQ_R_TCP_TW_EVICTED);
		e->stats.tw_evicted++;
		corq_record_free(e, e->rec_list[CORQ_RC_TIME_WAIT].head);
		break;
	case CORQ_REC_FIN_WAIT2:
		corq_count(e, CORQ_R_TCP_FW2_EVICTED);
		corq_record_free(e, first_fin_wait2(e));
		break;
	default:
		corq_half_open_evict(e, CORQ_MAX_LISTENERS);
		break;
	}
}

/*
 * Records freed in this turn come back in the next one, so the pool can be short although every
 * kind keeps its bound: then there is none this time.
 */
uint32_t
corq_record_new(struct corq_engine *e, enum corq_record_kind kind)
{
	struct corq_record *r;
	uint32_t idx;

	if (e->rec_n[kind] >= e->rec_max[kind])
		corq_record_evict(e, kind);
	idx = corq_pool_alloc(&e->records);
	if (idx == CORQ_NONE)
		return CORQ_NONE;
	r = corq_record_at(e, idx);
	memset(r, 0, sizeof(*r));
	corq_dlink_init(&r->link);
	r->class = CORQ_RC_NONE;
	corq_record_set_kind(e, r, kind);
	return idx;
}

void
corq_record_key(const struct corq_engine *e, const struct corq_record *r, struct corq_key *key)
{
	*key = (struct corq_key){.raddr = r->raddr,
		.laddr = corq_engine_laddr_at(e, r->laddr_idx),
		.rport = r->rport,
		.lport = r->lport};
}

static uint64_t
record_hash(const struct corq_engine *e, uint32_t rec)
{
	struct corq_key key;

	if (CORQ_LIKELY((rec | CORQ_VAL_RECORD) == e->in_val))
		return e->in_hash;
	corq_record_key(e, corq_pool_at(&e->records, rec), &key);
	return corq_engine_hash(e, &key);
}

void
corq_record_free(struct corq_engine *e, uint32_t rec)
{
	struct corq_record *r = corq_record_at(e, rec);

	unlink_record(e, rec);
	if (corq_table_remove(&e->table, record_hash(e, rec), rec | CORQ_VAL_RECORD))
		e->changes++;
	if (r->kind == CORQ_REC_HALF_OPEN && r->listener < CORQ_MAX_LISTENERS)
		e->listeners[r->listener].n_half_open--;
	if (r->flags & CORQ_RF_ACTIVE) {
		corq_isn_leave_off(&e->isn, r->ts_off, r->snd_nxt, e->now_ns);
		corq_ports_give(&e->ports, &r->raddr, r->rport, r->laddr_idx, true);
	}
	corq_record_set_kind(e, r, CORQ_REC_FREE);
	corq_pool_free_deferred(&e->records, rec);
}

/* ---- time ---- */

/* A record's time is over. */
static void
expire(struct corq_engine *e, uint32_t rec)
{
	switch (corq_record_at(e, rec)->kind) {
	case CORQ_REC_HALF_OPEN:
		corq_half_open_timer(e, rec);
		return;
	case CORQ_REC_TIME_WAIT:
		e->stats.tw_expired++;
		break;
	default:
		corq_count(e, CORQ_R_TCP_FW2_EXPIRED);
	}
	corq_record_free(e, rec);
}

/* The records of the list's front that are due, at most `max`; their lines are on the way. */
static uint32_t
gather_due(struct corq_engine *e, const struct corq_dlist *l, uint32_t *rec, uint64_t *hash,
	uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = l->head, next; i != CORQ_NONE && n < max; i = next) {
		const struct corq_record *r = corq_record_at(e, i);

		if (corq_seq_gt(r->deadline, e->now_tick))
			break;
		next = r->link.next;
		if (next != CORQ_NONE)
			CORQ_PREFETCH_W(corq_record_at(e, next));
		rec[n] = i;
		hash[n++] = fetch_tuple(e, r);
	}
	return n;
}

static uint32_t
expire_list(struct corq_engine *e, struct corq_dlist *l, uint32_t budget)
{
	uint32_t rec[EXPIRE_BATCH], n = 0, got;
	uint64_t hash[EXPIRE_BATCH];

	do {
		uint32_t want = CORQ_MIN(budget - n, EXPIRE_BATCH);

		got = gather_due(e, l, rec, hash, want);
		for (uint32_t i = 0; i < got; i++) {
			e->in_val = rec[i] | CORQ_VAL_RECORD;
			e->in_hash = hash[i];
			expire(e, rec[i]);
		}
		e->in_val = CORQ_NONE;
		n += got;
	} while (got == EXPIRE_BATCH && n < budget);
	return n;
}

uint32_t
corq_record_timers(struct corq_engine *e, uint32_t budget)
{
	uint32_t n = 0;

	for (unsigned cls = 0; cls < CORQ_RC_COUNT; cls++)
		if (e->rec_list[cls].head != CORQ_NONE)
			n += expire_list(e, &e->rec_list[cls], budget - n);
	return n;
}
