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
#include "leftover.h"

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
report(struct drive *d)
{
	struct soak *s = d->step_state;
	struct leftover left[LEFTOVER_KINDS];
	struct corq_stats e;

	corq_stats(d->inst, &e);
	result_add(&d->results, "connections", (double)e.conn_established, "established_both_ends");
	result_add(&d->results, "KiB", (double)s->rss[FROM_TENTH], "resident_at_30_percent");
	result_add(&d->results, "KiB", (double)s->rss[TENTHS], "resident_at_100_percent");
	result_add(
		&d->results, "KiB", (double)s->rss[TENTHS] - (double)s->rss[FROM_TENTH], "grown");
	leftover_list(&s->start, &e, left);
	for (unsigned i = 0; i < LEFTOVER_KINDS; i++)
		result_add(&d->results, "objects", (double)left[i].is, "%s_out_at_the_end",
			left[i].name);
	s->not_back = leftover_tell("bench_soak", &s->start, &e) != 0;
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
