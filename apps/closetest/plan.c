/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.c - see plan.h.
 */
#include "closetest/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const part_names[CLOSETEST_PARTS] = {
	[CLOSETEST_EXTERN] = "extern",
	[CLOSETEST_SIMPLE] = "simple-close",
	[CLOSETEST_PROPER] = "proper-close",
};
static const char *const policy_names[CLOSETEST_POLICIES] = {
	[CORQ_CLOSE_FIRST] = "first",
	[CORQ_CLOSE_AFTER_PEER] = "after-peer",
	[CORQ_CLOSE_ABORT_IF_EMPTY] = "abort-if-empty",
	[CORQ_CLOSE_RST] = "rst",
};

const char *
closetest_part_name(enum closetest_part part)
{
	return part_names[part];
}

const char *
closetest_policy_name(enum corq_close_policy policy)
{
	return policy_names[policy];
}

const char *
closetest_step_close(const struct closetest_step *step)
{
	return step->close_known ? policy_names[step->close] : "-";
}

bool
closetest_parse_set(
	const char *text, const char *(*name)(int), int n, bool *set, char wrong[CLOSETEST_LINE])
{
	memset(set, 0, (size_t)n * sizeof(*set));
	for (;;) {
		size_t len = strcspn(text, ",");
		int i = 0;

		while (i < n && (strlen(name(i)) != len || strncmp(name(i), text, len) != 0))
			i++;
		if (i == n) {
			snprintf(wrong, CLOSETEST_LINE, "%.*s", (int)(len < 64 ? len : 64), text);
			return false;
		}
		set[i] = true;
		if (text[len] == '\0')
			return true;
		text += len + 1;
	}
}

bool
closetest_at_accept(const struct closetest_step *step)
{
	return step->part == CLOSETEST_SIMPLE && step->close != CORQ_CLOSE_AFTER_PEER;
}

/* Nothing is ever exchanged here, so "if empty" is always true. */
bool
closetest_by_reset(enum corq_close_policy policy)
{
	return policy == CORQ_CLOSE_ABORT_IF_EMPTY || policy == CORQ_CLOSE_RST;
}

static bool
waits_for_peer(const struct closetest_step *step)
{
	return step->close_known ? !closetest_at_accept(step) : step->part == CLOSETEST_PROPER;
}

static unsigned
add_policies(const struct closetest_plan *plan, enum closetest_part part, uint32_t round,
	struct closetest_step *steps)
{
	unsigned n = 0;

	if (!plan->part[part])
		return 0;
	if (part == CLOSETEST_EXTERN || !plan->server_ours) {
		steps[0] = (struct closetest_step){.part = part,
			.round = round,
			.port_offset = part == CLOSETEST_PROPER ? 1 : 0};
		return 1;
	}
	for (int p = 0; p < CLOSETEST_POLICIES; p++) {
		if (!plan->close[p])
			continue;
		steps[n++] = (struct closetest_step){.part = part,
			.close = (enum corq_close_policy)p,
			.close_known = true,
			.round = round,
			.port_offset = (unsigned)part * CLOSETEST_POLICIES + (unsigned)p};
	}
	return n;
}

unsigned
closetest_plan_steps(
	const struct closetest_plan *plan, struct closetest_step steps[CLOSETEST_STAGES])
{
	unsigned n = 0;

	for (int part = 0; part < CLOSETEST_PARTS; part++)
		for (uint32_t round = 1; round <= plan->rounds; round++)
			n += add_policies(plan, (enum closetest_part)part, round, steps + n);
	return n;
}

const struct closetest_step *
closetest_plan_stuck(
	const struct closetest_plan *plan, const struct closetest_step *steps, unsigned n)
{
	if (plan->client != CORQ_CLOSE_AFTER_PEER)
		return NULL;
	for (unsigned i = 0; i < n; i++) {
		if (waits_for_peer(&steps[i]))
			return &steps[i];
	}
	return NULL;
}

void
closetest_heading(enum closetest_part part, char line[CLOSETEST_LINE])
{
	snprintf(line, CLOSETEST_LINE,
		"================== %s =====================", part_names[part]);
}

void
closetest_count_line(uint64_t time_wait, char line[CLOSETEST_LINE])
{
	snprintf(line, CLOSETEST_LINE, "----------------------------------------\t%" PRIu64,
		time_wait);
}

/* Six digits that say something, as the report's tool has them. */
static int
decimals(double value)
{
	int n = 5;

	while (n > 0 && value >= 10) {
		value /= 10;
		n--;
	}
	return n;
}

void
closetest_rate_line(uint64_t ns, uint64_t connections, char line[CLOSETEST_LINE])
{
	double each = connections != 0 ? (double)ns / 1e3 / (double)connections : 0;
	double rate = ns != 0 ? (double)connections / ((double)ns / 1e9) : 0;

	snprintf(line, CLOSETEST_LINE, "%.*f µs/# %" PRIu64 " # %.*f #/sec %.3f net-ms",
		decimals(each), each, connections, rate < 100 ? 3 : 0, rate, (double)ns / 1e6);
}
