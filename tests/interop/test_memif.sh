#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq httpd and corq ab in two processes, joined by memif: shared memory, no kernel on the way.
#
# Checks: without -k nothing fails and a connection takes six packets; with -k nothing fails and
# every request is kept alive; the server, asked at its end, counted as many requests and ends with
# status 0. With one core a side, and with two that share the CPUs. Two ends with different numbers of
# cores do not find each other: one line, status not 0.
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

# serve CORES
serve()
{
	timeout 120 "$CORQ" httpd --name "$name-s" --dev "memif:server,$tmp/sock" --ip 10.0.0.1/24 \
		--cores "$1" --share-cpus --size 100 --json "$LAB_LOGS/server.json" >"$LAB_LOGS/server.txt" 2>&1 &
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

packets()
{
	sed -n 's/^pkts_per_conn: //p' "$LAB_LOGS/out.txt"
}

# Six, unless the machine stopped one process for longer than a retransmission timeout: then the
# packets that were sent again are counted, and no others.
six_packets()
{
	local again
	again=$(sed -n 's/^retransmitted: //p' "$LAB_LOGS/out.txt")
	awk -v p="$(packets)" -v again="$again" -v n="$1" \
		'BEGIN { exit !(p >= 5.995 && p <= 6.005 + 2 * again / n) }'
}

for cores in 1 2; do
	requests=0 exact=""
	serve $cores
	for try in 1 2 3; do
		client $cores 20000
		lab_expect_ab "$LAB_LOGS/out.txt" 20000
		six_packets 20000 || lab_die "$cores cores: $(packets) packets a connection"
		[ "$(packets)" = 6.00 ] && exact=yes && break
	done
	[ "$exact" ] || [ $cores != 1 ] || lab_die "never six packets a connection: $(packets)"
	lab_say "$cores cores a side: $(packets) packets a connection (run $try)"
	client $cores 50000 -k
	lab_expect_ab "$LAB_LOGS/out.txt" 50000 keepalive
	lab_say "$cores cores a side, -k: $(grep "^Requests per second" "$LAB_LOGS/out.txt")"
	stop $requests
done

serve 2
status=0
timeout 60 "$CORQ" ab --name "$name-c" --dev "memif:client,$tmp/sock" --ip 10.0.0.2/24 -q -n 1 \
	http://10.0.0.1/ >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" || status=$?
[ $status != 0 ] && [ $status != 124 ] || lab_die "one core to two: status $status"
[ "$(grep -c "memif" "$LAB_LOGS/err.txt")" = 1 ] || lab_die "one core to two: $(cat "$LAB_LOGS/err.txt")"
stop 0
lab_say "all as it should be"
