#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq opensock: the two lines in their form for both backends, read by one pattern; all handles
# closed and counted at the end, with holes, each order and handles closed by other threads; the
# JSON follows its schema and is what the text says; bounds and bad input are told in one line.
# Short runs: figures are checked for their form and sums, never for their size.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

apps=$(cd ../../apps && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# runs COUNT ARGUMENT...: it ends with 0, says count=COUNT and a total above 0, and its JSON is good.
runs()
{
	local want=$1 status=0
	shift
	timeout 60 "$CORQ" opensock --json "$out/json" "$@" >"$out/text" 2>"$out/err" || status=$?
	[ $status = 0 ] && [ ! -s "$out/err" ] ||
		lab_die "corq opensock $*: status $status: $(cat "$out/err")"
	python3 "$apps/ab/check_json.py" "$apps/opensock/schema.json" "$out/json" >/dev/null ||
		lab_die "corq opensock $*: see above"
	python3 - "$out/text" "$out/json" "$want" <<-'PYTHON' || lab_die "corq opensock $*: $(cat "$out/text")"
		import json, re, sys
		text = open(sys.argv[1]).read()
		o = json.load(open(sys.argv[2]))
		form = r"\Acount=([0-9]+) \(check/increase ulimit -n\)\ntotal = ([0-9]+)\n\n((?:[a-z_]+: \S.*\n)+)\Z"
		found = re.match(form, text)
		if not found:
		    sys.exit("not the two lines, an empty one and `key: value` lines")
		count, total = int(found.group(1)), int(found.group(2))
		keys = dict(line.split(": ", 1) for line in found.group(3).splitlines())
		first = "corq" if o["corq"] else "kernel"
		wrong = []
		if count != int(sys.argv[3]) or count != o[first]["count"]:
		    wrong.append("count")
		if total <= 0 or total != o[first]["total"] or str(total) != keys[first + "_total"]:
		    wrong.append("total")
		if keys["adds_up"] != "yes":
		    wrong.append("adds_up")
		for side in ("corq", "kernel"):
		    if (side + "_cycles_per_op" in keys) != (o[side] is not None):
		        wrong.append(side + "_cycles_per_op")
		if o["corq"] and not keys["corq_open_after"].startswith(
		        "loop %d, all closed 0, detached 0 (blocks lent 0, stranded 0)" % count):
		    wrong.append("corq_open_after")
		if (o["cross_percent"] == 0) != (o[first]["crossed"] == 0):
		    wrong.append("crossed")
		if wrong:
		    sys.exit("wrong: " + ", ".join(wrong))
	PYTHON
}

says()
{
	grep -qE -- "$1" "$out/text" || lab_die "no line '$1' in: $(cat "$out/text")"
}

runs 1000 -l 1
runs 0 -n 0 -l 1
runs 1000 -l 1 --backend kernel
says '^allocation: lowest, per process$'
runs 100000 -t 3 -n 100000 -l 1 -f
says '^corq_occupancy_per_lane: '
runs 1003 -t 4 -n 1003 -l 1 --backend both
says '^allocation: lowest: per lane in corq, per process in the kernel$'
says '^ratio: [0-9.]+$'
runs 4000 -t 4 -n 4000 -l 1 --backend both --cross 100 --holes --order fifo
says '^kernel_crossed: [1-9]'
runs 50000 -t 3 -n 50000 -l 1 --cross 37 --holes --order random -f
runs 2000 -t 2 -n 2000 -l 1 --backend kernel --kernel-fill dup --order random
says '^kernel_fill: dup$'

# Every thread there can be.
runs 100000 -t 1024 -n 100000 -l 1 --cross 10

# Ten million: what a handle takes is measured, not timed.
runs 10000000 -t 16 -n 10000000 -l 1
python3 - "$out/json" <<'PYTHON' || lab_die "more than 24 bytes a handle at 10 million: $(cat "$out/text")"
import json, sys
b = json.load(open(sys.argv[1]))["bytes_per_handle"]
print("bytes a handle:", b)
sys.exit(not 16 <= b <= 24)
PYTHON

# The kernel's count is bounded by the limit of descriptors, and the output says so.
# shellcheck disable=SC3045
limited()
{
	(ulimit -n 1100 && "$@")
}
status=0
limited timeout 60 "$CORQ" opensock -t 4 -n 100000 -l 1 --backend both >"$out/text" 2>&1 || status=$?
[ $status = 0 ] || lab_die "few descriptors: status $status: $(cat "$out/text")"
says '^count=100000 '
says '^kernel_count: 1032 of 100000: RLIMIT_NOFILE is 1100'
says '^adds_up: yes$'

# JSON on standard output stands there alone.
timeout 60 "$CORQ" opensock -l 1 --json - >"$out/json" 2>"$out/text"
python3 "$apps/ab/check_json.py" "$apps/opensock/schema.json" "$out/json" >/dev/null ||
	lab_die "--json -: see above"
says '^total = [1-9]'

# An interrupt: figures until then, status 1, and nothing left open.
timeout 60 "$CORQ" opensock -t 4 -l 30 --backend both --json "$out/json" >"$out/text" 2>"$out/err" &
pid=$!
lab_poll 20 $pid grep -q '^count=' "$out/text" || lab_die "corq opensock did not start"
sleep 1 # a second of load
kill -INT "$(pgrep -P $pid)"
status=0
wait $pid || status=$?
[ $status = 1 ] || lab_die "interrupted: status $status, not 1"
grep -q '^corq opensock: interrupted' "$out/err" || lab_die "interrupted: $(cat "$out/err")"
says '^total = [1-9]'
says '^adds_up: yes$'
grep -q '"error": "interrupted' "$out/json" || lab_die "interrupted: no error in the JSON"

# ---- bad input: status 2, one line that names the matter, nothing on standard output
refuses()
{
	local regex=$1 status=0
	shift
	timeout 20 "$CORQ" opensock "$@" >"$out/text" 2>"$out/err" </dev/null || status=$?
	[ $status = 2 ] && [ ! -s "$out/text" ] && [ "$(wc -l <"$out/err")" = 1 ] &&
		grep -qE -- "^corq opensock: .*($regex)" "$out/err" ||
		lab_die "corq opensock $*: status $status: $(cat "$out/text" "$out/err")"
}
refuses "-t: '0' is not a number from 1 to 1024" -t 0
refuses "-t: '100000' is not a number from 1 to 1024" -t 100000
refuses "-n: 'x' is not" -n x
refuses "-n: '-1' is not" -n -1
refuses "-n: '67108865' is not a number from 0 to 67108864" -n 67108865
refuses '-n 67108864: with -t 16 it is at most 670[0-9]{5}:' -t 16 -n 67108864
refuses '-n 16777216: with -t 1 it is at most 1677[0-9]{4}:' -n 16777216
refuses "-l: '0' is not" -l 0
refuses "-l: '1s' is not" -l 1s
refuses '-l: its value is missing' -l
refuses '-x: there is no such option' -x
refuses '--nosuch: there is no such option' --nosuch
refuses "'10' is left over" -l 1 10
refuses '--cross 10: .*-t 2' --cross 10
refuses "--cross: '101' is not" -t 2 --cross 101
refuses "--backend: 'linux' is none of corq, kernel, both" --backend linux
refuses "--order: 'up' is none of lifo, fifo, random" --order up
refuses '--order fifo .*-n 0' --order fifo -n 0
refuses "--kernel-fill: 'x' is none" --backend both --kernel-fill x
refuses '--kernel-n is for --backend' --kernel-n 10
refuses '--kernel-fill is for --backend' --kernel-fill dup
refuses "--json: cannot write '/nosuch/x'" --json /nosuch/x -l 1
limited refuses '--kernel-n 2000: RLIMIT_NOFILE is 1100' --backend kernel --kernel-n 2000
limited refuses 'RLIMIT_NOFILE is 1100 .*too few for the loop of -t 1024' -t 1024 --backend kernel --cross 1

"$CORQ" opensock --help >"$out/text" || lab_die "--help"
for option in -t -n -l -f --backend --kernel-n --kernel-fill --order --holes --cross --json; do
	grep -q -- "^  $option " "$out/text" || lab_die "--help does not explain $option"
done
status=0
timeout 20 "$CORQ" opensock -n 10 -l 1 >/dev/full 2>"$out/err" || status=$?
[ $status = 1 ] && grep -q 'cannot write to standard output' "$out/err" ||
	lab_die "standard output full: status $status"
lab_say "all as it should be"
