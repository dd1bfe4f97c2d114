#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Several cores a side, more of them than CPUs: slow, but everything must be right.
#
# Checks: on loop with 2 and 4 cores a side, and on veth with 2 cores (frames spread by the kernel's
# fanout, which knows nothing of who owns a connection), nothing fails, with and without -k. On loop
# the frames handed over are those that a spread by hash sends astray: (cores - 1) of cores, on both
# sides, none lost on the way. corq httpd with 2 cores answers stock ab; corq ab with 2 cores loads
# stock nginx. A core that does nothing shows: every core of a side has work.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq ab nginx jq curl

# between NAME LOW HIGH
between()
{
	local value
	value=$(lab_figure "$1")
	awk -v v="$value" -v low="$2" -v high="$3" 'BEGIN { exit !(v != "" && v >= low && v <= high) }' ||
		lab_die "$1 is '$value', not from $2 to $3"
}

# Each of the cores whose busy percentages stand in NAME of the JSON did something.
all_worked()
{
	jq -e --argjson n "$2" ".environment.$1 | length == \$n and all(. > 0)" "$LAB_LOGS/out.json" >/dev/null ||
		lab_die "$1: $(jq -c ".environment.$1" "$LAB_LOGS/out.json")"
}

# loop CORES N OPTION...
loop()
{
	local cores=$1 n=$2
	shift 2
	timeout 60 "$CORQ" ab -q --cores "$cores" --share-cpus -n "$n" -c 64 "$@" \
		--json "$LAB_LOGS/out.json" >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
		lab_die "corq ab --cores $cores $* ended with $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
	lab_expect_ab "$LAB_LOGS/out.txt" "$n" "${keep-}"
	all_worked own_busy_percent "$cores"
	all_worked server_busy_percent "$cores"
	between handoff_dropped 0 0
	between server_handoff_dropped 0 0
	lab_say "loop, $cores cores a side $*: $(lab_figure handoff_out) and $(lab_figure server_handoff_out) handed over"
}

lab_up
for cores in 2 4; do
	n=20000
	loop $cores $n
	# Three packets come to each side of a connection; one way of two lies within 5 standard
	# deviations of this for any hash that spreads.
	low=$((3 * n * (cores - 1) / cores * 95 / 100)) high=$((3 * n * (cores - 1) / cores * 105 / 100 + 2000))
	between handoff_out $low $high
	between server_handoff_out $low $high
	keep=keepalive loop $cores 20000 -k
done

lab_httpd_start --cores 2 --share-cpus --size 1000
lab_in_a timeout 60 ab -q -n 10000 -c 50 "http://$LAB_IP_B/" >"$LAB_LOGS/ab.txt"
lab_expect_ab "$LAB_LOGS/ab.txt" 10000
lab_in_a timeout 60 ab -q -k -n 20000 -c 50 "http://$LAB_IP_B/" >"$LAB_LOGS/abk.txt"
lab_expect_ab "$LAB_LOGS/abk.txt" 20000 keepalive
lab_httpd_stop INT

lab_file page 1000
lab_nginx_start a
for keep in "" -k; do
	lab_nginx_requests a
	before=$LAB_COUNT
	# shellcheck disable=SC2086
	lab_corq_ab -q --cores 2 --share-cpus -n 10000 -c 50 $keep --json "$LAB_LOGS/out.json" \
		"http://$LAB_IP_A/page" >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
		lab_die "corq ab --cores 2 $keep ended with $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
	lab_expect_ab "$LAB_LOGS/out.txt" 10000 ${keep:+keepalive}
	all_worked own_busy_percent 2
	between handoff_out 1 10000000
	between handoff_dropped 0 0
	lab_nginx_requests a
	[ $((LAB_COUNT - before)) = 10000 ] || lab_die "nginx counted $((LAB_COUNT - before)) requests"
	lab_say "veth, 2 cores to nginx $keep: $(lab_figure handoff_out) handed over"
done
lab_say "all as it should be"
