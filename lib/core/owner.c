/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * owner.c - the owner function. Pure, any thread; asked on a look-up miss and at start-up.
 *
 * A port block is cut from the local port alone, so that a rule of the device (a mask over the
 * port) can say the same. The keyed hash is not the table's and not the device's: it only has to be
 * equal on all cores of the group.
 */
#include "core/owner.h"

static inline bool
is_connect_port(const struct corq_owner *o, uint16_t lport)
{
	return lport >= o->port_first && lport <= o->port_last;
}

void
corq_owner_set_listens(struct corq_owner *o, uint16_t port, bool on)
{
	uint64_t bit = 1ull << port % 64;

	if (on)
		o->listens[port / 64] |= bit;
	else
		o->listens[port / 64] &= ~bit;
}

unsigned
corq_owner_of(const struct corq_owner *o, const struct corq_key *key, unsigned e)
{
	const struct corq_epoch *ep = &o->epoch[e];
	uint32_t pos;

	CORQ_ASSERT(e < o->n_epochs && ep->n > 0);
	if (ep->n == 1)
		return ep->core[0];
	if (is_connect_port(o, key->lport) && !corq_owner_listens(o, key->lport)) {
		pos = key->lport / CORQ_PORT_BLOCK % ep->n;
	} else {
		uint64_t h = corq_siphash13(&o->key, key, sizeof(*key));

		pos = (uint32_t)((h >> 32) * ep->n >> 32);
	}
	return ep->core[pos];
}

bool
corq_owner_port(const struct corq_owner *o, uint16_t lport, unsigned core)
{
	const struct corq_epoch *ep = &o->epoch[0];

	CORQ_ASSERT(o->n_epochs > 0 && ep->n > 0);
	return is_connect_port(o, lport) && ep->core[lport / CORQ_PORT_BLOCK % ep->n] == core;
}
