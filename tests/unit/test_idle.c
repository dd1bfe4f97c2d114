/* SPDX-License-Identifier: BSD-3-Clause */
/* test_idle.c - how long an idle core waits: the two measures and what bounds them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "testcore.h"

#define US 1000ull
#define MS 1000000ull

struct rig {
	struct testcore tc;
	uint64_t waited; /* what the port was told last; 0: it was not called */
	struct corq_port_ops ops;
};

static struct rig *told; /* the port's idle has no argument for us */

static void
note_wait(struct corq_port *port, uint64_t ns)
{
	(void)port;
	told->waited = ns;
}

static int
set_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	char err[200];

	if (testcore_init(&r->tc, &(struct testcore_opts){.idle_sleep = true}, err, sizeof(err)))
		fail_msg("%s", err);
	r->ops = *r->tc.core->port->ops;
	r->ops.idle = note_wait;
	r->tc.core->port->ops = &r->ops;
	r->tc.core->port->syscalls = true;
	r->tc.core->eng.now_ns = 10000 * MS;
	r->tc.core->idle_turns = 0;
	*state = told = r;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *r = *state;

	testcore_end(&r->tc);
	free(r);
	return 0;
}

/* An idle turn `ns` later; what the port was told. */
static uint64_t
idle_after(struct rig *r, uint64_t ns)
{
	r->waited = 0;
	r->tc.core->eng.now_ns += ns;
	corq_idle_turn(r->tc.core);
	return r->waited;
}

static void
answer(struct rig *r, uint64_t ns)
{
	corq_idle_asked(r->tc.core, corq_conn_at(&r->tc.core->eng, 0));
	r->tc.core->eng.now_ns += ns;
	corq_idle_answered(r->tc.core);
}

static void
an_eighth_of_the_idle_time(void **state)
{
	struct rig *r = *state;

	assert_int_equal(idle_after(r, 0), 0);
	assert_int_equal(idle_after(r, 4 * US - 8), 0); /* below the least */
	assert_int_equal(idle_after(r, 8), 500);
	assert_int_equal(idle_after(r, 76 * US), 10 * US);
	assert_int_equal(idle_after(r, 100 * MS - 80 * US - 1), 100 * US); /* the most */
	assert_int_equal(idle_after(r, 1), 500 * US);                      /* idle for long */
	assert_int_equal(idle_after(r, 1000 * MS), 500 * US);
	r->tc.core->idle_turns = 0; /* something happened */
	assert_int_equal(idle_after(r, 1000 * MS), 0);
}

static void
a_sixteenth_of_the_answers(void **state)
{
	struct rig *r = *state;

	answer(r, 1600 * US);
	assert_int_equal(idle_after(r, 0), 100 * US);
	for (int i = 0; i < 100; i++) {
		r->tc.core->idle_turns = 0;
		answer(r, 480 * US);
	}
	assert_in_range(idle_after(r, 0), 30 * US - 10, 30 * US + 10);
	assert_int_equal(idle_after(r, 100 * MS - 1), 100 * US); /* idle for long */
	r->tc.core->idle_turns = 0;
	assert_int_equal(idle_after(r, 1), 0);       /* the estimate is old */
	answer(r, 400 * US);                         /* and a new one does not remember it */
	assert_int_equal(idle_after(r, 0), 50 * US); /* 400 us idle, an eighth is longer */
	r->tc.core->idle_turns = 0;
	assert_int_equal(idle_after(r, 0), 25 * US);
}

static void
quick_peers_and_devices_are_polled_for(void **state)
{
	struct rig *r = *state;

	answer(r, 400 * US - 1);
	assert_int_equal(idle_after(r, 0), 0);
	r->tc.core->eng.now_ns += 200 * MS; /* the estimate is old: the next one counts alone */
	r->tc.core->idle_turns = 0;
	answer(r, 400 * US);
	assert_int_equal(idle_after(r, 0), 25 * US);
	r->tc.core->port->syscalls = false; /* nothing to collect for */
	r->tc.core->idle_turns = 0;
	assert_int_equal(idle_after(r, 0), 0);
}

/* While one answer is waited for no other is measured, unless the first never comes. */
static void
one_answer_at_a_time(void **state)
{
	struct rig *r = *state;
	struct corq_core *core = r->tc.core;

	corq_idle_asked(core, corq_conn_at(&core->eng, 0));
	core->eng.now_ns += 1000 * MS - 1;
	corq_idle_asked(core, corq_conn_at(&core->eng, 1));
	assert_ptr_equal(core->idle.asked, corq_conn_at(&core->eng, 0));
	core->eng.now_ns += 1;
	corq_idle_asked(core, corq_conn_at(&core->eng, 1));
	assert_ptr_equal(core->idle.asked, corq_conn_at(&core->eng, 1));
}

static uint64_t
no_hook(struct corq_core *core, void *arg, uint64_t now)
{
	(void)core, (void)arg, (void)now;
	return 0;
}

static void
what_is_due_bounds_it(void **state)
{
	struct rig *r = *state;
	struct corq_core *core = r->tc.core;

	answer(r, 16 * MS);
	core->hook = no_hook;
	core->hook_at = core->eng.now_ns + 70 * US;
	assert_int_equal(idle_after(r, 0), 70 * US);
	assert_int_equal(idle_after(r, 71 * US), 0); /* overdue */
	core->hook_at = 0;
	assert_int_equal(idle_after(r, 0), 100 * US);
	core->n_tx = 1; /* the device did not take a frame */
	assert_int_equal(idle_after(r, 0), 0);
	core->n_tx = 0;
	core->cfg.idle_sleep = false;
	assert_int_equal(idle_after(r, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_eighth_of_the_idle_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_sixteenth_of_the_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			quick_peers_and_devices_are_polled_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_answer_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_due_bounds_it, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
