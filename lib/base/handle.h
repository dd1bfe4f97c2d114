/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle.h - handles: 64-bit names that cannot be mistaken for a later object's. Read this first;
 * handle_region.c, handle_lane.c, handle_remote.c, handle_lend.c and handle_end.c have the parts.
 *
 * A handle is a generation (38 bits) above a slot number (26 bits). Slots stand in blocks of 4096.
 * Blocks are lent to lanes, and a lane belongs to one thread, which allocates from its blocks with
 * plain loads and stores. Any thread closes any handle.
 *
 * Truth is the slot's word alone. It holds the present generation and whether the slot is live,
 * held back or retired. A live word changes by compare-and-swap only, so of any number of closers
 * one wins, and the winner frees; a word that is not live is changed by the slot's lane only.
 * Everything else says where to look, and a lane that was sent to a slot which is not free goes on
 * to the next: a wrong hint costs time or a slot, and never hands a slot out twice.
 *
 *   the lane's thread only (lane region)
 *     used[]         bit: slot is taken. By the directory's numbering, so a slot's number leads to
 *                    its word without a look at anything else. Set for a free slot: its free is
 *                    on the way (remote words, the cache), or was lost with a thread that
 *                    died: an audit finds it
 *     sum[k]         of the lane's block k: full bit w: word w of it has no zero; and which block
 *                    of the directory it is
 *     room[v], top   bit k: block has a slot left; bit v: room[v] != 0
 *     So the lowest free slot is four counts of trailing zeros away, with "lowest" by the lane's
 *     own numbering of its blocks, as of its last fold.
 *     fast[]         the cache: free slots that are marked in used[]. With `lowest` one at most, a
 *                    slot that was put below all that are free: the next take has it without the
 *                    maps. A drain of a block sends it back to them first
 *   everyone (global region)
 *     dir[block]         lane and number within the lane, or 0: free. Truth of lending: changed
 *                        from 0 by compare-and-swap, whose winner owns the block. Stale: the free
 *                        is announced to a lane that looks, finds a block that is not its own or no
 *                        bits, and goes on
 *     taken              bit: block is lent. Clear for a lent block: it is just being taken or
 *                        dropped, or a thread died there
 *     n_free             at least the number of clear bits of taken that the directory agrees with
 *     remote[block]      word[w] bit b: slot was freed by another thread; some bit w: word[w] has
 *                        bits. lane line: map[v] bit k: block k has `some`; mail bit v: map[v]
 *
 * Remote free (handle_remote.c). The winner of the close sets the slot's bit in word, and as long
 * as it is the one that found a level zero it announces that level in the next: some, map, mail.
 * The owner takes a level's announcement away BEFORE it looks below, so that a bit set behind its
 * back is announced again. Every step is a read-modify-write: the freer's fetch-or (R2) meets the
 * owner's exchange or fetch-and (A2) of the same word, and brings the level below and the close
 * with it. A set bit above nothing is harmless: the owner looks and goes on. Nothing above a set
 * bit is a lost announcement: it happens only when a thread dies between two steps; `epoch` tells
 * each lane that one died, and it audits before it says EMFILE. A block moves while a freer that
 * was served already is still on its way up. Hence the freer reads the directory AFTER it announced
 * in `some` (A3), and a lane that takes a block writes the directory first (R3), then drains the
 * block: whichever comes second sees the other.
 *
 * A block goes back when it is empty, with hysteresis: the lane looks when as many words became 0
 * as 32 and an eighth of its blocks have, and keeps some empty ones (1 and a sixteenth). It keeps
 * none when a starving lane asked (`wanted`).
 *
 * Folding is the owner's: at calls, at a core's turn, before it rests, at detach. A fold takes
 * lines from the freers and makes them announce again, so a call that finds mail puts it off, up to
 * CORQ_FOLD_CALLS times, and then folds CORQ_FOLD_BLOCKS blocks: a free by another costs its own
 * bit and a part of a fold. No free is stranded by that. The mail stays until the fold. A lane that
 * is out of room or at its limit folds everything before it takes a block or refuses. All other
 * slow paths, and the next call of a lane that was asked (`wanted`), fold at once. A thread that
 * stops calling without a rest keeps what was freed until it is asked and calls, as ever. What is
 * put off is `lowest`: it knows of frees by others up to CORQ_FOLD_CALLS calls late, more when they
 * are in more than CORQ_FOLD_BLOCKS blocks.
 *
 * A lane whose thread rests says so in its state word, and a starving lane may then fold for it:
 * state REST -> STEALING -> REST by compare-and-swap (A4), which meets the store of REST (R4) and
 * brings the lane's plain words with it; the owner comes back by REST -> RUN (A5 <-> R5, the
 * thief's store of REST), and waits while a thief is at work. The state of a dead lane goes DEAD ->
 * RECLAIM -> FREE; the reclaimer needs no word of the lane's region: it closes what is live in the
 * blocks that the directory gives to that lane.
 *
 * Ordering of a slot: open writes the members, then releases the word (R1); look-up acquires it
 * (A1 <-> R1) and finds the members of that generation or of a newer one.
 *
 * Trust. Both regions hold offsets and numbers, no pointer, so each process maps them where it
 * likes. What is read from a region that another domain writes is checked against this process's
 * own copy of the sizes. A scribbled lane region hurts its lane: it can only reach slots of blocks
 * that the directory gives it.
 *
 * Memory that is never used is never written. Regions must read as zero at init.
 *
 * Limits: 2^26 slots, 4096 blocks a lane (2^24 handles), CORQ_LANES_MAX lanes. The geometry is a
 * compile-time parameter: CORQ_WORD_SHIFT 1 gives words of 2 bits, blocks of 4 slots and lanes of 4
 * blocks, for proofs that walk all interleavings.
 */
#ifndef CORQ_BASE_HANDLE_H
#define CORQ_BASE_HANDLE_H

#include "base/atomic.h"

#include <corq/types.h>

#define CORQ_H_SLOT_BITS 26
#define CORQ_H_GEN_BITS  38
#define CORQ_H_GEN_LAST  ((1ull << CORQ_H_GEN_BITS) - 1)

#ifndef CORQ_WORD_SHIFT
#define CORQ_WORD_SHIFT 6
#endif
#ifndef CORQ_FAST_SLOTS
#define CORQ_FAST_SLOTS 128u /* the cache of order `fast`; `lowest` has one slot of it */
#endif
#ifndef CORQ_FOLD_CALLS
#define CORQ_FOLD_CALLS 256u /* calls that a fold is put off; perf/bench_handles --part cross */
#endif
#define CORQ_FOLD_BLOCKS 16u /* blocks that a fold at a call looks at */
#define CORQ_WORD_BITS   (1u << CORQ_WORD_SHIFT)
#define CORQ_WORD_ALL    (~0ull >> (64 - CORQ_WORD_BITS))
#define CORQ_BLOCK_SHIFT (2 * CORQ_WORD_SHIFT)
#define CORQ_BLOCK_SLOTS (1u << CORQ_BLOCK_SHIFT)
#define CORQ_LANE_BLOCKS (1u << CORQ_BLOCK_SHIFT)
#define CORQ_LANE_SLOTS  (CORQ_LANE_BLOCKS * CORQ_BLOCK_SLOTS) /* a lane's handles at most */
#define CORQ_BLOCKS_MAX  (1u << (CORQ_H_SLOT_BITS - CORQ_BLOCK_SHIFT))
#define CORQ_LANES_MAX   1024u

/* slot.word: generation in the bits where a handle has it; owner core in bits 1..16. */
#define CORQ_SLOT_LIVE       1ull
#define CORQ_SLOT_OWNER_BIT  1
#define CORQ_SLOT_OWNER_MASK 0xffffu      /* also: no core yet */
#define CORQ_SLOT_HELD       (1ull << 17) /* closed, handed out again after its core's turn */
#define CORQ_SLOT_RETIRED    (1ull << 18) /* its generations are spent */

struct corq_slot {
	_Atomic uint64_t word;
	_Atomic uint32_t ready; /* readiness bits of the object */
	_Atomic uint32_t conn;  /* its index on the owner core; without one: what corq_socket was
				   asked for; held: the link of the list of held slots */
};

_Static_assert(sizeof(struct corq_slot) == 16, "four slots a line");

/* ---- global region ---- */

/* Frees by other threads than the lane's. Written by all, drained by the lane. */
struct corq_remote {
	_Atomic uint64_t word[CORQ_WORD_BITS];
	CORQ_ALIGNED_LINE _Atomic uint64_t some;
} CORQ_ALIGNED_LINE;

enum corq_lane_state {
	CORQ_LANE_FREE,     /* nobody's; corq_lane_attach -> RUN */
	CORQ_LANE_RUN,      /* its thread calls; -> REST, FREE by it, DEAD by who knows its end */
	CORQ_LANE_REST,     /* its thread calls nothing; -> RUN by it, STEALING, DEAD */
	CORQ_LANE_STEALING, /* lane `by` folds for it; -> REST by `by` */
	CORQ_LANE_DEAD,     /* its thread ended; -> RECLAIM */
	CORQ_LANE_RECLAIM,  /* lane `by` closes what it left; -> FREE by `by` */
};
#define CORQ_LANE_STATE_BITS 8 /* above them: lane `by` + 1 */

/* What a lane and the others tell each other. */
struct corq_lane_line {
	/* the line that the lane polls; others write it when there is news */
	_Atomic uint64_t mail;   /* bit v: map[v] has bits; or look at wanted */
	_Atomic uint32_t wanted; /* a starving lane asks for empty blocks */
	_Atomic uint32_t state;
	_Atomic uint32_t spare; /* empty blocks of a resting lane: hint for a thief */

	/* figures: the lane writes (or a thief while it rests), all read */
	CORQ_ALIGNED_LINE _Atomic uint32_t left; /* handles it may still open: those that were
						    opened in it and have not come back count */
	_Atomic uint32_t n_blocks, n_held;
	_Atomic uint32_t limit;
	_Atomic uint64_t n_emfile, n_starved; /* refused; of those, while others had free slots */

	CORQ_ALIGNED_LINE _Atomic uint64_t map[CORQ_WORD_BITS];
} CORQ_ALIGNED_LINE;

/* First in the global region. Constant after init but for the last line. */
struct corq_handles_head {
	uint64_t magic;
	uint32_t version, word_shift;
	uint32_t n_slots, n_blocks, n_lanes, n_nodes;
	CORQ_ALIGNED_LINE _Atomic uint32_t n_free; /* blocks; never below the clear bits of taken */
	_Atomic uint32_t epoch;                    /* dead lanes reclaimed */
	_Atomic uint32_t n_retired;
};

/* One process's view of the global region: its own pointers, and its own copy of the sizes. */
struct corq_handles {
	struct corq_handles_head *head;
	_Atomic uint32_t *dir; /* lane + 1 above number within the lane; 0: free */
	_Atomic uint64_t *taken;
	struct corq_lane_line *line;
	struct corq_remote *remote;
	struct corq_slot *slot;
	uint32_t n_slots, n_blocks, n_lanes, n_nodes;
	_Atomic uint64_t lane_at[CORQ_LANES_MAX]; /* address here of a lane's region, or 0 */
};

/* ---- lane region ---- */

struct corq_block_sum {
	uint64_t full;
	uint32_t first;  /* its first word in used; counts if `mine` says that there is a block */
	uint32_t spoilt; /* some slots are taken for good: retired, or past the region's end */
};

/* Touched by the lane's thread alone, or by a thief while that rests. */
struct corq_lane_mem {
	uint64_t top;
	uint32_t patience; /* words that may become 0 before it looks for blocks to return */
	uint32_t n_fast;   /* slots in its cache; of order `lowest` one at most */
	uint32_t edge;     /* no slot below this place is free in the maps */
	uint32_t below; /* order `lowest`: a slot below this place is the lowest when it is put */
	uint64_t room[CORQ_WORD_BITS];
	uint32_t fast[CORQ_FAST_SLOTS];
	uint64_t mine[CORQ_WORD_BITS]; /* bit k: the lane has a block k */
	struct corq_block_sum sum[CORQ_LANE_BLOCKS];
	CORQ_ALIGNED_LINE uint64_t used[]; /* of all the region's blocks; touched for its own */
};

enum corq_lane_order {
	CORQ_LANE_LOWEST,
	CORQ_LANE_FAST,
	CORQ_LANE_RESTING /* in struct corq_lane: its next call wakes it */
};

/* A thread's own end of a lane: pointers of its process, and what only it needs. */
struct corq_lane {
	struct corq_lane_mem *m;
	struct corq_lane_line *line;
	struct corq_slot *slot;
	_Atomic uint32_t *dir;
	struct corq_handles *h;
	uint32_t n_words; /* of used */
	uint32_t id;
	uint32_t tag; /* what the directory holds for its blocks, number 0 */
	uint32_t
		order; /* while it rests, CORQ_LANE_RESTING: so no path finds it awake by mistake */
	uint32_t order_awake;
	uint32_t owner;   /* core that its slots name */
	uint32_t first;   /* block where it looks for free ones: its NUMA node's first */
	uint32_t epoch;   /* deaths that it audited for */
	uint32_t held;    /* list of slots closed in this turn */
	uint32_t put_off; /* calls with mail before it folds */
};

struct corq_lane_config {
	uint32_t limit; /* handles at most; 0: CORQ_LANE_SLOTS */
	enum corq_lane_order order;
	uint32_t owner; /* core, or CORQ_SLOT_OWNER_MASK */
	uint32_t node;  /* below n_nodes of the region */
};

/* ---- regions (handle_region.c); start and control side ---- */

/* Bytes of a global region. 0 when a number is 0 or above the limits. */
size_t corq_handles_size(uint32_t n_slots, uint32_t n_lanes);

/* mem: corq_handles_size() bytes that read as zero, aligned to a cache line. Blocks are dealt to
 * n_nodes NUMA nodes in equal contiguous parts. */
void corq_handles_init(
	struct corq_handles *h, void *mem, uint32_t n_slots, uint32_t n_lanes, uint32_t n_nodes);

/* Another view of a region that was made by corq_handles_init, mapped at mem. 0, or -EINVAL: not
 * one of this version and geometry, or longer than bytes. */
int corq_handles_map(struct corq_handles *h, void *mem, size_t bytes);

/* The memory of a NUMA node's part: slots and remote words. */
struct corq_handles_part {
	void *slots, *remote;
	size_t slots_bytes, remote_bytes;
};
struct corq_handles_part corq_handles_part_of(const struct corq_handles *h, uint32_t node);
uint32_t corq_handles_first_block(const struct corq_handles *h, uint32_t node);

/* ---- lanes; the lane's thread, except where it says otherwise ---- */

/* Bytes of a lane's region over n_slots slots: sparse, zero, aligned to a cache line. */
size_t corq_lane_size(uint32_t n_slots);

/* Takes a free lane number and begins to use m for it. 0, or -EUSERS: none is free. */
int corq_lane_attach(struct corq_lane *l, struct corq_handles *h, struct corq_lane_mem *m,
	const struct corq_lane_config *c);

/* Closes what the lane still has open, returns its blocks and its number; m is the caller's. */
void corq_lane_detach(struct corq_lane *l);

/* A free slot, live, naming conn: the lane's lowest, or any. CORQ_H_NONE: full (EMFILE). */
corq_h corq_lane_alloc(struct corq_lane *l, uint32_t conn);

/* Any lane's handle. 0, or -EBADF: closed before, never opened, or no handle at all. */
int corq_lane_close(struct corq_lane *l, corq_h h);

/* The lane's own handle (else -EBADF); handed out again after corq_lane_turn_end(). */
int corq_lane_close_deferred(struct corq_lane *l, corq_h h);
void corq_lane_turn_end(struct corq_lane *l);

/* This thread calls nothing for a while: others may take what is freed. A call that needs the lane
 * wakes it first. */
void corq_lane_rest(struct corq_lane *l);
void corq_lane_wake(struct corq_lane *l);

/* What alloc and close rest on, numbers alone, without limit: a slot's or CORQ_NONE; and back. */
uint32_t corq_lane_take(struct corq_lane *l);
void corq_lane_put(struct corq_lane *l, uint32_t slot);

/* Rebuilds the lane's maps from the slots' words. */
void corq_lane_audit(struct corq_lane *l);

/* ---- any thread ---- */

/* 0 and the slot's conn (may be NULL), or -EBADF. */
int corq_handle_lookup(const struct corq_handles *h, corq_h handle, uint32_t *conn);

/* The lane's thread is known to have ended. False: it is not in use, or a thief is just there. */
bool corq_lane_died(struct corq_handles *h, uint32_t id);

/* Takes back what dead lane id left; by: the caller's lane. False: it is not dead (any more). */
bool corq_lane_reclaim(struct corq_handles *h, uint32_t id, uint32_t by);

/* Each figure is exact when nobody allocates or closes. Reads a bit a handle. */
struct corq_handles_counts {
	uint64_t capacity;    /* handles that can be open at once: without retired slots */
	uint64_t open;        /* now */
	uint64_t stranded;    /* free, in blocks that are lent */
	uint64_t pending;     /* of those, freed by others and not folded */
	uint64_t retired;     /* slots */
	uint64_t blocks;      /* in all */
	uint64_t blocks_lent; /* of those */
	uint64_t lanes;       /* in use */
	uint64_t emfile;      /* times an allocation was refused, by lanes in use */
	uint64_t starved;     /* of those, while free slots were stranded in other lanes */
};
void corq_handles_count(const struct corq_handles *h, struct corq_handles_counts *out);

/* Handles of the lane that are open or held. Exact from its own thread if no other closes. */
static inline uint32_t
corq_lane_used(const struct corq_lane *l)
{
	return corq_load_relaxed_u32(&l->line->limit) - corq_load_relaxed_u32(&l->line->left);
}

static inline uint32_t
corq_h_slot(corq_h h)
{
	return (uint32_t)h & ((1u << CORQ_H_SLOT_BITS) - 1);
}

static inline uint64_t
corq_h_gen(corq_h h)
{
	return h >> CORQ_H_SLOT_BITS;
}

#endif
