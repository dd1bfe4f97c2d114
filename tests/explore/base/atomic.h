/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomic.h - takes the place of lib/base/atomic.h when the explorer compiles the library's own
 * files: each helper becomes a call of the machine (machine.c), which may let another thread run
 * first, and keeps stores in the thread's buffer. Same names, same results.
 *
 * The machine is x86-TSO, so loads need no order beyond their place in the program, a store of any
 * order goes through the buffer, and a read-modify-write of any order empties it first.
 * Macros, so that a trace can name the function that did it.
 */
#ifndef CORQ_BASE_ATOMIC_H
#define CORQ_BASE_ATOMIC_H

#include "base/base.h"

#define CORQ_EXPLORED 1

enum xp_rmw {
	XP_XCHG,
	XP_ADD,
	XP_OR,
	XP_AND
};

uint64_t xp_load(const volatile void *p, uint32_t size, const char *where);
void xp_store(volatile void *p, uint32_t size, uint64_t v, const char *where);
uint64_t xp_rmw(volatile void *p, uint32_t size, enum xp_rmw what, uint64_t v, const char *where);
bool xp_cas(volatile void *p, uint32_t size, void *expect, uint64_t v, const char *where);
void xp_spin(const char *where);

static inline uint32_t
xp_load32(const volatile void *p, const char *where)
{
	return (uint32_t)xp_load(p, 4, where);
}

static inline uint32_t
xp_rmw32(volatile void *p, enum xp_rmw what, uint32_t v, const char *where)
{
	return (uint32_t)xp_rmw(p, 4, what, v, where);
}

#define corq_load_relaxed_u32(p)       xp_load32((p), __func__)
#define corq_load_relaxed_u64(p)       xp_load((p), 8, __func__)
#define corq_load_acquire_u32(p)       xp_load32((p), __func__)
#define corq_load_acquire_u64(p)       xp_load((p), 8, __func__)
#define corq_store_relaxed_u32(p, v)   xp_store((p), 4, (uint32_t)(v), __func__)
#define corq_store_relaxed_u64(p, v)   xp_store((p), 8, (v), __func__)
#define corq_store_release_u32(p, v)   xp_store((p), 4, (uint32_t)(v), __func__)
#define corq_store_release_u64(p, v)   xp_store((p), 8, (v), __func__)
#define corq_xchg_acqrel_u32(p, v)     xp_rmw32((p), XP_XCHG, (v), __func__)
#define corq_xchg_acqrel_u64(p, v)     xp_rmw((p), 8, XP_XCHG, (v), __func__)
#define corq_rmw_add_relaxed_u32(p, v) xp_rmw32((p), XP_ADD, (v), __func__)
#define corq_rmw_add_relaxed_u64(p, v) xp_rmw((p), 8, XP_ADD, (v), __func__)
#define corq_rmw_add_seqcst_u32(p, v)  xp_rmw32((p), XP_ADD, (v), __func__)
#define corq_rmw_add_seqcst_u64(p, v)  xp_rmw((p), 8, XP_ADD, (v), __func__)
#define corq_rmw_or_acqrel_u32(p, v)   xp_rmw32((p), XP_OR, (v), __func__)
#define corq_rmw_or_acqrel_u64(p, v)   xp_rmw((p), 8, XP_OR, (v), __func__)
#define corq_rmw_and_acqrel_u32(p, v)  xp_rmw32((p), XP_AND, (v), __func__)
#define corq_rmw_and_acqrel_u64(p, v)  xp_rmw((p), 8, XP_AND, (v), __func__)
#define corq_cas_acqrel_u32(p, e, v)   xp_cas((p), 4, (e), (uint32_t)(v), __func__)
#define corq_cas_acqrel_u64(p, e, v)   xp_cas((p), 8, (e), (v), __func__)
#define corq_spin()                    xp_spin(__func__)

#endif
