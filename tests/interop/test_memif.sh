#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq httpd and corq ab in two processes, joined by memif: shared memory, no kernel on the way.
#
# Checks: without -k nothing fails and a connection takes six packets; with -k nothing fails and
# every request is kept alive; the server, asked at its end, counted as many requests and ends with
# status 0. With one core a side, and with two that share the CPUs. Two ends with different numbers of
# cores do not find each other: one line, status not 0.
# Each end is killed 10 times in mid-run: the other lives on. A server says nothing and serves the next
# client; a client says so and connects again by itself to the next server.
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
server="" two="" one="" client=""
cleanup()
{
	local pid
	for pid in $server $two $one $client; do
		kill -TERM "$pid" 2>/dev/null || true
	done
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
	timeout 280 "$CORQ" httpd --name "$name-s" --dev "memif:server,$tmp/sock" --ip 10.0.0.1/24 \
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

# packets WANT: a connection, and as many more as were sent again because the machine let one
# process wait for longer than a timeout.
packets()
{
	awk -v p="$(lab_figure pkts_per_conn)" -v want="$1" -v again="$(lab_figure retransmitted)" \
		-v conns="$(lab_figure conn_opened)" \
		'BEGIN { exit !(p >= want - 0.005 && p <= want + 0.01 + 6 * again / conns) }' ||
		lab_die "$(lab_figure pkts_per_conn) packets a connection, $(lab_figure retransmitted) sent again"
}

# One core to two: the client looks for its server for 10 s, beside what comes next.
timeout 280 "$CORQ" httpd --name "$name-2" --dev "memif:server,$tmp/two" --ip 10.0.1.1/24 --cores 2 --share-cpus \
	--no-huge --size 1 >"$LAB_LOGS/two.txt" 2>&1 &
two=$!
lab_poll 20 $two grep -q 'httpd: listening on' "$LAB_LOGS/two.txt" || lab_die "corq httpd did not start"
timeout 60 "$CORQ" ab --name "$name-1" --dev "memif:client,$tmp/two" --ip 10.0.1.2/24 --no-huge -q -n 1 \
	http://10.0.1.1/ >"$LAB_LOGS/one.txt" 2>&1 &
one=$!

for cores in 1 2; do
	requests=0
	serve $cores
	client $cores 20000
	lab_expect_ab "$LAB_LOGS/out.txt" 20000
	packets 6
	lab_say "$cores cores a side: $(lab_figure pkts_per_conn) packets a connection"
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
ports=$(lab_figure ports_total)
[ "$(lab_figure tw_entered)" = 100000 ] && [ "$(lab_figure ports_refused)" = 0 ] ||
	lab_die "TIME_WAIT entered $(lab_figure tw_entered) times, $(lab_figure ports_refused) refused"
[ $(($(lab_figure tw_now) + $(lab_figure tw_reused_early))) = 100000 ] && [ "$(lab_figure tw_now)" -le "$ports" ] ||
	lab_die "TIME_WAIT: $(lab_figure tw_now) now, $(lab_figure tw_reused_early) reused"
lab_say "client first: $(lab_figure pkts_per_conn) packets a connection, $(lab_figure tw_reused_early) tuples reused"
stop $requests

# Strict: a port comes back after a minute only; when the time is over there are as many connections
# as ports.
serve 1 --close after-peer
timeout 60 "$CORQ" ab --name "$name-c" --dev "memif:client,$tmp/sock" --ip 10.0.0.2/24 \
	-q -t 5 -n 100000 -c 100 --close first http://10.0.0.1/ >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
	lab_die "strict: status $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
complete=$(awk '/^Complete requests:/ { print $3 }' "$LAB_LOGS/out.txt")
[ "$complete" = "$ports" ] && [ "$(lab_figure tw_now)" = "$ports" ] && [ "$(lab_figure ports_refused)" -gt 0 ] ||
	lab_die "strict: $complete requests on $ports ports, $(lab_figure ports_refused) opens refused"
lab_say "client first, strict: $complete connections on $ports ports"
stop "$ports"

status=0
wait $one || status=$?
one=""
[ $status != 0 ] && [ $status != 124 ] || lab_die "one core to two: status $status"
[ "$(grep -c "memif: no server" "$LAB_LOGS/one.txt")" = 1 ] || lab_die "one core to two: $(cat "$LAB_LOGS/one.txt")"
kill -INT "$(pgrep -P $two)"
wait $two || lab_die "corq httpd of two cores ended with status $?"
two=""

# ---- either end killed in mid-run, 20 times in all: the other lives on, and says so in one line

# Here the ends of memif are named by its roles: either can be the client of HTTP.
# run_ab ROLE: one that would run for long, in the background
run_ab()
{
	"$CORQ" ab --name "$name-c" --dev "memif:$1,$tmp/sock" --ip 10.0.0.2/24 --no-huge -q -t 60 -n 1000000000 \
		-c 50 -r http://10.0.0.1/ >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" &
	client=$!
}

# run_httpd ROLE
run_httpd()
{
	: >"$LAB_LOGS/server.txt"
	"$CORQ" httpd --name "$name-s" --dev "memif:$1,$tmp/sock" --ip 10.0.0.1/24 --no-huge --size 100 \
		>"$LAB_LOGS/server.txt" 2>&1 &
	server=$!
	lab_poll 20 $server grep -q 'httpd: listening on' "$LAB_LOGS/server.txt" || lab_die "corq httpd did not start"
}

# CPU time of process $client, in ticks of 10 ms; its start takes some 15, then it polls
works()
{
	local stat
	read -r -a stat <"/proc/$client/stat" && [ $((stat[13] + stat[14])) -ge 25 ]
}

# kill_ab ROLE I: in the midst of its work
kill_ab()
{
	lab_poll 20 $client works || lab_die "ab does nothing: $(cat "$LAB_LOGS/err.txt")"
	kill -9 $client 2>/dev/null || lab_die "ab ended before its time: $(cat "$LAB_LOGS/err.txt")"
	wait $client 2>/dev/null || true
	client=""
	kill -0 "$server" 2>/dev/null || lab_die "httpd died with the $1 ($2): $(cat "$LAB_LOGS/server.txt")"
}

# last_ab ROLE: the next ones get all they want and end well, and so does httpd
last_ab()
{
	local status=0 i
	for i in 1 2 3 4 5; do
		timeout 60 "$CORQ" ab --name "$name-c" --dev "memif:$1,$tmp/sock" --ip 10.0.0.2/24 --no-huge -q -n 1000 \
			-c 50 http://10.0.0.1/ >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
			lab_die "run $i after 10 deaths of the $1: status $?: $(cat "$LAB_LOGS/err.txt")"
		lab_expect_ab "$LAB_LOGS/out.txt" 1000
	done
	kill -INT "$server"
	wait "$server" || status=$?
	server=""
	[ $status = 0 ] || lab_die "httpd ended with status $status"
}

run_httpd server
for i in 1 2 3 4 5 6 7 8 9 10; do
	run_ab client
	kill_ab client $i
done
last_ab client
[ "$(wc -l <"$LAB_LOGS/server.txt")" = 2 ] || lab_die "a server speaks: $(cat "$LAB_LOGS/server.txt")"
lab_say "the server outlives 10 clients, and serves the next"

run_ab server
run_httpd client
for i in 1 2 3 4 5 6 7 8 9 10; do
	kill_ab server $i
	run_ab server
done
kill_ab server $i
last_ab server
for line in "lost its link" "is back"; do
	grep -q "^corq: warning: memif:$tmp/sock $line" "$LAB_LOGS/server.txt" || lab_die "no word: $(cat "$LAB_LOGS/server.txt")"
done
lab_say "the client outlives 11 servers, and connects to the next"
lab_say "all as it should be"
