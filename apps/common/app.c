/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app.c - error lines, number parsing and signals, see app.h. Main thread only.
 */
#include "common/app.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *app_name = "corq";
static volatile sig_atomic_t signal_count;
static void (*signal_stop)(int count);

void
app_set_name(const char *name)
{
	app_name = name;
}

void
app_error(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", app_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(stderr);
}

bool
app_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	unsigned long long value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || value < min || value > max)
		return false;
	*out = value;
	return true;
}

bool
app_option_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	if (app_parse_u64(text, min, max, out))
		return true;
	app_error("%s: '%s' is not a number from %llu to %llu", option, text,
		(unsigned long long)min, (unsigned long long)max);
	return false;
}

static void
on_signal(int number)
{
	(void)number;
	signal_count = signal_count + 1;
	if (signal_stop != NULL)
		signal_stop(signal_count);
}

void
app_catch_signals(void (*stop)(int count))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	signal_stop = stop;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int
app_signals(void)
{
	return signal_count;
}
