/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.c - counting of a stage and the lines that it prints while it runs. The thread that runs
 * the stage.
 */
#include "closetest/figures.h"
#include "common/app.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define HOPELESS_IN_A_ROW 10 /* failures that are not for want of a port */

static const char *const names[] = {
	[CLOSETEST_NO_PORT] = "no_port",
	[CLOSETEST_REFUSED] = "refused",
	[CLOSETEST_RESET] = "reset",
	[CLOSETEST_TIMEOUT] = "timeout",
	[CLOSETEST_NOT_CLOSED] = "not_closed_by_peer",
	[CLOSETEST_OTHER] = "other",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == CLOSETEST_FAILURES, "a name each");

const char *
closetest_failure_name(enum closetest_failure failure)
{
	return names[failure];
}

enum closetest_failure
closetest_failure_of(int error)
{
	switch (-error) {
	case EADDRNOTAVAIL:
		return CLOSETEST_NO_PORT;
	case ECONNREFUSED:
		return CLOSETEST_REFUSED;
	case ECONNRESET:
		return CLOSETEST_RESET;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return CLOSETEST_TIMEOUT;
	case EINPROGRESS:
		return CLOSETEST_NOT_CLOSED;
	default:
		return CLOSETEST_OTHER;
	}
}

uint64_t
closetest_failed(const struct closetest_stage *s)
{
	uint64_t all = 0;

	for (int i = 0; i < CLOSETEST_FAILURES; i++)
		all += s->failed[i];
	return all;
}

void
closetest_count_failure(struct closetest_stage *s, int error)
{
	enum closetest_failure f = closetest_failure_of(error);

	s->failed[f]++;
	if (f == CLOSETEST_NO_PORT && s->first_no_port == 0)
		s->first_no_port = s->tried;
}

bool
closetest_hopeless(const struct closetest_stage *s, uint64_t in_a_row)
{
	uint64_t bad = closetest_failed(s) - s->failed[CLOSETEST_NO_PORT];

	if (s->good == 0 && bad != 0)
		return true;
	return in_a_row >= HOPELESS_IN_A_ROW && bad >= HOPELESS_IN_A_ROW;
}

void
closetest_say_hopeless(const struct closetest_stage *s, int error)
{
	const char *why = error == -EINPROGRESS ? "it does not close the connection"
			  : error == -ETIMEDOUT ? "no answer"
						: strerror(-error);

	app_error("%s: %s %s: %s; this part ends here", closetest_part_name(s->step.part),
		s->target, s->good == 0 ? "cannot be reached" : "is not reached any more", why);
}

void
closetest_begin_lines(const struct closetest_run *run, const struct closetest_stage *s)
{
	char line[CLOSETEST_LINE];

	if (run->opts->quiet)
		return;
	closetest_heading(s->step.part, line);
	fprintf(run->out, "%s\n", line);
	fprintf(run->out, "# %s, server's close: %s, client's: %s\n", s->target,
		closetest_step_close(&s->step), closetest_policy_name(run->opts->plan.client));
}

/* For a terminal: how far a quiet run is. */
static void
show_progress(const struct closetest_run *run, const struct closetest_stage *s)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s %s: %" PRIu64 " of %" PRIu64 "%s",
		closetest_part_name(s->step.part), closetest_step_close(&s->step), s->tried,
		run->opts->connections, s->tried == run->opts->connections ? "\r\033[K" : "");
}

void
closetest_block_lines(struct closetest_run *run, struct closetest_stage *s, uint64_t ns,
	uint64_t connections, uint64_t time_wait)
{
	char line[CLOSETEST_LINE];

	s->net_ns += ns;
	s->tw_now = time_wait;
	s->tw_peak = time_wait > s->tw_peak ? time_wait : s->tw_peak;
	if (run->opts->quiet) {
		show_progress(run, s);
		return;
	}
	closetest_count_line(time_wait, line);
	fprintf(run->out, "%s\n", line);
	closetest_rate_line(ns, connections, line);
	fprintf(run->out, "%s\n", line);
}

uint64_t
closetest_bytes(const struct closetest_run *run, const struct closetest_stage *s)
{
	return s->tw_peak * (run->record_bytes + run->table_bytes);
}
