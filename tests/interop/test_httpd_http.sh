#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# HTTP as corq httpd speaks it, over the kernel's TCP across a veth pair.
#
# Checks: each status on the wire, HEAD equal to GET; single ranges and multipart/byteranges, byte
# for byte; conditional requests of curl (-z, --etag-compare), resumed downloads (-C); 2000 pipelined
# requests of four kinds answered in order; listings whose every link leads to the right file;
# uploads of 100 MB by curl (-T, --data-binary, chunked) with equal digests; 1100 slow headers do not
# keep a client out; slow headers, slow bodies and readers that take nothing are cut and counted,
# those that are fast enough are not, and nobody who half-closes or lets us close escapes; answers are
# not cut by what is pipelined behind the last one (--max-requests); bytes that a reset destroys are not
# counted as acknowledged; the access log: every line's form, the counts of it, every Nth, a FIFO that
# nobody reads; the JSON agrees with its schema.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq curl python3

lab_up
lab_file page 3000
lab_file big 100000000
lab_file mid 36000000
mkdir -p "$LAB_WWW/sub/below" "$LAB_WWW/empty"
for name in 'a b' 'c<d>&"e' "x'y" 'p:q' '50%' 'ä' .hidden; do
	echo "$name" >"$LAB_WWW/sub/$name"
done
touch -d @-5 "$LAB_WWW/sub/a b"
long=$(printf 'ä%.0s' {1..120}) # 3 of it make a path of 2163 bytes in percent form
mkdir -p "$LAB_WWW/sub/$long/$long/$long"
echo long >"$LAB_WWW/sub/$long/$long/$long/long"
mkfifo "$LAB_WWW/sub/fifo"
echo deep >"$LAB_WWW/sub/below/deep.txt"
url=http://$LAB_IP_B

client()
{
	lab_in_a ./http_client.py "$LAB_IP_B" "$LAB_WWW" "$@" || lab_die "http_client.py $*"
}

# get WANT ARGUMENT...: curl must see that status.
get()
{
	local want=$1 code
	shift
	code=$(lab_in_a curl -sS --max-time 60 -o "$LAB_TMP/body" -w '%{http_code}' "$@") || lab_die "curl $*: status $?"
	[ "$code" = "$want" ] || lab_die "curl $*: $code, not $want"
}

log=$LAB_LOGS/access.log
rm -f "$log" "$log.slow"
lab_httpd_start --upload /up --upload-digest --upload-max 134217728 --access-log "$log" \
	--json "$LAB_LOGS/httpd.json" "$LAB_WWW"
httpd_log=$LAB_LOG
client statuses ranges pipeline listing

# ---- conditional requests and resumed downloads, as curl makes them
get 200 --etag-save "$LAB_TMP/etag" "$url/page"
cmp "$LAB_TMP/body" "$LAB_WWW/page"
get 304 --etag-compare "$LAB_TMP/etag" "$url/page"
echo '"other"' >"$LAB_TMP/etag"
get 200 --etag-compare "$LAB_TMP/etag" "$url/page"
get 304 -z "$LAB_WWW/page" "$url/page"
get 200 -z '1 January 2020' "$url/page"
get 304 -H 'If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT' "$url/page"
get 412 -H 'If-Unmodified-Since: Wed, 01 Jan 2020 00:00:00 GMT' "$url/page"
head -c 1000 "$LAB_WWW/page" >"$LAB_TMP/part"
lab_in_a curl -sS --max-time 20 -C - -o "$LAB_TMP/part" "$url/page"
cmp "$LAB_TMP/part" "$LAB_WWW/page"

# ---- 100 MB up
digest=$(sha256sum <"$LAB_WWW/big" | cut -d' ' -f1)
for way in -T --data-binary chunked; do
	case $way in
	-T) args=(-T "$LAB_WWW/big") ;;
	--data-binary) args=(--data-binary "@$LAB_WWW/big") ;;
	*) args=(-T "$LAB_WWW/big" -H 'Transfer-Encoding: chunked') ;;
	esac
	get 200 "${args[@]}" "$url/up/load"
	[ "$(cat "$LAB_TMP/body")" = "100000000 bytes sha256 $digest" ] || lab_die "upload $way: $(cat "$LAB_TMP/body")"
done
get 405 -T "$LAB_WWW/page" "$url/page"
lab_httpd_stop TERM

python3 ../../apps/ab/check_json.py ../../apps/httpd/schema.json "$LAB_LOGS/httpd.json"
python3 - "$LAB_LOGS/httpd.json" "$log" <<'PYTHON' || lab_die "the access log is not right"
import json, re, sys
counts = json.load(open(sys.argv[1]))
form = re.compile(r'10\.77\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\] "([^"]*)" (\d{3}) (\d+|-) (\d+) '
                  r'(kept|closed|cut|reset)')
lines = [form.fullmatch(l) for l in open(sys.argv[2]).read().splitlines()]
if None in lines:
    sys.exit(f"line {lines.index(None) + 1} has another form")
print(f"access log: {len(lines)} lines, {counts['log_dropped']} dropped")
if len(lines) != counts["log_lines"] or len(lines) + counts["log_dropped"] != counts["requests"]:
    sys.exit(f"{len(lines)} lines for {counts['requests']} requests")
if any(l[1] == "" for l in lines):
    sys.exit("a line without its request")
by_status = {s: sum(l[2] == s for l in lines) for s in ("206", "304", "408")}
if counts["log_dropped"] == 0 and (by_status["206"] != counts["partial"] or by_status["304"] != counts["not_modified"]):
    sys.exit(f"{by_status} in the log, {counts}")
puts = [l for l in lines if l[1].startswith(("PUT /up/load", "POST /up/load"))]
if len(puts) != 3 or any(int(l[4]) < 10000 for l in puts):
    sys.exit("100 MB came in less than 10 ms")
if counts["uploads"] < 3 or counts["upload_bytes"] < 3 * 10**8 or counts["cut_short"] != 0:
    sys.exit(f"uploads: {counts}")
PYTHON

# ---- deadlines, each with its own client at the same time
lab_httpd_start --upload /up --header-timeout 2 --send-timeout 3 --idle-timeout 2 --access-log "$log.slow" \
	--access-sample 10 --json "$LAB_LOGS/slow.json" "$LAB_WWW"
for job in slow-header slow-body slow-reader lazy; do
	lab_spawn_a "$job" ./http_client.py "$LAB_IP_B" "$LAB_WWW" "$job"
	jobs+=("$job:$LAB_PID")
done
lab_in_a curl -sS --max-time 20 --limit-rate 30k -T "$LAB_WWW/page" "$url/up" >/dev/null || lab_die "a fair upload was cut"
for job in "${jobs[@]}"; do
	status=0
	wait "${job#*:}" || status=$?
	lab_forget "${job#*:}"
	cat "$LAB_LOGS/${job%:*}.log"
	[ $status = 0 ] || lab_die "${job%:*} failed"
done
lab_httpd_stop INT
python3 ../../apps/ab/check_json.py ../../apps/httpd/schema.json "$LAB_LOGS/slow.json"
python3 - "$LAB_LOGS/slow.json" "$log.slow" <<'PYTHON' || lab_die "the deadlines' counts are not right"
import json, sys
c = json.load(open(sys.argv[1]))
print({k: c[k] for k in ("headers_late", "slow_senders", "slow_readers", "idle_closed")})
lines = len(open(sys.argv[2]).read().splitlines())
if lines != c["requests"] // 10 - c["log_dropped"]:
    sys.exit(f"{lines} lines of {c['requests']} requests, of which each tenth")
if c["headers_late"] != 1 or c["slow_senders"] != 1 or c["slow_readers"] != 41:
    sys.exit(1)
PYTHON

# ---- a bound of requests a connection; of headers that came in part: a core keeps 1024
lab_httpd_start --max-requests 3 --header-timeout 60 --size 5000
connects=$(lab_in_a curl -sS --max-time 10 -w '%{num_connects}\n' -o /dev/null -o /dev/null -o /dev/null -o /dev/null \
	"$url/a" "$url/b" "$url/c" "$url/d" | awk '{ n += $1 } END { print n }')
[ "$connects" = 2 ] || lab_die "4 requests, 3 a connection: $connects connections"
client whole loris
lab_in_a curl -sS --max-time 10 -o /dev/null "$url/page" || lab_die "no page after 1100 slow headers"
lab_httpd_stop HUP
grep -qx 'headers_evicted: 77' "$LAB_LOG" || lab_die "$(tail -n 3 "$LAB_LOG")"

# ---- an access log that nobody reads: refused at the start; later it does not hold up the end
mkfifo "$LAB_TMP/fifo"
status=0
lab_in_b timeout 20 "$CORQ" httpd --dev "$LAB_DEV" --ip "$LAB_IP_B/$LAB_LEN" --access-log "$LAB_TMP/fifo" --size 1 \
	>"$LAB_LOGS/fifo.log" 2>&1 || status=$?
[ $status = 2 ] || lab_die "a FIFO without reader: status $status"
grep -q 'nobody reads there' "$LAB_LOGS/fifo.log" || lab_die "a FIFO without reader: $(cat "$LAB_LOGS/fifo.log")"
exec 9<>"$LAB_TMP/fifo"
lab_httpd_start --access-log "$LAB_TMP/fifo" --size 3000 --json "$LAB_LOGS/lost.json"
client lost
lab_in_a curl -sS --max-time 20 -o /dev/null "$url/$(printf '%01500d' 0)[1-300]"
status=0
lab_stop "$lab_httpd_pid" TERM || status=$?
exec 9>&-
[ $status = 1 ] || lab_die "a FIFO that nobody reads: status $status"
python3 - "$LAB_LOGS/lost.json" <<'PYTHON' || lab_die "what is lost is not counted"
import json, sys
c = json.load(open(sys.argv[1]))
print({k: c[k] for k in ("requests", "cut_short", "bytes_body", "log_lines", "log_dropped")})
# What the two clients of `lost` took into their buffers is acknowledged: two pages at most.
sys.exit(not (c["log_lines"] + c["log_dropped"] == c["requests"] and 300 * 3000 <= c["bytes_body"] <= 302 * 3000 and
              c["requests"] - 320 <= c["cut_short"] <= c["requests"] - 300))
PYTHON
tail -n 3 "$httpd_log"
lab_say "all as it should be"
