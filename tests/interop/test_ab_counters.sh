#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The counters of corq ab add up however a run ends: started = complete + aborted + outstanding, opened =
# closed + live, and all else that check_json.py knows (sums of kinds, counts and order of the histograms).
#
# Runs, with options that a seed picks (-k, -r, -c, --close, --cores; the seed is printed and SEED repeats
# it): on loop ended by SIGINT at a moment that the seed picks, and by -t; over veth against servers that
# are slow, answer half, reset, send garbage, say nothing or stall (short -s), that are stopped or killed in
# mid-run, at a port where nobody listens, and at an address where nobody is (half-open floods). Each must end by
# itself, write its JSON and have its text say that the counters add up. And the checker can say no.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

ab=$(cd ../../apps/ab && pwd)
RANDOM=${SEED:=$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
lab_say "SEED=$SEED"
lab_up
checked=0

pick()
{
	local n=$((RANDOM % $#))
	shift $n
	echo "$1"
}

options()
{
	echo "$(pick "" -k) $(pick "" -r) -c $(pick 1 7 50 400) --close $(pick first after-peer abort-if-empty rst)"
}

# start OPTION...: in the background, its id in PID
start()
{
	what=$*
	rm -f "$LAB_LOGS/json" "$LAB_LOGS/out.txt"
	timeout 60 "$CORQ" ab -q --name "n$$" --json "$LAB_LOGS/json" "$@" \
		>"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" &
	PID=$!
}

# ended: it ends with any status but a crash or a hang, and its figures add up
ended()
{
	local status=0
	wait $PID || status=$?
	[ $status != 124 ] && [ $status -lt 128 ] || lab_die "$what: status $status: $(tail -n 3 "$LAB_LOGS/err.txt")"
	[ -s "$LAB_LOGS/json" ] || lab_die "$what: no JSON, status $status: $(tail -n 3 "$LAB_LOGS/err.txt")"
	python3 "$ab/check_json.py" "$ab/schema.json" "$LAB_LOGS/json" >/dev/null ||
		lab_die "$what: status $status, see above and $LAB_LOGS/json (LAB_LOGS or LAB_KEEP=1 keep it)"
	! grep -q '^counters_add_up: no' "$LAB_LOGS/out.txt" || lab_die "$what: $(grep ^counters "$LAB_LOGS/out.txt")"
	checked=$((checked + 1))
	lab_say "$what: status $status, $(python3 -c "
import json; o = json.load(open('$LAB_LOGS/json')); r = o['requests']; c = o['connections']
print(r['started'], '=', r['complete'], '+', r['aborted'], '+', r['outstanding'], 'requests,', c['opened'], '=', c['closed'], '+', c['live'], 'connections')")"
}

running()
{
	[ -f "$LAB_LOGS/out.txt" ] && grep -q be.patient "$LAB_LOGS/out.txt"
}

interrupt()
{
	lab_poll 20 $PID running || lab_die "$what: it did not start"
	sleep "0.$((RANDOM % 9))" # the moment is what the test varies
	kill -INT "$(pgrep -P $PID)" 2>/dev/null || true
}

# ---- on loop
for i in 1 2 3 4 5; do
	# shellcheck disable=SC2046
	start -n 1000000000 $(options) $(pick "" "--cores 2 --share-cpus" --loop-one-core)
	interrupt
	ended
done
# shellcheck disable=SC2046
start -t 1 -n 1000000000 $(options)
ended

# ---- over veth
on_veth()
{
	start --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" --gw none "$@"
}

# corq takes the interface from its namespace.
CORQ_REAL=$CORQ
cat >"$LAB_TMP/corq" <<-EOF
	#!/bin/sh
	exec ip netns exec $LAB_NS_B taskset -c $LAB_CPU_B $CORQ_REAL "\$@"
EOF
chmod +x "$LAB_TMP/corq"
CORQ=$LAB_TMP/corq

port=81
for mode in reset half garbage silent stall; do
	lab_spawn_a "bad$mode" python3 ./bad_server.py "$mode" "$LAB_IP_A" $port
	lab_wait_line "$LAB_LOG" listening "$LAB_PID"
	# shellcheck disable=SC2046
	on_veth -n 300 -s 1 $(options) -c "$(pick 1 7 50)" "http://$LAB_IP_A:$port/"
	ended
	on_veth -n 300 -s 1 -r -c 20 "http://$LAB_IP_A:$port/"
	ended
	port=$((port + 1))
done
for signal in STOP KILL; do
	lab_spawn_a "slow$signal" python3 ./slow_server.py "$LAB_IP_A" $port 5
	lab_wait_line "$LAB_LOG" listening "$LAB_PID"
	# shellcheck disable=SC2046
	on_veth -n 1000000 -s 2 $(options) "http://$LAB_IP_A:$port/"
	lab_poll 20 $PID running || lab_die "$what: it did not start"
	sleep "0.$((RANDOM % 9))" # as above
	kill -$signal "$LAB_PID"
	if [ $signal = KILL ]; then
		sleep 0.3 # of connects that are refused
		interrupt
	fi
	ended
	kill -CONT "$LAB_PID" 2>/dev/null || true
	port=$((port + 1))
done
lab_spawn_a slow python3 ./slow_server.py "$LAB_IP_A" $port 20
lab_wait_line "$LAB_LOG" listening "$LAB_PID"
# shellcheck disable=SC2046
on_veth -n 1000000 $(options) --cores 2 --share-cpus "http://$LAB_IP_A:$port/"
interrupt
ended
# Half-open floods: nobody listens, nobody is there.
on_veth -n 5000 -r -c 500 --half-open 500 "http://$LAB_IP_A:9/"
ended
on_veth -n 5000 -s 1 -r -c 500 --half-open 500 "http://$LAB_NET.99:80/"
ended
on_veth -n 5000 -c 500 --half-open 500 "http://$LAB_NET.98:80/"
interrupt
ended

# The checker must notice each counter that is off by one.
CORQ=$CORQ_REAL
start -n 2000 -c 20
ended
python3 - "$LAB_LOGS/json" "$ab" <<-'PYTHON' || lab_die "the checker lets a wrong counter pass"
	import copy, json, subprocess, sys
	good = json.load(open(sys.argv[1]))
	for path in ("requests.started", "requests.aborted", "requests.outstanding", "requests.failed_length",
	             "connections.opened", "connections.live", "connections.established", "tcp.fin_retransmits",
	             "latency_us.total.count", "latency_us.connect.count"):
	    bad = copy.deepcopy(good)
	    *way, last = path.split(".")
	    o = bad
	    for key in way:
	        o = o[key]
	    o[last] += 1
	    json.dump(bad, open(sys.argv[1], "w"))
	    done = subprocess.run([sys.argv[2] + "/check_json.py", sys.argv[2] + "/schema.json", sys.argv[1]],
	                          stderr=subprocess.DEVNULL)
	    if done.returncode != 1:
	        sys.exit(f"{path} + 1 passed")
PYTHON
lab_say "$checked runs: all as it should be"
