#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq httpd and corq ab in two processes, joined by memif: shared memory, no kernel on the way.
#
# Checks: without -k nothing fails and a connection takes six packets; with -k nothing fails and
# every request is kept alive; the server, asked at its end, counted as many requests and ends with
# status 0. With one core a side, and with two that share the CPUs. Two ends with different numbers of
# cores do not find each other: one line, status not 0.
# A server that leaves the first close to its clients, and a client that takes it: seven packets, and
# TIME_WAIT on the client. With --timewait reuse it opens more connections than it has ports, none
# refused; with strict it gets as many as there are.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq jq

tmp=$(mktemp -d)
: "${LAB_LOGS:=$tmp}"
server=""
cleanup()
{
	[ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
name=corq-memif-$$

# serve CORES OPTION...
serve()
{
	local cores=$1
	shift
	: >"$LAB_LOGS/server.txt" # the line of a server before this one must not be met
	timeout 120 "$CORQ" httpd --name "$name-s" --dev "memif:server,$tmp/sock" --ip 10.0.0.1/24 \
		--cores "$cores" --share-cpus --size 100 "$@" --json "$LAB_LOGS/server.json" >"$LAB_LOGS/server.txt" 2>&1 &
	server=$!
	lab_poll 20 $server grep -q 'httpd: listening on' "$LAB_LOGS/server.txt" || lab_die "corq httpd did not start"
}

# stop REQUESTS: the server's end, and its count
stop()
{
	local status=0
	kill -INT "$(pgrep -P "$server")"
	wait "$server" || status=$?
	server=""
	[ $status = 0 ] || lab_die "corq httpd ended with status $status"
	jq -e --argjson n "$1" '.requests == $n and .ok == $n and .client_errors + .server_errors == 0' \
		"$LAB_LOGS/server.json" >/dev/null || lab_die "the server's count: $(jq -c . "$LAB_LOGS/server.json")"
}

# client CORES N OPTION...
client()
{
	local cores=$1 n=$2
	shift 2
	timeout 60 "$CORQ" ab --name "$name-c" --dev "memif:client,$tmp/sock" --ip 10.0.0.2/24 \
		--cores "$cores" --share-cpus -q -n "$n" -c 100 "$@" http://10.0.0.1/ \
		>"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
		lab_die "corq ab --cores $cores $* ended with $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
	requests=$((requests + n))
}

figure()
{
	sed -n "s/^$1: //p" "$LAB_LOGS/out.txt"
}

# packets WANT: a connection, and as many more as were sent again because the machine let one
# process wait for longer than a timeout.
packets()
{
	awk -v p="$(figure pkts_per_conn)" -v want="$1" -v again="$(figure retransmitted)" \
		-v conns="$(figure conn_opened)" \
		'BEGIN { exit !(p >= want - 0.005 && p <= want + 0.01 + 6 * again / conns) }' ||
		lab_die "$(figure pkts_per_conn) packets a connection, $(figure retransmitted) sent again"
}

for cores in 1 2; do
	requests=0
	serve $cores
	client $cores 20000
	lab_expect_ab "$LAB_LOGS/out.txt" 20000
	packets 6
	lab_say "$cores cores a side: $(figure pkts_per_conn) packets a connection"
	client $cores 50000 -k
	lab_expect_ab "$LAB_LOGS/out.txt" 50000 keepalive
	lab_say "$cores cores a side, -k: $(grep "^Requests per second" "$LAB_LOGS/out.txt")"
	stop $requests
done

requests=0
serve 1 --close after-peer
client 1 100000 --close first --timewait reuse
lab_expect_ab "$LAB_LOGS/out.txt" 100000
packets 7
ports=$(figure ports_total)
[ "$(figure tw_entered)" = 100000 ] && [ "$(figure ports_refused)" = 0 ] ||
	lab_die "TIME_WAIT entered $(figure tw_entered) times, $(figure ports_refused) refused"
[ $(($(figure tw_now) + $(figure tw_reused_early))) = 100000 ] && [ "$(figure tw_now)" -le "$ports" ] ||
	lab_die "TIME_WAIT: $(figure tw_now) now, $(figure tw_reused_early) reused"
lab_say "client first: $(figure pkts_per_conn) packets a connection, $(figure tw_reused_early) tuples reused"
stop $requests

# Strict: a port comes back after a minute only; when the time is over there are as many connections
# as ports.
serve 1 --close after-peer
timeout 60 "$CORQ" ab --name "$name-c" --dev "memif:client,$tmp/sock" --ip 10.0.0.2/24 \
	-q -t 5 -n 100000 -c 100 --close first http://10.0.0.1/ >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
	lab_die "strict: status $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
complete=$(awk '/^Complete requests:/ { print $3 }' "$LAB_LOGS/out.txt")
[ "$complete" = "$ports" ] && [ "$(figure tw_now)" = "$ports" ] && [ "$(figure ports_refused)" -gt 0 ] ||
	lab_die "strict: $complete requests on $ports ports, $(figure ports_refused) opens refused"
lab_say "client first, strict: $complete connections on $ports ports"
stop "$ports"

serve 2
status=0
timeout 60 "$CORQ" ab --name "$name-c" --dev "memif:client,$tmp/sock" --ip 10.0.0.2/24 -q -n 1 \
	http://10.0.0.1/ >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" || status=$?
[ $status != 0 ] && [ $status != 124 ] || lab_die "one core to two: status $status"
[ "$(grep -c "memif" "$LAB_LOGS/err.txt")" = 1 ] || lab_die "one core to two: $(cat "$LAB_LOGS/err.txt")"
stop 0
lab_say "all as it should be"
