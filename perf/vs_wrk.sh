#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vs_wrk.sh - corq ab and wrk against one stock nginx over veth, in turns.
#
# Called by run.sh (BUILD, REPS, CPU_A, CPU_B). The same CPU for both clients, another one for nginx
# (nginx_lab.sh); -c 100, a page of 100 bytes, one thread or core. Both with their defaults: corq's
# core sleeps when it is idle.
#
#   k      connections stay open
#   conn   a connection a request (wrk: -H "Connection: close")
#
# Prints one JSON object a figure, medians; value is corq's, peer_value wrk's: rate, CPU seconds for
# 100000 requests of the client's process (start included), of nginx's worker and of the whole
# machine, median latency, failures.
set -eu
. "$(dirname "$0")/nginx_lab.sh"
SECONDS_EACH=${SECONDS_EACH:-4}
C=${C:-100}

# put LOAD SIDE: one run's figures, as the globals tell them
put()
{
	echo "$1 $2 $RATE $DONE $FAILED $P50_MS $CPU_CLIENT $CPU_NGINX $CPU_MACHINE" >>"$LAB_TMP/values"
	echo "   $1 $2: ${RATE%.*} 1/s, $FAILED failed, CPU: client $CPU_CLIENT, nginx $CPU_NGINX," \
		"machine $CPU_MACHINE of $WALL s" >&2
}

wrk_run()
{
	local out=$LAB_TMP/wrk.out
	measured "$out" in_c wrk -t 1 -c "$C" -d "${SECONDS_EACH}s" --latency "$@" "$KERNEL_URL"
	read -r RATE DONE FAILED P50_MS < <(awk '
		/Socket errors/ { gsub(",", ""); failed += $4 + $6 + $8 + $10 }
		/Non-2xx/ { failed += $NF }
		/ requests in / { done = $1 }
		/^Requests\/sec:/ { rate = $2 }
		$1 == "50%" { p50 = $2 + 0; if ($2 ~ /us$/) p50 /= 1000; else if ($2 !~ /ms$/) p50 *= 1000 }
		END { print rate, done, failed + 0, p50 }' "$out")
}

medians()
{
	python3 - "$LAB_TMP/values" <<-'PYTHON'
		import json, statistics, sys
		runs = {}
		for line in open(sys.argv[1], encoding="utf-8"):
		    load, side, *v = line.split()
		    rate, done, failed, p50, *cpu = map(float, v)
		    runs.setdefault(load, {}).setdefault(side, []).append(
		        [rate, *(x / done * 1e5 for x in cpu), p50, failed])
		figures = [("rate", "1/s"), ("client_cpu", "s/100k"), ("nginx_cpu", "s/100k"),
		           ("machine_cpu", "s/100k"), ("p50", "ms"), ("failed", "requests")]
		for load, sides in runs.items():
		    for i, (name, unit) in enumerate(figures):
		        c, w = ([r[i] for r in sides[s]] for s in ("corq", "wrk"))
		        mid = max if name == "failed" else statistics.median
		        o = {"name": f"vs_wrk.{load}.{name}", "value": round(mid(c), 4), "unit": unit,
		             "runs": len(c), "min": round(min(c), 4), "max": round(max(c), 4),
		             "peer": "wrk", "peer_value": round(mid(w), 4),
		             "peer_min": round(min(w), 4), "peer_max": round(max(w), 4)}
		        if mid(w):
		            o["ratio"] = round(mid(c) / mid(w), 2)
		        print("%-5s %-12s corq %10.3f  wrk %10.3f %-8s ratio %s" % (load, name, mid(c),
		              mid(w), unit, o.get("ratio", "-")), file=sys.stderr)
		        print(json.dumps(o))
	PYTHON
}

nginx_lab_up >&2
for ((rep = 1; rep <= REPS; rep++)); do
	echo "-- repetition $rep of $REPS" >&2
	corq_ab "$SECONDS_EACH" "$C" -k
	put k corq
	wrk_run
	put k wrk
	corq_ab "$SECONDS_EACH" "$C"
	put conn corq
	wrk_run -H "Connection: close"
	put conn wrk
done
medians
