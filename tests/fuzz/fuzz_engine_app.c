/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_engine_app.c - the program on the fuzzed core: what a callback or a step calls is read from
 * the input, and every contract of the API that can be broken from here is kept.
 */
#include "fuzz_engine.h"

#include <string.h>

static void
read_some(struct fuzz *z, struct corq_core *core, struct corq_conn *c, bool all)
{
	struct iovec iov[3];
	int n = corq_conn_peek(core, c, iov, 3);
	size_t len = 0, seen = 0;
	volatile uint8_t sum = 0;

	(void)z;
	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < iov[i].iov_len; k++)
			sum = (uint8_t)(sum + ((const uint8_t *)iov[i].iov_base)[k]);
		seen += iov[i].iov_len;
	}
	len = corq_conn_readable(c);
	if (seen > len)
		fuzz_die("peek shows more than there is");
	if (!all)
		len = (seen + 1) / 2;
	corq_conn_consume(core, c, len);
}

void
fuzz_release(struct corq_core *core, void *arg, uint64_t cookie)
{
	struct fuzz *z = arg;

	(void)core;
	if (cookie >= PIECES || !z->lent[cookie])
		fuzz_die("a piece was released twice");
	z->lent[cookie] = false;
	memset(z->arena + cookie * PIECE, 0xdd, PIECE);
}

static void
write_borrowed(
	struct fuzz *z, struct corq_core *core, struct corq_conn *c, uint32_t len, unsigned flags)
{
	for (unsigned i = 0; i < PIECES; i++) {
		if (z->lent[i])
			continue;
		memset(z->arena + i * PIECE, (int)i, PIECE);
		z->lent[i] = true; /* of no length: released in the call's turn */
		if (corq_conn_write_mem(core, c, (struct corq_mem *)z->tc.regions,
			    z->arena + i * PIECE, len % PIECE, flags, i) < 0)
			z->lent[i] = false;
		return;
	}
}

static void
write_in_place(struct corq_core *core, struct corq_conn *c, uint32_t want, unsigned flags)
{
	size_t len = want;
	uint8_t *p = corq_conn_reserve(core, c, &len);

	if (!p)
		return;
	len = CORQ_MIN(len, want);
	memset(p, 7, len);
	corq_conn_commit(core, c, len, flags);
}

struct corq_conn *
fuzz_conn(struct fuzz *z, uint8_t i)
{
	return corq_conn_of(z->tc.core, z->handle[i % HANDLES]);
}

void
fuzz_remember(struct fuzz *z, struct corq_conn *c)
{
	corq_h h = corq_conn_handle(z->tc.core, c);
	unsigned i = 0;

	while (i < HANDLES && z->handle[i] != h && corq_conn_of(z->tc.core, z->handle[i]))
		i++;
	if (i == HANDLES)
		fuzz_die("more connections than the pool has");
	z->handle[i] = h;
}

/* The program has closed it: no call may name it any more. */
static void
forget(struct fuzz *z, const struct corq_conn *c)
{
	for (unsigned i = 0; i < HANDLES; i++)
		if (corq_conn_of(z->tc.core, z->handle[i]) == c)
			z->handle[i] = CORQ_H_NONE;
}

/* The calls that mean what a socket's mean, and the ways to close. */
static void
act_socket(struct fuzz *z, struct corq_core *core, struct corq_conn *c)
{
	uint8_t what = fuzz_u8(z), buf[100];

	switch (what % 6) {
	case 0:
		corq_conn_hold(c);
		break;
	case 1:
		corq_conn_shutdown_read(core, c);
		break;
	case 2:
		corq_conn_set_linger2(c, (int8_t)fuzz_u8(z));
		break;
	case 3:
		corq_conn_recv(core, c, buf, what >> 2);
		break;
	case 4:
		corq_conn_send(core, c, "hello", 5, 0);
		corq_conn_ready(core, c);
		break;
	case 5:
		if (corq_conn_error(c) > 0)
			fuzz_die("a positive error");
		break;
	}
}

void
fuzz_act(struct fuzz *z, struct corq_core *core, struct corq_conn *c)
{
	static const uint8_t bytes[9000];
	uint8_t what = fuzz_u8(z);
	unsigned flags = (what & 0x40 ? CORQ_MORE : 0) | (what & 0x80 ? CORQ_FIN : 0);
	struct corq_conn *other;

	switch (what % 20) {
	case 0:
	case 1:
		read_some(z, core, c, true);
		break;
	case 2:
		read_some(z, core, c, false);
		break;
	case 3:
	case 4:
		corq_conn_write(core, c, bytes, fuzz_u16(z) % sizeof(bytes), flags);
		break;
	case 5:
		corq_conn_write(core, c, bytes, fuzz_u8(z), flags);
		break;
	case 6:
		write_borrowed(z, core, c, fuzz_u16(z), flags);
		break;
	case 7:
		write_in_place(core, c, fuzz_u16(z), flags);
		break;
	case 8:
		corq_conn_shutdown(core, c);
		break;
	case 9:
	case 10:
		forget(z, c);
		corq_conn_close(core, c);
		break;
	case 11:
		forget(z, c);
		corq_conn_abort(core, c);
		break;
	case 12:
		corq_conn_set_cork(core, c, flags & CORQ_MORE);
		break;
	case 13:
		corq_conn_set_nodelay(core, c, flags & CORQ_MORE);
		break;
	case 14:
		corq_conn_set_linger0(c, flags & CORQ_MORE);
		break;
	case 15:
		corq_conn_set_deadline(core, c, corq_core_now(core) + (1ull << fuzz_u8(z) % 40));
		break;
	case 16:
		other = fuzz_conn(z, fuzz_u8(z));
		if (other)
			corq_splice(core, c, other);
		break;
	case 18:
		forget(z, c);
		corq_conn_close_linger(core, c, fuzz_u8(z) * 20u);
		break;
	case 19:
		act_socket(z, core, c);
		break;
	case 17:
		corq_tcp_set_mss(&core->eng, c, fuzz_u16(z));
		break;
	}
}

static void
cb_any(struct corq_core *core, struct corq_conn *c)
{
	struct fuzz *z = corq_core_user(core);

	if (z->draining)
		corq_conn_abort(core, c);
	else
		fuzz_act(z, core, c);
}

static void
cb_open(struct corq_core *core, struct corq_conn *c)
{
	fuzz_remember(corq_core_user(core), c);
	cb_any(core, c);
}

static void
cb_data(struct corq_core *core, struct corq_conn *c)
{
	struct fuzz *z = corq_core_user(core);

	if (z->n == 0 || (*z->p & 1))
		read_some(z, core, c, true);
	cb_any(core, c);
}

static void
cb_end(struct corq_core *core, struct corq_conn *c, int reason)
{
	if (reason > 0)
		fuzz_die("on_end with a positive reason");
	cb_any(core, c);
}

static void
cb_close(struct corq_core *core, struct corq_conn *c, int reason)
{
	(void)core;
	(void)c;
	if (reason > 0)
		fuzz_die("on_close with a positive reason");
}

const struct corq_ops fuzz_ops = {
	.on_open = cb_open,
	.on_data = cb_data,
	.on_sent = cb_any,
	.on_peer_fin = cb_any,
	.on_timer = cb_any,
	.on_close = cb_close,
	.on_end = cb_end,
};
