/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.c - the experiment over plain sockets: the baseline. The client is the main thread, the
 * server a thread that serves one connection after the other on 127.0.0.1. COUNT is what the kernel
 * says of this network namespace (/proc/net/sockstat), so TIME_WAITs of others are in it.
 */
#include "closetest/figures.h"
#include "common/addr.h"
#include "common/app.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG  128
#define BEHIND   64  /* connections; the client waits for the server, else its SYNs are dropped */
#define TW_BYTES 256 /* of tcp_timewait_sock on 64-bit Linux, when slabinfo is not to be read */

struct server {
	int fd;
	struct closetest_step step;
	_Atomic uint64_t served;
	_Atomic bool over; /* it accepts no more */
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t
count_time_wait(void)
{
	FILE *f = fopen("/proc/net/sockstat", "r");
	unsigned long long tw = 0;
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		const char *at = strstr(line, " tw ");

		if (strncmp(line, "TCP:", 4) == 0 && at != NULL)
			sscanf(at, " tw %llu", &tw);
	}
	if (f != NULL)
		fclose(f);
	return tw;
}

static void
ask_size(struct closetest_run *run)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	unsigned a, b, size;
	char line[256];

	run->record_bytes = TW_BYTES;
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "tw_sock_TCP %u %u %u", &a, &b, &size) == 3) {
			run->record_bytes = size;
			run->record_exact = true;
		}
	}
	if (f != NULL)
		fclose(f);
}

static void
close_by(int fd, enum corq_close_policy policy)
{
	struct linger reset = {.l_onoff = 1, .l_linger = 0};

	if (closetest_by_reset(policy))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}

static void *
serve(void *arg)
{
	struct server *server = arg;
	char byte;
	int fd;

	/* shutdown() of the listening socket ends it; for want of descriptors it tries again. */
	while ((fd = accept(server->fd, NULL, NULL)) >= 0 || errno == ECONNABORTED ||
		errno == EINTR || errno == EMFILE || errno == ENFILE) {
		if (fd < 0) {
			sched_yield();
			continue;
		}
		if (!closetest_at_accept(&server->step))
			(void)!read(fd, &byte, 1);
		close_by(fd, server->step.close);
		atomic_fetch_add(&server->served, 1);
	}
	atomic_store(&server->over, true);
	return NULL;
}

static int
listen_here(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd >= 0 && bind(fd, (struct sockaddr *)at, sizeof(*at)) == 0 &&
		listen(fd, BACKLOG) == 0 && getsockname(fd, (struct sockaddr *)at, &len) == 0)
		return fd;
	app_error("cannot listen on 127.0.0.1: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* 0, or a negative errno; what of the peer's end comes within the time is waited for. */
static int
wait_for_end(int fd, uint32_t seconds)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char byte;

	if (poll(&p, 1, (int)seconds * 1000) <= 0)
		return -EINPROGRESS;
	return read(fd, &byte, 1) < 0 ? -errno : 0;
}

static int
connect_within(int fd, const struct sockaddr_in *to, uint32_t seconds)
{
	/* SO_SNDTIMEO bounds connect(2) too; it says EINPROGRESS then. */
	struct timeval tv = {.tv_sec = (time_t)seconds};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0)
		return 0;
	return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
}

static int
one(struct closetest_run *run, struct closetest_stage *s, const struct sockaddr_in *to)
{
	uint64_t since = now_ns();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	s->tried++;
	rc = fd < 0 ? -errno : connect_within(fd, to, run->opts->timeout_s);
	if (rc == 0) {
		corq_hist_record(&s->connect, now_ns() - since);
		if (run->opts->plan.client == CORQ_CLOSE_AFTER_PEER)
			rc = wait_for_end(fd, run->opts->timeout_s);
		if (rc == -ECONNRESET) {
			s->reset_after++;
			rc = 0;
		}
	}
	if (fd >= 0)
		close_by(fd, run->opts->plan.client);
	if (rc == 0)
		s->good++;
	else
		closetest_count_failure(s, rc);
	return rc;
}

static void
run_blocks(struct closetest_run *run, struct closetest_stage *s, const struct server *server,
	const struct sockaddr_in *to)
{
	uint64_t in_a_row = 0, block, since, done;
	int rc = 0;

	while (s->tried < run->opts->connections && !s->cut_short && app_signals() == 0) {
		block = run->opts->connections - s->tried;
		block = block < run->opts->block ? block : run->opts->block;
		since = now_ns();
		for (done = 0; done < block && !s->cut_short && app_signals() == 0; done++) {
			rc = one(run, s, to);
			while (server->fd >= 0 && !atomic_load(&server->over) &&
				s->good > atomic_load(&server->served) + BEHIND &&
				app_signals() == 0)
				sched_yield();
			in_a_row = rc != 0 ? in_a_row + 1 : 0;
			s->cut_short = closetest_hopeless(s, in_a_row);
		}
		if (done != 0)
			closetest_block_lines(run, s, now_ns() - since, done, count_time_wait());
		if (s->cut_short)
			closetest_say_hopeless(s, rc);
	}
	run->interrupted |= app_signals() != 0;
}

static int
run_stage(struct closetest_run *run, struct closetest_stage *s, const struct sockaddr_in *outside)
{
	struct server server = {.fd = -1, .step = s->step};
	struct sockaddr_in to = *outside;
	char host[INET_ADDRSTRLEN];
	pthread_t thread;

	if (s->step.part != CLOSETEST_EXTERN) {
		server.fd = listen_here(&to);
		if (server.fd < 0)
			return APP_FAILED;
		if (pthread_create(&thread, NULL, serve, &server) != 0) {
			app_error("cannot start a thread");
			close(server.fd);
			return APP_FAILED;
		}
	}
	inet_ntop(AF_INET, &to.sin_addr, host, sizeof(host));
	snprintf(s->target, sizeof(s->target), "%s:%u", host, ntohs(to.sin_port));
	s->ran = true;
	s->tw_before = s->tw_now = count_time_wait();
	closetest_begin_lines(run, s);
	run_blocks(run, s, &server, &to);
	if (server.fd >= 0) {
		shutdown(server.fd, SHUT_RDWR);
		pthread_join(thread, NULL);
		close(server.fd);
	}
	return APP_OK;
}

static int
find_outside(const struct closetest_options *opts, struct sockaddr_in *to)
{
	struct corq_addr addr;
	const char *error;

	memset(to, 0, sizeof(*to));
	if (!opts->has_url)
		return APP_OK;
	error = app_addr_resolve(opts->url.host, &addr);
	if (error == NULL && !app_addr_is_v4(&addr))
		error = "no IPv4 address";
	if (error != NULL) {
		app_error("extern '%s': %s", opts->url_text, error);
		return APP_FAILED;
	}
	to->sin_family = AF_INET;
	to->sin_port = htons(opts->url.port);
	memcpy(&to->sin_addr, addr.b + 12, 4);
	return APP_OK;
}

int
closetest_run_kernel(struct closetest_run *run)
{
	struct sockaddr_in outside;
	int rc = find_outside(run->opts, &outside);

	ask_size(run);
	for (unsigned i = 0; i < run->n && rc == APP_OK && !run->interrupted; i++)
		rc = run_stage(run, &run->stage[i], &outside);
	return rc;
}
