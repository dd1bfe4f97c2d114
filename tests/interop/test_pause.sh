#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A generator that was stopped for a moment, or is asked for far more than can be served, comes back.
#
# First the knee: the smallest power of two of slots from which twice as many bring less than a tenth
# more. Then, at four times the knee: the rate is at least half of that at the knee, and nothing fails.
# With a pause of 10 ms of the generator's core, at the knee and at four times that: nothing fails,
# the rate is back (two tenths of a second at 90 % of the second before) within a second, and there
# are never more half-open connections than --half-open allows (256 by default, and 50). After a pause
# of 500 ms, longer than a retransmission timeout, the ACKs are looked at before the timers: the
# generator itself sends nothing again.
# Rates depend on what else the machine does; each of these has three tries.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: "${LAB_LOGS:=$tmp}"

# load SECONDS REQUESTS SLOTS OPTION...: what is over first ends it
load()
{
	local seconds=$1 requests=$2 slots=$3
	shift 3
	timeout 60 "$CORQ" ab -q -t "$seconds" -n "$requests" -c "$slots" "$@" \
		>"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
		lab_die "-c $slots $*: status $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
	grep -qE '^Failed requests: +0$' "$LAB_LOGS/out.txt" || lab_die "-c $slots $*: failed requests"
	rate=$(awk '/^Requests per second:/ { printf "%d", $4 }' "$LAB_LOGS/out.txt")
}

tries()
{
	local try
	for try in 1 2 3; do
		"$@" && return 0
	done
	lab_die "three times: $said"
}

at_four_knees()
{
	load 1 40000 $knee
	local at_knee=$rate
	load 1 40000 $((4 * knee))
	said="$rate a second with -c $((4 * knee)), $at_knee with -c $knee"
	[ $((2 * rate)) -ge "$at_knee" ]
}

# paused MS SLOTS BOUND OPTION...
paused()
{
	local ms=$1 slots=$2 bound=$3 back half
	shift 3
	load 3 100000000 "$slots" --pause-ms "$ms" --pause-at 1 "$@"
	back=$(lab_figure pause_recovery_ms) half=$(lab_figure half_open_peak)
	said="pause of $ms ms, -c $slots $*: $rate a second, back after $back ms, half open $half"
	[ "$half" -gt 0 ] && [ "$half" -le "$bound" ] || lab_die "$said"
	[ "$back" != "not within the run" ] && [ "$back" -le 1000 ]
}

nothing_again()
{
	paused "$@" || return 1
	said="$said, sent again $(lab_figure retransmitted)"
	[ "$(lab_figure retransmitted)" = 0 ]
}

# Whether SLOTS bring a tenth more than `last`. Asked twice before it is believed that they do not.
grows()
{
	load 1 40000 "$1"
	[ $((10 * rate)) -ge $((11 * last)) ] || load 1 40000 "$1"
	[ $((10 * rate)) -ge $((11 * last)) ]
}

knee=8 last=0
for ((slots = 8; slots <= 1024; slots *= 2)); do
	grows $slots || break
	knee=$slots last=$rate
done
lab_say "the rate stops growing at -c $knee ($last a second)"
tries at_four_knees
lab_say "$said"
tries paused 10 "$knee" 256
lab_say "$said"
tries paused 10 $((4 * knee)) 256
lab_say "$said"
tries paused 10 $((4 * knee)) 50 --half-open 50
lab_say "$said"
tries nothing_again 500 $((4 * knee)) 256
lab_say "$said"
lab_say "all as it should be"
