/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outcome.c - see outcome.h.
 */
#include "ab/outcome.h"

#include "ab/target.h"

#include <errno.h>
#include <string.h>

/* A hint that is worth more than the rest of the line: the other end's device is not there. */
static const char *
offload_hint(const struct ab_figures *f)
{
	return f->csum_partial != 0
		       ? "its TCP checksums are unfinished: turn its offloads off (ethtool -K IF "
			 "tx off)"
		       : "";
}

static const char *
connect_hint(int error)
{
	if (error == ECONNREFUSED)
		return ": nothing listens there";
	if (error == EHOSTUNREACH)
		return ": no host answers to this address; is it up, and on this link or behind "
		       "--gw?";
	if (error == ENETUNREACH)
		return ": it is not in the network of --ip and there is no --gw";
	return "";
}

static void
say_why(const struct ab_run *run, const struct ab_figures *f, int error, char *text, size_t len)
{
	bool no_way = error == EHOSTUNREACH || error == ENETUNREACH;
	char here[160];

	if (no_way && !app_device_is_loop(&run->opts->device) &&
		ab_target_is_here(run, here, sizeof(here)))
		snprintf(text, len, ": it is %s", here);
	else if (error == ETIMEDOUT && f->csum_partial != 0)
		snprintf(text, len, ": %s", offload_hint(f));
	else
		snprintf(text, len, "%s", connect_hint(error));
}

static void
explain_silence(const struct ab_run *run, const struct ab_figures *f, const char *endpoint)
{
	static const char expired[] = "apr_pollset_poll: The timeout specified has expired (70007)";
	const char *hint = offload_hint(f);

	if (*hint == '\0')
		hint = "is it up? (-s waits longer)";
	if (f->lat[AB_LAT_CONNECT].count == 0)
		app_error("%s: no connection to %s within %u s; %s", expired, endpoint,
			run->opts->timeout_s, hint);
	else
		app_error("%s: %s sent nothing for %u s, after %llu of %llu requests; %s", expired,
			endpoint, run->opts->timeout_s, (unsigned long long)f->good,
			(unsigned long long)run->opts->requests, hint);
}

int
ab_outcome_stopped(
	const struct ab_run *run, const struct ab_figures *f, const char *endpoint, FILE *text)
{
	int error = atomic_load(&run->stop_errno);
	char why[200];

	if (run->heartbeat == 0 && !run->bar)
		fputc('\n', text);
	switch (atomic_load(&run->stop)) {
	case AB_STOP_RECEIVE:
		app_error("apr_socket_recv: %s (%d): %s ended a connection before its response "
			  "was complete; -r goes on",
			strerror(error), error, endpoint);
		break;
	case AB_STOP_CONNECT:
		say_why(run, f, error, why, sizeof(why));
		app_error("apr_socket_recv: %s (%d): cannot connect to %s%s", strerror(error),
			error, endpoint, why);
		break;
	case AB_STOP_PORTS:
		app_error("no local port was free for %u s: %llu connects refused; widen --ip, or "
			  "let the server close first (--close after-peer)",
			run->opts->timeout_s, (unsigned long long)f->own.ports_refused);
		error = APP_FAILED;
		break;
	default:
		explain_silence(run, f, endpoint);
		error = 70007 & 255; /* APR's number, as the exit code of ab shows it */
		break;
	}
	/* As ab, but those that failed are not called completed. */
	if (f->good != 0)
		fprintf(text, "Total of %llu requests completed\n", (unsigned long long)f->good);
	return error > 0 && error < 256 ? error : APP_FAILED;
}

static int
interrupted(const struct ab_run *run, const struct ab_figures *f)
{
	app_error("interrupted after %llu of %llu requests; the report is of those",
		(unsigned long long)f->done, (unsigned long long)run->opts->requests);
	return APP_FAILED;
}

/* Resets and failed connects are what -r lets pass: they are in the report only, unless there was
 * nothing else. */
int
ab_outcome_judge(const struct ab_run *run, const struct ab_figures *f, const char *endpoint)
{
	const char *hint = offload_hint(f);

	if (atomic_load(&run->stop) == AB_STOP_SIGNAL)
		return interrupted(run, f);
	if (f->garbage != 0) {
		app_error("%llu of %llu responses were not HTTP; is %s a web server?",
			(unsigned long long)f->garbage, (unsigned long long)f->done, endpoint);
		return APP_FAILED;
	}
	if (f->cut_short != 0) {
		app_error("%llu of %llu responses were cut short: the server closed before the end "
			  "that it had announced",
			(unsigned long long)f->cut_short, (unsigned long long)f->done);
		return APP_FAILED;
	}
	if (f->timeouts == 0 && (f->bad_connect + f->bad_receive == 0 || f->good != 0))
		return APP_OK;
	app_error("%llu connects failed, %llu responses failed, %llu of both by timeout%s%s",
		(unsigned long long)f->bad_connect, (unsigned long long)f->bad_receive,
		(unsigned long long)f->timeouts, *hint != '\0' ? "; " : "", hint);
	return APP_FAILED;
}
