/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, texts and severities of reasons.def: each there, each name once and in lower case. */
#include "net_frames.h"

#include "net/reasons.h"

static void
names_are_lower_case_and_unique(void **state)
{
	(void)state;
	for (int i = 0; i < CORQ_R_COUNT; i++) {
		const char *n = corq_reason_name((enum corq_reason)i);

		assert_true(strlen(n) > 0);
		assert_int_equal(strspn(n, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(n));
		assert_true(strlen(corq_reason_text((enum corq_reason)i)) > 0);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(n, corq_reason_name((enum corq_reason)j));
	}
}

static void
known_entries(void **state)
{
	(void)state;
	assert_int_equal(CORQ_R_NONE, 0);
	assert_string_equal(corq_reason_name(CORQ_R_NONE), "none");
	assert_string_equal(corq_reason_name(CORQ_R_IP_SRC_BAD), "ip_src_bad");
	assert_string_equal(corq_reason_name(CORQ_R_TCP_CSUM_PARTIAL), "tcp_csum_partial");
	assert_string_equal(corq_reason_text(CORQ_R_TCP_CSUM), "bad TCP checksum");
	assert_int_equal(corq_reason_severity(CORQ_R_NONE), CORQ_SEV_EVENT);
	assert_int_equal(corq_reason_severity(CORQ_R_TCP_CSUM), CORQ_SEV_DROP);
	assert_int_equal(corq_reason_severity(CORQ_R_TCP_CSUM_PARTIAL), CORQ_SEV_WARN);
}

static void
outside_the_enum(void **state)
{
	(void)state;
	assert_string_equal(corq_reason_name(CORQ_R_COUNT), "?");
	assert_string_equal(corq_reason_text((enum corq_reason) - 1), "?");
	assert_int_equal(corq_reason_severity(CORQ_R_COUNT), CORQ_SEV_WARN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_lower_case_and_unique),
		cmocka_unit_test(known_entries),
		cmocka_unit_test(outside_the_enum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
