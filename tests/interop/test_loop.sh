#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab against the server embedded in the loop device: a million connections, packet for packet.
#
# Checks: a million connections, none failed, 6.00 packets each, all ends accounted for: a TIME_WAIT
# record entered for each, as many in the end as there are tuples, the others recycled by SYNs, none
# thrown out; no port left in use. The same, smaller, with both ends on one core, with each --close
# (rst: five packets and no TIME_WAIT), with a short --tw-time (records are gone by themselves), with
# a page of many segments, and with one connection at a time. What does not go together is refused.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: "${LAB_LOGS:=$tmp}"

# run N PACKETS OPTION...: PACKETS a connection, and as many more as were sent again because the
# machine let one side wait for longer than a timeout (each with its answer, and a RST at times).
run()
{
	local n=$1 packets=$2
	shift 2
	what="-n $n $*"
	timeout 100 "$CORQ" ab -q -n "$n" "$@" >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
		lab_die "$what: status $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
	lab_expect_ab "$LAB_LOGS/out.txt" "$n" "${keep-}"
	awk -v p="$(lab_figure pkts_per_conn)" -v want="$packets" -v again="$(lab_figure retransmitted)" \
		-v more="$(lab_figure server_retransmitted)" -v conns="$(lab_figure conn_opened)" \
		-v kept="${keep:+1}" \
		'BEGIN { exit !(p >= want - 0.005 && p <= want + kept + 0.01 + 3 * (again + more) / conns) }' ||
		lab_die "$what: $(lab_figure pkts_per_conn) packets a connection, $(lab_figure retransmitted) sent again"
	lab_is ports_used 0 ports_refused 0 conn_live 0 tw_evicted 0 rx_nombuf 0
	lab_say "$what: $(lab_figure pkts_per_conn) packets a connection, $(lab_figure conn_per_second) a second"
}

run 1000000 6 -c 200
ports=$(lab_figure ports_total)
lab_is conn_opened 1000000 conn_closed 1000000 server_tw_entered 1000000 server_tw_evicted 0 \
	server_tw_now "$ports" server_tw_recycled $((1000000 - ports)) tw_entered 0
run 30000 6 -c 1
run 30000 6 -c 100 --loop-one-core
for close in first after-peer abort-if-empty; do
	run 30000 6 -c 100 --close $close
	lab_is server_tw_entered 30000 tw_entered 0
done
run 30000 5 -c 100 --close rst
lab_is server_tw_entered 0 tw_entered 0
run 150000 6 -c 100 --timewait lab --tw-time 1
lab_is server_tw_entered 150000 server_tw_evicted 0
run 150000 6 -c 100 --timewait reuse
# Ten requests: SYN, SYN-ACK, ten pairs (the first with the ACK), FIN, FIN with ACK, ACK. A connection
# stays open until all are done, so the last response may get a delayed ACK of its own: one more.
keep=keepalive run 100000 25 -c 10000 -k
keep=""
timeout 60 "$CORQ" ab -q -n 200 -c 10 --size 1000000 >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
	lab_die "a page of 1 MB: status $?"
lab_expect_ab "$LAB_LOGS/out.txt" 200

lab_refused "tw-time" "$CORQ" ab -q --timewait strict --tw-time 1
lab_refused "close" "$CORQ" ab -q --close last
lab_refused "timewait" "$CORQ" ab -q --timewait never
lab_say "all as it should be"
