/* SPDX-License-Identifier: BSD-3-Clause */
/* test_owner.c - the owner function: blocks of ports, the keyed hash, epochs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rand.h"
#include "core/owner.h"

#include <string.h>

static struct corq_owner
new_owner(uint16_t first, uint16_t last, uint16_t n)
{
	struct corq_owner o = {.key = {0x1234, 0x5678}, .port_first = first, .port_last = last};

	o.n_epochs = 1;
	o.epoch[0].n = n;
	for (uint16_t i = 0; i < n; i++)
		o.epoch[0].core[i] = (uint8_t)i;
	return o;
}

static struct corq_key
random_key(struct corq_rand *r, uint16_t lport)
{
	struct corq_key k = {.lport = lport, .rport = (uint16_t)corq_rand_u64(r)};

	k.raddr.q[0] = corq_rand_u64(r);
	k.raddr.q[1] = corq_rand_u64(r);
	k.laddr.q[1] = corq_rand_u64(r);
	return k;
}

/* Each connect port has one owner, the same for every tuple, and the allocator agrees; ports
 * outside belong to nobody's list. */
static void
ports_belong_to_their_block(void **state)
{
	struct corq_rand r;

	(void)state;
	corq_rand_seed(&r, 1);
	for (uint16_t n = 1; n <= 64; n += n < 9 ? 1 : 11) {
		struct corq_owner o = new_owner(2000, 60001, n);
		uint32_t count[64] = {0};

		for (uint32_t port = 0; port < 65536; port++) {
			struct corq_key k = random_key(&r, (uint16_t)port);
			unsigned owner = corq_owner_of(&o, &k, 0), holders = 0;

			for (unsigned c = 0; c < n; c++)
				holders += corq_owner_port(&o, (uint16_t)port, c);
			if (port < 2000 || port > 60001) {
				assert_int_equal(holders, 0);
				continue;
			}
			assert_int_equal(holders, 1);
			assert_int_equal(owner, port / 64 % n);
			assert_true(corq_owner_port(&o, (uint16_t)port, owner));
			count[owner]++;
		}
		for (unsigned c = 1; c < n; c++) /* even up to a block */
			assert_true(count[c] + 64 >= count[0] && count[0] + 64 >= count[c]);
	}
}

/* A listener's tuples spread by hash, stay where they are, and move with another key. */
static void
other_tuples_spread(void **state)
{
	struct corq_owner o = new_owner(32768, 65535, 7), other = o;
	uint32_t count[7] = {0}, same = 0;
	struct corq_rand r;

	(void)state;
	other.key.k0 ^= 1;
	corq_rand_seed(&r, 2);
	for (int i = 0; i < 70000; i++) {
		struct corq_key k = random_key(&r, 80);
		unsigned owner = corq_owner_of(&o, &k, 0);

		assert_true(owner < 7);
		assert_int_equal(owner, corq_owner_of(&o, &k, 0));
		count[owner]++;
		same += owner == corq_owner_of(&other, &k, 0);
	}
	for (int c = 0; c < 7; c++)
		assert_in_range(count[c], 9600, 10400); /* 4 standard deviations of 93 */
	assert_in_range(same, 9600, 10400);
}

/* The map of positions is used: a core that was taken out owns nothing in the new epoch. */
static void
epochs_have_their_own_map(void **state)
{
	struct corq_owner o = new_owner(32768, 65535, 4);
	struct corq_rand r;

	(void)state;
	o.n_epochs = 2;
	o.epoch[1] = o.epoch[0];
	o.epoch[0].n = 3;
	o.epoch[0].core[2] = 3; /* 0, 1, 3 */
	corq_rand_seed(&r, 3);
	for (int i = 0; i < 10000; i++) {
		struct corq_key k = random_key(&r, (uint16_t)corq_rand_u64(&r));
		unsigned now = corq_owner_of(&o, &k, 0), before = corq_owner_of(&o, &k, 1);

		assert_true(now < 4 && now != 2 && before < 4);
		assert_false(corq_owner_port(&o, k.lport, 2));
		if (k.lport >= 32768) {
			assert_int_equal(before, k.lport / 64 % 4);
			assert_int_equal(now, (k.lport / 64 % 3) == 2 ? 3 : k.lport / 64 % 3);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_belong_to_their_block),
		cmocka_unit_test(other_tuples_spread),
		cmocka_unit_test(epochs_have_their_own_map),
	};

	return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
