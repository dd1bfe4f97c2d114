#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh - stock programs on the kernel against corq httpd, the same on each device.
#
#   programs.sh veth|xdp|tap            called by test_programs_*.sh
#
# Checks, in this order:
#   captured   ab with and without -k, and 5 MB with curl: check_pcap.py finds no violation
#   browser    headless Chromium shows a page with 50 images: each decoded, with its own size, each
#              seen in the screenshot (LAB_LOGS/page.png stays)
#   curl       1000 transfers with --parallel, each file equal to what is served; 100 MB down and up
#              with equal digests; HTTP/1.0; a download resumed in its middle
#   load       wrk -c 1000, ab -c 1000 with and without -k
#   proxy      nginx in front of corq, with connections kept and without: ab and wrk through it,
#              5 MB down, 100 MB up, and nothing in nginx's error log
#   odd        clients.py (keep-alive, pipelining, bytes one by one, small windows, half-closed);
#              kernels without timestamps, SACK, window scaling, and with ECN
#   aborts     200 downloads broken off in their middle: corq's figures add up
# Zero failures each. On veth and xdp the receive ring loses 3 % of what comes at most: corq brakes when
# it fills, 1000 clients or not. On xdp each loss that the kernel knows is in rx_missed. curl keeps 300
# transfers in flight at most, whatever it is told.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq ab wrk curl tcpdump python3 nginx chromium jq

kind=$1
httpd=$(cd ../../apps && pwd)
host=http://10.77.0.2

device_is_there()
{
	case $kind in
	xdp) lab_has_xdp || lab_skip "this kernel has no AF_XDP sockets" ;;
	tap) [ -c /dev/net/tun ] || lab_skip "there is no /dev/net/tun" ;;
	esac
}

# What is served: the page, and files with random bytes.
make_site()
{
	page/page.py make "$LAB_WWW"
	mkdir "$LAB_WWW/many"
	python3 - "$LAB_WWW" <<-'PYTHON'
		import os, sys
		for i in range(1, 1001):
		    with open(f"{sys.argv[1]}/many/{i}", "wb") as file:
		        file.write(os.urandom(i * i % 50021))
	PYTHON
	lab_file page 8704
	lab_file less 200000
	lab_file some 5000000
	lab_file big 100000000
	big_digest=$(sha256sum "$LAB_WWW/big" | cut -d' ' -f1)
}

same()
{
	cmp "$LAB_WWW/$1" "$2" || lab_die "$1 is not what came"
	rm -f "$2"
}

# fetch ARGUMENT...: curl, which must succeed
fetch()
{
	lab_in_a curl -sS --fail --max-time 120 "$@" || lab_die "curl $*: status $?"
}

# uploaded ARGUMENT...: 100 MB sent by curl; the answer has their number and digest
uploaded()
{
	fetch -T "$LAB_WWW/big" -o "$LAB_TMP/answer" "$@" -w 'lab: 100 MB up: %{speed_upload} bytes/s\n'
	[ "$(cat "$LAB_TMP/answer")" = "100000000 bytes sha256 $big_digest" ] ||
		lab_die "100 MB up: the answer is $(head -c 200 "$LAB_TMP/answer")"
}

# loads NAME N OPTION... URL: ab, of which every request must succeed
loads()
{
	local name=$1 n=$2 keep=""
	shift 2
	[ "$1" = -k ] && keep=keepalive
	lab_in_a timeout 120 ab -q -s 60 -n "$n" "$@" >"$LAB_LOGS/$name.ab" 2>&1 ||
		lab_die "ab $* ended with status $?: $(tail -n 5 "$LAB_LOGS/$name.ab")"
	lab_expect_ab "$LAB_LOGS/$name.ab" "$n" $keep
	lab_say "ab $*: $(awk '/^Requests per second/ { print $4 }' "$LAB_LOGS/$name.ab") a second"
}

wrks()
{
	local name=$1
	shift
	lab_in_a timeout 120 wrk --timeout 20 -t 1 "$@" >"$LAB_LOGS/$name.wrk"
	lab_expect_wrk "$LAB_LOGS/$name.wrk"
	lab_say "wrk $*: $(awk '/^Requests\/sec/ { print $2 }' "$LAB_LOGS/$name.wrk") a second"
}

# ---- the parts

captured()
{
	lab_capture_start a "$LAB_LOGS/wire.pcap" tcp
	loads wire-close 500 -c 20 $host/page
	loads wire-keep 500 -k -c 20 $host/page
	fetch -o "$LAB_TMP/some" $host/some
	same some "$LAB_TMP/some"
	lab_capture_stop
	./check_pcap.py --addr "$LAB_IP_B" --fin acked --no-reset --complete --min-connections 521 \
		--peer-retransmissions 500 "$LAB_LOGS/wire.pcap" || lab_die "frames lost: $(lab_lost)"
}

browser()
{
	lab_in_a ./chromium.sh $host/ "$LAB_LOGS" 800,300 ||
		lab_die "chromium ended with status $?: $(tail -n 5 "$LAB_LOGS/chromium.log")"
	page/page.py dom "$LAB_LOGS/page.html"
	page/page.py shot "$LAB_LOGS/page.png"
}

curls()
{
	mkdir "$LAB_TMP/many"
	fetch --no-progress-meter --parallel --parallel-max 300 --parallel-immediate -o "$LAB_TMP/many/#1" "$host/many/[1-1000]" \
		-w '%{http_code} %{num_connects}\n' >"$LAB_LOGS/parallel.txt"
	[ "$(grep -c '^200 ' "$LAB_LOGS/parallel.txt")" = 1000 ] || lab_die "curl --parallel: not 1000 answers"
	diff -rq "$LAB_WWW/many" "$LAB_TMP/many" || lab_die "curl --parallel: files differ"
	rm -r "$LAB_TMP/many"
	lab_say "curl --parallel: 1000 files on $(awk '{ n += $2 } END { print n }' "$LAB_LOGS/parallel.txt") connections"

	fetch -o "$LAB_TMP/big" $host/big -w 'lab: 100 MB down: %{speed_download} bytes/s\n'
	same big "$LAB_TMP/big"
	uploaded --expect100-timeout 30 $host/up/big
	fetch --http1.0 -o "$LAB_TMP/big" $host/some
	same some "$LAB_TMP/big"
	head -c 33333333 "$LAB_WWW/big" >"$LAB_TMP/big"
	fetch -C - -o "$LAB_TMP/big" $host/big -w '%{http_code} %{size_download}\n' >"$LAB_LOGS/resumed.txt"
	[ "$(cat "$LAB_LOGS/resumed.txt")" = "206 66666667" ] || lab_die "resumed: $(cat "$LAB_LOGS/resumed.txt")"
	same big "$LAB_TMP/big"
}

load()
{
	wrks direct -c 1000 -d 2 $host/page
	loads direct-keep 30000 -k -c 1000 $host/page
	loads direct-close 10000 -c 1000 $host/page
}

proxy()
{
	local way
	lab_nginx_start a proxy="$LAB_IP_B"
	for way in keep close; do
		loads proxy-$way 5000 -c 200 "http://127.0.0.1/$way/page"
		loads proxy-$way-k 5000 -k -c 1000 "http://127.0.0.1/$way/page"
		wrks proxy-$way -c 200 -d 1 "http://127.0.0.1/$way/page"
		fetch -o "$LAB_TMP/big" "http://127.0.0.1/$way/some"
		same some "$LAB_TMP/big"
	done
	uploaded http://127.0.0.1/keep/up/big
	lab_nginx_stop
	[ ! -s "$LAB_LOGS/nginx.log" ] || lab_die "nginx said: $(head -n 3 "$LAB_LOGS/nginx.log")"
}

# kernel_with NAME=VALUE...: a download, and ab, by a kernel with these settings
kernel_with()
{
	local setting
	for setting in "$@"; do
		lab_sysctl "$LAB_NS_A" "net/ipv4/${setting%=*}" "${setting#*=}"
	done
	fetch -o "$LAB_TMP/big" $host/some
	same some "$LAB_TMP/big"
	loads kernel 200 -c 20 $host/page
}

odd()
{
	lab_in_a timeout 120 python3 clients.py "$LAB_IP_B" 80 "$LAB_WWW" || lab_die "clients.py: see above"
	kernel_with tcp_ecn=1
	kernel_with tcp_timestamps=0
	kernel_with tcp_sack=0 tcp_window_scaling=0
	kernel_with tcp_ecn=2 tcp_timestamps=1 tcp_sack=1 tcp_window_scaling=1
}

# The server's own figures at its end: they add up, and nothing failed there.
served()
{
	lab_httpd_stop INT
	grep '^corq httpd: [0-9]' "$LAB_LOGS/httpd.log"
	python3 "$httpd/ab/check_json.py" "$httpd/httpd/schema.json" "$LAB_LOGS/$1.json"
	jq -e '.server_errors == 0 and .no_memory == 0 and .no_room == 0' "$LAB_LOGS/$1.json" >/dev/null ||
		lab_die "$(jq -c . "$LAB_LOGS/$1.json")"
	lab_say "$kind, $1: $(jq -c .tcp "$LAB_LOGS/$1.json")"
}

# What the ring had no room for, of all that has come to side B since the start.
missed()
{
	local n came
	n=$(jq .tcp.rx_missed "$LAB_LOGS/served.json")
	[ "$kind" != tap ] || return 0
	came=$(lab_count "$LAB_NS_B" "$LAB_IF_B" rx packets)
	lab_say "$kind: $n of $came frames missed"
	[ $((33 * n)) -le "$came" ] || lab_die "$kind: $n of $came frames missed"
	[ "$kind" != xdp ] || [ "$n" = "$(lab_count "$LAB_NS_B" "$LAB_IF_B" rx dropped)" ] ||
		lab_die "xdp: $n frames missed by corq's count, the kernel: $(lab_lost)"
}

# 100 at a time, each of which would take 100 s. curl says how much each one got.
aborts()
{
	lab_httpd_start --json "$LAB_LOGS/aborts.json" "$LAB_WWW"
	lab_in_a curl -sS --parallel --parallel-max 100 --parallel-immediate --max-time 1.5 --limit-rate 1M \
		-o /dev/null "$host/big?[1-200]" -w '%{exitcode} %{size_download} %{num_connects}\n' \
		>"$LAB_LOGS/aborts.txt" 2>/dev/null || :
	fetch -o "$LAB_TMP/page" $host/page
	same page "$LAB_TMP/page"
	lab_poll 5 0 lab_settled || true # corq has seen that it arrived
	served aborts
	python3 - "$LAB_LOGS/aborts.txt" "$LAB_LOGS/aborts.json" <<-'PYTHON' || lab_die "aborts: the figures differ"
		import json, sys
		rows = [list(map(int, line.split())) for line in open(sys.argv[1])]
		o = json.load(open(sys.argv[2]))
		cut = [r for r in rows if r[1] > 0]
		got = sum(r[1] for r in rows)
		print(f"aborts: {len(rows)} transfers, {len(cut)} in their middle with {got} bytes; corq: "
		      f"{o['connections']} connections, {o['cut_short']} cut short, {o['bytes_body']} bytes acknowledged")
		sys.exit(not (len(rows) == 200 and all(r[0] == 28 for r in rows) and len(cut) >= 100
		              and len(cut) <= o["cut_short"] <= 200 and o["requests"] == o["ok"]
		              and o["cut_short"] + 1 <= o["requests"] <= 201
		              and sum(r[2] for r in rows) + 1 == o["connections"]
		              and got <= o["bytes_body"] < 200 * 10**8))
	PYTHON
}

ulimit -n 20000 2>/dev/null || lab_skip "no 20000 open files are allowed here"
device_is_there
lab_up --dev "$kind"
make_site
lab_httpd_start --json "$LAB_LOGS/served.json" --upload /up --upload-digest "$LAB_WWW"
for part in ${PROGRAMS_PARTS:-captured browser curls load proxy odd}; do
	begin=$SECONDS
	$part
	lab_say "$kind, $part: $((SECONDS - begin)) s, frames without room: $(lab_lost)"
done
served served
missed
aborts
lab_say "$kind: all as it should be"
