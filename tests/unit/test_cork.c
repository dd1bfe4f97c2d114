/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cork.c - the one decision of the send side, over every combination of its inputs.
 *
 * The oracle says which transmissions are *allowed*, clause by clause, and takes the longest; it
 * knows nothing of the order in which cork.h asks. A small segment size keeps every length around
 * three segments within reach of a full enumeration; a second pass takes real sizes, where the
 * lengths that matter are those at multiples of the segment and at the windows' edges.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "tcp/cork.h"

#include <stdio.h>

/* ---- the oracle ---- */

/* May bytes wait for company? A queued FIN or a flush cancels every such wait (R4). */
static bool
may_wait(const struct corq_cork_in *q)
{
	return !q->fin && !q->flush;
}

/* Minshall: an earlier short segment is out, and nobody said NODELAY. */
static bool
nagle(const struct corq_cork_in *q)
{
	return may_wait(q) && !q->nodelay && q->small_out;
}

/* Cork and MORE are about a queue's last bytes; they hold whatever NODELAY says. */
static bool
corked(const struct corq_cork_in *q)
{
	return may_wait(q) && (q->cork || q->more);
}

/* RFC 9293 3.8.6.2.1 (3) and (4): the peer's window, not ours, leaves less than a segment, and what
 * fits is half of the largest window it ever had, or the wait for more has lasted too long. */
static bool
silly_but_due(const struct corq_cork_in *q, uint32_t len)
{
	bool peer_cuts = q->wnd_room <= q->cwnd_room || q->cwnd_room >= q->mss;

	return len > 0 && len < q->mss && peer_cuts && (q->override || len >= q->max_wnd / 2);
}

/* May exactly these leave next? */
static bool
allowed(const struct corq_cork_in *q, uint32_t len, bool fin)
{
	bool whole = len == q->unsent, short_end = len % q->mss != 0;

	if (len == 0 && !fin)
		return false; /* nothing is no transmission */
	if (len > q->unsent || len > q->wnd_room || len > q->cwnd_room || len > q->max_len)
		return false;
	if (fin && !(q->fin && whole && len < q->wnd_room && q->cwnd_room > 0))
		return false; /* FIN: behind the last byte, one number of window (R3, R5, R6) */
	if (!short_end)
		return true;
	if (nagle(q))
		return false;
	if (whole)
		return !corked(q);
	return silly_but_due(q, len) && !(corked(q) && q->unsent < q->mss);
}

/* Why nothing may leave. In words, not in the order of cork.h: the blocker that must go first. */
static enum corq_cork_hold
blocker(const struct corq_cork_in *q)
{
	uint32_t fit = CORQ_MIN(q->wnd_room, q->cwnd_room), want = CORQ_MIN(q->unsent, q->mss);

	if (q->unsent == 0 && !q->fin)
		return CORQ_HOLD_NOTHING;
	if (q->unsent == 0)
		return q->wnd_room == 0 ? CORQ_HOLD_WND : CORQ_HOLD_CWND;
	if (q->unsent < q->mss && corked(q))
		return CORQ_HOLD_CORK;
	if (q->unsent < q->mss && nagle(q))
		return CORQ_HOLD_NAGLE;
	if (fit < want && q->cwnd_room < q->wnd_room)
		return CORQ_HOLD_CWND;
	if (nagle(q))
		return CORQ_HOLD_NAGLE;
	return CORQ_HOLD_WND;
}

static struct corq_cork_out
expect(const struct corq_cork_in *q, uint32_t len, bool fin)
{
	struct corq_cork_out o = {.len = len, .fin = fin};

	/* PSH where the queue ends, and where the window makes us send a crumb. */
	o.psh = len > 0 && (len == q->unsent || len % q->mss != 0);
	return o;
}

/* The longest transmission allowed, with FIN if that is allowed too. */
static struct corq_cork_out
oracle(const struct corq_cork_in *q)
{
	for (uint32_t len = q->unsent; len > 0; len--)
		if (allowed(q, len, false))
			return expect(q, len, allowed(q, len, true));
	if (allowed(q, 0, true))
		return expect(q, 0, true);
	return (struct corq_cork_out){.hold = blocker(q)};
}

/* The same where walking all lengths would take too long: an answer ends at the queue's end, at a
 * window's edge, or at a whole segment below one of those. */
static struct corq_cork_out
oracle_by_edges(const struct corq_cork_in *q)
{
	uint32_t edge[] = {q->unsent, q->wnd_room, q->cwnd_room, q->max_len}, best = 0;

	for (unsigned i = 0; i < CORQ_ARRAY_LEN(edge); i++) {
		uint32_t whole = edge[i] - edge[i] % q->mss;

		if (edge[i] > best && allowed(q, edge[i], false))
			best = edge[i];
		if (whole > best && allowed(q, whole, false))
			best = whole;
	}
	if (best)
		return expect(q, best, allowed(q, best, true));
	if (allowed(q, 0, true))
		return expect(q, 0, true);
	return (struct corq_cork_out){.hold = blocker(q)};
}

/* ---- comparing ---- */

static void
print(const char *what, const struct corq_cork_in *q, const struct corq_cork_out *o)
{
	fprintf(stderr,
		"%s: unsent %u wnd %u cwnd %u mss %u max_wnd %u max_len %u%s%s%s%s%s%s%s -> len "
		"%u fin %d psh %d hold %d\n",
		what, q->unsent, q->wnd_room, q->cwnd_room, q->mss, q->max_wnd, q->max_len,
		q->fin ? " FIN" : "", q->cork ? " cork" : "", q->more ? " more" : "",
		q->nodelay ? " nodelay" : "", q->flush ? " flush" : "",
		q->small_out ? " small_out" : "", q->override ? " override" : "", o->len, o->fin,
		o->psh, o->hold);
}

static bool
same(const struct corq_cork_out *a, const struct corq_cork_out *b)
{
	return a->len == b->len && a->fin == b->fin && a->psh == b->psh && a->hold == b->hold;
}

static void
check(const struct corq_cork_in *q, const struct corq_cork_out *want)
{
	struct corq_cork_out got = corq_cork_decide(q);

	if (CORQ_LIKELY(same(&got, want)))
		return;
	print("got     ", q, &got);
	print("expected", q, want);
	fail();
}

/* What must hold whatever the oracle thinks. */
static void
check_rules(const struct corq_cork_in *q)
{
	struct corq_cork_out o = corq_cork_decide(q), p;
	struct corq_cork_in r = *q;
	bool ok;

	/* Never beyond what is queued and what the windows allow; FIN costs a number, no byte. */
	ok = o.len <= q->unsent && o.len <= q->cwnd_room && o.len <= q->max_len &&
	     o.len + o.fin <= q->wnd_room + (o.len + o.fin == 0);
	/* FIN never before a byte, and not without need: it rides whenever it may (R1, R2). */
	ok = ok && (!o.fin || (q->fin && o.len == q->unsent));
	ok = ok && (!q->fin || o.fin || o.len < q->unsent || q->wnd_room <= q->unsent ||
			   q->cwnd_room < CORQ_MAX(q->unsent, 1u));
	/* A queued FIN is waited for by nothing but windows (R4). */
	ok = ok && !(q->fin && (o.hold == CORQ_HOLD_CORK || o.hold == CORQ_HOLD_NAGLE ||
				       o.hold == CORQ_HOLD_NOTHING));
	/* A reason is given exactly when nothing leaves. */
	ok = ok && (o.hold == CORQ_HOLD_NONE) == (o.len || o.fin);
	ok = ok && (!o.psh || o.len);
	/* Taking the reason away gives another answer; so no hold names the wrong cause. */
	switch (o.hold) {
	case CORQ_HOLD_CORK:
		r.cork = r.more = false;
		break;
	case CORQ_HOLD_NAGLE:
		r.nodelay = true;
		break;
	case CORQ_HOLD_WND:
		r.wnd_room = UINT32_MAX;
		break;
	case CORQ_HOLD_CWND:
		r.cwnd_room = UINT32_MAX;
		break;
	case CORQ_HOLD_NOTHING:
		r.unsent = r.mss;
		break;
	case CORQ_HOLD_NONE:
		break;
	}
	p = corq_cork_decide(&r);
	ok = ok && (o.hold == CORQ_HOLD_NONE || p.hold != o.hold);
	/* One number more of the peer's window never lets less leave (unless cwnd then cuts). */
	r = *q;
	r.wnd_room++;
	p = corq_cork_decide(&r);
	ok = ok && (p.len + p.fin >= o.len + o.fin || q->cwnd_room < CORQ_MIN(q->mss, q->unsent));
	if (CORQ_LIKELY(ok))
		return;
	print("broken rule", q, &o);
	print("compare    ", &r, &p);
	fail();
}

static void
set_flags(struct corq_cork_in *q, unsigned bits)
{
	q->fin = bits & 1;
	q->cork = bits & 2;
	q->more = bits & 4;
	q->nodelay = bits & 8;
	q->flush = bits & 16;
	q->small_out = bits & 32;
	q->override = bits & 64;
}

/* ---- all of it ---- */

enum {
	MSS = 4,
	SPAN = 3 * MSS + 2
};

static void
every_combination(void **state)
{
	static const uint32_t max_wnd[] = {0, MSS - 1, MSS, 2 * MSS - 1, 2 * MSS, 100};
	static const uint32_t max_len[] = {MSS, 2 * MSS + 3, 65535};
	uint64_t n = 0;
	struct corq_cork_in q = {.mss = MSS};

	(void)state;
	for (unsigned bits = 0; bits < 128; bits++) {
		set_flags(&q, bits);
		for (unsigned i = 0; i < CORQ_ARRAY_LEN(max_wnd) * CORQ_ARRAY_LEN(max_len); i++) {
			q.max_wnd = max_wnd[i % CORQ_ARRAY_LEN(max_wnd)];
			q.max_len = max_len[i / CORQ_ARRAY_LEN(max_wnd)];
			for (uint32_t p = 0; p < SPAN * SPAN * SPAN; p++, n++) {
				struct corq_cork_out want;

				q.unsent = p % SPAN;
				q.wnd_room = p / SPAN % SPAN;
				q.cwnd_room = p / SPAN / SPAN;
				want = oracle(&q);
				check(&q, &want);
				check_rules(&q);
			}
		}
	}
	print_message("%llu combinations\n", (unsigned long long)n);
}

/* A length at a multiple of the segment, give or take one, or an extreme. */
static uint32_t
a_length(struct corq_rand *r, uint32_t mss)
{
	static const uint32_t extreme[] = {0, 1, 65534, 65535, 65536, 1u << 30, INT32_MAX};
	uint32_t k = (uint32_t)corq_rand_below(r, 50);

	if (k < CORQ_ARRAY_LEN(extreme))
		return extreme[k];
	return k * mss + (uint32_t)corq_rand_below(r, 3) - 1;
}

static void
real_sizes(void **state)
{
	static const uint32_t mss[] = {88, 536, 1000, 1448, 1460, 8948};
	struct corq_rand r;

	(void)state;
	print_message("seed 1\n");
	corq_rand_seed(&r, 1);
	for (int i = 0; i < 2000000; i++) {
		struct corq_cork_in q = {
			.mss = mss[corq_rand_below(&r, CORQ_ARRAY_LEN(mss))], .max_len = 65535};
		struct corq_cork_out want;

		set_flags(&q, (unsigned)corq_rand_below(&r, 128));
		q.unsent = a_length(&r, q.mss);
		q.wnd_room = corq_rand_below(&r, 8) ? a_length(&r, q.mss) : q.unsent + q.fin;
		q.cwnd_room = corq_rand_below(&r, 8) ? a_length(&r, q.mss) : q.unsent;
		q.max_wnd = CORQ_MAX(a_length(&r, q.mss), q.wnd_room);
		want = oracle_by_edges(&q);
		check(&q, &want);
		check_rules(&q);
	}
}

/* Asked again and again, as output.c does, until nothing more leaves: everything goes, once, in
 * order, and FIN last. */
static void
a_whole_queue(void **state)
{
	struct corq_rand r;

	(void)state;
	print_message("seed 2\n");
	corq_rand_seed(&r, 2);
	for (int i = 0; i < 200000; i++) {
		uint32_t total = (uint32_t)corq_rand_below(&r, 200), sent = 0, wnd, cwnd;
		struct corq_cork_in q = {.mss = 10, .max_len = 35, .max_wnd = 1000};
		bool fin_sent = false;
		struct corq_cork_out o;
		int asked;

		set_flags(&q, (unsigned)corq_rand_below(&r, 32)); /* nothing in flight */
		wnd = q.wnd_room = (uint32_t)corq_rand_below(&r, 250);
		cwnd = q.cwnd_room = 10 * (1 + (uint32_t)corq_rand_below(&r, 25));
		q.unsent = total;
		for (asked = 0; asked < 100; asked++) {
			o = corq_cork_decide(&q);
			if (o.len == 0 && !o.fin)
				break;
			assert_false(fin_sent);
			sent += o.len;
			q.unsent -= o.len;
			q.wnd_room -= o.len + o.fin;
			q.cwnd_room -= o.len;
			q.small_out |= o.len % q.mss != 0;
			fin_sent = o.fin;
			q.fin = q.fin && !o.fin;
		}
		assert_in_range(asked, 0, 24);
		assert_int_equal(sent + q.unsent, total);
		assert_true(sent + fin_sent <= wnd && sent <= cwnd);
		if (sent < total && o.hold != CORQ_HOLD_CORK && o.hold != CORQ_HOLD_NAGLE)
			assert_true(wnd - sent < q.mss || cwnd - sent < q.mss);
		if (o.hold == CORQ_HOLD_CORK || o.hold == CORQ_HOLD_NAGLE)
			assert_true(q.unsent < q.mss && !q.fin && !fin_sent);
	}
}

/* ---- rules by name, in numbers that a reader can check ---- */

#define Q(wnd, cwnd, ...)                                                                          \
	(&(struct corq_cork_in){                                                                   \
		.mss = 1000, .max_len = 65535, .wnd_room = wnd, .cwnd_room = cwnd, __VA_ARGS__})
#define WIDE(...)              Q(60000, 10000, .max_wnd = 60000, __VA_ARGS__)
#define WINDOW(wnd, ...)       Q(wnd, 10000, .max_wnd = 60000, __VA_ARGS__)
#define SMALL_WINDOW(wnd, ...) Q(wnd, 10000, .max_wnd = 600, __VA_ARGS__)
#define CWND(cwnd, ...)        Q(60000, cwnd, .max_wnd = 60000, __VA_ARGS__)

static void
leaves(const struct corq_cork_in *q, uint32_t len, const char *flags)
{
	struct corq_cork_out want = {.len = len};

	for (; *flags; flags++) {
		want.fin |= *flags == 'F';
		want.psh |= *flags == 'P';
	}
	check(q, &want);
}

static void
waits(const struct corq_cork_in *q, enum corq_cork_hold why)
{
	check(q, &(struct corq_cork_out){.hold = why});
}

static void
rules_by_name(void **state)
{
	(void)state;
	/* R1, R4: corked tail and FIN are one segment. */
	waits(WIDE(.unsent = 40, .cork = true), CORQ_HOLD_CORK);
	leaves(WIDE(.unsent = 40, .cork = true, .fin = true), 40, "FP");
	leaves(WIDE(.unsent = 40, .more = true, .fin = true), 40, "FP");
	leaves(WIDE(.unsent = 30, .small_out = true, .fin = true), 30, "FP");
	/* R2: nothing to carry it: alone, at once. */
	leaves(WIDE(.fin = true, .cork = true, .small_out = true), 0, "F");
	/* R3: a full last segment carries it. */
	leaves(WIDE(.unsent = 1000, .fin = true), 1000, "FP");
	leaves(WIDE(.unsent = 3000, .fin = true), 3000, "FP");
	/* R5: exactly the bytes fit: bytes now, FIN later; nothing fits: wait. */
	leaves(WINDOW(40, .unsent = 40, .fin = true), 40, "P");
	leaves(WINDOW(41, .unsent = 40, .fin = true), 40, "FP");
	waits(WINDOW(0, .unsent = 40, .fin = true), CORQ_HOLD_WND);
	waits(WINDOW(0, .fin = true), CORQ_HOLD_WND);
	/* R6: FIN is free beside bytes, and obeys cwnd alone. */
	leaves(CWND(40, .unsent = 40, .fin = true), 40, "FP");
	waits(CWND(39, .unsent = 40, .fin = true), CORQ_HOLD_CWND);
	waits(CWND(0, .fin = true), CORQ_HOLD_CWND);
	/* Cork: full segments go, the tail stays; whole segments all go; it wins over NODELAY. */
	leaves(WIDE(.unsent = 1500, .cork = true), 1000, "");
	leaves(WIDE(.unsent = 2000, .cork = true), 2000, "P");
	waits(WIDE(.unsent = 500, .cork = true, .nodelay = true), CORQ_HOLD_CORK);
	leaves(WIDE(.unsent = 500, .cork = true, .flush = true), 500, "P");
	/* Nagle as Minshall has it. */
	waits(WIDE(.unsent = 40, .small_out = true), CORQ_HOLD_NAGLE);
	leaves(WIDE(.unsent = 40, .small_out = true, .nodelay = true), 40, "P");
	leaves(WIDE(.unsent = 1040, .small_out = true), 1000, "");
	/* Silly windows: wait, unless it is half of the largest, or the wait is over. */
	waits(WINDOW(300, .unsent = 2000), CORQ_HOLD_WND);
	leaves(WINDOW(300, .unsent = 2000, .override = true), 300, "P");
	leaves(SMALL_WINDOW(300, .unsent = 2000), 300, "P");
	waits(SMALL_WINDOW(299, .unsent = 2000), CORQ_HOLD_WND);
	/* ... which is no way round Nagle (RFC 9293 3.8.6.2.1, the brackets of (3)) or cork. */
	waits(SMALL_WINDOW(300, .unsent = 400, .small_out = true), CORQ_HOLD_NAGLE);
	waits(SMALL_WINDOW(300, .unsent = 400, .cork = true), CORQ_HOLD_CORK);
	/* The congestion window alone sends no crumbs. */
	leaves(CWND(2700, .unsent = 5000), 2000, "");
	waits(CWND(700, .unsent = 5000), CORQ_HOLD_CWND);
	/* More than one decision holds: whole segments, no PSH yet. */
	leaves(Q(200000, 200000, .max_wnd = 200000, .unsent = 90000), 65000, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_by_name),
		cmocka_unit_test(every_combination),
		cmocka_unit_test(real_sizes),
		cmocka_unit_test(a_whole_queue),
	};

	return cmocka_run_group_tests_name("cork", tests, NULL, NULL);
}
