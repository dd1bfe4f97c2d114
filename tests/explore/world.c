/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - a region, lanes, what a step does, and the rules of each state. world_end.c has those
 * of the end. world.h says what all that is.
 */
#include "world_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	GLOBAL = 4 * 4096,
	REGION = 1024
};

#define EMPTY_BOX ((corq_h)1) /* the opener got none; no handle is 1 */

struct world w;
static uint8_t global[GLOBAL] __attribute__((aligned(4096)));
static uint8_t region[M_THREADS + 1][REGION] CORQ_ALIGNED_LINE; /* the last: for ATTACH */
static uint8_t before[M_THREADS + 1][REGION];
static const struct scenario *sc;

/* ---- the start ---- */

static void
attach(uint32_t t, uint32_t r)
{
	struct corq_lane_config c = {.limit = sc->limit[t],
		.order = sc->fast >> t & 1 ? CORQ_LANE_FAST : CORQ_LANE_LOWEST};

	if (corq_lane_attach(&w.lane[t], &w.h, (void *)region[r], &c) != 0)
		m_violate("attach: no lane number is free");
}

static void
open_before(void)
{
	uint32_t i = 0;

	for (uint32_t t = 0; t < sc->n_threads; t++)
		for (uint32_t k = 0; k < sc->open[t]; k++, i++) {
			struct w_handle *x = &w.handle[i];

			x->h = corq_lane_alloc(&w.lane[t], i);
			x->opener = t;
			corq_store_relaxed_u64(&x->box, x->h);
			if (x->h == CORQ_H_NONE)
				m_violate("the scenario opens more than there are slots");
		}
}

static void
name_openers(void)
{
	for (uint32_t t = 0; t < sc->n_threads; t++)
		for (const struct m_step *s = sc->step[t]; s->fn != NULL; s++)
			if (s->fn == world_open)
				w.handle[s->a].opener = t;
}

static void
add_ranges(void)
{
	m_range(global, (size_t)((uint8_t *)(w.h.line + w.h.n_lanes) - global));
	m_range(w.h.remote, w.h.n_blocks * sizeof(*w.h.remote));
	m_range(w.h.slot, w.h.n_slots * sizeof(*w.h.slot));
	for (uint32_t r = 0; r < sc->n_threads; r++)
		m_range(region[r], corq_lane_size(sc->n_slots));
	m_range(region[M_THREADS], corq_lane_size(sc->n_slots));
	m_range(&w, offsetof(struct world, h));
	m_range(w.h.lane_at, w.h.n_lanes * sizeof(w.h.lane_at[0]));
}

void
world_start(const struct scenario *s)
{
	static const struct m_step *steps[M_THREADS];

	sc = s;
	memset(&w, 0, sizeof(w));
	memset(global, 0, sizeof(global));
	memset(region, 0, sizeof(region));
	for (uint32_t t = 0; t < s->n_threads; t++)
		steps[t] = s->step[t];
	m_init(s->n_threads, steps, s->die);
	if (corq_handles_size(s->n_slots, s->n_threads) > GLOBAL ||
		corq_lane_size(s->n_slots) > REGION || s->n_slots > W_SLOTS)
		m_violate("the explorer's regions are too small");
	corq_handles_init(&w.h, global, s->n_slots, s->n_threads, 1);
	for (uint32_t n = 0; s->last_generation && n < s->n_slots; n++)
		corq_store_relaxed_u64(&w.h.slot[n].word, CORQ_H_GEN_LAST << CORQ_H_SLOT_BITS);
	for (uint32_t t = 0; t < s->n_threads; t++)
		attach(t, t);
	open_before();
	name_openers();
	for (uint32_t t = 0; t < s->n_threads; t++)
		if (s->rest >> t & 1)
			corq_lane_rest(&w.lane[t]);
	add_ranges();
}

uint32_t
world_threads(void)
{
	return sc->n_threads;
}

bool
world_attach_spare(void)
{
	struct corq_lane_config c = {0};

	uint32_t t = 0;

	while (t < sc->n_threads && m_status_of(t) == M_DEAD)
		t++;
	memset(region[M_THREADS], 0, REGION);
	if (t == sc->n_threads ||
		corq_lane_attach(&w.lane[t], &w.h, (void *)region[M_THREADS], &c) != 0)
		return false;
	w.life[t] = w.gone[t];
	return true;
}

/* ---- the oracle ---- */

bool
world_lane_gone(uint32_t t)
{
	return m_status_of(t) == M_DEAD || w.gone[t] > w.life[t];
}

bool
world_is_orphan(const struct w_handle *x)
{
	return m_status_of(x->opener) == M_DEAD || w.gone[x->opener] > x->life;
}

bool
world_somebody_died(void)
{
	for (uint32_t t = 0; t < sc->n_threads; t++)
		if (m_status_of(t) == M_DEAD)
			return true;
	return w.died;
}

bool
world_somebody_ended(void)
{
	for (uint32_t t = 0; t < sc->n_threads; t++)
		if (w.gone[t])
			return true;
	return world_somebody_died();
}

/* The opener got it, and did not die before it stood in memory. */
bool
world_exists(const struct w_handle *x)
{
	return x->h != CORQ_H_NONE &&
	       (m_status_of(x->opener) != M_DEAD || m_memory(&x->box, 8) == x->h);
}

/* Opened, and nobody has begun to close it. */
static bool
is_surely_open(const struct w_handle *x)
{
	return world_exists(x) && x->begun == 0 && !world_is_orphan(x);
}

void
world_was_given(uint32_t i, corq_h h)
{
	for (uint32_t k = 0; k < W_HANDLES; k++) {
		const struct w_handle *x = &w.handle[k];

		if (k == i || !world_exists(x))
			continue;
		if (x->h == h)
			m_violate("handle %u is given again as %u (slot %u)", k, i, corq_h_slot(h));
		if (corq_h_slot(x->h) == corq_h_slot(h) && is_surely_open(x))
			m_violate("slot %u of open handle %u is given to %u", corq_h_slot(h), k, i);
	}
}

static void
was_closed(uint32_t t, uint32_t i, int rc)
{
	struct w_handle *x = &w.handle[i];

	if (rc == 0 && ++x->wins > 1)
		m_violate("two closers of handle %u were told 0", i);
	else if (rc != 0 && rc != -EBADF)
		m_violate("close of handle %u by thread %u says %d", i, t, rc);
	else if (rc != 0 && x->begun == 1 && !world_is_orphan(x))
		m_violate("thread %u alone closes handle %u, and is told EBADF", t, i);
}

/* ---- steps ---- */

void
world_open(uint32_t t, const struct m_step *s)
{
	struct w_handle *x = &w.handle[s->a];
	corq_h h = corq_lane_alloc(&w.lane[t], s->a);

	if (h == CORQ_H_NONE) {
		if (s->b)
			m_violate("thread %u: EMFILE, though a slot can be had", t);
		corq_store_release_u64(&x->box, EMPTY_BOX);
		return;
	}
	world_was_given(s->a, h);
	x->h = h;
	x->life = w.life[t];
	corq_store_release_u64(&x->box, h);
}

bool
world_has(uint32_t t, const struct m_step *s)
{
	const struct w_handle *x = &w.handle[s->a];

	return x->opener == t || m_memory(&x->box, 8) != CORQ_H_NONE || m_ended(x->opener);
}

/* The handle that thread t has under number i, or CORQ_H_NONE. */
static corq_h
known(uint32_t t, uint32_t i)
{
	const struct w_handle *x = &w.handle[i];
	corq_h h;

	if (x->opener == t)
		return x->h;
	h = corq_load_acquire_u64(&x->box);
	return h == EMPTY_BOX ? CORQ_H_NONE : h;
}

void
world_close(uint32_t t, const struct m_step *s)
{
	corq_h h = known(t, s->a);

	if (h == CORQ_H_NONE)
		return;
	w.handle[s->a].begun++;
	was_closed(t, s->a, corq_lane_close(&w.lane[t], h));
}

void
world_defer(uint32_t t, const struct m_step *s)
{
	corq_h h = known(t, s->a);

	if (h == CORQ_H_NONE)
		return;
	w.handle[s->a].begun++;
	was_closed(t, s->a, corq_lane_close_deferred(&w.lane[t], h));
}

void
world_turn_end(uint32_t t, const struct m_step *s)
{
	(void)s;
	corq_lane_turn_end(&w.lane[t]);
}

void
world_look_up(uint32_t t, const struct m_step *s)
{
	const struct w_handle *x = &w.handle[s->a];
	uint32_t conn = CORQ_NONE;
	corq_h h = known(t, s->a);
	bool closed = x->wins != 0;
	int rc;

	if (h == CORQ_H_NONE)
		return;
	rc = corq_handle_lookup(&w.h, h, &conn);
	if (rc == 0 && closed)
		m_violate("handle %u was closed, and is found", s->a);
	if (rc != 0 && is_surely_open(x))
		m_violate("handle %u is open, and is not found", s->a);
	if (rc == 0 && is_surely_open(x) && conn != s->a)
		m_violate("handle %u names object %u", s->a, conn);
}

void
world_poll(uint32_t t, const struct m_step *s)
{
	(void)s;
	if (corq_lane_close(&w.lane[t], CORQ_H_NONE) != -EBADF)
		m_violate("the handle that is none was closed");
}

void
world_rest(uint32_t t, const struct m_step *s)
{
	(void)s;
	corq_lane_rest(&w.lane[t]);
}

void
world_detach(uint32_t t, const struct m_step *s)
{
	(void)s;
	w.gone[t] = (uint8_t)(w.life[t] + 1);
	corq_lane_detach(&w.lane[t]);
}

void
world_attach(uint32_t t, const struct m_step *s)
{
	(void)s;
	attach(t, M_THREADS);
	w.life[t]++;
}

bool
world_is_over(uint32_t t, const struct m_step *s)
{
	(void)t;
	return m_ended(s->a);
}

void
world_report(uint32_t t, const struct m_step *s)
{
	(void)t;
	w.died = 1;
	w.gone[s->a] = (uint8_t)(w.life[s->a] + 1);
	corq_lane_died(&w.h, w.lane[s->a].id);
}

void
world_bury(uint32_t t, const struct m_step *s)
{
	world_report(t, s);
	corq_lane_reclaim(&w.h, w.lane[s->a].id, w.lane[t].id);
}

void
world_raise(uint32_t t, const struct m_step *s)
{
	(void)t;
	corq_store_release_u32(&w.flag[s->a], 1);
}

bool
world_is_raised(uint32_t t, const struct m_step *s)
{
	(void)t;
	return m_memory(&w.flag[s->a], 4) != 0;
}

void
world_nothing(uint32_t t, const struct m_step *s)
{
	(void)t;
	(void)s;
}

/* ---- rules of each state ---- */

/* A handle that all can see and nobody closes stands in its slot. */
static void
check_open_handles(void)
{
	for (uint32_t i = 0; i < W_HANDLES; i++) {
		const struct w_handle *x = &w.handle[i];
		uint64_t word;

		if (!is_surely_open(x) || m_memory(&x->box, 8) != x->h)
			continue;
		word = m_memory(&w.h.slot[corq_h_slot(x->h)].word, 8);
		if (!(word & CORQ_SLOT_LIVE) || (word ^ x->h) >> CORQ_H_SLOT_BITS)
			m_violate("handle %u is open, and its slot %u says %llx", i,
				corq_h_slot(x->h), (unsigned long long)word);
	}
}

/* A block stands in one lane's table at most. */
static void
check_blocks(void)
{
	uint32_t seen = 0;

	for (uint32_t t = 0; t < sc->n_threads; t++) {
		const struct corq_lane_mem *m = w.lane[t].m;

		if (m == NULL || world_lane_gone(t))
			continue;
		for (uint32_t k = 0; k < CORQ_LANE_BLOCKS; k++) {
			uint32_t block = m->sum[k].first >> CORQ_WORD_SHIFT;

			if (!(m->mine[k >> CORQ_WORD_SHIFT] >> (k & (CORQ_WORD_BITS - 1)) & 1))
				continue;
			if (block >= w.h.n_blocks || seen >> block & 1)
				m_violate("block %u belongs to two lanes", block);
			seen |= 1u << block;
		}
	}
}

void
world_check(void)
{
	check_open_handles();
	check_blocks();
}

/* ---- who writes whose region ---- */

void
world_before_run(uint32_t t)
{
	(void)t;
	for (uint32_t r = 0; r <= M_THREADS; r++)
		memcpy(before[r], region[r], corq_lane_size(sc->n_slots));
}

/* May thread t write the region of thread owner's lane? Its owner while it runs; a thief when the
 * lane's state says so. */
static bool
may_write(uint32_t t, uint32_t owner)
{
	const struct corq_lane *l = &w.lane[owner];
	uint64_t state = m_memory(&l->line->state, 4);

	if (t == owner)
		return l->m == NULL || state == CORQ_LANE_RUN;
	return state == ((w.lane[t].id + 1) << CORQ_LANE_STATE_BITS | CORQ_LANE_STEALING);
}

void
world_after_run(uint32_t t)
{
	for (uint32_t r = 0; r <= M_THREADS; r++) {
		if (memcmp(before[r], region[r], corq_lane_size(sc->n_slots)) == 0)
			continue;
		for (uint32_t owner = 0; owner < sc->n_threads; owner++)
			if (w.lane[owner].m == (void *)region[r] && !may_write(t, owner))
				m_violate("thread %u writes in the region of thread %u's lane", t,
					owner);
	}
}

/* ---- names ---- */

/* Is p inside the n things of this size at base? Then which, and how far in. */
static bool
inside(const volatile void *p, const void *base, size_t size, uint32_t n, uint32_t *i, size_t *off)
{
	size_t d = (size_t)((uintptr_t)p - (uintptr_t)base);

	*i = (uint32_t)(d / size);
	*off = d % size;
	return (uintptr_t)p >= (uintptr_t)base && d < size * n;
}

static const char *
line_member(size_t off)
{
	static const struct {
		size_t off;
		const char *name;
	} member[] = {
		{offsetof(struct corq_lane_line, mail), "mail"},
		{offsetof(struct corq_lane_line, wanted), "wanted"},
		{offsetof(struct corq_lane_line, state), "state"},
		{offsetof(struct corq_lane_line, spare), "spare"},
		{offsetof(struct corq_lane_line, left), "left"},
		{offsetof(struct corq_lane_line, n_blocks), "n_blocks"},
		{offsetof(struct corq_lane_line, limit), "limit"},
		{offsetof(struct corq_lane_line, map), "map[0]"},
		{offsetof(struct corq_lane_line, map) + 8, "map[1]"},
	};

	for (uint32_t i = 0; i < CORQ_ARRAY_LEN(member); i++)
		if (member[i].off == off)
			return member[i].name;
	return "?";
}

const char *
world_name(const volatile void *p)
{
	static char name[64];
	uint32_t i;
	size_t off;

	if (inside(p, (void *)w.h.dir, 4, w.h.n_blocks, &i, &off))
		snprintf(name, sizeof(name), "dir[%u]", i);
	else if (inside(p, (void *)w.h.taken, 8, 1, &i, &off))
		snprintf(name, sizeof(name), "taken");
	else if (inside(p, w.h.line, sizeof(*w.h.line), w.h.n_lanes, &i, &off))
		snprintf(name, sizeof(name), "lane %u's %s", i, line_member(off));
	else if (inside(p, w.h.remote, sizeof(*w.h.remote), w.h.n_blocks, &i, &off))
		snprintf(name, sizeof(name), "remote[%u].%s", i,
			off == offsetof(struct corq_remote, some) ? "some"
			: off == 0                                ? "word[0]"
								  : "word[1]");
	else if (inside(p, w.h.slot, sizeof(*w.h.slot), w.h.n_slots, &i, &off))
		snprintf(name, sizeof(name), "slot[%u].%s", i,
			off == 0 ? "word" : (off == 8 ? "ready" : "conn"));
	else if (inside(p, w.handle, sizeof(w.handle[0]), W_HANDLES, &i, &off))
		snprintf(name, sizeof(name), "box[%u]", i);
	else if (inside(p, (void *)w.flag, 4, W_FLAGS, &i, &off))
		snprintf(name, sizeof(name), "flag[%u]", i);
	else if (p == &w.h.head->n_free || p == &w.h.head->epoch || p == &w.h.head->n_retired)
		snprintf(name, sizeof(name), "%s",
			p == &w.h.head->n_free  ? "n_free"
			: p == &w.h.head->epoch ? "epoch"
						: "n_retired");
	else
		snprintf(name, sizeof(name), "%p", (const void *)(uintptr_t)p);
	return name;
}
