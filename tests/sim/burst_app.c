/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * burst_app.c - the programs on the twin cores. What one does is a function of the remote port
 * alone, and all that it is told is noted, so that twins can be compared.
 */
#include "burst.h"

#include <errno.h>
#include <stdlib.h>

enum {
	EV_OPEN,
	EV_DATA,
	EV_SENT,
	EV_FIN,
	EV_TIMER,
	EV_CLOSE
};

static unsigned
habit(struct corq_core *core, const struct corq_conn_info *i)
{
	const struct burst_twin *t = corq_core_user(core);

	if (t->plain) /* what it does may not depend on how many turns there were */
		return i->rport & 1 ? 5 : 0;
	return i->rport & 7u;
}

static struct burst_event *
note(struct corq_core *core, struct corq_conn *conn, uint32_t type, struct corq_conn_info *i)
{
	struct burst_twin *t = corq_core_user(core);
	struct burst_event *e = &t->ev[CORQ_MIN(t->n_ev, BURST_EVENTS - 1u)];

	corq_conn_get_info(core, conn, i);
	*e = (struct burst_event){.type = type,
		.peer = i->raddr.b[15],
		.lport = i->lport,
		.rport = i->rport,
		.bytes = (uint32_t)corq_conn_readable(conn)};
	t->n_ev++;
	return e;
}

static struct burst_stream *
stream_of(struct burst_twin *t, const struct corq_conn_info *i)
{
	struct burst_stream *s = t->stream;

	for (; s < t->stream + t->n_stream; s++)
		if (s->peer == i->raddr.b[15] && s->lport == i->lport && s->rport == i->rport)
			return s;
	if (t->n_stream == BURST_STREAMS)
		abort();
	t->n_stream++;
	*s = (struct burst_stream){i->raddr.b[15], i->lport, i->rport, 0, 0};
	return s;
}

/* Reads all; the hash goes into the event and the tuple's stream. */
static void
read_all(struct corq_core *core, struct corq_conn *conn, struct burst_event *e,
	const struct corq_conn_info *i)
{
	struct burst_twin *t = corq_core_user(core);
	struct burst_stream *s = stream_of(t, i);
	uint32_t seq = i->rcv_nxt - i->peer_fin - i->readable_bytes;
	struct iovec iov[3];
	int n;

	while ((n = corq_conn_peek(core, conn, iov, 3)) > 0) {
		size_t len = 0;

		for (int k = 0; k < n; k++) {
			const uint8_t *p = iov[k].iov_base;

			for (size_t at = 0; at < iov[k].iov_len; at++, seq++) {
				t->bad_byte |= p[at] != burst_byte(i->rport, seq);
				s->hash = s->hash * 0x100000001b3ull + p[at] + 1;
			}
			len += iov[k].iov_len;
		}
		s->count += (uint32_t)len;
		corq_conn_consume(core, conn, len);
	}
	e->hash = s->hash;
}

void
burst_write(struct corq_core *core, struct corq_conn *conn, size_t len, unsigned flags)
{
	uint8_t buf[6000];

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7);
	corq_conn_write(core, conn, buf, len, flags);
}

static void
cb_open(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info i;

	note(core, conn, EV_OPEN, &i);
	switch (habit(core, &i)) {
	case 4:
		burst_write(core, conn, 6000, 0);
		break;
	case 6:
		corq_conn_shutdown(core, conn);
		break;
	case 7:
		corq_conn_set_cork(core, conn, true);
		burst_write(core, conn, 300, 0);
		break;
	}
}

static void
cb_data(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info i;
	struct burst_event *e = note(core, conn, EV_DATA, &i);

	if (habit(core, &i) == 1)
		return; /* never reads */
	read_all(core, conn, e, &i);
	if (habit(core, &i) == 3) {
		burst_write(core, conn, 500, 0);
		corq_conn_close(core, conn);
	}
}

static void
cb_sent(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info i;

	note(core, conn, EV_SENT, &i);
}

static void
cb_fin(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info i;

	note(core, conn, EV_FIN, &i);
	if (habit(core, &i) == 0)
		return; /* stays in CLOSE_WAIT */
	if (habit(core, &i) == 2)
		burst_write(core, conn, 100, CORQ_MORE);
	corq_conn_close(core, conn);
}

static void
cb_timer(struct corq_core *core, struct corq_conn *conn)
{
	struct corq_conn_info i;

	note(core, conn, EV_TIMER, &i);
	burst_write(core, conn, 10, 0);
}

static void
cb_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct corq_conn_info i;
	struct burst_event *e = note(core, conn, EV_CLOSE, &i);

	e->reason = (uint32_t)-reason;
	if (reason == -ECONNRESET && corq_conn_readable(conn) > 0)
		read_all(core, conn, e, &i);
}

const struct corq_ops burst_ops = {
	.on_open = cb_open,
	.on_data = cb_data,
	.on_sent = cb_sent,
	.on_peer_fin = cb_fin,
	.on_timer = cb_timer,
	.on_close = cb_close,
};
