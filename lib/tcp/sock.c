/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sock.c - what a socket's calls mean on a connection: data before the error, the error once, then
 * the end; and the readiness that poll shows. The core's thread only.
 *
 * A held connection (corq_conn_hold) that ends stays CLOSED, out of the table, with its received
 * bytes and its error, until the program closes it; c->err is the error that nobody has taken.
 *
 *   held, ended by     recv                            send                       close's on_close
 *   RST, time-out      bytes, then errno once, then 0  errno once, then EPIPE     0
 *   both FINs          bytes, then 0                   EPIPE                      0
 *   RDWR, peer data    bytes, then 0                   EPIPE                      0
 */
#include "tcp/internal.h"
#include "tcp/rcvq.h"

#include <errno.h>

/* Of a connection that is not held the error goes to on_close. */
int
corq_tcp_take_error(struct corq_conn *c)
{
	int err = c->held ? c->err : 0;

	if (err) {
		c->err = 0;
		c->failed = 1;
	}
	return -err;
}

static bool
ended(const struct corq_conn *c)
{
	return c->state == CORQ_CLOSED || c->state == CORQ_TIME_WAIT;
}

/* Whether no byte will come beyond those that are queued. */
static bool
read_is_over(const struct corq_conn *c)
{
	return (c->flags & CORQ_CF_PEER_FIN) || c->rd_shut || ended(c);
}

ssize_t
corq_tcp_recv(struct corq_engine *e, struct corq_conn *c, void *buf, size_t len)
{
	size_t done = 0;
	int err;

	while (done < len && c->rcvq_bytes) {
		struct iovec iov;
		size_t n;

		corq_rcvq_peek(e, c, &iov, 1);
		n = CORQ_MIN(iov.iov_len, len - done);
		memcpy((uint8_t *)buf + done, iov.iov_base, n);
		corq_tcp_consume(e, c, n);
		done += n;
	}
	if (done || len == 0)
		return (ssize_t)done;
	err = corq_tcp_take_error(c);
	if (err)
		return err;
	return read_is_over(c) ? 0 : -EAGAIN;
}

ssize_t
corq_tcp_send(
	struct corq_engine *e, struct corq_conn *c, const void *data, size_t len, unsigned flags)
{
	int err = corq_tcp_take_error(c);
	ssize_t n;

	if (err)
		return err;
	n = corq_tcp_write(e, c, data, len, flags);
	return n == 0 && len ? -EAGAIN : n;
}

unsigned
corq_tcp_ready(const struct corq_engine *e, const struct corq_conn *c)
{
	bool wr_over = (c->flags & CORQ_CF_FIN_QUEUED) || ended(c), rd_over = read_is_over(c);
	unsigned ready = 0;

	if (c->state == CORQ_SYN_SENT || c->state == CORQ_SYN_RCVD)
		return 0;
	if (c->rcvq_bytes || rd_over)
		ready |= CORQ_READY_IN;
	if (wr_over || corq_send_room(e, c))
		ready |= CORQ_READY_OUT;
	if (rd_over)
		ready |= CORQ_READY_RDHUP;
	if (rd_over && wr_over)
		ready |= CORQ_READY_HUP;
	if (c->held && c->err)
		ready |= CORQ_READY_ERR;
	return ready;
}
