#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# knee.sh - corq ab's rate against one stock nginx over veth, as -c grows, and far behind the knee.
#
# Called by run.sh (BUILD, REPS, CPU_A, CPU_B); nginx_lab.sh has the set-up. With -k (k) and without
# (conn): -c doubles from 1 until two doublings gain less than 5 % (medians of 3); what they started
# from is the knee. Then one, two and four times the knee in turns, REPS times.
#
# Prints one JSON object a concurrency (its rate; failed, p50_ms), and for each load the knee and
# the rate at four times the knee as a part of the peak. Fails if a request failed.
set -eu
. "$(dirname "$0")/nginx_lab.sh"
SECONDS_EACH=${SECONDS_EACH:-2}

# run LOAD C [OPTION...]: one run into the values
run()
{
	local load=$1 c=$2
	shift 2
	corq_ab "$SECONDS_EACH" "$c" "$@"
	echo "$load $c $RATE $FAILED $P50_MS" >>"$LAB_TMP/values"
	echo "   $load -c $c: ${RATE%.*} 1/s, $FAILED failed" >&2
}

# rate LOAD C: the median of what was run so far
rate()
{
	awk -v load="$1" -v c="$2" '$1 == load && $2 == c { print $3 }' "$LAB_TMP/values" | sort -n |
		awk '{ r[NR] = $1 } END { print r[int((NR + 1) / 2)] }'
}

# gains LOAD C TIMES: whether TIMES C made at least 5 % more of it
gains()
{
	awk -v a="$(rate "$1" "$2")" -v b="$(rate "$1" $(($2 * $3)))" 'BEGIN { exit !(b >= 1.05 * a) }'
}

three()
{
	local i
	for i in 1 2 3; do
		run "$@"
	done
}

# One doubling without a gain may be a disturbance: two are looked at.
find_knee()
{
	local load=$1 c=1
	shift
	three "$load" 1 "$@"
	three "$load" 2 "$@"
	while [ $c -lt 4096 ]; do
		three "$load" $((c * 4)) "$@"
		gains "$load" $c 2 || gains "$load" $c 4 || break
		c=$((c * 2))
	done
	knee=$c
}

behind_knee()
{
	local load=$1 i times
	shift
	for ((i = 0; i < REPS; i++)); do
		for times in 1 2 4; do
			run "$load.behind" $((knee * times)) "$@"
		done
	done
}

summary()
{
	python3 - "$LAB_TMP/values" "$@" <<-'PYTHON'
		import json, statistics, sys
		runs = {}
		for line in open(sys.argv[1], encoding="utf-8"):
		    load, c, *v = line.split()
		    runs.setdefault((load, int(c)), []).append([float(x) for x in v])
		failed = 0
		for (load, c), r in runs.items():
		    rates = [x[0] for x in r]
		    bad = int(sum(x[1] for x in r))
		    failed += bad
		    print(json.dumps({"name": f"knee.{load}.c{c}", "value": round(statistics.median(rates)),
		        "unit": "1/s", "runs": len(r), "min": round(min(rates)), "max": round(max(rates)),
		        "failed": bad, "p50_ms": round(statistics.median(x[2] for x in r), 3)}))
		for arg in sys.argv[2:]:
		    load, knee = arg.split("=")
		    knee = int(knee)
		    mid = {c: statistics.median(x[0] for x in runs[load + ".behind", c])
		           for c in (knee, 2 * knee, 4 * knee)}
		    part = mid[4 * knee] / max(mid.values())
		    print(json.dumps({"name": f"knee.{load}.knee", "value": knee, "unit": "connections"}))
		    print(json.dumps({"name": f"knee.{load}.at_four_times", "value": round(part, 3),
		                      "unit": "of the peak", "concurrency": 4 * knee}))
		    print(f"{load}: the rate grows up to -c {knee}; at -c {4 * knee} it is "
		          f"{100 * part:.1f} % of the peak", file=sys.stderr)
		print(f"{failed} requests failed", file=sys.stderr)
		sys.exit(failed != 0)
	PYTHON
}

nginx_lab_up >&2
find_knee k -k
behind_knee k -k
knees=(k=$knee)
find_knee conn
behind_knee conn
summary "${knees[@]}" conn=$knee
