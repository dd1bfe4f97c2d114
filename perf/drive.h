/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drive.h - a load on a corq instance over a real device, timed in windows: what bench_conn,
 * bench_stream and bench_idle share. Public headers only.
 *
 * On loop both ends run in this process, a core a side (client on side A); over memif one process
 * is the server and runs until SIGINT or SIGTERM, another the client. The client's first core keeps
 * time in its hook, once a turn: a warm-up, then --runs windows of --window-ms. Figures of a window
 * are differences of the cores' own counters.
 */
#ifndef CORQ_PERF_DRIVE_H
#define CORQ_PERF_DRIVE_H

#include "load.h"
#include "result.h"

#include <corq/instance.h>

#define DRIVE_CORES_MAX 64

enum drive_role {
	DRIVE_BOTH,
	DRIVE_CLIENT,
	DRIVE_SERVER
};

struct drive {
	const char *name; /* of the bench, first word of its measurements */
	struct load_opts load;
	struct corq_config config;
	enum drive_role role;
	const char *server; /* client role: address of the server */
	unsigned runs;
	uint64_t warm_ms, window_ms;
	uint64_t pause_ms; /* 0: none */
	bool pause_server;

	struct corq_instance *inst;
	struct load_client client[DRIVE_CORES_MAX];
	struct load_server servers[DRIVE_CORES_MAX];
	bool is_client[DRIVE_CORES_MAX];
	struct results results;
	bool stopping;
	uint64_t failures;                             /* until then */
	int (*step)(struct drive *d, uint64_t now_ns); /* the clock's work; non-zero: stop */
	void *step_state;
	void (*server_turn)(struct drive *d, struct corq_core *core); /* in each server's hook, or
									 NULL */
};

/* Options, start, run, report, end. step NULL: warm-up and windows. Returns the exit code. */
int drive_main(struct drive *d, int argc, char **argv);
/* Sums over the cores of one side. */
void drive_side_stats(const struct drive *d, bool client, struct corq_stats *out);
/* Requests, connections or bytes that the clients have done. */
uint64_t drive_done(const struct drive *d);
uint64_t drive_failures(const struct drive *d);
/* Resident bytes of this process. */
uint64_t drive_resident(void);

#endif
