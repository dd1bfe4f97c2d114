/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_socket.c - the socket-like API on an instance: what corq_socket takes and refuses, limits,
 * counts, threads that come, go and end without a word, NUMA nodes of a machine that has three (run
 * this one under ThreadSanitizer).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctl_wire.h"
#include "ctl/instance.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define BLOCK 4096u

static struct corq_instance *inst;

static void
start(uint32_t max_handles)
{
	struct corq_config config = {
		.max_handles = max_handles, .seed = 1, .max_conns = 256, .chunk_bytes_mb = 1};
	char err[200];

	if (corq_instance_start(&wire_platform, &config, &inst, err, sizeof(err)) != 0)
		fail_msg("%s", err);
}

static void
end(void)
{
	struct wire *w = wire_test.last;

	corq_end(inst);
	assert_int_equal(w->n_alloc, 0);
	assert_int_equal(wire_frames_out(w), 0);
	wire_forget();
}

static struct corq_handle_counts
counts(void)
{
	struct corq_handle_counts c;

	corq_handle_counts(inst, &c);
	return c;
}

static struct corq_att *
attach(uint32_t max_handles, enum corq_order order)
{
	struct corq_attach_opts opts = {max_handles, order};
	struct corq_att *att = NULL;

	assert_int_equal(corq_attach(inst, &opts, &att), 0);
	return att;
}

static corq_h
tcp(struct corq_att *att)
{
	corq_h h = CORQ_H_NONE;

	assert_int_equal(corq_socket(att, AF_INET, SOCK_STREAM, 0, &h), 0);
	assert_true(h != CORQ_H_NONE);
	return h;
}

static void
what_a_socket_may_be(void **state)
{
	static const struct {
		int domain, type, protocol, rc;
	} c[] = {
		{AF_INET, SOCK_STREAM, 0, 0},
		{AF_INET, SOCK_STREAM, IPPROTO_TCP, 0},
		{AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, 0},
		{AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP, 0},
		{AF_INET6, SOCK_STREAM, 0, -EAFNOSUPPORT},
		{AF_UNIX, SOCK_STREAM, 0, -EAFNOSUPPORT},
		{-1, SOCK_STREAM, 0, -EAFNOSUPPORT},
		{AF_INET, SOCK_DGRAM, 0, -ESOCKTNOSUPPORT},
		{AF_INET, 0, 0, -ESOCKTNOSUPPORT},
		{AF_INET, SOCK_STREAM | 0x10, 0, -EINVAL},
		{AF_INET, -1, 0, -EINVAL},
		{AF_INET, SOCK_STREAM, IPPROTO_UDP, -EPROTONOSUPPORT},
		{AF_INET, SOCK_STREAM, -1, -EPROTONOSUPPORT},
	};
	struct corq_att *att;

	(void)state;
	start(BLOCK);
	att = attach(0, CORQ_ORDER_LOWEST);
	for (size_t i = 0; i < CORQ_ARRAY_LEN(c); i++) {
		corq_h h = 77;

		assert_int_equal(
			corq_socket(att, c[i].domain, c[i].type, c[i].protocol, &h), c[i].rc);
		if (c[i].rc == 0) {
			assert_int_equal(corq_close(att, h), 0);
			assert_int_equal(corq_close(att, h), -EBADF);
		} else {
			assert_true(h == 77);
		}
	}
	assert_int_equal(corq_close(att, CORQ_H_NONE), -EBADF);
	assert_int_equal(corq_close(att, UINT64_MAX), -EBADF);
	assert_int_equal(counts().open, 0);
	corq_detach(att);
	end();
}

static void
limits(void **state)
{
	struct corq_attach_opts bad[] = {{0, (enum corq_order)2}, {CORQ_THREAD_HANDLES + 1, 0}};
	struct corq_att *att, *other;
	char err[200];
	corq_h h, last;

	(void)state;
	start(2 * BLOCK);
	assert_int_equal(corq_attach(inst, &bad[0], &att), -EINVAL);
	assert_int_equal(corq_attach(inst, &bad[1], &att), -EINVAL);
	att = attach(10, CORQ_ORDER_LOWEST);
	other = attach(0, CORQ_ORDER_FAST);
	for (int i = 0; i < 10; i++)
		last = tcp(att);
	assert_int_equal(corq_socket(att, AF_INET, SOCK_STREAM, 0, &h), -EMFILE);
	assert_int_equal(counts().emfile, 1);
	assert_int_equal(corq_close(other, last), 0);
	assert_true(tcp(att) != last);
	for (uint32_t i = 0; i < BLOCK; i++)
		tcp(other);
	assert_int_equal(corq_socket(other, AF_INET, SOCK_STREAM, 0, &h), -EMFILE);
	assert_int_equal(counts().open, BLOCK + 10);
	assert_int_equal(counts().stranded, BLOCK - 10);
	assert_int_equal(counts().starved, 1);
	assert_int_equal(counts().capacity, 2 * BLOCK);
	assert_int_equal(counts().threads, 2);
	corq_detach(att); /* with ten open: they are closed, and the block is there */
	assert_int_equal(counts().open, BLOCK);
	assert_int_equal(counts().blocks_lent, 1);
	tcp(other);
	corq_detach(other);
	end();
	assert_int_equal(corq_instance_start(&wire_platform,
				 &(struct corq_config){.max_handles = CORQ_MAX_HANDLES + 1}, &inst,
				 err, sizeof(err)),
		-EINVAL);
	assert_non_null(strstr(err, "67108864"));
	wire_forget();
}

static void
threads_run_out(void **state)
{
	static struct corq_att *att[CORQ_MAX_THREADS];
	struct corq_att *more;

	(void)state;
	start(BLOCK);
	for (int i = 0; i < CORQ_MAX_THREADS; i++)
		att[i] = attach(0, CORQ_ORDER_LOWEST);
	assert_int_equal(corq_attach(inst, NULL, &more), -EUSERS);
	corq_detach(att[500]);
	assert_int_equal(corq_attach(inst, NULL, &more), 0);
	att[500] = more;
	for (int i = 0; i < CORQ_MAX_THREADS; i++)
		corq_detach(att[i]);
	assert_int_equal(counts().threads, 0);
	end();
}

/* ---- threads that end ---- */

struct guest {
	uint32_t n; /* sockets */
	unsigned node;
	bool detach;
	corq_h *h;
};

static void *
guest(void *arg)
{
	struct guest *g = arg;
	struct corq_att *att;

	wire_node = g->node;
	att = attach(0, CORQ_ORDER_LOWEST);
	for (uint32_t i = 0; i < g->n; i++)
		g->h[i] = tcp(att);
	if (g->detach)
		corq_detach(att);
	else
		corq_thread_idle(att); /* it falls asleep and never wakes */
	return NULL;
}

static void
run_guest(struct guest *g)
{
	pthread_t thread;

	g->h = malloc(g->n * sizeof(*g->h));
	assert_int_equal(pthread_create(&thread, NULL, guest, g), 0);
	pthread_join(thread, NULL);
}

static void
a_thread_that_ends_loses_its_handles(void **state)
{
	struct corq_att *att;

	(void)state;
	start(4 * BLOCK);
	att = attach(0, CORQ_ORDER_LOWEST);
	for (int detach = 0; detach < 2; detach++) {
		struct guest g = {.n = 3 * BLOCK, .detach = detach};

		run_guest(&g);
		/* who runs out of room takes it */
		for (uint32_t i = 0; i < 4 * BLOCK; i++)
			tcp(att);
		assert_int_equal(counts().open, 4 * BLOCK);
		assert_int_equal(counts().threads, 1);
		for (uint32_t i = 0; i < g.n; i++)
			assert_int_equal(corq_close(att, g.h[i]), -EBADF);
		free(g.h);
		corq_detach(att);
		att = attach(0, CORQ_ORDER_LOWEST);
	}
	{
		struct guest g = {.n = 10};

		run_guest(&g);
		assert_int_equal(counts().open, 0); /* counting reclaims too */
		assert_int_equal(counts().threads, 1);
		free(g.h);
	}
	corq_detach(att);
	end();
}

static void
memory_is_on_the_threads_node(void **state)
{
	const uint32_t n = 12 * BLOCK;
	unsigned before;

	(void)state;
	wire_test.nodes = 3;
	start(n);
	for (unsigned node = 0; node < 3; node++) {
		struct corq_handles_part part = corq_handles_part_of(&inst->att.handles, node);
		unsigned found = 0;

		for (unsigned i = 0; i < wire_n_placed; i++) {
			found += wire_placed[i].p == part.slots &&
				 wire_placed[i].bytes == part.slots_bytes &&
				 wire_placed[i].node == node;
			found += wire_placed[i].p == part.remote && wire_placed[i].node == node;
		}
		assert_int_equal(found, 2);
	}
	for (unsigned node = 0; node < 3; node++) {
		struct guest g = {.n = 2 * BLOCK, .node = node};

		before = wire_n_placed;
		run_guest(&g);
		assert_int_equal(wire_n_placed, before + 1); /* the lane's region */
		assert_int_equal(wire_placed[before].node, node);
		for (uint32_t i = 0; i < g.n; i++) /* and its blocks: four a node */
			assert_int_equal((uint32_t)corq_h_slot(g.h[i]) / BLOCK / 4, node);
		free(g.h);
	}
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_socket_may_be),
		cmocka_unit_test(limits),
		cmocka_unit_test(threads_run_out),
		cmocka_unit_test(a_thread_that_ends_loses_its_handles),
		cmocka_unit_test(memory_is_on_the_threads_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
