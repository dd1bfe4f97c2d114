/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - lines for people, handed to a sink of the caller.
 *
 * There is no global logger: who may log holds a `struct corq_log`. NULL, or one without a sink, is
 * silent. A line has no trailing newline and is cut at CORQ_LOG_LINE bytes. The sink runs in the
 * caller's thread, so one that several cores share must be thread-safe itself. Not for the data
 * path: what happens per packet is counted.
 *
 * What a peer can provoke is logged through a limit: so many lines a second of the caller's clock;
 * the first line that passes afterwards says how many were left out.
 */
#ifndef CORQ_BASE_LOG_H
#define CORQ_BASE_LOG_H

#include "base/base.h"

#define CORQ_LOG_LINE 512

enum corq_log_level {
	CORQ_LOG_ERR, /* something asked for cannot be done */
	CORQ_LOG_WARN,
	CORQ_LOG_INFO,
	CORQ_LOG_DEBUG,
	CORQ_LOG_LEVELS
};

struct corq_log {
	void (*fn)(void *arg, enum corq_log_level level, const char *line);
	void *arg;
	enum corq_log_level level; /* lines above it are dropped */
};

/* One per message source and thread. Zero but for per_s is a good start. */
struct corq_log_limit {
	uint64_t second;     /* the second that n_out counts */
	uint32_t per_s;      /* 0: nothing passes */
	uint32_t n_out;      /* lines in that second */
	uint64_t suppressed; /* lines left out since the last that passed */
};

/* "error", "warning", "info", "debug". */
const char *corq_log_level_name(enum corq_log_level level);

void corq_log_write(const struct corq_log *log, enum corq_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As corq_log_write, through limit; true when the line went out. */
bool corq_log_limited(const struct corq_log *log, struct corq_log_limit *limit, uint64_t now_ns,
	enum corq_log_level level, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
