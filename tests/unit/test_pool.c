/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pool.c - the index pool: order, deferral, lazy memory, exhaustion, debug checks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/pool.h"
#include "base/rand.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void
last_freed_comes_first(void **state)
{
	uint32_t mem[4 * 3];
	struct corq_pool p;

	(void)state;
	corq_pool_init(&p, mem, 4, 12);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(corq_pool_alloc(&p), i);
	assert_int_equal(corq_pool_alloc(&p), CORQ_NONE);
	assert_int_equal(corq_pool_used(&p), 4);
	corq_pool_free(&p, 1);
	corq_pool_free(&p, 3);
	assert_int_equal(corq_pool_used(&p), 2);
	assert_int_equal(corq_pool_alloc(&p), 3);
	assert_int_equal(corq_pool_alloc(&p), 1);
	assert_int_equal(corq_pool_alloc(&p), CORQ_NONE);
	assert_int_equal(p.n_used_peak, 4);
}

static void
deferred_waits_for_the_turn(void **state)
{
	uint32_t mem[8];
	struct corq_pool p;

	(void)state;
	corq_pool_init(&p, mem, 4, 8);
	for (uint32_t i = 0; i < 4; i++)
		corq_pool_alloc(&p);
	corq_pool_free_deferred(&p, 0);
	corq_pool_free_deferred(&p, 2);
	assert_int_equal(corq_pool_used(&p), 2);
	assert_int_equal(corq_pool_deferred(&p), 2);
	assert_int_equal(corq_pool_alloc(&p), CORQ_NONE);
	corq_pool_free(&p, 3);
	corq_pool_turn_end(&p);
	corq_pool_turn_end(&p);
	assert_int_equal(corq_pool_used(&p), 1);
	assert_int_equal(corq_pool_deferred(&p), 0);
	assert_int_equal(corq_pool_alloc(&p), 2);
	assert_int_equal(corq_pool_alloc(&p), 0);
	assert_int_equal(corq_pool_alloc(&p), 3);
	assert_int_equal(corq_pool_alloc(&p), CORQ_NONE);
	assert_int_equal(p.n_used_peak, 4);
}

static void
index_inverts_at(void **state)
{
	static const uint32_t strides[] = {4, 8, 12, 28, 64, 100, 192, 224, 256, 4096, 2049 * 4};
	struct corq_pool p;
	void *mem = malloc(16);

	(void)state;
	for (size_t s = 0; s < CORQ_ARRAY_LEN(strides); s++) {
		/* Addresses only: nothing is read, so the memory need not be there. */
		corq_pool_init(&p, mem, 1u << 26, strides[s]);
		for (uint32_t i = 0; i < 1u << 26; i = i * 2 + 1 + i / 5)
			assert_int_equal(corq_pool_index(&p,
						 (void *)((uintptr_t)mem + (size_t)i * strides[s])),
				i);
	}
	free(mem);
}

/* Every object is out, deferred or free, and none is handed out twice. */
static void
random_use_against_a_model(void **state)
{
	enum {
		N = 100
	};
	enum {
		FREE,
		OUT,
		LATER
	} where[N] = {FREE};
	uint32_t mem[N * 4], n_out = 0, n_later = 0;
	struct corq_pool p;
	struct corq_rand r;

	(void)state;
	corq_rand_seed(&r, 7);
	corq_pool_init(&p, mem, N, 16);
	for (int step = 0; step < 200000; step++) {
		uint32_t i = (uint32_t)corq_rand_below(&r, N);

		switch (corq_rand_below(&r, 8)) {
		case 0: /* turn's end */
			corq_pool_turn_end(&p);
			for (i = 0; i < N; i++)
				where[i] = where[i] == LATER ? FREE : where[i];
			n_later = 0;
			break;
		case 1:
		case 2:
		case 3:
			if (where[i] != OUT)
				break;
			n_out--;
			if (corq_rand_below(&r, 2)) {
				corq_pool_free(&p, i);
				where[i] = FREE;
			} else {
				corq_pool_free_deferred(&p, i);
				where[i] = LATER;
				n_later++;
			}
			break;
		default:
			i = corq_pool_alloc(&p);
			assert_true((i == CORQ_NONE) == (n_out + n_later == N));
			if (i == CORQ_NONE)
				break;
			assert_true(i < N && where[i] == FREE);
			where[i] = OUT;
			memset(corq_pool_at(&p, i), step, 16);
			n_out++;
		}
		assert_int_equal(corq_pool_used(&p), n_out);
		assert_int_equal(corq_pool_deferred(&p), n_later);
	}
	assert_int_equal(p.n_used_peak, N);
}

static size_t
resident_pages(void *mem, size_t pages)
{
	unsigned char *in = malloc(pages);
	size_t n = 0;

	assert_int_equal(mincore(mem, pages * 4096, in), 0);
	for (size_t i = 0; i < pages; i++)
		n += in[i] & 1;
	free(in);
	return n;
}

static void
unused_memory_stays_untouched(void **state)
{
	const size_t pages = 4096;
	struct corq_pool p;
	void *mem = mmap(
		NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(mem != MAP_FAILED);
	madvise(mem, pages * 4096, MADV_NOHUGEPAGE);
	corq_pool_init(&p, mem, (uint32_t)pages * 16, 256);
	assert_int_equal(corq_pool_size((uint32_t)pages * 16, 256), pages * 4096);
	for (int i = 0; i < 32; i++)
		memset(corq_pool_at(&p, corq_pool_alloc(&p)), 1, 256);
	for (uint32_t i = 0; i < 32; i++)
		corq_pool_free(&p, i);
	assert_in_range(resident_pages(mem, pages), 2, 3);
	munmap(mem, pages * 4096);
}

#ifdef CORQ_DEBUG
/* Does fn end in an assertion? */
static bool
aborts(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		close(2);
		fn();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void
free_twice(void)
{
	uint32_t mem[8 * 4];
	struct corq_pool p;

	corq_pool_init(&p, mem, 4, 32);
	corq_pool_alloc(&p);
	corq_pool_alloc(&p);
	corq_pool_free(&p, 0);
	corq_pool_free(&p, 1);
	corq_pool_free(&p, 0);
}

static void
free_twice_deferred(void)
{
	uint32_t mem[8 * 4];
	struct corq_pool p;

	corq_pool_init(&p, mem, 4, 32);
	corq_pool_alloc(&p);
	corq_pool_free_deferred(&p, 0);
	corq_pool_free(&p, 0);
}

static void
write_after_free(void)
{
	uint32_t mem[8 * 4];
	struct corq_pool p;

	corq_pool_init(&p, mem, 4, 32);
	corq_pool_alloc(&p);
	corq_pool_free(&p, 0);
	mem[7] = 1;
	corq_pool_alloc(&p);
}

static void
free_of_fresh(void)
{
	uint32_t mem[8 * 4];
	struct corq_pool p;

	corq_pool_init(&p, mem, 4, 32);
	corq_pool_free(&p, 2);
}

static void
debug_build_catches_misuse(void **state)
{
	(void)state;
	assert_true(aborts(free_twice));
	assert_true(aborts(free_twice_deferred));
	assert_true(aborts(write_after_free));
	assert_true(aborts(free_of_fresh));
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_freed_comes_first),
		cmocka_unit_test(deferred_waits_for_the_turn),
		cmocka_unit_test(index_inverts_at),
		cmocka_unit_test(random_use_against_a_model),
		cmocka_unit_test(unused_memory_stays_untouched),
#ifdef CORQ_DEBUG
		cmocka_unit_test(debug_build_catches_misuse),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
