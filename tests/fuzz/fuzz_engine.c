/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_engine.c - a whole core under libFuzzer: the input is a program of steps.
 *
 * Steps build segments for tuples by what they are to the core just now (numbers of the input are
 * distances from RCV.NXT, SND.UNA and so on, checksums are filled in), so that few bytes reach deep
 * states; or raw bytes, damaged copies of the last frame, ARP and ICMP; they move virtual time,
 * make API calls, and take the device's room and frames away. Callbacks take their action from the
 * input too. After each turn the engine is checked (check_engine.h); each frame is counted as
 * dropped once at most, and by the parser's reason when the parser refuses it. At the end
 * everything is closed, time runs until all is quiet, and nothing may be left.
 */
#include "check_engine.h"
#include "mkseg.h"
#include "net/parse.h"
#include "target.h"
#include "testcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX  200
#define HANDLES    32
#define PIECE      3000u
#define PIECES     8
#define QUIET_NS   (3 * 3600 * CORQ_NS_PER_S)
#define QUIET_RUNS 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	struct testcore tc;
	struct corq_check check;
	const uint8_t *p;
	size_t n;
	uint8_t last[MKSEG_MAX];
	uint32_t last_len;
	uint8_t arena[PIECES * PIECE];
	bool lent[PIECES];
	struct corq_listener *listener[2];
	corq_h handle[HANDLES]; /* connections that the program has */
	bool draining;
};

_Noreturn static void
die(const char *what)
{
	fprintf(stderr, "fuzz_engine: %s\n", what);
	abort();
}

/* ---- the input ---- */

static uint8_t
u8(struct fuzz *z)
{
	if (z->n == 0)
		return 0;
	z->n--;
	return *z->p++;
}

static uint16_t
u16(struct fuzz *z)
{
	uint16_t hi = u8(z);

	return (uint16_t)(hi << 8 | u8(z));
}

/* A distance: mostly small, either way, now and then anything. */
static uint32_t
distance(struct fuzz *z)
{
	uint8_t k = u8(z);

	if (k < 160)
		return 0;
	if (k < 200)
		return (uint32_t)(k - 180);
	if (k < 240)
		return (uint32_t)((int32_t)(int16_t)u16(z));
	return (uint32_t)u16(z) << 16 | u16(z);
}

/* ---- the program on the core ---- */

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
		die("peek shows more than there is");
	if (!all)
		len = (seen + 1) / 2;
	corq_conn_consume(core, c, len);
}

static void
release(struct corq_core *core, void *arg, uint64_t cookie)
{
	struct fuzz *z = arg;

	(void)core;
	if (cookie >= PIECES || !z->lent[cookie])
		die("a piece was released twice");
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

static struct corq_conn *
conn_of(struct fuzz *z, uint8_t i)
{
	return corq_conn_of(z->tc.core, z->handle[i % HANDLES]);
}

static void
remember(struct fuzz *z, struct corq_conn *c)
{
	corq_h h = corq_conn_handle(z->tc.core, c);
	unsigned i = 0;

	while (i < HANDLES && z->handle[i] != h && corq_conn_of(z->tc.core, z->handle[i]))
		i++;
	if (i == HANDLES)
		die("more connections than the pool has");
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

static void
act(struct fuzz *z, struct corq_core *core, struct corq_conn *c)
{
	static const uint8_t bytes[9000];
	uint8_t what = u8(z);
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
		corq_conn_write(core, c, bytes, u16(z) % sizeof(bytes), flags);
		break;
	case 5:
		corq_conn_write(core, c, bytes, u8(z), flags);
		break;
	case 6:
		write_borrowed(z, core, c, u16(z), flags);
		break;
	case 7:
		write_in_place(core, c, u16(z), flags);
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
		corq_conn_set_deadline(core, c, corq_core_now(core) + (1ull << u8(z) % 40));
		break;
	case 16:
		other = conn_of(z, u8(z));
		if (other)
			corq_splice(core, c, other);
		break;
	case 17:
		corq_tcp_set_mss(&core->eng, c, u16(z));
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
		act(z, core, c);
}

static void
cb_open(struct corq_core *core, struct corq_conn *c)
{
	remember(corq_core_user(core), c);
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
cb_close(struct corq_core *core, struct corq_conn *c, int reason)
{
	(void)core;
	(void)c;
	if (reason > 0)
		die("on_close with a positive reason");
}

static const struct corq_ops ops = {
	.on_open = cb_open,
	.on_data = cb_data,
	.on_sent = cb_any,
	.on_peer_fin = cb_any,
	.on_timer = cb_any,
	.on_close = cb_close,
};

/* ---- frames ---- */

static struct corq_addr
peer(unsigned i)
{
	const uint8_t v4[4] = {10, 0, 0, (uint8_t)(2 + i % 3)};
	struct corq_addr a;

	corq_addr_from_v4(&a, v4);
	return a;
}

/* The tuple that byte k names: a live connection, the oldest of a record class, or one of 24. */
static void
pick(struct fuzz *z, uint8_t k, struct target *t)
{
	struct corq_engine *e = &z->tc.core->eng;

	memset(t, 0, sizeof(*t));
	if (k >= 192 && e->conns.n_fresh > 0) {
		const struct corq_conn *c = corq_conn_at(e, k % e->conns.n_fresh);

		if (c->state > CORQ_CLOSED && c->state < CORQ_STATE_COUNT) {
			target_of_conn(c, t);
			target_look_up(e, t);
			return;
		}
	}
	if (k >= 160 && e->rec_list[k % CORQ_RC_COUNT].head != CORQ_NONE) {
		target_of_record(e, corq_record_at(e, e->rec_list[k % CORQ_RC_COUNT].head), t);
		return;
	}
	t->key.raddr = peer(k);
	t->key.laddr = z->tc.cfg.ranges[0].first;
	t->key.rport = (uint16_t)(5000 + (k >> 2) % 8);
	t->key.lport = k & 0x20 ? 81 : k == 0x1f ? 99 : 80;
	target_look_up(e, t);
}

static void
put_options(struct fuzz *z, const struct target *t, struct mkseg *m)
{
	uint8_t which = u8(z);
	uint32_t block[2][2], ms = (uint32_t)(memport_now(z->tc.mp) / CORQ_NS_PER_MS);

	if (t->ts ? !(which & 1) : which & 1)
		mkseg_opt_ts(m, (t->ts ? t->ts_recent : ms) + distance(z), which & 2 ? ms : 0);
	if (which & 4) {
		mkseg_opt_mss(m, which & 8 ? u16(z) : 1460);
		mkseg_opt_wscale(m, which & 8 ? u8(z) : 2);
		mkseg_opt_sack_ok(m);
	}
	if (which & 16) {
		for (int i = 0; i < 2; i++) {
			block[i][0] = t->snd_una + u16(z);
			block[i][1] = block[i][0] + distance(z) + u8(z);
		}
		mkseg_opt_sack(m, (const uint32_t(*)[2])block, 1 + (which >> 7));
	}
	if (which & 32) /* noise */
		for (uint8_t n = 4 * (u8(z) % 8); n > 0 && m->opt_len < 40; n--)
			m->opt[m->opt_len++] = u8(z);
	m->opt_len &= 0xfc;
}

static uint32_t
make_segment(struct fuzz *z, uint8_t *out)
{
	static const uint8_t usual[] = {CORQ_TH_ACK, CORQ_TH_ACK | CORQ_TH_PSH,
		CORQ_TH_ACK | CORQ_TH_FIN, CORQ_TH_SYN, CORQ_TH_RST, CORQ_TH_RST | CORQ_TH_ACK,
		CORQ_TH_SYN | CORQ_TH_ACK, CORQ_TH_ACK};
	static uint8_t payload[1500]; /* zeroes are as good as any */
	struct mkseg m = {.wnd = 60000};
	uint8_t how = u8(z);
	struct target t;

	pick(z, u8(z), &t);
	m.src = t.key.raddr;
	m.dst = t.key.laddr;
	m.sport = t.key.rport;
	m.dport = t.key.lport;
	memcpy(m.smac, ((const uint8_t[6]){2, 0, 0, 0, 1, t.key.raddr.b[15]}), 6);
	memcpy(m.dmac, memport_port(z->tc.mp)->mac, 6);
	m.flags = how & 8 ? u8(z) : usual[how & 7];
	m.seq = t.rcv_nxt + (how & 16 ? distance(z) : 0);
	m.ack = (how & 32 ? t.snd_una : t.snd_nxt) + (how & 64 ? distance(z) : 0);
	if (t.state == CORQ_SYN_SENT)
		m.ack = t.snd_una + 1 + (how & 64 ? distance(z) : 0);
	if (how & 128) {
		m.wnd = u16(z);
		m.urg = u8(z);
		m.len = u16(z) % sizeof(payload);
		m.data = payload;
	}
	put_options(z, &t, &m);
	return mkseg_build(&m, out);
}

static uint32_t
make_raw(struct fuzz *z, uint8_t *out)
{
	uint8_t how = u8(z);
	uint32_t len = 0, want = u16(z) % 600;

	if (how & 1) { /* an Ethernet header for us */
		memcpy(out, memport_port(z->tc.mp)->mac, 6);
		memset(out + 6, 2, 6);
		out[12] = how & 2 ? 0x86 : 0x08;
		out[13] = how & 2 ? 0xdd : how & 4 ? 0x06 : 0;
		len = 14;
	}
	while (want-- > 0 && z->n > 0)
		out[len++] = u8(z);
	if (how & 8)
		mkseg_fix_checksums(out, len);
	return len;
}

/* The last frame again, damaged in places, checksums good or not. */
static uint32_t
make_damaged(struct fuzz *z, uint8_t *out)
{
	uint8_t how = u8(z);
	uint32_t len = z->last_len;

	if (len == 0)
		return 0;
	memcpy(out, z->last, len);
	for (unsigned n = how & 3; n > 0; n--)
		out[u16(z) % len] ^= u8(z);
	if (how & 4)
		len = 1 + u16(z) % len;
	if (how & 8)
		mkseg_fix_checksums(out, len);
	return len;
}

/* An ICMP error that quotes a segment of ours, or an echo request. */
static uint32_t
make_icmp(struct fuzz *z, uint8_t *out)
{
	uint8_t type = u8(z), code = u8(z), inner[MKSEG_MAX];
	struct mkseg m = {0};
	uint32_t len = 28;
	struct target t;

	pick(z, u8(z), &t);
	m.src = t.key.laddr;
	m.dst = t.key.raddr;
	m.sport = t.key.lport;
	m.dport = t.key.rport;
	m.seq = t.snd_una + distance(z);
	mkseg_build(&m, inner);
	memset(out, 0, 14 + 20 + 8 + 28);
	memcpy(out, memport_port(z->tc.mp)->mac, 6);
	out[12] = 8;
	out[14] = 0x45;
	out[17] = (uint8_t)(20 + 8 + len);
	out[22] = 64;
	out[23] = 1;
	memcpy(out + 26, &t.key.raddr.b[12], 4);
	memcpy(out + 30, &t.key.laddr.b[12], 4);
	out[34] = type < 128 ? 3 : type & 64 ? 8 : type & 63;
	out[35] = code < 128 ? (code & 64 ? 4 : 3) : code;
	out[40] = u8(z);
	out[41] = u8(z);
	memcpy(out + 42, inner + 14, len);
	mkseg_fix_checksums(out, 42 + len);
	return 42 + len;
}

static uint32_t
make_arp(struct fuzz *z, uint8_t *out)
{
	static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0};
	uint8_t how = u8(z);

	if (how & 1)
		memset(out, 0xff, 6);
	else
		memcpy(out, memport_port(z->tc.mp)->mac, 6);
	memcpy(out + 6, ((const uint8_t[6]){2, 0, 0, 0, 1, 9}), 6);
	memcpy(out + 12, head, sizeof(head));
	out[21] = how & 2 ? 2 : 1;
	memcpy(out + 22, out + 6, 6);
	memcpy(out + 28, ((const uint8_t[4]){10, 0, 0, u8(z)}), 4);
	memset(out + 32, 0, 6);
	memcpy(out + 38, ((const uint8_t[4]){10, 0, 0, how & 4 ? 1 : u8(z)}), 4);
	return 42;
}

/* ---- one frame in, counted ---- */

static uint64_t
drops(const struct corq_engine *e)
{
	uint64_t n = 0;

	for (int r = 0; r < CORQ_R_COUNT; r++)
		if (corq_reason_severity((enum corq_reason)r) == CORQ_SEV_DROP)
			n += e->reasons[r];
	return n;
}

/* Steps 1 to 3 for this frame alone. */
static void
input_counted(struct fuzz *z, const uint8_t *bytes, uint32_t len)
{
	struct corq_core *core = z->tc.core;
	struct corq_engine *e = &core->eng;
	struct corq_frame f = {.data = (uint8_t *)(uintptr_t)bytes,
		.buf_start = (uint8_t *)(uintptr_t)bytes,
		.len = (uint16_t)len,
		.pkt_len = len};
	uint64_t before = drops(e), was;
	enum corq_reason why;
	struct corq_seg seg;
	struct corq_key key;
	enum corq_pkt kind;

	why = corq_net_parse(&f, &core->parse, &seg, &key, &kind);
	was = e->reasons[why];
	if (corq_core_input_burst(core) != 1)
		die("a frame was not received");
	if (kind == CORQ_PKT_DROP) {
		if (e->reasons[why] != was + 1)
			die("the parser's drop was not counted");
		if (corq_reason_severity(why) == CORQ_SEV_DROP && drops(e) != before + 1)
			die("one frame refused, but not one drop counted");
	} else if (drops(e) > before + 1) {
		die("one frame, several drops counted");
	}
}

static void
check(struct fuzz *z)
{
	const char *v = memport_violation(z->tc.mp);

	if (corq_check_engine(&z->check, &z->tc.core->eng, CORQ_CHECK_FULL) != 0)
		die(z->check.msg);
	if (v)
		die(v);
}

static void
turn_tail(struct fuzz *z, unsigned n)
{
	struct memport_pkt *p;

	corq_core_turn_tail(z->tc.core, n);
	while ((p = memport_take_tx(z->tc.mp)) != NULL)
		free(p);
	check(z);
}

static void
step_frame(struct fuzz *z, uint8_t op)
{
	static const uint16_t split[] = {160, 100};
	uint8_t out[MKSEG_MAX + 64];
	struct memport_how how = {0};
	struct memport_counts n;
	uint32_t len;

	switch (op % 8) {
	case 4:
		len = make_raw(z, out);
		break;
	case 5:
		len = make_damaged(z, out);
		break;
	case 6:
		len = make_icmp(z, out);
		break;
	case 7:
		len = make_arp(z, out);
		break;
	default:
		len = make_segment(z, out);
		break;
	}
	if (len == 0)
		return;
	len = CORQ_MIN(len, (uint32_t)sizeof(z->last));
	memcpy(z->last, out, len);
	z->last_len = len;
	if (op & 0x20) {
		how.split = split;
		how.n_split = 1 + (op >> 6 & 1);
	}
	memport_inject_as(z->tc.mp, out, len, &how);
	memport_counts(z->tc.mp, &n);
	if (op & 0x80 || n.rx_queued != 1)
		return; /* part of a burst */
	if (how.n_split == 0)
		input_counted(z, out, len);
	else
		corq_core_input_burst(z->tc.core);
	turn_tail(z, 1);
}

/* ---- other steps ---- */

static void
step_time(struct fuzz *z)
{
	memport_advance(z->tc.mp, 1000ull << u8(z) % 28);
	turn_tail(z, corq_core_input_burst(z->tc.core));
}

static void
step_connect(struct fuzz *z)
{
	uint8_t k = u8(z);
	struct corq_connect_opts o = {.raddr = peer(k),
		.rport = (uint16_t)(7000 + (k >> 2) % 4),
		.lport = k & 0x80 ? 1000 : 0,
		.ops = &ops,
		.nodelay = k & 0x40,
		.cork = k & 0x20};
	struct corq_conn *c;

	if (corq_core_connect(z->tc.core, &o, &c) == 0)
		remember(z, c);
}

static void
step_listener(struct fuzz *z)
{
	unsigned i = u8(z) & 1;
	struct corq_listen_opts o = {.port = (uint16_t)(80 + i), .ops = &ops, .backlog = u8(z) % 8};

	if (z->listener[i]) {
		corq_listener_close(z->tc.core, z->listener[i]);
		z->listener[i] = NULL;
	} else if (corq_core_listen(z->tc.core, &o, &z->listener[i]) != 0) {
		die("listen failed");
	}
}

static void
step_device(struct fuzz *z)
{
	uint8_t what = u8(z), n = u8(z);
	uint32_t limit = n & 0x80 ? UINT32_MAX : n;

	switch (what % 4) {
	case 0:
		memport_set_tx_room(z->tc.mp, limit);
		break;
	case 1:
		memport_limit_tx(z->tc.mp, limit);
		break;
	case 2:
		memport_limit_rx(z->tc.mp, limit);
		break;
	case 3:
		memport_set_backlog(z->tc.mp, n & 1);
		break;
	}
}

static void
step_call(struct fuzz *z)
{
	struct corq_conn *c = conn_of(z, u8(z));

	if (c)
		act(z, z->tc.core, c);
}

static void
step(struct fuzz *z)
{
	uint8_t op = u8(z);

	switch (op >> 1 & 7) {
	default:
		step_frame(z, u8(z));
		break;
	case 4:
		turn_tail(z, corq_core_input_burst(z->tc.core));
		break;
	case 5:
		step_time(z);
		break;
	case 6:
		step_call(z);
		break;
	case 7:
		switch (op >> 4) {
		case 0:
			step_listener(z);
			break;
		case 1:
		case 2:
			step_device(z);
			break;
		default:
			step_connect(z);
			break;
		}
		break;
	}
}

/* ---- start and end ---- */

static void
start(struct fuzz *z)
{
	uint8_t a = u8(z), b = u8(z);
	struct testcore_opts o = {.cfg = {.port_first = 10000,
					  .port_last = 10063,
					  .max_conns = 16,
					  .max_time_wait = 1 + (a & 7),
					  .max_half_open = 1 + (a >> 3 & 7),
					  .max_fin_wait2 = 1 + (a >> 6),
					  .chunk_bytes_mb = 1,
					  .timewait = (enum corq_timewait)(b & 3 ? (b & 3) - 1 : 0),
					  .no_timestamps = b & 4,
					  .no_sack = b & 8,
					  .no_rfc1337 = b & 16,
					  .rcv_buf = b & 32 ? 4096 : 0,
					  .snd_buf = b & 32 ? 5000 : 0},
		.port = {.caps = b & 64 ? CORQ_PORT_CAP_CHAIN | CORQ_PORT_CAP_L4_CSUM |
						  CORQ_PORT_CAP_IP_CSUM | CORQ_PORT_CAP_TSO
					: 0,
			.late_completion = b & 128,
			.rx_frames = 200,
			.tx_frames = 400},
		.no_arp = true};
	static const char *const peers[] = {"10.0.0.2", "10.0.0.3"};
	char err[256];

	if (testcore_init(&z->tc, &o, err, sizeof(err)) != 0)
		die(err);
	if (!corq_check_init(&z->check, &z->tc.core->eng))
		die("no memory");
	corq_core_set_user(z->tc.core, z);
	testcore_region(&z->tc, z->arena, sizeof(z->arena), release, z);
	for (unsigned i = 0; i < 2; i++) { /* the third peer's address stays to be asked for */
		struct corq_listen_opts l = {.port = (uint16_t)(80 + i), .ops = &ops};

		testcore_neighbour(&z->tc, peers[i], (const uint8_t[6]){2, 0, 0, 0, 1, 9});
		if (corq_core_listen(z->tc.core, &l, &z->listener[i]) != 0)
			die("listen failed");
	}
}

/* All is closed, the device works again; in the end nothing may be left. */
static void
finish(struct fuzz *z)
{
	struct corq_engine *e = &z->tc.core->eng;
	uint64_t limit = memport_now(z->tc.mp) + QUIET_NS;
	struct corq_conn *c;
	struct memport_pkt *p;

	z->draining = true;
	memport_set_tx_room(z->tc.mp, UINT32_MAX);
	memport_limit_tx(z->tc.mp, UINT32_MAX);
	memport_limit_rx(z->tc.mp, UINT32_MAX);
	memport_set_backlog(z->tc.mp, 0);
	for (uint8_t i = 0; i < HANDLES; i++)
		if ((c = conn_of(z, i)) != NULL)
			corq_conn_abort(z->tc.core, c);
	for (int i = 0; i < 2; i++)
		if (z->listener[i])
			corq_listener_close(z->tc.core, z->listener[i]);
	for (int runs = 0;; runs++) {
		uint64_t at;

		if (!testcore_settle(&z->tc))
			die("the core never comes to rest");
		while ((p = testcore_take(&z->tc)) != NULL)
			free(p);
		at = testcore_next(&z->tc);
		if (at == UINT64_MAX)
			break;
		if (at > limit || runs == QUIET_RUNS)
			die("not quiet for hours");
		memport_set_clock(z->tc.mp, at);
	}
	if (corq_check_empty(&z->check, e) != 0)
		die(z->check.msg);
	if (testcore_leaks(&z->tc, stderr))
		die("leaks");
	for (int i = 0; i < PIECES; i++)
		if (z->lent[i])
			die("a borrowed piece was never released");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *z = calloc(1, sizeof(*z));

	if (!z)
		die("no memory");
	z->p = data;
	z->n = size;
	start(z);
	for (int i = 0; i < STEPS_MAX && z->n > 0; i++)
		step(z);
	turn_tail(z, corq_core_input_burst(z->tc.core));
	finish(z);
	testcore_end(&z->tc);
	corq_check_end(&z->check);
	free(z);
	return 0;
}
