/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal_log.c - what DPDK prints, and why it failed: nothing of it reaches the user but one reason.
 *
 * DPDK's log goes to a small buffer (or, when verbose, to stderr). What EAL, getopt and libraries
 * below print by themselves goes to a file in memory while they run. The first error is the reason,
 * but getopt's complaint about EAL's arguments goes before.
 *
 * Main thread, but for the buffer, which DPDK writes from any thread.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_log.h>

#include "port/eal_int.h"

/* The first error is the cause, what follows are its consequences. A panic says first where. */
static void
keep_first(struct corq_eal *eal, const char *text, size_t len)
{
	size_t n = 0;

	pthread_mutex_lock(&eal->line_lock);
	if (eal->line[0] == '\0' || strncmp(eal->line, "PANIC in ", 9) == 0) {
		while (n < len && n < sizeof(eal->line) - 1 && text[n] != '\n' && text[n] != '\0')
			n++;
		memcpy(eal->line, text, n);
		eal->line[n] = '\0';
	}
	pthread_mutex_unlock(&eal->line_lock);
}

static ssize_t
keep_line(void *cookie, const char *text, size_t len)
{
	keep_first(cookie, text, len);
	return (ssize_t)len;
}

void
corq_eal_catch_log(struct corq_eal *eal)
{
	cookie_io_functions_t io = {.write = keep_line};

	eal->log_file = fopencookie(eal, "w", io);
	if (eal->log_file != NULL) {
		setvbuf(eal->log_file, NULL, _IOLBF, 0);
		rte_openlog_stream(eal->log_file);
	}
}

const char *
corq_eal_reason(struct corq_eal *eal, char *buf, size_t len)
{
	pthread_mutex_lock(&eal->line_lock);
	snprintf(buf, len, "%s", eal->line);
	eal->line[0] = '\0';
	pthread_mutex_unlock(&eal->line_lock);
	return buf;
}

/* Puts `to` in the place of file descriptor fd; returns a copy of the old one, or -1. */
static int
divert(int fd, int to)
{
	int saved = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (saved >= 0)
		dup2(to, fd);
	return saved;
}

static void
restore(int fd, int saved)
{
	if (saved >= 0) {
		dup2(saved, fd);
		close(saved);
	}
}

int
corq_eal_real_stderr(const struct corq_eal *eal)
{
	return eal->real_stderr;
}

void
corq_eal_quiet(struct corq_eal *eal, struct eal_quiet *q)
{
	q->sink = eal->verbose ? -1 : memfd_create("eal", MFD_CLOEXEC);
	if (q->sink < 0)
		return;
	fflush(stdout);
	q->out = divert(STDOUT_FILENO, q->sink);
	q->err = divert(STDERR_FILENO, q->sink);
}

void
corq_eal_loud(struct eal_quiet *q, char *text, size_t len)
{
	ssize_t n = 0;

	if (q->sink >= 0) {
		fflush(stdout);
		restore(STDOUT_FILENO, q->out);
		restore(STDERR_FILENO, q->err);
		if (len != 0)
			n = pread(q->sink, text, len - 1, 0);
		close(q->sink);
		q->sink = -1;
	}
	if (len != 0)
		text[n > 0 ? n : 0] = '\0';
}

/* getopt's own complaint, which names the argument; EAL's log then says only that one is wrong. */
static void
prefer_getopt(struct corq_eal *eal, const char *text)
{
	char later[EAL_LINE_LEN];

	text += strspn(text, "\n");
	if (strncmp(text, "corq: ", 6) == 0)
		corq_eal_reason(eal, later, sizeof(later));
	if (strncmp(text, "EAL: ", 5) != 0 && strncmp(text, "Usage:", 6) != 0)
		keep_first(eal, text, strlen(text));
}

/* EAL parses with getopt, whose complaint about an unknown option is all that there is then; the
 * program may have told getopt to be silent. */
int
corq_eal_init_quietly(struct corq_eal *eal, struct corq_eal_args *args)
{
	int rc, complain = opterr;
	char text[EAL_LINE_LEN];
	struct eal_quiet q;

	corq_eal_quiet(eal, &q);
	eal->real_stderr = q.sink >= 0 ? q.err : STDERR_FILENO;
	corq_limits_abort_begin(eal);
	opterr = 1;
	rc = rte_eal_init(args->argc, args->argv);
	opterr = complain;
	corq_limits_abort_end(rc < 0);
	corq_eal_loud(&q, text, sizeof(text));
	if (rc < 0)
		prefer_getopt(eal, text);
	return rc;
}
