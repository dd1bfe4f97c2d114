/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world_end.c - the rules of the end of an execution: what is open is found, what was closed is
 * not, one closer won, the figures agree; and the lanes that are left can have every slot, which
 * shows that nothing was lost and that no summary hides a free for ever.
 *
 * Runs with all threads ended, by plain calls.
 */
#include "world_int.h"

#include <string.h>

static bool
is_usable(uint32_t t)
{
	return w.lane[t].m != NULL && !world_lane_gone(t);
}

/* Whoever died without a reclaimer is reclaimed now; twice, since a dead one may have been at
 * work on another. Returns the number of lanes that are left. */
static uint32_t
bury_all(void)
{
	uint32_t by = CORQ_NONE, n = 0;

	for (uint32_t t = 0; t < world_threads(); t++)
		if (is_usable(t)) {
			by = w.lane[t].id;
			n++;
		}
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t t = 0; t < world_threads(); t++)
			if (!is_usable(t) && (m_status_of(t) == M_DEAD || w.lane[t].m != NULL)) {
				corq_lane_died(&w.h, w.lane[t].id);
				corq_lane_reclaim(
					&w.h, w.lane[t].id, by == CORQ_NONE ? w.lane[t].id : by);
			}
	return n;
}

/* Number of handles that are open. */
static uint32_t
check_handles(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < W_HANDLES; i++) {
		const struct w_handle *x = &w.handle[i];
		bool gone = world_is_orphan(x), found;

		if (!world_exists(x))
			continue;
		found = corq_handle_lookup(&w.h, x->h, NULL) == 0;
		if (found && (x->wins != 0 || gone || (x->begun != 0 && !world_somebody_died())))
			m_violate("at the end: handle %u was closed, and is found", i);
		if (!found && x->begun == 0 && !gone)
			m_violate("at the end: handle %u is open, and is not found", i);
		if (x->begun != 0 && x->wins == 0 && !gone && !world_somebody_died())
			m_violate("at the end: nobody was told 0 for closing handle %u", i);
		n += found;
	}
	return n;
}

/* Free blocks: nobody's in all three places. */
static void
check_directory(void)
{
	uint64_t taken = corq_load_relaxed_u64(&w.h.taken[0]);
	uint32_t n_free = 0;

	for (uint32_t b = 0; b < w.h.n_blocks; b++) {
		bool lent = corq_load_relaxed_u32(&w.h.dir[b]) != 0;

		if (lent != (taken >> b & 1))
			m_violate("at the end: block %u is %s, and the bit map says otherwise", b,
				lent ? "lent" : "free");
		n_free += !lent;
	}
	if (corq_load_relaxed_u32(&w.h.head->n_free) < n_free)
		m_violate("at the end: more blocks are free than are counted");
	if (corq_load_relaxed_u32(&w.h.head->n_free) > n_free && !world_somebody_died())
		m_violate("at the end: %u blocks are free, %u are counted", n_free,
			corq_load_relaxed_u32(&w.h.head->n_free));
}

/* All lanes open what they can, by turns: one that starves asks another, which gives at its next
 * call. Returns how many came. */
static uint32_t
fill(void)
{
	uint32_t n = 0, dry = 0;
	corq_h got[W_SLOTS], h;

	while (dry < 4) {
		dry++;
		for (uint32_t t = 0; t < world_threads(); t++)
			while (is_usable(t) &&
				(h = corq_lane_alloc(&w.lane[t], W_HANDLES)) != CORQ_H_NONE) {
				if (n == w.h.n_slots)
					m_violate("at the end: more handles than slots");
				world_was_given(W_HANDLES, h);
				for (uint32_t k = 0; k < n; k++)
					if (corq_h_slot(got[k]) == corq_h_slot(h))
						m_violate("at the end: slot %u is given twice",
							corq_h_slot(h));
				got[n++] = h;
				dry = 0;
			}
	}
	return n;
}

static bool
has_limit(void)
{
	for (uint32_t t = 0; t < world_threads(); t++)
		if (is_usable(t) && corq_load_relaxed_u32(&w.lane[t].line->limit) < w.h.n_slots)
			return true;
	return false;
}

static void
end_turns(void)
{
	for (uint32_t t = 0; t < world_threads(); t++)
		if (is_usable(t))
			corq_lane_turn_end(&w.lane[t]);
}

static void
check_figures(uint32_t n_open, const char *when)
{
	struct corq_handles_counts c;

	corq_handles_count(&w.h, &c);
	if (c.open != n_open)
		m_violate("at the end%s: %u handles are open, %u are counted", when, n_open,
			(uint32_t)c.open);
}

void
world_end(void)
{
	uint32_t n_open, n, retired;

	if (bury_all() == 0 && !world_attach_spare())
		m_violate("at the end: no lane number is free");
	end_turns();
	n_open = check_handles();
	if (!world_somebody_ended()) /* a late free is not told from a good one until it is met */
		check_figures(n_open, "");
	if (!world_somebody_died()) /* what a dead thief left is found by an audit, in fill */
		check_directory();
	retired = corq_load_relaxed_u32(&w.h.head->n_retired);
	n = fill();
	if (!has_limit() && n + n_open + retired != w.h.n_slots)
		m_violate("at the end: of %u slots %u are open, %u retired, and %u could be had: "
			  "%d are lost",
			w.h.n_slots, n_open, retired, n, (int)(w.h.n_slots - n - n_open - retired));
	if (!world_somebody_died())
		check_figures(n_open + n, ", full");
	check_directory();
}
