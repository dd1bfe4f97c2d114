/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handoff.c - rings between the cores of a group, and who gets a frame that missed. Thread: the
 * core's, but for _bytes and _join, which the main thread calls before the cores run.
 */
#include "core/handoff.h"

static size_t
arrays_bytes(unsigned n)
{
	size_t bytes = (size_t)n * n * 2 * sizeof(struct corq_spsc *);

	return (bytes + CORQ_CACHELINE - 1) / CORQ_CACHELINE * CORQ_CACHELINE;
}

size_t
corq_handoff_bytes(unsigned n)
{
	return arrays_bytes(n) + (size_t)n * (n - 1) * corq_spsc_size(CORQ_HANDOFF_RING);
}

void
corq_handoff_join(struct corq_core **cores, unsigned n, void *mem)
{
	struct corq_spsc **arrays = mem;
	uint8_t *at = (uint8_t *)mem + arrays_bytes(n);

	CORQ_ASSERT(n > 0 && (uintptr_t)mem % CORQ_CACHELINE == 0);
	for (unsigned i = 0; i < n; i++) {
		CORQ_ASSERT(cores[i]->cfg.n == n && cores[i]->cfg.index - cores[i]->cfg.group == i);
		cores[i]->hand_in = &arrays[(size_t)i * 2 * n];
		cores[i]->hand_out = cores[i]->hand_in + n;
		cores[i]->hand_in[i] = cores[i]->hand_out[i] = NULL;
		cores[i]->hand_next = 0;
	}
	for (unsigned from = 0; from < n; from++) {
		for (unsigned to = 0; to < n; to++) {
			struct corq_spsc *r = (struct corq_spsc *)(void *)at;

			if (from == to)
				continue;
			corq_spsc_init(r, CORQ_HANDOFF_RING);
			cores[from]->hand_out[to] = cores[to]->hand_in[from] = r;
			at += corq_spsc_size(CORQ_HANDOFF_RING);
		}
	}
}

static inline unsigned
position_of(const struct corq_core *core)
{
	return core->cfg.index - core->cfg.group;
}

/* Did the owner of an epoch newer than e miss the tuple already? */
static bool
asked_before(const struct corq_owner *o, const struct corq_key *key, unsigned e, unsigned owner)
{
	while (e-- > 0)
		if (corq_owner_of(o, key, e) == owner)
			return true;
	return false;
}

int
corq_handoff_target(struct corq_core *core, const struct corq_key *key, struct corq_frame *frame)
{
	const struct corq_owner *o = &core->owner;
	unsigned us = position_of(core), present = corq_owner_of(o, key, 0);
	unsigned hops = frame->flags & CORQ_FRAME_HANDED ? frame->hops : 0;

	if (hops == 0 && us != present) {
		frame->hops = 1;
		return (int)present;
	}
	if (hops >= CORQ_HOP_LAST)
		return us == present ? CORQ_HANDOFF_OURS : CORQ_HANDOFF_DROP;
	for (unsigned e = CORQ_MAX(hops, 1u); e < o->n_epochs; e++) {
		unsigned owner = corq_owner_of(o, key, e);

		if (owner == us || asked_before(o, key, e, owner))
			continue;
		frame->hops = (uint8_t)(e + 1);
		return (int)owner;
	}
	if (us == present)
		return CORQ_HANDOFF_OURS;
	frame->hops = CORQ_HOP_LAST;
	return (int)present;
}

bool
corq_handoff_send(struct corq_core *core, unsigned position, struct corq_frame *frame)
{
	uint64_t word = (uintptr_t)frame;

	CORQ_ASSERT(position < core->cfg.n && core->hand_out[position] != NULL);
	frame->flags |= CORQ_FRAME_HANDED; /* before the push: after it the frame is not ours */
	if (CORQ_UNLIKELY(corq_spsc_push(core->hand_out[position], &word, 1) == 0)) {
		core->eng.stats.handoff_dropped++;
		return false;
	}
	core->eng.stats.handoff_out++;
	return true;
}

unsigned
corq_handoff_recv(struct corq_core *core, struct corq_frame **frames, unsigned max)
{
	unsigned n = core->cfg.n, got = 0, at = core->hand_next;
	uint64_t word[CORQ_BURST_MAX];

	if (n < 2) /* alone: no rings */
		return 0;
	for (unsigned i = 0; i < n && got < max; i++, at = at + 1 == n ? 0 : at + 1) {
		struct corq_spsc *r = core->hand_in[at];
		uint32_t take;

		if (!r)
			continue;
		take = corq_spsc_pop(r, word, CORQ_MIN(max - got, CORQ_BURST_MAX));
		for (uint32_t k = 0; k < take; k++)
			frames[got++] = (struct corq_frame *)(uintptr_t)word[k];
	}
	core->hand_next = core->hand_next + 1 == n ? 0 : core->hand_next + 1;
	core->eng.stats.handoff_in += got;
	return got;
}
