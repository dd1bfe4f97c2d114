/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * owner.h - which core owns a tuple: one pure function of tuple and epoch.
 *
 * Ports that our own connects use are cut into aligned blocks of CORQ_PORT_BLOCK; block b belongs
 * to core b mod n. Any other tuple, and every tuple of a port with a listener, belongs to a core by
 * keyed hash. Listeners exist on all cores of a group, so all agree. Connections and
 * records live on their owner; a core that misses a tuple hands the frame to the owner, first of
 * the present epoch, then of earlier ones, newest first (handoff.c). Epochs are numbered from 0;
 * a core group keeps the last CORQ_EPOCHS of them.
 */
#ifndef CORQ_CORE_OWNER_H
#define CORQ_CORE_OWNER_H

#include "base/siphash.h"
#include "net/addr.h"

#define CORQ_PORT_BLOCK 64
#define CORQ_EPOCHS     4

struct corq_epoch {
	uint16_t n;       /* cores */
	uint8_t core[64]; /* by position: which core of the group */
};

struct corq_owner {
	struct corq_sipkey key;
	uint16_t port_first, port_last; /* the ports that connects use */
	uint16_t n_epochs;
	struct corq_epoch epoch[CORQ_EPOCHS]; /* newest first */
	uint64_t listens[1024];               /* a bit for each port with a listener */
};

static inline bool
corq_owner_listens(const struct corq_owner *o, uint16_t port)
{
	return o->listens[port / 64] >> port % 64 & 1;
}

void corq_owner_set_listens(struct corq_owner *o, uint16_t port, bool on);
/* Position in the group of the core that owns the tuple in epoch e (0: the present one). */
unsigned corq_owner_of(const struct corq_owner *o, const struct corq_key *key, unsigned e);
/* Whether a local port belongs to a core, for the port allocator. */
bool corq_owner_port(const struct corq_owner *o, uint16_t lport, unsigned core);

#endif
