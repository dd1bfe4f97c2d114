/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - formats a line and hands it to the sink, in the caller's thread. Keeps no state but what
 * the caller passes.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const level_names[] = {
	[CORQ_LOG_ERR] = "error",
	[CORQ_LOG_WARN] = "warning",
	[CORQ_LOG_INFO] = "info",
	[CORQ_LOG_DEBUG] = "debug",
};
_Static_assert(CORQ_ARRAY_LEN(level_names) == CORQ_LOG_LEVELS, "a name for every level");

const char *
corq_log_level_name(enum corq_log_level level)
{
	return (unsigned)level < CORQ_LOG_LEVELS ? level_names[level] : "?";
}

static bool
wanted(const struct corq_log *log, enum corq_log_level level)
{
	return log && log->fn && level <= log->level;
}

static void
write_line(const struct corq_log *log, enum corq_log_level level, uint64_t suppressed,
	const char *fmt, va_list ap)
{
	char line[CORQ_LOG_LINE];
	int len = vsnprintf(line, sizeof(line), fmt, ap);

	if (len < 0)
		len = 0;
	if (suppressed > 0 && (size_t)len < sizeof(line))
		snprintf(line + len, sizeof(line) - (size_t)len, " (%llu similar lines left out)",
			(unsigned long long)suppressed);
	log->fn(log->arg, level, line);
}

void
corq_log_write(const struct corq_log *log, enum corq_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!wanted(log, level))
		return;
	va_start(ap, fmt);
	write_line(log, level, 0, fmt, ap);
	va_end(ap);
}

bool
corq_log_limited(const struct corq_log *log, struct corq_log_limit *limit, uint64_t now_ns,
	enum corq_log_level level, const char *fmt, ...)
{
	uint64_t second = now_ns / CORQ_NS_PER_S, suppressed = limit->suppressed;
	va_list ap;

	if (!wanted(log, level))
		return false;
	if (second != limit->second) {
		limit->second = second;
		limit->n_out = 0;
	}
	if (limit->n_out >= limit->per_s) {
		limit->suppressed++;
		return false;
	}
	limit->n_out++;
	limit->suppressed = 0;
	va_start(ap, fmt);
	write_line(log, level, suppressed, fmt, ap);
	va_end(ap);
	return true;
}
