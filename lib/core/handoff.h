/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handoff.h - frames that arrived on a core that does not own their tuple.
 *
 * Each core of a group has a ring to every other one (base/ring.h: one producer, one consumer, the
 * words are frame addresses); corq_handoff_bytes and _join in core.h make them. A frame belongs to
 * the core that took it last; the ring's release and acquire carry its contents over. A full ring
 * drops and counts: waiting for room could stop two cores for ever, and the peer's TCP repairs it.
 *
 * Way of a frame that misses: to the present owner; missed there, to the owners of earlier epochs,
 * newest first, a core that missed as an owner already not again; the last to miss hands it back to
 * the present owner, which answers (RST, or a listener's SYN-ACK). frame->hops says how far it is:
 * e + 1, it was sent to the owner of epoch e; CORQ_HOP_LAST, all were asked. It counts only with
 * CORQ_FRAME_HANDED, which ports clear on receive. Each send raises it, so no frame goes round for
 * ever, whatever the cores think of the epochs while those change.
 *
 * Functions are called on the core's own thread, in steps 3 and 4 of its turn.
 */
#ifndef CORQ_CORE_HANDOFF_H
#define CORQ_CORE_HANDOFF_H

#include "core/core.h"

#define CORQ_HANDOFF_RING 1024 /* frames in one ring */
#define CORQ_HOP_LAST     (CORQ_EPOCHS + 1)

/* corq_handoff_target: no core to send to. */
enum {
	CORQ_HANDOFF_OURS = -1, /* we are the present owner and have to answer */
	CORQ_HANDOFF_DROP = -2, /* all were asked and we are not the present owner: the epochs
				   changed on its way; the sender repeats it */
};

/* Which position of the group gets a frame that misses here, or CORQ_HANDOFF_*. Sets frame->hops.
 */
int corq_handoff_target(
	struct corq_core *core, const struct corq_key *key, struct corq_frame *frame);
/* True: the frame is that core's. False: its ring is full, counted; the frame is still ours. */
bool corq_handoff_send(struct corq_core *core, unsigned position, struct corq_frame *frame);
/* Up to max frames that others sent here, ring by ring, first another ring each time. */
unsigned corq_handoff_recv(struct corq_core *core, struct corq_frame **frames, unsigned max);

#endif
