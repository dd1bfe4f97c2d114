/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.h - one slot of the closed loop, and the lists that slots stand in. Inside ab only, on
 * the core.
 *
 * States, what holds the slot, what is next:
 *   IDLE    nothing; stays (no request left to claim)
 *   WANT    list `want`; the hook connects: SYN
 *   SYN     list `half_open` while fresh; on_open: HEAD or RESEND; on_close: connect error
 *   RESEND  list `resend`: the request did not fit; the hook writes again: HEAD
 *   BUSY    waits for the response; on_data, on_peer_fin, on_close, on_timer
 *   TAIL    list `tail`: the response is there, the peer's FIN is not; the hook sets a deadline
 *   LINGER  as TAIL, deadline set
 *   KEPT    -k: no request is left to claim, the connection stays until all are done
 */
#ifndef CORQ_AB_SLOT_H
#define CORQ_AB_SLOT_H

#include "ab/gen.h"

enum ab_slot_state {
	SLOT_IDLE,
	SLOT_WANT,
	SLOT_SYN,
	SLOT_RESEND,
	SLOT_BUSY,
	SLOT_TAIL,
	SLOT_LINGER,
	SLOT_KEPT,
};

struct ab_slot {
	struct corq_conn *conn;
	uint64_t t_base; /* SYN: when it was sent; later: when the request was written */
	uint64_t t_last; /* last byte of the response; before the first: what is unacknowledged */
	uint32_t connect_us, wait_us;
	struct ab_resp resp;
	uint32_t prev, next; /* slot + 1 */
	uint32_t off_us;     /* off_ns / 1000 when the SYN, later the request, was sent */
	uint8_t state;
	bool fresh;   /* SYN: stands in half_open */
	bool got;     /* a byte of the response came */
	bool reused;  /* the connection carried a request before */
	bool counted; /* the request counts as started already */
};

_Static_assert(sizeof(struct ab_slot) <= 80, "a slot stays small");

static inline uint32_t
slot_ref(const struct ab_core *ab, const struct ab_slot *slot)
{
	return (uint32_t)(slot - ab->slots) + 1;
}

static inline void
slot_push(struct ab_core *ab, struct ab_list *list, struct ab_slot *slot)
{
	uint32_t ref = slot_ref(ab, slot);

	slot->next = 0;
	slot->prev = list->last;
	if (list->last != 0)
		ab->slots[list->last - 1].next = ref;
	else
		list->first = ref;
	list->last = ref;
	list->count++;
}

static inline void
slot_remove(struct ab_core *ab, struct ab_list *list, struct ab_slot *slot)
{
	if (slot->prev != 0)
		ab->slots[slot->prev - 1].next = slot->next;
	else
		list->first = slot->next;
	if (slot->next != 0)
		ab->slots[slot->next - 1].prev = slot->prev;
	else
		list->last = slot->prev;
	list->count--;
}

static inline struct ab_slot *
slot_first(const struct ab_core *ab, const struct ab_list *list)
{
	return list->first != 0 ? &ab->slots[list->first - 1] : NULL;
}

/* finish.c: the end of a request. */
/* It ended in order by the time `at`; its length is compared with the first one's. */
void slot_count_good(struct ab_core *ab, struct ab_slot *slot, uint64_t at);
/* It failed; kind points to the counter that tells how. */
void slot_count_bad(struct ab_core *ab, struct ab_slot *slot, uint64_t *kind);
/* Its connection was reset: Receive and Exceptions, as in ab, and Length if that is different. */
void slot_count_reset(struct ab_core *ab, struct ab_slot *slot);
/* The connection is on its own from here; `since` starts the clock of its close (0: none). */
void slot_let_go(struct ab_core *ab, struct ab_slot *slot, uint64_t since);
/* Ends the connection as --close says. */
void slot_close(struct ab_core *ab, struct ab_slot *slot);
/* Ends a connection whose response will not come. */
void slot_drop(struct ab_core *ab, struct ab_slot *slot);
/* The next request of the slot, or IDLE. */
void slot_next(struct ab_core *ab, struct ab_slot *slot);
/* The same for a connection that may carry it: the next request on it, or KEPT. True: go on. */
bool slot_keep(struct ab_core *ab, struct ab_slot *slot);
/* Closes the connection of KEPT. */
void slot_close_kept(struct ab_core *ab, struct ab_slot *slot);
/* The run is over before this request is. The slot stands in no list any more. */
void slot_abort(struct ab_core *ab, struct ab_slot *slot);

/* slot.c: the life of a request. */
/* 0, or corq_core_connect's error; the slot is in SYN, or still in WANT. */
int slot_connect(struct ab_core *ab, struct ab_slot *slot, uint64_t now);
/* Writes the request: BUSY, or RESEND if it does not fit now. */
void slot_send(struct ab_core *ab, struct ab_slot *slot, uint64_t now);

#endif
