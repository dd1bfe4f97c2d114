/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress.c - what is seen on standard error while a run goes on: ab's line each tenth of the
 * requests, or on a terminal a bar that is redrawn at most five times a second and gone at the end.
 *
 * A thread of its own prints: a terminal that is stopped, or a slow pipe, must not stop a core. It
 * reads what the cores publish by relaxed atomics and sleeps on a condition that ab_progress_stop
 * signals. Start and stop: main thread.
 *
 * The 99th percentile is the highest of the cores', since each has its own histogram.
 */
#include "ab/progress.h"

#include "ab/gen.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LINES_EVERY_NS 20000000l  /* as good as at once, for one who reads */
#define BAR_EVERY_NS   200000000l /* five times a second */

struct ab_progress {
	struct ab_run *run;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop; /* under lock */
	struct timespec start;
	double last_seconds, rate;
	uint64_t last_done;
	uint64_t printed; /* lines up to here are out */
};

void
ab_progress_choose(struct ab_run *run)
{
	const struct ab_options *opts = run->opts;
	uint64_t n = opts->requests;
	const char *term = getenv("TERM");

	if (opts->quiet)
		return;
	run->bar = !opts->ab_strict && isatty(STDERR_FILENO) &&
		   (term == NULL || strcmp(term, "dumb") != 0);
	if (!run->bar && n > 150)
		run->heartbeat = n / 10 < 100 ? 100 : n / 10;
}

static uint64_t
sum_done(const struct ab_run *run)
{
	uint64_t done = 0;

	for (unsigned i = 0; i < run->generators; i++)
		done += __atomic_load_n(&run->cores[i]->done, __ATOMIC_RELAXED);
	return done;
}

static void
print_lines(struct ab_progress *p)
{
	uint64_t done = sum_done(p->run);

	while (p->printed + p->run->heartbeat <= done) {
		p->printed += p->run->heartbeat;
		fprintf(stderr, "Completed %llu requests\n", (unsigned long long)p->printed);
	}
}

static unsigned
columns_of_terminal(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		return 80;
	return size.ws_col;
}

static void
draw(struct ab_progress *p)
{
	const struct ab_run *run = p->run;
	struct ab_progress_view view = {
		.done = sum_done(run),
		.requests = run->opts->requests,
		.limit_s = run->opts->time_limit_s,
	};
	struct timespec now;
	char line[256];

	clock_gettime(CLOCK_MONOTONIC, &now);
	view.seconds = (double)(now.tv_sec - p->start.tv_sec) +
		       (double)(now.tv_nsec - p->start.tv_nsec) / 1e9;
	for (unsigned i = 0; i < run->generators; i++) {
		struct ab_core *ab = run->cores[i];
		uint64_t p99 = atomic_load_explicit(&ab->shown_p99, memory_order_relaxed);

		view.p99_ns = p99 > view.p99_ns ? p99 : view.p99_ns;
		view.failed += atomic_load_explicit(&ab->shown_bad, memory_order_relaxed);
	}
	/* Over the last second or so, so that it can be read. */
	if (view.seconds >= p->last_seconds + 1 || p->last_seconds == 0) {
		p->rate = (double)(view.done - p->last_done) / (view.seconds - p->last_seconds);
		p->last_done = view.done;
		p->last_seconds = view.seconds;
	}
	view.rate = p->rate;
	ab_progress_line(&view, columns_of_terminal() - 1, line, sizeof(line));
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
}

/* True when it is time to end. */
static bool
wait_for(struct ab_progress *p, long ns)
{
	struct timespec until;
	bool stop;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&p->lock);
	while (!p->stop && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&p->wake, &p->lock, &until);
	stop = p->stop;
	pthread_mutex_unlock(&p->lock);
	return stop;
}

static void *
progress_main(void *arg)
{
	struct ab_progress *p = arg;
	bool bar = p->run->bar;

	while (!wait_for(p, bar ? BAR_EVERY_NS : LINES_EVERY_NS)) {
		if (bar)
			draw(p);
		else
			print_lines(p);
	}
	if (bar)
		fputs("\r\033[K", stderr);
	else
		print_lines(p);
	fflush(stderr);
	return NULL;
}

struct ab_progress *
ab_progress_start(struct ab_run *run)
{
	struct ab_progress *p;
	pthread_condattr_t attr;

	if (!run->bar && run->heartbeat == 0)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return NULL;
	p->run = run;
	clock_gettime(CLOCK_MONOTONIC, &p->start);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&p->thread, NULL, progress_main, p) == 0)
		return p;
	free(p);
	return NULL;
}

void
ab_progress_stop(struct ab_progress *p)
{
	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
