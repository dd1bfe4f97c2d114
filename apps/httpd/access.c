/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access.c - see access.h. A ring has one writer, its core, and one reader, the log's thread:
 * `head` is the core's, `tail` the thread's, both only grow. R1 publishes records to A1, R2 gives
 * places back to A2.
 *
 * The file is written without blocking, as it may be a FIFO or a terminal: while nobody reads there
 * the thread waits and the rings fill, but the end of the server waits END_MS at most.
 */
#include "httpd/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RING_RECORDS 4096u
#define SLEEP_NS     20000000 /* of the thread, when all rings are empty */
#define BUFFER_BYTES 65536
#define POLL_MS      100
#define END_MS       2000

struct httpd_log_ring {
	_Alignas(64) _Atomic uint32_t head;
	uint64_t dropped; /* read when the core has ended */
	_Alignas(64) _Atomic uint32_t tail;
	struct httpd_log_record records[RING_RECORDS];
};

struct httpd_log {
	int fd, error;
	pthread_t thread;
	_Atomic bool stop;
	uint64_t lines, lost; /* written; not, because of error */
	int end_ms;           /* left of END_MS */
	unsigned cores;
	struct httpd_log_ring **rings;
	size_t used; /* of buffer */
	char buffer[BUFFER_BYTES];
};

/* ---- lines ---- */

static size_t
put_quoted(char *out, const char *text, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '\\';
		out[n++] = 'x';
		out[n++] = digits[c >> 4];
		out[n++] = digits[c & 15];
	}
	return n;
}

static void
put_address(const struct corq_addr *addr, char text[INET6_ADDRSTRLEN])
{
	bool v4 = addr->q[0] == 0 && addr->w[2] == htonl(0xffff);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? addr->b + 12 : addr->b, text, INET6_ADDRSTRLEN);
}

size_t
httpd_log_format(const struct httpd_log_record *record, char *out)
{
	static const char *const ends[] = {
		[HTTPD_END_KEPT] = "kept",
		[HTTPD_END_CLOSED] = "closed",
		[HTTPD_END_CUT] = "cut",
		[HTTPD_END_RESET] = "reset",
	};
	char address[INET6_ADDRSTRLEN] = "-", date[40], bytes[24] = "-";
	time_t seconds = (time_t)record->wall_s;
	struct tm tm;
	size_t n;

	_Static_assert(sizeof(ends) / sizeof(ends[0]) == HTTPD_ENDS, "a word an end");
	put_address(&record->addr, address);
	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%d/%b/%Y:%H:%M:%S +0000", &tm);
	if (record->body_bytes != 0)
		snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)record->body_bytes);
	n = (size_t)sprintf(out, "%s - - [%s] \"", address, date);
	n += put_quoted(out + n, record->line, record->line_len);
	n += (size_t)sprintf(
		out + n, "\" %u %s %u %s\n", record->status, bytes, record->us, ends[record->end]);
	return n;
}

/* ---- the core's side ---- */

void
httpd_log_push(struct httpd_log_ring *ring, const struct httpd_log_record *record)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	/* A2 <-> R2 */
	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) == RING_RECORDS) {
		ring->dropped++;
		return;
	}
	memcpy(&ring->records[head % RING_RECORDS], record,
		offsetof(struct httpd_log_record, line) + record->line_len);
	atomic_store_explicit(&ring->head, head + 1, memory_order_release); /* R1 */
}

/* ---- the thread's side ---- */

static uint64_t
count_lines(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

/* The file takes nothing now. 0: look again. */
static int
wait_for_reader(struct httpd_log *log)
{
	struct pollfd out = {.fd = log->fd, .events = POLLOUT};

	if (poll(&out, 1, POLL_MS) > 0 || !atomic_load_explicit(&log->stop, memory_order_acquire))
		return 0;
	log->end_ms -= POLL_MS;
	return log->end_ms > 0 ? 0 : ETIMEDOUT;
}

/* After the first error nothing is written any more; the rings are still emptied. */
static void
flush(struct httpd_log *log)
{
	size_t at = 0;

	while (at < log->used && log->error == 0) {
		ssize_t n = write(log->fd, log->buffer + at, log->used - at);

		if (n >= 0)
			at += (size_t)n;
		else if (errno == EAGAIN)
			log->error = wait_for_reader(log);
		else if (errno != EINTR)
			log->error = errno;
	}
	log->lines += count_lines(log->buffer, at);
	log->lost += count_lines(log->buffer + at, log->used - at);
	log->used = 0;
}

static bool
drain(struct httpd_log *log, struct httpd_log_ring *ring)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire); /* A1 <-> R1 */

	if (tail == head)
		return false;
	for (; tail != head; tail++) {
		if (BUFFER_BYTES - log->used < HTTPD_LOG_TEXT_MAX)
			flush(log);
		log->used += httpd_log_format(
			&ring->records[tail % RING_RECORDS], log->buffer + log->used);
		atomic_store_explicit(&ring->tail, tail + 1, memory_order_release); /* R2 */
	}
	return true;
}

static void *
run(void *arg)
{
	static const struct timespec nap = {0, SLEEP_NS};
	struct httpd_log *log = arg;
	bool stop, found;

	do {
		stop = atomic_load_explicit(&log->stop, memory_order_acquire);
		found = false;
		for (unsigned i = 0; i < log->cores; i++)
			found |= drain(log, log->rings[i]);
		flush(log);
		if (!found && !stop)
			nanosleep(&nap, NULL);
	} while (!stop || found);
	return NULL;
}

/* ---- start and end ---- */

static void
free_log(struct httpd_log *log)
{
	for (unsigned i = 0; log->rings != NULL && i < log->cores; i++)
		free(log->rings[i]);
	free(log->rings);
	if (log->fd >= 0)
		close(log->fd);
	free(log);
}

static int
make_rings(struct httpd_log *log, unsigned cores)
{
	log->rings = calloc(cores, sizeof(struct httpd_log_ring *));
	if (log->rings == NULL)
		return -ENOMEM;
	for (log->cores = 0; log->cores < cores; log->cores++) {
		struct httpd_log_ring *ring = aligned_alloc(64, sizeof(*ring));

		if (ring == NULL)
			return -ENOMEM;
		memset(ring, 0, sizeof(*ring));
		log->rings[log->cores] = ring;
	}
	return 0;
}

/* Signals are the main thread's: it waits for them. */
static int
start_thread(struct httpd_log *log)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&log->thread, NULL, run, log);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

int
httpd_log_start(const char *path, unsigned cores, struct httpd_log **out, char *err, size_t err_len)
{
	struct httpd_log *log = calloc(1, sizeof(*log));
	int rc = -ENOMEM;

	if (log == NULL) {
		snprintf(err, err_len, "not enough memory");
		return -ENOMEM;
	}
	log->end_ms = END_MS;
	log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
	if (log->fd < 0) {
		rc = -errno;
		snprintf(err, err_len, "--access-log: cannot write '%s': %s", path,
			rc == -ENXIO ? "nobody reads there; start the reader first"
				     : strerror(-rc));
		free_log(log);
		return rc;
	}
	rc = make_rings(log, cores);
	if (rc == 0)
		rc = start_thread(log);
	if (rc != 0) {
		snprintf(err, err_len, "--access-log: %s", strerror(-rc));
		free_log(log);
		return rc;
	}
	*out = log;
	return 0;
}

struct httpd_log_ring *
httpd_log_ring(struct httpd_log *log, unsigned core)
{
	return log->rings[core];
}

void
httpd_log_end(struct httpd_log *log, struct httpd_log_figures *figures)
{
	memset(figures, 0, sizeof(*figures));
	if (log == NULL)
		return;
	atomic_store_explicit(&log->stop, true, memory_order_release);
	pthread_join(log->thread, NULL);
	figures->lines = log->lines;
	figures->error = log->error;
	figures->dropped = log->lost;
	for (unsigned i = 0; i < log->cores; i++)
		figures->dropped += log->rings[i]->dropped;
	free_log(log);
}
