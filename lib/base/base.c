/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * base.c - the end of the road for a broken invariant. Any thread may come here; nobody returns.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void
corq_assert_fail(const char *file, int line, const char *cond)
{
	fprintf(stderr, "corq: %s:%d: assertion failed: %s\n", file, line, cond);
	fflush(stderr);
	abort();
}
