/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.c - the experiment over corq: one core, which is the client and on the loop device the
 * server too. Runs on that core, but closetest_run_corq.
 *
 * The hook walks through the stages: connections of a block, then a pause until all of them are
 * gone here and the core's figures have been renewed, then the block's two lines. Only the former
 * is timed. The lines are printed by the core (rule: no call that may block): nothing is under way
 * then, and a slow terminal delays the next block and nothing else.
 */
#include "closetest/figures.h"
#include "common/addr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS         1000000ull
#define SETTLE_NS  (50 * MS)   /* for a block's connections to go; more when they are waited for */
#define LAST_NS    (2000 * MS) /* the same at the end of a stage */
#define FIRST_PORT 7000
#define LIVE_MAX   4096 /* connections that close at the same time; more are not opened */

enum phase {
	PHASE_BEGIN,
	PHASE_BLOCK,
	PHASE_SETTLE,
};

struct slot {
	struct corq_conn *conn;
	uint64_t since;
	bool open;
};

struct course {
	struct closetest_run *run;
	struct corq_instance *inst;
	struct corq_addr target;
	uint16_t port; /* of the URL */
	unsigned at;   /* stage */
	enum phase phase;
	struct slot *slots;
	uint32_t used; /* slots */
	uint64_t asked, block_first, block_left, block_since, block_ns, settle_until;
	uint64_t live, in_a_row;
	int last_error;
	struct corq_listener *listener[CLOSETEST_PARTS * CLOSETEST_POLICIES];
	struct closetest_step listens[CLOSETEST_PARTS * CLOSETEST_POLICIES];
	uint64_t waiting[CLOSETEST_PARTS * CLOSETEST_POLICIES]; /* ports, after its last stage */
	struct corq_stats before;
	double tw_client, tw_server;
};

static struct closetest_stage *
stage(struct course *t)
{
	return &t->run->stage[t->at];
}

static struct course *
course_of(struct corq_core *core)
{
	return corq_core_user(core);
}

/* The word of a connection that we have closed: did our FIN go before the peer's was here? Then
 * the TIME_WAIT is ours, if it ends in order. */
static char first, second;

static void
end_connection(struct corq_core *core, struct corq_conn *conn, enum corq_close_policy policy)
{
	struct corq_conn_info info;

	corq_conn_get_info(core, conn, &info);
	corq_conn_set_user(conn, info.peer_fin ? &second : &first);
	corq_conn_finish(core, conn, policy, 0);
}

static bool
to_time_wait(const struct corq_conn *conn, int reason)
{
	return reason == 0 && corq_conn_user(conn) == &first;
}

/* ---- our server; a connection's word is its step ---- */

static const struct closetest_step *
step_of(const struct corq_conn *conn)
{
	return corq_conn_user(conn);
}

static void
server_open(struct corq_core *core, struct corq_conn *conn)
{
	course_of(core)->live++;
	if (closetest_at_accept(step_of(conn)))
		end_connection(core, conn, step_of(conn)->close);
}

static void
server_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	if (!closetest_at_accept(step_of(conn)))
		end_connection(core, conn, step_of(conn)->close);
}

static void
server_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct course *t = course_of(core);

	t->live--;
	t->tw_server += to_time_wait(conn, reason);
}

static const struct corq_ops server_ops = {
	.on_open = server_open, .on_peer_fin = server_peer_fin, .on_close = server_close};

/* ---- our client; a connection's word is its slot until we close ---- */

static void
closing_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct course *t = course_of(core);

	t->live--;
	t->tw_client += to_time_wait(conn, reason);
	if (reason == -ECONNRESET)
		stage(t)->reset_after++;
}

static const struct corq_ops closing_ops = {.on_close = closing_close};

static void
leave_slot(struct course *t, struct slot *slot, uint64_t now)
{
	slot->conn = NULL;
	t->used--;
	t->block_left--;
	t->block_ns = now - t->block_since;
}

static void
failed(struct course *t, struct slot *slot, int error, uint64_t now)
{
	closetest_count_failure(stage(t), error);
	t->last_error = error;
	t->in_a_row++;
	leave_slot(t, slot, now);
}

static void
client_done(struct corq_core *core, struct corq_conn *conn, struct slot *slot)
{
	struct course *t = course_of(core);

	stage(t)->good++;
	t->in_a_row = 0;
	corq_conn_set_ops(conn, core, &closing_ops);
	corq_conn_set_deadline(core, conn, 0);
	end_connection(core, conn, t->run->opts->plan.client);
	leave_slot(t, slot, corq_core_now(core));
}

static void
client_open(struct corq_core *core, struct corq_conn *conn)
{
	struct course *t = course_of(core);
	struct slot *slot = corq_conn_user(conn);

	slot->open = true;
	corq_hist_record(&stage(t)->connect, corq_core_now(core) - slot->since);
	if (t->run->opts->plan.client != CORQ_CLOSE_AFTER_PEER)
		client_done(core, conn, slot);
}

static void
client_peer_fin(struct corq_core *core, struct corq_conn *conn)
{
	client_done(core, conn, corq_conn_user(conn));
}

/* Takes the connection out of the slot: what is counted is counted here. */
static void
client_timer(struct corq_core *core, struct corq_conn *conn)
{
	struct course *t = course_of(core);
	struct slot *slot = corq_conn_user(conn);

	failed(t, slot, slot->open ? -EINPROGRESS : -ETIMEDOUT, corq_core_now(core));
	corq_conn_set_ops(conn, core, &closing_ops);
	corq_conn_set_user(conn, &second);
	corq_conn_abort(core, conn);
}

static void
client_close(struct corq_core *core, struct corq_conn *conn, int reason)
{
	struct course *t = course_of(core);
	struct slot *slot = corq_conn_user(conn);

	t->live--;
	if (slot->open && reason == -ECONNRESET) {
		stage(t)->good++;
		stage(t)->reset_after++;
		t->in_a_row = 0;
		leave_slot(t, slot, corq_core_now(core));
	} else {
		failed(t, slot, reason, corq_core_now(core));
	}
}

static const struct corq_ops client_ops = {.on_open = client_open,
	.on_peer_fin = client_peer_fin,
	.on_timer = client_timer,
	.on_close = client_close};

static void
connect_one(struct course *t, struct corq_core *core, struct slot *slot, uint64_t now)
{
	struct closetest_stage *s = stage(t);
	struct corq_connect_opts opts = {.raddr = t->target,
		.rport = (uint16_t)(t->port + s->step.port_offset),
		.ops = &client_ops,
		.user = slot};
	int rc = corq_core_connect(core, &opts, &slot->conn);

	s->tried++;
	t->used++;
	slot->open = false;
	slot->since = now;
	if (rc != 0) {
		failed(t, slot, rc, now);
		return;
	}
	t->live++;
	corq_conn_set_deadline(core, slot->conn, now + t->run->opts->timeout_s * 1000ull * MS);
}

/* ---- the course of a run ---- */

static void
begin_block(struct course *t, uint64_t now)
{
	uint64_t left = t->run->opts->connections - stage(t)->tried;

	t->block_first = left < t->run->opts->block ? left : t->run->opts->block;
	t->block_left = t->asked = t->block_first;
	t->block_since = now;
	t->block_ns = 0;
	t->phase = PHASE_BLOCK;
}

static void
begin_stage(struct course *t, struct corq_core *core, uint64_t now)
{
	struct closetest_stage *s = stage(t);

	corq_core_stats(core, &t->before);
	s->ran = true;
	s->tw_before = s->tw_now = t->before.time_wait_live;
	t->tw_client = t->tw_server = 0;
	t->in_a_row = 0;
	app_endpoint_text(&t->target, (uint16_t)(t->port + s->step.port_offset), s->target);
	closetest_begin_lines(t->run, s);
	begin_block(t, now);
}

/* On loop the server's addresses have ports as well, which no connect of the client can use. */
static double
client_share(const struct course *t)
{
	uint64_t ours, theirs = 0;

	corq_address(t->inst, CORQ_SIDE_A, &ours);
	if (t->run->opts->plan.server_ours)
		corq_address(t->inst, CORQ_SIDE_B, &theirs);
	return (double)ours / (double)(ours + theirs);
}

/* The library counts those of all destinations; here are those of this stage's. Those of the
 * others that have expired since it began are missing. */
static uint64_t
own_waiting(struct course *t, uint64_t all)
{
	uint64_t *last = &t->waiting[stage(t)->step.port_offset];
	uint64_t before = t->before.ports_waiting, others = before > *last ? before - *last : 0;

	*last = all > others ? all - others : 0;
	return *last;
}

static void
end_stage(struct course *t, struct corq_core *core)
{
	struct closetest_stage *s = stage(t);
	const struct corq_stats *b = &t->before;
	struct corq_stats a;
	bool both = corq_core_side(core) == CORQ_SIDE_BOTH;

	corq_core_stats(core, &a);
	s->tw_client = t->tw_client;
	s->tw_server = both ? t->tw_server : -1;
	s->packets = (double)(a.tx_packets - b->tx_packets);
	if (!both)
		s->packets += (double)(a.rx_packets - b->rx_packets);
	s->recycled = (double)(a.tw_recycled_syn - b->tw_recycled_syn);
	s->reused = (double)(a.tw_reused_own - b->tw_reused_own);
	s->evicted = (double)(a.tw_evicted - b->tw_evicted);
	s->syn_again = (double)(a.syn_retransmitted - b->syn_retransmitted);
	s->timeouts = (double)(a.rto_fired - b->rto_fired);
	s->ports_total = (double)a.ports_total * client_share(t);
	s->ports_used = (double)a.ports_used;
	s->ports_waiting = (double)own_waiting(t, a.ports_waiting);
	s->ports_recycled = (double)(a.ports_recycled - b->ports_recycled);
	s->ports_refused = (double)(a.ports_refused - b->ports_refused);
	t->at++;
	t->phase = PHASE_BEGIN;
}

/* Slots of a stage that ends early. */
static void
drop_slots(struct course *t, struct corq_core *core)
{
	for (uint32_t i = 0; i < t->run->opts->at_a_time && t->used != 0; i++) {
		struct corq_conn *conn = t->slots[i].conn;

		if (conn == NULL)
			continue;
		closetest_count_failure(stage(t), -ECONNABORTED);
		leave_slot(t, &t->slots[i], corq_core_now(core));
		corq_conn_set_ops(conn, core, &closing_ops);
		corq_conn_set_user(conn, &second);
		corq_conn_abort(core, conn);
	}
}

static void
run_block(struct course *t, struct corq_core *core, uint64_t now)
{
	struct closetest_stage *s = stage(t);
	bool hopeless = closetest_hopeless(s, t->in_a_row);

	for (uint32_t i = 0; i < t->run->opts->at_a_time; i++) {
		/* One that finds no port leaves its slot at once. */
		while (t->slots[i].conn == NULL && t->asked != 0 && t->live < LIVE_MAX &&
			!hopeless) {
			t->asked--;
			connect_one(t, core, &t->slots[i], now);
			hopeless = closetest_hopeless(s, t->in_a_row);
		}
	}
	if (hopeless) {
		s->cut_short = true;
		drop_slots(t, core);
	} else if (t->block_left != 0) {
		return;
	}
	t->phase = PHASE_SETTLE;
	t->settle_until =
		now + (s->cut_short || s->tried == t->run->opts->connections ? LAST_NS : SETTLE_NS);
}

/* Are the figures of now: has all that we know to be over been counted? */
static bool
settled(struct course *t, struct corq_core *core, struct corq_stats *stats)
{
	corq_core_stats(core, stats);
	return t->live == 0 && stats->conn_live == 0 &&
	       stats->ports_refused ==
		       t->before.ports_refused + stage(t)->failed[CLOSETEST_NO_PORT] &&
	       stats->conn_opened_active == t->before.conn_opened_active + stage(t)->tried -
						    stage(t)->failed[CLOSETEST_NO_PORT] -
						    stage(t)->failed[CLOSETEST_OTHER];
}

static void
settle(struct course *t, struct corq_core *core, uint64_t now)
{
	struct closetest_stage *s = stage(t);
	struct corq_stats stats;

	if (!settled(t, core, &stats) && now < t->settle_until)
		return;
	closetest_block_lines(
		t->run, s, t->block_ns, t->block_first - t->block_left, stats.time_wait_live);
	if (s->cut_short)
		closetest_say_hopeless(s, t->last_error);
	if (app_signals() != 0)
		t->run->interrupted = true;
	if (s->cut_short || t->run->interrupted || s->tried >= t->run->opts->connections)
		end_stage(t, core);
	else
		begin_block(t, now);
}

static uint64_t
hook(struct corq_core *core, void *arg, uint64_t now)
{
	struct course *t = arg;

	if (t->phase == PHASE_BEGIN) {
		if (t->at == t->run->n || t->run->interrupted || app_signals() != 0) {
			t->run->interrupted |= app_signals() != 0;
			corq_stop(t->inst);
			return 0;
		}
		begin_stage(t, core, now);
	}
	if (t->phase == PHASE_BLOCK)
		run_block(t, core, now);
	if (t->phase == PHASE_SETTLE)
		settle(t, core, now);
	/* A block that goes on is woken by its connections; an idle core publishes its figures. */
	return t->phase == PHASE_BLOCK && t->asked == 0 ? now + 10 * MS : now + MS / 20;
}

static int
listen_all(struct course *t, struct corq_core *core)
{
	for (unsigned i = 0; i < t->run->n; i++) {
		const struct closetest_step *step = &t->run->stage[i].step;
		unsigned at = step->port_offset;
		struct corq_listen_opts opts = {.addr = t->target,
			.port = (uint16_t)(t->port + at),
			.ops = &server_ops,
			.user = &t->listens[at]};
		int rc;

		if (t->listener[at] != NULL)
			continue;
		t->listens[at] = *step;
		rc = corq_core_listen(core, &opts, &t->listener[at]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
start(struct corq_core *core, void *arg)
{
	struct course *t = arg;
	int rc = 0;

	corq_core_set_user(core, t);
	if (t->run->opts->plan.server_ours)
		rc = listen_all(t, core);
	corq_core_set_hook(core, hook, t);
	return rc;
}

/* ---- main thread ---- */

static int
find_target(struct course *t)
{
	const struct closetest_options *opts = t->run->opts;
	const char *error;

	if (opts->plan.server_ours) {
		t->target = corq_address(t->inst, CORQ_SIDE_B, NULL);
		t->port = FIRST_PORT;
		return APP_OK;
	}
	t->port = opts->url.port;
	error = app_addr_resolve(opts->url.host, &t->target);
	if (error == NULL)
		error = corq_address_unfit(t->inst, &t->target);
	if (error == NULL)
		return APP_OK;
	app_error("extern '%s': %s", opts->url_text, error);
	return APP_FAILED;
}

static int
run_course(struct course *t)
{
	int rc = find_target(t);

	t->slots = calloc(t->run->opts->at_a_time, sizeof(*t->slots));
	if (rc == APP_OK && t->slots == NULL) {
		app_error("not enough memory");
		rc = APP_FAILED;
	}
	if (rc == APP_OK) {
		rc = corq_run(t->inst, start, t);
		if (rc != 0)
			app_error("cannot start: %s", strerror(-rc));
		rc = rc != 0 ? APP_FAILED : APP_OK;
	}
	free(t->slots);
	return rc;
}

int
closetest_run_corq(struct closetest_run *run)
{
	struct app_device device = run->opts->device;
	uint64_t records = run->opts->connections * run->n;
	struct course *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL) {
		app_error("not enough memory");
		return APP_FAILED;
	}
	t->run = run;
	/* No TIME_WAIT is to be thrown out for want of room, up to 268 MB of them. */
	if (records > 4 * (device.config.max_conns != 0 ? device.config.max_conns : 65536u))
		device.config.max_time_wait = records < 1u << 22 ? (uint32_t)records : 1u << 22;
	device.config.loop_one_core = app_device_is_loop(&device);
	run->record_bytes = 64;
	run->table_bytes = 16;
	run->record_exact = true;
	rc = app_device_start(&device, &t->inst);
	if (rc == APP_OK) {
		rc = run_course(t);
		corq_end(t->inst);
	}
	free(t);
	return rc;
}
