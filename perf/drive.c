/* SPDX-License-Identifier: BSD-3-Clause */
/* drive.c - options, the instance, and the clock of the windows. See drive.h. */
#include "drive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

#define NS_PER_MS     1000000ull
#define SLICE_MS      50 /* after an injected pause the rate is looked at in such slices */
#define RECOVER_MS    3000
#define RECOVER_SHARE 0.8
#define NO_LIMIT      (UINT64_MAX / 2)

/* One process, one instance: the signal handler and the pause are its. */
static struct corq_instance *running;
static _Atomic uint64_t server_pause_ms;

struct windows {
	enum {
		WARM,
		TIMED,
		PAUSED,
		DONE
	} phase;
	uint64_t at; /* begin of the present window */
	uint64_t done;
	struct corq_stats side[2]; /* then: server, client */
	unsigned n;
	/* after the pause */
	double before; /* rate */
	uint64_t pause_at, slice_at, slice_done, half_open_peak;
	double recovered_ms;
};

/* ---- sums ---- */

void
drive_side_stats(const struct drive *d, bool client, struct corq_stats *out)
{
	uint64_t *sum = (uint64_t *)(void *)out;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < corq_cores(d->inst); i++) {
		struct corq_stats one;

		if (d->is_client[i] != client)
			continue;
		corq_core_stats(corq_core_at(d->inst, i), &one);
		for (size_t w = 0; w < sizeof(one) / sizeof(*sum); w++)
			sum[w] += ((const uint64_t *)(const void *)&one)[w];
	}
}

/* Counters of other cores are read while these write them: a figure may be a moment old. */
static uint64_t
read_count(const uint64_t *p)
{
	return *(const volatile uint64_t *)p;
}

uint64_t
drive_done(const struct drive *d)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < corq_cores(d->inst); i++) {
		const struct load_client *c = &d->client[i];

		if (d->load.kind == LOAD_STREAM)
			n += read_count(d->role == DRIVE_CLIENT ? &c->bytes : &d->servers[i].bytes);
		else if (d->is_client[i])
			n += read_count(d->load.kind == LOAD_KEEPALIVE ? &c->requests
					: d->load.kind == LOAD_IDLE    ? &c->opened
								       : &c->done);
	}
	return n;
}

uint64_t
drive_resident(void)
{
	unsigned long long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%llu %llu", &size, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t
drive_failures(const struct drive *d)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < corq_cores(d->inst); i++)
		n += read_count(&d->client[i].failed) + read_count(&d->client[i].wrong) +
		     read_count(&d->servers[i].wrong);
	return n;
}

/* ---- windows ---- */

/* In the order of struct corq_stats. */
static const char *const stage_names[6] = {"rx", "input", "timers", "events", "build", "tx"};

static const char *
unit_of(const struct drive *d)
{
	switch (d->load.kind) {
	case LOAD_KEEPALIVE:
		return "request";
	case LOAD_STREAM:
		return "KiB";
	default:
		return "connection";
	}
}

static void
begin_window(struct drive *d, struct windows *w, uint64_t now)
{
	w->at = now;
	w->done = drive_done(d);
	drive_side_stats(d, false, &w->side[0]);
	drive_side_stats(d, true, &w->side[1]);
}

/* Cores that a side has in this process. */
static double
cores_of(const struct drive *d)
{
	unsigned n = corq_cores(d->inst);

	return d->role == DRIVE_BOTH && n > 1 ? n / 2 : n;
}

/* cycles_busy counts turns that did something; their TSC includes pauses of the machine. */
static void
report_side(struct drive *d, const struct windows *w, bool client, double units, double seconds)
{
	const struct corq_stats *a = &w->side[client];
	const char *name = client ? "client" : "server", *unit = unit_of(d);
	double cycles, packets;
	struct corq_stats b;

	drive_side_stats(d, client, &b);
	if (b.turns == 0)
		return; /* not in this process */
	cycles = (double)(b.cycles_busy - a->cycles_busy);
	packets = (double)(b.rx_packets - a->rx_packets + b.tx_packets - a->tx_packets);
	result_add(&d->results, "cycles", cycles / units, "%s.cycles_per_%s", name, unit);
	result_add(&d->results, "packets", packets / units, "%s.packets_per_%s", name, unit);
	for (unsigned i = 0; i < 6; i++)
		result_add(&d->results, "percent",
			100 * (double)((&b.cycles_rx)[i] - (&a->cycles_rx)[i]) / cycles,
			"%s.stage.%s", name, stage_names[i]);
	result_add(&d->results, "percent",
		100 * cycles / (seconds * (double)corq_tsc_hz()) / cores_of(d), "%s.busy", name);
	if (b.turns_busy > a->turns_busy)
		result_add(&d->results, "segments",
			packets / (double)(b.turns_busy - a->turns_busy), "%s.busy_turn", name);
	result_add(&d->results, "segments", (double)(b.segs_retransmitted - a->segs_retransmitted),
		"%s.retransmitted", name);
}

static void
end_window(struct drive *d, struct windows *w, uint64_t now)
{
	double seconds = (double)(now - w->at) / 1e9;
	double done = (double)(drive_done(d) - w->done);

	if (d->load.kind == LOAD_STREAM) {
		result_add(&d->results, "Gbit/s", done * 8 / seconds / 1e9, "rate");
		done /= 1024;
	} else {
		result_add(&d->results, "1/s", done / seconds, "%ss_per_second", unit_of(d));
	}
	if (done > 0) {
		report_side(d, w, true, done, seconds);
		report_side(d, w, false, done, seconds);
	}
	w->before = done / seconds;
}

static void
sleep_ms(uint64_t ms)
{
	struct timespec ts = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	nanosleep(&ts, NULL);
}

/* The pause of the machine that a shared one makes by itself, made on purpose. */
static void
inject_pause(struct drive *d, struct windows *w, uint64_t now)
{
	w->phase = PAUSED;
	w->pause_at = w->slice_at = now + d->pause_ms * NS_PER_MS;
	w->slice_done = drive_done(d);
	w->recovered_ms = -1;
	if (d->pause_server)
		server_pause_ms = d->pause_ms;
	else
		sleep_ms(d->pause_ms);
}

static int
watch_recovery(struct drive *d, struct windows *w, uint64_t now)
{
	struct corq_stats s;
	double rate;

	if (now < w->slice_at + SLICE_MS * NS_PER_MS)
		return 0;
	drive_side_stats(d, false, &s);
	if (s.half_open_live > w->half_open_peak)
		w->half_open_peak = s.half_open_live;
	rate = (double)(drive_done(d) - w->slice_done) * 1e9 / (double)(now - w->slice_at);
	if (w->recovered_ms < 0 && rate >= RECOVER_SHARE * w->before)
		w->recovered_ms = (double)(w->slice_at - w->pause_at) / NS_PER_MS;
	w->slice_at = now;
	w->slice_done = drive_done(d);
	if (now < w->pause_at + RECOVER_MS * NS_PER_MS)
		return 0;
	result_add(&d->results, "ms", w->recovered_ms, "pause.recovered_after");
	result_add(&d->results, "connections", (double)w->half_open_peak, "pause.half_open_peak");
	w->phase = DONE;
	return 1;
}

static int
step_windows(struct drive *d, uint64_t now)
{
	struct windows *w = d->step_state;

	switch (w->phase) {
	case WARM:
		if (w->at == 0)
			w->at = now;
		if (now < w->at + d->warm_ms * NS_PER_MS)
			return 0;
		w->phase = TIMED;
		begin_window(d, w, now);
		return 0;
	case TIMED:
		if (now < w->at + d->window_ms * NS_PER_MS)
			return 0;
		end_window(d, w, now);
		if (++w->n < d->runs) {
			begin_window(d, w, now);
			return 0;
		}
		if (d->pause_ms == 0)
			return 1;
		inject_pause(d, w, now);
		return 0;
	case PAUSED:
		return watch_recovery(d, w, now);
	case DONE:
		break;
	}
	return 1;
}

/* ---- cores ---- */

static uint64_t
clock_hook(struct corq_core *core, void *arg, uint64_t now_ns)
{
	struct drive *d = arg;
	unsigned i = corq_core_index(core);
	uint64_t want = load_client_hook(core, &d->client[i], now_ns);

	if (!d->stopping && d->step(d, now_ns)) {
		d->stopping = true;
		d->failures = drive_failures(d); /* what is open now is reset by the stop */
		corq_stop(d->inst);
	}
	return want ? want : now_ns + NS_PER_MS;
}

static uint64_t
server_hook(struct corq_core *core, void *arg, uint64_t now_ns)
{
	uint64_t ms = atomic_exchange(&server_pause_ms, 0);
	struct drive *d = arg;

	if (d->server_turn)
		d->server_turn(d, core);
	if (ms)
		sleep_ms(ms);
	return now_ns + NS_PER_MS;
}

static bool
core_is_client(const struct drive *d, struct corq_core *core)
{
	if (d->role != DRIVE_BOTH)
		return d->role == DRIVE_CLIENT;
	return corq_core_side(core) == CORQ_SIDE_A;
}

static int
start_core(struct corq_core *core, void *arg)
{
	struct drive *d = arg;
	unsigned i = corq_core_index(core);
	bool both = corq_core_side(core) == CORQ_SIDE_BOTH;
	int rc;

	if (!core_is_client(d, core) || both) {
		rc = load_server_init(&d->servers[i], core, &d->load);
		if (rc || !both) {
			corq_core_set_hook(core, server_hook, d);
			return rc;
		}
	}
	rc = load_client_init(&d->client[i], core, &d->load);
	if (rc)
		return rc;
	if (d->load.kind != LOAD_IDLE)
		load_client_add(&d->client[i], NO_LIMIT);
	else
		load_client_add(&d->client[i], d->load.slots);
	if (i == 0)
		corq_core_set_hook(core, clock_hook, d);
	return 0;
}

/* ---- options ---- */

enum {
	OPT_DEV = 256,
	OPT_IP,
	OPT_PEER,
	OPT_ROLE,
	OPT_SERVER,
	OPT_CORES,
	OPT_ONE,
	OPT_SLOTS,
	OPT_SIZE,
	OPT_REQUEST,
	OPT_KEEP,
	OPT_RUNS,
	OPT_WARM,
	OPT_WINDOW,
	OPT_PAUSE,
	OPT_PAUSE_SIDE,
	OPT_CONNS,
	OPT_TW,
	OPT_HUGE,
	OPT_SLEEP,
	OPT_CHECK
};

static const struct option options[] = {
	{"dev", required_argument, NULL, OPT_DEV},
	{"ip", required_argument, NULL, OPT_IP},
	{"peer-ip", required_argument, NULL, OPT_PEER},
	{"role", required_argument, NULL, OPT_ROLE},
	{"server", required_argument, NULL, OPT_SERVER},
	{"cores", required_argument, NULL, OPT_CORES},
	{"one-core", no_argument, NULL, OPT_ONE},
	{"slots", required_argument, NULL, OPT_SLOTS},
	{"size", required_argument, NULL, OPT_SIZE},
	{"request", required_argument, NULL, OPT_REQUEST},
	{"keepalive", no_argument, NULL, OPT_KEEP},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"warm-ms", required_argument, NULL, OPT_WARM},
	{"window-ms", required_argument, NULL, OPT_WINDOW},
	{"pause-ms", required_argument, NULL, OPT_PAUSE},
	{"pause-side", required_argument, NULL, OPT_PAUSE_SIDE},
	{"max-conns", required_argument, NULL, OPT_CONNS},
	{"time-wait", required_argument, NULL, OPT_TW},
	{"no-huge", no_argument, NULL, OPT_HUGE},
	{"idle-sleep", no_argument, NULL, OPT_SLEEP},
	{"check", no_argument, NULL, OPT_CHECK},
	{"help", no_argument, NULL, 'h'},
	{0},
};

_Noreturn static void
usage(const struct drive *d, int status)
{
	fprintf(status ? stderr : stdout,
		"usage: %s [--dev loop|memif:ROLE,SOCKET] [--ip A[-B]/LEN] [--peer-ip A/LEN]\n"
		"  [--role client|server] [--server A] [--cores N] [--one-core] [--slots N]\n"
		"  [--size BYTES] [--request BYTES] [--keepalive] [--runs N] [--warm-ms N]\n"
		"  [--window-ms N] [--pause-ms N] [--pause-side client|server] [--max-conns N]\n"
		"  [--time-wait RECORDS] [--no-huge] [--idle-sleep] [--check] [-- EAL ARGUMENTS]\n",
		d->name);
	exit(status);
}

_Noreturn static void
bad(const char *option, const char *text)
{
	fprintf(stderr, "--%s: '%s' is none of its values\n", option, text);
	exit(2);
}

static void
take_number(struct drive *d, int opt, const char *s)
{
	switch (opt) {
	case OPT_CORES:
		d->config.cores = (unsigned)result_number("cores", s, 1, DRIVE_CORES_MAX / 2);
		break;
	case OPT_SLOTS:
		d->load.slots = (uint32_t)result_number("slots", s, 1, 1u << 26);
		break;
	case OPT_SIZE:
		d->load.response = (uint32_t)result_number("size", s, 1, 128 << 10);
		break;
	case OPT_REQUEST:
		d->load.request = (uint32_t)result_number("request", s, 1, LOAD_REQUEST_MAX);
		break;
	case OPT_RUNS:
		d->runs = (unsigned)result_number("runs", s, 1, RESULT_RUNS_MAX);
		break;
	case OPT_WARM:
		d->warm_ms = result_number("warm-ms", s, 0, 3600000);
		break;
	case OPT_WINDOW:
		d->window_ms = result_number("window-ms", s, 10, 3600000);
		break;
	case OPT_PAUSE:
		d->pause_ms = result_number("pause-ms", s, 1, 10000);
		break;
	case OPT_CONNS:
		d->config.max_conns = (uint32_t)result_number("max-conns", s, 16, 1u << 26);
		break;
	case OPT_TW:
		d->config.max_time_wait = (uint32_t)result_number("time-wait", s, 1, 1u << 29);
		break;
	default:
		usage(d, 2);
	}
}

static void
take_option(struct drive *d, int opt, char *s)
{
	switch (opt) {
	case OPT_DEV:
		d->config.dev = s;
		break;
	case OPT_IP:
		d->config.ip = s;
		break;
	case OPT_PEER:
		d->config.peer_ip = s;
		break;
	case OPT_ROLE:
		if (strcmp(s, "client") != 0 && strcmp(s, "server") != 0)
			bad("role", s);
		d->role = *s == 'c' ? DRIVE_CLIENT : DRIVE_SERVER;
		break;
	case OPT_SERVER:
		d->server = s;
		break;
	case OPT_ONE:
		d->config.loop_one_core = true;
		break;
	case OPT_KEEP:
		d->load.kind = LOAD_KEEPALIVE;
		break;
	case OPT_PAUSE_SIDE:
		if (strcmp(s, "client") != 0 && strcmp(s, "server") != 0)
			bad("pause-side", s);
		d->pause_server = *s == 's';
		break;
	case OPT_HUGE:
		d->config.no_huge = true;
		break;
	case OPT_SLEEP:
		d->config.busy_poll = false;
		break;
	case OPT_CHECK:
		d->load.check = true;
		break;
	case 'h':
		usage(d, 0);
	default:
		take_number(d, opt, s);
	}
}

static void
take_options(struct drive *d, int argc, char **argv)
{
	int opt;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0) {
			d->config.eal_args = &argv[i + 1];
			argc = i;
		}
	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1)
		take_option(d, opt, optarg);
	if (optind != argc || (d->role == DRIVE_CLIENT) != (d->server != NULL))
		usage(d, 2);
	if (d->load.kind == LOAD_STREAM)
		d->load.slots = 1;
}

static int
find_server(struct drive *d)
{
	uint8_t *b = d->load.server.b;

	if (d->role != DRIVE_CLIENT) {
		d->load.server = corq_address(
			d->inst, d->role == DRIVE_BOTH ? CORQ_SIDE_B : CORQ_SIDE_A, NULL);
		return 0;
	}
	memset(b, 0, 16);
	b[10] = b[11] = 0xff;
	if (inet_pton(AF_INET, d->server, b + 12) == 1)
		return 0;
	bad("server", d->server);
}

/* ---- the whole ---- */

static void
on_signal(int sig)
{
	(void)sig;
	if (running)
		corq_stop(running);
}

/* A server that ran alone: means over its whole life. */
static void
report_server(struct drive *d)
{
	struct corq_stats s;
	double units;

	drive_side_stats(d, false, &s);
	units = (double)(d->load.kind == LOAD_KEEPALIVE ? d->servers[0].requests : s.conn_closed);
	if (d->load.kind == LOAD_STREAM)
		units = (double)d->servers[0].bytes / 1024;
	if (units == 0)
		return;
	result_add(&d->results, "cycles", (double)s.cycles_busy / units, "server.cycles_per_%s",
		unit_of(d));
	result_add(&d->results, "packets", (double)(s.rx_packets + s.tx_packets) / units,
		"server.packets_per_%s", unit_of(d));
}

/* What was dropped, or worth knowing, for people. */
static void
print_reasons(const struct drive *d)
{
	const char *name, *text;
	bool is_drop;

	for (unsigned i = 1; (name = corq_reason_at(i, &text, &is_drop)); i++)
		if (corq_reason_count(d->inst, i))
			fprintf(stderr, "%s: %" PRIu64 " x %s\n", d->name,
				corq_reason_count(d->inst, i), text);
}

static int
run(struct drive *d)
{
	struct windows w = {.phase = WARM};
	uint64_t bad_ones;
	int rc;

	for (unsigned i = 0; i < corq_cores(d->inst); i++)
		d->is_client[i] = core_is_client(d, corq_core_at(d->inst, i));
	if (!d->step) {
		d->step = step_windows;
		d->step_state = &w;
	}
	running = d->inst;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	rc = corq_run(d->inst, start_core, d);
	bad_ones = d->stopping ? d->failures : drive_failures(d);
	if (d->role == DRIVE_SERVER)
		report_server(d);
	running = NULL;
	print_reasons(d);
	corq_end(d->inst);
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", d->name, strerror(-rc));
		return 1;
	}
	result_print(&d->results, d->name);
	if (bad_ones)
		fprintf(stderr, "%s: %" PRIu64 " failed (first: %d)\n", d->name, bad_ones,
			d->client[0].first_error);
	return bad_ones != 0;
}

int
drive_main(struct drive *d, int argc, char **argv)
{
	char err[256] = "";

	d->load.port = 80;
	d->config.busy_poll = true;
	take_options(d, argc, argv);
	if (corq_start(&d->config, &d->inst, err, sizeof(err)) != 0) {
		fprintf(stderr, "%s: %s\n", d->name, err);
		return 1;
	}
	find_server(d);
	return run(d);
}
