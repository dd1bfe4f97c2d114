/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_echo.c - shows that a device of lib/port carries frames, and at what price.
 *
 *	port_echo --dev DEVICE [options] [-- EAL arguments]
 *
 * One side generates numbered frames and counts those that come back, the other swaps the MAC
 * addresses and sends them back. On loop both run here (--cores each, or both on one core with
 * --self); else one process is `--mode gen`, the other `--mode echo`. Frames look like TCP over
 * IPv4, of many flows. The generator keeps a window open, so nothing need be lost; what is missing
 * after 2 s without a frame counts as lost. --for MS: sends no more after that time. --self: both
 * ends on one core of loop, what is sent comes back. --ext: a second part in borrowed memory.
 * --check: every byte, and no number twice.
 * --hint IF prints what is to be said about the offloads of a peer, and nothing else.
 *
 * Last line of gen: "sent N returned N lost 0 bad 0 out 0 released N Mpps X"; with the cost of each
 * call in TSC cycles a frame behind it. Exit code 1 when anything is lost, bad or leaked.
 */
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cycles.h"
#include "port/port_dpdk.h"

#define BURST     32
#define SEQ_AT    54                      /* behind Ethernet, IPv4 and TCP headers */
#define QUIET_NS  (4000 * CORQ_NS_PER_MS) /* a busy machine may let one end wait */
#define EXT_BYTES 1024

struct stage {
	uint64_t cycles, frames;
};

struct side {
	struct corq_port *port;
	uint64_t from, to;       /* numbers that this core sends */
	uint64_t sent, returned; /* written by its core */
	uint64_t bad, released, ext_sent;
	struct stage rx, tx, alloc, free;
	uint64_t first_ns, last_ns;
} CORQ_ALIGNED_LINE;

static struct options {
	const char *dev, *mode;
	uint64_t count;
	uint32_t cores, size, window, mtu, wait_ms, for_ms;
	const char *hint;
	bool self, ext, no_huge, share, verbose, check;
} opt = {.mode = "gen", .count = 1000000, .cores = 1, .size = 64, .window = 256};

static struct corq_eal *eal;
static _Atomic uint64_t total_sent, total_returned, last_frame_ns;
static _Atomic uint64_t *seen; /* --check: one bit a frame */
static atomic_int stop;
static _Atomic uint32_t n_done; /* generators that send no more */
static uint8_t borrowed[EXT_BYTES];

static void
on_signal(int sig)
{
	(void)sig;
	atomic_store(&stop, 1);
}

static void
print_log(void *arg, enum corq_log_level level, const char *line)
{
	(void)arg;
	fprintf(stderr, "port_echo: %s: %s\n", corq_log_level_name(level), line);
}

static void
stage_add(struct stage *s, uint64_t from, uint64_t frames)
{
	if (frames != 0) {
		s->cycles += corq_cycles() - from;
		s->frames += frames;
	}
}

/* ---- generator ---- */

static const uint8_t template[SEQ_AT] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x08, 0x00,        /* Ethernet */
	0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2,     /* IPv4 */
	0, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0, /* TCP */
};

static void
fill(struct side *s, struct corq_frame **f, uint64_t number)
{
	struct corq_frame *head = f[0];
	uint16_t port = (uint16_t)(number * 7919);

	memcpy(head->data, template, sizeof(template));
	memcpy(head->data + 6, s->port->mac, 6);
	memcpy(head->data + 34, &port, 2);
	memcpy(head->data + SEQ_AT, &number, 8);
	head->len = (uint16_t)CORQ_MAX(opt.size, SEQ_AT + 8u);
	if (opt.check)
		memset(head->data + SEQ_AT + 8, (int)(number & 0xff), head->len - SEQ_AT - 8u);
	head->pkt_len = head->len;
	if (opt.ext) {
		head->next = f[1];
		f[1]->data = borrowed;
		f[1]->len = EXT_BYTES;
		f[1]->flags = CORQ_FRAME_EXT;
		f[1]->ext = borrowed;
		head->pkt_len += EXT_BYTES;
		s->ext_sent++;
	}
}

static bool
is_right(const struct corq_frame *f, uint64_t number)
{
	uint32_t head = CORQ_MAX(opt.size, SEQ_AT + 8u);

	if (f->pkt_len != head + (opt.ext ? EXT_BYTES : 0) || f->len != f->pkt_len)
		return false;
	if (!opt.check)
		return true;
	for (uint32_t i = SEQ_AT + 8; i < head; i++)
		if (f->data[i] != (number & 0xff))
			return false;
	if (opt.ext && memcmp(f->data + head, borrowed, EXT_BYTES) != 0)
		return false;
	return !(atomic_fetch_or(&seen[number / 64], 1ull << number % 64) >> number % 64 & 1);
}

static bool
is_ours(const struct corq_frame *f)
{
	return f->len >= SEQ_AT + 8 && memcmp(f->data + 26, template + 26, 8) == 0;
}

static void
receive(struct side *s)
{
	struct corq_frame *f[BURST];
	uint64_t t = corq_cycles(), number;
	uint16_t n = s->port->ops->rx_burst(s->port, f, BURST), ours = 0;

	stage_add(&s->rx, t, n);
	if (n == 0)
		return;
	for (uint16_t i = 0; i < n; i++) {
		if (!is_ours(f[i]))
			continue;
		memcpy(&number, f[i]->data + SEQ_AT, 8);
		if (number >= opt.count * opt.cores || !is_right(f[i], number))
			s->bad++;
		ours++;
	}
	t = corq_cycles();
	s->port->ops->free_bulk(s->port, f, n);
	stage_add(&s->free, t, n);
	s->returned += ours;
	s->last_ns = s->port->ops->now_ns(s->port);
	atomic_fetch_add_explicit(&total_returned, ours, memory_order_relaxed);
	atomic_store_explicit(&last_frame_ns, s->last_ns, memory_order_relaxed);
}

static void
take_released(struct side *s)
{
	void *ext[BURST];
	uint16_t n;

	while (opt.ext && (n = s->port->ops->released(s->port, ext, BURST, 1)) != 0) {
		for (uint16_t i = 0; i < n; i++)
			s->bad += ext[i] != borrowed;
		s->released += n;
	}
}

/* Sends one burst if the window allows; false when all numbers are out. */
static bool
generate(struct side *s)
{
	struct corq_frame *f[2 * BURST], *heads[BURST];
	uint16_t each = opt.ext ? 2 : 1, n, sent = 0;
	uint64_t t, out = atomic_load_explicit(&total_sent, memory_order_relaxed) -
			  atomic_load_explicit(&total_returned, memory_order_relaxed);

	if (s->from == s->to)
		return false;
	if (out > opt.window * opt.cores)
		return true;
	t = corq_cycles();
	n = s->port->ops->tx_alloc(
		s->port, f, (uint16_t)(each * CORQ_MIN((uint64_t)BURST, s->to - s->from)));
	stage_add(&s->alloc, t, n);
	if (n % each != 0)
		s->port->ops->free_bulk(s->port, &f[n - 1], 1);
	n /= each;
	for (uint16_t i = 0; i < n; i++) {
		fill(s, &f[i * each], s->from + i);
		heads[i] = f[i * each];
	}
	s->from += n;
	s->sent += n;
	atomic_fetch_add_explicit(&total_sent, n, memory_order_relaxed);
	for (int tries = 0; sent < n && tries < 100000; tries++) {
		t = corq_cycles();
		uint16_t took = s->port->ops->tx_burst(s->port, heads + sent, (uint16_t)(n - sent));
		stage_add(&s->tx, t, took);
		sent += took;
		if (sent < n)
			receive(s);
	}
	if (sent < n)
		s->port->ops->free_bulk(s->port, heads + sent, (uint16_t)(n - sent));
	return true;
}

static int
gen_main(void *arg)
{
	struct side *s = arg;
	uint64_t now, end = opt.for_ms != 0 ? opt.for_ms * CORQ_NS_PER_MS : UINT64_MAX;
	bool more = true;

	s->first_ns = s->last_ns = s->port->ops->now_ns(s->port);
	atomic_store(&last_frame_ns, s->first_ns);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (more && !(more = generate(s)))
			atomic_fetch_add(&n_done, 1);
		receive(s);
		take_released(s);
		now = s->port->ops->now_ns(s->port);
		if (now - s->first_ns >= end)
			s->to = s->from;
		if (now > atomic_load_explicit(&last_frame_ns, memory_order_relaxed) + QUIET_NS)
			break;
		/* the last one done has counted what it sent */
		if (atomic_load(&n_done) == opt.cores &&
			atomic_load(&total_returned) == atomic_load(&total_sent))
			break;
		if (opt.share)
			s->port->ops->idle(s->port, 1000);
	}
	take_released(s);
	return 0;
}

/* ---- echo ---- */

static void
echo_once(struct side *s)
{
	struct corq_frame *f[BURST];
	uint64_t t = corq_cycles();
	uint16_t n = s->port->ops->rx_burst(s->port, f, BURST), sent = 0;

	stage_add(&s->rx, t, n);
	for (uint16_t i = 0; i < n; i++) {
		memcpy(f[i]->data, f[i]->data + 6, 6);
		memcpy(f[i]->data + 6, s->port->mac, 6);
	}
	for (int tries = 0; sent < n && tries < 1000000; tries++) {
		t = corq_cycles();
		uint16_t took = s->port->ops->tx_burst(s->port, f + sent, (uint16_t)(n - sent));
		stage_add(&s->tx, t, took);
		sent += took;
		if (sent < n && opt.share)
			s->port->ops->idle(s->port, 1000);
	}
	s->returned += sent;
	if (sent < n)
		s->port->ops->free_bulk(s->port, f + sent, (uint16_t)(n - sent));
	if (n == 0 && opt.share)
		s->port->ops->idle(s->port, 1000);
}

static int
echo_main(void *arg)
{
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		echo_once(arg);
	return 0;
}

/* ---- main ---- */

static double
per_frame(const struct stage *s)
{
	return s->frames != 0 ? (double)s->cycles / (double)s->frames : 0;
}

static int
report(struct side *sides, struct corq_dev *dev)
{
	uint64_t sent = 0, returned = 0, bad = 0, released = 0, ext = 0, from = UINT64_MAX, to = 0;
	uint32_t out = corq_dev_frames_out(dev);
	const struct side *s = &sides[0];

	for (uint32_t i = 0; i < opt.cores; i++) {
		sent += sides[i].sent;
		returned += sides[i].returned;
		bad += sides[i].bad;
		released += sides[i].released;
		ext += sides[i].ext_sent;
		from = CORQ_MIN(from, sides[i].first_ns);
		to = CORQ_MAX(to, sides[i].last_ns);
	}
	printf("sent %lu returned %lu lost %ld bad %lu out %u released %lu Mpps %.3f  "
	       "cycles/frame: rx %.0f tx %.0f alloc %.0f free %.0f%s\n",
		sent, returned, (long)(sent - returned), bad, out, released,
		to > from ? (double)returned * 1e3 / (double)(to - from) : 0.0, per_frame(&s->rx),
		per_frame(&s->tx), per_frame(&s->alloc), per_frame(&s->free),
		corq_eal_on_huge_pages(eal) ? "" : "  (no huge pages)");
	return returned == sent && sent != 0 && bad == 0 && out == 0 && released == ext ? 0 : 1;
}

static void
parse_options(int argc, char **argv)
{
	static const struct option longs[] = {{"dev", 1, 0, 'd'}, {"mode", 1, 0, 'm'},
		{"count", 1, 0, 'n'}, {"cores", 1, 0, 'c'}, {"size", 1, 0, 's'},
		{"window", 1, 0, 'w'}, {"mtu", 1, 0, 'u'}, {"self", 0, 0, 'S'}, {"ext", 0, 0, 'e'},
		{"no-huge", 0, 0, 'H'}, {"share", 0, 0, 'p'}, {"check", 0, 0, 'k'},
		{"verbose", 0, 0, 'v'}, {"hint", 1, 0, 'h'}, {"wait", 1, 0, 't'},
		{"for", 1, 0, 'f'}, {0, 0, 0, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'd':
			opt.dev = optarg;
			break;
		case 'm':
			opt.mode = optarg;
			break;
		case 'n':
			opt.count = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			opt.cores = (uint32_t)atoi(optarg);
			break;
		case 's':
			opt.size = (uint32_t)atoi(optarg);
			break;
		case 'w':
			opt.window = (uint32_t)atoi(optarg);
			break;
		case 'u':
			opt.mtu = (uint32_t)atoi(optarg);
			break;
		case 'S':
			opt.self = true;
			break;
		case 'e':
			opt.ext = true;
			break;
		case 'H':
			opt.no_huge = true;
			break;
		case 'p':
			opt.share = true;
			break;
		case 'k':
			opt.check = true;
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 't':
			opt.wait_ms = (uint32_t)atoi(optarg);
			break;
		case 'f':
			opt.for_ms = (uint32_t)atoi(optarg);
			break;
		case 'h':
			opt.hint = optarg;
			break;
		default:
			exit(2);
		}
	}
	if (opt.dev == NULL && opt.hint == NULL) {
		fprintf(stderr, "port_echo: --dev DEVICE is needed\n");
		exit(2);
	}
}

static int
run(struct corq_dev *dev)
{
	uint32_t n = corq_dev_n_ports(dev), n_gen = strcmp(opt.mode, "gen") == 0 ? opt.cores : 0;
	static struct side sides[CORQ_EAL_CORES_MAX];
	char link_was = 1;

	for (uint32_t i = 0; i < n; i++) {
		sides[i].port = corq_dev_port(dev, i);
		sides[i].from = i * opt.count;
		sides[i].to = sides[i].from + opt.count;
	}
	for (uint32_t i = n; i-- > 0;)
		corq_eal_launch(eal, i, i >= n_gen ? echo_main : gen_main, &sides[i]);
	for (uint32_t i = 0; i < n_gen; i++)
		corq_eal_join(eal, i);
	while (n_gen == 0 && !atomic_load(&stop)) {
		if (link_was != corq_dev_link(dev)) {
			link_was = (char)!link_was;
			printf("link %s\n", link_was ? "up" : "down");
			fflush(stdout);
		}
		/* polled: a signal may come to another thread, a link's change to none */
		usleep(10000);
	}
	atomic_store(&stop, 1);
	for (uint32_t i = n_gen; i < n; i++)
		corq_eal_join(eal, i);
	if (n_gen != 0)
		return report(sides, dev);
	for (uint32_t i = 1; i < n; i++) {
		sides[0].returned += sides[i].returned;
		sides[0].port->n_rx_oversize += sides[i].port->n_rx_oversize;
	}
	printf("echoed %lu out %u oversize %lu\n", sides[0].returned, corq_dev_frames_out(dev),
		sides[0].port->n_rx_oversize);
	return 0;
}

_Noreturn static void
die(const char *err)
{
	fprintf(stderr, "port_echo: %s\n", err);
	exit(1);
}

int
main(int argc, char **argv)
{
	char err[CORQ_PORT_ERR_LEN] = "?", text[128];
	struct corq_log log = {.fn = print_log, .level = CORQ_LOG_WARN};
	struct corq_dev_spec spec;
	struct corq_dev *dev;
	bool gen;
	int rc;

	parse_options(argc, argv);
	if (opt.hint != NULL) {
		puts(corq_port_offload_hint(opt.hint, err, sizeof(err)));
		return 0;
	}
	gen = strcmp(opt.mode, "gen") == 0;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	memset(borrowed, 0xb0, sizeof(borrowed));
	if (corq_dev_parse(opt.dev, &spec, err, sizeof(err)) != 0)
		die(err);
	struct corq_dev_conf conf = {.n_queues = opt.cores,
		.n_peers = spec.kind == CORQ_DEV_LOOP && !opt.self ? opt.cores : 0,
		.mtu = opt.mtu,
		.wait_ms = opt.wait_ms,
		.log = &log};
	if (corq_dev_check(&spec, &conf, err, sizeof(err)) != 0)
		die(err);
	rc = corq_eal_check_cores(conf.n_queues + conf.n_peers, opt.share, err, sizeof(err));
	if (rc < 0)
		die(err);
	if (rc > 0)
		corq_log_write(&log, CORQ_LOG_WARN, "%s", err);
	struct corq_eal_conf eal_conf = {.n_cores = conf.n_queues + conf.n_peers,
		.share_cpus = opt.share,
		.huge = opt.no_huge ? CORQ_HUGE_OFF : CORQ_HUGE_AUTO,
		.mem_mb = corq_dev_mem_mb(&spec, &conf),
		.single_file = spec.zero_copy,
		.verbose = opt.verbose,
		.argc = argc - optind,
		.argv = argv + optind,
		.log = &log};
	if (opt.check && (seen = calloc(opt.count * opt.cores / 64 + 1, sizeof(*seen))) == NULL)
		die("too little memory");
	if (corq_eal_init(&eal, &eal_conf, err, sizeof(err)) != 0 ||
		corq_dev_open(&dev, eal, &spec, &conf, err, sizeof(err)) != 0 ||
		corq_dev_start(dev, err, sizeof(err)) != 0)
		die(err);
	fprintf(stderr, "port_echo: %s\n", corq_dev_describe(dev, text, sizeof(text)));
	rc = run(dev);
	if (!gen)
		rc = 0;
	corq_dev_close(dev);
	corq_eal_cleanup(eal);
	free((void *)(uintptr_t)seen);
	return rc;
}
