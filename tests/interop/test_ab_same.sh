#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab against stock ab (Debian's apache2-utils, the judge) on one nginx and on odd_server.py:
# the same options to both; the reports must have the same lines in the same order and the same
# counts, and the exit status must be the same. ab runs on side A, on the kernel, to its own
# address; corq ab on side B, over the wire. The requests that odd_server.py saw must be the same
# but for User-Agent, and the files of -e, -g and -w must satisfy one reader.
#
# What may differ is named below with its reason; apps/README.md lists the same. Prints a row for
# each option set. Any other difference fails.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq nginx ab curl python3 tcpdump

wrong=0
url=http://10.77.0.1:81

# both NAME PATH [ALLOWED...] -- OPTION...: one option set, -n 40 unless it says otherwise.
both()
{
	local name=$1 path=$2 allowed=() n=40 ab corq target pid bind=() files=()
	shift 2
	while [ "$1" != -- ]; do
		allowed+=("$1")
		shift
	done
	shift
	case " $* " in *" -n "*) n=$(sed 's/.* -n \([0-9]*\).*/\1/' <<<" $* ") ;; esac
	case $path in
	refused) target=http://$LAB_IP_A:82/ ;;
	nginx/*) target=http://$LAB_IP_A/${path#nginx/} ;;
	*) target=$url/$path ;;
	esac
	# Both at a time, on CPUs of their own: the odd server numbers the requests of each by itself.
	numbers_from_0
	[ "${with_files-}" ] && files=(-e "$LAB_TMP/SIDE.csv" -g "$LAB_TMP/SIDE.tsv")
	[ "${with_bind-}" ] && bind=(-B)
	lab_in_a timeout -s KILL 10 ab -q -n 40 "$@" "${bind[@]}" ${bind:+"$LAB_IP_A"} "${files[@]/SIDE/ab}" "$target" \
		>"$LAB_LOGS/$name.ab.txt" 2>"$LAB_LOGS/$name.ab.err" &
	pid=$!
	LAB_TIMEOUT=20 lab_corq_ab -q -n 40 "$@" "${bind[@]}" ${bind:+"$LAB_IP_B"} "${files[@]/SIDE/corq}" "$target" \
		>"$LAB_LOGS/$name.corq.txt" 2>"$LAB_LOGS/$name.corq.err"
	corq=$?
	wait $pid
	ab=$?
	note "$name: $* /$path" "$n" "$LAB_LOGS/$name.ab.txt" "$ab" "$LAB_LOGS/$name.corq.txt" "$corq" "${allowed[@]}"
}

numbers_from_0()
{
	lab_in_a curl -sS --max-time 5 -o /dev/null "$url/reset-numbers" || lab_die "the odd server is gone"
}

# note ARGUMENT...: a row of the table, to be compared at the end.
note()
{
	printf '%s\t' "$@" >>"$LAB_TMP/table"
	echo >>"$LAB_TMP/table"
}

# interrupted NAME COMMAND...: SIGINT after the first progress line; status and report into NAME.
interrupted()
{
	local name=$1 spawn=$2 pid
	shift 2
	"$spawn" "$name" "$@"
	pid=$LAB_PID
	lab_wait_line "$LAB_LOG" '^Completed' "$pid" || lab_die "$name: no progress"
	lab_stop "$pid" INT
	LAB_STATUS=$?
}

lab_up
lab_file page 8704
printf 'a=1&b=2\n%.0s' {1..500} >"$LAB_TMP/form"
printf 'hello\n' >"$LAB_TMP/small"
lab_nginx_start a
lab_spawn_a odd ./odd_server.py "$LAB_IP_A" 81 "$LAB_TMP/requests"
lab_wait_line "$LAB_LOG" '^listening' "$LAB_PID" || lab_die "the odd server did not start"

# ---- nginx
both nginx nginx/page -- -n 500 -c 20
both nginx-keep nginx/page -- -n 500 -c 20 -k
both nginx-head nginx/page -- -i -c 4
both nginx-head-keep nginx/page -- -i -k -c 4
both nginx-404 nginx/nothing -- -c 4
both nginx-404-keep nginx/nothing -- -c 4 -k -l
both nginx-post nginx/page -- -p "$LAB_TMP/form" -T application/x-www-form-urlencoded -c 4
both nginx-put nginx/page -- -u "$LAB_TMP/form" -k -c 4
both nginx-method nginx/page -- -m DELETE -c 4
with_files=1 both nginx-files nginx/page -- -n 200 -c 10
both nginx-table nginx/page -- -w -k -n 100 -c 10
both nginx-table-attributes nginx/page -- -x border=1 -y class=r -z align=right -l -p "$LAB_TMP/small"

# ---- the request
both headers plain -- -H "Accept-Encoding: gzip" -H "accept: text/html" -H "Host: example.org" -c 2
both agent plain -- -H "User-Agent: x/1" -p "$LAB_TMP/small" -c 2
both authorized plain -- -C a=b -A user:pass -P proxy:secret -A "a:b:c" -k -c 2
both proxy plain -- -X "$LAB_IP_A:81" -P proxy:secret -c 2
both proxy-default-port plain "status=ab has no default port for the proxy" \
	"report=ab has no default port for the proxy" -- -X "$LAB_IP_A" -c 2
both post-method echo -- -p "$LAB_TMP/form" -m PATCH -c 2
both post echo -- -p "$LAB_TMP/form" -T application/x-www-form-urlencoded -c 4
both put echo -- -u "$LAB_TMP/form" -c 4 -S

# ---- responses
both no-percentages plain -- -d -c 4
both plain-times plain -- -S -c 4
both plain-times-only plain -- -d -S -l -c 4
both close-delimited close -- -c 4
both chunked chunked -- -c 4
both varying vary -- -c 1
both varying-allowed vary -- -l -c 4
both split split -- -c 4
both errors some-500 -- -c 1
both no-content 204 -- -c 4
both no-server no-server -- -c 4
both long-header long-header -- -c 4
both two-parts slow -- -c 4 -v 3
both extra extra -- -c 4
both kept keep -- -k -c 4
both kept-said keep-3-said -- -k -c 1
both kept-refused plain -- -k -c 4
both cut-short half "status=a response that was cut short makes corq's exit code 1" -- -c 1
both empty empty "status=a response that was cut short makes corq's exit code 1" -- -c 1
both garbage garbage "status=what is no HTTP makes corq's exit code 1" -- -c 4
both reset-before-r reset-before "hang=ab forgets a request when data and reset meet it at once" -- -r -c 1
both reset-mid-r reset-mid "hang=ab forgets a request when data and reset meet it at once" -- -r -c 1
both reset-any-length reset-mid "hang=ab forgets a request when data and reset meet it at once" -- -r -l -c 1
both reset-before reset-before -- -c 1
both reset-mid reset-mid -- -c 1
both reset-end reset-end -- -c 1
both silent stall -- -s 1 -n 4 -c 2
both silent-half stall-half -- -s 1 -n 4 -c 2
both slower-than-s drip -- -s 1 -n 4 -c 2
both refused refused -- -n 4
both refused-r refused "Failed requests=a refused connect is one failure, Connect, in corq" \
	"Connect=a refused connect is one failure, Connect, in corq" \
	"Receive=ab calls a refused connect Receive, and each second one an exception too" \
	"Exceptions=ab calls a refused connect Receive, and each second one an exception too" \
	"status=nothing was answered: that makes corq's exit code 1" -- -r -n 4
for odd in negative-length huge-length two-lengths huge-chunk http09; do
	both $odd $odd "status=what is cut short or no HTTP makes corq's exit code 1" -- -c 2 -n 4
done
for odd in length-and-chunked trailers bare-lf status-999 switching; do
	both $odd $odd -- -c 2 -n 4
done
both above plain "status=a wrong command line is 2 in corq, 22 in ab" -- -n 10 -c 20

# ---- where ab is broken
both continue continue "Non-2xx responses=ab takes 100 Continue for the answer" \
	"Server Software=ab takes 100 Continue for the answer" \
	"Document Length=ab takes 100 Continue for the answer" \
	"HTML transferred=ab takes 100 Continue for the answer" -- -c 4
both only-interim only-interim "Non-2xx responses=ab takes 103 Early Hints for the answer" \
	"status=what is cut short or no HTTP makes corq's exit code 1" -- -c 2 -n 4
both nul nul "Server Software=ab reads a header up to a NUL" "Document Length=ab reads a header up to a NUL" \
	"HTML transferred=ab reads a header up to a NUL" -- -c 2 -n 4
both huge-header huge-header "status=ab gives up on headers above 8 KB" "report=ab gives up on headers above 8 KB" -- -c 4
both kept-closed keep-3 "counts=ab counts a kept connection that is closed between requests as failed, or" \
	"status=ab ends when a kept connection is closed between requests" \
	"report=ab ends when a kept connection is closed between requests" -- -k -c 4
both kept-no-length keep-no-length "counts=ab takes a missing length for 0" "status=ab takes a missing length for 0" "report=ab takes a missing length for 0" -- -k -c 4
both kept-chunked chunked-keep "counts=ab takes a chunked body for the next answer" \
	"status=ab takes a chunked body for the next answer" "report=ab takes a chunked body for the next answer" -- -k -s 1 -c 4

# ---- buffers and addresses
lab_capture_start a "$LAB_LOGS/window.pcap" "src host $LAB_IP_B and tcp[tcpflags] & tcp-syn != 0"
with_bind=1 both buffers plain -- -b 4096 -c 2
lab_capture_stop || lab_die "no capture"
# A SYN may be sent twice on a busy machine; each of them has the window.
tcpdump -n -r "$LAB_LOGS/window.pcap" >"$LAB_TMP/syns" 2>/dev/null
[ "$(grep -c 'win 4096,' "$LAB_TMP/syns")" -ge 40 ] && ! grep -v -q 'win 4096,' "$LAB_TMP/syns" ||
	lab_die "-b 4096 does not bound the window"
both peer peer "Server Software=the server says the address of the client" -- -c 2
lab_in_b timeout 20 "$CORQ" ab -q -n 20 -B "$LAB_NET.7" --dev "veth:$LAB_IF_B" --ip "$LAB_NET.2-$LAB_NET.9/24" \
	--gw none "$url/peer" >"$LAB_LOGS/bind.txt" 2>&1
grep -qE "^Server Software: +$LAB_NET.7\$" "$LAB_LOGS/bind.txt" || lab_die "-B: not connected from $LAB_NET.7"

# ---- the time limit sets -n, the last one of both counts; 50000 requests or the end of the time
both limit-then-n plain -- -t 20 -n 30 -c 2
both limit nginx/page "counts=each did what it could in the time" -- -n 30 -t 1 -k -c 2

# ---- interrupted
numbers_from_0
interrupted interrupted.ab lab_spawn_a stdbuf -oL ab -n 100000 -c 4 -k "$url/keep"
ab=$LAB_STATUS
interrupted interrupted.corq lab_spawn_b "$CORQ" ab --ab-strict --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" \
	--gw none -n 100000 -c 4 -k "$url/keep"
note "interrupted: -n 100000 -c 4 -k /keep" 0 "$LAB_LOGS/interrupted.ab.log" "$ab" \
	"$LAB_LOGS/interrupted.corq.log" "$LAB_STATUS" "counts=each was interrupted when it was"
grep -q '^corq ab: interrupted after' "$LAB_LOGS/interrupted.corq.log" || lab_die "no line says that it was interrupted"

# ---- the table, files and requests
./ab_compare.py reports "$LAB_TMP/table" || wrong=$((wrong + 1))
./ab_compare.py files 200 "$LAB_TMP/ab.csv" "$LAB_TMP/corq.csv" "$LAB_TMP/ab.tsv" "$LAB_TMP/corq.tsv" || wrong=$((wrong + 1))
for side in ab corq; do
	command -v gnuplot >/dev/null || break
	gnuplot -e "set datafile separator '\t'; stats '$LAB_TMP/$side.tsv' using 5 every ::1 nooutput; print STATS_records;
		set datafile separator ','; stats '$LAB_TMP/$side.csv' using 2 every ::1 nooutput; print STATS_records" \
		>"$LAB_TMP/$side.gnuplot" 2>&1
	[ "$(tr '\n' ' ' <"$LAB_TMP/$side.gnuplot")" = "200 101 " ] || lab_die "gnuplot on the files of $side: $(cat "$LAB_TMP/$side.gnuplot")"
done
./ab_compare.py requests "$LAB_TMP/requests" || wrong=$((wrong + 1))

[ $wrong = 0 ] || lab_die "$wrong of the above are not as they should be"
lab_say "all as it should be"
