#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Stock programs on the kernel against corq httpd across a veth pair.
#
# Checks, with --size: ab -n 50000 -c 100 with and without -k, and wrk for 5 s: no failure of any
# kind, every request kept alive with -k; smaller runs captured: no bad checksum, no
# retransmission, no RST, timestamps in order, every connection closed by both sides within the
# capture; without -k the FIN rides on the last data segment (--fin strict) and a connection takes
# at most 8 packets; with -k no bare FIN while data is unacknowledged. It ends on SIGINT, status 0.
# With a folder: the same capture for an 8.5 KB file in several segments; 100 MB arrive with an
# equal digest, twice over one connection; an empty file; 404 for what is not there, and for a path
# that climbs out, and for names that start with a dot; a folder with an index is redirected to, one
# without is 404. It ends on SIGTERM, status 0, and its last line adds up: a download that the client
# broke off and one that the end of the server cut are named.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq ab wrk curl tcpdump python3

# captured NAME N PATH CHECKS... -- AB-OPTIONS...
captured()
{
	local name=$1 n=$2 path=$3 checks=()
	shift 3
	while [ "$1" != -- ]; do
		checks+=("$1")
		shift
	done
	shift
	lab_capture_start a "$LAB_LOGS/$name.pcap" tcp
	lab_in_a timeout 60 ab -q -n "$n" -c 20 "$@" "http://$LAB_IP_B$path" >"$LAB_LOGS/$name.ab"
	lab_capture_stop
	lab_expect_ab "$LAB_LOGS/$name.ab" "$n"
	./check_pcap.py --addr "$LAB_IP_B" --no-reset --complete --peer-retransmissions 500 \
		"${checks[@]}" "$LAB_LOGS/$name.pcap"
}

# slow_download NAME: in the background, until a million of its bytes are there
slow_download()
{
	lab_spawn_a "$1" curl -sS --limit-rate 1M -o "$LAB_TMP/$1" "http://$LAB_IP_B/big"
	lab_poll 20 "$LAB_PID" has_a_million "$LAB_TMP/$1" || lab_die "$1: a slow download does not go on"
}

has_a_million()
{
	[ -f "$1" ] && [ "$(stat -c %s "$1")" -ge 1000000 ]
}

lab_up
lab_httpd_start --size 1000
captured size-close 2000 / --fin strict --max-packets 8 --min-connections 2000 --
captured size-keep 2000 / --fin acked --min-connections 20 -- -k
lab_in_a timeout 120 ab -q -n 50000 -c 100 "http://$LAB_IP_B/" >"$LAB_LOGS/ab.txt"
lab_expect_ab "$LAB_LOGS/ab.txt" 50000
lab_in_a timeout 120 ab -q -k -n 50000 -c 100 "http://$LAB_IP_B/" >"$LAB_LOGS/abk.txt"
lab_expect_ab "$LAB_LOGS/abk.txt" 50000 keepalive
lab_in_a timeout 60 wrk -t 1 -c 100 -d 5 "http://$LAB_IP_B/" >"$LAB_LOGS/wrk.txt"
lab_expect_wrk "$LAB_LOGS/wrk.txt"
grep -h "^Requests per second" "$LAB_LOGS/ab.txt" "$LAB_LOGS/abk.txt"
grep "^Requests/sec" "$LAB_LOGS/wrk.txt"
lab_httpd_stop INT

lab_file page 8704
lab_file big 100000000
lab_file empty 0
mkdir "$LAB_WWW/with" "$LAB_WWW/without" "$LAB_WWW/.git"
for file in with/index.html without/page .hidden .git/config; do
	echo "$file" >"$LAB_WWW/$file"
done
lab_httpd_start --no-list "$LAB_WWW"
httpd_log=$LAB_LOG
grep -q '(1 core, 5 files, 2 skipped)$' "$httpd_log" || lab_die "$(tail -n 1 "$httpd_log")"
captured page-close 2000 /page --fin strict --min-connections 2000 --
captured page-keep 2000 /page --fin acked --min-connections 20 -- -k
digest=$(sha256sum <"$LAB_WWW/big" | cut -d' ' -f1)
lab_in_a timeout 240 curl -sS --fail -o "$LAB_TMP/one" "http://$LAB_IP_B/big" \
	-o "$LAB_TMP/two" "http://$LAB_IP_B/big" -o "$LAB_TMP/empty" "http://$LAB_IP_B/empty" \
	-w '%{num_connects} %{speed_download}\n' >"$LAB_LOGS/curl.txt"
for file in one two; do
	[ "$(sha256sum <"$LAB_TMP/$file" | cut -d' ' -f1)" = "$digest" ] || lab_die "download $file differs"
done
[ -f "$LAB_TMP/empty" ] && [ ! -s "$LAB_TMP/empty" ] || lab_die "the empty file is not empty"
[ "$(awk '{ n += $1 } END { print n }' "$LAB_LOGS/curl.txt")" = 1 ] ||
	lab_die "curl needed more than one connection"
awk 'NR == 1 { printf "download: %.0f MB/s\n", $2 / 1e6 }' "$LAB_LOGS/curl.txt"
for path in /nothing /../../../../etc/passwd /%2e%2e/%2e%2e/etc/passwd; do
	code=$(lab_in_a curl -sS --path-as-is --max-time 10 -o /dev/null -w '%{http_code}' "http://$LAB_IP_B$path")
	case $code in
	400 | 403 | 404) ;;
	*) lab_die "$path: status $code" ;;
	esac
done
while read -r path want; do
	code=$(lab_in_a curl -sS --max-time 10 -o /dev/null -w '%{http_code}' "http://$LAB_IP_B$path")
	[ "$code" = "$want" ] || lab_die "$path: status $code, not $want"
done <<'LIST'
/with 301
/with/ 200
/without 404
/without/ 404
/without/page 200
/.hidden 404
/.git/config 404
LIST
slow_download broken-off
lab_stop "$LAB_PID" && lab_die "a download of 100 s took one"
slow_download cut
lab_httpd_stop TERM
tail -n 1 "$httpd_log"
python3 - "$httpd_log" <<'PYTHON' || lab_die "the last line does not add up"
import re, sys
line = open(sys.argv[1]).read().splitlines()[-1]
got = re.fullmatch(r"corq httpd: (\d+) connections, (\d+) requests \((\d+) ok, 1 redirect, (\d+) client errors, "
                   r"0 server errors; 2 of them cut short\), (\d+) body bytes acknowledged", line)
connections, requests, ok, client, body = map(int, got.groups())
whole = 4000 * 8704 + 2 * 10**8 + len("with/index.html\nwithout/page\n")
print(f"body bytes beyond the whole downloads: {body - whole}")
# Of the two that were cut, the clients took about 1 MB each, and their buffers some more.
sys.exit(requests != ok + 1 + client or not 10**6 < body - whole < 4 * 10**7)
PYTHON
lab_say "all as it should be"
