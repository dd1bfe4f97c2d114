/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verdict.c - see verdict.h. Main thread, after the run; no state.
 *
 * The question is what would have to be faster for the rate to grow. In a closed loop each slot
 * waits for something at any moment, so the causes are asked in this order:
 *
 *   1. generator, its CPU: requests spent LATE_PERCENT of their time waiting for a core of ours
 *      that was ready and did not run, since others had its CPU. A third, because then the rate
 *      grows by half when they go; and because a target that is slow keeps this share low however
 *      busy the machine is: what it adds to a request is long against a time slice (3 ms).
 *   2. nic, sending: frames stood ready for BLOCKED_PERCENT of the time and the device took none,
 *      or its driver held the core so long in calls that send (AF_PACKET's sleeps until its ring
 *      has room, so that it never refuses a frame). A ring that is full now and then is a burst;
 *      one that is full for a quarter of the time is a rate. On loop the "device" is the server
 *      that does not fetch, and nothing sleeps: target.
 *   3. generator, its work: one core has both ends; or a core did something in BUSY_PERCENT of the
 *      time, and it had a backlog. A polling core looks busy when each turn finds one frame, though
 *      many a turn would cost little more; a core that is behind finds several: with c slots, all
 *      that is not in the target waits here. BATCH frames a turn are a backlog (fewer slots: a
 *      share of them). Time without CPU inside such a turn counts as busy, so what was lost is
 *      taken off first, unless most of the slots are found waiting in each turn: then it is here
 *      that they wait.
 *   4. nic, receiving: it lost more than LOSS_SHARE of the frames, and no core of ours was behind.
 *      A retransmission timeout costs 200 ms, a thousand times a request in a LAN.
 *   5. target: nothing of the above, so the time went by over there.
 *
 * On loop with a core for either end both are known, so they are compared instead (but for 2.): the
 * limit is the side that had work, or waited for its CPU, for more of the time. Within CLOSE_POINTS
 * of one another that says little; then it is the side where more requests a turn were found
 * waiting: with c slots, what does not wait here waits there. LOADED_PERCENT of both sides' CPU
 * taken by others is a machine that measures its load as well as corq: the reason says so.
 */
#include "ab/verdict.h"

#include <math.h>
#include <stdio.h>

#define LATE_PERCENT    33.0
#define BLOCKED_PERCENT 25.0
#define BUSY_PERCENT    90.0
#define BATCH           4.0
#define DEEP_BATCH      32.0
#define LOSS_SHARE      1e-4
#define CLOSE_POINTS    10.0
#define LOADED_PERCENT  10.0

static bool
has_backlog(const struct ab_verdict_in *in)
{
	double want = (double)in->concurrency / 8;

	return in->batch >= (want < 1 ? 1 : want < BATCH ? want : BATCH);
}

/* A turn finds half of the slots, or half of what a turn can take. */
static bool
most_wait_here(const struct ab_verdict_in *in)
{
	double half = (double)in->concurrency / 2;

	return in->concurrency > 1 && in->batch >= (half < DEEP_BATCH ? half : DEEP_BATCH);
}

static bool
is_saturated(const struct ab_verdict_in *in)
{
	double lost = in->own_cpu_lost > 0 ? in->own_cpu_lost : 0;

	if (in->own_busy < BUSY_PERCENT)
		return false;
	return (in->own_busy - lost >= BUSY_PERCENT && has_backlog(in)) || most_wait_here(in);
}

static void
say_late(const struct ab_verdict_in *in, struct ab_verdict *out)
{
	char lost[64] = "an unknown share";

	if (in->own_cpu_lost >= 0)
		snprintf(lost, sizeof(lost), "%.0f %%", in->own_cpu_lost);
	out->name = "generator";
	snprintf(out->reason, sizeof(out->reason),
		"requests waited %.0f %% of their time for a core of ours that did not run; it "
		"lost "
		"%s of its CPU to others",
		in->slots_late, lost);
}

static void
say_blocked(const struct ab_verdict_in *in, struct ab_verdict *out)
{
	out->name = in->loop ? "target" : "nic";
	snprintf(out->reason, sizeof(out->reason),
		in->loop
			? "the server did not fetch the frames that were ready for it, %.0f %% of "
			  "the time"
			: "the device did not take the frames that were ready, %.0f %% of the time",
		in->tx_blocked);
}

static void
say_held(const struct ab_verdict_in *in, struct ab_verdict *out)
{
	out->name = "nic";
	snprintf(out->reason, sizeof(out->reason),
		"the device's driver held our core in long calls that send, %.0f %% of the time",
		in->tx_waited);
}

static void
say_waited(const struct ab_verdict_in *in, struct ab_verdict *out)
{
	int n;

	out->name = "target";
	n = snprintf(out->reason, sizeof(out->reason),
		"our busiest core is busy %.0f %% with %.1f frames a turn, it lost no frame and "
		"waited for replies",
		in->own_busy, in->batch > 0 ? in->batch : 0);
	if (in->zero_windows + in->ports_refused != 0)
		snprintf(out->reason + n, sizeof(out->reason) - (size_t)n,
			" (%llu zero windows, %llu ports refused)",
			(unsigned long long)in->zero_windows,
			(unsigned long long)in->ports_refused);
}

/* ---- loop ---- */

static double
more_of(double a, double b)
{
	return a > b ? a : b;
}

uint64_t
ab_verdict_loaded(const struct ab_verdict_in *in)
{
	double lost = in->own_cpu_lost < in->peer_cpu_lost ? in->own_cpu_lost : in->peer_cpu_lost;

	return in->loop && !in->both_ends && lost >= LOADED_PERCENT ? (uint64_t)(lost + 0.5) : 0;
}

static bool
server_limits(const struct ab_verdict_in *in)
{
	double own = more_of(in->own_busy, in->own_cpu_lost);
	double peer = more_of(in->peer_busy, in->peer_cpu_lost);

	if (in->tx_blocked >= BLOCKED_PERCENT)
		return true;
	if (fabs(own - peer) < CLOSE_POINTS && in->own_backlog != in->peer_backlog)
		return in->peer_backlog > in->own_backlog;
	return peer >= own;
}

static int
say_lost(char *out, size_t len, double percent)
{
	return percent >= LOADED_PERCENT
		       ? snprintf(out, len, " and without its CPU %.0f %%", percent)
		       : 0;
}

static void
judge_loop(const struct ab_verdict_in *in, struct ab_verdict *out)
{
	char own_lost[48] = "", peer_lost[48] = "";
	double most = more_of(
		more_of(in->own_busy, in->peer_busy), more_of(in->own_cpu_lost, in->peer_cpu_lost));
	int n;

	out->name = server_limits(in) ? "target" : "generator";
	say_lost(own_lost, sizeof(own_lost), in->own_cpu_lost);
	say_lost(peer_lost, sizeof(peer_lost), in->peer_cpu_lost);
	n = snprintf(out->reason, sizeof(out->reason),
		"our busiest core is busy %.0f %%%s, with %.1f requests a turn; the server's %.0f "
		"%%%s, with %.1f",
		in->own_busy, own_lost, in->own_backlog, in->peer_busy, peer_lost,
		in->peer_backlog);
	if (in->tx_blocked >= BLOCKED_PERCENT)
		n += snprintf(out->reason + n, sizeof(out->reason) - (size_t)n,
			"; the server did not fetch the frames that were ready for it, %.0f %% of "
			"the time",
			in->tx_blocked);
	if (ab_verdict_loaded(in) != 0)
		snprintf(out->reason + n, sizeof(out->reason) - (size_t)n,
			"; both lost their CPU to others");
	else if (most < BUSY_PERCENT && in->tx_blocked < BLOCKED_PERCENT)
		snprintf(out->reason + n, sizeof(out->reason) - (size_t)n,
			"; neither is full: a higher -c may raise the rate");
}

void
ab_verdict_find(const struct ab_verdict_in *in, struct ab_verdict *out)
{
	size_t room = sizeof(out->reason);

	if (in->loop && !in->both_ends) {
		judge_loop(in, out);
	} else if (in->slots_late >= LATE_PERCENT) {
		say_late(in, out);
	} else if (in->tx_blocked >= BLOCKED_PERCENT) {
		say_blocked(in, out);
	} else if (in->tx_waited >= BLOCKED_PERCENT && !in->loop) {
		say_held(in, out);
	} else if (in->both_ends) {
		out->name = "generator";
		snprintf(out->reason, room, "client and server share one core, busy %.0f %%",
			in->own_busy);
	} else if (is_saturated(in)) {
		out->name = "generator";
		snprintf(out->reason, room,
			"our busiest core is busy %.0f %%, with %.1f frames a turn", in->own_busy,
			in->batch);
	} else if ((double)in->rx_lost > LOSS_SHARE * (double)in->rx_packets) {
		out->name = "nic";
		snprintf(out->reason, room,
			"the device lost %llu frames beside %llu before we saw them",
			(unsigned long long)in->rx_lost, (unsigned long long)in->rx_packets);
	} else {
		say_waited(in, out);
	}
}
