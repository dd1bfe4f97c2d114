/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen.c - the generator of one core: the hook that opens connections, keeps the time and ends the
 * run. See gen.h. Runs on the core, but ab_core_create and ab_core_destroy.
 */
#include "ab/slot.h"
#include "common/cpu.h"

#include <corq/instance.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MS               1000000ull
#define HOOK_EVERY_NS    (10 * MS) /* signals and the time limit are seen within this */
#define STALE_MIN_NS     (20 * MS) /* a handshake is late when it takes 8 times the usual, */
#define STALE_FACTOR     8         /* and at least 20 ms */
#define OPEN_LIMIT_FIRST 32
#define OPEN_LIMIT_MIN   4
#define TAIL_WAIT_NS     (1000 * MS) /* for the peer's FIN after a complete response */
#define DRAIN_NS         (2000 * MS) /* for the last connections to close */
#define RETRY_NS         (1 * MS)    /* after connect found no port or no memory */
#define SHOW_NS          (180 * MS)  /* the bar moves five times a second */
#define CLOSING_MAX      512         /* of kept connections, so that none waits for its ACK */

void
ab_run_stop(struct ab_run *run, enum ab_stop why, int error)
{
	int running = AB_RUNNING;

	if (atomic_load_explicit(&run->stop, memory_order_relaxed) != AB_RUNNING)
		return;
	atomic_store(&run->stop_errno, error);
	atomic_compare_exchange_strong(&run->stop, &running, (int)why);
}

/* For the bar; it is drawn by another thread. */
static void
show(struct ab_core *ab, uint64_t now)
{
	uint64_t p99;

	if (now < ab->show_at)
		return;
	ab->show_at = now + SHOW_NS;
	p99 = corq_hist_percentile(&ab->lat[AB_LAT_TOTAL], 99);
	atomic_store_explicit(&ab->shown_p99, p99, memory_order_relaxed);
	atomic_store_explicit(&ab->shown_bad, ab->bad, memory_order_relaxed);
}

/* Handshakes that take too long are no longer what the peer can be asked to bear at once. */
static void
age_half_open(struct ab_core *ab, uint64_t now)
{
	uint64_t late = ab->connect_ewma * STALE_FACTOR;
	struct ab_slot *slot;

	late = late < STALE_MIN_NS ? STALE_MIN_NS : late;
	while ((slot = slot_first(ab, &ab->half_open)) != NULL && now >= slot->t_base + late) {
		slot_remove(ab, &ab->half_open, slot);
		slot->fresh = false;
		ab->fresh--;
		ab->stale++;
		if (now >= ab->last_shrink + late && ab->open_limit > OPEN_LIMIT_MIN) {
			ab->open_limit /= 2;
			ab->last_shrink = now;
		}
	}
}

static void
cannot_open(struct ab_core *ab, uint64_t now, int error)
{
	uint64_t wait = (uint64_t)ab->run->opts->timeout_s * 1000000000ull;

	if (error != -EADDRNOTAVAIL && error != -ENOBUFS && error != -EMFILE) {
		ab_run_stop(ab->run, AB_STOP_CONNECT, -error);
		return;
	}
	ab->retry_at = now + RETRY_NS;
	if (ab->ports_since == 0)
		ab->ports_since = now;
	else if (now >= ab->ports_since + wait && ab->live == 0)
		ab_run_stop(ab->run, AB_STOP_PORTS, -error);
}

static void
open_some(struct ab_core *ab, uint64_t now)
{
	uint32_t all = ab->run->opts->half_open_max;
	struct ab_slot *slot;
	int rc;

	if (now < ab->retry_at)
		return;
	if (ab->open_limit == 1 && ab->good + ab->bad != 0)
		ab->open_limit = all < OPEN_LIMIT_FIRST ? all : OPEN_LIMIT_FIRST;
	while ((slot = slot_first(ab, &ab->want)) != NULL && ab->fresh < ab->open_limit &&
		ab->fresh + ab->stale < all) {
		rc = slot_connect(ab, slot, now);
		if (rc != 0) {
			cannot_open(ab, now, rc);
			return;
		}
		ab->ports_since = 0;
	}
	if (ab->fresh + ab->stale > ab->half_open_peak)
		ab->half_open_peak = ab->fresh + ab->stale;
}

static void
serve_lists(struct ab_core *ab, uint64_t now)
{
	struct ab_slot *slot;

	for (uint32_t n = ab->resend.count; n > 0; n--) {
		slot = slot_first(ab, &ab->resend);
		slot_send(ab, slot, now);
		if (slot->state == SLOT_RESEND)
			break;
	}
	while ((slot = slot_first(ab, &ab->tail)) != NULL) {
		slot_remove(ab, &ab->tail, slot);
		slot->state = SLOT_LINGER;
		corq_conn_set_deadline(ab->core, slot->conn, now + TAIL_WAIT_NS);
	}
}

static void
look_at_ports(struct ab_core *ab, uint64_t now)
{
	struct corq_stats stats;
	double util;

	if (now < ab->port_look_at)
		return;
	ab->port_look_at = now + AB_BUCKET_NS;
	corq_core_stats(ab->core, &stats);
	if (stats.ports_total == 0)
		return;
	util = (double)(stats.ports_used + stats.ports_waiting) / (double)stats.ports_total;
	if (util > ab->port_util_peak)
		ab->port_util_peak = util;
}

/* A pause as the machine makes them: nothing runs on this core. */
static void
inject_pause(struct ab_core *ab, uint64_t now)
{
	uint32_t ms = ab->run->opts->pause_ms;
	struct timespec length = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000l};

	if (ms == 0 || ab->paused || ab->first_start == 0 ||
		now < ab->first_start + ab->run->opts->pause_at_s * 1000 * MS)
		return;
	ab->paused = true;
	ab->pause_from = now;
	ab->pause_to = now + ms * MS;
	nanosleep(&length, NULL);
	/* Time off, though no other program had it. */
	ab->off_ns += ms * MS;
	ab->last_turn += ms * MS;
}

static void
abort_all(struct ab_core *ab)
{
	ab->want = ab->half_open = ab->resend = ab->tail = (struct ab_list){0};
	for (uint32_t i = 0; i < ab->n_slots; i++)
		slot_abort(ab, &ab->slots[i]);
	ab->fresh = ab->stale = 0;
}

static void
close_kept(struct ab_core *ab)
{
	for (; ab->kept != 0 && ab->live - ab->kept < CLOSING_MAX; ab->kept_at++) {
		if (ab->slots[ab->kept_at].state == SLOT_KEPT)
			slot_close_kept(ab, &ab->slots[ab->kept_at]);
	}
}

/* As far as we stood in the run queue, others had the CPU. What the rest was is not known: a long
 * turn, a sleep that took longer, a driver that waits, a host that runs other guests. */
void
ab_core_gap_slow(struct ab_core *ab, uint64_t gap)
{
	int64_t before = ab->cpu_waited;
	uint64_t off;

	if (ab->cpu_time != 0)
		return; /* the run is over */
	ab->cpu_waited = app_cpu_waited(ab->cpu_fd);
	if (before < 0 || ab->cpu_waited < before)
		return;
	off = (uint64_t)(ab->cpu_waited - before);
	ab->off_ns += off < gap ? off : gap;
}

static void
stop_cpu_clock(struct ab_core *ab)
{
	ab->cpu_waited = app_cpu_waited(ab->cpu_fd);
	ab->cpu_time = corq_core_now(ab->core) - ab->cpu_from;
	if (ab->cpu_fd >= 0)
		close(ab->cpu_fd);
	ab->cpu_fd = -1;
}

/* No request is left: the connections end. Returns when to be called again. */
static uint64_t
finish(struct ab_core *ab, uint64_t now)
{
	if (ab->cpu_time == 0)
		stop_cpu_clock(ab);
	if (ab->kept != 0) {
		close_kept(ab);
		return now + MS;
	}
	if (ab->drain_until == 0 || ab->closed != ab->drain_seen) {
		ab->drain_seen = ab->closed;
		ab->drain_until = now + DRAIN_NS;
	}
	if (ab->live != 0 && now < ab->drain_until)
		return now + MS;
	ab->finished = true;
	if (atomic_fetch_add(&ab->run->finished, 1) + 1 == ab->run->generators)
		corq_stop(ab->run->inst);
	return now + HOOK_EVERY_NS;
}

/* The clocks start with the first turn that may ask for something. */
static void
start_clocks(struct ab_core *ab, uint64_t now)
{
	struct timespec wall;

	ab->last_turn = ab->last_rx = now;
	if (ab->run->opts->time_limit_s != 0)
		ab->time_limit_at = now + ab->run->opts->time_limit_s * 1000 * MS;
	clock_gettime(CLOCK_REALTIME, &wall);
	ab->wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - (int64_t)now;
	ab->cpu_from = now;
	ab->cpu_fd = app_cpu_open();
	ab->cpu_first = ab->cpu_waited = app_cpu_waited(ab->cpu_fd);
}

static uint64_t
hook(struct corq_core *core, void *arg, uint64_t now)
{
	struct ab_core *ab = arg;
	struct ab_run *run = ab->run;

	(void)core;
	if (ab->finished)
		return now + HOOK_EVERY_NS;
	if (atomic_load_explicit(&run->servers_ready, memory_order_acquire) < run->servers)
		return now + 100000;
	if (ab->last_turn == 0)
		start_clocks(ab, now);
	ab_core_tick(ab, now);
	if (ab->live > ab->live_peak)
		ab->live_peak = ab->live;
	look_at_ports(ab, now);
	inject_pause(ab, now);
	if (app_signals() != 0)
		ab_run_stop(run, AB_STOP_SIGNAL, 0);
	if (ab->time_limit_at != 0 && now >= ab->time_limit_at)
		ab_run_stop(run, AB_STOP_TIME, 0);
	if (atomic_load_explicit(&run->stop, memory_order_relaxed) != AB_RUNNING &&
		!ab->finishing) {
		ab->finishing = true;
		abort_all(ab);
	}
	if (run->bar)
		show(ab, now);
	if (ab->active == 0)
		return finish(ab, now);
	age_half_open(ab, now);
	serve_lists(ab, now);
	open_some(ab, now);
	return now + (ab->want.count != 0 ? MS : HOOK_EVERY_NS);
}

/* ---- before and after the run ---- */

static void *
reserve(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Taken from the kernel now, so that the run is not slowed by it and memory stays flat. */
static void
touch(void *p, size_t len)
{
	madvise(p, len & ~(size_t)4095, MADV_POPULATE_WRITE);
}

int
ab_core_create(struct ab_run *run, unsigned index, unsigned n, struct ab_core **out)
{
	const struct ab_options *opts = run->opts;
	uint64_t room = opts->exact_times / n;
	struct ab_core *ab = aligned_alloc(64, (sizeof(*ab) + 63) / 64 * 64);

	if (ab == NULL)
		return -ENOMEM;
	memset(ab, 0, sizeof(*ab));
	ab->run = run;
	ab->n_slots = opts->concurrency / n + (index < opts->concurrency % n);
	ab->quota = opts->requests / n + (index < opts->requests % n);
	ab->sample_room = ab->quota < room ? ab->quota : room;
	ab->open_limit = 1;
	ab->port_util_peak = -1;
	ab->slots = calloc(ab->n_slots + 1, sizeof(*ab->slots));
	ab->parsers = reserve((ab->n_slots + 1) * sizeof(*ab->parsers));
	ab->samples = reserve((ab->sample_room + 1) * sizeof(*ab->samples));
	if (opts->gnuplot != NULL) {
		ab->record_room = ab->quota < AB_RECORDS_MAX ? ab->quota : AB_RECORDS_MAX;
		ab->records = reserve((ab->record_room + 1) * sizeof(*ab->records));
	}
	ab->buckets = reserve(AB_BUCKETS * sizeof(*ab->buckets));
	ab_resp_core_init(&ab->resp, strcmp(ab_options_method(opts), "HEAD") == 0, opts->keepalive);
	for (int i = 0; i < AB_LATS; i++)
		corq_hist_init(&ab->lat[i]);
	*out = ab;
	if (ab->slots == NULL || ab->parsers == NULL || ab->samples == NULL ||
		ab->buckets == NULL || (opts->gnuplot != NULL && ab->records == NULL)) {
		ab_core_destroy(ab);
		*out = NULL;
		return -ENOMEM;
	}
	touch(ab->samples, ab->sample_room * sizeof(*ab->samples));
	return 0;
}

static void
release(void *p, size_t len)
{
	if (p != NULL)
		munmap(p, len);
}

void
ab_core_destroy(struct ab_core *ab)
{
	if (ab == NULL)
		return;
	release(ab->parsers, (ab->n_slots + 1) * sizeof(*ab->parsers));
	release(ab->samples, (ab->sample_room + 1) * sizeof(*ab->samples));
	release(ab->records, (ab->record_room + 1) * sizeof(*ab->records));
	release(ab->buckets, AB_BUCKETS * sizeof(*ab->buckets));
	free(ab->slots);
	free(ab);
}

uint64_t
ab_core_outstanding(const struct ab_core *ab)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < ab->n_slots; i++)
		n += ab->slots[i].counted;
	return n;
}

void
ab_core_start(struct ab_core *ab, struct corq_core *core)
{
	ab->core = core;
	ab->active = ab->n_slots;
	for (uint32_t i = 0; i < ab->n_slots; i++)
		slot_next(ab, &ab->slots[i]);
	corq_core_set_hook(core, hook, ab);
}
