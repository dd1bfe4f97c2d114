/* SPDX-License-Identifier: BSD-3-Clause */
/* test_parse.c - the scenario language: what a script means, and what it refuses. No core here. */
#include "script.h"
#include "net/seg.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct script *
parse(const char *text)
{
	char err[256] = "";
	struct script *s = script_parse("t.scn", text, err, sizeof(err));

	if (s == NULL)
		fail_msg("%s", err);
	return s;
}

static void
refuses(const char *text, const char *message)
{
	char err[256] = "";
	struct script *s = script_parse("t.scn", text, err, sizeof(err));

	if (s != NULL)
		fail_msg("took '%s'", text);
	if (strstr(err, message) == NULL)
		fail_msg("'%s' says '%s', not '%s'", text, err, message);
}

static void
test_segment(void **state)
{
	struct script *s = parse("# F0: title\n+0.1 inject FP. 1:41(40) ack 7 win 100 "
				 "<mss 1000, nop, wscale 3, TS val now ecr 5>\n");
	const struct stmt *st = s->first;
	const struct segment *g = &st->packet->tcp;

	(void)state;
	assert_string_equal(s->title, "F0: title");
	assert_int_equal(st->kind, STMT_INJECT);
	assert_int_equal(st->line, 2);
	assert_true(st->has_time && st->relative);
	assert_int_equal(st->at_ns, 100000000);
	assert_int_equal(g->flags, CORQ_TH_FIN | CORQ_TH_PSH | CORQ_TH_ACK);
	assert_int_equal(g->seq.lo, 1);
	assert_int_equal(g->len.lo, 40);
	assert_int_equal(g->ack.lo, 7);
	assert_int_equal(g->win.lo, 100);
	assert_int_equal(g->n_opts, 4);
	assert_int_equal(g->opts[0].kind, OPT_MSS);
	assert_int_equal(g->opts[2].v[0].lo, 3);
	assert_int_equal(g->opts[3].v[0].kind, VALUE_NOW);
	assert_int_equal(g->opts[3].v[1].lo, 5);
	script_free(s);
}

static void
test_values(void **state)
{
	struct script *s = parse("expect p. 5..9 ack * win >=10 <>\nexpect R @0\nexpect * *\n"
				 "expect . -1 ack 1 <*>\n");
	const struct segment *g = &s->first->packet->tcp;

	(void)state;
	assert_true(g->any_psh);
	assert_int_equal(g->flags, CORQ_TH_ACK);
	assert_int_equal(g->seq.lo, 5);
	assert_int_equal(g->seq.hi, 9);
	assert_int_equal(g->ack.kind, VALUE_ANY);
	assert_int_equal(g->win.lo, 10);
	assert_true(g->has_opts && g->n_opts == 0 && !g->any_opts);
	g = &s->first->next->packet->tcp;
	assert_int_equal(g->seq.kind, VALUE_ABS);
	assert_int_equal(g->ack.kind, VALUE_NONE);
	g = &s->first->next->next->packet->tcp;
	assert_true(g->any_flags);
	assert_int_equal(g->len.kind, VALUE_ANY);
	g = &s->first->next->next->next->packet->tcp;
	assert_int_equal(g->seq.lo, -1);
	assert_true(g->any_opts);
	script_free(s);
}

static void
test_times(void **state)
{
	struct script *s = parse("1.5 wait\n+200ms~5ms expect . 1 ack 1\n+0.1..1 expect . 1 ack 1\n"
				 "expect none for 199ms\nwait 24d\n");
	const struct stmt *st = s->first;

	(void)state;
	assert_int_equal(st->at_ns, 1500000000);
	assert_false(st->relative);
	st = st->next;
	assert_int_equal(st->at_ns, 200000000);
	assert_int_equal(st->tol_ns, 5000000);
	assert_int_equal(st->until_ns, -1);
	st = st->next;
	assert_int_equal(st->at_ns, 100000000);
	assert_int_equal(st->until_ns, 1000000000);
	st = st->next;
	assert_int_equal(st->kind, STMT_EXPECT_NONE);
	assert_int_equal(st->dur_ns, 199000000);
	assert_false(st->has_time);
	assert_true(st->next->dur_ns == 24ll * 86400 * 1000000000);
	script_free(s);
}

static void
test_blocks_and_results(void **state)
{
	struct script *s = parse("on data {\n\tcall read 5\n\tcall write 5 more = -EPIPE\n}\n"
				 "batch {\n inject . 1 ack 1\n}\nrepeat 3 {\n wait 1ms\n}\n"
				 "event on_close -ECONNRESET\ncounter rst_out >=2\n");
	const struct stmt *st = s->first;

	(void)state;
	assert_int_equal(st->kind, STMT_ON);
	assert_string_equal(st->body->words[0], "read");
	assert_int_equal(st->body->value.kind, VALUE_NONE);
	assert_int_equal(st->body->next->value.lo, -EPIPE);
	assert_int_equal(st->body->next->n_words, 3);
	assert_null(st->body->next->next);
	st = st->next;
	assert_int_equal(st->body->kind, STMT_INJECT);
	st = st->next;
	assert_int_equal(st->count, 3);
	st = st->next;
	assert_int_equal(st->value.lo, -ECONNRESET);
	assert_int_equal(st->next->value.lo, 2);
	script_free(s);
}

static char dir[] = "/tmp/scn-XXXXXX", included[sizeof(dir) + 8]; /* of test_include */

static int
remove_included(void **state)
{
	(void)state;
	unlink(included);
	return rmdir(dir);
}

static void
test_include(void **state)
{
	struct script *s;
	char path[64], err[256];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(included, sizeof(included), "%s/a.inc", dir);
	f = fopen(included, "w");
	assert_non_null(f);
	fputs("param win 9\nparam mss 1000\ninject S 0 win $win <mss $mss>\n", f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/a.scn", dir);
	s = script_parse(path, "include a.inc win=40\nwait 1ms\n", err, sizeof(err));
	assert_non_null(s);
	assert_int_equal(s->first->packet->tcp.win.lo, 40);
	assert_int_equal(s->first->packet->tcp.opts[0].v[0].lo, 1000);
	assert_non_null(strstr(s->first->file, "a.inc"));
	assert_int_equal(s->first->next->kind, STMT_WAIT);
	script_free(s);
	assert_null(script_parse(path, "include b.inc\n", err, sizeof(err)));
	assert_non_null(strstr(err, "a.scn:1:"));
}

static void
test_refusals(void **state)
{
	(void)state;
	refuses("wait\nbanana 1\n", "t.scn:2: unknown statement 'banana'");
	refuses("inject . 1\n", "say 'ack N'");
	refuses("inject X 1\n", "'X' is no flag");
	refuses("inject S 0:5(6)\n", "is not 6 bytes");
	refuses("inject S 0 <mss>\n", "unknown option 'mss'");
	refuses("inject S 0 <mss 1\n", "'<' without '>'");
	refuses("inject * 0\n", "cannot be injected");
	refuses("inject S 0 banana\n", "means nothing");
	refuses("expect S 0 ttl 3\n", "means nothing");
	refuses("on data {\ncall read 1\n", "does not end");
	refuses("}\n", "without a block");
	refuses("wait 5 {\n}\n", "has not a block");
	refuses("on data\n", "wants a block");
	refuses("+0.1\n", "a time alone");
	refuses("+x wait\n", "is not a time");
	refuses("+1..0.5 expect . 1 ack 1\n", "ends before");
	refuses("+0..1 inject S 0\n", "only expect");
	refuses("field snd_nxt\n", "wants 2 to 2");
	refuses("field snd_nxt x\n", "not a number");
	refuses("expect none\n", "expect none for");
	refuses("call write $n\n", "no parameter '$n'");
	refuses("repeat 0 {\n}\n", "count");
	refuses("inject icmp banana\n", "unknown ICMP");
	refuses("inject bytes 0g\n", "hexadecimal");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segment),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_blocks_and_results),
		cmocka_unit_test_teardown(test_include, remove_included),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
