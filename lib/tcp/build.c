/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * build.c - frames: payload out of the send queue, headers, the next hop.
 *
 * Called in step 7 only, through output.c and corq_tcp_build. A run of bytes longer than the MSS
 * is one decision and one transmission record. A port with TSO gets it as one super-segment that
 * points into the chunks; for other ports it is cut here, packet by packet, because cutting while
 * copying touches each byte once, where a splitter below would touch it twice. FIN and PSH are on
 * the last piece only, as TSO does it (R3).
 *
 * Small payloads are copied behind the header; larger ones hang on as parts that refer to the
 * chunk (refs) where the port takes chains. A frame that cannot be had stops the build: what is
 * left stays queued, in order.
 */
#include "tcp/internal.h"
#include "tcp/reasm.h"

#include <errno.h>

#define COPY_MAX   256 /* payload up to this is copied even where the port takes chains */
#define TXF_AHEAD  4   /* packets between the fetch of a frame's lines and their use */
#define TXF_SHIFT  2
#define COPY_PARTS 2  /* so is a segment of more chunks than this */
#define PARTS_MAX  17 /* of a super-segment: 64 KiB in large chunks; devices take about 40 */

struct corq_frame *
corq_txf_take(struct corq_engine *e, enum corq_txf_use use)
{
	uint32_t keep = use == CORQ_TXF_DATA ? CORQ_TXF_RESERVE : 0;
	struct corq_frame *f;

	if (CORQ_UNLIKELY(e->n_txf <= keep)) {
		corq_count(e, CORQ_R_TCP_NO_TXFRAME);
		return NULL;
	}
	f = e->txf[--e->n_txf];
	/* A frame comes from the other end of a wire, and so do its lines: those of the headers are
	 * asked for a few packets ahead, and Ethernet, IPv4 and TCP with timestamps (66 bytes)
	 * start on a line. */
	if (CORQ_LIKELY(e->n_txf > TXF_AHEAD)) {
		uint8_t *p = e->txf[e->n_txf - TXF_AHEAD]->buf_start;

		CORQ_PREFETCH_W(p + 64);
		CORQ_PREFETCH_W(p + 128);
	}
	f->data += TXF_SHIFT;
	return f;
}

/* ---- the next hop ---- */

static bool
on_link(const struct corq_route *r, const struct corq_addr *a)
{
	return (((a->q[0] ^ r->net.q[0]) & r->mask.q[0]) |
		       ((a->q[1] ^ r->net.q[1]) & r->mask.q[1])) == 0;
}

const struct corq_addr *
corq_next_hop(const struct corq_engine *e, const struct corq_addr *dst)
{
	if (on_link(&e->route, dst))
		return dst;
	return e->route.has_gw ? &e->route.gw : NULL;
}

void
corq_egress(struct corq_engine *e, struct corq_frame *f, const struct corq_tcp_out *o,
	uint16_t *neigh, struct corq_outbuf *ob)
{
	static const uint8_t unresolved[6];
	const struct corq_addr *hop = corq_next_hop(e, o->dst);
	const uint8_t *mac;

	if (CORQ_UNLIKELY(!hop)) {
		corq_count(e, CORQ_R_NO_ROUTE);
		goto drop;
	}
	if (!corq_neigh_is(e->neigh, *neigh, hop)) {
		*neigh = e->last_neigh;
		if (!corq_neigh_is(e->neigh, *neigh, hop))
			*neigh = corq_neigh_lookup(e->neigh, hop, e->now_ns);
	}
	e->last_neigh = *neigh;
	if (CORQ_UNLIKELY(*neigh == CORQ_NEIGH_NONE)) {
		corq_count(e, CORQ_R_NEIGH_FULL);
		goto drop;
	}
	mac = corq_neigh_mac(e->neigh, *neigh, e->now_ns);
	corq_emit_tcp(f, o, mac ? mac : unresolved, e->smac, e->emit_caps);
	if (CORQ_LIKELY(mac != NULL)) {
		ob->v[ob->n++] = f;
		return;
	}
	f = corq_neigh_hold(e->neigh, *neigh, f);
	if (!f)
		return;
	corq_count(e, CORQ_R_NEIGH_UNRESOLVED);
drop:
	corq_engine_free_frame(e, f);
}

/* ---- header fields of a connection ---- */

uint32_t
corq_rcv_window(const struct corq_engine *e, const struct corq_conn *c)
{
	uint32_t told = c->rcv_adv - c->rcv_nxt;
	uint32_t buf = CORQ_MIN(e->cfg.rcv_buf, 65535u << corq_conn_rcv_wscale(c));
	/* True size: a held frame keeps 2 KiB; half of it is counted, as a full one is mostly
	 * payload. */
	uint32_t used = CORQ_MAX(c->rcvq_bytes, c->rcv_true * 1024u);
	uint32_t room = used < buf ? buf - used : 0;

	/* RFC 9293 3.8.6.2.2: the right edge moves in steps of a segment or half the buffer. */
	if (room < told + CORQ_MIN((uint32_t)c->mss, buf / 2))
		return told;
	return room;
}

bool
corq_window_moved(const struct corq_engine *e, const struct corq_conn *c)
{
	uint32_t told = c->rcv_adv - c->rcv_nxt;
	uint32_t now = corq_rcv_window(e, c);

	/* Unasked only when it is worth a packet: at least two segments, or it was closed. */
	return now > told && (told < c->mss || now - told >= CORQ_MAX(2u * c->mss, now / 2));
}

/* The 16-bit field; remembers the right edge. Rounds up, so that the edge never moves left. */
static uint16_t
window_field(struct corq_engine *e, struct corq_conn *c)
{
	unsigned ws = corq_conn_rcv_wscale(c);
	uint32_t wnd = (corq_rcv_window(e, c) + (1u << ws) - 1) >> ws;

	wnd = CORQ_MIN(wnd, 65535u);
	if (corq_seq_gt(c->rcv_nxt + (wnd << ws), c->rcv_adv))
		c->rcv_adv = c->rcv_nxt + (wnd << ws);
	return (uint16_t)wnd;
}

void
corq_ack_paid(struct corq_engine *e, struct corq_conn *c)
{
	struct corq_work *w = corq_conn_work(e, c);

	c->last_ack_sent = c->rcv_nxt;
	c->flags &= ~(uint32_t)(CORQ_CF_ACK_NOW | CORQ_CF_ACK_DELAY | CORQ_CF_WND_UPDATE);
	if (w && w->dack_armed)
		corq_timer_dack_off(e, w);
}

static unsigned
sack_blocks(const struct corq_conn *c, const struct corq_work *w)
{
	if (CORQ_LIKELY(!w || w->ooo_n == 0) || !(c->flags & CORQ_CF_SACK))
		return 0;
	return CORQ_MIN((unsigned)w->ooo_n, c->flags & CORQ_CF_TS ? 3u : 4u);
}

uint32_t
corq_mss_now(struct corq_engine *e, const struct corq_conn *c)
{
	unsigned n = sack_blocks(c, corq_conn_work(e, c));

	return n ? c->mss - (4 + 8 * n) : c->mss;
}

static void
put_options(struct corq_engine *e, struct corq_conn *c, struct corq_tcp_out *o)
{
	struct corq_work *w = corq_conn_work(e, c);
	unsigned n = sack_blocks(c, w);

	o->opt_len = 0;
	if (c->flags & CORQ_CF_TS)
		corq_opt_put_ts(o, e->now_ms + c->ts_off, c->ts_recent);
	if (CORQ_UNLIKELY(n)) {
		struct corq_sack_block b[4];

		corq_opt_put_sack(o, b, (uint8_t)corq_reasm_sack(e, w, b, n));
	}
}

static void
fill_out(struct corq_engine *e, struct corq_conn *c, struct corq_tcp_out *o, uint32_t seq,
	uint8_t flags)
{
	o->src = &c->laddr;
	o->dst = &c->raddr;
	o->sport = c->lport;
	o->dport = c->rport;
	o->seq = seq;
	o->ack = c->rcv_nxt;
	o->flags = flags | CORQ_TH_ACK;
	o->wnd = window_field(e, c);
	o->ecn = 0;
	o->ttl = 64;
	put_options(e, c, o);
}

/* ---- payload ---- */

struct cursor {
	uint32_t chunk;
	uint32_t off; /* within the chunk */
};

/* The chunk that holds seq. Starts at the work block's cursor where that helps, so that a long
 * queue is not walked from its head for every packet. */
static struct cursor
seek(struct corq_engine *e, struct corq_conn *c, struct corq_work *w, uint32_t seq)
{
	uint32_t chunk = c->sndq_head, at = c->snd_una - c->sndq_off;
	struct corq_chunk *ch;

	if (w->cur_chunk != CORQ_NONE && corq_seq_ge(seq, w->cur_seq)) {
		chunk = w->cur_chunk;
		at = w->cur_seq;
	}
	ch = corq_chunk_at(&e->chunks, chunk);
	while (seq - at >= ch->len) {
		at += ch->len;
		chunk = ch->next;
		CORQ_ASSERT(chunk != CORQ_NONE);
		ch = corq_chunk_at(&e->chunks, chunk);
	}
	if (seq == c->snd_nxt) {
		w->cur_chunk = chunk;
		w->cur_seq = at;
	}
	return (struct cursor){chunk, seq - at};
}

static void
copy_payload(struct corq_engine *e, struct cursor *cur, struct corq_frame *f, uint32_t len)
{
	uint8_t *to = f->data;

	CORQ_ASSERT(len <= (uint32_t)(f->room - (f->data - f->buf_start)));
	f->len = (uint16_t)len;
	while (len) {
		struct corq_chunk *ch = corq_chunk_at(&e->chunks, cur->chunk);
		uint32_t n = CORQ_MIN(len, ch->len - cur->off);

		memcpy(to, ch->data + cur->off, n);
		to += n;
		len -= n;
		cur->off += n;
		if (cur->off == ch->len && len)
			*cur = (struct cursor){ch->next, 0};
	}
}

/* Parts that refer to the chunks; false when frames ran out (the head then has what it has, and
 * the caller gives it back whole). */
static bool
chain_payload(struct corq_engine *e, struct cursor *cur, struct corq_frame *head, uint32_t len)
{
	struct corq_frame *tail = head;

	while (len) {
		struct corq_chunk *ch = corq_chunk_at(&e->chunks, cur->chunk);
		uint32_t n = CORQ_MIN(CORQ_MIN(len, ch->len - cur->off), 32768u);
		struct corq_frame *f = corq_txf_take(e, CORQ_TXF_DATA);

		if (!f)
			return false;
		f->data = ch->data + cur->off;
		f->len = (uint16_t)n;
		f->flags |= CORQ_FRAME_EXT;
		f->ext = ch;
		ch->refs++;
		tail->next = f;
		tail = f;
		len -= n;
		cur->off += n;
		if (cur->off == ch->len && len)
			*cur = (struct cursor){ch->next, 0};
	}
	return true;
}

/* How many of the len bytes at cur lie in the first `max` chunks. */
static uint32_t
in_parts(struct corq_engine *e, struct cursor cur, uint32_t len, uint32_t max)
{
	uint32_t n = 0;

	while (n < len && max--) {
		struct corq_chunk *ch = corq_chunk_at(&e->chunks, cur.chunk);

		n += ch->len - cur.off;
		cur = (struct cursor){ch->next, 0};
	}
	return CORQ_MIN(n, len);
}

/* Parts that a packet may have now: what devices take, and what frames are left for. */
static uint32_t
parts_max(const struct corq_engine *e, uint32_t max)
{
	uint32_t left = e->n_txf > CORQ_TXF_RESERVE ? e->n_txf - CORQ_TXF_RESERVE : 0;

	return CORQ_MIN(left, max);
}

/* A super-segment of crumbs is cut shorter, to whole segments; one segment can be copied. */
static uint32_t
cut_to_parts(struct corq_engine *e, struct corq_conn *c, uint32_t seq, uint32_t len)
{
	uint32_t n, parts;

	if (!e->cap_chain || len <= c->mss)
		return len;
	parts = parts_max(e, PARTS_MAX + 1); /* one is the head */
	n = parts ? in_parts(e, seek(e, c, corq_conn_work(e, c), seq), len, parts - 1) : 0;
	return n == len ? len : CORQ_MAX(n - n % c->mss, c->mss);
}

static bool
put_payload(struct corq_engine *e, struct corq_conn *c, struct corq_frame *f, uint32_t seq,
	uint32_t len)
{
	uint32_t room = (uint32_t)(f->room - (f->data - f->buf_start));
	struct cursor cur;

	f->pkt_len = len;
	if (len == 0)
		return true;
	cur = seek(e, c, corq_conn_work(e, c), seq);
	if (!e->cap_chain || (len <= COPY_MAX && len <= c->mss) ||
		(len <= room && in_parts(e, cur, len, parts_max(e, COPY_PARTS)) < len)) {
		copy_payload(e, &cur, f, len);
		return true;
	}
	return chain_payload(e, &cur, f, len);
}

uint32_t
corq_build_data(struct corq_engine *e, struct corq_conn *c, uint32_t seq, uint32_t len,
	uint8_t flags, struct corq_outbuf *ob, bool *whole)
{
	uint32_t mss = corq_mss_now(e, c), done = 0;
	uint32_t piece = e->tso_max ? CORQ_MAX(e->tso_max, mss) : mss;
	struct corq_tcp_out o;

	*whole = false;
	do {
		uint32_t n = cut_to_parts(e, c, seq + done, CORQ_MIN(len - done, piece));
		bool last = done + n == len;
		struct corq_frame *f;

		if (ob->n == ob->max)
			return done;
		f = corq_txf_take(
			e, len || !(flags & CORQ_TH_FIN) ? CORQ_TXF_DATA : CORQ_TXF_CONTROL);
		if (!f)
			return done;
		if (CORQ_UNLIKELY(!put_payload(e, c, f, seq + done, n))) {
			corq_engine_free_frame(e, f);
			return done;
		}
		if (n > mss) {
			f->flags |= CORQ_FRAME_TX_TSO;
			f->tso_segsz = (uint16_t)mss;
		}
		fill_out(e, c, &o, seq + done, last ? flags : 0);
		corq_egress(e, f, &o, &c->neigh, ob);
		corq_ack_paid(e, c);
		done += n;
		*whole = last;
	} while (done < len);
	return done;
}

bool
corq_build_ack(struct corq_engine *e, struct corq_conn *c, uint32_t seq, struct corq_outbuf *ob)
{
	struct corq_frame *f = ob->n < ob->max ? corq_txf_take(e, CORQ_TXF_CONTROL) : NULL;
	uint32_t adv = c->rcv_adv;
	struct corq_tcp_out o;

	if (!f)
		return false;
	fill_out(e, c, &o, seq, 0);
	corq_egress(e, f, &o, &c->neigh, ob);
	if (seq == c->snd_nxt)
		corq_ack_paid(e, c);
	else /* a probe: the peer answers it, and takes neither its ACK nor its window */
		c->rcv_adv = adv;
	return true;
}

/* SYN, or the SYN-ACK of a simultaneous open. An ARP entry that has failed ends the attempt. */
static void
fill_syn(struct corq_engine *e, struct corq_conn *c, struct corq_tcp_out *o)
{
	bool synack = c->state == CORQ_SYN_RCVD;
	const struct corq_tcp_config *cfg = &e->cfg;
	struct corq_syn_opts s = {.tsval = e->now_ms + c->ts_off,
		.tsecr = synack ? c->ts_recent : 0,
		.mss = corq_mss_ours(e, &c->laddr),
		.wscale = cfg->rcv_wscale,
		.has_ts = synack ? c->flags & CORQ_CF_TS : cfg->timestamps,
		.has_sack = synack ? c->flags & CORQ_CF_SACK : cfg->sack,
		.has_wscale = synack ? c->flags & CORQ_CF_WSCALE : cfg->wscale};

	*o = (struct corq_tcp_out){.src = &c->laddr,
		.dst = &c->raddr,
		.sport = c->lport,
		.dport = c->rport,
		.seq = c->snd_una,
		.ack = synack ? c->rcv_nxt : 0,
		.wnd = (uint16_t)CORQ_MIN(cfg->rcv_buf, 65535u),
		.flags = CORQ_TH_SYN | (synack ? CORQ_TH_ACK : 0),
		.ttl = 64};
	corq_opt_put_syn(o, &s);
}

/* The next hop is being asked for: the SYN waits for the answer instead of a second for its timer.
 * The connection keeps CORQ_CF_SYN and stands in `parked` until corq_tcp_unpark. */
static bool
parked(struct corq_engine *e, struct corq_conn *c)
{
	const struct corq_addr *hop = corq_next_hop(e, &c->raddr);

	if (!hop)
		return false;
	if (!corq_neigh_is(e->neigh, c->neigh, hop))
		c->neigh = corq_neigh_lookup(e->neigh, hop, e->now_ns);
	if (c->neigh == CORQ_NEIGH_NONE || corq_neigh_mac(e->neigh, c->neigh, e->now_ns) ||
		e->neigh->entries[c->neigh].state != CORQ_NEIGH_INCOMPLETE)
		return false;
	corq_conn_park(e, c);
	return true;
}

bool
corq_build_syn(struct corq_engine *e, struct corq_conn *c, struct corq_outbuf *ob)
{
	struct corq_tcp_out o;
	struct corq_frame *f;
	struct corq_work *w;

	if (ob->n == ob->max)
		return false;
	if (parked(e, c))
		return true;
	w = corq_conn_want_work(e, c);
	f = w ? corq_txf_take(e, CORQ_TXF_CONTROL) : NULL;
	if (!f) {
		corq_conn_drop_work(e, c);
		return false;
	}
	if (w->tx_head == CORQ_NONE &&
		!corq_txrec_add(e, w, c->snd_una, c->snd_una + 1, CORQ_TXREC_SYN)) {
		corq_engine_free_frame(e, f);
		corq_conn_drop_work(e, c);
		return false;
	}
	fill_syn(e, c, &o);
	corq_egress(e, f, &o, &c->neigh, ob);
	if (c->snd_nxt == c->snd_una) {
		c->snd_nxt++;
	} else {
		struct corq_txrec *r = corq_txrec_at(e, w->tx_head);

		r->flags |= CORQ_TXREC_RTX;
		r->tx_ns = e->now_ns;
		e->stats.segs_retransmitted++;
		e->stats.syn_retransmitted++;
	}
	c->flags &= ~(uint32_t)CORQ_CF_SYN;
	corq_timer_rtx(e, c, w, CORQ_RTX_RTO, corq_conn_rto_us(e, c));
	if (c->neigh != CORQ_NEIGH_NONE && e->neigh->entries[c->neigh].state == CORQ_NEIGH_FAILED)
		corq_conn_end(e, c, EHOSTUNREACH);
	return true;
}
