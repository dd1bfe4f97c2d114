/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - explorer [--long] [--list] [--first] [--buffer STORES] [--max STATES] [SCENARIO ...]
 *
 * Walks the scenarios (all; without --long, or CORQ_LONG=1, those that are quick) and prints what
 * was visited. Exit: 0 no violation and nothing cut short, 1 otherwise, 2 wrong usage.
 */
#include "search.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct {
	bool is_long, list, first, failed;
	uint64_t max_states;
	unsigned violations;
	char *const *only;
	int n_only;
	const struct scenario *now;
} run = {.max_states = 20000000};

_Noreturn void
corq_assert_fail(const char *file, int line, const char *cond)
{
	m_violate("%s:%d: %s does not hold", file, line, cond);
}

/* The library's code went astray: which is a finding too. Ends the program, on a stack of its own.
 */
static void
on_signal(int sig)
{
	printf("VIOLATION in %s: %s\n", run.now->name,
		sig == SIGVTALRM ? "a thread runs on for ever" : "access to bad memory");
	fflush(stdout);
	_exit(1);
}

/* Every 5 s of own CPU time: has anything happened since? */
static void
on_clock(int sig)
{
	static uint64_t seen;

	if (seen == m_transitions && seen != 0)
		on_signal(sig);
	seen = m_transitions;
}

static void
watch(void)
{
	static uint8_t stack[65536];
	struct sigaction bad = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK},
			 clock = {.sa_handler = on_clock, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct itimerval every = {{5, 0}, {5, 0}};

	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
	sigaction(SIGSEGV, &bad, NULL);
	sigaction(SIGBUS, &bad, NULL);
	sigaction(SIGVTALRM, &clock, NULL);
	setitimer(ITIMER_VIRTUAL, &every, NULL);
}

static uint64_t
number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || v < least || v > most) {
		fprintf(stderr, "explorer: '%s': a number from %llu to %llu is needed\n", text,
			(unsigned long long)least, (unsigned long long)most);
		exit(2);
	}
	return v;
}

static const struct scenario *
find(const char *name)
{
	for (uint32_t i = 0; i < n_scenarios; i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	return NULL;
}

static void
read_arguments(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++)
		if (strcmp(argv[i], "--long") == 0)
			run.is_long = true;
		else if (strcmp(argv[i], "--list") == 0)
			run.list = true;
		else if (strcmp(argv[i], "--first") == 0)
			run.first = true;
		else if (strcmp(argv[i], "--buffer") == 0 && i + 1 < argc)
			m_buffer = (uint32_t)number(argv[++i], 1, M_BUFFER_MAX);
		else if (strcmp(argv[i], "--max") == 0 && i + 1 < argc)
			run.max_states = number(argv[++i], 1, 1u << 30);
		else {
			fprintf(stderr,
				"usage: explorer [--long] [--list] [--first] [--buffer STORES] "
				"[--max STATES] "
				"[SCENARIO ...]\n");
			exit(2);
		}
	run.only = argv + i;
	run.n_only = argc - i;
	for (int k = 0; k < run.n_only; k++)
		if (find(run.only[k]) == NULL) {
			fprintf(stderr, "explorer: no scenario '%s' (see --list)\n", run.only[k]);
			exit(2);
		}
}

static bool
is_wanted(const struct scenario *sc)
{
	for (int k = 0; k < run.n_only; k++)
		if (strcmp(run.only[k], sc->name) == 0)
			return true;
	return run.n_only == 0 && (run.is_long || !sc->only_long);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
explore(const struct scenario *sc, struct search_result *sum)
{
	struct search_result r;
	double began = seconds();

	run.now = sc;
	search_run(sc, run.max_states, &r);
	printf("%-22s %9.3g interleavings %9llu states %9llu transitions %4llu ends  depth %3u  "
	       "walks %2u  %5.1f s%s\n",
		sc->name, r.interleavings, (unsigned long long)r.states,
		(unsigned long long)r.transitions, (unsigned long long)r.ends, r.depth, r.walks,
		seconds() - began, r.violated ? "  VIOLATED" : (r.cut ? "  CUT SHORT" : ""));
	fflush(stdout);
	run.failed |= r.violated || r.cut;
	sum->interleavings += r.interleavings;
	sum->states += r.states;
	sum->transitions += r.transitions;
	run.violations += r.violated;
	sum->depth = CORQ_MAX(sum->depth, r.depth);
}

int
main(int argc, char **argv)
{
	struct search_result sum = {0};
	uint32_t n = 0;

	run.is_long = getenv("CORQ_LONG") != NULL;
	read_arguments(argc, argv);
	watch();
	for (uint32_t i = 0; i < n_scenarios; i++) {
		const struct scenario *sc = &scenarios[i];

		if (!is_wanted(sc) || (run.first && run.failed))
			continue;
		n++;
		if (run.list)
			printf("%-22s %s%s\n", sc->name, sc->about, sc->only_long ? " (long)" : "");
		else
			explore(sc, &sum);
	}
	if (!run.list)
		printf("%u scenarios, %.3g interleavings, %llu states, %llu transitions, depth %u, "
		       "buffers of %u stores: %u violations\n",
			n, sum.interleavings, (unsigned long long)sum.states,
			(unsigned long long)sum.transitions, sum.depth, m_buffer, run.violations);
	return run.failed;
}
