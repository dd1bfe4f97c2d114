/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neigh.c - the neighbour table of a core. See neigh.h for states and limits.
 *
 * One core's thread. Chained hash over a fixed array; entries are found by address once a
 * connection and by index after that. Only INCOMPLETE, PROBE and a resolved entry that still has
 * its FLUSH to report carry a deadline; all else ages when it is looked at, so an idle table needs
 * no timer. Deadlines are few and seconds apart: poll scans the array when the earliest is due.
 */
#include "net/neigh.h"

size_t
corq_neigh_bytes(uint16_t max)
{
	size_t n_buckets = 1;

	while (n_buckets < max)
		n_buckets *= 2;
	return max * sizeof(struct corq_neigh_entry) +
	       CORQ_NEIGH_HELD * sizeof(struct corq_neigh_held) + n_buckets * sizeof(uint16_t);
}

void
corq_neigh_init(struct corq_neigh *nt, void *mem, uint16_t max, uint32_t held_max, uint64_t seed)
{
	uint32_t n_buckets = 1;

	CORQ_ASSERT(max >= 1 && max <= CORQ_NEIGH_MAX && (uintptr_t)mem % CORQ_CACHELINE == 0);
	CORQ_ASSERT(held_max >= 1 && held_max <= CORQ_NEIGH_HELD);
	while (n_buckets < max)
		n_buckets *= 2;
	memset(nt, 0, sizeof(*nt));
	nt->entries = mem;
	nt->held = (struct corq_neigh_held *)(nt->entries + max);
	nt->held_max = held_max;
	nt->buckets = (uint16_t *)(nt->held + CORQ_NEIGH_HELD);
	nt->seed = seed;
	nt->max = max;
	nt->mask = (uint16_t)(n_buckets - 1);
	nt->next_due_ns = CORQ_NEIGH_NEVER;
	memset(mem, 0, max * sizeof(struct corq_neigh_entry));
	memset(nt->buckets, 0xff, n_buckets * sizeof(uint16_t)); /* CORQ_NEIGH_NONE */
	for (uint16_t i = 0; i < max; i++)
		nt->entries[i].next = (uint16_t)(i + 1 < max ? i + 1 : CORQ_NEIGH_NONE);
}

/* Keyed so that hosts on the link cannot easily choose one chain; the table's size bounds it. */
static uint16_t *
bucket(const struct corq_neigh *nt, const struct corq_addr *a)
{
	uint64_t h = (a->q[0] ^ nt->seed) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 32;
	h = (h ^ a->q[1]) * 0xd6e8feb86659fd93ull;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return &nt->buckets[h >> 48 & nt->mask];
}

uint16_t
corq_neigh_find(const struct corq_neigh *nt, const struct corq_addr *addr)
{
	uint16_t i = *bucket(nt, addr);

	while (i != CORQ_NEIGH_NONE && !corq_addr_eq(&nt->entries[i].addr, addr))
		i = nt->entries[i].next;
	return i;
}

static void
arm(struct corq_neigh *nt, struct corq_neigh_entry *e, uint64_t due_ns)
{
	e->due_ns = due_ns;
	nt->next_due_ns = CORQ_MIN(nt->next_due_ns, due_ns);
}

/* Begins to ask, not sooner than a second after the last request for this entry. */
static void
start_round(struct corq_neigh *nt, struct corq_neigh_entry *e, enum corq_neigh_state state,
	uint64_t now_ns)
{
	e->state = (uint8_t)state;
	e->tries = 0;
	arm(nt, e, e->flush ? now_ns : CORQ_MAX(now_ns, e->ask_after_ns));
}

static void
unlink_entry(struct corq_neigh *nt, uint16_t idx)
{
	uint16_t *p = bucket(nt, &nt->entries[idx].addr);

	while (*p != idx)
		p = &nt->entries[*p].next;
	*p = nt->entries[idx].next;
}

static bool
is_aged(const struct corq_neigh_entry *e, uint64_t now_ns)
{
	return now_ns - e->confirmed_ns >= CORQ_NEIGH_REACHABLE_NS;
}

/* May be taken for another address: nobody waits for it and nothing recent is lost. */
static bool
is_evictable(const struct corq_neigh_entry *e, uint64_t now_ns)
{
	if (e->flush || e->n_held)
		return false;
	return e->state == CORQ_NEIGH_STALE || e->state == CORQ_NEIGH_FAILED ||
	       (e->state == CORQ_NEIGH_REACHABLE && is_aged(e, now_ns));
}

/* The longest unused evictable entry, taken out of the table, or CORQ_NEIGH_NONE. */
static uint16_t
evict(struct corq_neigh *nt, uint64_t now_ns)
{
	uint16_t best = CORQ_NEIGH_NONE;

	for (uint16_t i = 0; i < nt->max; i++) {
		const struct corq_neigh_entry *e = &nt->entries[i];

		if (is_evictable(e, now_ns) &&
			(best == CORQ_NEIGH_NONE || e->used_ns < nt->entries[best].used_ns))
			best = i;
	}
	if (best == CORQ_NEIGH_NONE) {
		nt->n_full++;
		return best;
	}
	nt->n_evicted++;
	unlink_entry(nt, best);
	return best;
}

/* A blank entry for addr (state FREE: the caller sets it), linked; or CORQ_NEIGH_NONE. */
static uint16_t
create(struct corq_neigh *nt, const struct corq_addr *addr, uint64_t now_ns)
{
	uint16_t idx = nt->free;
	uint16_t *b = bucket(nt, addr);
	struct corq_neigh_entry *e;

	if (idx != CORQ_NEIGH_NONE) {
		nt->free = nt->entries[idx].next;
		nt->n_used++;
	} else {
		idx = evict(nt, now_ns);
		if (idx == CORQ_NEIGH_NONE)
			return idx;
	}
	e = &nt->entries[idx];
	memset(e, 0, sizeof(*e));
	e->addr = *addr;
	e->used_ns = now_ns;
	e->due_ns = CORQ_NEIGH_NEVER;
	e->next = *b;
	*b = idx;
	return idx;
}

uint16_t
corq_neigh_lookup(struct corq_neigh *nt, const struct corq_addr *nexthop, uint64_t now_ns)
{
	uint16_t idx = corq_neigh_find(nt, nexthop);

	if (idx != CORQ_NEIGH_NONE) {
		nt->entries[idx].used_ns = now_ns;
		return idx;
	}
	idx = create(nt, nexthop, now_ns);
	if (idx != CORQ_NEIGH_NONE)
		start_round(nt, &nt->entries[idx], CORQ_NEIGH_INCOMPLETE, now_ns);
	return idx;
}

const uint8_t *
corq_neigh_mac_slow(struct corq_neigh *nt, uint16_t idx, uint64_t now_ns)
{
	struct corq_neigh_entry *e = &nt->entries[idx];

	e->used_ns = now_ns;
	switch (e->state) {
	case CORQ_NEIGH_REACHABLE:
		if (!is_aged(e, now_ns))
			return e->mac;
		start_round(nt, e, CORQ_NEIGH_PROBE, now_ns);
		return e->mac;
	case CORQ_NEIGH_STALE:
		start_round(nt, e, CORQ_NEIGH_PROBE, now_ns);
		return e->mac;
	case CORQ_NEIGH_PROBE:
	case CORQ_NEIGH_STATIC:
		return e->mac;
	case CORQ_NEIGH_FAILED:
		if (now_ns - e->confirmed_ns >= CORQ_NEIGH_FAILED_NS)
			start_round(nt, e, CORQ_NEIGH_INCOMPLETE, now_ns);
		return NULL;
	default:
		return NULL;
	}
}

/* ---- packets that wait ---- */

static struct corq_neigh_held *
held_at(struct corq_neigh *nt, uint32_t i)
{
	return &nt->held[i % CORQ_NEIGH_HELD];
}

/* Packet i leaves the ring; its tail moves past the holes. */
static struct corq_frame *
take_held(struct corq_neigh *nt, uint32_t i)
{
	struct corq_neigh_held *h = held_at(nt, i);
	struct corq_frame *f = h->frame;

	h->frame = NULL;
	nt->entries[h->idx].n_held--;
	while (nt->held_tail != nt->held_head && !held_at(nt, nt->held_tail)->frame)
		nt->held_tail++;
	return f;
}

struct corq_frame *
corq_neigh_hold(struct corq_neigh *nt, uint16_t idx, struct corq_frame *f)
{
	struct corq_neigh_entry *e = &nt->entries[idx];
	struct corq_frame *out = NULL;

	if (e->state == CORQ_NEIGH_FAILED)
		return f;
	CORQ_ASSERT(e->state == CORQ_NEIGH_INCOMPLETE);
	if (nt->held_head - nt->held_tail == nt->held_max)
		out = take_held(nt, nt->held_tail);
	*held_at(nt, nt->held_head++) = (struct corq_neigh_held){.frame = f, .idx = idx};
	e->n_held++;
	return out;
}

/* Moves up to max of what idx holds into the action. */
static void
give_frames(struct corq_neigh *nt, uint16_t idx, unsigned max, struct corq_neigh_action *out)
{
	unsigned n = CORQ_MIN(CORQ_MIN(max, CORQ_NEIGH_PART), nt->entries[idx].n_held);

	for (uint32_t i = nt->held_tail; out->n_frames < n; i++)
		if (held_at(nt, i)->frame && held_at(nt, i)->idx == idx)
			out->frames[out->n_frames++] = take_held(nt, i);
}

/* ---- what comes in ---- */

/* The entry has an address now; who waited for it is told at the next poll. */
static void
resolve(struct corq_neigh *nt, struct corq_neigh_entry *e, const uint8_t mac[6],
	enum corq_neigh_state state, uint64_t now_ns)
{
	bool waited = e->state == CORQ_NEIGH_INCOMPLETE || e->state == CORQ_NEIGH_FAILED;

	memcpy(e->mac, mac, 6);
	e->state = (uint8_t)state;
	e->confirmed_ns = now_ns;
	e->tries = 0;
	e->flush |= waited;
	arm(nt, e, e->flush ? now_ns : CORQ_NEIGH_NEVER);
}

uint16_t
corq_neigh_arp_input(struct corq_neigh *nt, const struct corq_arp *a, enum corq_neigh_learn learn,
	uint64_t now_ns)
{
	bool gratuitous = corq_arp_is_gratuitous(a);
	bool confirms = a->op == CORQ_ARP_REPLY && a->unicast && !gratuitous;
	struct corq_neigh_entry *e;
	uint16_t idx;

	if (a->spa.w[3] == 0) /* an RFC 5227 probe: its sender has no address yet */
		return CORQ_NEIGH_NONE;
	idx = corq_neigh_find(nt, &a->spa);
	if (idx == CORQ_NEIGH_NONE) {
		if (learn != CORQ_NEIGH_MAY_CREATE || a->op != CORQ_ARP_REQUEST || gratuitous)
			return idx;
		idx = create(nt, &a->spa, now_ns);
		if (idx == CORQ_NEIGH_NONE)
			return idx;
	}
	e = &nt->entries[idx];
	if (e->state == CORQ_NEIGH_STATIC)
		return idx;
	if (confirms)
		resolve(nt, e, a->sha, CORQ_NEIGH_REACHABLE, now_ns);
	else if (e->state < CORQ_NEIGH_REACHABLE || memcmp(e->mac, a->sha, 6) != 0)
		resolve(nt, e, a->sha, CORQ_NEIGH_STALE, now_ns);
	return idx;
}

uint16_t
corq_neigh_set_static(
	struct corq_neigh *nt, const struct corq_addr *addr, const uint8_t mac[6], uint64_t now_ns)
{
	uint16_t idx = corq_neigh_find(nt, addr);

	if (idx == CORQ_NEIGH_NONE)
		idx = create(nt, addr, now_ns);
	if (idx != CORQ_NEIGH_NONE)
		resolve(nt, &nt->entries[idx], mac, CORQ_NEIGH_STATIC, now_ns);
	return idx;
}

/* What a due entry wants; each way out moves its deadline beyond now, or hands out some of what it
 * holds. */
static void
act(struct corq_neigh *nt, struct corq_neigh_entry *e, uint64_t now_ns, unsigned room,
	struct corq_neigh_action *out)
{
	bool asking = e->state == CORQ_NEIGH_INCOMPLETE || e->state == CORQ_NEIGH_PROBE;

	if (e->flush) {
		out->todo = CORQ_NEIGH_FLUSH;
		give_frames(nt, out->idx, room, out);
		if (e->n_held)
			return;
		e->flush = 0;
		e->due_ns = asking ? CORQ_MAX(now_ns, e->ask_after_ns) : CORQ_NEIGH_NEVER;
	} else if (e->tries < CORQ_NEIGH_TRIES) {
		out->todo = CORQ_NEIGH_SEND_REQUEST;
		out->unicast = e->state == CORQ_NEIGH_PROBE;
		e->tries++;
		e->ask_after_ns = e->due_ns = now_ns + CORQ_NEIGH_RETRANS_NS;
	} else {
		out->todo = CORQ_NEIGH_GAVE_UP;
		e->state = CORQ_NEIGH_FAILED;
		e->confirmed_ns = now_ns;
		give_frames(nt, out->idx, CORQ_NEIGH_PART, out);
		if (!e->n_held)
			e->due_ns = CORQ_NEIGH_NEVER;
	}
}

static void
find_next_due(struct corq_neigh *nt)
{
	nt->next_due_ns = CORQ_NEIGH_NEVER;
	for (uint16_t i = 0; i < nt->max; i++) {
		const struct corq_neigh_entry *e = &nt->entries[i];

		if (e->state != CORQ_NEIGH_FREE && e->due_ns < nt->next_due_ns)
			nt->next_due_ns = e->due_ns;
	}
	nt->cursor = 0;
}

bool
corq_neigh_poll(
	struct corq_neigh *nt, uint64_t now_ns, unsigned room, struct corq_neigh_action *out)
{
	CORQ_ASSERT(room > 0);
	while (now_ns >= nt->next_due_ns) {
		for (; nt->cursor < nt->max; nt->cursor++) {
			struct corq_neigh_entry *e = &nt->entries[nt->cursor];

			if (e->state == CORQ_NEIGH_FREE || e->due_ns > now_ns)
				continue;
			memset(out, 0, sizeof(*out));
			out->idx = nt->cursor;
			out->addr = e->addr;
			act(nt, e, now_ns, room, out);
			memcpy(out->mac, e->mac, 6);
			return true;
		}
		find_next_due(nt);
	}
	return false;
}
