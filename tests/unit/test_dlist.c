/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dlist.c - index-linked lists against an array model. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/dlist.h"
#include "base/rand.h"

#include <string.h>

struct object {
	uint32_t before;
	struct corq_dlink link;
	uint32_t after;
};

enum {
	N = 40
};

/* The list forwards and backwards is `want`. */
static void
assert_list(const struct corq_dlist_space *s, const struct corq_dlist *l, const uint32_t *want,
	uint32_t n)
{
	uint32_t idx = l->head, last = CORQ_NONE;

	assert_int_equal(l->count, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(idx, want[i]);
		assert_int_equal(corq_dlist_link(s, idx)->prev, last);
		assert_true(corq_dlist_has(s, l, idx));
		last = idx;
		idx = corq_dlist_next(s, idx);
	}
	assert_int_equal(idx, CORQ_NONE);
	assert_int_equal(l->tail, last);
}

static uint32_t
model_remove(uint32_t *list, uint32_t n, uint32_t idx)
{
	uint32_t at = 0;

	while (list[at] != idx)
		at++;
	memmove(&list[at], &list[at + 1], (n - at - 1) * sizeof(*list));
	return n - 1;
}

static void
random_use_against_a_model(void **state)
{
	struct object obj[N];
	const struct corq_dlist_space s = {
		(uint8_t *)obj, sizeof(obj[0]), offsetof(struct object, link)};
	struct corq_dlist l[2];
	uint32_t want[2][N], n[2] = {0, 0}, on[N];
	struct corq_rand r;

	(void)state;
	corq_rand_seed(&r, 11);
	corq_dlist_init(&l[0]);
	corq_dlist_init(&l[1]);
	for (uint32_t i = 0; i < N; i++) {
		obj[i].before = obj[i].after = i;
		corq_dlink_init(&obj[i].link);
		on[i] = CORQ_NONE;
	}
	for (int step = 0; step < 50000; step++) {
		uint32_t i = (uint32_t)corq_rand_below(&r, N), k = (uint32_t)corq_rand_below(&r, 2);
		uint32_t op = (uint32_t)corq_rand_below(&r, 5), got;

		if (on[i] == CORQ_NONE) {
			assert_false(corq_dlist_has(&s, &l[k], i));
			corq_dlist_push_tail(&s, &l[k], i);
			want[k][n[k]++] = i;
			on[i] = k;
		} else if (op == 0) {
			got = corq_dlist_pop_head(&s, &l[k]);
			assert_int_equal(got, n[k] ? want[k][0] : CORQ_NONE);
			if (got != CORQ_NONE) {
				n[k] = model_remove(want[k], n[k], got);
				on[got] = CORQ_NONE;
			}
		} else if (op < 3) {
			k = on[i];
			corq_dlist_move_to_tail(&s, &l[k], i);
			n[k] = model_remove(want[k], n[k], i);
			want[k][n[k]++] = i;
		} else {
			k = on[i];
			corq_dlist_remove(&s, &l[k], i);
			n[k] = model_remove(want[k], n[k], i);
			on[i] = CORQ_NONE;
		}
		assert_list(&s, &l[0], want[0], n[0]);
		assert_list(&s, &l[1], want[1], n[1]);
	}
	for (uint32_t i = 0; i < N; i++)
		assert_true(obj[i].before == i && obj[i].after == i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_use_against_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
