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

static void
keep_sample(struct ab_core *ab, const struct ab_slot *slot, uint64_t total_ns)
{
	struct ab_sample *sample;

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
	corq_hist_record(&ab->lat[AB_LAT_PROC], processing);
	corq_hist_record(&ab->lat[AB_LAT_TOTAL], total);
	keep_sample(ab, slot, total);
	if (bucket < AB_BUCKETS)
		ab->buckets[bucket]++;
	slot->counted = false;
}

void
slot_count_good(struct ab_core *ab, struct ab_slot *slot, uint64_t at)
{
	struct ab_run *run = ab->run;
	int64_t none = -1, body = (int64_t)slot->resp.body;

	ab->good++;
	ab->bytes_body += slot->resp.body;
	if (atomic_load_explicit(&run->document_length, memory_order_relaxed) < 0)
		atomic_compare_exchange_strong(&run->document_length, &none, body);
	if (body != atomic_load_explicit(&run->document_length, memory_order_relaxed) &&
		!run->opts->any_length) {
		ab->bad++;
		ab->bad_length++;
	}
	count_done(ab, slot, at);
}

void
slot_count_bad(struct ab_core *ab, struct ab_slot *slot, uint64_t *kind)
{
	ab->bad++;
	(*kind)++;
	ab->bytes_body += slot->resp.body;
	count_done(ab, slot, corq_core_now(ab->core));
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

void
slot_abort(struct ab_core *ab, struct ab_slot *slot)
{
	struct corq_conn *conn = slot->conn;

	if (slot->state == SLOT_IDLE)
		return;
	if (slot->state == SLOT_WANT)
		slot_remove(ab, &ab->want, slot);
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

	ab->live--;
	ab->closed++;
	ab->resets += reason == -ECONNRESET;
	if (since != 0)
		corq_hist_record(&ab->lat[AB_LAT_CLOSE], corq_core_now(core) - since);
}

static const struct corq_ops closing_ops = {
	.on_close = closing_closed,
};
