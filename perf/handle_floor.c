/* SPDX-License-Identifier: BSD-3-Clause */
/* handle_floor.c - floors for bench_handles. See handle_floor.h. Full is UINT32_MAX. */
#include "handle_floor.h"

#include "handles.h"

#define ALL (~0ull)

/* Words of a level, 0 the root, of a tree of n numbers. */
static uint32_t
words_of(uint32_t n, int level)
{
	uint64_t words = n;

	for (int i = FLOOR_LEVELS - 1; i >= level; i--)
		words = (words + 63) / 64;
	return (uint32_t)words;
}

/* Bits past the end of a level are taken for good. */
static uint64_t
missing(uint32_t n, int level, uint32_t word)
{
	uint64_t bits = level == FLOOR_LEVELS - 1 ? n : words_of(n, level + 1);

	return bits >= (word + 1) * 64ull ? 0 : ALL << bits % 64;
}

/* Levels stand in lines of their own. */
static size_t
line_of(uint32_t words)
{
	return ((size_t)words + 7) & ~(size_t)7;
}

static size_t
bytes_of(uint32_t n)
{
	size_t words = 0;

	for (int i = 0; i < FLOOR_LEVELS; i++)
		words += line_of(words_of(n, i));
	return words * sizeof(uint64_t);
}

void
floor_tree_init(struct floor_tree *t, uint32_t n)
{
	uint64_t *at = handles_map(bytes_of(n));

	for (int i = 0; i < FLOOR_LEVELS; i++) {
		uint32_t words = words_of(n, i);

		t->level[i] = at;
		t->level[i][words - 1] = missing(n, i, words - 1);
		at += line_of(words);
	}
}

uint32_t
floor_tree_take(struct floor_tree *t)
{
	uint32_t at = 0;
	uint64_t word;

	if (__builtin_expect(*t->level[0] == ALL, 0))
		return UINT32_MAX;
	for (int i = 0; i < FLOOR_LEVELS; i++)
		at = at << 6 | (uint32_t)__builtin_ctzll(~t->level[i][at]);
	word = t->level[3][at >> 6] |= 1ull << (at & 63);
	if (__builtin_expect(word == ALL, 0))
		for (int i = 2; i >= 0 && word == ALL; i--) {
			uint32_t up = at >> (6 * (3 - i));

			word = t->level[i][up >> 6] |= 1ull << (up & 63);
		}
	return at;
}

void
floor_tree_put(struct floor_tree *t, uint32_t n)
{
	uint64_t was = t->level[3][n >> 6];

	t->level[3][n >> 6] = was & ~(1ull << (n & 63));
	if (__builtin_expect(was == ALL, 0))
		for (int i = 2; i >= 0 && was == ALL; i--) {
			uint32_t up = n >> (6 * (3 - i));

			was = t->level[i][up >> 6];
			t->level[i][up >> 6] = was & ~(1ull << (up & 63));
		}
}

void
floor_shared_init(struct floor_shared *t, uint32_t n)
{
	_Atomic uint64_t *at = handles_map(bytes_of(n));

	for (int i = 0; i < FLOOR_LEVELS; i++) {
		uint32_t words = words_of(n, i);

		t->level[i] = at;
		atomic_store_explicit(
			&t->level[i][words - 1], missing(n, i, words - 1), memory_order_relaxed);
		at += line_of(words);
	}
}

/* Says in the levels above that what is below `at` is full; looks again, for it may not stay so. */
static void
shared_full(struct floor_shared *t, uint32_t at)
{
	for (int i = 2; i >= 0; i--) {
		uint32_t up = at >> (6 * (3 - i));
		uint64_t bit = 1ull << (up & 63), now;

		now = atomic_fetch_or(&t->level[i][up >> 6], bit) | bit;
		if (atomic_load(&t->level[i + 1][up]) != ALL) {
			atomic_fetch_and(&t->level[i][up >> 6], ~bit);
			return;
		}
		if (now != ALL)
			return;
	}
}

uint32_t
floor_shared_take(struct floor_shared *t)
{
	for (;;) {
		uint32_t at = 0;
		uint64_t word = 0;
		int i;

		for (i = 0; i < FLOOR_LEVELS; i++) {
			word = atomic_load_explicit(&t->level[i][at], memory_order_acquire);
			if (word == ALL)
				break;
			at = at << 6 | (uint32_t)__builtin_ctzll(~word);
		}
		if (i == 0)
			return UINT32_MAX;
		if (i < FLOOR_LEVELS) { /* the level above lags */
			shared_full(t, at << (6 * (FLOOR_LEVELS - i)));
			continue;
		}
		if (!atomic_compare_exchange_strong(
			    &t->level[3][at >> 6], &word, word | 1ull << (at & 63)))
			continue;
		if ((word | 1ull << (at & 63)) == ALL)
			shared_full(t, at);
		return at;
	}
}

void
floor_shared_put(struct floor_shared *t, uint32_t n)
{
	uint64_t was = atomic_fetch_and(&t->level[3][n >> 6], ~(1ull << (n & 63)));

	for (int i = 2; i >= 0 && was == ALL; i--) {
		uint32_t up = n >> (6 * (3 - i));

		was = atomic_fetch_and(&t->level[i][up >> 6], ~(1ull << (up & 63)));
	}
}

void
floor_stack_init(struct floor_stack *s, uint32_t n)
{
	s->number = handles_map(n * sizeof(*s->number));
	s->top = 0;
	while (s->top < n) {
		s->number[s->top] = n - 1 - s->top;
		s->top++;
	}
}

uint32_t
floor_stack_take(struct floor_stack *s)
{
	return s->top == 0 ? UINT32_MAX : s->number[--s->top];
}

void
floor_stack_put(struct floor_stack *s, uint32_t n)
{
	s->number[s->top++] = n;
}
