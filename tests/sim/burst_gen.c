/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * burst_gen.c - plays the peers: looks at what the core has (connections, records, listeners) and
 * writes a frame for it, right, late, doubled, or hostile. Because the core that takes frames one
 * by one has taken all frames before this one, a frame can answer a SYN-ACK that was not sent yet,
 * and a SYN can follow the last ACK of its tuple in the same burst.
 */
#include "burst.h"

#include "target.h"
#include <stdio.h>

static struct corq_engine *
eng(struct burst *b)
{
	return &b->t[ONE_BY_ONE].tc.core->eng;
}

static void
random_tuple(struct burst *b, struct target *t)
{
	static const uint16_t lports[] = {80, 80, 80, 81, 99};

	memset(t, 0, sizeof(*t));
	t->key.raddr = burst_peer((uint32_t)burst_below(b, BURST_PEERS));
	t->key.laddr = b->t[0].tc.cfg.ranges[0].first;
	t->key.rport = (uint16_t)(5000 + burst_below(b, 16));
	t->key.lport = lports[burst_below(b, CORQ_ARRAY_LEN(lports))];
	target_look_up(eng(b), t);
}

/* A live tuple, if there is one at a random place; else a random one, mostly of no connection. */
static void
pick(struct burst *b, struct target *t)
{
	struct corq_engine *e = eng(b);
	uint32_t n = e->conns.n_fresh;

	memset(t, 0, sizeof(*t));
	if (n > 0 && burst_below(b, 4) != 0) {
		const struct corq_conn *c = corq_conn_at(e, (uint32_t)burst_below(b, n));

		if (c->state > CORQ_CLOSED && c->state < CORQ_STATE_COUNT) {
			target_of_conn(c, t);
			target_look_up(eng(b), t);
			if (t->state != CORQ_CLOSED)
				return;
		}
	}
	if (burst_below(b, 2)) {
		const struct corq_dlist *l = &e->rec_list[burst_below(b, CORQ_RC_COUNT)];

		if (l->head != CORQ_NONE) {
			target_of_record(
				e, corq_record_at(e, burst_below(b, 2) ? l->head : l->tail), t);
			return;
		}
	}
	random_tuple(b, t);
}

static uint32_t
rnd32(struct burst *b)
{
	return (uint32_t)corq_rand_u64(&b->rand);
}

static const uint8_t *
payload(const struct target *t, uint32_t seq, uint32_t len, uint8_t *buf)
{
	for (uint32_t i = 0; i < len; i++)
		buf[i] = burst_byte(t->key.rport, seq + i);
	return buf;
}

static void
start(struct burst *b, const struct target *t, struct mkseg *m)
{
	uint32_t peer = t->key.raddr.b[15] - 2u;

	memset(m, 0, sizeof(*m));
	m->src = t->key.raddr;
	m->dst = t->key.laddr;
	m->sport = t->key.rport;
	m->dport = t->key.lport;
	memcpy(m->smac, ((const uint8_t[6]){2, 0, 0, 0, 1, (uint8_t)peer}), 6);
	memcpy(m->dmac, memport_port(b->t[0].tc.mp)->mac, 6);
	m->seq = t->rcv_nxt;
	m->ack = t->snd_nxt;
	m->flags = CORQ_TH_ACK;
	m->wnd = b->spread ? 65535 : (uint16_t)burst_below(b, 65536);
}

static uint32_t
peer_clock(struct burst *b)
{
	return 1000 + (uint32_t)(memport_now(b->t[ONE_BY_ONE].tc.mp) / CORQ_NS_PER_MS);
}

static void
add_ts(struct burst *b, const struct target *t, struct mkseg *m)
{
	if (t->ts)
		mkseg_opt_ts(m, peer_clock(b), rnd32(b) % 100);
}

static uint32_t
wire(struct burst *b, const struct target *t, struct mkseg *m, uint32_t len, struct burst_frame *f,
	const char *what)
{
	uint8_t buf[MKSEG_MAX];

	if (b->spread) {
		len = CORQ_MIN(len, b->budget);
		b->budget -= len;
	}
	m->len = (uint16_t)len;
	m->data = payload(t, m->seq + !!(m->flags & CORQ_TH_SYN), len, buf);
	f->len = mkseg_build(m, f->bytes);
	snprintf(f->what, sizeof(f->what), "%s %s %u:%u", corq_state_name(t->state), what, m->sport,
		m->dport);
	return len;
}

/* ---- SYNs and what answers them ---- */

static void
syn_options(struct burst *b, struct mkseg *m, bool ts)
{
	mkseg_opt_mss(m, burst_below(b, 4) ? 1460 : (uint16_t)burst_below(b, 1461));
	if (burst_below(b, 2))
		mkseg_opt_wscale(m, (uint8_t)burst_below(b, 16));
	if (burst_below(b, 2))
		mkseg_opt_sack_ok(m);
	if (ts)
		mkseg_opt_ts(m, peer_clock(b), 0);
}

static void
gen_syn(struct burst *b, const struct target *t, struct burst_frame *f)
{
	struct mkseg m;

	start(b, t, &m);
	m.flags = CORQ_TH_SYN;
	m.ack = 0;
	if (t->state == CORQ_CLOSED)
		m.seq = rnd32(b);
	else if (t->state == CORQ_SYN_RCVD && burst_below(b, 2))
		m.seq = t->rcv_nxt - 1; /* the same SYN again */
	else if (b->spread || burst_below(b, 3))
		m.seq = t->rcv_nxt + 100000 + (uint32_t)burst_below(b, 100000);
	else
		m.seq = t->rcv_nxt + rnd32(b) % 200000 - 100000;
	syn_options(b, &m, t->state == CORQ_CLOSED ? burst_below(b, 3) != 0 : t->ts);
	wire(b, t, &m, !b->spread && burst_below(b, 16) == 0 ? 100 : 0, f, "SYN");
}

/* The SYN that a half-open record answered is known by the record; the ACK completes it. */
static void
gen_half_open(struct burst *b, const struct target *t, struct burst_frame *f)
{
	struct mkseg m;
	uint64_t how = burst_below(b, 10);

	if (how == 0) {
		gen_syn(b, t, f);
		return;
	}
	start(b, t, &m);
	add_ts(b, t, &m);
	if (how == 1) {
		m.flags = CORQ_TH_RST;
		m.seq += b->spread ? 0 : (uint32_t)burst_below(b, 3);
	} else if (how == 2 && !b->spread) {
		m.ack += (uint32_t)burst_below(b, 5) - 2;
	} else if (how == 3) {
		m.flags |= CORQ_TH_FIN;
	}
	wire(b, t, &m, how > 5 ? 1 + (uint32_t)burst_below(b, 500) : 0, f, "handshake");
}

static void
gen_syn_sent(struct burst *b, const struct target *t, struct burst_frame *f)
{
	struct mkseg m;
	uint64_t how = burst_below(b, 8);

	start(b, t, &m);
	m.seq = (uint32_t)t->key.rport * 77777u + t->key.lport;
	m.flags = CORQ_TH_SYN | CORQ_TH_ACK;
	m.ack = t->snd_una + 1;
	if (how == 0) {
		m.flags = CORQ_TH_SYN; /* simultaneous */
		m.ack = 0;
	} else if (how == 1) {
		m.flags = CORQ_TH_RST | CORQ_TH_ACK;
	} else if (how == 2 && !b->spread) {
		m.ack += (uint32_t)burst_below(b, 5) - 2;
		m.flags = burst_below(b, 2) ? CORQ_TH_ACK : m.flags;
	}
	if (m.flags & CORQ_TH_SYN)
		syn_options(b, &m, burst_below(b, 4) != 0);
	wire(b, t, &m, 0, f, "answer");
}

/* ---- segments of connections ---- */

static uint32_t
gen_ack_field(struct burst *b, const struct target *t)
{
	uint32_t flight = t->snd_nxt - t->snd_una;

	switch (burst_below(b, b->spread ? 2 : 8)) {
	case 0:
	case 1:
	case 2:
		return t->snd_nxt;
	case 3:
		return t->snd_una;
	case 4:
	case 5:
		return t->snd_una + (uint32_t)burst_below(b, (uint64_t)flight + 1);
	case 6:
		return t->snd_nxt + 1 + (uint32_t)burst_below(b, 3000);
	default:
		return t->snd_una - 1 - (uint32_t)burst_below(b, 100000);
	}
}

static void
gen_sack(struct burst *b, const struct target *t, struct mkseg *m)
{
	uint32_t flight = t->snd_nxt - t->snd_una, block[3][2];
	unsigned n = 1 + (unsigned)burst_below(b, 3);

	for (unsigned i = 0; i < n; i++) {
		block[i][0] = t->snd_una + (uint32_t)burst_below(b, (uint64_t)flight + 3);
		block[i][1] = block[i][0] + (uint32_t)burst_below(b, 2000);
	}
	m->ack = t->snd_una;
	mkseg_opt_sack(m, (const uint32_t(*)[2])block, n);
}

/* Text: in order, beyond a gap, old, or across RCV.NXT. */
static void
gen_text(struct burst *b, const struct target *t, struct burst_frame *f)
{
	struct mkseg m;
	uint32_t max = b->spread ? 400 : 1448, len = 1 + (uint32_t)burst_below(b, max);
	const char *what = "data";

	start(b, t, &m);
	m.ack = gen_ack_field(b, t);
	add_ts(b, t, &m);
	switch (burst_below(b, 6)) {
	case 0:
		m.seq += 1 + (uint32_t)burst_below(b, b->spread ? 2000 : 100000);
		what = "data beyond";
		break;
	case 1:
		m.seq -= 1 + (uint32_t)burst_below(b, 1000);
		what = "old data";
		break;
	}
	m.flags |= burst_below(b, 2) ? CORQ_TH_PSH : 0;
	if (burst_below(b, 12) == 0)
		m.flags |= CORQ_TH_FIN;
	wire(b, t, &m, len, f, what);
}

static void
gen_control(struct burst *b, const struct target *t, struct burst_frame *f)
{
	struct mkseg m;
	const char *what = "ACK";

	start(b, t, &m);
	m.ack = gen_ack_field(b, t);
	switch (burst_below(b, 8)) {
	case 0:
		m.flags |= CORQ_TH_FIN;
		if (!b->spread && burst_below(b, 3) == 0)
			m.seq += (uint32_t)burst_below(b, 2000) - 1000;
		what = "FIN";
		break;
	case 1:
		m.flags = burst_below(b, 2) ? CORQ_TH_RST : CORQ_TH_RST | CORQ_TH_ACK;
		if (!b->spread)
			m.seq += burst_below(b, 2) ? 0 : rnd32(b) % 100000 - 1000;
		what = "RST";
		break;
	case 2:
		if (!b->spread && t->state >= CORQ_ESTABLISHED && !t->record)
			gen_sack(b, t, &m);
		break;
	case 3:
		m.wnd = b->spread ? 65535 : (uint16_t)burst_below(b, 3);
		break;
	case 4: /* a keepalive, or a FIN again in TIME_WAIT */
		m.seq--;
		m.flags |= t->state == CORQ_TIME_WAIT ? CORQ_TH_FIN : 0;
		what = "old";
		break;
	}
	add_ts(b, t, &m);
	wire(b, t, &m, 0, f, what);
}

/* ---- hostile ones ---- */

static void
gen_hostile(struct burst *b, const struct target *t, struct burst_frame *f)
{
	struct mkseg m;

	start(b, t, &m);
	m.ack = gen_ack_field(b, t);
	switch (burst_below(b, 6)) {
	case 0:
		m.flags = (uint8_t)rnd32(b);
		m.urg = (uint16_t)rnd32(b);
		break;
	case 1: /* timestamps from the past, or missing, or not agreed on */
		if (burst_below(b, 2))
			mkseg_opt_ts(&m, t->ts_recent - (uint32_t)burst_below(b, 5000), rnd32(b));
		break;
	case 2: /* options of noise */
		m.opt_len = (uint8_t)(4 * burst_below(b, 11));
		for (unsigned i = 0; i < m.opt_len; i++)
			m.opt[i] =
				burst_below(b, 2) ? (uint8_t)burst_below(b, 12) : (uint8_t)rnd32(b);
		break;
	case 3:
		m.src = m.dst; /* land */
		break;
	case 4:
		m.seq = rnd32(b);
		m.ack = rnd32(b);
		break;
	default:
		add_ts(b, t, &m);
		break;
	}
	wire(b, t, &m, (uint32_t)burst_below(b, 300), f, "hostile");
	switch (burst_below(b, 5)) {
	case 0: /* a flipped bit */
		f->bytes[burst_below(b, f->len)] ^= (uint8_t)(1u << burst_below(b, 8));
		break;
	case 1: /* cut short */
		f->len = 1 + (uint32_t)burst_below(b, f->len);
		break;
	case 2: /* a flipped bit, and the checksums know */
		f->bytes[14 + burst_below(b, f->len - 14 - m.len)] ^=
			(uint8_t)(1u << burst_below(b, 8));
		mkseg_fix_checksums(f->bytes, f->len);
		b->shifted = true; /* lengths may be wrong: bytes may stand elsewhere */
		break;
	}
}

void
burst_gen(struct burst *b, struct burst_frame *f)
{
	struct target t;

	pick(b, &t);
	if (!b->spread && burst_below(b, 10) == 0)
		gen_hostile(b, &t, f);
	else if (t.state == CORQ_CLOSED ||
		 (t.record && t.state != CORQ_SYN_RCVD && burst_below(b, 3) == 0))
		gen_syn(b, &t, f);
	else if (t.record && t.state == CORQ_SYN_RCVD)
		gen_half_open(b, &t, f);
	else if (t.state == CORQ_SYN_SENT)
		gen_syn_sent(b, &t, f);
	else if (!b->spread && burst_below(b, 20) == 0)
		gen_syn(b, &t, f);
	else if (burst_below(b, 2))
		gen_text(b, &t, f);
	else
		gen_control(b, &t, f);
}

void
burst_gen_special(struct burst *b, enum burst_special what, uint32_t peer, uint16_t rport,
	uint16_t lport, struct burst_frame *f)
{
	struct target t = {.key = {.raddr = burst_peer(peer),
				   .laddr = b->t[0].tc.cfg.ranges[0].first,
				   .rport = rport,
				   .lport = lport}};
	struct mkseg m;
	uint32_t len = 0;

	target_look_up(eng(b), &t);
	start(b, &t, &m);
	m.wnd = 60000;
	switch (what) {
	case BURST_SYN:
		m.flags = CORQ_TH_SYN;
		m.ack = 0;
		m.seq = t.state == CORQ_CLOSED ? rnd32(b) : t.rcv_nxt + 70000;
		mkseg_opt_mss(&m, 1460);
		t.ts = burst_below(b, 2);
		break;
	case BURST_ACK:
		break;
	case BURST_DATA_FIN:
		m.flags |= CORQ_TH_FIN;
		len = 100;
		break;
	case BURST_DATA:
		len = 100;
		break;
	case BURST_FIN:
		m.flags |= CORQ_TH_FIN;
		break;
	case BURST_RST:
		m.flags = CORQ_TH_RST;
		break;
	case BURST_OLD_FIN:
		m.flags |= CORQ_TH_FIN;
		m.seq--;
		break;
	}
	add_ts(b, &t, &m);
	wire(b, &t, &m, len, f, "special");
}
