/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadline.c - the one deadline of a connection, and what it means when it passes. On the core.
 *
 *   state                      deadline                          then
 *   no request under way       idle time (30 s)                  closed
 *   header came in part        header time (10 s) from its       408, then as after any error
 *                              first byte
 *   body being read            looked at each header time        408 if it came too slowly
 *   answer not acknowledged    looked at each quarter of the     reset when too little was taken
 *                              send time (60 s)                  at all looks of one send time
 *   ENDING                     2 s (after-peer: idle time)       closed; while an answer is not
 *                                                                acknowledged, as above
 *   ENDING with RESET          idle time                         reset, acknowledged or not
 *
 * A short answer that is not taken is noticed when the idle time has passed: all of it is 128 KiB
 * at most, and a deadline for each would cost every request. So nobody holds a connection longer
 * than idle time, send time and one look together. Too slowly is less than the minimum rate, and
 * less than one byte. The deadline of an idle time is not moved by each request: when it passes it
 * is set to what is left, within a second.
 */
#include "httpd/state.h"

/* What must have passed in that time. */
static uint64_t
least(const struct httpd_core *hc, uint64_t ns)
{
	uint64_t bytes = hc->server->opts.min_rate * (ns / 1000000) / 1000;

	return bytes != 0 ? bytes : 1;
}

static bool
takes_enough(const struct httpd_core *hc, const struct httpd_extra *extra, uint32_t una,
	uint64_t unsent, uint64_t ns)
{
	uint64_t need = httpd_smaller(least(hc, ns), extra->seen_unsent);
	uint64_t taken = una - extra->seen_una;

	return taken >= need || extra->seen_unsent >= unsent + need;
}

/* Bytes of ours are not acknowledged: does the peer take them? */
static void
look_at_reader(struct httpd_core *hc, struct corq_conn *conn, uint64_t wait)
{
	struct httpd_extra *extra = httpd_use(hc, conn, EXTRA_WATCHED);
	uint64_t now = corq_core_now(hc->core), unsent = corq_conn_unsent(conn);
	struct corq_conn_info info;

	if (extra == NULL) {
		corq_conn_abort(hc->core, conn);
		return;
	}
	corq_conn_get_info(hc->core, conn, &info);
	if (extra->looked_ns == 0 ||
		takes_enough(hc, extra, info.snd_una, unsent, now - extra->looked_ns)) {
		extra->good_ns = now;
	} else if (now - extra->good_ns >= hc->server->send_ns) {
		hc->counts.slow_readers++;
		corq_conn_abort(hc->core, conn);
		return;
	}
	extra->looked_ns = now;
	extra->seen_una = info.snd_una;
	extra->seen_unsent = unsent;
	corq_conn_set_deadline(hc->core, conn, now + wait);
}

static void
look_at_sender(struct httpd_core *hc, struct corq_conn *conn)
{
	struct httpd_extra *extra = httpd_extra_of(conn);
	uint64_t ns = hc->server->header_ns, bytes = extra->body.bytes;

	if (bytes - extra->body_seen < least(hc, ns)) {
		hc->counts.slow_senders++;
		httpd_refuse(hc, conn, 408);
		return;
	}
	extra->body_seen = bytes;
	corq_conn_set_deadline(hc->core, conn, corq_core_now(hc->core) + ns);
}

static void
end_time(struct httpd_core *hc, struct corq_conn *conn)
{
	httpd_drop_input(hc, conn);
	if (corq_conn_unsent(conn) != 0)
		look_at_reader(hc, conn, httpd_smaller(HTTPD_LINGER_NS, hc->server->send_ns / 4));
	else
		corq_conn_close(hc->core, conn);
}

static void
idle_time(struct httpd_core *hc, struct corq_conn *conn, uint64_t word)
{
	uint64_t now = corq_core_now(hc->core), since = httpd_since(word, now);

	if (since < hc->server->idle_ns) {
		corq_conn_set_deadline(
			hc->core, conn, now + HTTPD_SECOND_NS + hc->server->idle_ns - since);
		return;
	}
	hc->counts.idle_closed++;
	httpd_end_quiet(hc, conn);
}

void
httpd_timer(struct corq_core *core, struct corq_conn *conn)
{
	struct httpd_core *hc = httpd_core_of(core);
	uint64_t word = httpd_word(conn);

	if (corq_conn_unsent(conn) == 0 && httpd_uses(conn, EXTRA_WATCHED)) {
		/* Only now is it idle: a long answer took its time. */
		word = httpd_stamp(word, corq_core_now(core));
		httpd_set_word(conn, word);
		httpd_extra_of(conn)->looked_ns = 0;
		httpd_unuse(hc, conn, EXTRA_WATCHED);
	}
	if ((word & WORD_RESET) != 0) {
		corq_conn_abort(core, conn);
	} else if ((word & WORD_ENDING) != 0) {
		end_time(hc, conn);
	} else if (httpd_uses(conn, EXTRA_HEADER)) {
		hc->counts.header_late++;
		httpd_refuse(hc, conn, 408);
	} else if (httpd_uses(conn, EXTRA_BODY)) {
		look_at_sender(hc, conn);
	} else if (corq_conn_unsent(conn) != 0) {
		look_at_reader(hc, conn, hc->server->send_ns / 4);
	} else {
		idle_time(hc, conn, word);
	}
}
