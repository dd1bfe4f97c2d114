/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * finish.c - the end of a request: counting it, and letting its connection go. On the core.
 *
 * A connection leaves its slot as soon as the request is over: then its callbacks are
 * `closing_ops` and its user word the time of that moment, and the slot goes on without it.
 */
#include "ab/slot.h"

#include <errno.h>

static const struct corq_ops closing_ops;

/* For -g: its line, if they are kept. */
static void
keep_record(struct ab_core *ab, const struct ab_slot *slot, uint64_t at, uint64_t total_ns)
{
	struct ab_record *record;

	if (ab->record_count == ab->record_room)
		return;
	record = &ab->records[ab->record_count++];
	record->start_us = (uint64_t)((int64_t)(at - total_ns) + ab->wall_ns) / 1000;
	record->connect_us = slot->connect_us;
	record->total_us = ab_sample_us(total_ns);
	record->wait_us = slot->wait_us;
}

static void
keep_sample(struct ab_core *ab, const struct ab_slot *slot, uint64_t at, uint64_t total_ns)
{
	struct ab_sample *sample;

	keep_record(ab, slot, at, total_ns);
	if (ab->sample_count == ab->sample_room)
		return;
	sample = &ab->samples[ab->sample_count++];
	sample->connect_us = slot->connect_us;
	sample->total_us = ab_sample_us(total_ns);
	sample->wait_us = slot->wait_us;
}

static void
count_done(struct ab_core *ab, struct ab_slot *slot, uint64_t at)
{
	uint64_t processing = at - slot->t_base;
	uint64_t total = processing + (uint64_t)slot->connect_us * 1000;
	uint64_t bucket = (at - ab->first_start) / AB_BUCKET_NS;

	__atomic_store_n(&ab->done, ab->done + 1, __ATOMIC_RELAXED);
	ab->last_done = at;
	ab->bytes_body += slot->resp.body;
	ab->garbage += slot->resp.mode == AB_RESP_GARBAGE;
	corq_hist_record(&ab->lat[AB_LAT_PROC], processing);
	corq_hist_record(&ab->lat[AB_LAT_TOTAL], total);
	keep_sample(ab, slot, at, total);
	if (bucket < AB_BUCKETS)
		ab->buckets[bucket]++;
	slot->counted = false;
}

/* As ab: its length is compared with that of the first one that ended. */
static void
compare_length(struct ab_core *ab, const struct ab_slot *slot)
{
	int64_t want = atomic_load_explicit(&ab->run->document_length, memory_order_relaxed);

	if (ab->run->opts->any_length || want < 0 || (int64_t)slot->resp.body == want)
		return;
	ab->bad++;
	ab->bad_length++;
}

void
slot_count_good(struct ab_core *ab, struct ab_slot *slot, uint64_t at)
{
	struct ab_run *run = ab->run;
	int64_t none = -1;

	ab->good++;
	if (atomic_load_explicit(&run->document_length, memory_order_relaxed) < 0)
		atomic_compare_exchange_strong(
			&run->document_length, &none, (int64_t)slot->resp.body);
	compare_length(ab, slot);
	count_done(ab, slot, at);
}

void
slot_count_bad(struct ab_core *ab, struct ab_slot *slot, uint64_t *kind)
{
	ab->bad++;
	(*kind)++;
	count_done(ab, slot, corq_core_now(ab->core));
}

void
slot_count_reset(struct ab_core *ab, struct ab_slot *slot)
{
	ab->bad++;
	ab->bad_except++;
	compare_length(ab, slot);
	slot_count_bad(ab, slot, &ab->bad_receive);
}

void
slot_let_go(struct ab_core *ab, struct ab_slot *slot, uint64_t since)
{
	struct corq_conn *conn = slot->conn;

	corq_conn_set_ops(conn, ab->core, &closing_ops);
	corq_conn_set_user(conn, (void *)(uintptr_t)since);
	slot->conn = NULL;
}

void
slot_close(struct ab_core *ab, struct ab_slot *slot)
{
	struct corq_conn *conn = slot->conn;
	uint64_t now = corq_core_now(ab->core);

	if (ab->run->opts->device.close == CORQ_CLOSE_RST) {
		slot_let_go(ab, slot, 0);
		corq_conn_abort(ab->core, conn);
	} else {
		slot_let_go(ab, slot, now);
		corq_conn_close(ab->core, conn);
	}
}

void
slot_drop(struct ab_core *ab, struct ab_slot *slot)
{
	struct corq_conn *conn = slot->conn;
	bool empty = !slot->got;

	slot_let_go(ab, slot, 0);
	if (empty && ab->run->opts->device.close != CORQ_CLOSE_ABORT_IF_EMPTY &&
		ab->run->opts->device.close != CORQ_CLOSE_RST && slot->state != SLOT_SYN)
		corq_conn_close(ab->core, conn);
	else
		corq_conn_abort(ab->core, conn);
}

void
slot_next(struct ab_core *ab, struct ab_slot *slot)
{
	if (ab->finishing || ab->claimed == ab->quota) {
		slot->state = SLOT_IDLE;
		ab->active--;
		return;
	}
	ab->claimed++;
	slot->state = SLOT_WANT;
	slot_push(ab, &ab->want, slot);
}

bool
slot_keep(struct ab_core *ab, struct ab_slot *slot)
{
	if (!ab->finishing && ab->claimed != ab->quota) {
		ab->claimed++;
		return true;
	}
	slot->state = SLOT_KEPT;
	corq_conn_set_deadline(ab->core, slot->conn, 0);
	ab->active--;
	ab->kept++;
	return false;
}

void
slot_close_kept(struct ab_core *ab, struct ab_slot *slot)
{
	slot_close(ab, slot);
	slot->state = SLOT_IDLE;
	ab->kept--;
}

void
slot_abort(struct ab_core *ab, struct ab_slot *slot)
{
	struct corq_conn *conn = slot->conn;

	if (slot->state == SLOT_IDLE || slot->state == SLOT_KEPT)
		return; /* the latter is closed in order, like those that were done in time */
	if (slot->counted)
		ab->aborted_requests++;
	slot->counted = false;
	slot->state = SLOT_IDLE;
	ab->active--;
	if (conn != NULL) {
		slot_let_go(ab, slot, 0);
		corq_conn_abort(ab->core, conn);
	}
}

static void
closing_closed(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct ab_core *ab = app_core_of(core)->ab;
	uint64_t since = (uint64_t)(uintptr_t)corq_conn_user(conn);

	ab_core_tick(ab, corq_core_now(core));
	ab->live--;
	ab->closed++;
	ab->resets += reason == -ECONNRESET;
	if (since != 0)
		corq_hist_record(&ab->lat[AB_LAT_CLOSE], corq_core_now(core) - since);
}

static const struct corq_ops closing_ops = {
	.on_close = closing_closed,
};
