/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_engine.h - what the files of the fuzz target share: the world of one input, and how numbers
 * are read from it.
 *
 *   fuzz_engine.c  steps, checks, start and end    fuzz_engine_app.c  the program on the core
 *   fuzz_engine_frames.c  frames from the input
 */
#ifndef CORQ_FUZZ_ENGINE_H
#define CORQ_FUZZ_ENGINE_H

#include "check_engine.h"
#include "mkseg.h"
#include "target.h"
#include "testcore.h"

#define HANDLES 32
#define PIECE   3000u
#define PIECES  8

struct fuzz {
	struct testcore tc;
	struct corq_check check;
	const uint8_t *p;
	size_t n;
	uint8_t last[MKSEG_MAX];
	uint32_t last_len;
	uint8_t arena[PIECES * PIECE];
	bool lent[PIECES];
	struct corq_listener *listener[2];
	corq_h handle[HANDLES]; /* connections that the program has */
	bool draining;
};

_Noreturn void fuzz_die(const char *what);

/* ---- the input ---- */

static inline uint8_t
fuzz_u8(struct fuzz *z)
{
	if (z->n == 0)
		return 0;
	z->n--;
	return *z->p++;
}

static inline uint16_t
fuzz_u16(struct fuzz *z)
{
	uint16_t hi = fuzz_u8(z);

	return (uint16_t)(hi << 8 | fuzz_u8(z));
}

/* A distance: mostly small, either way, now and then anything. */
static inline uint32_t
fuzz_distance(struct fuzz *z)
{
	uint8_t k = fuzz_u8(z);

	if (k < 160)
		return 0;
	if (k < 200)
		return (uint32_t)(k - 180);
	if (k < 240)
		return (uint32_t)((int32_t)(int16_t)fuzz_u16(z));
	return (uint32_t)fuzz_u16(z) << 16 | fuzz_u16(z);
}

/* ---- fuzz_engine_app.c ---- */
extern const struct corq_ops fuzz_ops;
/* A connection that the program has and did not close, by a number from the input; or NULL. */
struct corq_conn *fuzz_conn(struct fuzz *z, uint8_t i);
void fuzz_remember(struct fuzz *z, struct corq_conn *c);
/* One call, chosen by the input. */
void fuzz_act(struct fuzz *z, struct corq_core *core, struct corq_conn *c);
void fuzz_release(struct corq_core *core, void *arg, uint64_t cookie);

/* ---- fuzz_engine_frames.c ---- */
struct corq_addr fuzz_peer(unsigned i);
/* A frame into out; returns its length, 0 for none. */
uint32_t fuzz_frame(struct fuzz *z, uint8_t kind, uint8_t out[MKSEG_MAX]);

#endif
