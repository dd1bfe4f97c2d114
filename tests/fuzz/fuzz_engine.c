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
#include "fuzz_engine.h"
#include "net/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX  200
#define QUIET_NS   (3 * 3600 * CORQ_NS_PER_S)
#define QUIET_RUNS 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

_Noreturn void
fuzz_die(const char *what)
{
	fprintf(stderr, "fuzz_engine: %s\n", what);
	abort();
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
		fuzz_die("a frame was not received");
	if (kind == CORQ_PKT_DROP) {
		if (e->reasons[why] != was + 1)
			fuzz_die("the parser's drop was not counted");
		if (corq_reason_severity(why) == CORQ_SEV_DROP && drops(e) != before + 1)
			fuzz_die("one frame refused, but not one drop counted");
	} else if (drops(e) > before + 1) {
		fuzz_die("one frame, several drops counted");
	}
}

static void
check(struct fuzz *z)
{
	const char *v = memport_violation(z->tc.mp);

	if (corq_check_engine(&z->check, &z->tc.core->eng, CORQ_CHECK_FULL) != 0)
		fuzz_die(z->check.msg);
	if (v)
		fuzz_die(v);
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

	len = fuzz_frame(z, op % 8, out);
	if (len == 0)
		return;
	len = CORQ_MIN(len, (uint32_t)sizeof(z->last));
	memcpy(z->last, out, len);
	z->last_len = len;
	if (op & 0x20) {
		how.split = split;
		how.n_split = 1 + (op >> 6 & 1);
	}
	if (!memport_inject_as(z->tc.mp, out, len, &how))
		return; /* no room in the device: its own count */
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
	memport_advance(z->tc.mp, 1000ull << fuzz_u8(z) % 28);
	turn_tail(z, corq_core_input_burst(z->tc.core));
}

static void
step_connect(struct fuzz *z)
{
	uint8_t k = fuzz_u8(z);
	struct corq_connect_opts o = {.raddr = fuzz_peer(k),
		.rport = (uint16_t)(7000 + (k >> 2) % 4),
		.lport = k & 0x80 ? 1000 : 0,
		.ops = &fuzz_ops,
		.nodelay = k & 0x40,
		.cork = k & 0x20};
	struct corq_conn *c;

	if (corq_core_connect(z->tc.core, &o, &c) == 0)
		fuzz_remember(z, c);
}

static void
accept_one(struct fuzz *z, struct corq_core *core, struct corq_listener *l)
{
	struct corq_conn *c;

	if (corq_listener_accept(core, l, &c) == 0)
		fuzz_remember(z, c);
}

static void
on_acceptable(struct corq_core *core, struct corq_listener *l)
{
	struct fuzz *z = corq_core_user(core);

	if (!z->draining && (fuzz_u8(z) & 1))
		accept_one(z, core, l);
}

static void
step_listener(struct fuzz *z)
{
	uint8_t k = fuzz_u8(z), m = fuzz_u8(z);
	unsigned i = k & 1;
	struct corq_listen_opts o = {.port = (uint16_t)(80 + i),
		.ops = &fuzz_ops,
		.backlog = m % 8,
		.queue = m & 8,
		.abort_on_overflow = m & 16,
		.defer_s = m >> 5,
		.on_acceptable = on_acceptable};

	if (z->listener[i] && (k & 2)) {
		accept_one(z, z->tc.core, z->listener[i]);
	} else if (z->listener[i] && (k & 4)) {
		corq_listener_drain(z->tc.core, z->listener[i]);
	} else if (z->listener[i]) {
		corq_listener_close(z->tc.core, z->listener[i]);
		z->listener[i] = NULL;
	} else if (corq_core_listen(z->tc.core, &o, &z->listener[i]) != 0) {
		fuzz_die("listen failed");
	}
}

static void
step_device(struct fuzz *z)
{
	uint8_t what = fuzz_u8(z), n = fuzz_u8(z);
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
	struct corq_conn *c = fuzz_conn(z, fuzz_u8(z));

	if (c)
		fuzz_act(z, z->tc.core, c);
}

static void
step(struct fuzz *z)
{
	uint8_t op = fuzz_u8(z);

	switch (op >> 1 & 7) {
	default:
		step_frame(z, fuzz_u8(z));
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
	uint8_t a = fuzz_u8(z), b = fuzz_u8(z);
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
		fuzz_die(err);
	if (!corq_check_init(&z->check, &z->tc.core->eng))
		fuzz_die("no memory");
	corq_core_set_user(z->tc.core, z);
	testcore_region(&z->tc, z->arena, sizeof(z->arena), fuzz_release, z);
	for (unsigned i = 0; i < 2; i++) { /* the third peer's address stays to be asked for */
		struct corq_listen_opts l = {.port = (uint16_t)(80 + i), .ops = &fuzz_ops};

		testcore_neighbour(&z->tc, peers[i], (const uint8_t[6]){2, 0, 0, 0, 1, 9});
		if (corq_core_listen(z->tc.core, &l, &z->listener[i]) != 0)
			fuzz_die("listen failed");
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
		if ((c = fuzz_conn(z, i)) != NULL)
			corq_conn_abort(z->tc.core, c);
	for (int i = 0; i < 2; i++)
		if (z->listener[i])
			corq_listener_close(z->tc.core, z->listener[i]);
	for (int runs = 0;; runs++) {
		uint64_t at;

		if (!testcore_settle(&z->tc))
			fuzz_die("the core never comes to rest");
		while ((p = testcore_take(&z->tc)) != NULL)
			free(p);
		at = testcore_next(&z->tc);
		if (at == UINT64_MAX)
			break;
		if (at > limit || runs == QUIET_RUNS)
			fuzz_die("not quiet for hours");
		memport_set_clock(z->tc.mp, at);
	}
	if (corq_check_empty(&z->check, e) != 0)
		fuzz_die(z->check.msg);
	if (testcore_leaks(&z->tc, stderr))
		fuzz_die("leaks");
	for (int i = 0; i < PIECES; i++)
		if (z->lent[i])
			fuzz_die("a borrowed piece was never released");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *z = calloc(1, sizeof(*z));

	if (!z)
		fuzz_die("no memory");
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
