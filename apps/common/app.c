/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app.c - error lines, options and signals, see app.h. Main thread only.
 */
#include "common/app.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ONE_SIGNAL_MS 100

static const char *app_name = "corq";
static char last_error[512];
static int output_error;
static volatile sig_atomic_t signal_count, signal_number;
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

	app_flush();
	va_start(args, format);
	vsnprintf(last_error, sizeof(last_error), format, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", app_name, last_error);
	fflush(stderr);
}

const char *
app_last_error(void)
{
	return last_error[0] != '\0' ? last_error : NULL;
}

void
app_flush(void)
{
	errno = 0;
	if (fflush(stdout) != 0 && output_error == 0)
		output_error = errno;
}

int
app_end(int rc)
{
	int error;

	app_flush();
	error = output_error;
	if (error == 0 && !ferror(stdout))
		return rc;
	app_error("cannot write to standard output%s%s", error != 0 ? ": " : "",
		error != 0 ? strerror(error) : "");
	return rc != APP_OK ? rc : APP_FAILED;
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

bool
app_option_u32(const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t value;

	if (!app_option_u64(option, text, min, max, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

int
app_option_word(const char *option, const char *text, const char *const *words, int n)
{
	char all[128] = "";

	for (int i = 0; i < n; i++) {
		if (strcmp(text, words[i]) == 0)
			return i;
		strcat(strcat(all, i == 0 ? "" : ", "), words[i]);
	}
	app_error("%s: '%s' is none of %s", option, text, all);
	return -1;
}

int
app_next_option(int argc, char **argv, const char *letters, const struct option *options)
{
	const char *wrong = "there is no such option";
	int opt;

	opterr = 0;
	opt = getopt_long(argc, argv, letters, options, NULL);
	if (opt == ':')
		wrong = "its value is missing";
	else if (opt != '?')
		return opt;
	if (optopt > 0 && optopt < 256)
		app_error("-%c: %s (--help lists all)", optopt, wrong);
	else
		app_error("%s: %s (--help lists all)", argv[optind - 1], wrong);
	return '?';
}

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void
on_signal(int number)
{
	static uint64_t last_ms; /* the other signals are blocked meanwhile */
	uint64_t now = now_ms();

	signal_number = number;
	if (signal_count != 0 && now < last_ms + ONE_SIGNAL_MS)
		return;
	last_ms = now;
	signal_count = signal_count + 1;
	if (signal_stop != NULL)
		signal_stop(signal_count);
}

void
app_catch_signals(void (*stop)(int count))
{
	struct sigaction action, old;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaddset(&action.sa_mask, SIGINT);
	sigaddset(&action.sa_mask, SIGTERM);
	sigaddset(&action.sa_mask, SIGHUP);
	signal_stop = stop;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int
app_signals(void)
{
	return signal_count;
}

void
app_die(void)
{
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void
app_guard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
	}
}
