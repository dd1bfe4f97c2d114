/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach.c - threads come and go: attachments, their memory, and what an ended thread leaves.
 *
 * attach and detach run on the attachment's thread. A thread that ends without detach comes to
 * thread_ended() by its key's destructor: it marks the lane dead and frees the lane's region, which
 * no reclaimer reads; handles and blocks are taken back by the next thread that needs them.
 */
#include "ctl/instance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CORQ_MAX_THREADS == CORQ_LANES_MAX, "a lane an attachment");
_Static_assert(CORQ_THREAD_HANDLES == CORQ_LANE_SLOTS, "as many as a lane holds");
_Static_assert(CORQ_MAX_HANDLES == 1u << CORQ_H_SLOT_BITS, "as many as there are names");
_Static_assert((int)CORQ_ORDER_LOWEST == CORQ_LANE_LOWEST && (int)CORQ_ORDER_FAST == CORQ_LANE_FAST,
	"one vocabulary");

/* Who reclaims is named in the lane's state: this is not a lane. */
#define CONTROL CORQ_LANES_MAX

/* Off the list, and its memory is free. Under the lock. */
static void
forget(struct corq_att *att)
{
	struct corq_instance *inst = att->inst;

	if (att->prev)
		att->prev->next = att->next;
	else
		inst->att.all = att->next;
	if (att->next)
		att->next->prev = att->prev;
	inst->pf->free(&inst->m, att->mem, att->bytes);
	free(att);
}

static void
thread_ended(void *mine)
{
	struct corq_att *att = mine, *next;

	for (; att; att = next) {
		struct corq_instance *inst = att->inst;

		next = att->next_mine;
		corq_lane_wake(&att->lane); /* no thief is in the region, and none will be */
		corq_lane_died(&inst->att.handles, att->lane.id);
		pthread_mutex_lock(&inst->att.lock);
		forget(att);
		pthread_mutex_unlock(&inst->att.lock);
	}
}

static void
reclaim_dead(struct corq_instance *inst)
{
	struct corq_handles *h = &inst->att.handles;

	for (uint32_t id = 0; id < h->n_lanes; id++)
		if (corq_load_relaxed_u32(&h->line[id].state) == CORQ_LANE_DEAD)
			corq_lane_reclaim(h, id, CONTROL);
}

/* ---- start and end ---- */

static void
place_on_nodes(struct corq_instance *inst)
{
	struct corq_handles *h = &inst->att.handles;

	for (uint32_t node = 0; node < h->n_nodes && h->n_nodes > 1; node++) {
		struct corq_handles_part part = corq_handles_part_of(h, node);

		inst->pf->place(&inst->m, part.slots, part.slots_bytes, node);
		inst->pf->place(&inst->m, part.remote, part.remote_bytes, node);
	}
}

int
corq_attachments_start(struct corq_instance *inst, uint32_t max_handles, char *err, size_t err_len)
{
	struct corq_attachments *a = &inst->att;

	if (max_handles == 0)
		max_handles = CORQ_DEFAULT_HANDLES;
	a->bytes = corq_handles_size(max_handles, CORQ_LANES_MAX);
	if (a->bytes == 0) {
		snprintf(err, err_len, "max_handles %u: an instance has %u at most", max_handles,
			CORQ_MAX_HANDLES);
		return -EINVAL;
	}
	a->mem = inst->pf->alloc_on(&inst->m, 0, a->bytes, true);
	if (!a->mem) {
		snprintf(err, err_len,
			"too little memory: %u handles want %zu MiB; lower max_handles",
			max_handles, a->bytes >> 20);
		return -ENOMEM;
	}
	if (pthread_key_create(&a->key, thread_ended) != 0) {
		snprintf(err, err_len, "no thread key is left in this process");
		inst->pf->free(&inst->m, a->mem, a->bytes);
		a->mem = NULL;
		return -EAGAIN;
	}
	pthread_mutex_init(&a->lock, NULL);
	corq_handles_init(
		&a->handles, a->mem, max_handles, CORQ_LANES_MAX, inst->pf->nodes(&inst->m));
	place_on_nodes(inst);
	return 0;
}

void
corq_attachments_end(struct corq_instance *inst)
{
	struct corq_attachments *a = &inst->att;

	if (!a->mem)
		return;
	pthread_key_delete(a->key);
	while (a->all)
		forget(a->all);
	pthread_mutex_destroy(&a->lock);
	inst->pf->free(&inst->m, a->mem, a->bytes);
}

/* ---- attach and detach ---- */

static int
begin_lane(struct corq_att *att, const struct corq_attach_opts *opts, unsigned node)
{
	struct corq_handles *h = &att->inst->att.handles;
	struct corq_lane_config c = {.limit = opts->max_handles,
		.order = (enum corq_lane_order)opts->order,
		.owner = CORQ_SLOT_OWNER_MASK,
		.node = node};

	if (corq_lane_attach(&att->lane, h, att->mem, &c) == 0)
		return 0;
	reclaim_dead(att->inst);
	return corq_lane_attach(&att->lane, h, att->mem, &c);
}

static int
make_att(struct corq_instance *inst, const struct corq_attach_opts *opts, struct corq_att **out)
{
	unsigned node = inst->pf->node_here(&inst->m);
	struct corq_att *att = aligned_alloc(
		CORQ_CACHELINE, (sizeof(*att) + CORQ_CACHELINE - 1) & ~(CORQ_CACHELINE - 1ul));
	int rc = -ENOMEM;

	if (!att)
		return rc;
	memset(att, 0, sizeof(*att));
	att->inst = inst;
	att->bytes = corq_lane_size(inst->att.handles.n_slots);
	att->mem = inst->pf->alloc_on(&inst->m, node, att->bytes, false);
	if (att->mem)
		rc = begin_lane(att, opts, node);
	if (rc) {
		if (att->mem)
			inst->pf->free(&inst->m, att->mem, att->bytes);
		free(att);
		return rc;
	}
	*out = att;
	return 0;
}

int
corq_attach(struct corq_instance *inst, const struct corq_attach_opts *opts, struct corq_att **out)
{
	static const struct corq_attach_opts none = {0, CORQ_ORDER_LOWEST};
	struct corq_attachments *a = &inst->att;
	struct corq_att *att;
	int rc;

	if (!opts)
		opts = &none;
	if (opts->order > CORQ_ORDER_FAST || opts->max_handles > CORQ_THREAD_HANDLES)
		return -EINVAL;
	pthread_mutex_lock(&a->lock);
	rc = make_att(inst, opts, &att);
	if (rc == 0) {
		att->next = a->all;
		if (att->next)
			att->next->prev = att;
		a->all = att;
	}
	pthread_mutex_unlock(&a->lock);
	if (rc)
		return rc;
	att->next_mine = pthread_getspecific(a->key);
	if (pthread_setspecific(a->key, att) != 0) {
		corq_detach(att);
		return -ENOMEM;
	}
	*out = att;
	return 0;
}

void
corq_detach(struct corq_att *att)
{
	struct corq_attachments *a = &att->inst->att;
	struct corq_att *first = pthread_getspecific(a->key), **at = &first;

	while (*at && *at != att)
		at = &(*at)->next_mine;
	if (*at)
		*at = att->next_mine;
	pthread_setspecific(a->key, first);
	corq_lane_detach(&att->lane);
	pthread_mutex_lock(&a->lock);
	forget(att);
	pthread_mutex_unlock(&a->lock);
}

void
corq_thread_idle(struct corq_att *att)
{
	corq_lane_rest(&att->lane);
}

/* ---- figures ---- */

void
corq_handle_counts(struct corq_instance *inst, struct corq_handle_counts *out)
{
	struct corq_handles_counts c;

	reclaim_dead(inst);
	corq_handles_count(&inst->att.handles, &c);
	*out = (struct corq_handle_counts){.capacity = c.capacity,
		.open = c.open,
		.stranded = c.stranded,
		.pending = c.pending,
		.retired = c.retired,
		.blocks = c.blocks,
		.blocks_lent = c.blocks_lent,
		.threads = c.lanes,
		.emfile = c.emfile,
		.starved = c.starved};
}
