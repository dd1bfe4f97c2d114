/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_engine.c - what a segment and a connection cost, apart from any device.
 *
 * Two cores, client and server, joined by memwire, take turns on one thread. Three loads: conn
 * (open, request, answer with FIN, close), keepalive (request and answer on open connections),
 * stream (one flow). Cycles are the TSC's around each turn; a turn longer than PAUSE cycles holds a
 * pause of the machine and is left out of the sums, counted and printed. Medians of --runs runs.
 *
 * The seam's share is what the port's own functions took (memwire times itself) of all cycles of
 * the turns. Both ends in one thread share its caches: a frame that crosses is warm here and is
 * not between two cores; bench_conn has that cost.
 */
#include "load.h"
#include "memwire.h"
#include "result.h"

#include "base/cycles.h"
#include "core/core.h"

#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAUSE (1u << 20) /* cycles: 400 us; the longest turn without one is under 100 us */

#define STANDSTILL 10000000 /* turns in a row of either side in which nothing happened: seconds */

struct side {
	const char *name;
	struct corq_core *core;
	struct corq_core_config cfg;
	uint64_t cycles, turns, busy, paused;
	uint64_t stage[6];
	struct corq_stats at; /* when the run began */
};

struct bench {
	struct memwire *mw;
	struct side side[2];
	struct load_client client;
	struct load_server server;
	struct results results;
	/* options */
	uint64_t conns, requests, mib;
	uint32_t slots, request, response, addrs, time_wait;
	unsigned runs;
	bool check, ipv6, only_conn, verbose;
};

static const char *const stage_names[6] = {"rx", "input", "timers", "events", "build", "tx"};

_Noreturn static void
die(const char *what)
{
	fprintf(stderr, "bench_engine: %s\n", what);
	exit(1);
}

/* ---- two cores ---- */

static struct corq_addr
address(const struct bench *b, unsigned side)
{
	struct corq_addr a = {0};

	if (b->ipv6) {
		a.b[0] = 0xfd;
		a.b[14] = (uint8_t)(1 + side);
	} else {
		a.b[10] = a.b[11] = 0xff;
		a.b[12] = 10;
		a.b[14] = (uint8_t)(1 + side);
	}
	a.b[15] = 1;
	return a;
}

static void
side_init(struct bench *b, unsigned i)
{
	struct side *s = &b->side[i];
	struct corq_config c = {
		.max_conns = 2 * b->slots > 65536 ? 2 * b->slots : 0, /* 0: the product's */
		.max_time_wait = b->time_wait,
		.seed = 42 + i,
	};
	char err[256] = "";
	size_t bytes;
	void *mem;

	s->name = i ? "server" : "client";
	if (corq_tcp_config_resolve(&s->cfg.tcp, &c, 1500, err, sizeof(err)) != 0)
		die(err);
	s->cfg.n = 1;
	s->cfg.seed = c.seed;
	s->cfg.n_ranges = 1;
	s->cfg.ranges[0] = (struct corq_range){
		.first = address(b, i), .count = i ? 1 : b->addrs, .connect = 1};
	s->cfg.prefix_len = b->ipv6 ? 64 : 96 + 8;
	s->cfg.max_neigh = 1024;
	bytes = corq_core_bytes(&s->cfg);
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (mem == MAP_FAILED)
		die("too little memory");
	madvise(mem, bytes, MADV_HUGEPAGE);
	if (corq_core_init(&s->core, mem, &s->cfg, memwire_port(b->mw, i), err, sizeof(err)) != 0)
		die(err);
}

/* Both ends know each other from the start: ARP is not what is measured. */
static void
make_neighbours(struct bench *b)
{
	for (unsigned i = 0; i < 2; i++) {
		struct corq_core *core = b->side[i].core;
		uint32_t n = i ? b->addrs : 1;

		for (uint32_t k = 0; k < n; k++) {
			struct corq_addr a = corq_engine_laddr_at(&b->side[!i].core->eng, k);

			corq_neigh_set_static(&core->neigh, &a, b->side[!i].core->port->mac,
				core->port->ops->now_ns(core->port));
		}
	}
}

static void
start(struct bench *b, enum load_kind kind)
{
	struct load_opts o = {.kind = kind,
		.slots = kind == LOAD_STREAM ? 1 : b->slots,
		.request = b->request,
		.response = b->response,
		.check = b->check,
		.server = address(b, 1),
		.port = 80};

	b->mw = memwire_new(16384, 1500);
	if (!b->mw)
		die("too little memory");
	memset(b->side, 0, sizeof(b->side));
	side_init(b, 0);
	side_init(b, 1);
	make_neighbours(b);
	if (load_server_init(&b->server, b->side[1].core, &o) != 0 ||
		load_client_init(&b->client, b->side[0].core, &o) != 0)
		die("cannot start the load");
}

/* What was dropped, or is worth knowing, since the engines started. */
static void
print_reasons(const struct bench *b)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned r = CORQ_R_NONE + 1; r < CORQ_R_COUNT; r++)
			if (b->side[i].core->eng.reasons[r])
				fprintf(stderr, "%s: %" PRIu64 " x %s\n", b->side[i].name,
					b->side[i].core->eng.reasons[r], corq_reason_text(r));
}

static void
stop(struct bench *b)
{
	if (b->verbose)
		print_reasons(b);
	load_client_end(&b->client);
	load_server_end(&b->server);
	for (unsigned i = 0; i < 2; i++)
		munmap(b->side[i].core, corq_core_bytes(&b->side[i].cfg));
	memwire_free(b->mw);
}

/* ---- turns ---- */

static bool
timed_turn(struct side *s)
{
	uint64_t t0 = corq_cycles(), d;
	bool busy = corq_core_turn(s->core);

	d = corq_cycles() - t0;
	s->turns++;
	if (CORQ_UNLIKELY(d > PAUSE)) {
		s->paused++;
		return busy;
	}
	s->cycles += d;
	if (!busy)
		return false;
	s->busy++;
	for (unsigned i = 0; i < 6; i++)
		s->stage[i] += s->core->stage[i];
	return true;
}

static void
begin(struct bench *b)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &b->side[i];

		corq_core_usage(s->core, &s->at);
		s->cycles = s->turns = s->busy = s->paused = 0;
		memset(s->stage, 0, sizeof(s->stage));
	}
	memwire_reset_costs(b->mw);
}

/* Until the load is done; a load that no turn moves any more is a fault. */
static void
run_load(struct bench *b, uint64_t n)
{
	uint64_t idle = 0;

	load_client_add(&b->client, n);
	while (!load_client_idle(&b->client)) {
		bool busy = timed_turn(&b->side[0]);

		busy |= timed_turn(&b->side[1]);
		idle = busy ? 0 : idle + 1;
		if (idle > STANDSTILL)
			die("the load stands still");
	}
	if (b->client.failed || b->client.wrong || b->server.wrong) {
		fprintf(stderr, "failed %" PRIu64 " (first: %d), wrong %" PRIu64 " + %" PRIu64 "\n",
			b->client.failed, b->client.first_error, b->client.wrong, b->server.wrong);
		die("not every exchange was right");
	}
}

/* ---- figures ---- */

static uint64_t
seam_cycles(struct bench *b, unsigned side)
{
	const struct memwire_cost *c = memwire_costs(b->mw, side);
	uint64_t sum = 0;

	for (unsigned i = 0; i < MEMWIRE_FN_COUNT; i++)
		sum += c->cycles[i];
	return sum;
}

static uint64_t
packets_of(const struct side *s, const struct corq_stats *now)
{
	return now->rx_packets - s->at.rx_packets + now->tx_packets - s->at.tx_packets;
}

/* Per unit (a connection, a request, a byte) and per segment, each side by itself. */
static void
report(struct bench *b, const char *load, double units, const char *unit)
{
	double seam = 0, all = 0, packets = 0;
	struct results *r = &b->results;
	char per[32];

	snprintf(per, sizeof(per), "cycles/%s", unit);
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &b->side[i];
		struct corq_stats now;
		double pk;

		corq_core_usage(s->core, &now);
		pk = (double)packets_of(s, &now);
		packets += (double)(now.tx_packets - s->at.tx_packets);
		seam += (double)seam_cycles(b, i);
		all += (double)s->cycles;
		result_add(r, "cycles", (double)s->cycles / units, "%s.%s.%s", load, s->name, unit);
		result_add(r, "cycles", (double)s->cycles / pk, "%s.%s.segment", load, s->name);
		for (unsigned k = 0; k < 6; k++)
			result_add(r, "percent", 100.0 * (double)s->stage[k] / (double)s->cycles,
				"%s.%s.stage.%s", load, s->name, stage_names[k]);
		result_add(r, "segments", pk / (double)(s->busy ? s->busy : 1), "%s.%s.busy_turn",
			load, s->name);
		if (s->paused)
			fprintf(stderr, "%s.%s: %" PRIu64 " turns with a pause left out\n", load,
				s->name, s->paused);
		if (now.segs_retransmitted != s->at.segs_retransmitted)
			fprintf(stderr, "%s.%s: %" PRIu64 " retransmissions\n", load, s->name,
				now.segs_retransmitted - s->at.segs_retransmitted);
	}
	result_add(r, "percent", 100.0 * seam / all, "%s.seam_share", load);
	result_add(r, "cycles", seam / packets / 2, "%s.seam_segment", load);
	result_add(r, "packets", packets / units, "%s.packets_per_%s", load, unit);
	result_add(r, "1/s", units * memwire_tsc_hz(b->mw) / (all / 2), "%s.%ss_per_second_a_cpu",
		load, unit);
}

static void
bench_conn(struct bench *b)
{
	start(b, LOAD_CONN);
	run_load(b, CORQ_MAX(b->conns / 4, 1u)); /* warm */
	for (unsigned i = 0; i < b->runs; i++) {
		begin(b);
		run_load(b, b->conns);
		report(b, "conn", (double)b->conns, "connection");
	}
	stop(b);
}

static void
bench_keepalive(struct bench *b)
{
	start(b, LOAD_KEEPALIVE);
	run_load(b, CORQ_MAX(b->requests / 4, b->slots));
	for (unsigned i = 0; i < b->runs; i++) {
		begin(b);
		run_load(b, b->requests);
		report(b, "keepalive", (double)b->requests, "request");
	}
	stop(b);
}

static void
bench_stream(struct bench *b)
{
	double bytes = (double)(b->mib << 20);

	start(b, LOAD_STREAM);
	run_load(b, CORQ_MAX(b->mib / 4, 1u) << 20);
	for (unsigned i = 0; i < b->runs; i++) {
		begin(b);
		run_load(b, b->mib << 20);
		report(b, "stream", bytes / 1024, "KiB");
		for (unsigned k = 0; k < 2; k++)
			result_add(&b->results, "bytes/cycle", bytes / (double)b->side[k].cycles,
				"stream.%s.bytes_per_cycle", b->side[k].name);
	}
	stop(b);
}

/* ---- options ---- */

static const struct option options[] = {
	{"conns", required_argument, NULL, 'n'},
	{"requests", required_argument, NULL, 'r'},
	{"mib", required_argument, NULL, 'm'},
	{"slots", required_argument, NULL, 'c'},
	{"size", required_argument, NULL, 's'},
	{"addrs", required_argument, NULL, 'a'},
	{"time-wait", required_argument, NULL, 'w'},
	{"runs", required_argument, NULL, 'R'},
	{"cpu", required_argument, NULL, 'p'},
	{"only-conn", no_argument, NULL, 'o'},
	{"ip6", no_argument, NULL, '6'},
	{"verbose", no_argument, NULL, 'v'},
	{"check", no_argument, NULL, 'k'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void
usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: bench_engine [--conns N] [--requests N] [--mib N] [--slots N] [--size "
		"BYTES]\n"
		"                    [--addrs N] [--time-wait RECORDS] [--runs N] [--cpu N]\n"
		"                    [--only-conn] [--ip6] [--check] [--verbose]\n");
	exit(status);
}

static void
pin(uint64_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		die("--cpu: cannot run there");
}

int
main(int argc, char **argv)
{
	static struct bench b = {.conns = 400000,
		.requests = 1000000,
		.mib = 512,
		.slots = 256,
		.request = 100,
		.response = 100,
		.addrs = 1,
		.runs = 5};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'n':
			b.conns = result_number("conns", optarg, 1, 1ull << 40);
			break;
		case 'r':
			b.requests = result_number("requests", optarg, 1, 1ull << 40);
			break;
		case 'm':
			b.mib = result_number("mib", optarg, 1, 1u << 20);
			break;
		case 'c':
			b.slots = (uint32_t)result_number("slots", optarg, 1, 1u << 22);
			break;
		case 's':
			b.response = (uint32_t)result_number("size", optarg, 1, 128 << 10);
			break;
		case 'a':
			b.addrs = (uint32_t)result_number("addrs", optarg, 1, 256);
			break;
		case 'w':
			b.time_wait = (uint32_t)result_number("time-wait", optarg, 1, 1u << 26);
			break;
		case 'R':
			b.runs = (unsigned)result_number("runs", optarg, 1, RESULT_RUNS_MAX);
			break;
		case 'p':
			pin(result_number("cpu", optarg, 0, CPU_SETSIZE - 1));
			break;
		case 'o':
			b.only_conn = true;
			break;
		case '6':
			b.ipv6 = true;
			break;
		case 'v':
			b.verbose = true;
			break;
		case 'k':
			b.check = true;
			break;
		default:
			usage(opt == 'h' ? 0 : 2);
		}
	}
	if (optind != argc)
		usage(2);
	bench_conn(&b);
	if (!b.only_conn) {
		bench_keepalive(&b);
		bench_stream(&b);
	}
	result_print(&b.results, "engine");
	return 0;
}
