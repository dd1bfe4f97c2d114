/* SPDX-License-Identifier: BSD-3-Clause */
/* test_chunk.c - classes, kinds, and the two ends of a chunk's life. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "tcp/chunk.h"

#include <stdlib.h>

#define SMALL_ROOM (CORQ_CHUNK_SMALL - CORQ_CHUNK_HEAD)
#define LARGE_ROOM (CORQ_CHUNK_LARGE - CORQ_CHUNK_HEAD)

static void *
new_chunks(struct corq_chunks *cs, uint32_t plain, uint32_t small, uint32_t large)
{
	uint32_t n[CORQ_CHUNK_CLASS_COUNT] = {plain, small, large};
	void *mem = aligned_alloc(CORQ_CACHELINE, corq_chunks_bytes(n));

	corq_chunks_init(cs, mem, n, 8);
	return mem;
}

static uint32_t
used(const struct corq_chunks *cs)
{
	return corq_pool_used(&cs->pool[0]) + corq_pool_used(&cs->pool[1]) +
	       corq_pool_used(&cs->pool[2]);
}

static void
classes_have_their_room(void **state)
{
	struct corq_chunks cs;
	void *mem = new_chunks(&cs, 2, 2, 2);
	static const struct {
		size_t len;
		uint32_t room;
	} want[] = {{1, SMALL_ROOM}, {448, SMALL_ROOM}, {449, LARGE_ROOM}, {100000, LARGE_ROOM}};

	(void)state;
	for (size_t i = 0; i < CORQ_ARRAY_LEN(want); i++) {
		uint32_t idx = corq_chunk_alloc_copy(&cs, want[i].len);
		struct corq_chunk *k = corq_chunk_at(&cs, idx);
		struct corq_frame *f;

		assert_int_equal(k->self, idx);
		assert_int_equal(k->room, want[i].room);
		assert_int_equal(corq_chunk_space(k), want[i].room);
		assert_ptr_equal(k->data, (uint8_t *)k + CORQ_CHUNK_HEAD);
		assert_true(k->next == CORQ_NONE && k->len == 0 && k->refs == 0 && !k->done);
		assert_int_equal(k->kind, CORQ_CHUNK_COPIED);
		memset(k->data, 0x5a, k->room); /* to the last byte: sanitizers watch */
		k->len = 10;
		assert_int_equal(corq_chunk_space(k), want[i].room - 10);
		k->data += 4; /* the front was consumed: the room behind stays what it was */
		k->len -= 4;
		assert_int_equal(corq_chunk_space(k), want[i].room - 10);
		assert_int_equal(corq_chunk_free(&cs, idx, &f), CORQ_CHUNK_FREED);
		assert_null(f);
	}
	assert_int_equal(used(&cs), 0);
	free(mem);
}

static void
the_other_class_helps_out(void **state)
{
	struct corq_chunks cs;
	void *mem = new_chunks(&cs, 1, 1, 2);
	uint32_t a = corq_chunk_alloc_copy(&cs, 10), b = corq_chunk_alloc_copy(&cs, 10);
	uint32_t c = corq_chunk_alloc_copy(&cs, 1000);
	struct corq_frame *f;

	(void)state;
	assert_int_equal(a >> 30, CORQ_CHUNK_CLASS_SMALL);
	assert_int_equal(b >> 30, CORQ_CHUNK_CLASS_LARGE);
	assert_int_equal(c >> 30, CORQ_CHUNK_CLASS_LARGE);
	assert_int_equal(corq_chunk_alloc_copy(&cs, 10), CORQ_NONE);
	assert_int_equal(corq_chunk_alloc_copy(&cs, 1000), CORQ_NONE);
	assert_int_equal(corq_chunk_alloc(&cs, CORQ_CHUNK_CLASS_LARGE), CORQ_NONE);
	corq_chunk_free(&cs, a, &f);
	c = corq_chunk_alloc_copy(&cs, 1000);
	assert_int_equal(c >> 30, CORQ_CHUNK_CLASS_SMALL);
	/* An index is never CORQ_NONE and its neighbours do not overlap. */
	assert_ptr_equal(corq_chunk_at(&cs, b), (uint8_t *)mem + 64 + 512);
	free(mem);
}

static void
borrowed_ends_when_acked_and_unreferenced(void **state)
{
	static const uint8_t page[100];
	struct corq_frame *f;

	(void)state;
	for (int acked_first = 0; acked_first < 2; acked_first++) {
		struct corq_chunks cs;
		void *mem = new_chunks(&cs, 1, 1, 1);
		uint32_t idx = corq_chunk_borrow(&cs, 7, page, 100, 0xc00c1e);
		struct corq_chunk *k = corq_chunk_at(&cs, idx);

		assert_int_equal(k->kind, CORQ_CHUNK_BORROWED);
		assert_ptr_equal(k->data, page);
		assert_int_equal(corq_chunk_space(k), 0);
		assert_int_equal(corq_chunk_borrow(&cs, 7, page, 100, 1), CORQ_NONE);
		k->refs = 2;
		assert_int_equal(corq_chunk_unref(&cs, idx, &f), CORQ_CHUNK_BUSY);
		if (acked_first) {
			assert_int_equal(corq_chunk_free(&cs, idx, &f), CORQ_CHUNK_BUSY);
			assert_int_equal(corq_chunk_unref(&cs, idx, &f), CORQ_CHUNK_RELEASE);
		} else {
			assert_int_equal(corq_chunk_unref(&cs, idx, &f), CORQ_CHUNK_BUSY);
			assert_int_equal(corq_chunk_free(&cs, idx, &f), CORQ_CHUNK_RELEASE);
		}
		assert_null(f);
		assert_int_equal(used(&cs), 1); /* until the program was told */
		assert_true(k->region == 7 && k->cookie == 0xc00c1e);
		corq_chunk_released(&cs, idx);
		assert_int_equal(used(&cs), 0);
		free(mem);
	}
}

static void
held_gives_its_frame_back_once(void **state)
{
	struct corq_chunks cs;
	void *mem = new_chunks(&cs, 2, 1, 1);
	struct corq_frame frame, frame2, *f;
	uint8_t bytes[64];
	uint32_t a = corq_chunk_hold(&cs, &frame, bytes + 4, 60), b;
	struct corq_chunk *k = corq_chunk_at(&cs, a);

	(void)state;
	assert_true(k->kind == CORQ_CHUNK_HELD && k->data == bytes + 4 && k->len == 60);
	b = corq_chunk_hold(&cs, &frame2, bytes, 64);
	assert_int_equal(cs.n_held, 2);
	assert_int_equal(corq_chunk_hold(&cs, &frame2, bytes, 64), CORQ_NONE);
	assert_int_equal(cs.n_held, 2);
	assert_int_equal(corq_chunk_free(&cs, a, &f), CORQ_CHUNK_FREED);
	assert_ptr_equal(f, &frame);
	assert_int_equal(cs.n_held, 1);
	/* Spliced: a frame under way still refers to the bytes. */
	corq_chunk_at(&cs, b)->refs = 1;
	assert_int_equal(corq_chunk_free(&cs, b, &f), CORQ_CHUNK_BUSY);
	assert_null(f);
	assert_int_equal(cs.n_held, 1);
	assert_int_equal(corq_chunk_unref(&cs, b, &f), CORQ_CHUNK_FREED);
	assert_ptr_equal(f, &frame2);
	assert_true(cs.n_held == 0 && used(&cs) == 0);
	free(mem);
}

/* Any mix of classes: indices are distinct, payloads do not touch, all come back. */
static void
random_life(void **state)
{
	enum {
		N = 300
	};
	struct corq_chunks cs;
	void *mem = new_chunks(&cs, 100, 100, 20);
	uint32_t idx[N], n = 0;
	struct corq_rand r;
	struct corq_frame *f;

	(void)state;
	print_message("seed 3\n");
	corq_rand_seed(&r, 3);
	for (int i = 0; i < 100000; i++) {
		if (n < N && corq_rand_below(&r, 2)) {
			uint32_t k = corq_chunk_alloc_copy(&cs, corq_rand_below(&r, 1000));

			if (k == CORQ_NONE) {
				assert_int_equal(n, 120);
				continue;
			}
			corq_chunk_at(&cs, k)->len = corq_chunk_at(&cs, k)->room;
			memset(corq_chunk_at(&cs, k)->data, (int)(k * 37 & 255),
				corq_chunk_at(&cs, k)->room);
			idx[n++] = k;
		} else if (n) {
			uint32_t at = (uint32_t)corq_rand_below(&r, n), k = idx[at];
			struct corq_chunk *c = corq_chunk_at(&cs, k);

			assert_int_equal(c->self, k);
			assert_int_equal(c->data[0], k * 37 & 255);
			assert_int_equal(c->data[c->len - 1], k * 37 & 255);
			assert_int_equal(corq_chunk_free(&cs, k, &f), CORQ_CHUNK_FREED);
			idx[at] = idx[--n];
		}
		assert_int_equal(used(&cs), n);
	}
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_have_their_room),
		cmocka_unit_test(the_other_class_helps_out),
		cmocka_unit_test(borrowed_ends_when_acked_and_unreferenced),
		cmocka_unit_test(held_gives_its_frame_back_once),
		cmocka_unit_test(random_life),
	};

	return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}
