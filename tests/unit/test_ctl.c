/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ctl.c - an instance on threads: two cores a side that echo, hand-off between them, stopping
 * and figures from another thread (run this one under ThreadSanitizer); and every way in which a
 * start or a run can fail, with all that was taken given back.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctl_echo.h"
#include "ctl_wire.h"
#include "core/core.h"

#define LIMIT_S 60

/* ---- the thread that watches and stops ---- */

struct watch {
	struct corq_instance *inst;
	uint64_t until; /* connections ended, both sides */
	uint64_t n_reads;
	unsigned bad;
};

static void *
watch(void *arg)
{
	struct watch *w = arg;
	struct corq_stats last = {0}, s;
	uint64_t end = wire_now(NULL) + LIMIT_S * 1000000000ull;

	do {
		corq_stats(w->inst, &s);
		w->bad += s.rx_packets < last.rx_packets || s.conn_closed < last.conn_closed ||
			  s.turns < last.turns || s.handoff_in < last.handoff_in;
		for (unsigned i = 0; i < corq_cores(w->inst); i++) {
			struct corq_stats one;

			corq_core_stats(corq_core_at(w->inst, i), &one);
			w->bad += one.turns < last.turns / corq_cores(w->inst) / 1000000;
		}
		(void)corq_reason_count(w->inst, CORQ_R_TCP_NO_CONN);
		last = s;
		w->n_reads++;
		wire_idle(NULL, 20000);
	} while (s.conn_closed + s.conn_failed < w->until && wire_now(NULL) < end);
	w->bad += s.conn_closed < w->until;
	corq_stop(w->inst);
	return NULL;
}

static struct corq_config
small_config(unsigned cores)
{
	return (struct corq_config){.cores = cores,
		.seed = 7,
		.max_conns = 1024,
		.chunk_bytes_mb = 2,
		.rto_init_ms = 100,
		.timewait = CORQ_TW_LAB,
		.tw_time_ms = 1};
}

/* After the run, on this thread: turns until the last record has gone. */
static void
settle(struct corq_instance *inst)
{
	struct corq_stats s;

	for (int i = 0; i < 1000000; i++) {
		bool busy = false;

		for (unsigned c = 0; c < corq_cores(inst); c++)
			busy |= corq_core_turn(corq_core_at(inst, c));
		corq_stats(inst, &s);
		if (!busy && s.used_records + s.used_conns == 0)
			return;
	}
	fail_msg("%llu connections and %llu records never went", (unsigned long long)s.used_conns,
		(unsigned long long)s.used_records);
}

/* What every run leaves behind when it has come to rest: nothing; and the figures add up. */
static void
check_rest(struct corq_instance *inst)
{
	struct corq_stats sum, s, one;
	uint64_t rx = 0, opened = 0;

	corq_stats(inst, &sum);
	for (unsigned i = 0; i < corq_cores(inst); i++) {
		corq_core_usage(corq_core_at(inst, i), &s);
		corq_core_stats(corq_core_at(inst, i), &one);
		assert_int_equal(one.rx_packets, s.rx_packets);
		rx += s.rx_packets;
		opened += s.conn_opened_active;
	}
	assert_int_equal(sum.rx_packets, rx);
	assert_int_equal(sum.conn_opened_active, opened);
	assert_int_equal(sum.handoff_in, sum.handoff_out);
	assert_int_equal(sum.conn_failed, 0);
	assert_int_equal(sum.conn_live + sum.half_open_live + sum.fin_wait2_live, 0);
	assert_int_equal(sum.used_work + sum.used_txrec + sum.used_chunks + sum.used_blocks, 0);
	assert_int_equal(sum.used_handles + sum.used_held_frames, 0);
	assert_int_equal(sum.ports_used + sum.ports_waiting, 0);
}

static void
run_and_watch(struct app *app, unsigned n_clients)
{
	struct watch w = {.inst = app->inst, .until = 2ull * n_clients * CONNS};
	pthread_t thread;
	unsigned bad = 0;

	corq_store_relaxed_u32(&app->listening, 0);
	assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
	assert_int_equal(corq_run(app->inst, on_core, app), 0);
	pthread_join(thread, NULL);
	assert_int_equal(w.bad, 0);
	assert_true(w.n_reads > 1);
	for (unsigned i = 0; i < n_clients; i++) {
		bad += app->client[i].bad;
		assert_int_equal(app->client[i].n_ended, CONNS);
	}
	for (unsigned i = 0; i < WIRE_PORTS; i++)
		bad += app->server_bad[i];
	assert_int_equal(bad, 0);
}

static void
end(struct corq_instance *inst)
{
	struct wire *w = wire_test.last;

	corq_end(inst);
	assert_int_equal(w->n_closed, 1);
	assert_int_equal(w->n_alloc, 0);
	assert_int_equal(w->n_launched, 0);
	assert_int_equal(wire_frames_out(w), 0);
	wire_forget();
}

/* ---- tests ---- */

static void
two_cores_a_side(void **state)
{
	struct corq_config cfg = small_config(2);
	struct app *app = calloc(1, sizeof(*app));
	struct corq_stats s;
	uint64_t count, strayed = 0;
	char err[256] = "";

	(void)state;
	assert_int_equal(
		corq_instance_start(&wire_platform, &cfg, &app->inst, err, sizeof(err)), 0);
	assert_int_equal(corq_cores(app->inst), 4);
	assert_null(corq_core_at(app->inst, 4));
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(corq_core_index(corq_core_at(app->inst, i)), i);
		assert_int_equal(corq_core_side(corq_core_at(app->inst, i)),
			i < 2 ? CORQ_SIDE_A : CORQ_SIDE_B);
	}
	app->server = corq_address(app->inst, CORQ_SIDE_B, &count);
	assert_int_equal(count, 1);
	app->n_servers = 2;
	run_and_watch(app, 2);
	settle(app->inst);
	check_rest(app->inst);
	corq_stats(app->inst, &s);
	for (unsigned i = 0; i < 4; i++)
		strayed += wire_test.last->port[i].n_strayed;
	print_message("%llu packets, %llu handed over, %llu strayed, %llu retransmitted\n",
		(unsigned long long)s.rx_packets, (unsigned long long)s.handoff_in,
		(unsigned long long)strayed, (unsigned long long)s.segs_retransmitted);
	assert_true(s.handoff_in > s.rx_packets / 4); /* about half arrive wrong */
	assert_int_equal(s.handoff_dropped, 0);
	for (unsigned i = 0; i < 4; i++) { /* all four took part, and all four had to hand over */
		corq_core_stats(corq_core_at(app->inst, i), &s);
		assert_true(s.conn_established > 0 && s.handoff_out > 0 && s.handoff_in > 0);
	}
	end(app->inst);
	free(app);
}

static int
on_both_sides(struct corq_core *core, void *arg)
{
	int rc = serve(core, arg);

	assert_int_equal(corq_core_side(core), CORQ_SIDE_BOTH);
	load(core, arg);
	return rc;
}

/* Loop on one core: its port receives what it sends. The program turns the core itself. */
static void
both_ends_on_one_core(void **state)
{
	struct corq_config cfg = small_config(1);
	struct app *app = calloc(1, sizeof(*app));
	char err[256] = "";

	(void)state;
	wire_test.both_sides = true;
	assert_int_equal(
		corq_instance_start(&wire_platform, &cfg, &app->inst, err, sizeof(err)), 0);
	app->server = corq_address(app->inst, CORQ_SIDE_B, NULL);
	app->n_servers = 1;
	assert_int_equal(on_both_sides(corq_core_at(app->inst, 0), app), 0);
	for (int i = 0; i < 1000000 && app->client[0].n_ended < CONNS; i++)
		corq_core_turn(corq_core_at(app->inst, 0));
	assert_int_equal(app->client[0].n_ended, CONNS);
	assert_int_equal(app->client[0].bad, 0);
	settle(app->inst);
	check_rest(app->inst);
	end(app->inst);
	free(app);
}

/* A server's start function fails on one core: all cores end, and the run says why. */
static int
second_fails(struct corq_core *core, void *arg)
{
	(void)arg;
	return corq_core_index(core) == 2 ? -EPERM : 0;
}

static uint64_t
stop_at_once(struct corq_core *core, void *arg, uint64_t now)
{
	(void)core;
	(void)now;
	corq_stop(arg);
	return 0;
}

static int
stop_from_hook(struct corq_core *core, void *arg)
{
	if (corq_core_index(core) == 1)
		corq_core_set_hook(core, stop_at_once, arg);
	return 0;
}

static void
runs_that_end_early(void **state)
{
	struct corq_config cfg = small_config(2);
	struct corq_instance *inst;
	char err[256] = "";

	(void)state;
	assert_int_equal(corq_instance_start(&wire_platform, &cfg, &inst, err, sizeof(err)), 0);
	assert_int_equal(corq_run(inst, second_fails, NULL), -EPERM);
	end(inst);
	assert_int_equal(corq_instance_start(&wire_platform, &cfg, &inst, err, sizeof(err)), 0);
	assert_int_equal(corq_run(inst, stop_from_hook, inst), 0);
	end(inst);
	for (unsigned launch = 1; launch <= 4; launch++) {
		assert_int_equal(
			corq_instance_start(&wire_platform, &cfg, &inst, err, sizeof(err)), 0);
		wire_test.launch = launch;
		assert_int_equal(corq_run(inst, NULL, NULL), -EAGAIN);
		end(inst);
	}
}

static void
refused(struct corq_config *cfg, int error, const char *says)
{
	struct corq_instance *inst = NULL;
	char err[256] = "";

	assert_int_equal(corq_instance_start(&wire_platform, cfg, &inst, err, sizeof(err)), error);
	if (!strstr(err, says) || strchr(err, '\n'))
		fail_msg("'%s' does not say '%s' in one line", err, says);
	if (wire_test.last) {
		assert_int_equal(wire_test.last->n_closed, 1);
		assert_int_equal(wire_test.last->n_alloc, 0);
	}
	wire_forget();
}

static void
starts_that_fail(void **state)
{
	struct corq_config cfg = small_config(2);

	(void)state;
	wire_test.open = ENODEV;
	refused(&cfg, -ENODEV, "no machine today");
	wire_test.start = ENETDOWN;
	refused(&cfg, -ENETDOWN, "the link is down");
	wire_test.alloc = 1;
	refused(&cfg, -ENOMEM, "max_handles");
	for (unsigned i = 2; i <= 5; i++) {
		wire_test.alloc = i;
		refused(&cfg, -ENOMEM, "--max-conns");
	}
	wire_test.alloc = 6;
	refused(&cfg, -ENOMEM, "hand-off");
	wire_test.alloc = 7;
	refused(&cfg, -ENOMEM, "hand-off");
}

static void
bad_configuration(void **state)
{
	struct corq_config cfg;

	(void)state;
#define REFUSED(says, ...)                                                                         \
	do {                                                                                       \
		cfg = (struct corq_config){.seed = 1, __VA_ARGS__};                                \
		refused(&cfg, -EINVAL, says);                                                      \
	} while (0)
	REFUSED("--ip is missing", .dev = "veth:eth0");
	REFUSED("--ip 'nonsense'", .ip = "nonsense");
	REFUSED("--ip '10.0.0.1'", .ip = "10.0.0.1");
	REFUSED("--ip '10.0.0.9-10.0.0.1/24'", .ip = "10.0.0.9-10.0.0.1/24");
	REFUSED("a number from 1 to 32", .ip = "10.77.0.2/33");
	REFUSED("a number from 1 to 32", .ip = "10.77.0.2/0");
	REFUSED("a number from 1 to 32", .ip = "10.77.0.2/");
	REFUSED("a number from 1 to 32", .ip = "10.77.0.2-10.77.0.9/255.255.255.0");
	REFUSED("leaves the network", .ip = "10.77.0.2-10.77.1.2/24");
	REFUSED("--ip 'fd00::5/64': IPv6", .ip = "fd00::5/64");
	REFUSED("10.77.0.0 is the network address", .ip = "10.77.0.0/24");
	REFUSED("10.77.0.255 is the broadcast address", .ip = "10.77.0.255/24");
	REFUSED("10.77.0.255 is the broadcast address", .ip = "10.77.0.9-10.77.0.255/24");
	REFUSED("10.77.0.4 is the network address", .ip = "10.77.0.4-10.77.0.6/30");
	REFUSED("10.0.0.0 is the network address", .peer_ip = "10.0.0.0/16");
	REFUSED("0.0.0.1 is an address of no host", .ip = "0.0.0.1/8");
	REFUSED("127.0.0.2 is a loopback", .ip = "127.0.0.2/8");
	REFUSED("127.0.0.0 is a loopback", .ip = "126.0.0.1-127.9.0.1/1");
	REFUSED("224.0.0.0 is a multicast", .ip = "192.0.2.1-225.0.0.1/1");
	REFUSED("239.1.2.3 is a multicast", .ip = "239.1.2.3/24");
	REFUSED("255.255.255.255 is the broadcast", .ip = "255.255.255.255/32");
	REFUSED("--gw 10.0.255.255: it is the broadcast", .gw = "10.0.255.255");
	REFUSED("--gw 10.0.0.0: it is the network", .gw = "10.0.0.0");
	REFUSED("--peer-ip 'x'", .peer_ip = "x");
	REFUSED("--peer-ip", .peer_ip = "11.0.0.1/16");
	REFUSED("--gw 'up'", .gw = "up");
	REFUSED("--gw 11.0.0.1", .gw = "11.0.0.1");
	REFUSED("rto_max_ms", .rto_min_ms = 100, .rto_max_ms = 50);
	REFUSED("delack_ms", .delack_ms = 501);
	REFUSED("ports 9-8", .port_first = 9, .port_last = 8);
	REFUSED("1 GiB", .snd_buf = (1u << 30) + 1);
	REFUSED("max_conns 15", .max_conns = 15);
	REFUSED("local addresses", .ip = "10.0.0.1-10.1.0.0/8", .peer_ip = "10.1.0.1/8");
#undef REFUSED
}

/* RFC 3021: a network of two has neither a network nor a broadcast address. */
static void
small_networks(void **state)
{
	static const char *const ips[][2] = {{"10.77.0.0/31", "10.77.0.1/31"},
		{"10.77.0.1/30", "10.77.0.2/30"}, {"240.0.0.1/24", "240.0.0.2/24"},
		{"10.77.0.1-10.77.0.9/24", "10.77.0.254/24"}};
	struct corq_addr addr;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct corq_config cfg = small_config(1);
		struct corq_instance *inst;
		char err[256] = "";

		cfg.ip = ips[i][0];
		cfg.peer_ip = ips[i][1];
		if (corq_instance_start(&wire_platform, &cfg, &inst, err, sizeof(err)) != 0)
			fail_msg("%s, %s: %s", cfg.ip, cfg.peer_ip, err);
		assert_int_equal(corq_addr_parse("10.77.0.255", &addr), 0);
		assert_int_equal(corq_address_unfit(inst, &addr) != NULL, i == 3);
		assert_int_equal(corq_addr_parse("10.77.0.1", &addr), 0);
		assert_null(corq_address_unfit(inst, &addr));
		assert_int_equal(corq_addr_parse("127.0.0.1", &addr), 0);
		assert_non_null(corq_address_unfit(inst, &addr));
		end(inst);
	}
}

static void
registrations_have_a_bound(void **state)
{
	struct corq_config cfg = small_config(1);
	struct corq_instance *inst;
	static uint8_t bytes[CORQ_MAX_REGIONS];
	struct corq_mem *mem, *last = NULL;
	char err[256] = "";

	(void)state;
	assert_int_equal(corq_instance_start(&wire_platform, &cfg, &inst, err, sizeof(err)), 0);
	for (unsigned i = 0; i < CORQ_MAX_REGIONS; i++) {
		assert_int_equal(corq_mem_register(inst, bytes + i, 1, NULL, NULL, &mem), 0);
		assert_ptr_not_equal(mem, last);
		last = mem;
	}
	assert_int_equal(corq_mem_register(inst, bytes, 1, NULL, NULL, &mem), -ENOBUFS);
	end(inst);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_cores_a_side),
		cmocka_unit_test(both_ends_on_one_core),
		cmocka_unit_test(runs_that_end_early),
		cmocka_unit_test(starts_that_fail),
		cmocka_unit_test(bad_configuration),
		cmocka_unit_test(small_networks),
		cmocka_unit_test(registrations_have_a_bound),
	};

	return cmocka_run_group_tests_name("ctl", tests, NULL, NULL);
}
