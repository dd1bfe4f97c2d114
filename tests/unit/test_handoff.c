/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_handoff.c - the way of a frame that missed, as a property over epochs and places of the
 * record; the rings, alone and between threads (run this one under ThreadSanitizer).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "core/handoff.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define CORES_MAX 8

struct group {
	struct corq_core *core[CORES_MAX];
	unsigned n;
	void *mem;
};

static void
group_start(struct group *g, unsigned n, unsigned first)
{
	g->n = n;
	for (unsigned i = 0; i < n; i++) {
		g->core[i] = calloc(1, sizeof(struct corq_core));
		g->core[i]->cfg.group = first;
		g->core[i]->cfg.index = first + i;
		g->core[i]->cfg.n = n;
	}
	g->mem = aligned_alloc(CORQ_CACHELINE, corq_handoff_bytes(n));
	corq_handoff_join(g->core, n, g->mem);
}

static void
group_end(struct group *g)
{
	for (unsigned i = 0; i < g->n; i++)
		free(g->core[i]);
	free(g->mem);
}

/* Random epochs over the cores of the group, the same on all. */
static void
random_epochs(struct group *g, struct corq_rand *r)
{
	struct corq_owner o = {.key = {corq_rand_u64(r), corq_rand_u64(r)}};

	o.port_first = 32768;
	o.port_last = 65535;
	o.n_epochs = (uint16_t)(1 + corq_rand_below(r, CORQ_EPOCHS));
	for (unsigned e = 0; e < o.n_epochs; e++) {
		o.epoch[e].n = (uint16_t)(1 + corq_rand_below(r, g->n));
		for (unsigned i = 0; i < o.epoch[e].n; i++)
			o.epoch[e].core[i] = (uint8_t)corq_rand_below(r, g->n);
	}
	for (unsigned i = 0; i < g->n; i++)
		g->core[i]->owner = o;
}

/*
 * Carries one frame from core to core through the rings until somebody has the record or answers.
 * Returns the core where it ended; *asked: which cores missed, *hops: how often it was sent.
 */
static unsigned
carry(struct group *g, const struct corq_key *key, unsigned at, unsigned record, uint32_t *asked,
	unsigned *hops, bool *answered)
{
	struct corq_frame frame = {.hops = 77 /* rubbish: counts with CORQ_FRAME_HANDED only */};

	*asked = *hops = 0;
	*answered = false;
	for (;;) {
		struct corq_frame *got;
		int to;

		if (at == record)
			return at;
		*asked |= 1u << at;
		to = corq_handoff_target(g->core[at], key, &frame);
		if (to < 0) {
			assert_int_equal(to, CORQ_HANDOFF_OURS);
			*answered = true;
			return at;
		}
		assert_true((unsigned)to != at && (unsigned)to < g->n);
		assert_true(corq_handoff_send(g->core[at], (unsigned)to, &frame));
		assert_true(++*hops <= CORQ_EPOCHS + 1);
		at = (unsigned)to;
		assert_int_equal(corq_handoff_recv(g->core[at], &got, 1), 1);
		assert_ptr_equal(got, &frame);
	}
}

/* Wherever it arrives and on whichever owner of a living epoch the record is, the frame gets there;
 * with no record every owner was asked and the present one answers. */
static void
every_owner_is_reached(void **state)
{
	struct corq_rand r;

	(void)state;
	print_message("seed 6\n");
	corq_rand_seed(&r, 6);
	for (int i = 0; i < 20000; i++) {
		struct group g;
		struct corq_key key = {.rport = 80};
		const struct corq_owner *o;
		unsigned hops, at, present;
		uint32_t asked, owners = 0;
		bool answered;

		if (i % 100 == 0) {
			if (i)
				group_end(&g);
			group_start(&g, 1 + (unsigned)corq_rand_below(&r, CORES_MAX),
				(unsigned)corq_rand_below(&r, 3) * CORES_MAX);
		}
		random_epochs(&g, &r);
		o = &g.core[0]->owner;
		key.lport = (uint16_t)corq_rand_u64(&r);
		key.raddr.q[1] = corq_rand_u64(&r);
		present = corq_owner_of(o, &key, 0);
		at = (unsigned)corq_rand_below(&r, g.n);
		for (unsigned e = 0; e < o->n_epochs; e++) {
			unsigned owner = corq_owner_of(o, &key, e);

			owners |= 1u << owner;
			assert_int_equal(
				carry(&g, &key, at, owner, &asked, &hops, &answered), owner);
			assert_false(answered);
			if (e == 0)
				assert_int_equal(hops, at != owner);
		}
		assert_int_equal(carry(&g, &key, at, g.n, &asked, &hops, &answered), present);
		assert_true(answered);
		assert_int_equal(asked & owners, owners);
		/* Each owner once, the way there and the way back. */
		assert_true(hops <= (unsigned)__builtin_popcount(owners) + 1);
		if (o->n_epochs == 1)
			assert_int_equal(hops, at != present);
		if (i == 19999)
			group_end(&g);
	}
}

/* Cores that do not agree on the epochs: the frame ends, answered or dropped, after few hops. */
static void
disagreement_ends(void **state)
{
	struct corq_rand r;
	unsigned drops = 0;
	struct group g;

	(void)state;
	print_message("seed 7\n");
	corq_rand_seed(&r, 7);
	group_start(&g, 5, 0);
	for (int i = 0; i < 20000; i++) {
		struct corq_owner mixed[5];
		struct corq_key key = {.lport = (uint16_t)corq_rand_u64(&r), .rport = 1};
		struct corq_frame frame = {0};
		unsigned at = (unsigned)corq_rand_below(&r, 5), hops = 0;
		int to;

		for (int c = 0; c < 5; c++) {
			random_epochs(&g, &r);
			mixed[c] = g.core[c]->owner;
		}
		for (int c = 0; c < 5; c++)
			g.core[c]->owner = mixed[c];
		while ((to = corq_handoff_target(g.core[at], &key, &frame)) >= 0) {
			frame.flags |= CORQ_FRAME_HANDED;
			at = (unsigned)to;
			assert_true(++hops <= CORQ_EPOCHS + 1);
		}
		if (to == CORQ_HANDOFF_OURS)
			assert_int_equal(corq_owner_of(&mixed[at], &key, 0), at);
		else
			drops++;
	}
	assert_true(drops > 0);
	group_end(&g);
}

static void
a_full_ring_drops_and_counts(void **state)
{
	static struct corq_frame frames[CORQ_HANDOFF_RING + 1];
	struct corq_frame *got[200];
	struct corq_stats *s0, *s1;
	struct group g;
	uint32_t n = 0;

	(void)state;
	group_start(&g, 3, 3);
	s0 = &g.core[0]->eng.stats;
	s1 = &g.core[1]->eng.stats;
	for (uint32_t i = 0; i < CORQ_HANDOFF_RING; i++)
		assert_true(corq_handoff_send(g.core[0], 1, &frames[i]));
	assert_false(corq_handoff_send(g.core[0], 1, &frames[CORQ_HANDOFF_RING]));
	assert_true(corq_handoff_send(g.core[0], 2, &frames[CORQ_HANDOFF_RING])); /* another ring */
	assert_int_equal(s0->handoff_dropped, 1);
	assert_int_equal(s0->handoff_out, CORQ_HANDOFF_RING + 1);
	while (n < CORQ_HANDOFF_RING) {
		unsigned k = corq_handoff_recv(g.core[1], got, 50);

		assert_true(k > 0 && k <= 50);
		for (unsigned i = 0; i < k; i++)
			assert_ptr_equal(got[i], &frames[n++]);
	}
	assert_int_equal(corq_handoff_recv(g.core[1], got, 50), 0);
	assert_int_equal(s1->handoff_in, CORQ_HANDOFF_RING);
	assert_int_equal(corq_handoff_recv(g.core[2], got, 50), 1);
	group_end(&g);
	group_start(&g, 1, 0);
	assert_int_equal(corq_handoff_recv(g.core[0], got, 50), 0);
	group_end(&g);
}

/* A core that floods does not starve another one: both come in within n calls. */
static void
receiving_is_fair(void **state)
{
	static struct corq_frame frames[1000], other[4];
	struct corq_frame *got[32];
	unsigned seen[4] = {0};
	struct group g;

	(void)state;
	group_start(&g, 4, 0);
	for (int i = 0; i < 500; i++) {
		corq_handoff_send(g.core[0], 3, &frames[i]);
		corq_handoff_send(g.core[2], 3, &frames[500 + i]);
	}
	corq_handoff_send(g.core[1], 3, &other[1]);
	for (int call = 0; call < 4; call++) {
		unsigned n = corq_handoff_recv(g.core[3], got, 32);

		assert_int_equal(n, 32);
		for (unsigned i = 0; i < n; i++)
			seen[got[i] == &other[1] ? 1 : got[i] < &frames[500] ? 0 : 2]++;
	}
	assert_true(seen[0] > 0 && seen[1] == 1 && seen[2] > 0);
	group_end(&g);
}

/* ---- between threads ---- */

enum {
	THREADS = 3,
	PER_THREAD = 60000,
	FRAMES = 3000
};

struct msg { /* a frame and the bytes that only its present owner touches */
	struct corq_frame frame;
	uint32_t from, serial, sum;
};

struct worker {
	struct group *g;
	unsigned me;
	struct msg *own;   /* FRAMES of them, sent out and coming back */
	struct msg **back; /* of others, to be sent home: a full ring must not stop us */
	uint32_t n_back;
	uint32_t n_sent, n_home, n_dropped, last[THREADS];
	_Atomic uint32_t *n_done;
};

static void
take_in(struct worker *w, struct msg **idle, uint32_t *n_idle)
{
	struct corq_core *core = w->g->core[w->me];
	struct corq_frame *got[16];
	unsigned n = corq_handoff_recv(core, got, 16);

	for (unsigned i = 0; i < n; i++) {
		struct msg *m = (struct msg *)(void *)got[i];

		assert_true(got[i]->flags & CORQ_FRAME_HANDED);
		assert_int_equal(m->sum, m->from * 31 + m->serial);
		if (m->from == w->me) { /* home again */
			idle[(*n_idle)++] = m;
			w->n_home++;
			continue;
		}
		assert_true(m->serial > w->last[m->from]); /* in order from each core */
		w->last[m->from] = m->serial;
		m->frame.hops++;
		w->back[w->n_back++] = m;
	}
}

static void
send_home(struct worker *w)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < w->n_back; i++) {
		struct msg *m = w->back[i];

		if (!corq_handoff_send(w->g->core[w->me], m->from, &m->frame)) {
			w->n_dropped++;
			w->back[left++] = m;
		}
	}
	w->n_back = left;
}

/* Sends its frames to the others, and sends theirs back. */
static void *
work(void *arg)
{
	struct worker *w = arg;
	struct corq_core *core = w->g->core[w->me];
	struct msg **idle = malloc(FRAMES * sizeof(*idle));
	uint32_t n_idle = 0, serial = 0;
	bool told = false;

	for (uint32_t i = 0; i < FRAMES; i++) {
		w->own[i].from = w->me;
		idle[n_idle++] = &w->own[i];
	}
	while (corq_load_acquire_u32(w->n_done) < THREADS) {
		for (int i = 0; i < 20 && n_idle && w->n_sent < PER_THREAD; i++) {
			struct msg *m = idle[n_idle - 1];
			unsigned to = (w->me + 1 + serial % (THREADS - 1)) % THREADS;

			m->serial = ++serial;
			m->sum = m->from * 31 + m->serial;
			m->frame.hops = 0;
			if (!corq_handoff_send(core, to, &m->frame)) {
				w->n_dropped++;
				break;
			}
			n_idle--;
			w->n_sent++;
		}
		take_in(w, idle, &n_idle);
		send_home(w);
		if (!told && w->n_home == PER_THREAD) {
			told = true;
			corq_rmw_add_seqcst_u32(w->n_done, 1);
		}
		sched_yield();
	}
	free(idle);
	return NULL;
}

static void
three_threads(void **state)
{
	struct worker w[THREADS];
	pthread_t thread[THREADS];
	_Atomic uint32_t n_done;
	struct group g;
	uint64_t in = 0, out = 0, dropped = 0, seen_drops = 0;

	(void)state;
	corq_store_relaxed_u32(&n_done, 0);
	group_start(&g, THREADS, 0);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.g = &g, .me = i, .n_done = &n_done};
		w[i].own = calloc(FRAMES, sizeof(struct msg));
		w[i].back = calloc((size_t)THREADS * FRAMES, sizeof(struct msg *));
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		struct corq_stats *s = &g.core[i]->eng.stats;

		assert_int_equal(w[i].n_sent, PER_THREAD);
		assert_int_equal(w[i].n_home, PER_THREAD);
		in += s->handoff_in;
		out += s->handoff_out;
		dropped += s->handoff_dropped;
		seen_drops += w[i].n_dropped;
		free(w[i].own);
		free(w[i].back);
	}
	assert_int_equal(in, 2ull * THREADS * PER_THREAD);
	assert_int_equal(out, in);
	assert_int_equal(dropped, seen_drops);
	group_end(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_owner_is_reached),
		cmocka_unit_test(disagreement_ends),
		cmocka_unit_test(a_full_ring_drops_and_counts),
		cmocka_unit_test(receiving_is_fair),
		cmocka_unit_test(three_threads),
	};

	return cmocka_run_group_tests_name("handoff", tests, NULL, NULL);
}
