/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - which experiments a run of `corq closetest` makes, and the form of the lines that it
 * prints. Pure: no device, no clock.
 *
 * A stage is one part with one policy of the server, once. Parts and policies are sets, so a stage
 * comes once however often its word was given.
 */
#ifndef CORQ_CLOSETEST_PLAN_H
#define CORQ_CLOSETEST_PLAN_H

#include <corq/instance.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOSETEST_ROUNDS   10
#define CLOSETEST_POLICIES 4
#define CLOSETEST_STAGES   (CLOSETEST_ROUNDS * (1 + 2 * CLOSETEST_POLICIES))
#define CLOSETEST_LINE     128

enum closetest_part {
	CLOSETEST_EXTERN, /* a server that is not ours */
	CLOSETEST_SIMPLE, /* the server closes what it has accepted */
	CLOSETEST_PROPER, /* the server closes when it reads the end */
	CLOSETEST_PARTS
};

struct closetest_plan {
	bool part[CLOSETEST_PARTS];
	bool close[CLOSETEST_POLICIES]; /* the server's, enum corq_close_policy */
	bool server_ours;               /* else the policies are the peer's, and not known */
	enum corq_close_policy client;
	uint32_t rounds;
};

struct closetest_step {
	enum closetest_part part;
	enum corq_close_policy close; /* the server's, if it is ours */
	bool close_known;
	uint32_t round;
	unsigned port_offset; /* stages of different kinds do not share tuples */
};

const char *closetest_part_name(enum closetest_part part);
const char *closetest_policy_name(enum corq_close_policy policy);
/* "-" if it is not known. */
const char *closetest_step_close(const struct closetest_step *step);
/* A list of words with commas into a set of n; NULL, or the word that is none of them, as text in
 * `wrong`. */
bool closetest_parse_set(
	const char *text, const char *(*name)(int), int n, bool *set, char wrong[CLOSETEST_LINE]);
/* Their number. */
unsigned closetest_plan_steps(
	const struct closetest_plan *plan, struct closetest_step steps[CLOSETEST_STAGES]);
/* A step in which each side waits for the other's FIN, or NULL. */
const struct closetest_step *closetest_plan_stuck(
	const struct closetest_plan *plan, const struct closetest_step *steps, unsigned n);

/* When does the server end a connection, and how? */
bool closetest_at_accept(const struct closetest_step *step);
bool closetest_by_reset(enum corq_close_policy policy);

/* The lines of the report that this command repeats. */
void closetest_heading(enum closetest_part part, char line[CLOSETEST_LINE]);
void closetest_count_line(uint64_t time_wait, char line[CLOSETEST_LINE]);
void closetest_rate_line(uint64_t ns, uint64_t connections, char line[CLOSETEST_LINE]);

#endif
