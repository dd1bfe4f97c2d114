/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.c - what a core counts, for its own thread and for others.
 *
 * The core counts in plain words that nobody else reads. At most every FIGURES_NS, and in the first
 * turn that has nothing to do, it copies them into words that any thread may read. So counting
 * costs what an increment costs, and a reader is at most that late; when the core stands still he
 * sees it all. Each word is whole; two words may be of different copies. Nothing is ordered by
 * them, so the accesses are relaxed.
 */
#include "base/atomic.h"
#include "core/core.h"

#define FIGURES_NS 1000000u

/* All words in a row: what other threads see of struct corq_stats, then the reasons. */
_Static_assert(sizeof(struct corq_stats) % sizeof(uint64_t) == 0, "words only");

void
corq_core_usage(struct corq_core *core, struct corq_stats *out)
{
	struct corq_engine *e = &core->eng;

	*out = e->stats;
	out->used_conns = corq_pool_used(&e->conns);
	out->used_work = corq_pool_used(&e->works);
	out->used_txrec = corq_pool_used(&e->txrecs);
	out->used_records = corq_pool_used(&e->records);
	out->used_chunks = corq_pool_used(&e->chunks.pool[CORQ_CHUNK_CLASS_PLAIN]);
	out->used_blocks = corq_pool_used(&e->chunks.pool[CORQ_CHUNK_CLASS_SMALL]) +
			   corq_pool_used(&e->chunks.pool[CORQ_CHUNK_CLASS_LARGE]);
	out->used_handles = corq_lane_used(e->lane);
	out->used_held_frames = e->chunks.n_held;
	out->used_tx_frames = core->n_tx + e->n_txf;
	out->ports_total = (uint64_t)e->ports.n * e->n_addrs;
	out->ports_used = e->ports.n_used;
	out->ports_waiting = e->ports.n_waiting;
	out->ports_recycled = e->ports.n_recycled;
	out->ports_refused = e->ports.n_refused;
	out->tx_full = core->port->n_tx_full;
	out->rx_missed = core->port->n_rx_missed;
	out->rx_nombuf = core->port->n_rx_nombuf;
}

void
corq_core_publish(struct corq_core *core)
{
	struct corq_stats now;
	uint64_t word[CORQ_STATS_WORDS];

	corq_core_usage(core, &now);
	memcpy(word, &now, sizeof(now));
	for (unsigned i = 0; i < CORQ_STATS_WORDS; i++)
		corq_store_relaxed_u64(&core->figures[i], word[i]);
	for (unsigned i = 0; i < CORQ_R_COUNT; i++)
		corq_store_relaxed_u64(&core->figures[CORQ_STATS_WORDS + i], core->eng.reasons[i]);
	core->figures_at = core->eng.now_ns;
	core->figures_old = false;
}

void
corq_core_publish_due(struct corq_core *core, bool busy)
{
	core->figures_old |= busy;
	if (core->eng.now_ns - core->figures_at >= FIGURES_NS || (core->figures_old && !busy))
		corq_core_publish(core);
}

void
corq_core_stats(const struct corq_core *core, struct corq_stats *out)
{
	uint64_t word[CORQ_STATS_WORDS];

	for (unsigned i = 0; i < CORQ_STATS_WORDS; i++)
		word[i] = corq_load_relaxed_u64(&core->figures[i]);
	memcpy(out, word, sizeof(*out));
}

uint64_t
corq_core_reason_count(const struct corq_core *core, unsigned i)
{
	return corq_load_relaxed_u64(&core->figures[CORQ_STATS_WORDS + i]);
}
