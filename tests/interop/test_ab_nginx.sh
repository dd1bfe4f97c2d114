#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab against stock nginx on the kernel, across a veth pair.
#
# Checks, for -n 50000 -c 100 with and without -k on an 8.5 KB page: status 0; the report says
# 50000 complete, none failed, the right Document Length, and with -k all kept alive; the JSON
# says the same and its sums add up; nginx itself counted that many requests; no connection is
# left in nginx. The report's block has the labels of stock ab's, in its order. Smaller runs are
# captured: no bad checksum, no retransmission, no RST, timestamps in order, no FIN while data is
# unacknowledged, and without -k every connection closed by both sides.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq nginx ab jq curl tcpdump

url=http://10.77.0.1/page

# labels FILE: the words before each value of ab's block. What depends on the figures is left out.
labels()
{
	sed -n '/^Server Software:/,/ 100%/p' "$1" |
		grep -vE '^(WARNING|ERROR)|These results|deviation apart' |
		sed 's/:.*//; s/^\( *[0-9]*%\).*/\1/'
}

check_json()
{
	jq -e --argjson n "$2" '.schema and .requests.complete == $n and .requests.failed == 0
		and .requests.started == .requests.complete + .requests.aborted + .requests.outstanding
		and .connections.opened == .connections.closed + .connections.live
		and .requests.per_second > 0' "$1" >/dev/null || {
		jq . "$1" >&2 || cat "$1" >&2
		lab_die "the JSON of corq ab is not as it should be"
	}
}

# loaded NAME N [OPTION...]: a run of corq ab, and nginx's count of it.
loaded()
{
	local name=$1 n=$2 before keep=""
	shift 2
	[ "${1-}" = -k ] && keep=keepalive
	lab_nginx_requests a
	before=$LAB_COUNT
	lab_corq_ab -q -n "$n" "$@" --json "$LAB_LOGS/$name.json" "$url" >"$LAB_LOGS/$name.txt" \
		2>"$LAB_LOGS/$name.err" ||
		lab_die "corq ab ended with status $?: $(cat "$LAB_LOGS/$name.err")"
	lab_expect_ab "$LAB_LOGS/$name.txt" "$n" $keep
	grep -qE '^Document Length: +8704 bytes$' "$LAB_LOGS/$name.txt" || lab_die "Document Length is wrong"
	check_json "$LAB_LOGS/$name.json" "$n"
	lab_poll 3 0 lab_settled || lab_die "corq ab left connections behind in nginx"
	lab_nginx_requests a
	[ $((LAB_COUNT - before)) = "$n" ] ||
		lab_die "nginx counted $((LAB_COUNT - before)) requests of $n"
	grep -h "^Requests per second" "$LAB_LOGS/$name.txt"
}

# captured NAME CHECKS... -- OPTIONS...
captured()
{
	local name=$1 checks=()
	shift
	while [ "$1" != -- ]; do
		checks+=("$1")
		shift
	done
	shift
	lab_capture_start a "$LAB_LOGS/$name.pcap" tcp
	# One seed: the second run meets nginx's TIME_WAIT of the first with newer timestamps of the
	# same offsets, and is taken (RFC 6191). Another secret's could be older: ACK, RST, SYN again.
	loaded "$name" 2000 "$@" -c 20 --seed 7
	lab_capture_stop
	./check_pcap.py --addr "$LAB_IP_B" --fin acked --no-reset --complete --peer-retransmissions 500 \
		"${checks[@]}" "$LAB_LOGS/$name.pcap"
}

lab_up
lab_file page 8704
lab_nginx_start a
captured close --min-connections 2000 --
captured keep --min-connections 20 -- -k
loaded full-close 50000 -c 100
loaded full-keep 50000 -k -c 100

for kind in close keep; do
	option=""
	[ $kind = keep ] && option=-k
	lab_in_a ab -q $option -n 2000 -c 20 "$url" >"$LAB_LOGS/stock-$kind.txt" 2>&1
	diff <(labels "$LAB_LOGS/stock-$kind.txt") <(labels "$LAB_LOGS/$kind.txt") ||
		lab_die "the report's labels are not ab's ($kind)"
done
lab_say "all as it should be"
