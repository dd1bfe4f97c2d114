/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_soak.c - many connections over loop, then silence: is memory flat, is everything back?
 *
 * --runs N is the number of connections in millions (10). Resident memory is taken after each tenth
 * of them; `grown` is what came on top between the third tenth and the last (the first ones fill
 * the TIME_WAIT records up to the number of tuples). Then nothing is opened any more, the records'
 * time passes (TIME_WAIT, 60 s), and what the pools have out is printed beside what they had at the
 * start. Exit status 1 when anything is not back.
 */
#include "drive.h"

#include <stdio.h>

#define TENTHS     10
#define FROM_TENTH 3
#define WAIT_MAX_S 150

struct soak {
	uint64_t total, next;
	unsigned tenth;
	uint64_t rss[TENTHS + 1];
	uint64_t stopped_at;
	struct corq_stats start;
	int started, not_back;
};

static void
compare(struct drive *d, const char *what, uint64_t was, uint64_t is)
{
	struct soak *s = d->step_state;

	result_add(&d->results, "objects", (double)is, "%s_out_at_the_end", what);
	if (is == was)
		return;
	fprintf(stderr, "bench_soak: %s: %llu out at the start, %llu at the end\n", what,
		(unsigned long long)was, (unsigned long long)is);
	s->not_back = 1;
}

static void
report(struct drive *d)
{
	struct soak *s = d->step_state;
	struct corq_stats e;

	corq_stats(d->inst, &e);
	result_add(&d->results, "connections", (double)e.conn_established, "established_both_ends");
	result_add(&d->results, "KiB", (double)s->rss[FROM_TENTH], "resident_at_30_percent");
	result_add(&d->results, "KiB", (double)s->rss[TENTHS], "resident_at_100_percent");
	result_add(
		&d->results, "KiB", (double)s->rss[TENTHS] - (double)s->rss[FROM_TENTH], "grown");
	compare(d, "connections", s->start.conn_live, e.conn_live);
	compare(d, "pool_connections", s->start.used_conns, e.used_conns);
	compare(d, "records", s->start.used_records, e.used_records);
	compare(d, "time_wait", s->start.time_wait_live, e.time_wait_live);
	compare(d, "work_blocks", s->start.used_work, e.used_work);
	compare(d, "transmission_records", s->start.used_txrec, e.used_txrec);
	compare(d, "chunks", s->start.used_chunks, e.used_chunks);
	compare(d, "byte_blocks", s->start.used_blocks, e.used_blocks);
	compare(d, "held_frames", s->start.used_held_frames, e.used_held_frames);
	compare(d, "handles", s->start.used_handles, e.used_handles);
	compare(d, "ports", s->start.ports_used + s->start.ports_waiting,
		e.ports_used + e.ports_waiting);
}

static bool
all_back(const struct drive *d)
{
	struct corq_stats e;

	corq_stats(d->inst, &e);
	return e.conn_live == 0 && e.used_records == 0 && e.used_handles == 0;
}

static void
stop_opening(struct drive *d, uint64_t now_ns)
{
	struct soak *s = d->step_state;

	s->stopped_at = now_ns;
	for (unsigned i = 0; i < DRIVE_CORES_MAX; i++)
		if (d->is_client[i])
			d->client[i].hold = true;
	fprintf(stderr, "bench_soak: %llu connections done; now the records' time\n",
		(unsigned long long)drive_done(d));
}

static int
step_soak(struct drive *d, uint64_t now_ns)
{
	struct soak *s = d->step_state;

	if (!s->started) {
		s->started = 1;
		s->total = d->runs * 1000000ull;
		corq_stats(d->inst, &s->start);
	}
	if (s->stopped_at) {
		if (!all_back(d) && now_ns - s->stopped_at < WAIT_MAX_S * 1000000000ull)
			return 0;
		report(d);
		return 1;
	}
	if (drive_done(d) + drive_failures(d) < s->next)
		return 0;
	s->rss[s->tenth] = drive_resident() / 1024;
	if (s->tenth == TENTHS) {
		stop_opening(d, now_ns);
		return 0;
	}
	s->next = s->total / TENTHS * ++s->tenth;
	return 0;
}

int
main(int argc, char **argv)
{
	static struct soak state;
	static struct drive d = {.name = "soak",
		.load = {.kind = LOAD_CONN, .slots = 256, .request = 100, .response = 100},
		.runs = 10,
		.step = step_soak,
		.step_state = &state};
	int rc = drive_main(&d, argc, argv);

	return rc ? rc : state.not_back;
}
