/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that wait for a neighbour's address: kept in order, handed out as there is room, given
 * back when nobody answers, and never more of them than the table may keep. */
#include "net_neigh.h"

/* The index of neighbour 2, which is asked for; count packets from f on wait for it. */
static uint16_t
held(struct fix *x, struct corq_frame *f, int count)
{
	uint16_t i;

	open_table(x, 8);
	i = look(x, 2, 0);
	for (int k = 0; k < count; k++)
		assert_null(corq_neigh_hold(&x->nt, i, &f[k]));
	return i;
}

/* Takes what waits for idx, in parts of at most room packets: count of them from first on, in
 * order. */
static void
flushed(struct fix *x, uint64_t now, uint16_t idx, unsigned room, struct corq_frame *first,
	int count)
{
	int n = 0;

	while (n < count) {
		assert_true(corq_neigh_poll(&x->nt, now, room, &x->act));
		assert_int_equal(x->act.todo, CORQ_NEIGH_FLUSH);
		assert_int_equal(x->act.idx, idx);
		assert_in_range(x->act.n_frames, 1, room);
		for (int k = 0; k < x->act.n_frames; k++)
			assert_ptr_equal(x->act.frames[k], first + n++);
	}
	assert_int_equal(n, count);
}

static void
holds_a_hundred_packets(void **state)
{
	struct corq_frame f[HELD + 2];
	struct fix x;
	uint16_t i = held(&x, f, HELD);

	(void)state;
	assert_ptr_equal(corq_neigh_hold(&x.nt, i, &f[HELD]), &f[0]); /* the oldest goes */
	assert_ptr_equal(corq_neigh_hold(&x.nt, i, &f[HELD + 1]), &f[1]);
	one(&x, 0, CORQ_NEIGH_SEND_REQUEST);
	assert_int_equal(replied(&x, 2, mac_a, 5), i);
	assert_memory_equal(corq_neigh_mac(&x.nt, i, 5), mac_a, 6);
	assert_true(corq_neigh_next(&x.nt) <= 5);
	flushed(&x, 5, i, CORQ_NEIGH_PART, f + 2, HELD);
	assert_memory_equal(x.act.mac, mac_a, 6);
	assert_false(poll(&x, 29 * S)); /* no further request */
	assert_true(corq_neigh_next(&x.nt) == CORQ_NEIGH_NEVER);
	free(x.mem);
}

/* The device takes 7: the rest stays due, and leaves first. */
static void
what_has_no_room_stays_due(void **state)
{
	struct corq_frame f[10];
	struct fix x;
	uint16_t i = held(&x, f, 10);

	(void)state;
	one(&x, 0, CORQ_NEIGH_SEND_REQUEST);
	replied(&x, 2, mac_a, 5);
	assert_true(corq_neigh_poll(&x.nt, 5, 7, &x.act));
	assert_int_equal(x.act.n_frames, 7);
	corq_neigh_confirm(&x.nt, i, 6);
	assert_true(corq_neigh_next(&x.nt) <= 6);
	flushed(&x, 6, i, 2, f + 7, 3);
	assert_false(poll(&x, 7));
	free(x.mem);
}

/* A neighbour that is not there holds no more than all may, and loses to one that answers soon. */
static void
all_share_one_bound(void **state)
{
	struct corq_frame dead[HELD], live[3];
	uint16_t d[8], l;
	struct fix x;

	(void)state;
	open_table(&x, 16);
	for (uint32_t k = 0; k < 8; k++)
		d[k] = look(&x, 10 + k, 0);
	l = look(&x, 2, 0);
	for (int k = 0; k < HELD; k++)
		assert_null(corq_neigh_hold(&x.nt, d[k % 8], &dead[k]));
	for (int k = 0; k < 3; k++)
		assert_ptr_equal(corq_neigh_hold(&x.nt, l, &live[k]), &dead[k]);
	while (poll(&x, 0))
		assert_int_equal(x.act.todo, CORQ_NEIGH_SEND_REQUEST);
	replied(&x, 2, mac_a, 1);
	flushed(&x, 1, l, CORQ_NEIGH_PART, live, 3);
	for (uint64_t t = 1; t < 3; t++)
		for (int k = 0; k < 8; k++)
			assert_true(poll(&x, t * S));
	for (int n = 0; n < HELD - 3; n += x.act.n_frames) {
		assert_true(poll(&x, 3 * S));
		assert_int_equal(x.act.todo, CORQ_NEIGH_GAVE_UP);
	}
	assert_true(x.nt.held_head == x.nt.held_tail);
	free(x.mem);
}

static void
failure_returns_the_packets(void **state)
{
	struct corq_frame f[CORQ_NEIGH_PART + 3];
	struct fix x;
	uint16_t i = held(&x, f, CORQ_NEIGH_PART + 2);

	(void)state;
	for (uint64_t t = 0; t < 3; t++)
		one(&x, t * S, CORQ_NEIGH_SEND_REQUEST);
	assert_true(poll(&x, 3 * S));
	assert_int_equal(x.act.todo, CORQ_NEIGH_GAVE_UP);
	assert_int_equal(x.act.n_frames, CORQ_NEIGH_PART);
	assert_ptr_equal(x.act.frames[0], &f[0]);
	assert_ptr_equal(
		corq_neigh_hold(&x.nt, i, &f[CORQ_NEIGH_PART + 2]), &f[CORQ_NEIGH_PART + 2]);
	one(&x, 3 * S, CORQ_NEIGH_GAVE_UP);
	assert_int_equal(x.act.n_frames, 2);
	assert_ptr_equal(x.act.frames[1], &f[CORQ_NEIGH_PART + 1]);
	/* a late answer is welcome, and is reported */
	replied(&x, 2, mac_a, 3 * S + 1);
	one(&x, 3 * S + 1, CORQ_NEIGH_FLUSH);
	assert_int_equal(x.act.n_frames, 0);
	free(x.mem);
}

static void
no_more_than_an_eighth(void **state)
{
	(void)state;
	assert_int_equal(corq_neigh_held_max(0), CORQ_NEIGH_HELD);
	assert_int_equal(corq_neigh_held_max(1 << 20), CORQ_NEIGH_HELD);
	assert_int_equal(corq_neigh_held_max(4096), 512);
	assert_int_equal(corq_neigh_held_max(7), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_a_hundred_packets),
		cmocka_unit_test(what_has_no_room_stays_due),
		cmocka_unit_test(all_share_one_bound),
		cmocka_unit_test(no_more_than_an_eighth),
		cmocka_unit_test(failure_returns_the_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
