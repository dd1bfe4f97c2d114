/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.h - what a tuple is to a core right now, for tests that play a peer who knows everything:
 * the numbers a right (or cunningly wrong) segment for it is made from. Reads the engine between
 * two inputs; changes nothing.
 */
#ifndef CORQ_TEST_TARGET_H
#define CORQ_TEST_TARGET_H

#include "tcp/engine.h"

struct target {
	struct corq_key key;
	uint32_t rcv_nxt, snd_una, snd_nxt, ts_recent, ts_off;
	uint8_t state; /* enum corq_state; records: TIME_WAIT, FIN_WAIT_2, SYN_RCVD; CLOSED: none */
	bool record, ts;
};

void target_of_record(struct corq_engine *e, const struct corq_record *r, struct target *t);
void target_of_conn(const struct corq_conn *c, struct target *t);
/* Fills in the rest for the tuple in t->key. */
void target_look_up(struct corq_engine *e, struct target *t);

#endif
