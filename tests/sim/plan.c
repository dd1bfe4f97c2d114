/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - what a simulated end does: writes by copy, by borrowed memory and in place, changes its
 * options, reads at once, in parts or late, and ends in one of six ways.
 *
 * Borrowed pieces lie in slots of a registered arena. A slot is filled when it is lent and
 * scribbled over when its release comes: a byte sent after its release would be seen by the reader.
 */
#include "ep.h"

#include <errno.h>
#include <string.h>

/* ---- reading ---- */

static bool
check_bytes(struct sim_side *s, const struct sim_ep *ep, const uint8_t *p, size_t len, uint32_t off)
{
	uint8_t want[512];

	while (len > 0) {
		size_t n = CORQ_MIN(len, sizeof(want));

		sim_stream(ep->peer->key, off, want, n);
		for (size_t i = 0; i < n; i++)
			if (p[i] != want[i]) {
				sim_fail(s->w, "end %u: byte %zu of the stream is %#x, not %#x",
					ep->id, off + i, p[i], want[i]);
				return false;
			}
		p += n;
		off += (uint32_t)n;
		len -= n;
	}
	return true;
}

void
ep_take(struct sim_side *s, struct sim_ep *ep, uint32_t max)
{
	struct corq_conn *c = ep->conn;
	struct iovec iov[4];

	if (!ep->peer) {
		sim_fail(s->w, "end %u: bytes from nobody", ep->id);
		return;
	}
	while (max > 0 && corq_conn_readable(c) > 0) {
		size_t left = corq_conn_readable(c), seen = 0;
		int n = corq_conn_peek(
			s->tc.core, c, iov, 1 + (int)sim_below(&s->w->rand, CORQ_ARRAY_LEN(iov)));

		for (int i = 0; i < n; i++) {
			if (!check_bytes(s, ep, iov[i].iov_base, iov[i].iov_len,
				    ep->consumed + (uint32_t)seen))
				return;
			seen += iov[i].iov_len;
		}
		if (n <= 0 || seen == 0 || seen > left) {
			sim_fail(s->w, "end %u: peek shows %zu of %zu bytes", ep->id, seen, left);
			return;
		}
		seen = CORQ_MIN(seen, max);
		corq_conn_consume(s->tc.core, c, seen);
		if (corq_conn_readable(c) != left - seen)
			sim_fail(s->w, "end %u: %zu readable, %zu consumed, %zu left", ep->id, left,
				seen, corq_conn_readable(c));
		ep->consumed += (uint32_t)seen;
		s->w->bytes_read += seen;
		max -= (uint32_t)seen;
	}
	if (ep->consumed > ep->peer->written)
		sim_fail(s->w, "end %u: read %u bytes, only %u were written", ep->id, ep->consumed,
			ep->peer->written);
}

static void
go_read(struct sim_side *s, struct sim_ep *ep)
{
	uint64_t now = corq_core_now(s->tc.core);
	uint32_t n = (uint32_t)corq_conn_readable(ep->conn), max = n;

	if (n == 0)
		return;
	if (ep->read == SIM_READ_LATE && now < ep->opened_at_ns + ep->read_delay_ns) {
		ep->read_at_ns = ep->opened_at_ns + ep->read_delay_ns;
		return;
	}
	if (ep->read == SIM_READ_PARTS) {
		if (now < ep->read_at_ns)
			return;
		max = 1 + (uint32_t)sim_below(&s->w->rand, n);
		ep->read_at_ns = now + 1 + ep->read_delay_ns / 8;
	}
	ep_take(s, ep, max);
	if (corq_conn_readable(ep->conn) == 0)
		ep->read_at_ns = 0;
}

/* ---- writing ---- */

void
sim_mem_release(struct corq_core *core, void *arg, uint64_t cookie)
{
	struct sim_side *s = arg;
	struct sim_slot *slot = &s->slot[cookie % SIM_SLOTS];

	if (sim_side_of(core) != s || cookie >= SIM_SLOTS || !slot->out) {
		sim_fail(s->w, "release of piece %llu, which is not out",
			(unsigned long long)cookie);
		return;
	}
	slot->out = false;
	s->n_out--;
	slot->ep->loaned--;
	memset(s->arena + cookie * SIM_SLOT_BYTES, 0xdd, SIM_SLOT_BYTES);
}

/* -EAGAIN: no slot is free. */
static ssize_t
write_borrowed(struct sim_side *s, struct sim_ep *ep, uint32_t len, unsigned flags)
{
	struct corq_mem *mem = (struct corq_mem *)&s->tc.regions[s->region];
	uint32_t i = 0;
	ssize_t n;

	while (i < SIM_SLOTS && s->slot[i].out)
		i++;
	if (i == SIM_SLOTS || len > SIM_SLOT_BYTES)
		return -EAGAIN;
	sim_stream(ep->key, ep->written, s->arena + i * SIM_SLOT_BYTES, len);
	n = corq_conn_write_mem(
		s->tc.core, ep->conn, mem, s->arena + i * SIM_SLOT_BYTES, len, flags, i);
	if (n < 0)
		return n;
	s->slot[i] = (struct sim_slot){ep, true};
	s->n_out++;
	ep->loaned++;
	return n;
}

static ssize_t
write_in_place(struct sim_side *s, struct sim_ep *ep, uint32_t len, unsigned flags)
{
	size_t room = len;
	uint8_t *p = corq_conn_reserve(s->tc.core, ep->conn, &room);
	int rc;

	if (!p) {
		ep->came_short = true;
		return -EAGAIN;
	}
	if (room < len) {
		len = (uint32_t)room;
		flags &= ~(unsigned)CORQ_FIN;
	}
	sim_stream(ep->key, ep->written, p, len);
	rc = corq_conn_commit(s->tc.core, ep->conn, len, flags);
	return rc < 0 ? rc : (ssize_t)len;
}

static ssize_t
write_copied(struct sim_side *s, struct sim_ep *ep, uint32_t len, unsigned flags)
{
	static uint8_t buf[1 << 16]; /* rewritten by each call */

	len = CORQ_MIN(len, sizeof(buf));
	sim_stream(ep->key, ep->written, buf, len);
	return corq_conn_write(s->tc.core, ep->conn, buf, len, flags);
}

static void
fiddle(struct sim_side *s, struct sim_ep *ep)
{
	struct corq_rand *r = &s->w->rand;
	struct corq_conn_info info;

	if (!sim_chance(r, ep->fiddle))
		return;
	if (sim_below(r, 8) == 0) { /* a narrower path: what is sent again is cut anew */
		corq_conn_get_info(s->tc.core, ep->conn, &info);
		corq_tcp_set_mss(&s->tc.core->eng, ep->conn,
			(uint16_t)(info.mss_bytes / 2 + sim_below(r, info.mss_bytes / 2)));
	} else if (sim_below(r, 2))
		corq_conn_set_cork(s->tc.core, ep->conn, sim_below(r, 2));
	else
		corq_conn_set_nodelay(s->tc.core, ep->conn, sim_below(r, 2));
}

/* One write. True when the next may follow at once. */
static bool
write_piece(struct sim_side *s, struct sim_ep *ep)
{
	struct corq_rand *r = &s->w->rand;
	uint64_t now = corq_core_now(s->tc.core);
	uint32_t len = 1 + (uint32_t)sim_below(r, ep->piece_max), left = ep->total - ep->written;
	unsigned flags = sim_below(r, 4) == 0 ? CORQ_MORE : 0;
	uint64_t how = sim_below(r, 3);
	bool fin;
	ssize_t n;

	len = CORQ_MIN(CORQ_MIN(len, left), how == 1 ? SIM_SLOT_BYTES : 1u << 16);
	fin = ep->end == SIM_FIN_FLAG && len == left;
	flags |= fin ? CORQ_FIN : 0;
	n = how == 0   ? write_copied(s, ep, len, flags)
	    : how == 1 ? write_borrowed(s, ep, len, flags)
		       : write_in_place(s, ep, len, flags);
	if (n == -EAGAIN || n == -ENOBUFS) {
		ep->pace_at_ns = now + CORQ_NS_PER_MS + sim_below(r, 20 * CORQ_NS_PER_MS);
		return false;
	}
	if (n < 0 || n > (ssize_t)len) {
		ep_write_failed(s, ep, n);
		return false;
	}
	ep->written += (uint32_t)n;
	ep->wrote_in_turn = true;
	if (fin && n == (ssize_t)len)
		ep->fin_called = true;
	if (n < (ssize_t)len) {
		if (how == 0)
			ep->want_sent = true;
		else
			ep->pace_at_ns = now + CORQ_NS_PER_MS;
		return false;
	}
	if (ep->pace_ns)
		ep->pace_at_ns = now + 1 + sim_below(r, ep->pace_ns);
	return !ep->lockstep && !ep->pace_ns;
}

static void
go_write(struct sim_side *s, struct sim_ep *ep)
{
	uint64_t now = corq_core_now(s->tc.core);

	if (ep->written == ep->total || ep->want_sent || now < ep->pace_at_ns)
		return;
	if (ep->lockstep && corq_conn_unsent(ep->conn) > 0)
		return;
	ep->pace_at_ns = 0;
	while (ep->written < ep->total) {
		fiddle(s, ep);
		if (!write_piece(s, ep))
			break;
	}
}

/* ---- ending ---- */

void
ep_close(struct sim_side *s, struct sim_ep *ep, bool abort)
{
	ep->closed = true;
	ep->closed_unread = corq_conn_readable(ep->conn) > 0;
	ep->consumed_at_close = ep->consumed;
	sim_say(s->w, "end %u %c %s: wrote %u of %u, read %u, %zu unread", ep->id, 'A' + ep->side,
		abort ? "aborts" : "closes", ep->written, ep->total, ep->consumed,
		corq_conn_readable(ep->conn));
	if (abort) {
		ep->aborted = true;
		corq_conn_abort(s->tc.core, ep->conn);
	} else {
		ep->fin_called = true;
		ep->lingers = !ep->proxy && sim_below(&s->w->rand, 8) == 0;
		if (ep->lingers)
			corq_conn_close_linger(
				s->tc.core, ep->conn, 1 + sim_below(&s->w->rand, 5000));
		else
			corq_conn_close(s->tc.core, ep->conn);
	}
}

static void
go_shutdown(struct sim_side *s, struct sim_ep *ep)
{
	int rc;

	if (ep->fin_called)
		return;
	rc = corq_conn_shutdown(s->tc.core, ep->conn);
	if (rc != 0)
		ep_write_failed(s, ep, rc);
	ep->fin_called = rc == 0;
	if (rc == 0 && corq_conn_write(s->tc.core, ep->conn, "x", 1, 0) != -EPIPE)
		sim_fail(s->w, "end %u: wrote after shutdown", ep->id);
}

/* Bytes wait in `from` that `to` would read: it has read all that came. */
static bool
waits(const struct sim_ep *from, const struct sim_ep *to)
{
	return from->conn && to->conn && !to->closed && to->opened &&
	       corq_conn_unsent(from->conn) > 0 && corq_conn_readable(to->conn) == 0;
}

bool
ep_watch(struct sim_side *s, struct sim_ep *ep)
{
	/* Longer than a few retransmissions, or window probes, in a row may be lost. */
	uint64_t patience_ns = (s->w->p.clean ? 3 : 300) * CORQ_NS_PER_S;
	struct sim_ep *next = ep->via ? ep->via : ep->peer, *who;
	struct corq_conn_info i;

	if (s->w->p.tight || !next || (!waits(ep, next) && !waits(next, ep)))
		return false;
	who = waits(ep, next) ? ep : next;
	corq_conn_get_info(s->w->side[who->side].tc.core, who->conn, &i);
	if (ep->watched && ep->watch_una == i.snd_una)
		sim_fail(s->w,
			"end %u %s: %zu bytes wait and do not move; the other end would read",
			who->id, corq_state_name(i.state), corq_conn_unsent(who->conn));
	if (ep->watched)
		return false;
	ep->watched = true;
	ep->watch_una = i.snd_una;
	ep->life_at_ns = corq_core_now(s->tc.core) + patience_ns;
	return true;
}

static void
go_end(struct sim_side *s, struct sim_ep *ep)
{
	bool written = ep->written == ep->total;
	bool read = ep->peer_fin && corq_conn_readable(ep->conn) == 0;

	if (corq_core_now(s->tc.core) >= ep->life_at_ns && !ep_watch(s, ep)) {
		ep->given_up = true;
		ep_close(s, ep, sim_below(&s->w->rand, 2) == 0);
		return;
	}
	switch (ep->end) {
	case SIM_AFTER_PEER: /* reads on as before: what comes is still its */
		if (ep->opened && !ep->peer_fin)
			(void)corq_conn_shutdown_read(s->tc.core, ep->conn); /* may have ended */
		break;
	case SIM_SHUTDOWN:
	case SIM_FIN_FLAG:
		if (written)
			go_shutdown(s, ep);
		break;
	case SIM_CLOSE:
		if (written) {
			ep_close(s, ep, false);
			return;
		}
		break;
	case SIM_LINGER0:
		if (written && corq_conn_unsent(ep->conn) == 0) {
			corq_conn_set_linger0(ep->conn, true);
			ep->aborted = true;
			ep_close(s, ep, false);
			return;
		}
		break;
	case SIM_ABORT:
		if (ep->written + ep->consumed >= ep->abort_at) {
			ep_close(s, ep, true);
			return;
		}
		break;
	}
	if (written && read)
		ep_close(s, ep, false);
}

static uint64_t
sooner(uint64_t a, uint64_t b)
{
	return b != 0 && b < a ? b : a;
}

static void
set_deadline(struct sim_side *s, struct sim_ep *ep)
{
	uint64_t now = corq_core_now(s->tc.core), at = ep->life_at_ns;

	if (ep->pace_at_ns > now && ep->written < ep->total)
		at = sooner(at, ep->pace_at_ns);
	if (corq_conn_readable(ep->conn) > 0)
		at = sooner(at, ep->read_at_ns);
	at = CORQ_MAX(at, now + 1);
	if (at == ep->deadline_ns)
		return;
	ep->deadline_ns = at;
	corq_conn_set_deadline(s->tc.core, ep->conn, at);
}

void
ep_go(struct sim_side *s, struct sim_ep *ep)
{
	ep->wrote_in_turn = ep->wrote_turn == s->turn && ep->wrote_in_turn;
	ep->wrote_turn = s->turn;
	go_read(s, ep);
	go_write(s, ep);
	if (s->w->failed || !ep->conn)
		return;
	go_end(s, ep);
	if (!ep->closed)
		set_deadline(s, ep);
}

/* A write or shutdown was refused: right only when the connection has ended meanwhile. */
void
ep_write_failed(struct sim_side *s, struct sim_ep *ep, ssize_t rc)
{
	struct corq_conn_info info;

	corq_conn_get_info(s->tc.core, ep->conn, &info);
	if ((rc != -EPIPE && rc != -ENOTCONN) || info.state != CORQ_CLOSED)
		sim_fail(s->w, "end %u %s: write or shutdown says %zd", ep->id,
			corq_state_name(info.state), rc);
}
