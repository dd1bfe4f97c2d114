#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab at its sizes, on loop: a million slots with nothing but -c given, memory that stays flat,
# numbers above 32 bits, and one clear line when something is too small.
#
# Checks: -c 1000000 -k opens a million connections at a time (their peak is printed), none fails, and
# all are accounted for; without -k 200000 at a time (a million with CORQ_LONG=1); memory grows by less
# than 2 MB from a fifth to the end of 2 10^6 requests, of which exact times are kept of the first 10^5
# only (of 10^8 and 10^7 with CORQ_LONG=1); -n 10^10 runs until -t; a range that is too small, and
# memory that is too little, are known by status and one line with what is needed; --cores 2 adds up.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

ab=$(cd ../../apps/ab && pwd)
tmp=$(mktemp -d)
group=""
clean_up()
{
	rm -rf "$tmp"
	[ ! "$group" ] || rmdir "$group" 2>/dev/null || true
}
trap clean_up EXIT
: "${LAB_LOGS:=$tmp}"

run()
{
	what=$*
	timeout 200 "$CORQ" ab -q --name "s$$" --json "$tmp/json" "$@" \
		>"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
		lab_die "$what: status $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
	grep -qE '^Failed requests: +0$' "$LAB_LOGS/out.txt" || lab_die "$what: failed requests"
	[[ $(lab_figure counters_add_up) == yes* ]] || lab_die "$what: the counters do not add up"
	python3 "$ab/check_json.py" "$ab/schema.json" "$tmp/json" >/dev/null || lab_die "$what: see above"
	lab_say "$what: $(lab_figure rate_achieved) a second, peak $(lab_figure cc_peak)"
}

# flat REQUESTS OPTION...: resident memory, once a second
flat()
{
	local n=$1
	shift
	python3 - "$n" "$CORQ" ab --name "s$$" -n "$n" "$@" <<-'PYTHON' || lab_die "memory is not flat"
		import re, subprocess, sys, threading, time
		n, done, sizes = int(sys.argv[1]), [0], []
		run = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
		def count():
		    for line in run.stderr:
		        if line.startswith("Completed "):
		            done[0] = int(line.split()[1])
		reader = threading.Thread(target=count)
		reader.start()
		while run.poll() is None:
		    try:
		        text = open(f"/proc/{run.pid}/status").read()
		    except OSError:
		        break
		    rss = re.search(r"VmRSS:\s+(\d+)", text)
		    if rss and n // 5 <= done[0] < n:
		        sizes.append(int(rss.group(1)))
		    time.sleep(0.2 if n < 10**8 else 1)
		reader.join()
		if run.wait() != 0 or not sizes:
		    sys.exit(f"status {run.returncode}, {len(sizes)} samples")
		print(f"lab: {n} requests: {len(sizes)} samples from a fifth to the end, {min(sizes)} to {max(sizes)} kB resident")
		sys.exit(max(sizes) - sizes[0] > 2048)
	PYTHON
}

run -c 1000000 -n 1000000 -k
lab_is conn_opened 1000000 cc_peak 1000000 conn_closed 1000000 conn_live 0 ports_refused 0
slots=200000
[ ! "${CORQ_LONG-}" ] || slots=1000000
run -c $slots -n $((slots * 3 / 2))
lab_is conn_opened $((slots * 3 / 2)) conn_closed $((slots * 3 / 2)) conn_live 0 ports_refused 0
run -c 100 -t 1 -n 10000000000 -k
if [ "$(nproc)" -ge 4 ]; then
	run --cores 2 -c 2000 -n 100000
else
	run --cores 2 --share-cpus -c 200 -n 10000
fi

lab_refused 'needs 16 addresses of ours .* --ip has 1;' "$CORQ" ab -q --name "s$$" --ip 10.0.0.1/16 -c 1000000 -n 1000000

# A memory group of its own makes memory scarce for one process.
try=/sys/fs/cgroup/memory/corq-scale-$$
if mkdir "$try" 2>/dev/null; then
	group=$try
	echo 300000000 >"$group/memory.limit_in_bytes"
	lab_refused '-c 1000000 needs about [0-9]+ MB of memory, [0-9]+ MB are free' \
		sh -c "echo \$\$ >$group/cgroup.procs && exec $CORQ ab -q --name s$$ -c 1000000 -n 1000000"
else
	lab_say "memory groups cannot be made here: the line for too little memory is not tried"
fi

if [ "${CORQ_LONG-}" ]; then
	flat 100000000 -k -c 256
else
	flat 2000000 -k -c 256 --exact-times 100000
fi
lab_say "all as it should be"
