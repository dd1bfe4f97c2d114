/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.c - the simulator's command line: one seed or many, and what is printed when one fails.
 *
 * A seed that fails runs a second time, the same to the last frame, with its packets kept: the
 * capture is written as sim-SEED.pcap into the current directory, and the command that repeats the
 * run is printed. An assertion of the library is a failure like any other: SIGABRT is caught, and
 * the world it happened in is left as it is.
 */
#include "sim.h"

#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PCAP_PACKETS 20000

static sigjmp_buf after_abort; /* the handler knows nothing else */

static void
on_abort(int sig)
{
	(void)sig;
	siglongjmp(after_abort, 1);
}

static void
usage(FILE *out)
{
	fputs("usage: sim [options]\n"
	      "  --seed N          one run (default 1)\n"
	      "  --seeds A-B       runs of all these seeds\n"
	      "  --loss LO[-HI]    percent of packets lost, drawn by each seed (default 0-10)\n"
	      "  --reorder LO[-HI] percent late (0-10)\n"
	      "  --dup LO[-HI]     percent doubled (0-2)\n"
	      "  --corrupt LO[-HI] percent with a flipped bit (0-2)\n"
	      "  --delay-us LO[-HI], --rate-mbps LO[-HI]  of each direction (default: by seed)\n"
	      "  --conns N         connections a run (default: by seed)\n"
	      "  --bytes N         most bytes a connection and direction (default: by seed)\n"
	      "  --check-every N   the deep check of all pools each N turns (16; others each "
	      "turn)\n"
	      "  --churn N         instead: N connections, open, request, response, close\n"
	      "  --pcap FILE       keep the packets of side A (of the last seed), failed or not\n"
	      "  -v                tell what happens\n",
		out);
}

static bool
read_range(const char *text, struct sim_range *r)
{
	char *end;

	r->lo = r->hi = strtod(text, &end);
	if (*end == '-')
		r->hi = strtod(end + 1, &end);
	r->set = true;
	return *end == '\0' && r->lo >= 0 && r->hi >= r->lo;
}

struct args {
	struct sim_options o;
	uint64_t first, last;
	const char *pcap;
	char replay[1024]; /* the command without its seeds */
};

/* Options that name a run's kind go into the replay command as they came. */
static void
keep(struct args *a, const char *name, const char *value)
{
	size_t at = strlen(a->replay);

	snprintf(a->replay + at, sizeof(a->replay) - at, " --%s %s", name, value);
}

static struct sim_range *
range_of(struct sim_options *o, int c)
{
	switch (c) {
	case 'l':
		return &o->loss;
	case 'r':
		return &o->reorder;
	case 'd':
		return &o->dup;
	case 'c':
		return &o->corrupt;
	case 'D':
		return &o->delay_us;
	default:
		return &o->rate_mbps;
	}
}

static bool
read_args(int argc, char **argv, struct args *a)
{
	static const struct option opts[] = {{"seed", 1, NULL, 's'}, {"seeds", 1, NULL, 'S'},
		{"loss", 1, NULL, 'l'}, {"reorder", 1, NULL, 'r'}, {"dup", 1, NULL, 'd'},
		{"corrupt", 1, NULL, 'c'}, {"delay-us", 1, NULL, 'D'}, {"rate-mbps", 1, NULL, 'R'},
		{"conns", 1, NULL, 'n'}, {"bytes", 1, NULL, 'b'}, {"check-every", 1, NULL, 'e'},
		{"churn", 1, NULL, 'C'}, {"pcap", 1, NULL, 'w'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int c, i = 0;
	char *end;

	while ((c = getopt_long(argc, argv, "vh", opts, &i)) != -1) {
		uint64_t n = optarg ? strtoull(optarg, &end, 0) : 0;
		bool ok = true;

		if (c == 's')
			a->first = a->last = n;
		else if (c == 'S')
			a->first = n, ok = *end == '-',
			a->last = ok ? strtoull(end + 1, NULL, 0) : 0;
		else if (c == 'v')
			a->o.verbose = true;
		else if (c == 'h' || c == '?')
			return false;
		else if (c == 'n')
			a->o.conns = (uint32_t)n;
		else if (c == 'b')
			a->o.max_bytes = (uint32_t)n;
		else if (c == 'e')
			a->o.check_every = (uint32_t)n;
		else if (c == 'w')
			a->pcap = optarg;
		else if (c == 'C')
			a->o.churn = n;
		else
			ok = read_range(optarg, range_of(&a->o, c));
		if (!ok)
			return false;
		if (c != 's' && c != 'S' && c != 'v' && c != 'w')
			keep(a, opts[i].name, optarg);
	}
	return optind == argc && a->first <= a->last;
}

/* 0, or -1 with the reason in w->msg; also when the library asserts. */
static int
run_seed(struct world *w, const struct sim_options *o, uint64_t seed, struct pcapbuf *pcap,
	struct sim_totals *t)
{
	if (sigsetjmp(after_abort, 1) != 0) {
		w->failed = false;
		sim_fail(w, "an assertion failed (above)");
		/* The world may be in any shape: leave it, take fresh memory for the next. */
		memset(w->side, 0, sizeof(w->side));
		w->ep = NULL;
		return -1;
	}
	return sim_run(w, o, seed, pcap, t);
}

static void
tell_failure(struct world *w, const struct args *a, const char *argv0, uint64_t seed)
{
	struct sim_options o = a->o;
	struct sim_totals t = {0};
	struct pcapbuf *pb = pcapbuf_new(PCAP_PACKETS);
	char path[64];

	o.verbose = false;
	printf("FAIL seed %llu: %s\n", (unsigned long long)seed, w->msg);
	if (run_seed(w, &o, seed, pb, &t) == 0)
		printf("  the second run passed: something is not a function of the seed\n");
	snprintf(path, sizeof(path), "sim-%llu.pcap", (unsigned long long)seed);
	if (pcapbuf_write(pb, path) == 0)
		printf("  capture of side A: %s\n", path);
	printf("  again: %s --seed %llu%s -v\n", argv0, (unsigned long long)seed, a->replay);
	fflush(stdout);
	pcapbuf_free(pb);
}

static double
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
print_totals(const struct sim_totals *t, unsigned failed, double s)
{
	printf("%llu seeds, %u failed; %llu connections (ends: %llu in order, %llu reset, %llu "
	       "refused, %llu timed out), %.1f MB checked, %llu packets, %llu turns, %.0f s "
	       "virtual "
	       "in %.2f s, %.0f turns/s\n",
		(unsigned long long)t->seeds, failed, (unsigned long long)t->conns,
		(unsigned long long)t->in_order, (unsigned long long)t->reset,
		(unsigned long long)t->refused, (unsigned long long)t->timed_out,
		(double)t->bytes / 1e6, (unsigned long long)t->packets,
		(unsigned long long)t->turns, (double)t->virtual_ns / 1e9, s, (double)t->turns / s);
}

int
main(int argc, char **argv)
{
	struct args a = {.first = 1,
		.last = 1,
		.o = {.loss = {0, 10, true},
			.reorder = {0, 10, true},
			.dup = {0, 2, true},
			.corrupt = {0, 2, true}}};
	struct sim_totals t = {0};
	struct pcapbuf *pb = NULL;
	struct world *w = calloc(1, sizeof(*w));
	unsigned failed = 0;
	double start = seconds();

	if (!w || !read_args(argc, argv, &a)) {
		usage(stderr);
		free(w);
		return 2;
	}
	if (a.o.churn) {
		free(w);
		return sim_churn(&a.o, a.first);
	}
	signal(SIGABRT, on_abort);
	if (a.pcap)
		pb = pcapbuf_new(PCAP_PACKETS);
	for (uint64_t seed = a.first; seed <= a.last && failed < 10; seed++)
		if (run_seed(w, &a.o, seed, pb, &t) != 0) {
			failed++;
			tell_failure(w, &a, argv[0], seed);
		}
	if (pb && pcapbuf_write(pb, a.pcap) != 0)
		perror(a.pcap);
	print_totals(&t, failed, seconds() - start);
	sim_end(w);
	free(w);
	pcapbuf_free(pb);
	return failed ? 1 : 0;
}
