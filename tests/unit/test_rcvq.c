/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rcvq.c - payload out of frames, and the in-order queue. */
#include "rcv_fixture.h"

static uint8_t stream[1 << 20];

static int
add(struct rig *r, struct corq_seg *s, uint32_t skip, uint32_t len)
{
	int err = corq_rcvq_append_seg(r->e, &r->c, s, skip, len);

	if (err == 0)
		r->c.rcv_nxt += len;
	return err;
}

/* A frame of one part stays where it is: one chunk, no copy. */
static void
a_whole_segment_is_held(void **state)
{
	struct rig r;
	struct corq_seg s;
	struct iovec iov[2];
	uint8_t *payload;

	(void)state;
	rig_start(&r, 4, 4, 4, 100, 1000);
	s = rig_seg(&r, 1000, stream, 100, 1, NULL);
	payload = s.frame->data + RIG_HEADERS;
	assert_int_equal(add(&r, &s, 0, 100), 0);
	assert_null(s.frame);
	assert_true(r.c.rcvq_bytes == 100 && r.c.rcv_true == 1 && r.e->chunks.n_held == 1);
	assert_int_equal(corq_rcvq_peek(r.e, &r.c, iov, 2), 1);
	assert_true(iov[0].iov_base == payload && iov[0].iov_len == 100);
	corq_rcvq_consume(r.e, &r.c, 30);
	corq_rcvq_consume(r.e, &r.c, 0);
	assert_int_equal(corq_rcvq_peek(r.e, &r.c, iov, 2), 1);
	assert_true(iov[0].iov_base == payload + 30 && iov[0].iov_len == 70);
	assert_int_equal(r.e->n_freed, 0);
	corq_rcvq_consume(r.e, &r.c, 70);
	assert_true(r.e->n_freed == 1 && r.c.rcv_true == 0 && r.c.rcvq_tail == CORQ_NONE);
	assert_int_equal(corq_rcvq_peek(r.e, &r.c, iov, 2), 0);
	rig_end(&r);
}

/* Every cut [skip, skip + len) of chains of 1 to 6 parts, held and copied. */
static void
any_part_of_any_chain(void **state)
{
	struct corq_rand rnd;
	uint8_t got[4000];

	(void)state;
	print_message("seed 21\n");
	corq_rand_seed(&rnd, 21);
	for (int i = 0; i < 20000; i++) {
		uint32_t len = 1 + (uint32_t)corq_rand_below(&rnd, i & 1 ? 12 : 3000);
		uint32_t skip = (uint32_t)corq_rand_below(&rnd, len);
		uint32_t take = 1 + (uint32_t)corq_rand_below(&rnd, len - skip);
		const uint8_t *bytes = stream + corq_rand_below(&rnd, 1000);
		struct corq_chunk_list list;
		struct corq_seg s;
		struct rig r;
		uint32_t seq, n;

		rig_start(&r, 8, 8, 8, i & 2 ? 100 : (uint32_t)corq_rand_below(&rnd, 3), 0);
		s = rig_seg(&r, 7000, bytes, len, 1 + (unsigned)corq_rand_below(&rnd, 6), &rnd);
		s.flags = i & 4 ? CORQ_TH_SYN : 0;
		r.c.rcv_nxt = seq = 7000 + !!(i & 4) + skip;
		assert_int_equal(corq_rcv_take(r.e, &r.c, &s, skip, take, &list), 0);
		assert_null(s.frame);
		assert_int_equal(list.bytes, take);
		for (uint32_t idx = list.head; idx != CORQ_NONE;) {
			struct corq_chunk *k = corq_chunk_at(&r.e->chunks, idx);

			assert_int_equal(k->seq, seq);
			seq += k->len;
			idx = k->next;
		}
		assert_true(r.e->chunks.n_held <= r.e->chunks.held_max);
		corq_rcvq_append(r.e, &r.c, &list);
		rig_check_rcvq(&r);
		n = (uint32_t)rig_read(&r, got, sizeof(got));
		assert_int_equal(n, take);
		assert_memory_equal(got, bytes + skip, take);
		rig_end(&r);
	}
}

/* Above held_max payload is copied and the frame is free at once; the copies fill their chunks. */
static void
held_max_is_kept(void **state)
{
	static uint8_t got[30000];
	struct rig r;

	(void)state;
	rig_start(&r, 50, 50, 8, 3, 0);
	for (uint32_t i = 0; i < 20; i++) {
		struct corq_seg s = rig_seg(&r, i * 1400, stream + i * 1400, 1400, 1, NULL);

		assert_int_equal(add(&r, &s, 0, 1400), 0);
		assert_int_equal(r.e->chunks.n_held, CORQ_MIN(i + 1, 3u));
		assert_int_equal(r.e->n_freed, i < 3 ? 0 : i - 2);
		rig_check_rcvq(&r);
	}
	/* 17 copies, two in each large chunk, and then small ones. */
	assert_int_equal(corq_pool_used(&r.e->chunks.pool[CORQ_CHUNK_CLASS_LARGE]), 8);
	assert_int_equal(rig_read(&r, got, sizeof(got)), 28000);
	assert_memory_equal(got, stream, 28000);
	rig_end(&r);
}

/* One byte at a time to a program that does not read: bytes in proportion, not frames. */
static void
tiny_segments_share_chunks(void **state)
{
	static uint8_t got[20000];
	struct rig r;

	(void)state;
	rig_start(&r, 4, 64, 4, 100, 0);
	for (uint32_t i = 0; i < 20000; i++) {
		struct corq_seg s = rig_seg(&r, i, stream + i, 1, 1, NULL);

		assert_int_equal(add(&r, &s, 0, 1), 0);
		rig_sweep(&r);
		assert_true(r.n_frames <= 1); /* the first may be held */
	}
	rig_check_rcvq(&r);
	assert_true(rig_used(&r) <= 1 + 20000 / 448 + 1);
	assert_int_equal(rig_read(&r, got, sizeof(got)), 20000);
	assert_memory_equal(got, stream, 20000);
	rig_end(&r);
}

/* -ENOBUFS leaves everything as it was, at each number of chunks that is too few. */
static void
running_out_changes_nothing(void **state)
{
	struct corq_rand rnd;

	(void)state;
	corq_rand_seed(&rnd, 4);
	for (uint32_t plain = 0; plain < 4; plain++) {
		for (uint32_t small = 0; small < 4; small++) {
			for (uint32_t held_max = 0; held_max < 5; held_max++) {
				struct corq_seg s;
				struct corq_frame *frame, *f;
				struct rig r;
				uint32_t parts = 0;
				int err;

				rig_start(&r, plain, small, 0, held_max, 0);
				s = rig_seg(&r, 0, stream, 1200, 3, &rnd);
				frame = s.frame;
				for (f = frame; f; f = f->next)
					parts += f->len > (f == frame ? RIG_HEADERS : 0);
				err = add(&r, &s, 0, 1200);
				/* Held: one plain chunk a part; copied: three small ones. */
				if ((parts <= plain && parts <= held_max) || small >= 3) {
					assert_int_equal(err, 0);
				} else {
					assert_int_equal(err, -ENOBUFS);
					assert_ptr_equal(s.frame, frame);
					assert_true(frame->next && frame->next->next);
					assert_true(rig_used(&r) == 0 && r.e->n_freed == 0);
					assert_int_equal(r.e->chunks.n_held, 0);
					rig_free_chain(&r, frame);
				}
				rig_check_rcvq(&r);
				rig_end(&r);
			}
		}
	}
}

/* rcv_true stops at 255 and is right again when fewer are left, whatever the reader's steps. */
static void
the_count_of_frames_saturates(void **state)
{
	static const size_t steps[] = {600, 1000, 59999, 300000};
	static uint8_t got[300000];

	(void)state;
	for (size_t k = 0; k < CORQ_ARRAY_LEN(steps); k++) {
		struct rig r;
		size_t at = 0;

		rig_start(&r, 500, 4, 4, 500, 0);
		r.c.rcv_mss = 600;
		for (uint32_t i = 0; i < 500; i++) {
			struct corq_seg s = rig_seg(&r, i * 600, stream + i * 600, 600, 1, NULL);

			assert_int_equal(add(&r, &s, 0, 600), 0);
			assert_int_equal(r.c.rcv_true, CORQ_MIN(i + 1, 255u));
		}
		while (r.c.rcvq_bytes) {
			at += rig_read(&r, got + at, CORQ_MIN(steps[k], sizeof(got) - at));
			rig_check_rcvq(&r);
		}
		assert_int_equal(at, 300000);
		assert_memory_equal(got, stream, at);
		rig_end(&r);
	}
}

/* What splice takes: whole chunks, the consumed bytes of the first cut off. */
static void
pop_takes_chunks_off(void **state)
{
	struct rig r;
	struct corq_chunk *k;
	uint32_t idx;

	(void)state;
	rig_start(&r, 8, 8, 8, 100, 0);
	assert_int_equal(corq_rcvq_pop(r.e, &r.c), CORQ_NONE);
	for (uint32_t i = 0; i < 2; i++) {
		struct corq_seg s = rig_seg(&r, i * 700, stream + i * 700, 700, 1, NULL);

		assert_int_equal(add(&r, &s, 0, 700), 0);
	}
	corq_rcvq_consume(r.e, &r.c, 100);
	idx = corq_rcvq_pop(r.e, &r.c);
	k = corq_chunk_at(&r.e->chunks, idx);
	assert_true(k->len == 600 && k->next == CORQ_NONE);
	assert_memory_equal(k->data, stream + 100, 600);
	rig_check_rcvq(&r);
	assert_int_equal(r.c.rcvq_bytes, 700);
	corq_rcv_chunk_free(r.e, idx);
	rig_end(&r);
}

/* The freed array overflows: frames still come back, each once. */
static void
many_frames_in_one_turn(void **state)
{
	static uint8_t got[3000 * 600];
	struct rig r;

	(void)state;
	rig_start(&r, 3000, 4, 4, 3000, 0);
	for (uint32_t i = 0; i < 3000; i++) {
		struct corq_seg s = rig_seg(&r, i * 600, stream, 600, 1, NULL);

		assert_int_equal(add(&r, &s, 0, 600), 0);
	}
	assert_int_equal(rig_read(&r, got, sizeof(got)), sizeof(got));
	assert_int_equal(r.e->n_freed, CORQ_FREED_MAX);
	rig_end(&r);
}

/* Any lengths, any parts, any reader, few chunks: the bytes are those sent. */
static void
random_streams(void **state)
{
	static uint8_t got[1 << 20];

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct corq_rand rnd;
		struct rig r;
		uint32_t sent = 0, n_refused = 0;
		size_t read = 0;

		corq_rand_seed(&rnd, seed);
		rig_start(&r, 1 + (uint32_t)corq_rand_below(&rnd, 60),
			(uint32_t)corq_rand_below(&rnd, 20), 1 + (uint32_t)corq_rand_below(&rnd, 8),
			(uint32_t)corq_rand_below(&rnd, 40), 0u - 50000);
		for (int i = 0; i < 2000; i++) {
			uint32_t len = 1 + (uint32_t)corq_rand_below(&rnd, i & 1 ? 200 : 3000),
				 skip;
			struct corq_seg s;

			if (sent + len > 200000)
				break;
			skip = (uint32_t)corq_rand_below(&rnd, CORQ_MIN(sent, 50u) + 1);
			s = rig_seg(&r, r.c.rcv_nxt - skip, stream + sent - skip, len + skip,
				1 + (unsigned)corq_rand_below(&rnd, 4), &rnd);
			if (add(&r, &s, skip, len)) {
				rig_free_chain(&r, s.frame);
				n_refused++;
			} else {
				sent += len;
			}
			rig_check_rcvq(&r);
			if (corq_rand_below(&rnd, 3) == 0)
				read += rig_read(&r, got + read, corq_rand_below(&rnd, 3 * 3000));
			rig_sweep(&r);
			if (r.c.rcvq_bytes == 0)
				assert_int_equal(rig_used(&r), 0);
		}
		read += rig_read(&r, got + read, sizeof(got) - read);
		if (read != sent || memcmp(got, stream, sent))
			fail_msg("seed %lu: %zu read of %u (%u refused)", (unsigned long)seed, read,
				sent, n_refused);
		rig_end(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_segment_is_held),
		cmocka_unit_test(any_part_of_any_chain),
		cmocka_unit_test(held_max_is_kept),
		cmocka_unit_test(tiny_segments_share_chunks),
		cmocka_unit_test(running_out_changes_nothing),
		cmocka_unit_test(the_count_of_frames_saturates),
		cmocka_unit_test(pop_takes_chunks_off),
		cmocka_unit_test(many_frames_in_one_turn),
		cmocka_unit_test(random_streams),
	};
	struct corq_rand rnd;

	corq_rand_seed(&rnd, 1);
	for (size_t i = 0; i < sizeof(stream); i++)
		stream[i] = (uint8_t)corq_rand_u64(&rnd);
	return cmocka_run_group_tests_name("rcvq", tests, NULL, NULL);
}
