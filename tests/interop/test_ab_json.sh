#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab --json on the loop device follows apps/ab/schema.json and adds up: with and without
# keep-alive, both ends on one core, two cores a side, each --close, nothing measured for close
# times (HEAD, one request), a time limit that cuts requests off, and an interrupt.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

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
python3 - "$out/json" <<'PYTHON' || lab_die "-t 1 did not take a second"
import json, sys
o = json.load(open(sys.argv[1]))
sys.exit(not (0.9 < o["seconds"] < 1.5 and o["requests"]["complete"] > 0))
PYTHON

# Standard output is the JSON's alone when it is asked for there.
timeout 60 "$CORQ" ab -q --json - -n 100 >"$out/json" 2>"$out/text"
valid --json -
grep -q '^Complete requests: *100$' "$out/text" || lab_die "--json -: the text went astray"

# An interrupt: the report so far, status 1.
timeout 60 "$CORQ" ab --json "$out/json" -n 1000000000 -c 50 >"$out/text" 2>"$out/err" &
pid=$!
lab_poll 20 $pid grep -q be.patient "$out/text" || lab_die "corq ab did not start"
sleep 1 # a second of load
kill -INT "$(pgrep -P $pid)"
status=0
wait $pid || status=$?
[ $status = 1 ] || lab_die "interrupted: status $status, not 1"
grep -q '^Complete requests:' "$out/text" || lab_die "interrupted: no report"
valid interrupted
lab_say "all as it should be"
