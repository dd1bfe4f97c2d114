#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nginx_lab.sh - one stock nginx and two clients of it, for vs_wrk.sh and knee.sh, which source it.
#
# Side a of the lab (tests/interop/lab.sh) runs nginx, one worker, on CPU_B. Side b is bare: corq is
# the TCP there. A third namespace on a second veth to side a has a kernel with a client of the
# kernel's; both clients run on CPU_A, and nginx, its page and its kernel are the same for both.
# Offloads off at all four ends, congestion control cubic.
#
#   nginx_lab_up
#   lab_in_c CMD...              in the third namespace; nginx is KERNEL_URL there
#   measured OUT in_b|in_c CMD...    runs CMD on that side, its output in OUT, and tells CPU_CLIENT
#                                CPU_NGINX (its worker) CPU_MACHINE WALL in seconds
#   corq_ab SECONDS C [OPTION...]    corq ab against nginx; tells RATE DONE FAILED P50_MS as well
#
# CPU of the machine is all that ran on it meanwhile, others' work too. A softirq counts for the
# process that it interrupts: a sender's CPU does the receiving of the other end.

LAB_CPU_A=$CPU_B LAB_CPU_B=$CPU_A # side a serves, b asks
. "$(dirname "${BASH_SOURCE[0]}")/../tests/interop/lab.sh"
corq=$BUILD/apps/corq
corq_ip=0

nginx_lab_up()
{
	lab_up --b bare
	lab_third
	lab_file 100 100
	lab_nginx_start a
	nginx_worker=$(pgrep -P "$lab_nginx_pid" | head -n 1)
	[ "$nginx_worker" ] || lab_die "nginx has no worker"
	KERNEL_URL=http://$LAB_IP_AC/100
	cat >"$LAB_TMP/measured.py" <<-'PYTHON'
		import os, resource, subprocess, sys, time
		worker, out = sys.argv[1:3]
		def now():
		    with open(f"/proc/{worker}/schedstat") as f:
		        nginx = int(f.read().split()[0]) / 1e9
		    with open("/proc/stat") as f:
		        t = [int(x) for x in f.readline().split()[1:8]]
		    busy = sum(t) - t[3] - t[4]
		    return nginx, busy / os.sysconf("SC_CLK_TCK"), time.monotonic()
		a = now()
		with open(out, "wb") as f:
		    status = subprocess.run(sys.argv[3:], stdout=f, stderr=subprocess.STDOUT,
		                            stdin=subprocess.DEVNULL).returncode
		b = now()
		r = resource.getrusage(resource.RUSAGE_CHILDREN)
		print("%.3f" % (r.ru_utime + r.ru_stime), *("%.3f" % (y - x) for x, y in zip(a, b)))
		sys.exit(status)
	PYTHON
}

lab_in_c()
{
	ip netns exec "$LAB_NS_C" taskset -c "$LAB_CPU_B" "$@"
}

# measured OUT in_b|in_c CMD...
measured()
{
	local out=$1 in=$2 line
	shift 2
	line=$("lab_$in" python3 "$LAB_TMP/measured.py" "$nginx_worker" "$out" "$@") || {
		tail -n 5 "$out" >&2
		lab_die "failed: $*"
	}
	read -r CPU_CLIENT CPU_NGINX CPU_MACHINE WALL <<<"$line"
}

# Without -k nginx keeps a TIME_WAIT of each connection for 60 s; corq's next process cannot know
# its last sequence numbers, so each run has an address of its own.
corq_ab()
{
	local seconds=$1 c=$2
	shift 2
	corq_ip=$(((corq_ip + 1) % 200))
	measured "$LAB_TMP/corq.out" in_b "$corq" ab -q -t "$seconds" -n 1000000000 -c "$c" \
		--name "perf$$" --dev "veth:$LAB_IF_B" --ip "$LAB_NET.$((corq_ip + 10))/$LAB_LEN" \
		--gw none --json "$LAB_TMP/corq.json" "$@" "http://$LAB_IP_A/100"
	read -r RATE DONE FAILED P50_MS < <(python3 - "$LAB_TMP/corq.json" <<-'PYTHON'
		import json, sys
		with open(sys.argv[1], encoding="utf-8") as f:
		    j = json.load(f)
		r = j["requests"]
		bad = r["failed"] + r["not_2xx"] + r["write_errors"]
		print(r["per_second"], r["complete"], bad, j["latency_us"]["last_byte"]["p50"] / 1e3)
	PYTHON
	)
}
