#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab ends well whatever happens to it, on loop and against a server without manners.
#
# Files: a run that fails, or is interrupted before it begins, leaves none behind that it made, and one
# that was there as it was; one file under two names is refused; a full disk costs the exit code and no
# other file; closed descriptors are no place for the report of another; a reader that goes away (SIGPIPE)
# costs a line. Arguments that are no UTF-8 leave the JSON valid.
# Signals: at any moment of the start; twice at once, as `timeout` sends them: the report is there and
# says interrupted; twice with a pause: resets all, and reports the same.
# Figures: few exact times (--exact-times), so that all comes from histograms; -g of two cores.
# Floods (header lines, one line, interim responses, garbage, more than announced): each ends by itself,
# memory stays flat; a body without end is cut by -t. -b 1 is no window of one byte.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

ab=$(cd ../../apps/ab && pwd)
lab_up
cd "$LAB_TMP"

# run STATUS ARGUMENT...: out and err into files, with that exit code
run()
{
	local want=$1 status=0
	shift
	what=$*
	timeout 60 "$CORQ" ab -q --name "e$$" "$@" >out 2>err </dev/null || status=$?
	[ $status = "$want" ] || lab_die "$what: status $status, not $want: $(tail -n 2 err)"
}

says()
{
	grep -qE "$1" "${2-err}" || lab_die "$what: '$1' is not in ${2-err}: $(tail -n 3 "${2-err}")"
}

valid()
{
	python3 "$ab/check_json.py" "$ab/schema.json" "$1" >check || lab_die "$what: the JSON is not valid"
}

gone()
{
	local file
	for file; do
		[ ! -e "$file" ] || lab_die "$what: $file was left behind"
	done
}

# ---- files
echo kept >kept.csv
run 2 -n 10 -e kept.csv -g new.tsv --json new.json http://192.0.2.1/
[ "$(cat kept.csv)" = kept ] || lab_die "a run that did not start emptied its file"
gone new.tsv new.json
run 2 -n 10 -e x -g ./x
says 'one file'
run 2 -n 10 -e x --json "$PWD/x"
says 'one file'
gone x
run 1 -n 10 -e /dev/full -g all.tsv --json all.json
says '/dev/full.*No space'
valid all.json
[ "$(wc -l <all.tsv)" = 11 ] || lab_die "a full disk for -e cost -g: $(wc -l <all.tsv) lines"
what="standard output closed"
status=0
timeout 60 "$CORQ" ab -q --name "e$$" -n 10 -e closed.csv --json closed.json >&- 2>err || status=$?
[ $status = 1 ] || lab_die "$what: status $status"
says 'cannot write to standard output'
[ "$(head -n 1 closed.csv)" = "Percentage served,Time in ms" ] || lab_die "$what: the report went into the file of -e"
valid closed.json
what="all closed"
timeout 60 "$CORQ" ab -q --name "e$$" -n 10 -e closed.csv --json closed.json <&- >&- 2>&- || status=$?
[ "$(wc -l <closed.csv)" = 102 ] || lab_die "$what: $(wc -l <closed.csv) lines in the file of -e"
valid closed.json
what="a reader that goes away"
rm -f gone.json
{ timeout 60 "$CORQ" ab --name "e$$" -n 20000 -c 10 --json gone.json 2>err || echo $? >status; } | head -n 1 >out
[ "$(cat status)" = 1 ] || lab_die "$what: status $(cat status)"
says 'standard output: Broken pipe'
valid gone.json
run 0 -n 10 -A "$(printf 'a\377:b')" -H "$(printf 'X: \303(')" --json text.json
valid text.json

# ---- signals
# signalled SIGNAL SECONDS [AGAIN_AFTER]: a run with files; its status into STATUS. The moments are
# what is tried, and most lie in a start that says nothing: real waits.
signalled()
{
	local pid
	what="$1 after $2${3+, and again after $3}"
	rm -f sig.json sig.csv
	"$CORQ" ab --name "e$$" -n 1000000000 -c 50 -k -e sig.csv --json sig.json >out 2>err </dev/null &
	pid=$!
	sleep "$2"
	kill "-$1" $pid 2>/dev/null
	if [ "${3-}" ]; then
		sleep "$3"
		kill "-$1" $pid 2>/dev/null || true
	fi
	STATUS=0
	wait $pid || STATUS=$?
}
begun=0
for after in 0.02 0.06 0.1 0.15 0.2 0.25 0.3 0.4 1.5; do
	signalled INT $after
	if grep -q 'interrupted before' err || [ $STATUS = 130 ]; then
		gone sig.json sig.csv
		continue
	fi
	[ $STATUS = 1 ] || lab_die "$what: status $STATUS: $(tail -n 2 err)"
	says 'interrupted after'
	valid sig.json
	[ -e sig.csv ] || lab_die "$what: no file of -e"
	begun=$((begun + 1))
done
[ $begun -ge 1 ] || lab_die "none of the runs had begun"
for again in 0 0.01 0.2; do
	signalled TERM 2 $again
	[ $STATUS = 1 ] || lab_die "$what: status $STATUS: $(tail -n 2 err)"
	says 'interrupted after'
	says '^Failed requests: +0$' out
	says '^counters_add_up: yes' out
	valid sig.json
done

# ---- figures
run 0 -n 3000 -c 10 --exact-times 100 -e few.csv
says 'note: -e is from the histogram'
says '^times: from histograms .*of 100 requests' out
[ "$(wc -l <few.csv)" = 102 ] || lab_die "$what: $(wc -l <few.csv) lines"
sed 1d few.csv | cut -d , -f 2 | sort -c -n || lab_die "$what: the times of -e do not rise"
run 0 -n 1000 -c 10 -g cores.tsv --cores 2 --share-cpus --exact-times 0 --json cores.json
valid cores.json
[ "$(wc -l <cores.tsv)" = 1001 ] || lab_die "$what: $(wc -l <cores.tsv) lines"
sed 1d cores.tsv | cut -f 5 | sort -c -n || lab_die "$what: -g of two cores is not sorted"

# ---- a server without manners
lab_spawn_a odd "$OLDPWD/odd_server.py" "$LAB_IP_A" 81
lab_wait_line "$LAB_LOG" '^listening' "$LAB_PID" || lab_die "the odd server did not start"
odd=$LAB_PID
# flooded STATUS PATH [OPTION...]
flooded()
{
	local want=$1 path=$2 status=0 pid high
	shift 2
	what="$path $*"
	lab_in_b timeout -s KILL 25 "$CORQ" ab -q --dev "$LAB_DEV" --ip "$LAB_IP_B/$LAB_LEN" --gw none --json flood.json \
		-n 3 -c 3 "$@" "http://$LAB_IP_A:81/$path" >out 2>err </dev/null &
	pid=$!
	high=0
	while kill -0 $pid 2>/dev/null; do
		# timeout, and corq below it
		now=$(awk '/^VmHWM/ { print $2 }' "/proc/$(pgrep -P "$(pgrep -P $pid || echo 0)" || echo 0)/status" 2>/dev/null || true)
		[ "${now:-0}" -le "$high" ] || high=$now
		sleep 0.1 # from sample to sample
	done
	wait $pid || status=$?
	[ $status = "$want" ] || lab_die "$what: status $status, not $want: $(tail -n 2 err)"
	[ "$high" -gt 20000 ] && [ "$high" -lt 300000 ] || lab_die "$what: $high kB resident"
	valid flood.json
	lab_say "$what: status $status, $high kB: $(grep '^corq ab: ' err | head -n 1)"
}
for path in flood-interim flood-header flood-line flood-garbage; do
	flooded 1 $path
	says 'were not HTTP'
done
flooded 0 flood-extra -k -l
flooded 0 plain -b 1
flooded 0 flood-body -t 1 -n 3
says '^requests_aborted: 3$' out
lab_stop "$odd" || true
lab_say "all as it should be"
