/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_idle.c - what an idle connection costs in memory: opens --slots connections over loop (1 M
 * unless told otherwise), waits until nothing is in flight, and divides.
 *
 * `bytes` a connection and end is what became resident while they were opened, and the connection's
 * share of the hash table, which is resident from the start (16 to 26 bytes an entry it has room
 * for; the program's own slots are resident then too, and not counted). `objects` are the pool
 * objects that idle connections hold, which must be none: chunks, blocks of bytes, work blocks,
 * transmission records, held frames.
 */
#include "drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_MS   300
#define TABLE_SHARE 26 /* the most: base/table.h */

struct idle {
	uint64_t resident; /* bytes before the first connection */
	uint64_t all_open_at;
};

static void
report(struct drive *d, uint64_t grown, uint64_t ends)
{
	struct corq_stats s;

	corq_stats(d->inst, &s);
	result_add(&d->results, "connections", (double)s.conn_live, "connections_live_both_ends");
	result_add(
		&d->results, "bytes", (double)grown / (double)ends, "bytes_per_connection_grown");
	result_add(&d->results, "bytes", (double)grown / (double)ends + TABLE_SHARE,
		"bytes_per_connection");
	result_add(&d->results, "objects", (double)s.used_chunks, "chunks");
	result_add(&d->results, "objects", (double)s.used_blocks, "byte_blocks");
	result_add(&d->results, "objects", (double)s.used_work, "work_blocks");
	result_add(&d->results, "objects", (double)s.used_txrec, "transmission_records");
	result_add(&d->results, "objects", (double)s.used_held_frames, "held_frames");
}

static int
step_idle(struct drive *d, uint64_t now_ns)
{
	struct idle *s = d->step_state;

	if (s->resident == 0)
		s->resident = drive_resident();
	if (drive_done(d) + drive_failures(d) < d->load.slots)
		return 0;
	if (s->all_open_at == 0)
		s->all_open_at = now_ns;
	if (now_ns - s->all_open_at < SETTLE_MS * 1000000ull)
		return 0;
	report(d, drive_resident() - s->resident, 2ull * d->load.slots);
	return 1;
}

int
main(int argc, char **argv)
{
	static struct idle state;
	static struct drive d = {.name = "idle",
		.load = {.kind = LOAD_IDLE, .slots = 1000000, .request = 100, .response = 100},
		.config = {.ip = "10.0.0.1-10.0.0.32/16",
			.max_conns = 1100000,
			.max_time_wait = 1024,
			.max_half_open = 65536,
			.max_fin_wait2 = 1024},
		.step = step_idle,
		.step_state = &state};

	return drive_main(&d, argc, argv);
}
