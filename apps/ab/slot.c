/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.c - the life of one request: connect, write, read, finish, and what can go wrong in each.
 * Callbacks of the on-core API; the hook in gen.c opens connections, finish.c has the end. See
 * slot.h for the states.
 */
#include "ab/slot.h"

#include <errno.h>
#include <string.h>

#define LARGE_REQUEST     65536u       /* bytes; below, it is sent at once */
#define SYN_SENT_AGAIN_NS 900000000ull /* near the first SYN timeout of 1 s (RFC 6298 2.1) */

static const struct corq_ops client_ops;

static struct ab_core *
ab_of(const struct corq_core *core)
{
	struct ab_core *ab = app_core_of(core)->ab;

	ab_core_tick(ab, corq_core_now(core));
	return ab;
}

/* ---- connecting ---- */

int
slot_connect(struct ab_core *ab, struct ab_slot *slot, uint64_t now)
{
	struct corq_connect_opts opts = {
		.raddr = ab->run->target,
		.laddr = ab->run->local,
		.rport = ab->run->port,
		.ops = &client_ops,
		.user = slot,
	};
	int rc = corq_core_connect(ab->core, &opts, &slot->conn);

	if (rc != 0)
		return rc;
	slot_remove(ab, &ab->want, slot);
	slot->state = SLOT_SYN;
	slot->t_base = now;
	slot->off_us = (uint32_t)(ab->off_ns / 1000);
	slot->connect_us = 0;
	slot->wait_us = 0;
	slot->reused = false;
	slot->got = false;
	slot->fresh = true;
	ab_resp_start(&slot->resp);
	slot_push(ab, &ab->half_open, slot);
	ab->fresh++;
	ab->opened++;
	ab->live++;
	if (!slot->counted)
		ab->started++;
	slot->counted = true;
	if (ab->first_start == 0)
		ab->first_start = now;
	corq_conn_set_deadline(
		ab->core, slot->conn, now + (uint64_t)ab->run->opts->timeout_s * 1000000000ull);
	return 0;
}

static void
leave_half_open(struct ab_core *ab, struct ab_slot *slot)
{
	if (slot->fresh) {
		slot_remove(ab, &ab->half_open, slot);
		ab->fresh--;
	} else {
		ab->stale--;
	}
	slot->fresh = false;
}

static void
on_open(struct corq_core *core, struct corq_conn *conn)
{
	struct ab_core *ab = ab_of(core);
	struct ab_slot *slot = corq_conn_user(conn);
	uint64_t now = corq_core_now(core), took = now - slot->t_base;

	if (slot->fresh && ab->open_limit < (ab->run->opts->half_open_max + 1) / 2 && ab->good != 0)
		ab->open_limit++;
	leave_half_open(ab, slot);
	if (took < SYN_SENT_AGAIN_NS)
		ab->connect_ewma = ab->connect_ewma == 0 ? took : (7 * ab->connect_ewma + took) / 8;
	corq_hist_record(&ab->lat[AB_LAT_CONNECT], took);
	ab_core_late(ab, 0, took, slot->off_us);
	slot->connect_us = ab_sample_us(took);
	slot_send(ab, slot, now);
}

void
slot_send(struct ab_core *ab, struct ab_slot *slot, uint64_t now)
{
	struct ab_run *run = ab->run;
	ssize_t n;

	n = corq_conn_write_mem(
		ab->core, slot->conn, run->request_mem, run->request, run->request_len, 0, 0);
	if (n < 0 && n != -ENOBUFS) {
		/* The peer has reset it: on_close tells. */
		ab->write_errors++;
		slot->state = SLOT_BUSY;
		return;
	}
	if (n < 0) {
		if (slot->state != SLOT_RESEND)
			slot_push(ab, &ab->resend, slot);
		slot->state = SLOT_RESEND;
		return;
	}
	if (slot->state == SLOT_RESEND)
		slot_remove(ab, &ab->resend, slot);
	slot->state = SLOT_BUSY;
	slot->t_base = now;
	slot->off_us = (uint32_t)(ab->off_ns / 1000);
	ab->bytes_posted += (uint64_t)n;
}

/* ---- reading ---- */

/* As ab: the word after the first "Server:". */
static void
take_first_header(struct ab_core *ab)
{
	static const char field[] = "\nserver:";
	struct ab_run *run = ab->run;
	const char *p = ab->resp.header, *end = p + ab->resp.header_len;
	size_t n = 0, field_len = sizeof(field) - 1;
	int free_yet = 0;

	if (!atomic_compare_exchange_strong(&run->first_header, &free_yet, 1))
		return;
	while (end - p >= (ptrdiff_t)field_len && strncasecmp(p, field, field_len) != 0)
		p++;
	p = end - p >= (ptrdiff_t)field_len ? p + field_len : end;
	while (p < end && *p == ' ')
		p++;
	while (p < end && (unsigned char)*p > ' ' && n < sizeof(run->server_software) - 1)
		run->server_software[n++] = *p++;
	run->server_software[n] = '\0';
	atomic_store(&run->first_header, 2);
}

static void
saw_header(struct ab_core *ab, const struct ab_slot *slot)
{
	struct ab_run *run = ab->run;

	if (atomic_load_explicit(&run->first_header, memory_order_relaxed) == 0 &&
		ab->resp.header != NULL)
		take_first_header(ab);
	if (slot->resp.status / 100 != 2)
		ab->not_2xx++;
	if (run->opts->verbosity < 2)
		return;
	if (ab->resp.header != NULL)
		fprintf(run->text, "LOG: header received:\n%.*s\n", (int)ab->resp.header_len,
			ab->resp.header);
	if (slot->resp.status / 100 != 2)
		fprintf(run->text, "WARNING: Response code not 2xx (%u)\n", slot->resp.status);
	else if (run->opts->verbosity >= 3)
		fprintf(run->text, "LOG: Response code = %u\n", slot->resp.status);
}

/* Feeds what is there and takes it; returns how many bytes. */
static size_t
read_all(struct ab_core *ab, struct ab_slot *slot, struct corq_conn *conn)
{
	llhttp_t *parser = &ab->parsers[slot - ab->slots];
	struct iovec iov[16];
	size_t sum = 0, part;
	int n;

	while ((n = corq_conn_peek(ab->core, conn, iov, 16)) > 0) {
		part = 0;
		for (int i = 0; i < n; i++) {
			bool before = ab_resp_headed(&slot->resp);

			ab_resp_feed(
				&ab->resp, &slot->resp, parser, iov[i].iov_base, iov[i].iov_len);
			if (!before && ab_resp_headed(&slot->resp))
				saw_header(ab, slot);
			part += iov[i].iov_len;
		}
		corq_conn_consume(ab->core, conn, part);
		sum += part;
	}
	return sum;
}

static void
finish_kept(struct ab_core *ab, struct ab_slot *slot, uint64_t now)
{
	ab->kept_alive++;
	slot_count_good(ab, slot, now);
	if (!slot_keep(ab, slot))
		return;
	ab->started++;
	slot->counted = true;
	slot->connect_us = 0;
	slot->wait_us = 0;
	slot->reused = true;
	slot->got = false;
	ab_resp_start(&slot->resp);
	slot->t_base = now;
	slot_send(ab, slot, now);
}

static void
complete(struct ab_core *ab, struct ab_slot *slot, uint64_t now)
{
	enum corq_close_policy close = ab->run->opts->device.close;

	corq_hist_record(&ab->lat[AB_LAT_LAST], now - slot->t_base);
	if (slot->resp.keep && !slot->resp.extra) {
		finish_kept(ab, slot, now);
	} else if (close == CORQ_CLOSE_FIRST || close == CORQ_CLOSE_RST) {
		slot_count_good(ab, slot, now);
		slot_close(ab, slot);
		slot_next(ab, slot);
	} else {
		slot->state = SLOT_TAIL;
		slot_push(ab, &ab->tail, slot);
	}
}

static void
on_data(struct corq_core *core, struct corq_conn *conn)
{
	struct ab_core *ab = ab_of(core);
	struct ab_slot *slot = corq_conn_user(conn);
	uint64_t now = corq_core_now(core);

	if (slot->state == SLOT_KEPT) { /* bytes that nobody asked for */
		slot_close_kept(ab, slot);
		return;
	}
	if (!slot->got) {
		slot->got = true;
		slot->wait_us = ab_sample_us(now - slot->t_base);
		corq_hist_record(&ab->lat[AB_LAT_FIRST], now - slot->t_base);
		ab_core_late(ab, 1, now - slot->t_base, slot->off_us);
	} else {
		ab_core_late(ab, 2, now - slot->t_last, slot->off_us);
	}
	ab->last_rx = now;
	slot->t_last = now;
	ab->bytes_read += read_all(ab, slot, conn);
	if (slot->resp.mode == AB_RESP_DONE && slot->state == SLOT_BUSY) {
		complete(ab, slot, now);
	} else if (slot->resp.mode == AB_RESP_GARBAGE && slot->state == SLOT_BUSY) {
		/* As ab it is read until the server closes, but not for long. */
		slot->state = SLOT_TAIL;
		slot_push(ab, &ab->tail, slot);
	}
}

/* ---- the other side ends it ---- */

static void
leave_lists(struct ab_core *ab, struct ab_slot *slot)
{
	if (slot->state == SLOT_TAIL)
		slot_remove(ab, &ab->tail, slot);
	else if (slot->state == SLOT_RESEND)
		slot_remove(ab, &ab->resend, slot);
	else if (slot->state == SLOT_SYN)
		leave_half_open(ab, slot);
}

/* An idle keep-alive connection was closed or reset before it read our request: ask again. */
static void
retry(struct ab_core *ab, struct ab_slot *slot)
{
	ab->idle_closed++;
	slot->state = SLOT_WANT;
	slot_push(ab, &ab->want, slot);
}

static void
on_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	struct ab_core *ab = ab_of(core);
	struct ab_slot *slot = corq_conn_user(conn);
	uint64_t now = corq_core_now(core);
	bool idle = slot->reused && !slot->got;

	if (slot->state == SLOT_KEPT) {
		slot_close_kept(ab, slot);
		return;
	}
	leave_lists(ab, slot);
	slot_close(ab, slot);
	if (idle) {
		retry(ab, slot);
		return;
	}
	if (slot->resp.mode == AB_RESP_TO_END)
		corq_hist_record(&ab->lat[AB_LAT_LAST], now - slot->t_base);
	ab->cut_short +=
		slot->resp.mode != AB_RESP_GARBAGE && !ab_resp_complete_at_end(&slot->resp);
	slot_count_good(ab, slot, now);
	slot_next(ab, slot);
}

static void
connect_failed(struct ab_core *ab, struct ab_slot *slot, int reason)
{
	if (!ab->run->opts->recv_ok || (ab->good == 0 && ab->bad_connect >= 10)) {
		ab_run_stop(ab->run, AB_STOP_CONNECT, reason == 0 ? ECONNABORTED : -reason);
		slot_abort(ab, slot);
		return;
	}
	slot_count_bad(ab, slot, &ab->bad_connect);
	slot_next(ab, slot);
}

static void
on_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct ab_core *ab = ab_of(core);
	struct ab_slot *slot = corq_conn_user(conn);

	ab->live--;
	ab->closed++;
	slot->conn = NULL;
	ab->resets += reason == -ECONNRESET;
	ab->refused += reason == -ECONNREFUSED;
	if (slot->state == SLOT_KEPT) {
		slot->state = SLOT_IDLE;
		ab->kept--;
		return;
	}
	leave_lists(ab, slot);
	if (atomic_load_explicit(&ab->run->stop, memory_order_relaxed) != AB_RUNNING) {
		/* We end it: a second signal resets all that is left at once. */
		slot_abort(ab, slot);
		return;
	}
	if (slot->state == SLOT_SYN) {
		connect_failed(ab, slot, reason);
		return;
	}
	if (slot->reused && !slot->got) {
		retry(ab, slot);
		return;
	}
	if (!ab->run->opts->recv_ok) {
		/* ab ends here; this request is not complete. */
		ab_run_stop(ab->run, AB_STOP_RECEIVE, reason == 0 ? ECONNABORTED : -reason);
		slot_abort(ab, slot);
		return;
	}
	if (ab->run->opts->verbosity >= 1)
		app_error("apr_socket_recv: %s (%d)", strerror(-reason), -reason);
	slot_count_reset(ab, slot);
	slot_next(ab, slot);
}

/*
 * Since when the server has been silent: no byte came, and, while a large request is on its way,
 * none of ours was acknowledged since the deadline fired before.
 */
static uint64_t
silent_since(const struct ab_core *ab, struct ab_slot *slot, uint64_t now)
{
	uint64_t left;

	if (slot->got)
		return slot->t_last;
	if (slot->state != SLOT_BUSY || ab->run->request_len <= LARGE_REQUEST)
		return slot->t_base;
	left = corq_conn_unsent(slot->conn);
	if (left >= slot->t_last)
		return slot->t_base;
	slot->t_last = left;
	return now;
}

static void
on_timer(struct corq_core *core, struct corq_conn *conn)
{
	struct ab_core *ab = ab_of(core);
	struct ab_slot *slot = corq_conn_user(conn);
	uint64_t now = corq_core_now(core), since;
	uint64_t wait = (uint64_t)ab->run->opts->timeout_s * 1000000000ull;

	if (slot->state == SLOT_LINGER) {
		ab->not_closed += slot->resp.mode != AB_RESP_GARBAGE;
		slot_count_good(ab, slot, slot->t_last);
		slot_close(ab, slot);
		slot_next(ab, slot);
		return;
	}
	if (slot->state == SLOT_KEPT)
		return;
	/* One deadline serves all requests of a connection; it moves on when it fires. */
	since = silent_since(ab, slot, now);
	if (now < since + wait) {
		corq_conn_set_deadline(core, conn, since + wait);
		return;
	}
	leave_lists(ab, slot);
	ab->timeouts++;
	slot_count_bad(ab, slot, slot->state == SLOT_SYN ? &ab->bad_connect : &ab->bad_receive);
	slot_drop(ab, slot);
	/* The others about as long: as ab, the run ends. */
	if (now + wait / 16 >= ab->last_rx + wait)
		ab_run_stop(ab->run, AB_STOP_SILENT, ETIMEDOUT);
	slot_next(ab, slot);
}

static const struct corq_ops client_ops = {
	.on_open = on_open,
	.on_data = on_data,
	.on_peer_fin = on_peer_fin,
	.on_timer = on_timer,
	.on_close = on_close,
};
