#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vs_nginx.sh - stock ab against corq httpd and against stock nginx over one veth pair, in turns.
#
# Called by run.sh (BUILD, REPS, CPU_A, CPU_B). ab -c C is on side a's kernel and CPU_A; the server,
# with one core or one worker, is on side b and CPU_B. Both serve the same file of PAGE bytes and
# answer in as few segments as it takes: corq httpd corks, nginx has sendfile and tcp_nopush on. It is
# the same interface for both: while it is corq's turn, the kernel has no address there. Offloads off
# at both ends (looked at before each turn), congestion control cubic (tests/interop/lab.sh).
#
#   conn   ab -n N           a connection a request
#   k      ab -n N -k        connections stay open
#
# corq takes the interface by AF_XDP (figures vs_nginx.LOAD) and by AF_PACKET (vs_nginx.veth.LOAD). On
# a veth pair the sender's CPU does the other end's receiving, whoever that is. In a third part
# (vs_nginx.steered.LOAD, AF_PACKET) receive packet steering gives that work back, for both servers:
# what arrives at an end is dealt with on that end's CPU, as between two machines.
#
# A server's turn begins with 2000 requests that are not measured. At the end a captured run of each
# load against corq, checked by tests/interop/check_pcap.py: the FIN is in the last data segment of
# each closing response, never alone behind data, and corq sent nothing twice.
#
# Prints one JSON object a figure, medians; value is corq's, peer_value nginx's. CPU seconds are for
# 100000 requests: server_cpu the scheduler's count for the server's threads, server_cpu_all all that
# ran on the server's CPU, ab_cpu ab's own, machine_cpu both CPUs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
LAB_CPU_A=$CPU_A LAB_CPU_B=$CPU_B
. "$here/../tests/interop/lab.sh"
N=${N:-20000}
C=${C:-100}
PAGE=${PAGE:-8704}
CORQ=$BUILD/apps/corq
PARTS=${PARTS:-xdp veth steered}

write_measured()
{
	cat >"$LAB_TMP/measured.py" <<-'PYTHON'
		import os, resource, subprocess, sys, time
		server, cpu, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
		def busy(line):
		    t = [int(x) for x in line.split()[1:8]]
		    return (sum(t) - t[3] - t[4]) / os.sysconf("SC_CLK_TCK")
		def now():
		    ns = 0
		    for task in os.listdir(f"/proc/{server}/task"):
		        with open(f"/proc/{server}/task/{task}/schedstat") as f:
		            ns += int(f.read().split()[0])
		    with open("/proc/stat") as f:
		        lines = f.read().splitlines()
		    own = next(l for l in lines if l.startswith(f"cpu{cpu} "))
		    return ns / 1e9, busy(own), busy(lines[0])
		a = now()
		with open(out, "wb") as f:
		    status = subprocess.run(sys.argv[4:], stdout=f, stderr=subprocess.STDOUT,
		                            stdin=subprocess.DEVNULL).returncode
		b = now()
		r = resource.getrusage(resource.RUSAGE_CHILDREN)
		print(*("%.4f" % (y - x) for x, y in zip(a, b)), "%.4f" % (r.ru_utime + r.ru_stime))
		sys.exit(status)
	PYTHON
}

# one_ab LOAD SIDE PID [-k]: one run of ab against the server of that id
one_ab()
{
	local load=$1 side=$2 pid=$3 out=$LAB_TMP/ab.out cpu
	shift 3
	lab_offload_check "$LAB_NS_A" "$LAB_IF_A" off
	lab_offload_check "$LAB_NS_B" "$LAB_IF_B" off
	cpu=$(lab_in_a python3 "$LAB_TMP/measured.py" "$pid" "$LAB_CPU_B" "$out" \
		timeout 60 ab -q -n "$N" -c "$C" "$@" "http://$LAB_IP_B/page") || {
		tail -n 5 "$out" >&2
		lab_die "ab failed against $side"
	}
	awk -v head="$load $side $cpu" '
		/^Complete requests:/ { done = $3 }
		/^Failed requests:/ { failed += $3 }
		/^(Write errors|Non-2xx responses):/ { failed += $NF }
		/^Requests per second:/ { rate = $4 }
		$1 == "50%" { p50 = $2 }
		$1 == "100%" { longest = $2 }
		END { print head, rate, done, failed + 0, p50, longest }' "$out" >>"$LAB_TMP/values"
	tail -n 1 "$LAB_TMP/values" | awk '{
		printf "   %-4s %-13s %6d 1/s, %d failed, longest %d ms, CPU s: server %.2f, its CPU %.2f, ab %.2f\n",
			$1, $2, $7, $9, $11, $3, $4, $6 }' >&2
}

# steer SIDE CPU: what arrives there is received on that CPU; no CPU: where the sender runs
steer()
{
	local if=$LAB_IF_A mask=0
	[ "$1" = a ] || if=$LAB_IF_B
	[ -z "${2-}" ] || mask=$(printf '%x' $((1 << $2)))
	"lab_in_$1" sh -c 'echo "$1" >"$0"' "/sys/class/net/$if/queues/rx-0/rps_cpus" "$mask" ||
		lab_die "cannot steer what $if receives to CPU $2"
}

# start_corq PART
start_corq()
{
	ip -n "$LAB_NS_B" addr flush dev "$LAB_IF_B"
	LAB_DEV=${1/steered/veth}:$LAB_IF_B
	lab_httpd_start "$LAB_WWW"
}

warm()
{
	lab_in_a timeout 60 ab -q -n 2000 -c "$C" "http://$LAB_IP_B/page" >/dev/null 2>&1 ||
		lab_die "ab failed against a server that has just started"
}

# corq_turn PART
corq_turn()
{
	start_corq "$1"
	warm
	one_ab conn "$1" "$lab_httpd_pid"
	one_ab k "$1" "$lab_httpd_pid" -k
	lab_httpd_stop INT
}

# nginx_turn NAME
nginx_turn()
{
	lab_kernel_side "$LAB_NS_B" "$LAB_IF_B" "$LAB_IP_B" "$LAB_IP6_B"
	warm
	one_ab conn "$1" "$nginx_worker"
	one_ab k "$1" "$nginx_worker" -k
}

repetition()
{
	local part
	for part in ${PARTS/steered/}; do
		corq_turn "$part"
	done
	[ "${PARTS/steered/}" ] && nginx_turn nginx
	[ "$PARTS" != "${PARTS/steered/}" ] || return 0
	steer a "$LAB_CPU_A"
	steer b "$LAB_CPU_B"
	corq_turn steered
	nginx_turn nginx-steered
	steer a
	steer b
}

# captured LOAD FIN-RULE CONNECTIONS [-k]
captured()
{
	local file=$LAB_LOGS/$1.pcap fin=$2 connections=$3
	shift 3
	lab_capture_start a "$file" tcp
	lab_in_a timeout 60 ab -q -n 2000 -c "$C" "$@" "http://$LAB_IP_B/page" >"$LAB_TMP/captured.ab"
	lab_capture_stop
	lab_expect_ab "$LAB_TMP/captured.ab" 2000
	"$here/../tests/interop/check_pcap.py" --addr "$LAB_IP_B" --no-reset --complete --fin "$fin" \
		--min-connections "$connections" --peer-retransmissions 500 "$file" >&2
}

captures()
{
	local part
	for part in ${PARTS/steered/}; do
		start_corq "$part"
		captured "$part-conn" strict 2000
		captured "$part-k" acked "$C" -k
		lab_httpd_stop INT
	done
}

medians()
{
	python3 - "$LAB_TMP/values" <<-'PYTHON'
		import json, statistics, sys
		runs = {}
		for line in open(sys.argv[1], encoding="utf-8"):
		    load, side, *v = line.split()
		    server, own, machine, ab, rate, done, failed, p50, longest = map(float, v)
		    cpu = [x / done * 1e5 for x in (server, own, ab, machine)]
		    runs.setdefault((side, load), []).append([rate, *cpu, p50, longest, failed])
		figures = [("rate", "1/s"), ("server_cpu", "s/100k"), ("server_cpu_all", "s/100k"),
		           ("ab_cpu", "s/100k"), ("machine_cpu", "s/100k"), ("p50", "ms"),
		           ("longest", "ms"), ("failed", "requests")]
		verdicts = []
		for part, load in runs:
		    if part.startswith("nginx"):
		        continue
		    peer = runs["nginx-steered" if part == "steered" else "nginx", load]
		    ratio, value = {}, {}
		    for i, (name, unit) in enumerate(figures):
		        c, n = ([r[i] for r in s] for s in (runs[part, load], peer))
		        mid = max if name in ("failed", "longest") else statistics.median
		        value[name] = mid(c)
		        o = {"name": "vs_nginx." + f"{part}.{load}.{name}".removeprefix("xdp."),
		             "value": round(mid(c), 4), "unit": unit, "runs": len(c),
		             "min": round(min(c), 4), "max": round(max(c), 4), "peer": "nginx",
		             "peer_value": round(mid(n), 4), "peer_min": round(min(n), 4),
		             "peer_max": round(max(n), 4)}
		        if mid(n):
		            o["ratio"] = ratio[name] = round(mid(c) / mid(n), 3)
		        print("%-7s %-4s %-14s corq %10.3f  nginx %10.3f %-8s ratio %s" % (part, load, name,
		              mid(c), mid(n), unit, o.get("ratio", "-")), file=sys.stderr)
		        print(json.dumps(o))
		    verdicts += [(part, load, text, met) for text, met in (
		        ("rate %.3f of nginx's (bound 0.95)" % ratio["rate"], ratio["rate"] >= 0.95),
		        ("server's CPU %.3f of nginx's (bound: less than 1)" % ratio["server_cpu"],
		         ratio["server_cpu"] < 1),
		        ("longest request %d ms (bound: less than 200)" % value["longest"],
		         value["longest"] < 200),
		        ("%d failed (bound 0)" % value["failed"], value["failed"] == 0))]
		for part, load, text, met in verdicts:
		    print("%-7s %-4s %s: %s" % (part, load, text, "met" if met else "NOT MET"),
		          file=sys.stderr)
	PYTHON
}

lab_need_corq ab nginx tcpdump python3
lab_has_xdp || {
	PARTS=${PARTS/xdp/}
	lab_say "this kernel has no AF_XDP: AF_PACKET only" >&2
}
lab_up >&2
write_measured
lab_file page "$PAGE"
lab_nginx_start b
nginx_worker=$(pgrep -P "$lab_nginx_pid" | head -n 1)
[ "$nginx_worker" ] || lab_die "nginx has no worker"
for ((rep = 1; rep <= REPS; rep++)); do
	echo "-- repetition $rep of $REPS" >&2
	repetition
done
captures
medians
