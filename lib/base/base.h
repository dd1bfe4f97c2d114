/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * base.h - the few definitions that every other file of corq leans on.
 *
 * Read this first. `base` knows libc and nothing else: no packet, no TCP, no DPDK. Whatever is
 * here may be used by any layer, from any thread, at any time.
 */
#ifndef CORQ_BASE_H
#define CORQ_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORQ_CACHELINE    64
#define CORQ_ALIGNED_LINE __attribute__((aligned(CORQ_CACHELINE)))

#define CORQ_LIKELY(x)     __builtin_expect(!!(x), 1)
#define CORQ_UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define CORQ_NOINLINE      __attribute__((noinline))
#define CORQ_ALWAYS_INLINE inline __attribute__((always_inline))
#define CORQ_PREFETCH(p)   __builtin_prefetch((p), 0, 3)
#define CORQ_PREFETCH_W(p) __builtin_prefetch((p), 1, 3)

#define CORQ_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CORQ_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define CORQ_MAX(a, b)    ((a) > (b) ? (a) : (b))

/* "No object": every 32-bit pool index in corq uses this for none. */
#define CORQ_NONE UINT32_MAX

#define CORQ_NS_PER_US 1000ull
#define CORQ_NS_PER_MS 1000000ull
#define CORQ_NS_PER_S  1000000000ull

/* Prints one line (file, line, condition) on stderr and aborts. Never returns. */
_Noreturn void corq_assert_fail(const char *file, int line, const char *cond);

/*
 * CORQ_ASSERT guards our own invariants, never what a peer sent. It stays on in release builds:
 * one predictable branch. CORQ_ASSERT_SLOW is for checks that walk something; it is on where the
 * build defines CORQ_DEBUG (the sanitizer and debug builds do).
 */
#define CORQ_ASSERT(c) (CORQ_LIKELY(c) ? (void)0 : corq_assert_fail(__FILE__, __LINE__, #c))
#ifdef CORQ_DEBUG
#define CORQ_ASSERT_SLOW(c) CORQ_ASSERT(c)
#else
#define CORQ_ASSERT_SLOW(c) ((void)sizeof(c))
#endif

#endif
