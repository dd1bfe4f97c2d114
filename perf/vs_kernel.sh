#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vs_kernel.sh - the same work by corq and by the kernel, on the same two CPUs, in turns.
#
# Called by run.sh (BUILD, REPS, CPU_A, CPU_B). The kernel's ends are two namespaces joined by veth,
# offloads off, congestion control cubic (tests/interop/lab.sh); corq's are the two sides of loop.
# Each repetition runs every measurement once, A B A B ...; the figures are medians.
#
#   conn       open, 100 bytes, 100 bytes back, server closes, next     against the epoll pair
#   keepalive  100 bytes, 100 bytes back, on open connections           against the epoll pair
#   stream     one flow                                                 against the epoll pair
#   http       ab: a connection a request   corq ab and corq httpd on loop, against ab and nginx
#   http_k     ab -k                        the same
#   wrk        nginx with wrk, keep-alive: the kernel's best known pair, no counterpart
#
# Prints one JSON object a measurement: value is corq's, peer_value the kernel's.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
LAB_CPU_A=$CPU_B LAB_CPU_B=$CPU_A # side a serves, b asks
. "$here/../tests/interop/lab.sh"
SECONDS_EACH=${SECONDS_EACH:-3}
SLOTS=${SLOTS:-512}
STREAM_BYTES=$((256 << 20))
AB_N=${AB_N:-30000}
peers=$BUILD/perf/peers
tmp=""

# put FIGURE SIDE UNIT VALUE
put()
{
	echo "$1 $2 $3 $4" >>"$tmp/values"
	echo "   $1 $2 $4 $3" >&2
}

# field JSON-FILE NAME: the value of a JSON object, or of the measurement of that name
field()
{
	python3 - "$1" "$2" <<-'PYTHON'
		import json, sys
		for line in open(sys.argv[1], encoding="utf-8"):
		    o = json.loads(line)
		    if sys.argv[2] in o:
		        print(o[sys.argv[2]])
		    elif o.get("name") == sys.argv[2]:
		        print(o["value"])
	PYTHON
}

# ---- corq

corq_conn()
{
	"$BUILD/perf/bench_conn" --slots "$SLOTS" --runs 1 --warm-ms 1500 \
		--window-ms $((SECONDS_EACH * 1000)) "$@" >"$tmp/out" 2>"$tmp/err" ||
		lab_die "bench_conn failed: $(tail -n 2 "$tmp/err")"
}

corq_stream()
{
	"$BUILD/perf/bench_stream" --runs 1 --warm-ms 1500 --window-ms $((SECONDS_EACH * 1000)) \
		>"$tmp/out" 2>"$tmp/err" || lab_die "bench_stream failed: $(tail -n 2 "$tmp/err")"
}

corq_http()
{
	"$BUILD/apps/corq" ab -q -n $((AB_N * 30)) -c 100 --json "$tmp/ab.json" "$@" \
		>"$tmp/out" 2>"$tmp/err" || lab_die "corq ab failed: $(tail -n 2 "$tmp/err")"
	python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["requests"]
assert r["failed"] == 0, r
print(r["per_second"])' "$tmp/ab.json"
}

# ---- the kernel

epoll_pair()
{
	local server=("$peers/epoll_server" --port 8080) client=("$peers/epoll_client" --port 8080)
	lab_spawn_a epoll_server "${server[@]}" --addr "$LAB_IP_A" --request 100 "$@"
	lab_wait_port a 8080 "$LAB_PID" || lab_die "epoll_server did not start"
	lab_in_b "${client[@]}" --addr "$LAB_IP_A" --bind-range "$LAB_NET.10-$LAB_NET.17" "$@" \
		"${client_options[@]}" >"$tmp/out" || lab_die "epoll_client failed: $(cat "$tmp/out")"
	lab_stop "$LAB_PID" TERM || true
}

kernel_ab()
{
	lab_in_b ab -q -n "$1" -c 100 "${@:2}" "http://$LAB_IP_A/100" >"$tmp/ab" 2>&1
	lab_expect_ab "$tmp/ab" "$1" || lab_die "ab failed"
	awk '/^Requests per second:/ { print $4 }' "$tmp/ab"
}

kernel_wrk()
{
	lab_in_b wrk -t 1 -c 100 -d "${SECONDS_EACH}s" "http://$LAB_IP_A/100" >"$tmp/wrk"
	lab_expect_wrk "$tmp/wrk" || lab_die "wrk failed"
	awk '/^Requests\/sec:/ { print $2 }' "$tmp/wrk"
}

# ---- one repetition

repetition()
{
	corq_conn
	put conn corq 1/s "$(field "$tmp/out" conn.connections_per_second)"
	client_options=(--concurrency "$SLOTS" --seconds "$SECONDS_EACH" --request 100)
	epoll_pair --size 100
	put conn kernel 1/s "$(field "$tmp/out" connections_per_second)"

	corq_conn --keepalive
	put keepalive corq 1/s "$(field "$tmp/out" conn.requests_per_second)"
	epoll_pair --size 100 --keepalive
	put keepalive kernel 1/s "$(field "$tmp/out" requests_per_second)"

	corq_stream
	put stream corq Gbit/s "$(field "$tmp/out" stream.rate)"
	client_options=(--concurrency 1 --requests 8 --request 100)
	epoll_pair --size $STREAM_BYTES --keepalive
	put stream kernel Gbit/s "$(field "$tmp/out" requests_per_second |
		awk -v b=$STREAM_BYTES '{ print $1 * b * 8 / 1e9 }')"

	put http corq 1/s "$(corq_http)"
	put http kernel 1/s "$(kernel_ab "$AB_N")"
	put http_k corq 1/s "$(corq_http -k)"
	put http_k kernel 1/s "$(kernel_ab $((AB_N * 3)) -k)"
	put wrk kernel 1/s "$(kernel_wrk)"
}

medians()
{
	python3 - "$tmp/values" <<-'PYTHON'
		import json, statistics, sys
		values, units = {}, {}
		for line in open(sys.argv[1], encoding="utf-8"):
		    figure, side, unit, value = line.split()
		    values.setdefault(figure, {}).setdefault(side, []).append(float(value))
		    units[figure] = unit
		peers = {"http": "ab + nginx, veth", "http_k": "ab -k + nginx, veth"}
		for figure, sides in values.items():
		    mid = {s: statistics.median(v) for s, v in sides.items()}
		    o = {"name": "vs_kernel." + figure, "value": mid.get("corq", mid["kernel"]),
		         "unit": units[figure], "runs": len(next(iter(sides.values())))}
		    for s, v in sides.items():
		        o[s + "_min"], o[s + "_max"] = min(v), max(v)
		    if "corq" in mid:
		        o.update(peer=peers.get(figure, "epoll pair, veth"), peer_value=mid["kernel"],
		                 ratio=round(mid["corq"] / mid["kernel"], 2))
		        print("%-10s corq %12.1f  kernel %12.1f %s  ratio %.1f" % (figure, mid["corq"],
		              mid["kernel"], units[figure], o["ratio"]), file=sys.stderr)
		    print(json.dumps(o))
	PYTHON
}

lab_up --b kernel >&2
tmp=$LAB_TMP
lab_addr_add b 10 17
lab_file 100 100
lab_nginx_start a
for ((rep = 1; rep <= REPS; rep++)); do
	echo "-- repetition $rep of $REPS" >&2
	repetition
done
medians
