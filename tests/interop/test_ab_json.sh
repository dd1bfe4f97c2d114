#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab --json on the loop device follows apps/ab/schema.json and adds up: with and without
# keep-alive, both ends on one core, two cores a side, each --close, nothing measured for close
# times (HEAD, one request), a time limit that cuts requests off, and an interrupt. A file that
# cannot be written, and standard output that cannot, are known by the status and one line.
# Progress: ab's lines where standard error is no terminal and with --ab-strict, a bar that is erased
# at the end on a terminal, nothing with -q.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3 script

ab=$(cd ../../apps/ab && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

valid()
{
	python3 "$ab/check_json.py" "$ab/schema.json" "$out/json" || {
		cat "$out/json" >&2
		lab_die "corq ab $*: see above"
	}
}

runs()
{
	local status=0
	timeout 60 "$CORQ" ab -q --json "$out/json" "$@" >"$out/text" 2>"$out/err" || status=$?
	[ $status = 0 ] || {
		cat "$out/err" >&2
		lab_die "corq ab $* ended with $status"
	}
	grep -q '^Failed requests: *0$' "$out/text" || lab_die "corq ab $*: failed requests"
	valid "$@"
}

python3 "$ab/check_json.py" "$ab/schema.json" --self
runs -n 1
runs -n 5000 -c 50
runs -n 5000 -c 50 -k
runs -n 5000 -c 50 --loop-one-core
if [ "$(nproc)" -ge 4 ]; then
	runs -n 5000 -c 50 --cores 2
fi
for close in first after-peer abort-if-empty rst; do
	runs -n 500 -c 10 --close $close
done
runs -n 500 -c 10 -m HEAD -k
runs -n 20 -c 2 --size 1000000
runs -t 1 -n 100000000 -c 50
python3 - "$out/json" <<'PYTHON' || lab_die "-t 1 did not end the run"
import json, sys
o = json.load(open(sys.argv[1]))
sys.exit(not o["requests"]["complete"] < 100000000)
PYTHON

# Standard output is the JSON's alone when it is asked for there.
timeout 60 "$CORQ" ab -q --json - -n 100 >"$out/json" 2>"$out/text"
valid --json -
grep -q '^Complete requests: *100$' "$out/text" || lab_die "--json -: the text went astray"

# An interrupt: the report so far, status 1.
: >"$out/text"
timeout 60 "$CORQ" ab --json "$out/json" -n 1000000000 -c 50 >"$out/text" 2>"$out/err" &
pid=$!
lab_poll 20 $pid grep -q be.patient "$out/text" || lab_die "corq ab did not start"
sleep 1 # a second of load
kill -HUP "$(pgrep -P $pid)" # as INT and TERM
status=0
wait $pid || status=$?
[ $status = 1 ] || lab_die "interrupted: status $status, not 1"
grep -q '^Complete requests:' "$out/text" || lab_die "interrupted: no report"
valid interrupted
grep -q '"error": "interrupted' "$out/json" || lab_die "interrupted: no error in the JSON"

# fails STATUS REGEX OUTPUT ARGUMENT...
fails()
{
	local want=$1 regex=$2 to=$3 status=0
	shift 3
	timeout 60 "$CORQ" "$@" >"$to" 2>"$out/err" || status=$?
	[ $status = "$want" ] || lab_die "corq $*: status $status, not $want"
	[ "$(grep -cE "^corq( ab)?: ($regex)" "$out/err")" = 1 ] || lab_die "corq $*: $(cat "$out/err")"
}
echo kept >"$out/old"
fails 2 '--json: .*Is a directory' "$out/text" ab -q -n 1 --json "$out"
fails 2 '-c 2, -n 1|Cannot use' "$out/text" ab -q -n 1 -c 2 --json "$out/old"
[ "$(cat "$out/old")" = kept ] || lab_die "a run that did not start emptied its file"
fails 2 "'192.0.2.1' is not on the loop" "$out/text" ab -q -n 1 --json "$out/none" http://192.0.2.1/
[ ! -e "$out/none" ] || lab_die "a run that did not start left a file"
fails 1 'cannot write .*No space' /dev/full ab -q -n 10
fails 1 'cannot write .*No space' /dev/full --help
fails 1 '--json: cannot write .*No space' "$out/text" ab -q -n 10 --json /dev/full

# on_terminal OPTION...: what the terminal got, in $out/tty
on_terminal()
{
	TERM=xterm timeout 60 script -qec "$CORQ ab --name t$$ $*" "$out/tty" </dev/null >/dev/null ||
		lab_die "corq ab $* on a terminal: status $?"
}
lines=$(for i in 1 2 3 4 5 6 7 8 9 10; do echo "Completed ${i}00 requests"; done; echo "Finished 1000 requests")
timeout 60 "$CORQ" ab -n 1000 -c 10 >"$out/text" 2>"$out/err"
[ "$(grep -v warning: "$out/err")" = "$lines" ] || lab_die "the lines of progress: $(cat "$out/err")"
on_terminal -n 1000 -c 10 --ab-strict
[ "$(tr -d '\r' <"$out/tty" | grep -E '^(Completed|Finished)')" = "$lines" ] ||
	lab_die "--ab-strict: $(cat "$out/tty")"
on_terminal -t 2 -n 1000000000 -c 50
bars=$(tr '\r' '\n' <"$out/tty" | grep -cE '% +[0-9]+/s  p99 .* failed  ETA +[0-9]+:[0-9][0-9]' || true)
[ "$bars" -ge 1 ] && [ "$bars" -le 11 ] || lab_die "$bars bars in two seconds: $(cat "$out/tty")"
! grep -qE 'Completed [0-9]|Finished' "$out/tty" || lab_die "lines beside the bar"
# The last thing before the report is that the line is erased.
tr '\r' '\n' <"$out/tty" | awk '/ETA/ { bar = NR } /^\033\[K$/ { gone = NR } END { exit !(gone > bar) }' ||
	lab_die "the bar stays: $(cat "$out/tty")"
on_terminal -q -t 1 -n 1000000000 -c 50
! grep -qE 'ETA|Completed [0-9]' "$out/tty" || lab_die "-q: $(cat "$out/tty")"
lab_say "$bars bars in two seconds"
lab_say "all as it should be"
