/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c - set-up of an engine in given memory, its clock, addresses and look-up.
 *
 * One pass (`layout`) hands out the memory; run over a NULL base it only measures, so size and
 * layout cannot disagree. Memory is zeroed and sparse: pools touch what they use.
 */
#include "tcp/internal.h"

struct carve {
	uint8_t *base;
	size_t off;
};

static void *
carve(struct carve *m, size_t bytes)
{
	size_t at = (m->off + CORQ_CACHELINE - 1) & ~(size_t)(CORQ_CACHELINE - 1);

	m->off = at + bytes;
	return m->base ? m->base + at : NULL;
}

/* The pieces of memory that an engine wants, in order. */
struct layout {
	void *table, *conns, *records, *works, *txrecs, *splices, *chunks, *handles, *lane,
		*lane_mem;
	void *ports, *isn, *replies, *freed, *txf;
};

static uint32_t
n_records(const struct corq_tcp_config *c)
{
	return c->max_time_wait + c->max_half_open + c->max_fin_wait2;
}

static size_t
layout(struct layout *l, void *mem, const struct corq_tcp_config *c)
{
	struct carve m = {mem, 0};

	l->table = carve(&m, corq_table_size(c->max_conns + n_records(c)));
	l->conns = carve(&m, corq_pool_size(c->max_conns, sizeof(struct corq_conn)));
	l->records = carve(&m, corq_pool_size(n_records(c), sizeof(struct corq_record)));
	l->works = carve(&m, corq_pool_size(c->n_work, 128));
	l->txrecs = carve(&m, corq_pool_size(c->n_txrec, sizeof(struct corq_txrec)));
	l->splices = carve(&m, corq_pool_size(c->max_conns, sizeof(struct corq_splice_link)));
	l->chunks = carve(&m, corq_chunks_bytes(c->n_chunk));
	l->handles = carve(&m, corq_handles_size(c->max_conns, 1));
	l->lane = carve(&m, sizeof(struct corq_lane) + sizeof(struct corq_handles));
	l->lane_mem = carve(&m, corq_lane_size(c->max_conns));
	l->ports = carve(&m, corq_ports_bytes(c->n_dests));
	l->isn = carve(&m, corq_isn_bytes(c->isn_cache));
	l->replies = carve(&m, CORQ_URGENT_MAX * sizeof(struct corq_reply));
	l->freed = carve(&m, CORQ_FREED_MAX * sizeof(struct corq_frame *));
	l->txf = carve(&m, CORQ_TXF_MAX * sizeof(struct corq_frame *));
	return m.off + CORQ_CACHELINE;
}

size_t
corq_engine_bytes(const struct corq_tcp_config *cfg)
{
	struct layout l;

	return layout(&l, NULL, cfg);
}

static void
init_keys(struct corq_engine *e, uint64_t seed)
{
	struct corq_sipkey *keys[] = {&e->key_table, &e->key_isn, &e->key_port};

	for (unsigned i = 0; i < CORQ_ARRAY_LEN(keys); i++) {
		keys[i]->k0 = corq_splitmix64(&seed);
		keys[i]->k1 = corq_splitmix64(&seed);
	}
	corq_rand_seed(&e->rand, corq_splitmix64(&seed));
}

static void
init_records(struct corq_engine *e)
{
	const struct corq_tcp_config *c = &e->cfg;
	uint32_t init = corq_us_to_ticks(c->rto_init_us);

	for (unsigned i = 0; i < CORQ_RC_COUNT; i++)
		corq_dlist_init(&e->rec_list[i]);
	e->rec_ahead = CORQ_NONE;
	e->rec_space = (struct corq_dlist_space){
		e->records.base, sizeof(struct corq_record), offsetof(struct corq_record, link)};
	for (unsigned i = CORQ_RC_SYNACK0; i <= CORQ_RC_SYNACK5; i++)
		e->rec_ticks[i] = init << (i - CORQ_RC_SYNACK0);
	for (unsigned i = CORQ_RC_FIN_WAIT2_0; i <= CORQ_RC_FIN_WAIT2_5; i++)
		e->rec_ticks[i] = CORQ_MIN(c->fin_wait2_ticks,
			corq_us_to_ticks(1000000ull << (i - CORQ_RC_FIN_WAIT2_0)));
	e->rec_ticks[CORQ_RC_FIN_WAIT2] = c->fin_wait2_ticks;
	e->rec_ticks[CORQ_RC_TIME_WAIT] = c->tw_ticks;
	e->rec_max[CORQ_REC_TIME_WAIT] = c->max_time_wait;
	e->rec_max[CORQ_REC_FIN_WAIT2] = c->max_fin_wait2;
	e->rec_max[CORQ_REC_HALF_OPEN] = c->max_half_open;
}

static void
init_pools(struct corq_engine *e, const struct layout *l)
{
	const struct corq_tcp_config *c = &e->cfg;
	struct corq_lane_config lane = {.limit = c->max_conns};
	int lane_rc;

	corq_table_init(&e->table, l->table, c->max_conns + n_records(c));
	corq_pool_init(&e->conns, l->conns, c->max_conns, sizeof(struct corq_conn));
	corq_pool_init(&e->records, l->records, n_records(c), sizeof(struct corq_record));
	corq_pool_init(&e->works, l->works, c->n_work, 128);
	corq_pool_init(&e->txrecs, l->txrecs, c->n_txrec, sizeof(struct corq_txrec));
	corq_pool_init(&e->splices, l->splices, c->max_conns, sizeof(struct corq_splice_link));
	corq_chunks_init(&e->chunks, l->chunks, c->n_chunk, c->held_max);
	e->lane = l->lane;
	e->handles = (void *)(e->lane + 1);
	corq_handles_init(e->handles, l->handles, c->max_conns, 1, 1);
	lane_rc = corq_lane_attach(e->lane, e->handles, l->lane_mem, &lane);
	CORQ_ASSERT(lane_rc == 0); /* the region has one lane: this */
}

void
corq_engine_init(struct corq_engine *e, void *mem, const struct corq_tcp_config *cfg, uint64_t seed,
	uint32_t now_tick)
{
	struct layout l;

	e->cfg = *cfg;
	layout(&l, mem, cfg);
	init_keys(e, seed);
	init_pools(e, &l);
	init_records(e);
	corq_ports_init(&e->ports, l.ports, cfg->n_dests, &e->key_port);
	corq_isn_init(&e->isn, l.isn, cfg->isn_cache, &e->key_isn);
	corq_wheel_init(&e->wheel, e->conns.base, sizeof(struct corq_conn),
		offsetof(struct corq_conn, timer), now_tick);
	corq_dlist_init(&e->dack);
	e->dack_space =
		(struct corq_dlist_space){e->works.base, 128, offsetof(struct corq_work, dack)};
	e->urgent = e->parked = e->send = e->events = e->doomed =
		(struct corq_fifo){CORQ_NONE, CORQ_NONE, 0};
	e->release_head = CORQ_NONE;
	e->in_val = CORQ_NONE;
	e->last_neigh = CORQ_NEIGH_NONE;
	e->replies = l.replies;
	e->freed = l.freed;
	e->txf = l.txf;
	e->n_ops = 1; /* entry 0: no callbacks */
}

void
corq_engine_clock(struct corq_engine *e, uint64_t now_ns)
{
	e->now_ns = now_ns;
	e->now_tick = (uint32_t)(now_ns >> CORQ_TICK_SHIFT);
	e->now_ms = (uint32_t)(now_ns / CORQ_NS_PER_MS);
}

/* IPv4 ranges fit the last word; an IPv6 range may not cross 2^32 either. */
uint32_t
corq_engine_laddr(const struct corq_engine *e, const struct corq_addr *a)
{
	for (unsigned i = 0; i < e->n_ranges; i++) {
		const struct corq_range *r = &e->ranges[i];
		uint32_t off = __builtin_bswap32(a->w[3]) - __builtin_bswap32(r->first.w[3]);

		if (off < r->count && a->q[0] == r->first.q[0] && a->w[2] == r->first.w[2])
			return r->base_idx + off;
	}
	return CORQ_NONE;
}

struct corq_addr
corq_engine_laddr_at(const struct corq_engine *e, uint32_t idx)
{
	const struct corq_range *r = e->ranges;
	struct corq_addr a;

	while (idx - r->base_idx >= r->count)
		r++;
	a = r->first;
	a.w[3] = __builtin_bswap32(__builtin_bswap32(a.w[3]) + (idx - r->base_idx));
	return a;
}

uint64_t
corq_engine_hash(const struct corq_engine *e, const struct corq_key *key)
{
	uint64_t w[5];

	memcpy(w, key, sizeof(w));
	/* Of two IPv4 addresses the last words alone differ; the length keeps the two forms apart.
	 */
	if (CORQ_LIKELY(corq_key_is_v4(key)))
		return corq_siphash13_16(
			&e->key_table, w[1] >> 32 | (w[3] & 0xffffffff00000000ull), w[4]);
	return corq_siphash13_40(&e->key_table, w);
}

uint64_t
corq_conn_hash(const struct corq_engine *e, const struct corq_conn *c)
{
	struct corq_key key;

	if (CORQ_LIKELY(corq_conn_idx(e, c) == e->in_val))
		return e->in_hash;
	corq_conn_key(c, &key);
	return corq_engine_hash(e, &key);
}

static inline bool
conn_matches(const struct corq_conn *c, const struct corq_key *k)
{
	return c->rport == k->rport && c->lport == k->lport && corq_addr_eq(&c->raddr, &k->raddr) &&
	       corq_addr_eq(&c->laddr, &k->laddr);
}

static inline bool
record_matches(const struct corq_engine *e, const struct corq_record *r, const struct corq_key *k)
{
	struct corq_addr laddr;

	if (r->rport != k->rport || r->lport != k->lport || !corq_addr_eq(&r->raddr, &k->raddr))
		return false;
	laddr = corq_engine_laddr_at(e, r->laddr_idx);
	return corq_addr_eq(&laddr, &k->laddr);
}

/* Whether a table value names a live object of this tuple. Stale values may point at memory that
 * is free or something else by now: its state says so first. */
static bool
val_matches(struct corq_engine *e, uint32_t val, const struct corq_key *k)
{
	if (val & CORQ_VAL_RECORD) {
		const struct corq_record *r = corq_record_at(e, val & ~CORQ_VAL_RECORD);

		return (unsigned)r->kind - 1 < CORQ_REC_KIND_COUNT - 1 && record_matches(e, r, k);
	}
	const struct corq_conn *c = corq_conn_at(e, val);

	return (unsigned)c->state - 1 < CORQ_STATE_COUNT - 1 && !(c->flags & CORQ_CF_DETACHED) &&
	       conn_matches(c, k);
}

uint32_t
corq_engine_lookup(struct corq_engine *e, const struct corq_key *key, uint64_t hash)
{
	struct corq_table_cursor cur;
	uint32_t val = corq_table_first(&e->table, hash, &cur);

	while (val != CORQ_NONE && !val_matches(e, val, key))
		val = corq_table_next(&e->table, &cur);
	return val;
}

bool
corq_engine_hint_ok(struct corq_engine *e, uint32_t hint, const struct corq_key *key)
{
	return hint != CORQ_NONE && val_matches(e, hint, key);
}

uint16_t
corq_ops_index(struct corq_engine *e, const struct corq_ops *ops)
{
	if (!ops)
		return 0;
	for (unsigned i = 1; i < e->n_ops; i++)
		if (e->ops[i] == ops)
			return (uint16_t)i;
	CORQ_ASSERT(
		e->n_ops < CORQ_MAX_OPS); /* tables are const and few: our program's own bound */
	e->ops[e->n_ops] = ops;
	return (uint16_t)e->n_ops++;
}

/* MSS option: what the MTU leaves without options (RFC 9293 3.7.1, RFC 6691). */
uint16_t
corq_mss_ours(const struct corq_engine *e, const struct corq_addr *laddr)
{
	return (uint16_t)(e->cfg.mtu - 20 - (corq_addr_is_v4(laddr) ? 20 : 40));
}

/* Default of a peer that names none: 536 (RFC 9293 3.7.1), IPv6 1220. Floor 88: no peer may make
 * us send crumbs (as Linux's TCP_MIN_SND_MSS does; SEMANTICS S7). */
uint16_t
corq_mss_effective(
	const struct corq_engine *e, const struct corq_addr *laddr, uint16_t peer_mss, bool ts)
{
	uint16_t ours = corq_mss_ours(e, laddr);
	uint16_t mss = peer_mss ? peer_mss : corq_addr_is_v4(laddr) ? 536 : 1220;

	mss = CORQ_MAX(mss, 88);
	mss = CORQ_MIN(mss, ours);
	return (uint16_t)(mss - (ts ? 12 : 0));
}

void
corq_engine_turn_end(struct corq_engine *e)
{
	corq_pool_turn_end(&e->conns);
	corq_pool_turn_end(&e->records);
	corq_lane_turn_end(e->lane);
}
