/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_records.c - what a TIME_WAIT record costs as their number grows.
 *
 * The server closes first, so each connection over loop leaves a record at its core; nothing holds
 * the rate back. TIME_WAIT's length is chosen from the rate so that --live records (a list: 10 k,
 * 100 k, 1 M, 10 M) are there at a time, for --hold-ms (10 s). 400 source addresses have 26 M
 * tuples, so no tuple comes back while its record lives: every record expires.
 *
 * Measured by the server's core itself, in its hook, turn by turn: the cycles of the stage "timers"
 * and the records that expired in it. In this load nothing else is due there, so their quotient is
 * the cost of an expiry. Entering happens in the stage "input", together with the rest of a
 * connection's segments: its cycles a connection stand beside, and so do all cycles of the server's
 * turns. A turn longer than PAUSE cycles holds a pause of the machine: left out, and counted.
 *
 * A process has one instance, so each level runs in a child, which reports through a pipe. Internal
 * headers are read for the figures that are not public; the core's own thread reads them.
 */
#include "core/core.h"
#include "drive.h"
#include "leftover.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS           1000000ull
#define LEVELS_MAX   8
#define TRIES_MAX    3
#define OFF_BY       0.1 /* of the number wanted: then the time is chosen anew, but at the last try */
#define PAUSE        (1u << 20)
#define SETTLE_MS    300
#define RATE_MIN     1000.0
#define BACK_MAX_MS  5000
#define MARGIN       3 / 2 /* room for records over the number wanted: none is evicted */
#define MARGIN_FIXED 131072
#define OTHER_MEMORY (2048ull << 20) /* frames, connections, chunks of both sides */

/* What a child reports. */
struct level {
	uint32_t live, tw_ms;
	bool last; /* hold whatever number it is */
	bool held;
	int not_back;
	uint64_t live_min, live_max, live_sum, live_n; /* looked at once a millisecond */
	double rate;                                   /* connections/s */
	uint64_t expired, timer_cycles, expired_turn_max, timer_cycles_max, pauses;
	uint64_t input_cycles, busy_cycles, connections, evicted;
	uint64_t bytes; /* of the records touched, and of the table */
};

struct state {
	struct level l;
	uint64_t hold_ms;
	enum {
		FILL,
		SETTLE,
		HOLD,
		BACK
	} phase;
	uint64_t at, first, looked_at, done_at;
	struct corq_stats start;
	/* the server core's own, and read by the clock when the hold is over */
	_Atomic bool holding;
	uint64_t seen_expired, seen_entered, seen_rx;
};

/* On the server's core, once a turn, behind its timers: the stages up to there are of this turn,
 * the later ones of the one before, which comes to the same over many. */
static void
server_turn(struct drive *d, struct corq_core *core)
{
	struct state *s = d->step_state;
	const struct corq_stats *now = &core->eng.stats;
	uint64_t expired = now->tw_expired - s->seen_expired, cycles = 0;
	uint64_t entered = now->tw_entered - s->seen_entered;
	uint64_t rx = now->rx_packets - s->seen_rx;

	s->seen_expired += expired;
	s->seen_entered += entered;
	s->seen_rx += rx;
	if (!s->holding)
		return;
	for (unsigned i = 0; i < CORQ_ARRAY_LEN(core->stage); i++)
		cycles += core->stage[i];
	if (cycles > PAUSE) {
		s->l.pauses++;
		return;
	}
	s->l.connections += entered;
	if (rx || expired) {
		s->l.input_cycles += core->stage[1];
		s->l.busy_cycles += cycles;
	}
	if (expired) {
		s->l.expired += expired;
		s->l.timer_cycles += core->stage[2];
		s->l.expired_turn_max = CORQ_MAX(s->l.expired_turn_max, expired);
		s->l.timer_cycles_max = CORQ_MAX(s->l.timer_cycles_max, core->stage[2]);
	}
}

static struct corq_core *
server_core(const struct drive *d)
{
	unsigned i = 0;

	while (d->is_client[i])
		i++;
	return corq_core_at(d->inst, i);
}

static void
go(struct drive *d, struct state *s, int phase, uint64_t now)
{
	s->phase = phase;
	s->at = now;
	s->done_at = drive_done(d);
	s->l.live_min = UINT64_MAX;
	s->l.live_max = s->l.live_sum = s->l.live_n = 0;
}

static void
look_at_live(const struct drive *d, struct state *s)
{
	struct corq_stats now;

	drive_side_stats(d, false, &now);
	s->l.live_min = CORQ_MIN(s->l.live_min, now.time_wait_live);
	s->l.live_max = CORQ_MAX(s->l.live_max, now.time_wait_live);
	s->l.live_sum += now.time_wait_live;
	s->l.live_n++;
}

static double
live_mean(const struct level *l)
{
	return l->live_n ? (double)l->live_sum / (double)l->live_n : 0;
}

static void
end_hold(struct drive *d, struct state *s, uint64_t now)
{
	const struct corq_engine *e = &server_core(d)->eng;
	struct corq_stats b;

	drive_side_stats(d, false, &b);
	s->l.rate = (double)(drive_done(d) - s->done_at) * 1e9 / (double)(now - s->at);
	s->l.evicted = b.tw_evicted;
	s->l.bytes = (uint64_t)e->records.n_fresh * sizeof(struct corq_record) +
		     ((uint64_t)e->table.mask + 1) * sizeof(struct corq_table_bucket);
}

static void
stop_opening(struct drive *d)
{
	for (unsigned i = 0; i < DRIVE_CORES_MAX; i++)
		if (d->is_client[i])
			d->client[i].hold = true;
}

/* After a settled moment: is the number met? Else the parent chooses the time anew. */
static int
judge(struct drive *d, struct state *s, uint64_t now)
{
	double mean = live_mean(&s->l);

	s->l.rate = (double)drive_done(d) * 1e9 / (double)(now - s->first);
	s->l.held =
		s->l.last || (mean > s->l.live * (1 - OFF_BY) && mean < s->l.live * (1 + OFF_BY));
	if (!s->l.held)
		return 1;
	go(d, s, HOLD, now);
	s->holding = true;
	return 0;
}

static int
wait_until_back(struct drive *d, struct state *s, uint64_t now)
{
	struct corq_stats e;

	corq_stats(d->inst, &e);
	if ((e.conn_live || e.used_records || e.used_handles) &&
		now - s->at < (s->l.tw_ms + BACK_MAX_MS) * MS)
		return 0;
	s->l.not_back = leftover_tell("bench_records", &s->start, &e);
	return 1;
}

static int
step_records(struct drive *d, uint64_t now)
{
	struct state *s = d->step_state;

	if (s->at == 0) {
		corq_stats(d->inst, &s->start);
		s->at = s->first = now;
	}
	if (now - s->looked_at < MS)
		return 0;
	s->looked_at = now;
	if (s->phase == SETTLE || s->phase == HOLD)
		look_at_live(d, s);
	switch (s->phase) {
	case FILL: /* a while longer: the first ones have expired by then */
		if (now - s->at >= (s->l.tw_ms + s->l.tw_ms / 8 + SETTLE_MS) * MS)
			go(d, s, SETTLE, now);
		return 0;
	case SETTLE:
		return now - s->at < SETTLE_MS * MS ? 0 : judge(d, s, now);
	case HOLD:
		if (now - s->at < s->hold_ms * MS)
			return 0;
		s->holding = false;
		end_hold(d, s, now);
		stop_opening(d);
		s->phase = BACK;
		s->at = now;
		return 0;
	case BACK:
		return wait_until_back(d, s, now);
	}
	return 1;
}

/* ---- children ---- */

/* In the child: never returns. */
_Noreturn static void
child(int fd, struct level *l, uint64_t hold_ms, int argc, char **argv)
{
	static struct state state;
	static struct drive d = {.name = "records",
		.load = {.kind = LOAD_CONN, .slots = 512, .request = 100, .response = 100},
		.config = {.ip = "10.0.0.2-10.0.1.145/16",
			.peer_ip = "10.0.2.1/16",
			.timewait = CORQ_TW_LAB},
		.runs = 1,
		.step = step_records,
		.server_turn = server_turn,
		.step_state = &state};
	int rc;

	state.l = *l;
	state.hold_ms = hold_ms;
	d.config.tw_time_ms = l->tw_ms;
	d.config.max_time_wait = l->live * MARGIN + MARGIN_FIXED;
	rc = drive_main(&d, argc, argv);
	if (write(fd, &state.l, sizeof(state.l)) != sizeof(state.l))
		rc = 1;
	exit(rc);
}

/* One try at a level, with l->tw_ms. */
static bool
try_level(struct level *l, uint64_t hold_ms, int argc, char **argv)
{
	int fds[2], status;
	bool got;
	pid_t pid;

	fflush(NULL);
	if (pipe(fds) != 0 || (pid = fork()) < 0) {
		fprintf(stderr, "bench_records: no child process: %s\n", strerror(errno));
		return false;
	}
	if (pid == 0)
		child(fds[1], l, hold_ms, argc, argv);
	close(fds[1]);
	got = read(fds[0], l, sizeof(*l)) == sizeof(*l);
	close(fds[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return false;
	return got;
}

/* The time that gives the number at this rate. A machine too busy for a thousand connections a
 * second says nothing about the next try. */
static uint32_t
time_for(uint32_t live, double rate)
{
	double ms = live * 1000.0 / CORQ_MAX(rate, RATE_MIN);

	return ms < 1 ? 1 : (uint32_t)(ms + 0.5);
}

static bool
run_level(struct level *l, double rate, uint64_t hold_ms, int argc, char **argv)
{
	uint32_t live = l->live;

	for (unsigned i = 1; i <= TRIES_MAX; i++) {
		*l = (struct level){
			.live = live, .tw_ms = time_for(live, rate), .last = i == TRIES_MAX};
		if (!try_level(l, hold_ms, argc, argv))
			return false;
		if (l->held && l->expired)
			return true;
		if (l->held)
			break;
		rate = l->rate;
		fprintf(stderr,
			"bench_records: %" PRIu32 " records wanted, %.0f there with %" PRIu32
			" ms: once more, for %.0f connections/s\n",
			live, live_mean(l), l->tw_ms, rate);
	}
	fprintf(stderr,
		"bench_records: the rate changes too much to hold %" PRIu32 " records: something "
		"else runs on these CPUs\n",
		live);
	return false;
}

/* ---- report ---- */

static void
report(struct results *r, const struct level *l)
{
	double mean = live_mean(l), conns = (double)l->connections;
	uint32_t n = l->live;

	result_add(r, "records", mean, "%" PRIu32 ".live", n);
	result_add(r, "records", (double)l->live_min, "%" PRIu32 ".live_min", n);
	result_add(r, "records", (double)l->live_max, "%" PRIu32 ".live_max", n);
	result_add(r, "ms", l->tw_ms, "%" PRIu32 ".tw_time", n);
	result_add(r, "1/s", l->rate, "%" PRIu32 ".connections_per_second", n);
	result_add(r, "bytes", (double)l->bytes / mean, "%" PRIu32 ".bytes_per_record", n);
	result_add(r, "records", (double)l->expired_turn_max, "%" PRIu32 ".expired_a_turn_max", n);
	result_add(r, "cycles", (double)l->timer_cycles_max, "%" PRIu32 ".expiry_a_turn_max", n);
	result_add(r, "cycles", (double)l->timer_cycles / (double)l->expired,
		"%" PRIu32 ".expiry_per_record", n);
	result_add(r, "cycles", (double)l->input_cycles / conns, "%" PRIu32 ".input_per_connection",
		n);
	result_add(r, "cycles", (double)l->busy_cycles / conns, "%" PRIu32 ".cycles_per_connection",
		n);
	result_add(r, "turns", (double)l->pauses, "%" PRIu32 ".pauses", n);
	result_add(r, "records", (double)l->evicted, "%" PRIu32 ".evicted", n);
	result_add(r, "kinds", l->not_back, "%" PRIu32 ".not_back", n);
}

/* Largest over smallest of a figure, over the levels. */
static double
flatness(struct results *r, const struct level *l, unsigned n, const char *figure)
{
	double min = 0, max = 0;
	char name[64];

	for (unsigned i = 0; i < n; i++) {
		double v;

		snprintf(name, sizeof(name), "%" PRIu32 ".%s", l[i].live, figure);
		v = result_median(result_find(r, name));
		min = i == 0 || v < min ? v : min;
		max = i == 0 || v > max ? v : max;
	}
	result_add(r, "max/min", max / min, "flat.%s", figure);
	return max / min;
}

/* ---- options ---- */

static unsigned
take_levels(struct level *l, char *text)
{
	unsigned n = 0;

	for (char *w = strtok(text, ","); w; w = strtok(NULL, ",")) {
		if (n == LEVELS_MAX) {
			fprintf(stderr, "--live: %u numbers at most\n", LEVELS_MAX);
			exit(2);
		}
		l[n++].live = (uint32_t)result_number("live", w, 1000, 20000000);
	}
	return n;
}

/* Takes our own options out of argv; the rest is drive.c's. Returns how many arguments are left. */
static int
own_options(int argc, char **argv, struct level *l, unsigned *n, uint64_t *hold_ms)
{
	int left = 1;

	for (int i = 1; i < argc; i++) {
		if (i + 1 < argc && strcmp(argv[i], "--live") == 0)
			*n = take_levels(l, argv[++i]);
		else if (i + 1 < argc && strcmp(argv[i], "--hold-ms") == 0)
			*hold_ms = result_number("hold-ms", argv[++i], 10, 3600000);
		else
			argv[left++] = argv[i];
	}
	argv[left] = NULL;
	return left;
}

/* Both sides have room for the table; one side fills its records. */
static bool
memory_is_enough(const struct level *l, unsigned n)
{
	unsigned long long kib = 0, want = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemAvailable: %llu", &kib) != 1)
		;
	if (f)
		fclose(f);
	for (unsigned i = 0; i < n; i++)
		want = CORQ_MAX(want,
			((unsigned long long)l[i].live * MARGIN + MARGIN_FIXED) * (64 + 2 * 26ull));
	want = (want + OTHER_MEMORY) >> 10;
	if (kib == 0 || kib >= want)
		return true;
	fprintf(stderr,
		"bench_records: %llu MiB of memory are wanted, %llu are available: lower --live\n",
		want >> 10, kib >> 10);
	return false;
}

int
main(int argc, char **argv)
{
	struct level l[LEVELS_MAX] = {
		{.live = 10000}, {.live = 100000}, {.live = 1000000}, {.live = 10000000}};
	unsigned n = 4;
	uint64_t hold_ms = 10000;
	double rate = 500000; /* a first guess; the first level finds out */
	static struct results r;
	int not_back = 0;

	argc = own_options(argc, argv, l, &n, &hold_ms);
	if (n == 0 || !memory_is_enough(l, n))
		return n == 0 ? 2 : 1;
	for (unsigned i = 0; i < n; i++) {
		if (!run_level(&l[i], rate, hold_ms, argc, argv))
			return 1;
		rate = l[i].rate;
		not_back += l[i].not_back;
		report(&r, &l[i]);
	}
	fprintf(stderr, "bench_records: over %u levels", n);
	fprintf(stderr, ": expiry a record flat within %.2f",
		flatness(&r, l, n, "expiry_per_record"));
	fprintf(stderr, ", input a connection within %.2f",
		flatness(&r, l, n, "input_per_connection"));
	fprintf(stderr, ", all of a connection within %.2f\n",
		flatness(&r, l, n, "cycles_per_connection"));
	result_print(&r, "records");
	return not_back != 0;
}
