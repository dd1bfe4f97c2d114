/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app.h - what every subcommand of the binary `corq` shares: its entry, exit codes, error lines,
 * options, signals and the word that a core carries for the programs on it. Main thread only,
 * except app_core_of.
 */
#ifndef CORQ_APP_H
#define CORQ_APP_H

#include <corq/core.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifndef CORQ_VERSION
#define CORQ_VERSION "0"
#endif

enum {
	APP_OK = 0,
	APP_FAILED = 1, /* the run did not do what was asked */
	APP_USAGE = 2,  /* what was asked makes no sense */
};

struct app {
	const char *name;
	const char *summary;
	/* argv[0] is the subcommand's name; returns the exit code. */
	int (*run)(int argc, char **argv);
	void (*usage)(FILE *out);
};

extern const struct app app_ab;
extern const struct app app_httpd;
extern const struct app app_opensock;
extern const struct app app_closetest;

/* Sets the name in front of error lines ("corq ab"). */
void app_set_name(const char *name);
/* One line on stderr: "corq ab: ...". */
void app_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What app_error said last, without the name in front; NULL: nothing yet. */
const char *app_last_error(void);
/* Standard output is flushed; the first failure is kept for app_end. */
void app_flush(void);
/* The exit code of a program that is done: rc, or failed if its output could not be written. */
int app_end(int rc);

/* The whole of text as a decimal number within [min, max]. */
bool app_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* As above, with an error line that names the option. */
bool app_option_u64(
	const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
bool app_option_u32(
	const char *option, const char *text, uint32_t min, uint32_t max, uint32_t *out);
/* The place of text among n words, or -1 after an error line that names the option. */
int app_option_word(const char *option, const char *text, const char *const *words, int n);
/* getopt_long, but what it does not take has its error line and is '?'. */
int app_next_option(int argc, char **argv, const char *letters, const struct option *options);

/* What corq_core_user points to: one core may run a client and a server at once. */
struct ab_core;
struct httpd_core;
struct app_core {
	struct ab_core *ab;
	struct httpd_core *httpd;
};

static inline struct app_core *
app_core_of(const struct corq_core *core)
{
	return (struct app_core *)corq_core_user(core);
}

/*
 * SIGINT, SIGTERM and SIGHUP (unless it is ignored, as by nohup): `stop` (may be NULL) is called in
 * the handler, with the count of signals so far; app_signals() returns that count. Those within
 * 100 ms of one another are one (`timeout` sends its signal twice). SIGPIPE is ignored from here
 * on: a reader that goes away costs an error line, and no other file its figures.
 */
void app_catch_signals(void (*stop)(int count));
int app_signals(void);
/* In the handler: the program ends of the signal, as if it were not caught. */
void app_die(void);
/* First in main: descriptors 0 to 2 that are closed are occupied, so that no file that is opened
 * later gets what is meant for standard output; writing to them fails as before. */
void app_guard_streams(void);

#endif
