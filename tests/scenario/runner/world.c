/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - what a script runs in: the core, the trace and how a failure is told, the flows, the
 * checks of every packet that is sent, and the end, when nothing may be left over. See world.h.
 */
#include "world.h"
#include "net/seg.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PEER_ISN 0x20000000u
#define DEFAULT_PPORT    40000
/* Longest life of a record, SYN-ACK retries and 60 s waits included, and some more. */
#define CLEAN_NS         (400 * CORQ_NS_PER_S)

static struct world *world_now; /* for the signal handler of main.c */

uint64_t
world_time(const struct world *w)
{
	return memport_now(w->tc.mp) - w->start_ns;
}

/* ---- trace and failure ---- */

void
world_trace(struct world *w, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "%12.6f  ", w->up ? (double)world_time(w) / 1e9 : 0.0);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (w->verbose)
		printf("%s\n", line);
	if (w->n_trace == WORLD_TRACE_MAX) {
		w->dropped_trace++;
		free(w->trace[0]);
		memmove(w->trace, w->trace + 1, (w->n_trace - 1) * sizeof(*w->trace));
		w->n_trace--;
	}
	w->trace[w->n_trace] = strdup(line);
	if (w->trace[w->n_trace++] == NULL)
		abort();
}

static void
dump(struct world *w)
{
	char path[512];
	const char *base = strrchr(w->script->name, '/');

	if (!w->verbose) {
		if (w->dropped_trace)
			printf("  (%llu older lines)\n", (unsigned long long)w->dropped_trace);
		for (unsigned i = 0; i < w->n_trace; i++)
			printf("%s\n", w->trace[i]);
	}
	snprintf(path, sizeof(path), "%s/%s.pcap", w->pcap_dir, base ? base + 1 : w->script->name);
	if (pcapbuf_write(w->pcap, path) == 0)
		printf("  capture: %s\n", path);
	fflush(stdout);
}

void
world_dump_now(void)
{
	if (world_now == NULL)
		return;
	if (world_now->at != NULL)
		printf("%s:%d: the core died in: %s\n", world_now->at->file, world_now->at->line,
			world_now->at->text);
	dump(world_now);
}

_Noreturn void
world_fail(struct world *w, const struct stmt *st, const char *fmt, ...)
{
	va_list ap;

	if (st != NULL)
		printf("%s:%d: failed: %s\n", st->file, st->line, st->text);
	else
		printf("%s: failed at the end\n", w->script->name);
	printf("  %.6f: ", w->up ? (double)world_time(w) / 1e9 : 0.0);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	dump(w);
	longjmp(w->fail, 1);
}

/* ---- flows ---- */

struct flow *
world_flow_of(struct world *w, const struct corq_addr *peer, uint16_t pport,
	const struct corq_addr *local, uint16_t lport)
{
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		if (f->pport == pport && f->lport == lport && corq_addr_eq(&f->paddr, peer) &&
			corq_addr_eq(&f->laddr, local))
			return f;
	return NULL;
}

struct flow *
world_flow_new(struct world *w, const char *name)
{
	struct flow *f = calloc(1, sizeof(*f)), **link = &w->flows;

	if (f == NULL)
		abort();
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->paddr = testcore_addr(TESTCORE_PEER);
	f->laddr = testcore_addr(TESTCORE_ADDR);
	f->pport = DEFAULT_PPORT;
	if (w->flows != NULL)
		f->lport = w->flows->lport;
	while (*link != NULL)
		link = &(*link)->next;
	*link = f;
	return f;
}

/* ---- packets of the core ---- */

static void
learn(struct flow *f, const struct packet *p)
{
	const struct opt *ts = NULL;

	for (unsigned i = 0; i < p->n_opts; i++)
		if (p->opts[i].kind == OPT_TS)
			ts = &p->opts[i];
	if (ts != NULL) {
		if (!f->have_our_ts)
			f->our_ts_base = (uint32_t)ts->v[0].lo;
		f->have_our_ts = true;
		f->our_ts_last = (uint32_t)ts->v[0].lo;
	}
	if (!(p->flags & CORQ_TH_SYN)) {
		uint32_t end = p->seq + p->payload_len + !!(p->flags & CORQ_TH_FIN);

		if ((int32_t)(end - f->our_end) > 0)
			f->our_end = end;
		return;
	}
	f->our_end = p->seq + 1;
	if (!f->have_our_isn)
		f->our_isn = p->seq;
	f->have_our_isn = true;
	f->our_syn = p->seq;
	f->our_ts = ts != NULL;
}

/* Bytes must be those that the program wrote there, or that another flow's peer sent (splice). */
static void
check_payload(struct world *w, const struct flow *f, const struct packet *p)
{
	uint8_t (*byte_at)(uint64_t) = f->spliced ? wire_pattern_in : wire_pattern_out;
	uint32_t off = p->seq - f->our_syn - 1;

	for (uint32_t i = 0; i < p->payload_len; i++)
		if (p->payload[i] != byte_at(off + i))
			world_fail(w, w->at, "sent byte %u is 0x%02x, not 0x%02x", off + i,
				p->payload[i], byte_at(off + i));
}

/* Sees every packet first: whatever the script expects, it must be a good packet. */
static void
on_tx(void *arg, const struct memport_pkt *pkt)
{
	struct world *w = arg;
	struct packet p;
	struct flow *f = NULL;
	const char *bad = wire_decode(pkt->bytes, pkt->len, pkt->at_ns, &p);
	char line[400];

	if (bad != NULL)
		world_fail(w, w->at, "a packet was sent that is wrong: %s", bad);
	if (p.kind == PACKET_TCP) {
		f = world_flow_of(w, &p.dst, p.dport, &p.src, p.sport);
		if (f != NULL)
			learn(f, &p);
	}
	wire_format(&p, f, true, line, sizeof(line));
	world_trace(w, "  ->  %s", line);
	if (p.kind != PACKET_TCP)
		return;
	if (memcmp(pkt->bytes, TESTCORE_PEER_MAC, 6) != 0)
		world_fail(w, w->at, "sent to another Ethernet address than the peer's");
	if (p.urg != 0 || (p.flags & CORQ_TH_URG))
		world_fail(w, w->at, "an urgent pointer was sent");
	if (f != NULL && f->have_our_isn && p.payload_len != 0)
		check_payload(w, f, &p);
}

_Noreturn void
world_fail_unexpected(struct world *w, const struct stmt *st)
{
	const struct memport_pkt *pkt = w->tc.tx_first;
	struct packet p;
	char line[400];

	wire_decode(pkt->bytes, pkt->len, pkt->at_ns, &p);
	wire_format(
		&p, world_flow_of(w, &p.dst, p.dport, &p.src, p.sport), true, line, sizeof(line));
	world_fail(w, st, "a packet was sent at %.6f that nothing expected:\n    %s",
		(double)(pkt->at_ns - w->start_ns) / 1e9, line);
}

/* ---- start and end ---- */

static void
release(struct corq_core *core, void *arg, uint64_t cookie)
{
	struct world *w = arg;

	(void)core;
	(void)cookie;
	w->released++;
}

void
world_start(struct world *w, const struct stmt *st)
{
	char err[256] = "";

	w->at = st;
	if (testcore_init(&w->tc, &w->opts, err, sizeof(err)) != 0)
		world_fail(w, st, "no core: %s", err);
	w->up = true;
	w->start_ns = memport_now(w->tc.mp);
	memport_set_pcap(w->tc.mp, w->pcap, true, true);
	w->tc.on_tx = on_tx;
	w->tc.on_tx_arg = w;
	if (!corq_check_init(&w->check, &w->tc.core->eng))
		abort();
	corq_core_set_user(w->tc.core, w);
	corq_core_set_hook(w->tc.core, world_hook, w);
	w->region = testcore_region(&w->tc, w->pattern, WORLD_PATTERN + 251, release, w);
	if (w->arp_static)
		testcore_neighbour(&w->tc, TESTCORE_PEER, TESTCORE_PEER_MAC);
	w->cur = world_flow_new(w, "main");
}

void
world_check_end(struct world *w)
{
	w->at = NULL;
	if (w->tc.tx_first != NULL)
		world_fail_unexpected(w, NULL);
	for (unsigned i = 0; i < w->n_events; i++) {
		const struct event *e = &w->events[i];

		if (!e->taken && e->kind == EVENT_CLOSE && e->arg != 0)
			world_fail(w, NULL, "on_close (%s) of flow '%s' was not expected",
				strerrorname_np(-e->arg), e->flow->name);
	}
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		for (int k = 0; k < EVENT_COUNT; k++)
			if (f->on[k] != NULL)
				world_fail(w, f->on[k], "the callback never came");
}

static uint64_t
clean_hook(struct corq_core *core, void *arg, uint64_t now_ns)
{
	struct world *w = arg;

	(void)now_ns;
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		if (f->conn != NULL)
			corq_conn_abort(core, f->conn);
	for (unsigned i = 0; i < WORLD_LISTENERS; i++)
		if (w->listeners[i] != NULL)
			corq_listener_close(core, w->listeners[i]);
	memset(w->listeners, 0, sizeof(w->listeners));
	corq_core_set_hook(core, NULL, NULL);
	return 0;
}

void
world_clean_up(struct world *w)
{
	uint64_t end = memport_now(w->tc.mp) + CLEAN_NS;

	w->cleaning = true;
	world_trace(w, "the script is over: abort all, wait, count");
	memport_set_tx_room(w->tc.mp, UINT32_MAX);
	memport_limit_tx(w->tc.mp, UINT32_MAX);
	memport_limit_rx(w->tc.mp, UINT32_MAX);
	memport_set_backlog(w->tc.mp, 0);
	corq_core_set_hook(w->tc.core, clean_hook, w);
	testcore_turn(&w->tc);
	world_settle(w, NULL);
	testcore_run_to(&w->tc, end, false);
	world_drain(w);
	for (struct flow *f = w->flows; f != NULL; f = f->next)
		if (f->conn != NULL)
			world_fail(w, NULL, "flow '%s' was aborted and had no on_close", f->name);
	if (corq_check_engine(&w->check, &w->tc.core->eng, CORQ_CHECK_FULL) != 0 ||
		corq_check_empty(&w->check, &w->tc.core->eng) != 0)
		world_fail(w, NULL, "the engine at the end: %s", w->check.msg);
	if (testcore_leaks(&w->tc, stdout) != 0)
		world_fail(w, NULL, "something leaked (see above)");
	if (memport_violation(w->tc.mp) != NULL)
		world_fail(w, NULL, "the device was misused: %s", memport_violation(w->tc.mp));
}

void
world_init(struct world *w, struct script *s, bool verbose, const char *pcap_dir)
{
	memset(w, 0, sizeof(*w));
	world_now = w;
	w->script = s;
	w->verbose = verbose;
	w->pcap_dir = pcap_dir;
	w->win = 65535;
	w->peer_isn = DEFAULT_PEER_ISN;
	w->arp_static = w->auto_ts = true;
	w->pcap = pcapbuf_new(65536);
	w->trace = calloc(WORLD_TRACE_MAX, sizeof(*w->trace));
	w->pattern = malloc(WORLD_PATTERN + 251);
	if (w->trace == NULL || w->pattern == NULL)
		abort();
	for (uint32_t i = 0; i < WORLD_PATTERN + 251; i += 251) /* its period */
		for (uint32_t j = 0; j < 251 && i + j < WORLD_PATTERN + 251; j++)
			w->pattern[i + j] = i ? w->pattern[j] : wire_pattern_out(j);
}

void
world_free(struct world *w)
{
	struct flow *f;

	world_now = NULL;
	while ((f = w->flows) != NULL) {
		w->flows = f->next;
		free(f);
	}
	if (w->up) {
		corq_check_end(&w->check);
		testcore_end(&w->tc);
	}
	for (unsigned i = 0; i < w->n_trace; i++)
		free(w->trace[i]);
	free(w->trace);
	free(w->events);
	free(w->pattern);
	pcapbuf_free(w->pcap);
}
