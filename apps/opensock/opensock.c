/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensock.c - `corq opensock`: the course of a run. Main thread; the threads that are measured are
 * the crew's, and stand still whenever this one does anything but wait for them.
 *
 * fill -> turns, of both sides alternately -> drain -> empty -> detach; counts of the instance are
 * taken between, and must be those of the threads.
 */
#include "common/app.h"
#include "opensock/limits.h"

#include <corq/instance.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

struct job {
	struct opensock_options opts;
	struct opensock_run run;
	struct opensock_figures f;
	struct app_json json;
	uint32_t handles; /* of the instance */
	FILE *out;        /* where text for people goes */
};

static bool
uses(const struct job *job, enum opensock_side side)
{
	return job->opts.use[side];
}

static void
step(struct job *job, enum opensock_side side, enum opensock_step what)
{
	job->run.side = side;
	opensock_crew_begin(&job->run.crew, (int)what);
	opensock_crew_await(&job->run.crew);
}

static void
step_all(struct job *job, enum opensock_step what)
{
	for (int side = 0; side < OPENSOCK_SIDES; side++)
		if (uses(job, (enum opensock_side)side))
			step(job, (enum opensock_side)side, what);
}

/* ---- before ---- */

static int
plan(struct job *job)
{
	struct opensock_side_figures *corq = &job->f.side[OPENSOCK_CORQ];
	uint64_t most = 0;
	int rc = APP_OK;

	if (uses(job, OPENSOCK_CORQ)) {
		corq->asked = corq->count = job->opts.count;
		job->handles = opensock_need(&job->opts, &most);
		if (job->handles == 0) {
			app_error("-n %" PRIu64 ": with -t %u it is at most %" PRIu64 ": a thread "
				  "has %u handles, an instance %u, and some are for the loop",
				job->opts.count, job->opts.threads, most, CORQ_THREAD_HANDLES,
				CORQ_MAX_HANDLES);
			return APP_USAGE;
		}
	}
	if (uses(job, OPENSOCK_KERNEL))
		rc = opensock_limit_kernel(&job->opts, &job->f.side[OPENSOCK_KERNEL]);
	if (rc == APP_OK)
		rc = opensock_limit_memory(&job->opts, &job->f, job->handles);
	return rc;
}

static int
start_instance(struct job *job)
{
	struct corq_config config = {.dev = "none", .max_handles = job->handles};
	char err[256] = "";

	if (corq_start(&config, &job->run.inst, err, sizeof(err)) == 0)
		return APP_OK;
	app_error("%s", err);
	return APP_FAILED;
}

/* What went wrong in the threads, as a line. */
static int
look(struct job *job, enum opensock_side side, const char *when)
{
	uint64_t opened = 0;
	int error = 0;

	for (uint32_t i = 0; i < job->opts.threads; i++) {
		const struct opensock_worker *w = &job->run.worker[i];

		opened += w->lot[side].opened;
		if (error == 0)
			error = w->error != 0 ? w->error : w->lot[side].error;
	}
	if (error == 0)
		return APP_OK;
	app_error("%s, %s: %s (%" PRIu64 " sockets were opened, %" PRIu64 " wanted)",
		opensock_side_name(side), when, strerror(error), opened, job->run.count[side]);
	return APP_FAILED;
}

/* Everybody's share is open. */
static int
fill(struct job *job)
{
	int64_t before;
	int rc = APP_OK;

	step(job, OPENSOCK_CORQ, OPENSOCK_TOUCH);
	rc = look(job, OPENSOCK_CORQ, "making room");
	if (rc == APP_OK && uses(job, OPENSOCK_CORQ)) {
		before = opensock_resident();
		rc = start_instance(job);
		if (rc != APP_OK)
			return rc;
		step(job, OPENSOCK_CORQ, OPENSOCK_FILL);
		job->f.resident = opensock_resident();
		if (before >= 0 && job->f.resident >= 0)
			job->f.resident -= before;
		corq_handle_counts(job->run.inst, &job->f.filled);
		rc = look(job, OPENSOCK_CORQ, "opening");
	}
	if (rc == APP_OK && uses(job, OPENSOCK_KERNEL)) {
		step(job, OPENSOCK_KERNEL, OPENSOCK_FILL);
		rc = look(job, OPENSOCK_KERNEL, "opening");
	}
	return rc;
}

/* ---- the loop ---- */

static void
nap(double seconds)
{
	struct timespec ts = {0, (long)(seconds * 1e9)};

	nanosleep(&ts, NULL);
}

/* Until the turn is over, or a signal. */
static void
wait_for_turn(struct opensock_run *run, double end)
{
	double left;

	while ((left = end - opensock_now()) > 0 && atomic_load(&run->going) != 0 &&
		app_signals() == 0)
		nap(left < 0.1 ? left : 0.1);
	opensock_end_turn(run);
}

static double
cycles_per_second(void)
{
	double start = opensock_now();
	uint64_t cycles = opensock_cycles();

	nap(0.02);
	return (double)(opensock_cycles() - cycles) / (opensock_now() - start);
}

static void
take_turn(struct job *job, enum opensock_side side, double seconds)
{
	struct opensock_side_figures *s = &job->f.side[side];
	struct opensock_turn *t = &s->turn[s->n_turns];
	struct opensock_run *run = &job->run;
	uint64_t before = 0, after = 0;
	double start;

	for (uint32_t i = 0; i < job->opts.threads; i++)
		before += run->worker[i].lot[side].pairs;
	run->side = side;
	atomic_store(&run->going, 1);
	run->deadline = opensock_cycles() + (uint64_t)(seconds * job->f.tsc_hz);
	start = opensock_now();
	opensock_crew_begin(&run->crew, OPENSOCK_TURN);
	wait_for_turn(run, start + seconds);
	opensock_crew_await(&run->crew);
	step(job, side, OPENSOCK_DRAIN);
	for (uint32_t i = 0; i < job->opts.threads; i++)
		after += run->worker[i].lot[side].pairs;
	t->seconds = run->ended - start;
	t->rate = (double)(after - before) / t->seconds;
	s->n_turns++;
}

static void
take_turns(struct job *job)
{
	double seconds = (double)job->opts.seconds / OPENSOCK_TURNS;

	job->f.tsc_hz = cycles_per_second();
	for (int i = 0; i < OPENSOCK_TURNS; i++) {
		for (int side = 0; side < OPENSOCK_SIDES; side++)
			if (uses(job, (enum opensock_side)side) && app_signals() == 0)
				take_turn(job, (enum opensock_side)side, seconds);
	}
}

/* ---- after ---- */

static void
count(const struct job *job, struct corq_handle_counts *out)
{
	if (job->run.inst != NULL)
		corq_handle_counts(job->run.inst, out);
}

static void
leave(struct job *job)
{
	count(job, &job->f.loop_end);
	step_all(job, OPENSOCK_EMPTY);
	count(job, &job->f.end);
	step(job, OPENSOCK_CORQ, OPENSOCK_LEAVE);
	count(job, &job->f.left);
	opensock_crew_end(&job->run.crew);
	if (job->run.inst != NULL)
		corq_end(job->run.inst);
}

/* Whose figures are the first two lines. */
static const struct opensock_side_figures *
first_side(const struct job *job)
{
	return &job->f.side[uses(job, OPENSOCK_CORQ) ? OPENSOCK_CORQ : OPENSOCK_KERNEL];
}

static int
judge(struct job *job)
{
	if (app_signals() != 0) {
		app_error("interrupted; the figures are of the time until then");
		return APP_FAILED;
	}
	if (job->f.adds_up)
		return APP_OK;
	for (int side = 0; side < OPENSOCK_SIDES; side++) {
		const struct opensock_side_figures *s = &job->f.side[side];

		if (s->not_opened + s->not_closed == 0)
			continue;
		app_error("%s: %" PRIu64 " sockets were not opened, %" PRIu64 " not closed: %s",
			opensock_side_name((enum opensock_side)side), s->not_opened, s->not_closed,
			strerror(s->error));
		return APP_FAILED;
	}
	app_error("handles do not add up: see corq_opened, corq_closed and corq_open_after");
	return APP_FAILED;
}

static int
measure(struct job *job)
{
	int rc;

	fprintf(job->out, "count=%" PRIu64 " (check/increase ulimit -n)\n", first_side(job)->count);
	app_flush();
	rc = fill(job);
	if (rc == APP_OK)
		take_turns(job);
	leave(job);
	if (rc != APP_OK)
		return rc;
	opensock_figures_add(&job->f, &job->run);
	fprintf(job->out, "total = %" PRIu64 "\n\n", first_side(job)->total);
	opensock_report(&job->f, job->out);
	return judge(job);
}

static int
run_crew(struct job *job)
{
	int rc;

	if (!opensock_workers_make(&job->run)) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	rc = opensock_crew_start(&job->run.crew, job->opts.threads, opensock_work, &job->run);
	if (rc != 0) {
		app_error(
			"-t %u: cannot start so many threads: %s", job->opts.threads, strerror(rc));
		rc = APP_FAILED;
	} else {
		rc = measure(job);
	}
	opensock_workers_free(&job->run);
	return rc;
}

static int
opensock_run(int argc, char **argv)
{
	static struct job job;
	int rc = opensock_options_parse(&job.opts, argc, argv);

	if (rc != 0)
		return rc > 0 ? rc : APP_OK;
	job.f.opts = job.run.opts = &job.opts;
	job.f.resident = -1;
	rc = plan(&job);
	if (rc == APP_OK)
		rc = app_json_open(&job.json, job.opts.json);
	if (rc != APP_OK)
		return rc;
	for (int side = 0; side < OPENSOCK_SIDES; side++)
		job.run.count[side] = job.f.side[side].count;
	job.out = app_json_text(&job.json);
	app_catch_signals(NULL);
	rc = run_crew(&job);
	if (job.json.out != NULL && first_side(&job)->n_turns != 0) {
		int json_rc;

		job.f.error = rc != APP_OK ? app_last_error() : NULL;
		json_rc = app_json_write(&job.json, opensock_json_make(&job.f, argc, argv));
		rc = rc != APP_OK ? rc : json_rc;
	}
	app_json_close(&job.json);
	return rc;
}

const struct app app_opensock = {
	.name = "opensock",
	.summary = "threads that open and close sockets, corq's and the kernel's",
	.run = opensock_run,
	.usage = opensock_usage,
};
