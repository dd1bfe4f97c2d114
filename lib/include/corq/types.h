/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * corq/types.h - the types that every public header shares: handles and addresses.
 *
 * A handle names one socket-like object of an instance. It is a value: copy it, compare it, pass it
 * to another thread. The lower 26 bits are a slot, the upper 38 bits a generation that changes each
 * time the slot is closed, so a handle that outlived its object is answered with EBADF and never
 * reaches the object that took the slot later. Do not take it apart: the split may change.
 */
#ifndef CORQ_TYPES_H
#define CORQ_TYPES_H

#include <stdint.h>

typedef uint64_t corq_h;

/* No object. No live handle has this value. */
#define CORQ_H_NONE ((corq_h)0)

/*
 * An address: 16 bytes in network order. IPv6 as it is; IPv4 a.b.c.d as ::ffff:a.b.c.d.
 */
struct corq_addr {
	union {
		uint8_t b[16];
		uint32_t w[4]; /* network order */
		uint64_t q[2]; /* network order */
	};
};

#endif
