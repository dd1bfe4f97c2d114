/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.c - depth-first walk with a table of the states that were seen (128 bits of hash each;
 * two different states of 10 million fall together with a chance below 1e-24).
 *
 * A few random executions come first: they find most of the words that threads share, so that the
 * walk seldom has to begin again.
 */
#include "search.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH = 4000,
	RANDOM_WALKS = 500,
	OPEN_STATE = -1, /* in entry.paths: on the way that led here */
};

struct entry {
	uint64_t hash[2]; /* 0: none */
	double paths;     /* executions from here on */
};

static struct {
	struct entry *entry;
	uint64_t size, used;
} table;

static struct frame {
	uint8_t *state;
	size_t room;
	double paths;
	uint64_t hash[2];
	struct m_choice choice[M_CHOICES];
	uint32_t n_choices, next;
} frame[DEPTH];
static struct m_event trace[DEPTH];
static uint32_t depth;
static jmp_buf violated;
static uint8_t scratch[M_STATE_MAX] CORQ_ALIGNED_LINE;

/* ---- states that were seen ---- */

static void
hash_state(const uint8_t *p, size_t bytes, uint64_t out[2])
{
	uint64_t a = 0x243f6a8885a308d3ull, b = 0x13198a2e03707344ull, x;

	for (size_t i = 0; i < bytes; i += 8) {
		memcpy(&x, p + i, 8);
		a = (a ^ x) * 0x9fb21c651e98df25ull;
		a ^= a >> 29;
		b = ((b << 23 | b >> 41) + x) * 0xd6e8feb86659fd93ull;
		b ^= b >> 32;
	}
	out[0] = (a ^ a >> 31) | 1;
	out[1] = b;
}

static struct entry *
look_up(const uint64_t hash[2])
{
	uint64_t i = hash[0] >> 7 & (table.size - 1);

	while (table.entry[i].hash[0] != 0 &&
		(table.entry[i].hash[0] != hash[0] || table.entry[i].hash[1] != hash[1]))
		i = (i + 1) & (table.size - 1);
	return &table.entry[i];
}

static void
resize(uint64_t size)
{
	struct entry *old = table.entry;
	uint64_t n = table.size;

	table.entry = calloc(size, sizeof(*table.entry));
	if (table.entry == NULL) {
		fprintf(stderr, "explorer: no memory for %llu states\n", (unsigned long long)size);
		exit(2);
	}
	table.size = size;
	for (uint64_t i = 0; i < n; i++)
		if (old[i].hash[0] != 0)
			*look_up(old[i].hash) = old[i];
	free(old);
}

static void
add(const uint64_t hash[2])
{
	struct entry *e;

	if (table.used * 2 >= table.size)
		resize(table.size * 2);
	e = look_up(hash);
	e->hash[0] = hash[0];
	e->hash[1] = hash[1];
	e->paths = OPEN_STATE;
	table.used++;
}

static void
forget_states(void)
{
	free(table.entry);
	memset(&table, 0, sizeof(table));
	resize(1 << 16);
}

/* ---- the walk ---- */

static void
stuck(void)
{
	char text[300] = "";
	size_t n = 0;

	for (uint32_t t = 0; t < M_THREADS; t++)
		if (m_status_of(t) < M_DONE)
			n += (size_t)snprintf(
				text + n, sizeof(text) - n, " %u (step %u)", t, m_step_of(t));
	m_violate("none can go on: threads%s wait for ever", text);
}

/* Makes the present state frame `depth`. */
static void
enter(const uint64_t hash[2], size_t bytes)
{
	struct frame *f = &frame[depth];

	if (depth + 1 == DEPTH)
		m_violate("an execution of more than %d transitions", DEPTH);
	if (f->room < bytes) {
		free(f->state);
		f->state = malloc(bytes * 2);
		f->room = bytes * 2;
	}
	memcpy(f->state, scratch, bytes);
	f->hash[0] = hash[0];
	f->hash[1] = hash[1];
	f->paths = 0;
	f->next = 0;
	f->n_choices = m_choices(f->choice);
	if (f->n_choices == 0)
		stuck();
}

/* The state after a transition: counts what follows it, or enters it. */
static bool
visit(struct search_result *r, double *paths)
{
	size_t bytes = m_save(scratch);
	uint64_t hash[2];
	const struct entry *e;

	hash_state(scratch, bytes, hash);
	e = look_up(hash);
	if (e->hash[0] != 0) {
		*paths = e->paths == OPEN_STATE ? 0 : e->paths;
		return false;
	}
	world_check();
	add(hash);
	if (m_all_ended()) {
		r->ends++;
		world_end();
		look_up(hash)->paths = 1;
		*paths = 1;
		return false;
	}
	depth++;
	r->depth = CORQ_MAX(r->depth, depth);
	enter(hash, bytes);
	return true;
}

/* True: the walk is complete. False: a shared word was learnt, or the bound met. */
static bool
walk(struct search_result *r, uint64_t max_states)
{
	size_t bytes = m_save(scratch);
	bool here = true; /* the machine is in the state of frame `depth` */
	double paths;

	depth = 0;
	hash_state(scratch, bytes, frame[0].hash);
	add(frame[0].hash);
	enter((uint64_t[2]){frame[0].hash[0], frame[0].hash[1]}, bytes);
	for (;;) {
		struct frame *f = &frame[depth];

		if (f->next == f->n_choices) {
			look_up(f->hash)->paths = f->paths;
			if (depth == 0)
				break;
			frame[--depth].paths += f->paths;
			here = false;
			continue;
		}
		if (!here)
			m_restore(f->state);
		m_do(f->choice[f->next++]);
		trace[depth + 1] = m_last;
		here = visit(r, &paths);
		if (!here)
			f->paths += paths;
		if (m_learnt)
			return false;
		if (table.used > max_states) {
			r->cut = true;
			break;
		}
	}
	r->interleavings = frame[0].paths;
	return true;
}

/* One execution, by dice. */
static void
random_walk(uint64_t *seed)
{
	struct m_choice choice[M_CHOICES];
	uint32_t n;

	for (depth = 0; (n = m_choices(choice)) != 0; depth++) {
		*seed ^= *seed << 13;
		*seed ^= *seed >> 7;
		*seed ^= *seed << 17;
		if (depth + 2 == DEPTH)
			m_violate("an execution of more than %d transitions", DEPTH);
		m_do(choice[(*seed >> 20) % n]);
		trace[depth + 1] = m_last;
		world_check();
	}
	if (!m_all_ended())
		stuck();
	depth--; /* trace[depth + 1] is the last one */
	world_end();
}

static void
begin(const struct scenario *sc)
{
	depth = 0;
	trace[1] = (struct m_event){0};
	world_start(sc);
	m_settle();
}

void
search_violated(void)
{
	longjmp(violated, 1);
}

static void
print_trace(const struct scenario *sc, uint32_t n)
{
	static const char *const what[] = {[M_LOAD] = "reads",
		[M_RMW] = "changes",
		[M_CAS] = "compares",
		[M_SPIN] = "has waited",
		[M_FULL] = "had no room in its buffer",
		[M_FLUSH] = "buffer ->",
		[M_KILL] = "dies"};

	printf("VIOLATION in %s: %s\n", sc->name, m_violation);
	for (uint32_t i = 1; i <= n; i++) {
		const struct m_event *e = &trace[i];

		if (e->kind == M_NOTHING)
			continue;
		printf("  %3u thread %u %s", i, e->thread, what[e->kind]);
		if (e->kind <= M_CAS || e->kind == M_FLUSH)
			printf(" %s: %llx", world_name(e->at), (unsigned long long)e->before);
		if (e->kind != M_LOAD && (e->kind <= M_CAS || e->kind == M_FLUSH))
			printf(" -> %llx", (unsigned long long)e->after);
		printf("%s%s\n", *e->where ? "   in " : "", e->where);
	}
}

static void
explore(const struct scenario *sc, uint64_t max_states, struct search_result *r)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;

	for (int i = 0; i < (sc->only_long ? 10 * RANDOM_WALKS : RANDOM_WALKS); i++) {
		begin(sc);
		random_walk(&seed);
	}
	do {
		*r = (struct search_result){.walks = r->walks + 1};
		m_learnt = false;
		m_transitions = 0;
		forget_states();
		begin(sc);
	} while (!walk(r, max_states));
	r->transitions = m_transitions;
	r->states = table.used;
}

void
search_run(const struct scenario *sc, uint64_t max_states, struct search_result *r)
{
	memset(r, 0, sizeof(*r));
	m_forget_learnt();
	if (setjmp(violated) == 0) {
		explore(sc, max_states, r);
		return;
	}
	r->violated = true;
	/* the transition at work stands in m_last, if it did not end */
	if (memcmp(&trace[depth + 1], &m_last, sizeof(m_last)) != 0 && depth + 2 < DEPTH)
		trace[++depth] = m_last;
	else
		depth++;
	print_trace(sc, depth);
}
