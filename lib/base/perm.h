/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perm.h - a keyed permutation of [0, n) without a table.
 *
 * corq_perm(key, tweak, n, i) for i = 0, 1, .. n - 1 visits every number below n once, in an order
 * that cannot be told without the key and differs from tweak to tweak. A Feistel network over the
 * smallest power of two that holds n, walked on from numbers that fall outside (fewer than two
 * turns on average). Pure function, any thread. The rounds are not a cipher: it hides the order of
 * local ports from a third party, and guards no secret.
 */
#ifndef CORQ_BASE_PERM_H
#define CORQ_BASE_PERM_H

#include "base/siphash.h"

/* n == 0 stands for 2^32; otherwise i < n. */
uint32_t corq_perm(const struct corq_sipkey *key, uint64_t tweak, uint32_t n, uint32_t i);

#endif
