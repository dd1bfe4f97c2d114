/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports.c - which local port a connect tries next, and how many are left towards a destination.
 * Called by connect and by the end of our own connections and their records. One thread.
 *
 * A destination looks at PROBE places from its hash on. Once used, a place stays in use, by this or
 * (when nothing is out: `used` 0) another destination; so a search may stop at the first place
 * never used. Each destination has a permutation of its own: who watches the ports towards one
 * server learns nothing about those towards another. A destination that takes over a place goes on
 * from the position found there, so that coming back does not begin with the same ports again.
 *
 * A destination may get a place while tuples of it are counted in the shared entry. Giving back
 * counts down its own place first, then the shared one: neither falls below 0, the sum is exact,
 * and corq_ports_free() of such a destination is an upper bound. So callers bound their walk by n.
 */
#include "tcp/ports.h"

#include "base/perm.h"

#define PROBE     8
#define PORTS_MAX 65536

static size_t
list_bytes(void)
{
	return PORTS_MAX * sizeof(uint16_t); /* a multiple of the line */
}

size_t
corq_ports_bytes(uint32_t n_dests)
{
	size_t bytes = list_bytes() + ((size_t)n_dests + 1) * sizeof(struct corq_dest);

	return (bytes + CORQ_CACHELINE - 1) / CORQ_CACHELINE * CORQ_CACHELINE;
}

void
corq_ports_init(struct corq_ports *p, void *mem, uint32_t n_dests, const struct corq_sipkey *key)
{
	*p = (struct corq_ports){
		.key = *key,
		.list = mem,
		.dests = (struct corq_dest *)(void *)((uint8_t *)mem + list_bytes()),
		.n_dests = n_dests,
	};
}

void
corq_ports_add(struct corq_ports *p, uint16_t port)
{
	CORQ_ASSERT(p->n < PORTS_MAX && (p->n == 0 || p->list[p->n - 1] < port));
	p->gaps |= p->n && p->list[p->n - 1] + 1 != port;
	p->list[p->n++] = port;
}

static inline uint64_t
fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Keyed, three multiplications instead of a SipHash: it is asked three times a connection. Nobody
 * outside sees it, and corq_perm puts it through SipHash before ports come of it. */
static inline uint64_t
dest_hash(const struct corq_ports *p, const struct corq_addr *raddr, uint16_t rport,
	uint32_t laddr_idx)
{
	uint64_t w = (uint64_t)laddr_idx << 16 | rport;
	uint64_t h = fold(raddr->q[0] ^ p->key.k0, raddr->q[1] ^ p->key.k1);

	return fold(fold(h ^ p->key.k1, w ^ p->key.k0), 0x9e3779b97f4a7c15ull);
}

static inline bool
dest_is(const struct corq_dest *d, const struct corq_addr *raddr, uint16_t rport,
	uint32_t laddr_idx)
{
	return d->rport == rport && d->laddr_idx == laddr_idx && corq_addr_eq(&d->raddr, raddr);
}

/* The destination's place; else NULL and, in *room, one that it may have (or NULL). */
static struct corq_dest *
dest_find(const struct corq_ports *p, uint64_t hash, const struct corq_addr *raddr, uint16_t rport,
	uint32_t laddr_idx, struct corq_dest **room)
{
	uint32_t probe = CORQ_MIN(PROBE, p->n_dests);
	uint32_t at = (uint32_t)(((hash >> 32) * p->n_dests) >> 32);

	*room = NULL;
	for (uint32_t i = 0; i < probe; i++, at = at + 1 == p->n_dests ? 0 : at + 1) {
		struct corq_dest *d = &p->dests[at];

		if (!d->live) {
			*room = d; /* never used: better than taking over */
			return NULL;
		}
		if (dest_is(d, raddr, rport, laddr_idx))
			return d;
		if (d->used == 0 && !*room)
			*room = d;
	}
	return NULL;
}

struct corq_dest *
corq_ports_dest(
	struct corq_ports *p, const struct corq_addr *raddr, uint16_t rport, uint32_t laddr_idx)
{
	uint64_t hash = dest_hash(p, raddr, rport, laddr_idx);
	struct corq_dest *room, *d = dest_find(p, hash, raddr, rport, laddr_idx, &room);

	if (CORQ_LIKELY(d != NULL))
		return d;
	if (!room)
		return &p->dests[p->n_dests];
	if (!room->live)
		room->position = (uint32_t)hash;
	room->raddr = *raddr;
	room->rport = rport;
	room->laddr_idx = laddr_idx;
	room->live = 1;
	room->ahead = 0;
	return room;
}

static inline bool
is_shared(const struct corq_ports *p, const struct corq_dest *d)
{
	return d == &p->dests[p->n_dests];
}

uint32_t
corq_ports_free(const struct corq_ports *p, const struct corq_dest *d)
{
	if (CORQ_UNLIKELY(is_shared(p, d)))
		return p->n;
	return d->used < p->n ? p->n - d->used : 0;
}

uint16_t
corq_ports_next(struct corq_ports *p, struct corq_dest *d)
{
	uint64_t tweak = dest_hash(p, &d->raddr, d->rport, d->laddr_idx);
	uint32_t i;

	CORQ_ASSERT(p->n > 0);
	if (CORQ_UNLIKELY(d->position >= p->n))
		d->position %= p->n;
	i = corq_perm(&p->key, tweak, p->n, d->position++);
	return p->gaps ? p->list[i] : (uint16_t)(p->list[0] + i);
}

void
corq_ports_take(struct corq_ports *p, struct corq_dest *d)
{
	d->used++;
	p->n_used++;
}

void
corq_ports_wait(struct corq_ports *p)
{
	CORQ_ASSERT(p->n_used > 0);
	p->n_used--;
	p->n_waiting++;
}

void
corq_ports_give(struct corq_ports *p, const struct corq_addr *raddr, uint16_t rport,
	uint32_t laddr_idx, bool was_waiting)
{
	uint64_t hash = dest_hash(p, raddr, rport, laddr_idx), *figure;
	struct corq_dest *room, *d = dest_find(p, hash, raddr, rport, laddr_idx, &room);

	if (!d || d->used == 0)
		d = &p->dests[p->n_dests];
	CORQ_ASSERT(d->used > 0);
	d->used--;
	figure = was_waiting ? &p->n_waiting : &p->n_used;
	CORQ_ASSERT(*figure > 0);
	--*figure;
}
