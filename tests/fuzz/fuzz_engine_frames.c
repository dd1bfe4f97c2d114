/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_engine_frames.c - frames from the input: segments by distances from what the core expects,
 * raw bytes, damaged copies, ICMP errors, ARP.
 */
#include "fuzz_engine.h"

#include <string.h>

struct corq_addr
fuzz_peer(unsigned i)
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
	t->key.raddr = fuzz_peer(k);
	t->key.laddr = z->tc.cfg.ranges[0].first;
	t->key.rport = (uint16_t)(5000 + (k >> 2) % 8);
	t->key.lport = k & 0x20 ? 81 : k == 0x1f ? 99 : 80;
	target_look_up(e, t);
}

static void
put_options(struct fuzz *z, const struct target *t, struct mkseg *m)
{
	uint8_t which = fuzz_u8(z);
	uint32_t block[2][2], ms = (uint32_t)(memport_now(z->tc.mp) / CORQ_NS_PER_MS);

	if (t->ts ? !(which & 1) : which & 1)
		mkseg_opt_ts(m, (t->ts ? t->ts_recent : ms) + fuzz_distance(z), which & 2 ? ms : 0);
	if (which & 4) {
		mkseg_opt_mss(m, which & 8 ? fuzz_u16(z) : 1460);
		mkseg_opt_wscale(m, which & 8 ? fuzz_u8(z) : 2);
		mkseg_opt_sack_ok(m);
	}
	if (which & 16) {
		for (int i = 0; i < 2; i++) {
			block[i][0] = t->snd_una + fuzz_u16(z);
			block[i][1] = block[i][0] + fuzz_distance(z) + fuzz_u8(z);
		}
		mkseg_opt_sack(m, (const uint32_t(*)[2])block, 1 + (which >> 7));
	}
	if (which & 32) /* noise */
		for (uint8_t n = 4 * (fuzz_u8(z) % 8); n > 0 && m->opt_len < 40; n--)
			m->opt[m->opt_len++] = fuzz_u8(z);
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
	uint8_t how = fuzz_u8(z);
	struct target t;

	pick(z, fuzz_u8(z), &t);
	m.src = t.key.raddr;
	m.dst = t.key.laddr;
	m.sport = t.key.rport;
	m.dport = t.key.lport;
	memcpy(m.smac, ((const uint8_t[6]){2, 0, 0, 0, 1, t.key.raddr.b[15]}), 6);
	memcpy(m.dmac, memport_port(z->tc.mp)->mac, 6);
	m.flags = how & 8 ? fuzz_u8(z) : usual[how & 7];
	m.seq = t.rcv_nxt + (how & 16 ? fuzz_distance(z) : 0);
	m.ack = (how & 32 ? t.snd_una : t.snd_nxt) + (how & 64 ? fuzz_distance(z) : 0);
	if (t.state == CORQ_SYN_SENT)
		m.ack = t.snd_una + 1 + (how & 64 ? fuzz_distance(z) : 0);
	if (how & 128) {
		m.wnd = fuzz_u16(z);
		m.urg = fuzz_u8(z);
		m.len = fuzz_u16(z) % sizeof(payload);
		m.data = payload;
	}
	put_options(z, &t, &m);
	return mkseg_build(&m, out);
}

static uint32_t
make_raw(struct fuzz *z, uint8_t *out)
{
	uint8_t how = fuzz_u8(z);
	uint32_t len = 0, want = fuzz_u16(z) % 600;

	if (how & 1) { /* an Ethernet header for us */
		memcpy(out, memport_port(z->tc.mp)->mac, 6);
		memset(out + 6, 2, 6);
		out[12] = how & 2 ? 0x86 : 0x08;
		out[13] = how & 2 ? 0xdd : how & 4 ? 0x06 : 0;
		len = 14;
	}
	while (want-- > 0 && z->n > 0)
		out[len++] = fuzz_u8(z);
	if (how & 8)
		mkseg_fix_checksums(out, len);
	return len;
}

/* The last frame again, damaged in places, checksums good or not. */
static uint32_t
make_damaged(struct fuzz *z, uint8_t *out)
{
	uint8_t how = fuzz_u8(z);
	uint32_t len = z->last_len;

	if (len == 0)
		return 0;
	memcpy(out, z->last, len);
	for (unsigned n = how & 3; n > 0; n--)
		out[fuzz_u16(z) % len] ^= fuzz_u8(z);
	if (how & 4)
		len = 1 + fuzz_u16(z) % len;
	if (how & 8)
		mkseg_fix_checksums(out, len);
	return len;
}

/* An ICMP error that quotes a segment of ours, or an echo request. */
static uint32_t
make_icmp(struct fuzz *z, uint8_t *out)
{
	uint8_t type = fuzz_u8(z), code = fuzz_u8(z), inner[MKSEG_MAX];
	struct mkseg m = {0};
	uint32_t len = 28;
	struct target t;

	pick(z, fuzz_u8(z), &t);
	m.src = t.key.laddr;
	m.dst = t.key.raddr;
	m.sport = t.key.lport;
	m.dport = t.key.rport;
	m.seq = t.snd_una + fuzz_distance(z);
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
	out[40] = fuzz_u8(z);
	out[41] = fuzz_u8(z);
	memcpy(out + 42, inner + 14, len);
	mkseg_fix_checksums(out, 42 + len);
	return 42 + len;
}

static uint32_t
make_arp(struct fuzz *z, uint8_t *out)
{
	static const uint8_t head[] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0};
	uint8_t how = fuzz_u8(z);

	if (how & 1)
		memset(out, 0xff, 6);
	else
		memcpy(out, memport_port(z->tc.mp)->mac, 6);
	memcpy(out + 6, ((const uint8_t[6]){2, 0, 0, 0, 1, 9}), 6);
	memcpy(out + 12, head, sizeof(head));
	out[21] = how & 2 ? 2 : 1;
	memcpy(out + 22, out + 6, 6);
	memcpy(out + 28, ((const uint8_t[4]){10, 0, 0, fuzz_u8(z)}), 4);
	memset(out + 32, 0, 6);
	memcpy(out + 38, ((const uint8_t[4]){10, 0, 0, how & 4 ? 1 : fuzz_u8(z)}), 4);
	return 42;
}

uint32_t
fuzz_frame(struct fuzz *z, uint8_t kind, uint8_t out[MKSEG_MAX])
{
	switch (kind) {
	case 4:
		return make_raw(z, out);
	case 5:
		return make_damaged(z, out);
	case 6:
		return make_icmp(z, out);
	case 7:
		return make_arp(z, out);
	default:
		return make_segment(z, out);
	}
}
