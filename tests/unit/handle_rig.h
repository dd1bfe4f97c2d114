/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle_rig.h - a global region and lane regions for tests of handles, each in a memfd that is
 * mapped at two addresses: `h` and lane[i] live at one, `far` and what it reaches at the other.
 */
#ifndef HANDLE_RIG_H
#define HANDLE_RIG_H

#include "base/handle.h"
#include "base/rand.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RIG_LANES 16

struct rig_mem {
	void *near, *far;
	size_t size;
};

struct rig {
	struct corq_handles h, far;
	struct corq_lane lane[RIG_LANES];
	struct rig_mem global, region[RIG_LANES];
	uint32_t n_lanes;
};

static struct rig_mem
rig_map(size_t size)
{
	int fd = memfd_create("handles", 0);
	struct rig_mem m = {.size = size};

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	m.near = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	m.far = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(m.near != MAP_FAILED && m.far != MAP_FAILED && m.near != m.far);
	close(fd);
	return m;
}

static void
rig_unmap(struct rig_mem *m)
{
	if (m->near != NULL) {
		munmap(m->near, m->size);
		munmap(m->far, m->size);
	}
	memset(m, 0, sizeof(*m));
}

/* Lane i begins; odd lanes live at the other address of both regions. */
static void
rig_attach(struct rig *r, uint32_t i, struct corq_lane_config c)
{
	struct corq_handles *h = i % 2 ? &r->far : &r->h, *other = i % 2 ? &r->h : &r->far;
	struct corq_lane *l = &r->lane[i];

	rig_unmap(&r->region[i]);
	r->region[i] = rig_map(corq_lane_size(r->h.n_slots));
	assert_int_equal(
		corq_lane_attach(l, h, i % 2 ? r->region[i].far : r->region[i].near, &c), 0);
	corq_store_release_u64(
		&other->lane_at[l->id], (uintptr_t)(i % 2 ? r->region[i].near : r->region[i].far));
}

static void
rig_start(struct rig *r, uint32_t n_slots, uint32_t n_lanes, struct corq_lane_config c)
{
	memset(r, 0, sizeof(*r));
	r->n_lanes = n_lanes;
	assert_true(corq_handles_size(n_slots, n_lanes) != 0);
	r->global = rig_map(corq_handles_size(n_slots, n_lanes));
	corq_handles_init(&r->h, r->global.near, n_slots, n_lanes, 1);
	assert_int_equal(corq_handles_map(&r->far, r->global.far, r->global.size), 0);
	for (uint32_t i = 0; i < n_lanes; i++)
		rig_attach(r, i, c);
}

static void
rig_end(struct rig *r)
{
	for (uint32_t i = 0; i < r->n_lanes; i++)
		rig_unmap(&r->region[i]);
	rig_unmap(&r->global);
}

static struct corq_handles_counts
rig_count(const struct rig *r)
{
	struct corq_handles_counts c;

	corq_handles_count(&r->h, &c);
	return c;
}

#endif
