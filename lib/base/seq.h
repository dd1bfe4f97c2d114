/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seq.h - arithmetic on 32-bit numbers that wrap: TCP sequence numbers, timestamps, wheel ticks.
 *
 * Two values compare by the sign of their difference (RFC 9293, section 3.4), which orders them
 * rightly while they are less than 2^31 apart. At exactly 2^31 each is "less" than the other.
 */
#ifndef CORQ_BASE_SEQ_H
#define CORQ_BASE_SEQ_H

#include "base/base.h"

static inline bool
corq_seq_lt(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool
corq_seq_le(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) <= 0;
}

static inline bool
corq_seq_gt(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static inline bool
corq_seq_ge(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) >= 0;
}

static inline uint32_t
corq_seq_max(uint32_t a, uint32_t b)
{
	return corq_seq_gt(a, b) ? a : b;
}

static inline uint32_t
corq_seq_min(uint32_t a, uint32_t b)
{
	return corq_seq_lt(a, b) ? a : b;
}

#endif
