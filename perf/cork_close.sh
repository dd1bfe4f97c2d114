#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# cork_close.sh - four ways to answer and close, by a corq server and by the kernel's, in one run.
#
# Called by run.sh (BUILD, CPU_A, CPU_B). A Python client on side a's kernel connects, reads 100
# bytes and EOF, and times that; COUNT connections a mode and server, one at a time, in turns
# (cork_client.py). cork_server is on the other end of a veth pair, cork_kernel on the other end of
# a second pair that is set alike; both on CPU_B, the client on CPU_A.
#
#   plain              send 100 bytes, close
#   cork-close         cork, send, close
#   cork-uncork-close  cork, send, uncork, close
#   cork-shutdown      cork, send, shutdown for writing, close
#
# DEV=xdp puts corq on AF_XDP (default veth: AF_PACKET). Prints one JSON object a mode: value is
# corq's median, peer_value the kernel's; ratio is to the kernel's `plain` of the same run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
LAB_CPU_A=$CPU_A LAB_CPU_B=$CPU_B
. "$here/../tests/interop/lab.sh"
COUNT=${COUNT:-200}

kernel_server()
{
	lab_spawn "$LAB_NS_C" "$LAB_CPU_B" cork_kernel "$BUILD/perf/peers/cork_kernel" --addr "$LAB_IP_C"
	lab_poll 5 "$LAB_PID" lab_listens "$LAB_NS_C" 7003 || lab_die "cork_kernel did not start"
}

corq_server()
{
	lab_spawn_b cork_server "$BUILD/perf/cork_server" --dev "$LAB_DEV" --ip "$LAB_IP_B/$LAB_LEN"
	corq_pid=$LAB_PID corq_log=$LAB_LOG
	lab_wait_line "$LAB_LOG" '^cork_server: listening' "$LAB_PID" 20 ||
		lab_die "cork_server did not start"
}

figures()
{
	python3 - "$LAB_TMP/samples" <<-'PYTHON'
		import json, statistics, sys
		runs = {}
		for line in open(sys.argv[1], encoding="utf-8"):
		    mode, side, us = line.split()
		    runs.setdefault(mode, {}).setdefault(side, []).append(float(us) / 1000)
		plain = statistics.median(runs["plain"]["kernel"])
		def verdict(text, met):
		    print("%s: %s" % (text, "met" if met else "NOT MET"), file=sys.stderr)
		print("%-18s %9s %9s %9s   %9s %9s   ms" % ("mode", "corq p50", "p99", "max", "kernel p50",
		      "max"), file=sys.stderr)
		for mode, sides in runs.items():
		    c, k = sides["corq"], sides["kernel"]
		    mid, p99 = statistics.median(c), sorted(c)[len(c) * 99 // 100]
		    o = {"name": "cork_close." + mode, "value": round(mid, 4), "unit": "ms", "runs": len(c),
		         "min": round(min(c), 4), "p99": round(p99, 4), "max": round(max(c), 4),
		         "peer": "kernel", "peer_value": round(statistics.median(k), 4),
		         "peer_max": round(max(k), 4), "ratio": round(mid / plain, 3),
		         "ratio_is_to": "the kernel's plain"}
		    print(json.dumps(o))
		    print("%-18s %9.3f %9.3f %9.3f   %9.3f %9.3f" % (mode, mid, p99, max(c),
		          o["peer_value"], max(k)), file=sys.stderr)
		for mode, sides in runs.items():
		    mid, worst = statistics.median(sides["corq"]), max(sides["corq"])
		    verdict("corq %s median %.3f ms, kernel plain %.3f ms, ratio %.2f (bound 2); worst sample "
		            "%.1f ms (bound 50)" % (mode, mid, plain, mid / plain, worst),
		            mid <= 2 * plain and worst <= 50)
	PYTHON
}

lab_up --dev "${DEV:-veth}" >&2
lab_third
kernel_server
corq_server
lab_in_a timeout 80 python3 "$here/cork_client.py" "$COUNT" "corq=$LAB_IP_B" "kernel=$LAB_IP_C" \
	>"$LAB_TMP/samples" || lab_die "the client failed"
lab_stop "$corq_pid" INT || lab_die "cork_server: $(tail -n 5 "$corq_log")"
figures
