/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * churn.c - N short connections between two cores over a wire that loses nothing: open, request,
 * response with FIN, close. The server closes first, so its records fill up and are taken over by
 * the next SYN of their tuple.
 *
 * Checked: each connection ends in order with its bytes, the packets a connection, nothing is sent
 * twice, the process does not grow after the first tenth, and when the records' time is over every
 * pool of both cores is empty.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHURN_LIVE  64
#define CHURN_STEP  (20 * CORQ_NS_PER_US)
#define REQUEST     100u
#define RESPONSE    300u
#define GROWTH_KB   2048 /* allocator noise */
#define PACKETS_MAX 6.01 /* a few share no turn */

struct churn {
	struct testcore tc[2]; /* [0] client, [1] server */
	struct corq_check check[2];
	uint64_t n, opened, done, served, bytes;
	uint32_t live;
	const char *wrong;
};

static struct churn *
churn_of(struct corq_core *core)
{
	return corq_core_user(core);
}

static void
client_open(struct corq_core *core, struct corq_conn *conn)
{
	uint8_t request[REQUEST] = {0};

	if (corq_conn_write(core, conn, request, sizeof(request), 0) != sizeof(request))
		churn_of(core)->wrong = "request came short";
}

static void
client_data(struct corq_core *core, struct corq_conn *conn)
{
	size_t n = corq_conn_readable(conn);

	churn_of(core)->bytes += n;
	corq_conn_consume(core, conn, n);
}

static void
client_fin(struct corq_core *core, struct corq_conn *conn)
{
	corq_conn_close(core, conn);
}

static void
client_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct churn *c = churn_of(core);

	(void)conn;
	if (reason != 0)
		c->wrong = "a client's connection did not end in order";
	c->done++;
	c->live--;
}

static void
server_data(struct corq_core *core, struct corq_conn *conn)
{
	uint8_t response[RESPONSE] = {0};

	if (corq_conn_readable(conn) < REQUEST)
		return;
	corq_conn_consume(core, conn, corq_conn_readable(conn));
	if (corq_conn_write(core, conn, response, sizeof(response), 0) != sizeof(response))
		churn_of(core)->wrong = "response came short";
	corq_conn_close(core, conn);
}

static void
server_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct churn *c = churn_of(core);

	(void)conn;
	if (reason != 0)
		c->wrong = "a server's connection did not end in order";
	c->served++;
}

static const struct corq_ops client_ops = {
	.on_open = client_open,
	.on_data = client_data,
	.on_peer_fin = client_fin,
	.on_close = client_close,
};
static const struct corq_ops server_ops = {.on_data = server_data, .on_close = server_close};

static int
churn_init(struct churn *c, uint64_t seed)
{
	struct corq_listen_opts l = {.port = 80, .ops = &server_ops};
	struct corq_listener *out;
	char err[256];

	for (int i = 0; i < 2; i++) {
		struct testcore_opts o = {
			.addr = i ? TESTCORE_PEER : TESTCORE_ADDR,
			.no_arp = true,
			.seed = seed + (unsigned)i,
			.cfg = {.max_conns = 4 * CHURN_LIVE, .max_time_wait = 70000, .seed = seed},
			.port = {.mac = {2, 0, 0, 0, 0, (uint8_t)(i + 1)}},
		};

		if (testcore_init(&c->tc[i], &o, err, sizeof(err)) != 0 ||
			!corq_check_init(&c->check[i], &c->tc[i].core->eng)) {
			printf("no core: %s\n", err);
			return -1;
		}
		/* While ARP is unresolved only the first packets are kept. */
		testcore_neighbour(&c->tc[i], i ? TESTCORE_ADDR : TESTCORE_PEER,
			(const uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(2 - i)});
		corq_core_set_user(c->tc[i].core, c);
	}
	return corq_core_listen(c->tc[1].core, &l, &out);
}

static void
open_some(struct churn *c)
{
	struct corq_connect_opts o = {
		.raddr = testcore_addr(TESTCORE_PEER), .rport = 80, .ops = &client_ops};
	struct corq_conn *conn;

	while (c->live < CHURN_LIVE && c->opened < c->n && !c->wrong) {
		if (corq_core_connect(c->tc[0].core, &o, &conn) != 0)
			c->wrong = "connect was refused";
		c->opened++;
		c->live++;
	}
}

static bool
turn(struct churn *c, int i)
{
	bool busy = testcore_turn(&c->tc[i]);
	struct memport_pkt *p;

	while ((p = testcore_take(&c->tc[i])) != NULL) {
		if (!memport_inject(c->tc[!i].mp, p->bytes, p->len))
			c->wrong = "a packet was dropped";
		free(p);
	}
	if (memport_violation(c->tc[i].mp))
		c->wrong = memport_violation(c->tc[i].mp);
	return busy;
}

static void
check_both(struct churn *c, enum corq_check_depth depth)
{
	for (int i = 0; i < 2; i++)
		if (corq_check_engine(&c->check[i], &c->tc[i].core->eng, depth) != 0)
			c->wrong = c->check[i].msg;
}

static long
resident_kb(void)
{
	long size, rss = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &size, &rss) != 2)
		rss = 0;
	if (f)
		fclose(f);
	return rss * 4;
}

/* Both cores rest until nothing is due any more. */
static void
run_out(struct churn *c)
{
	for (int n = 0; n < 2000000; n++) {
		uint64_t t = CORQ_MIN(testcore_next(&c->tc[0]), testcore_next(&c->tc[1]));

		if (t == UINT64_MAX)
			return;
		for (int i = 0; i < 2; i++) {
			memport_set_clock(c->tc[i].mp, CORQ_MAX(t, memport_now(c->tc[i].mp)));
			turn(c, i);
		}
	}
	c->wrong = "not quiet at the end";
}

static void
check_end(struct churn *c)
{
	struct corq_stats st[2];
	double packets;

	for (int i = 0; i < 2; i++)
		corq_core_usage(c->tc[i].core, &st[i]);
	packets = (double)(st[0].tx_packets + st[1].tx_packets) / (double)c->n;
	printf("churn: %.4f packets a connection; server: %llu records made, %llu taken over by a "
	       "SYN, %llu evicted, %llu live\n",
		packets, (unsigned long long)st[1].tw_entered,
		(unsigned long long)st[1].tw_recycled_syn, (unsigned long long)st[1].tw_evicted,
		(unsigned long long)st[1].time_wait_live);
	if (c->done != c->n || c->served != c->n || c->bytes != c->n * RESPONSE)
		c->wrong = "connections or bytes are missing";
	if (packets > PACKETS_MAX)
		c->wrong = "more than 6 packets a connection";
	for (int i = 0; i < 2; i++)
		if (st[i].segs_retransmitted || st[i].syn_retransmitted || st[i].tw_evicted)
			c->wrong = "sent twice, or records evicted";
	if (c->wrong)
		return;
	run_out(c);
	for (int i = 0; i < 2; i++) {
		if (testcore_leaks(&c->tc[i], stdout))
			c->wrong = "leaks";
		if (corq_check_empty(&c->check[i], &c->tc[i].core->eng) != 0)
			c->wrong = c->check[i].msg;
	}
}

int
sim_churn(const struct sim_options *o, uint64_t seed)
{
	struct churn *c = calloc(1, sizeof(*c));
	long rss_early = 0, rss_late;
	clock_t start = clock();
	uint64_t rounds = 0;
	int rc;

	c->n = o->churn;
	if (churn_init(c, seed) != 0)
		return 1;
	while (c->done < c->n && !c->wrong) {
		open_some(c);
		for (int i = 0; i < 2; i++)
			turn(c, i);
		for (int i = 0; i < 2; i++)
			memport_advance(c->tc[i].mp, CHURN_STEP);
		if (++rounds % 1024 == 0)
			check_both(c, rounds % 16384 ? CORQ_CHECK_QUICK : CORQ_CHECK_FULL);
		if (!rss_early && c->done > 100000 && c->done > c->n / 10)
			rss_early = resident_kb();
		if (rounds > 100 * (c->n + 1000))
			c->wrong = "connections do not come to an end";
	}
	rss_late = resident_kb();
	printf("churn: %llu connections in %.2f s, resident %ld KB early, %ld KB late\n",
		(unsigned long long)c->done, (double)(clock() - start) / CLOCKS_PER_SEC, rss_early,
		rss_late);
	if (rss_early && rss_late > rss_early + GROWTH_KB)
		c->wrong = "memory grows";
	if (!c->wrong)
		check_end(c);
	printf("churn: %s\n", c->wrong ? c->wrong : "ok");
	rc = c->wrong ? 1 : 0;
	for (int i = 0; i < 2; i++) {
		testcore_end(&c->tc[i]);
		corq_check_end(&c->check[i]);
	}
	free(c);
	return rc;
}
