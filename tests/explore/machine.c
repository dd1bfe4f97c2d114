/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.c - threads as coroutines, store buffers, and the operations of base/atomic.h. machine.h
 * has the model. x86-64 only: the coroutine switch is written in its assembly.
 */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct store {
	volatile void *at;
	uint64_t v;
	const char *where;
	uint64_t size;
};

struct thread {
	void *sp;
	uint32_t status, step;
	uint32_t kind;    /* the operation that it stands at */
	uint32_t waiting; /* spins, and nobody wrote since */
	const volatile void *at;
	uint32_t size, n_stores;
	struct store store[M_BUFFER_MAX]; /* oldest first; last: only the used ones are state */
};

/* Who touched a word so far, in all walks: a bit a thread. */
struct sharing {
	uintptr_t word;
	uint8_t readers, writers;
};

enum {
	RANGES = 16,
	WORDS = 4096, /* a power of two */
	QUIET_MAX = 100000
};

uint32_t m_buffer = 16;
bool m_learnt;
char m_violation[400];
struct m_event m_last;
uint64_t m_transitions;

static struct thread thread[M_THREADS];
static uint8_t stack[M_THREADS][M_STACK] CORQ_ALIGNED_LINE;
static struct sharing sharing[WORDS];
static struct range {
	uint8_t *p;
	size_t bytes;
} range[RANGES];
static uint32_t n_ranges, n_threads, killable, quiet;
static const struct m_step *const *steps;
static struct thread *cur; /* NULL: the search, or a check; memory is touched directly */
static void *search_sp;

/* ---- coroutines ---- */

void xp_switch(void **save, void *to);
__asm__(".text\n"
	".globl xp_switch\n"
	".type xp_switch,@function\n"
	"xp_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size xp_switch, .-xp_switch\n");

static uint32_t
index_of(const struct thread *t)
{
	return (uint32_t)(t - thread);
}

static uint8_t *
stack_end(const struct thread *t)
{
	return stack[index_of(t)] + M_STACK;
}

static const struct m_step *
step_of(const struct thread *t)
{
	return &steps[index_of(t)][t->step];
}

static void
pause_thread(void)
{
	struct thread *t = cur;

	xp_switch(&t->sp, search_sp);
}

/* Where each step begins. */
static void
run_step(void)
{
	struct thread *t = cur;

	step_of(t)->fn(index_of(t), step_of(t));
	t->step++;
	t->status = step_of(t)->fn != NULL ? M_IDLE : M_DONE;
	t->kind = M_NOTHING;
	pause_thread();
}

/* Runs t from where it stands to its next visible operation, or the end of its step. What lies
 * below its stack pointer is cleared: it must not become part of the state. */
static void
resume(struct thread *t)
{
	memset(stack[index_of(t)], 0, (size_t)((uint8_t *)t->sp - stack[index_of(t)]));
	world_before_run(index_of(t));
	quiet = 0;
	cur = t;
	xp_switch(&search_sp, t->sp);
	cur = NULL;
	if (m_violation[0] != '\0')
		search_violated();
	if (t->status == M_PENDING && stack_end(t) - (uint8_t *)t->sp > M_STACK - 256)
		m_violate("the explorer's stacks are too small");
	if (t->status != M_PENDING)
		t->sp = NULL;
	world_after_run(index_of(t));
}

static void
begin_step(struct thread *t)
{
	void **top = (void **)(void *)(stack_end(t) - 16);

	memset(stack[index_of(t)], 0, M_STACK);
	*top = (void *)(uintptr_t)run_step;
	t->sp = top - 6;
	resume(t);
}

void
m_violate(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(m_violation, sizeof(m_violation), format, args);
	va_end(args);
	if (cur != NULL)
		pause_thread();
	search_violated();
}

/* ---- memory, and who shares what ---- */

uint64_t
m_memory(const volatile void *p, uint32_t size)
{
	return size == 4 ? *(const volatile uint32_t *)p : *(const volatile uint64_t *)p;
}

static void
write_memory(volatile void *p, uint32_t size, uint64_t v)
{
	if (m_memory(p, size) != v)
		for (uint32_t i = 0; i < n_threads; i++)
			thread[i].waiting = 0;
	if (size == 4)
		*(volatile uint32_t *)p = (uint32_t)v;
	else
		*(volatile uint64_t *)p = v;
}

static struct sharing *
sharing_of(const volatile void *p)
{
	uintptr_t word = (uintptr_t)p;
	uint32_t i = (uint32_t)((word >> 2) * 0x9e3779b1u) >> 12 & (WORDS - 1);

	while (sharing[i].word != word && sharing[i].word != 0)
		i = (i + 1) & (WORDS - 1);
	sharing[i].word = word;
	return &sharing[i];
}

void
m_forget_learnt(void)
{
	memset(sharing, 0, sizeof(sharing));
}

static struct sharing *
note(const struct thread *t, const volatile void *p, bool writes)
{
	struct sharing *s = sharing_of(p);
	uint8_t me = (uint8_t)(1u << index_of(t)), readers = s->readers, writers = s->writers;

	s->readers |= me;
	if (writes)
		s->writers |= me;
	if ((s->readers != readers || s->writers != writers) && s->readers != me && s->writers != 0)
		m_learnt = true;
	return s;
}

static bool
nobody_else_writes(const struct thread *t, const struct sharing *s)
{
	return (s->writers & ~(1u << index_of(t))) == 0;
}

static bool
nobody_else_looks(const struct thread *t, const struct sharing *s)
{
	return (s->readers & ~(1u << index_of(t))) == 0;
}

/* ---- operations, in the thread ---- */

static const struct store *
buffered(const struct thread *t, const volatile void *p)
{
	for (uint32_t i = t->n_stores; i > 0; i--)
		if (t->store[i - 1].at == p)
			return &t->store[i - 1];
	return NULL;
}

/* Lets others run. Comes back when the search lets this thread do the operation. */
static void
stand_before(enum m_kind kind, const volatile void *p, uint32_t size, const char *where)
{
	struct thread *t = cur;

	t->status = M_PENDING;
	t->kind = kind;
	t->at = p;
	t->size = size;
	pause_thread();
	m_last = (struct m_event){kind, index_of(t), p, where, 0, 0};
}

/* Is not seen by others; but it must end some time. */
static void
count_quiet(void)
{
	if (++quiet > QUIET_MAX)
		m_violate("thread %u runs on for ever", index_of(cur));
}

uint64_t
xp_load(const volatile void *p, uint32_t size, const char *where)
{
	const struct store *s;
	struct sharing *share;
	uint64_t v;

	if (cur == NULL)
		return m_memory(p, size);
	count_quiet();
	share = note(cur, p, false);
	s = buffered(cur, p);
	if (s != NULL)
		return s->v;
	if (nobody_else_writes(cur, share))
		return m_memory(p, size);
	stand_before(M_LOAD, p, size, where);
	v = m_memory(p, size);
	m_last.before = m_last.after = v;
	return v;
}

void
xp_store(volatile void *p, uint32_t size, uint64_t v, const char *where)
{
	struct thread *t = cur;

	if (t == NULL) {
		write_memory(p, size, v);
		return;
	}
	count_quiet();
	note(t, p, true);
	if (t->n_stores == m_buffer)
		stand_before(M_FULL, p, size, where);
	t->store[t->n_stores++] = (struct store){p, v, where, size};
}

/* True: it was visible, and stands in m_last. */
static bool
before_rmw(enum m_kind kind, const volatile void *p, uint32_t size, const char *where)
{
	struct sharing *share = note(cur, p, true);

	count_quiet();
	if (cur->n_stores == 0 && nobody_else_looks(cur, share))
		return false;
	stand_before(kind, p, size, where);
	return true;
}

uint64_t
xp_rmw(volatile void *p, uint32_t size, enum xp_rmw what, uint64_t v, const char *where)
{
	bool visible = cur != NULL && before_rmw(M_RMW, p, size, where);
	uint64_t old = m_memory(p, size);

	v = what == XP_XCHG ? v : what == XP_ADD ? old + v : what == XP_OR ? old | v : old & v;
	if (size == 4)
		v = (uint32_t)v;
	write_memory(p, size, v);
	if (visible) {
		m_last.before = old;
		m_last.after = v;
	}
	return old;
}

bool
xp_cas(volatile void *p, uint32_t size, void *expect, uint64_t v, const char *where)
{
	bool visible = cur != NULL && before_rmw(M_CAS, p, size, where), stores;
	uint64_t old = m_memory(p, size);

	stores = old == m_memory(expect, size);
	if (stores)
		write_memory(p, size, v);
	else
		memcpy(expect, &old, size);
	if (visible) {
		m_last.before = old;
		m_last.after = stores ? v : old;
	}
	return stores;
}

void
xp_spin(const char *where)
{
	if (cur == NULL)
		m_violate("%s waits, and nobody else runs", where);
	cur->waiting = 1;
	stand_before(M_SPIN, NULL, 0, where);
}

/* ---- the scheduler's side ---- */

void
m_init(uint32_t n, const struct m_step *const *s, uint32_t k)
{
	memset(thread, 0, sizeof(thread));
	memset(stack, 0, sizeof(stack));
	n_threads = n;
	n_ranges = 0;
	killable = k;
	steps = s;
	cur = NULL;
	m_violation[0] = '\0';
	for (uint32_t i = 0; i < n; i++)
		thread[i].status = s[i][0].fn != NULL ? M_IDLE : M_DONE;
}

void
m_range(void *p, size_t bytes)
{
	if (n_ranges == RANGES)
		m_violate("too many ranges");
	range[n_ranges++] = (struct range){p, bytes};
}

enum m_status
m_status_of(uint32_t t)
{
	return thread[t].status;
}

bool
m_buffered(uint32_t t)
{
	return thread[t].n_stores != 0;
}

uint32_t
m_step_of(uint32_t t)
{
	return thread[t].step;
}

bool
m_ended(uint32_t t)
{
	return thread[t].status >= M_DONE && thread[t].n_stores == 0;
}

bool
m_all_ended(void)
{
	for (uint32_t i = 0; i < n_threads; i++)
		if (!m_ended(i))
			return false;
	return true;
}

/* The oldest store reaches memory. */
static void
flush_one(struct thread *t)
{
	struct store s = t->store[0];
	uint64_t before = m_memory(s.at, (uint32_t)s.size);

	write_memory(s.at, (uint32_t)s.size, s.v);
	t->n_stores--;
	memmove(&t->store[0], &t->store[1], t->n_stores * sizeof(s));
	m_last = (struct m_event){M_FLUSH, index_of(t), s.at, s.where, before, s.v};
}

static bool
settle_thread(struct thread *t)
{
	if (t->n_stores != 0 && nobody_else_looks(t, sharing_of(t->store[0].at))) {
		struct m_event last = m_last;

		flush_one(t);
		m_last = last;
		return true;
	}
	if (t->status == M_IDLE &&
		(step_of(t)->ready == NULL || step_of(t)->ready(index_of(t), step_of(t)))) {
		begin_step(t);
		return true;
	}
	return false;
}

void
m_settle(void)
{
	bool again;

	do {
		again = false;
		for (uint32_t i = 0; i < n_threads; i++)
			while (settle_thread(&thread[i]))
				again = true;
	} while (again);
}

static bool
can_go_on(const struct thread *t)
{
	if (t->status != M_PENDING)
		return false;
	switch (t->kind) {
	case M_RMW:
	case M_CAS:
		return t->n_stores == 0;
	case M_FULL:
		return t->n_stores < m_buffer;
	case M_SPIN:
		return !t->waiting;
	default:
		return true;
	}
}

uint32_t
m_choices(struct m_choice *out)
{
	uint32_t n = 0, kills = 0;

	for (uint32_t i = 0; i < n_threads; i++) {
		if (can_go_on(&thread[i]))
			out[n++] = (struct m_choice){(uint8_t)i, M_NOTHING};
		if (thread[i].n_stores != 0)
			out[n++] = (struct m_choice){(uint8_t)i, M_FLUSH};
	}
	for (uint32_t i = 0; i < n_threads; i++)
		if (killable >> i & 1 && thread[i].status < M_DONE) {
			out[n++] = (struct m_choice){(uint8_t)i, M_KILL};
			kills++;
		}
	return n == kills && !m_all_ended() ? 0 : n;
}

void
m_do(struct m_choice c)
{
	struct thread *t = &thread[c.thread];

	m_transitions++;
	if (c.kind == M_FLUSH) {
		flush_one(t);
	} else if (c.kind == M_KILL) {
		m_last = (struct m_event){M_KILL, c.thread, t->at, "", 0, 0};
		t->status = M_DEAD;
		t->n_stores = t->waiting = t->kind = 0;
		t->at = NULL;
		t->sp = NULL;
	} else {
		resume(t);
	}
	m_settle();
}

/* ---- the state ---- */

static uint8_t *
put(uint8_t *to, const void *p, size_t bytes)
{
	memcpy(to, p, bytes);
	return to + bytes;
}

static const uint8_t *
get(const uint8_t *from, void *p, size_t bytes)
{
	memcpy(p, from, bytes);
	return from + bytes;
}

size_t
m_save(uint8_t *to)
{
	uint8_t *at = to;

	for (uint32_t i = 0; i < n_ranges; i++)
		at = put(at, range[i].p, range[i].bytes);
	for (uint32_t i = 0; i < n_threads; i++) {
		const struct thread *t = &thread[i];

		at = put(at, t, offsetof(struct thread, store));
		at = put(at, t->store, t->n_stores * sizeof(t->store[0]));
		if (t->sp != NULL)
			at = put(at, t->sp, (size_t)(stack_end(t) - (uint8_t *)t->sp));
	}
	memset(at, 0, 8); /* whole words for whoever hashes it */
	return (size_t)(at - to + 7) & ~(size_t)7;
}

void
m_restore(const uint8_t *from)
{
	for (uint32_t i = 0; i < n_ranges; i++)
		from = get(from, range[i].p, range[i].bytes);
	for (uint32_t i = 0; i < n_threads; i++) {
		struct thread *t = &thread[i];

		from = get(from, t, offsetof(struct thread, store));
		from = get(from, t->store, t->n_stores * sizeof(t->store[0]));
		if (t->sp != NULL)
			from = get(from, t->sp, (size_t)(stack_end(t) - (uint8_t *)t->sp));
	}
}
