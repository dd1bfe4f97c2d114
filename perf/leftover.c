/* SPDX-License-Identifier: BSD-3-Clause */
/* leftover.c - what the pools have out at the end, beside what they had at the start. */
#include "leftover.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void
leftover_list(const struct corq_stats *was, const struct corq_stats *is, struct leftover *out)
{
	const struct leftover all[LEFTOVER_KINDS] = {
		{"connections", was->conn_live, is->conn_live},
		{"pool_connections", was->used_conns, is->used_conns},
		{"records", was->used_records, is->used_records},
		{"time_wait", was->time_wait_live, is->time_wait_live},
		{"work_blocks", was->used_work, is->used_work},
		{"transmission_records", was->used_txrec, is->used_txrec},
		{"chunks", was->used_chunks, is->used_chunks},
		{"byte_blocks", was->used_blocks, is->used_blocks},
		{"held_frames", was->used_held_frames, is->used_held_frames},
		{"handles", was->used_handles, is->used_handles},
		{"ports", was->ports_used + was->ports_waiting, is->ports_used + is->ports_waiting},
	};

	memcpy(out, all, sizeof(all));
}

int
leftover_tell(const char *bench, const struct corq_stats *was, const struct corq_stats *is)
{
	struct leftover l[LEFTOVER_KINDS];
	int n = 0;

	leftover_list(was, is, l);
	for (unsigned i = 0; i < LEFTOVER_KINDS; i++) {
		if (l[i].is == l[i].was)
			continue;
		fprintf(stderr, "%s: %s: %" PRIu64 " out at the start, %" PRIu64 " at the end\n",
			bench, l[i].name, l[i].was, l[i].is);
		n++;
	}
	return n;
}
