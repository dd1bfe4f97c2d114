/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomic.h - the one door to memory that two threads share.
 *
 * Shared words are declared `_Atomic uint32_t` or `_Atomic uint64_t` and touched through these
 * helpers only; the memory order stands in the helper's name, so that a call can be read (and an
 * argument about it checked) without knowing a default. tests/explore replaces this header by one
 * that interleaves threads, which is why no layer below port calls <stdatomic.h> directly.
 *
 * There is no fence: ThreadSanitizer does not model fences. Where a store must be seen before a
 * later load (the sleeper protocols), use a seq_cst read-modify-write on both sides.
 *
 * The read-modify-write helpers return the old value. A cas helper returns true when it stored;
 * when it did not, *expect holds the value that was found.
 */
#ifndef CORQ_BASE_ATOMIC_H
#define CORQ_BASE_ATOMIC_H

#include "base/base.h"

#include <stdatomic.h>

#define CORQ_ATOMIC_OPS(bits)                                                                      \
	static CORQ_ALWAYS_INLINE uint##bits##_t corq_load_relaxed_u##bits(                        \
		const _Atomic uint##bits##_t *p)                                                   \
	{                                                                                          \
		return atomic_load_explicit(p, memory_order_relaxed);                              \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE uint##bits##_t corq_load_acquire_u##bits(                        \
		const _Atomic uint##bits##_t *p)                                                   \
	{                                                                                          \
		return atomic_load_explicit(p, memory_order_acquire);                              \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE void corq_store_relaxed_u##bits(                                 \
		_Atomic uint##bits##_t *p, uint##bits##_t v)                                       \
	{                                                                                          \
		atomic_store_explicit(p, v, memory_order_relaxed);                                 \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE void corq_store_release_u##bits(                                 \
		_Atomic uint##bits##_t *p, uint##bits##_t v)                                       \
	{                                                                                          \
		atomic_store_explicit(p, v, memory_order_release);                                 \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE uint##bits##_t corq_xchg_acqrel_u##bits(                         \
		_Atomic uint##bits##_t *p, uint##bits##_t v)                                       \
	{                                                                                          \
		return atomic_exchange_explicit(p, v, memory_order_acq_rel);                       \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE uint##bits##_t corq_rmw_add_relaxed_u##bits(                     \
		_Atomic uint##bits##_t *p, uint##bits##_t v)                                       \
	{                                                                                          \
		return atomic_fetch_add_explicit(p, v, memory_order_relaxed);                      \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE uint##bits##_t corq_rmw_add_seqcst_u##bits(                      \
		_Atomic uint##bits##_t *p, uint##bits##_t v)                                       \
	{                                                                                          \
		return atomic_fetch_add_explicit(p, v, memory_order_seq_cst);                      \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE uint##bits##_t corq_rmw_or_acqrel_u##bits(                       \
		_Atomic uint##bits##_t *p, uint##bits##_t v)                                       \
	{                                                                                          \
		return atomic_fetch_or_explicit(p, v, memory_order_acq_rel);                       \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE uint##bits##_t corq_rmw_and_acqrel_u##bits(                      \
		_Atomic uint##bits##_t *p, uint##bits##_t v)                                       \
	{                                                                                          \
		return atomic_fetch_and_explicit(p, v, memory_order_acq_rel);                      \
	}                                                                                          \
	static CORQ_ALWAYS_INLINE bool corq_cas_acqrel_u##bits(                                    \
		_Atomic uint##bits##_t *p, uint##bits##_t *expect, uint##bits##_t v)               \
	{                                                                                          \
		return atomic_compare_exchange_strong_explicit(                                    \
			p, expect, v, memory_order_acq_rel, memory_order_acquire);                 \
	}

/* In a loop that waits for another thread. */
static inline void
corq_spin(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

CORQ_ATOMIC_OPS(32)
CORQ_ATOMIC_OPS(64)
#undef CORQ_ATOMIC_OPS

#endif
