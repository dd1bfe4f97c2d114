/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - a small machine that runs logical threads over the library's code, an atomic
 * operation at a time. Read this first; world.h has the handles in it, search.h walks it.
 *
 * Memory model: x86-TSO. A store goes to the thread's own buffer (first in, first out), a load
 * finds the newest store of its own buffer, else memory; a read-modify-write waits until the buffer
 * is empty. When a buffered store reaches memory is the scheduler's choice, like everything else.
 *
 * A thread is a list of steps; each runs as a coroutine on a cleared stack and stops before each
 * visible operation. A transition is: one thread does the operation that it stands at and runs to
 * its next one; or the oldest store of a buffer reaches memory; or a thread dies.
 *
 * What is not visible is done at once, since no order with others can be told apart: a store into
 * the own buffer, a load answered by it, and any operation on a word that no other thread touches
 * (or, for a load, writes). Which words those are is learnt: when a thread meets a word that was
 * taken for another's private one, m_learnt is set, and the walk has to begin again. So the last
 * walk is complete: the first execution that would break the assumption is one that it visits.
 *
 * Plain accesses are no switch points. A buffer is m_buffer stores long: a thread whose buffer is
 * full waits. A thread that dies loses what is in its buffer: it died before it did these stores.
 * One that spins goes on when another wrote something to memory.
 *
 * The whole state is: the registered ranges of memory, the threads, their stacks. m_save and
 * m_restore copy it.
 */
#ifndef EXPLORE_MACHINE_H
#define EXPLORE_MACHINE_H

#include "base/atomic.h"

#ifndef CORQ_EXPLORED
#error "lib/base/atomic.h came first in the include path"
#endif

enum {
	M_THREADS = 3,
	M_BUFFER_MAX = 24,
	M_STACK = 4096,
	M_STATE_MAX = 32768,
	M_CHOICES = 3 * M_THREADS,
};

enum m_status {
	M_IDLE,    /* between two steps */
	M_PENDING, /* before a visible operation */
	M_DONE,    /* no step left */
	M_DEAD     /* killed */
};

enum m_kind {
	M_NOTHING,
	M_LOAD,
	M_RMW,
	M_CAS,
	M_SPIN,
	M_FULL,  /* buffer has no room */
	M_FLUSH, /* from here on: the scheduler's own */
	M_KILL,
};

/* One transition, or the operation that a thread stands at. For traces. */
struct m_event {
	enum m_kind kind;
	uint32_t thread;
	const volatile void *at;
	const char *where;
	uint64_t before, after; /* of the word; a load: what it got */
};

struct m_choice {
	uint8_t thread;
	uint8_t kind; /* M_NOTHING: the thread goes on; M_FLUSH, M_KILL */
};

/* What a step does: fn runs in thread t, begins once ready says so (which never becomes untrue). */
struct m_step {
	void (*fn)(uint32_t t, const struct m_step *s);
	bool (*ready)(uint32_t t, const struct m_step *s);
	uint8_t a, b;
};

extern uint32_t m_buffer;      /* stores a buffer holds */
extern bool m_learnt;          /* see above */
extern char m_violation[400];  /* what is wrong, or "" */
extern struct m_event m_last;  /* the last transition */
extern uint64_t m_transitions; /* in all; also a sign of life */

/* Begins anew: n threads with these steps, none has started. killable: a bit a thread that may die
 * at any point. */
void m_init(uint32_t n, const struct m_step *const *steps, uint32_t killable);
void m_forget_learnt(void);
void m_range(void *p, size_t bytes); /* is part of the state */

enum m_status m_status_of(uint32_t t);
bool m_ended(uint32_t t);    /* done or dead, and nothing in its buffer */
bool m_buffered(uint32_t t); /* something in its buffer */
uint32_t m_step_of(uint32_t t);

/* Runs everything that is not visible. After m_init and before m_choices. */
void m_settle(void);
/* What can happen next; 0 when all threads have ended, or none can go on. */
uint32_t m_choices(struct m_choice *out);
bool m_all_ended(void);
void m_do(struct m_choice c); /* and settles */

size_t m_save(uint8_t *to); /* bytes written, at most M_STATE_MAX */
void m_restore(const uint8_t *from);

/* Memory as all threads see it, their buffers aside. */
uint64_t m_memory(const volatile void *p, uint32_t size);

/* The state breaks a rule. From any context; does not come back. */
_Noreturn void m_violate(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Given by the world: called around each piece of a thread's run. */
void world_before_run(uint32_t t);
void world_after_run(uint32_t t);

/* Given by the search: takes over after a violation, on the main stack. */
_Noreturn void search_violated(void);

#endif
