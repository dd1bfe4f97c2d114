/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reasm.c - the out-of-order queue against an oracle: an array of bytes, each kept from the
 * first segment that brought it.
 */
#include "rcv_fixture.h"

#define WIN 70000

static uint8_t noise[1 << 20];

struct oracle {
	uint32_t base; /* sequence of byte 0 */
	uint32_t nxt;  /* bytes delivered and in order */
	uint8_t have[WIN], byte[WIN];
	uint8_t got[WIN]; /* what came out */
	size_t n_got;
};

static struct oracle o;

static void
oracle_start(uint32_t base)
{
	memset(&o, 0, sizeof(o));
	o.base = base;
}

static void
oracle_take(uint32_t at, const uint8_t *bytes, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (o.have[at + i])
			continue;
		o.have[at + i] = 1;
		o.byte[at + i] = bytes[i];
	}
	while (o.nxt < WIN && o.have[o.nxt])
		o.nxt++;
}

static uint32_t
oracle_bytes(void)
{
	uint32_t n = 0;

	for (uint32_t i = o.nxt; i < WIN; i++)
		n += o.have[i];
	return n;
}

/* One segment of the stream at offset `at`, as input.c does it. Returns insert's word. */
static int
arrive(struct rig *r, uint32_t at, const uint8_t *bytes, uint32_t len, unsigned parts,
	struct corq_rand *rnd)
{
	struct corq_seg s = rig_seg(r, o.base + at, bytes, len, parts, rnd);
	uint32_t skip = 0;
	int err = 0;

	if (at < o.nxt)
		skip = CORQ_MIN(o.nxt - at, len);
	if (skip == len)
		rig_free_chain(r, s.frame);
	else
		err = corq_reasm_insert(r->e, &r->c, &r->w, &s, skip, len - skip);
	if (skip < len && err == 0)
		assert_null(s.frame);
	if (err) {
		assert_non_null(s.frame);
		rig_free_chain(r, s.frame);
	} else {
		oracle_take(at, bytes, len);
	}
	rig_check_ooo(r);
	corq_reasm_pull(r->e, &r->c, &r->w);
	rig_check_ooo(r);
	rig_check_rcvq(r);
	return err;
}

static void
read_all(struct rig *r)
{
	o.n_got += rig_read(r, o.got + o.n_got, WIN - o.n_got);
	rig_sweep(r);
}

static void
check(struct rig *r)
{
	assert_int_equal(r->c.rcv_nxt, o.base + o.nxt);
	assert_int_equal(r->w.ooo_bytes, oracle_bytes());
	read_all(r);
	assert_int_equal(o.n_got, o.nxt);
	assert_memory_equal(o.got, o.byte, o.nxt);
}

static const uint32_t bases[] = {0, 1000, 0u - 1, 0u - 120, 0u - 3000, 1u << 31, (1u << 31) - 700};

/* A1, A7: all orders of five segments, tiny and full, at sequences that wrap. */
static void
a1_all_orders_of_five(void **state)
{
	static const uint32_t sizes[] = {1, 40, 600, 1448};

	(void)state;
	for (size_t b = 0; b < CORQ_ARRAY_LEN(bases); b++) {
		for (size_t z = 0; z < CORQ_ARRAY_LEN(sizes); z++) {
			for (unsigned order = 0; order < 120; order++) {
				unsigned left[5] = {0, 1, 2, 3, 4}, n = 5, code = order;
				struct rig r;

				rig_start(&r, 8, 8, 8, order & 1 ? 8 : 0, bases[b]);
				oracle_start(bases[b]);
				for (; n; code /= n--) {
					unsigned at = code % n, which = left[at];

					memmove(left + at, left + at + 1,
						(n - at - 1) * sizeof(*left));
					assert_int_equal(arrive(&r, which * sizes[z],
								 noise + which * sizes[z], sizes[z],
								 1, NULL),
						0);
				}
				assert_int_equal(o.nxt, 5 * sizes[z]);
				check(&r);
				assert_int_equal(r.w.ooo_n, 0);
				rig_end(&r);
			}
		}
	}
}

/* A2, A3: a piece whose edges lie -25 .. 25 from those of what is here (one run, or two with a gap
 * of 10); each piece brings bytes of its own, so that what was kept can be told. */
static void
a2_a3_overlap_grid(void **state)
{
	struct corq_rand rnd;
	uint32_t n = 0;

	(void)state;
	corq_rand_seed(&rnd, 2);
	for (int two = 0; two < 2; two++) {
		for (int d1 = -25; d1 <= 25; d1++) {
			for (int d2 = -25; d2 <= 25; d2++) {
				uint32_t from = (uint32_t)(100 + d1), to = (uint32_t)(140 + d2);
				uint32_t base = bases[n++ % CORQ_ARRAY_LEN(bases)];
				struct rig r;

				if (to <= from)
					continue;
				rig_start(&r, 16, 16, 16, n & 1 ? 16 : 0, base);
				oracle_start(base);
				if (two) {
					arrive(&r, 100, noise + 1000, 15, 1, NULL);
					arrive(&r, 125, noise + 2000, 15, 1, NULL);
				} else {
					arrive(&r, 100, noise + 1000, 40, 1, NULL);
				}
				assert_int_equal(
					arrive(&r, from, noise + 3000, to - from, 1 + n % 3, &rnd),
					0);
				assert_int_equal(r.w.ooo_bytes, oracle_bytes());
				arrive(&r, 0, noise + 4000, 250, 2, &rnd); /* and all of it */
				assert_int_equal(o.nxt, 250);
				check(&r);
				rig_end(&r);
			}
		}
	}
}

/* In-order bytes that reach into what waits: the ones that waited are kept. */
static void
a3_first_kept_in_order_too(void **state)
{
	static uint8_t a[3000], b[3000];
	struct rig r;

	(void)state;
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	rig_start(&r, 16, 16, 16, 16, 5);
	oracle_start(5);
	assert_int_equal(arrive(&r, 1000, a, 1000, 1, NULL), 0);
	assert_int_equal(arrive(&r, 0, b, 3000, 1, NULL), 0);
	check(&r);
	assert_int_equal(o.n_got, 3000);
	assert_memory_equal(o.got, b, 1000);
	assert_memory_equal(o.got + 1000, a, 1000);
	assert_memory_equal(o.got + 2000, b, 1000);
	rig_end(&r);
}

/* A4: ten thousand one-byte segments. How they come, and what that may cost. */
enum pattern {
	UP,
	DOWN,
	EVENS_UP,
	EVENS_DOWN,
	SHUFFLED,
	PATTERNS
};

static uint32_t
place(enum pattern p, const uint32_t *shuffled, uint32_t i)
{
	switch (p) {
	case UP:
		return 1 + i;
	case DOWN:
		return 10000 - i;
	case EVENS_UP:
		return 1 + 2 * i;
	case EVENS_DOWN:
		return 20000 - 2 * i;
	default:
		return 1 + shuffled[i];
	}
}

static void
a4_ten_thousand_bytes(void **state)
{
	static uint32_t shuffled[10000];
	struct corq_rand rnd;

	(void)state;
	corq_rand_seed(&rnd, 44);
	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t j = (uint32_t)corq_rand_below(&rnd, i + 1);

		shuffled[i] = shuffled[j];
		shuffled[j] = i;
	}
	for (enum pattern p = UP; p < PATTERNS; p++) {
		struct rig r;
		uint32_t refused = 0, most = 0;

		rig_start(&r, 20000, 20000, 4, 20000, 77);
		oracle_start(77);
		for (uint32_t i = 0; i < 10000; i++) {
			uint32_t at = place(p, shuffled, i);
			int err = arrive(&r, at, noise + at, 1, 1, NULL);

			assert_true(err == 0 || err == -ENOSPC);
			refused += err != 0;
			most = CORQ_MAX(most, rig_used(&r));
			rig_sweep(&r);
			assert_true(r.n_frames == 0 && r.w.ooo_n <= CORQ_OOO_MAX);
		}
		/* Contiguous bytes: chunks of 448, at worst half full; a run more costs a chunk. */
		assert_true(most <= CORQ_OOO_MAX + 10000 / 224 + 1);
		if (p == UP || p == DOWN)
			assert_true(refused == 0 && r.w.ooo_n == 1 && most <= 10000 / 224 + 2);
		else
			assert_true(refused > 0);
		/* The peer sends again, from the front: everything arrives. */
		for (uint32_t at = 0; at <= 20000; at++)
			assert_int_equal(arrive(&r, at, noise + at, 1, 1, NULL), 0);
		check(&r);
		assert_int_equal(o.n_got, 20001);
		rig_end(&r);
	}
}

/* The bound: one run more is refused wherever it lies, but what joins a run, or stands at RCV.NXT,
 * is taken. */
static void
at_the_bound_of_runs(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, 200, 200, 4, 200, 0);
	oracle_start(0);
	for (uint32_t i = 0; i < CORQ_OOO_MAX; i++)
		assert_int_equal(arrive(&r, 1000 + i * 20, noise + i, 10, 1, NULL), 0);
	assert_int_equal(arrive(&r, 5000, noise, 10, 1, NULL), -ENOSPC);
	assert_int_equal(arrive(&r, 500, noise, 10, 1, NULL), -ENOSPC);
	assert_int_equal(arrive(&r, 1013, noise, 4, 1, NULL), -ENOSPC);
	assert_int_equal(r.w.ooo_n, CORQ_OOO_MAX);
	assert_int_equal(arrive(&r, 1010, noise, 3, 1, NULL), 0);
	assert_int_equal(arrive(&r, 1019, noise, 1, 1, NULL), 0);
	assert_int_equal(arrive(&r, 1000, noise, 10, 1, NULL), 0); /* nothing new */
	assert_int_equal(r.w.ooo_n, CORQ_OOO_MAX);
	assert_int_equal(arrive(&r, 0, noise, 10, 1, NULL), 0); /* RCV.NXT: leaves at once */
	assert_int_equal(o.nxt, 10);
	assert_int_equal(r.w.ooo_n, CORQ_OOO_MAX);
	assert_int_equal(arrive(&r, 1005, noise, 60, 1, NULL), 0); /* joins four */
	assert_int_equal(r.w.ooo_n, CORQ_OOO_MAX - 3);
	check(&r);
	rig_end(&r);
}

/* RFC 2018, 4: the first block holds the segment that came last, the next ones by age. */
static void
sack_blocks_by_age(void **state)
{
	struct corq_sack_block b[5];
	struct rig r;

	(void)state;
	rig_start(&r, 50, 50, 4, 50, 0u - 1050);
	oracle_start(0u - 1050);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 4), 0);
	arrive(&r, 1000, noise, 100, 1, NULL);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 4), 1);
	assert_true(b[0].start == 0u - 50 && b[0].end == 50);
	arrive(&r, 3000, noise, 100, 1, NULL);
	arrive(&r, 2000, noise, 100, 1, NULL);
	arrive(&r, 5000, noise, 100, 1, NULL);
	arrive(&r, 4000, noise, 100, 1, NULL);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 4), 4);
	assert_true(b[0].start == o.base + 4000 && b[0].end == o.base + 4100);
	assert_int_equal(b[1].start, o.base + 5000);
	assert_int_equal(b[2].start, o.base + 2000);
	assert_int_equal(b[3].start, o.base + 3000);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 3), 3);
	assert_int_equal(b[2].start, o.base + 2000);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 0), 0);
	/* An older one grows at its front, one is repeated, two become one. */
	arrive(&r, 2900, noise, 100, 1, NULL);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 4), 4);
	assert_true(b[0].start == o.base + 2900 && b[0].end == o.base + 3100);
	assert_int_equal(b[1].start, o.base + 4000);
	arrive(&r, 5010, noise, 50, 1, NULL);
	corq_reasm_sack(r.e, &r.w, b, 4);
	assert_true(b[0].start == o.base + 5000 && b[0].end == o.base + 5100);
	assert_int_equal(b[1].start, o.base + 2900);
	arrive(&r, 4100, noise, 900, 1, NULL);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 4), 4);
	assert_true(b[0].start == o.base + 4000 && b[0].end == o.base + 5100);
	assert_int_equal(b[1].start, o.base + 2900);
	assert_int_equal(b[2].start, o.base + 2000);
	assert_int_equal(b[3].start, o.base + 1000);
	/* Delivered: gone. */
	arrive(&r, 0, noise, 1000, 1, NULL);
	assert_int_equal(corq_reasm_sack(r.e, &r.w, b, 4), 3);
	assert_int_equal(b[2].start, o.base + 2000);
	check(&r);
	rig_end(&r);
}

/* SACK blocks are runs of the oracle, none twice, and the first holds the piece that came last. */
static void
check_sack(struct rig *r, uint32_t at)
{
	struct corq_sack_block b[4];
	unsigned n = corq_reasm_sack(r->e, &r->w, b, 4);

	assert_int_equal(n, CORQ_MIN(r->w.ooo_n, 4));
	for (unsigned i = 0; i < n; i++) {
		uint32_t from = b[i].start - o.base, to = b[i].end - o.base;

		assert_true(from < to && to <= WIN);
		assert_true(!o.have[from - 1] && (to == WIN || !o.have[to]));
		for (uint32_t k = from; k < to; k++)
			assert_true(o.have[k]);
		for (unsigned j = 0; j < i; j++)
			assert_true(b[j].start != b[i].start);
	}
	if (at >= o.nxt)
		assert_true(n > 0 && b[0].start - o.base <= at && at < b[0].end - o.base);
}

/* Any pieces of any size in any order, each with bytes of its own; chunks enough. */
static void
random_pieces(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct corq_rand rnd;
		uint32_t span, most, base;
		struct rig r;

		corq_rand_seed(&rnd, seed);
		span = 200 + (uint32_t)corq_rand_below(&rnd, seed % 3 ? 3000 : WIN - 3300);
		most = 1 + (uint32_t)corq_rand_below(&rnd, seed % 2 ? 60 : 3000);
		base = (uint32_t)corq_rand_u64(&rnd);
		if (seed % 4 == 0)
			base = 0u - (uint32_t)corq_rand_below(&rnd, span);
		rig_start(&r, 2000, 2000, 500, (uint32_t)corq_rand_below(&rnd, seed % 5 ? 300 : 3),
			base);
		oracle_start(base);
		print_message(seed == 1 ? "seeds 1 .. 300\n" : "");
		for (int i = 0; i < 400; i++) {
			uint32_t len = 1 + (uint32_t)corq_rand_below(&rnd, most);
			uint32_t ahead =
				(uint32_t)corq_rand_below(&rnd, span - CORQ_MIN(o.nxt, span - 1));
			uint32_t at = corq_rand_below(&rnd, 8) ? o.nxt + ahead : o.nxt;
			int err;

			if (o.nxt >= span || at + len > WIN)
				break;
			err = arrive(&r, at, noise + corq_rand_below(&rnd, 1 << 19), len,
				1 + (unsigned)corq_rand_below(&rnd, 3), &rnd);
			assert_true(err == 0 || (err == -ENOSPC && r.w.ooo_n == CORQ_OOO_MAX));
			if (err == 0)
				check_sack(&r, at);
			assert_int_equal(r.w.ooo_bytes, oracle_bytes());
			if (corq_rand_below(&rnd, 4) == 0)
				read_all(&r);
		}
		check(&r);
		rig_end(&r);
	}
}

/* Few chunks: some pieces are refused, some halves lost, waiting bytes dropped for those at
 * RCV.NXT. The stream still arrives as sent once the peer repeats, and nothing leaks. */
static void
random_pieces_few_chunks(void **state)
{
	static uint8_t got[40000];
	uint32_t refused = 0, dropped = 0;

	(void)state;
	print_message("seeds 1 .. 200\n");
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct corq_rand rnd;
		uint32_t base, done = 0, steps = 0;
		size_t read = 0;
		struct rig r;

		corq_rand_seed(&rnd, seed);
		base = 0u - (uint32_t)corq_rand_below(&rnd, 40000);
		rig_start(&r, (uint32_t)corq_rand_below(&rnd, 12),
			1 + (uint32_t)corq_rand_below(&rnd, 12), (uint32_t)corq_rand_below(&rnd, 4),
			(uint32_t)corq_rand_below(&rnd, 10), base);
		while (done < 40000) {
			uint32_t len = 1 + (uint32_t)corq_rand_below(&rnd, 400);
			uint32_t at = done, moved;
			struct corq_seg s;
			int err;

			assert_true(++steps < 100000);
			if (corq_rand_below(&rnd, 4))
				at += (uint32_t)corq_rand_below(&rnd, 4000);
			at = CORQ_MIN(at, 39999u);
			len = CORQ_MIN(len, 40000 - at);
			s = rig_seg(&r, base + at, noise + at, len,
				1 + (unsigned)corq_rand_below(&rnd, 3), &rnd);
			err = corq_reasm_insert(r.e, &r.c, &r.w, &s, 0, len);
			rig_check_ooo(&r);
			if (err) {
				rig_free_chain(&r, s.frame);
				refused++;
				/* Only a full receive queue may refuse bytes at RCV.NXT. */
				assert_true(at != done || r.c.rcvq_bytes > 0);
			}
			moved = corq_reasm_pull(r.e, &r.c, &r.w);
			done += moved;
			assert_int_equal(r.c.rcv_nxt, base + done);
			rig_check_ooo(&r);
			rig_check_rcvq(&r);
			if (corq_rand_below(&rnd, 3) == 0)
				read += rig_read(&r, got + read, sizeof(got) - read);
			rig_sweep(&r);
		}
		read += rig_read(&r, got + read, sizeof(got) - read);
		if (read != 40000 || memcmp(got, noise, 40000))
			fail_msg("seed %lu: wrong bytes", (unsigned long)seed);
		dropped += r.e->reasons[CORQ_R_TCP_RCV_NOMEM] > 0;
		rig_end(&r);
	}
	assert_true(refused > 1000 && dropped > 20); /* the scarcity was real */
}

/* The last chunk of all waits out of order while bytes at RCV.NXT arrive. */
static void
bytes_at_the_front_come_first(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, 0, 1, 0, 0, 0);
	oracle_start(0);
	assert_int_equal(arrive(&r, 500, noise, 100, 1, NULL), 0);
	assert_int_equal(arrive(&r, 700, noise, 100, 1, NULL), -ENOBUFS);
	assert_int_equal(r.w.ooo_bytes, 100);
	memset(o.have, 0, sizeof(o.have)); /* what waited goes */
	assert_int_equal(arrive(&r, 0, noise, 100, 1, NULL), 0);
	assert_int_equal(r.e->reasons[CORQ_R_TCP_RCV_NOMEM], 1);
	assert_int_equal(r.w.ooo_n, 0);
	check(&r);
	assert_int_equal(o.n_got, 100);
	rig_end(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a1_all_orders_of_five),
		cmocka_unit_test(a2_a3_overlap_grid),
		cmocka_unit_test(a3_first_kept_in_order_too),
		cmocka_unit_test(a4_ten_thousand_bytes),
		cmocka_unit_test(at_the_bound_of_runs),
		cmocka_unit_test(sack_blocks_by_age),
		cmocka_unit_test(random_pieces),
		cmocka_unit_test(random_pieces_few_chunks),
		cmocka_unit_test(bytes_at_the_front_come_first),
	};
	struct corq_rand rnd;

	corq_rand_seed(&rnd, 9);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)corq_rand_u64(&rnd);
	return cmocka_run_group_tests_name("reasm", tests, NULL, NULL);
}
