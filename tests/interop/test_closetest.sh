#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq closetest: the report's lines in their form, JSON by its schema and sums, and what it is for:
# 100000 connections from one address to one port, twice in a row, without a failure in `reuse` and
# in `strict` with abort-if-empty; in `strict` with after-peer up to the count of ports, and
# EADDRNOTAVAIL from there on. Against a kernel's server that closes first, 20000 (CORQ_LONG=1:
# 100000): its TIME_WAITs of the first run meet the second's SYNs, which have other secrets. It
# answers those that look old by an ACK, and they come again at once, not by a timer.
# Bad input is one line.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

apps=$(cd ../../apps && pwd)
lab_up
N=100000
over_n=20000
[ "${CORQ_LONG-}" ] && over_n=$N

valid()
{
	python3 "$apps/ab/check_json.py" "$apps/closetest/schema.json" "$LAB_TMP/json" >/dev/null ||
		lab_die "$what: the JSON is not valid"
}

# run STATUS ARGUMENT...: out and err into files, with that exit code; the JSON is good
run()
{
	local want=$1 status=0
	shift
	what=$*
	timeout 60 "$CORQ" closetest --name "ct$$" --json "$LAB_TMP/json" "$@" >"$LAB_TMP/out" \
		2>"$LAB_TMP/err" </dev/null || status=$?
	[ $status = "$want" ] || lab_die "$what: status $status, not $want: $(cat "$LAB_TMP/err")"
	valid
}

# expect CONDITION: of every stage, as Python sees it
expect()
{
	python3 - "$LAB_TMP/json" "$1" <<-'PYTHON' || lab_die "$what: $1: $(cat "$LAB_TMP/out")"
		import json, sys
		o = json.load(open(sys.argv[1]))
		assert o["stages"]
		for s in o["stages"]:
		    f, tw, p = s["failed"], s["time_wait"], s["ports"]
		    if not eval(sys.argv[2]):
		        sys.exit(1)
	PYTHON
}

# Lines in the report's form: for each part N / 50 pairs under a heading
form()
{
	python3 - "$LAB_TMP/out" "$1" "$2" <<-'PYTHON' || lab_die "$what: not the form: $(cat "$LAB_TMP/out")"
		import re, sys
		text = open(sys.argv[1]).read()
		pair = r"-{40}\t\d+\n[0-9.]+ µs/# 50 # [0-9.]+ #/sec [0-9.]+ net-ms\n"
		head = r"={18} (?:extern|simple-close|proper-close) ={21}\n# .*\n"
		part = head + "(?:%s){%d}" % (pair, int(sys.argv[2]))
		sys.exit(re.match("(?:%s){%s}\nbackend: " % (part, sys.argv[3]), text) is None)
	PYTHON
}

# The founding report, and its cure.
run 0
form 5 4
expect 's["connections"] == 250 and sum(f.values()) == 0'
expect 'tw["entered_client"] == (250 if s["close"] == "first" else 0) and tw["entered_server"] == 0'
expect 'tw["now"] - tw["before"] == tw["entered_client"]'
run 0 --client after-peer --parts simple-close --close first -n 500
expect 'tw["entered_client"] == 0 and tw["entered_server"] == 500 and s["ports"]["waiting"] == 0'
run 0 --backend kernel -n 100
form 2 4
expect 'sum(f.values()) == 0 and s["reset_after_open"] == 0'

# 100000, twice.
run 0 -q -n $N --rounds 2 --timewait reuse --parts simple-close --close first,after-peer
expect 's["good"] == 100000 and tw["evicted"] == 0 and p["waiting"] <= p["total"]'
run 0 -q -n $N --rounds 2 --close abort-if-empty
expect 's["good"] == 100000 and tw["peak"] == 0 and s["reset_after_open"] == 100000'
run 1 -q -n $N --close after-peer --parts simple-close
expect 's["good"] == 64512 and s["first_no_port"] == 64513 and f["no_port"] == sum(f.values()) == 100000 - 64512'
grep -q EADDRNOTAVAIL "$LAB_TMP/err" || lab_die "$what: $(cat "$LAB_TMP/err")"
cat "$LAB_TMP/out"

# A kernel that closes first and has the TIME_WAITs.
lab_spawn_a server python3 "$PWD/close_server.py" "$LAB_IP_A" 8000
server=$LAB_PID
lab_wait_line "$LAB_LOG" '^listening' "$server" || lab_die "the server did not start"

# over STATUS ARGUMENT...: the same over the veth pair
over()
{
	local want=$1 status=0
	shift
	what=$*
	lab_in_b timeout 90 "$CORQ" closetest --dev "$LAB_DEV" --ip "$LAB_IP_B/$LAB_LEN" --json "$LAB_TMP/json" \
		"$@" >"$LAB_TMP/out" 2>"$LAB_TMP/err" </dev/null || status=$?
	[ $status = "$want" ] || lab_die "$what: status $status, not $want: $(cat "$LAB_TMP/err")"
	valid
}

over 0 -n 100 "http://$LAB_IP_A:8000/"
form 2 3
expect 'sum(f.values()) == 0 and s["close"] is None and tw["entered_client"] == 100'
for i in 1 2; do
	over 0 -q -n $over_n -c 32 --client after-peer --parts simple-close "http://$LAB_IP_A:8000/"
	# A machine that stands still makes a few timers fire; SYNs that wait for theirs were thousands.
	expect 's["good"] == s["connections"] and tw["entered_client"] == 0 and s["timeouts"] < 200'
	lab_say "run $i: $(grep -m1 simple-close "$LAB_TMP/out")"
	lab_say "the kernel's: $(ip netns exec "$LAB_NS_A" grep TCP: /proc/net/sockstat)"
done
rejected=$(lab_in_a nstat -az TcpExtPAWSTimewait | awk '/PAWS/ { print $2 }')
lab_say "SYNs that the kernel's TIME_WAITs answered by an ACK: $rejected"
[ "$rejected" -gt 1000 ] || lab_die "the second run met no TIME_WAIT: $rejected"

# Nothing there, nobody there: one line, and the other parts go on.
over 1 -n 50 "http://$LAB_IP_A:8001/" --timeout 1 --parts extern,proper-close
grep -q '^corq closetest: proper-close: .* Connection refused; this part ends here$' "$LAB_TMP/err" &&
	[ "$(wc -l <"$LAB_TMP/err")" = 1 ] || lab_die "$what: $(cat "$LAB_TMP/err")"
over 1 -n 50 --timeout 1 "http://$LAB_NET.99/" --parts extern
grep -qE '^corq closetest: extern: .* cannot be reached: ' "$LAB_TMP/err" &&
	[ "$(wc -l <"$LAB_TMP/err")" = 1 ] || lab_die "$what: $(cat "$LAB_TMP/err")"
run 1 --backend kernel -n 50 --parts extern http://127.0.0.1:9/
grep -q 'extern: .*Connection refused' "$LAB_TMP/err" || lab_die "$what: $(cat "$LAB_TMP/err")"

# Bad input.
bad()
{
	local regex=$1 status=0
	shift
	timeout 20 "$CORQ" closetest "$@" >"$LAB_TMP/out" 2>"$LAB_TMP/err" </dev/null || status=$?
	[ $status = 2 ] && [ ! -s "$LAB_TMP/out" ] && [ "$(wc -l <"$LAB_TMP/err")" = 1 ] &&
		grep -qE -- "^corq closetest: .*($regex)" "$LAB_TMP/err" ||
		lab_die "corq closetest $*: status $status: $(cat "$LAB_TMP/out" "$LAB_TMP/err")"
}
bad "-n: '0' is not a number" -n 0
bad "-n: 'x'" -n x
bad "-c: '2000'" -c 2000
bad "--block: '0'" --block 0
bad "--rounds: '11'" --rounds 11
bad "--parts: 'middle' is none of extern, simple-close, proper-close" --parts simple-close,middle
bad "--close: '' is none of" --close first,
bad "--client: 'x' is none of" --client x
bad "nobody would close first" --client after-peer
bad "nothing is outside of the loop device" --parts extern
bad "nothing is outside of the loop device" http://10.0.0.1/
bad "which server\?" --backend kernel --parts extern
bad "which server\?" --dev veth:none --ip 10.0.0.2/24
bad "--close is of our own server" --dev veth:none --close rst http://10.0.0.1/
bad "one at a time" --backend kernel -c 2
bad "on one core" --cores 2
bad "plain sockets and no device" --backend kernel --dev veth:none
bad "left over" --backend kernel http://10.0.0.1/ more
bad "add --timewait lab" --tw-time 1
bad "no such option" --nothing
"$CORQ" closetest --help >"$LAB_TMP/out" && grep -q '^examples:' "$LAB_TMP/out" || lab_die "--help"
"$CORQ" --help | grep -q '^  closetest ' || lab_die "corq --help does not list it"
