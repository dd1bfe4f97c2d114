#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh - builds, runs benches, keeps the figures with a description of the machine, draws.
#
#   perf/run.sh [bench ...]     no bench: all. As root.
#
#   engine     cycles a segment and a connection on a memory port; the seam's share; no device
#   handles    opening and closing handles beside floors: alone, by threads, across threads
#   conn       connections/s and keep-alive requests/s, one core a side: loop, memif
#   pause      the rate after a pause of 10 ms of either side (loop)
#   stream     one flow: loop, memif
#   idle       memory of 1 M idle connections (loop)
#   records    TIME_WAIT records, 10 k to 10 M live at a time, at loop's full rate
#   vs_kernel  the same work by corq on loop and by the kernel over veth, in turns (vs_kernel.sh)
#   vs_wrk     corq ab and wrk against one stock nginx over veth, in turns: rate, CPU (vs_wrk.sh)
#   cork_close connect to EOF in four ways to cork and close, corq and the kernel (cork_close.sh)
#   vs_nginx   stock ab against corq httpd and nginx over one veth pair, in turns (vs_nginx.sh)
#   knee       corq ab against nginx over veth as -c grows, and at four times the knee (knee.sh)
#
# BUILD is the build folder (default build; made when it is not there). REPS: repetitions (5).
# RESULTS: folder for the JSON files and the plot (default perf/results). Two CPUs at least.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(realpath -m "${BUILD:-build}")
export BUILD=$build REPS=${REPS:-5}
RESULTS=$(realpath -m "${RESULTS:-perf/results}")
all="engine handles conn pause stream idle records vs_kernel vs_wrk cork_close vs_nginx knee"
failed=0

die()
{
	echo "run.sh: $*" >&2
	exit 1
}

build_all()
{
	if [ ! -f "$build/build.ninja" ]; then
		meson setup "$build" --buildtype=release >/dev/null || die "meson setup $build failed"
	fi
	ninja -C "$build" >"$build/perf-build.log" 2>&1 || {
		tail -n 20 "$build/perf-build.log" >&2
		die "the build failed"
	}
	case " $* " in
	" engine " | " handles " | " engine handles " | " handles engine ") return ;; # libc alone
	esac
	[ -x "$build/perf/bench_conn" ] || die "bench_conn is not built: DPDK is missing (apps/deps.sh)"
}

# Two CPUs that we may use: side A (client), side B (server).
pick_cpus()
{
	local cpus
	mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
	[ ${#cpus[@]} -ge 2 ] || die "two CPUs are needed, ${#cpus[@]} may be used"
	export CPU_A=${cpus[0]} CPU_B=${cpus[1]}
}

bench()
{
	"$build/perf/bench_$1" "${@:2}"
}

# A server in the background, a client of the same bench, over a memif socket.
over_memif()
{
	local name=$1 dir status server
	shift
	dir=$(mktemp -d /tmp/corq-perf.XXXXXX)
	taskset -c "$CPU_B" "$build/perf/bench_$name" --role server --dev "memif:server,$dir/sock" \
		--ip 10.9.0.1/24 "$@" >"$dir/server.json" &
	server=$!
	for _ in $(seq 100); do
		[ -S "$dir/sock" ] && break
		sleep 0.05
	done
	taskset -c "$CPU_A" "$build/perf/bench_$name" --role client --server 10.9.0.1 \
		--dev "memif:client,$dir/sock" --ip 10.9.0.2/24 --runs "$REPS" --warm-ms 1500 "$@"
	status=$?
	kill -INT $server
	wait $server || status=1
	cat "$dir/server.json"
	rm -rf "$dir"
	return $status
}

# Marks each line of a bench with the device and the load.
on()
{
	sed "s/^{\"name\": \"\([a-z_]*\)\./{\"name\": \"\1.$1./"
}

run_engine()
{
	taskset -c "$CPU_A" "$build/perf/bench_engine" --runs "$REPS"
}

run_handles()
{
	bench handles --runs "$REPS"
}

run_conn()
{
	bench conn --runs "$REPS" --warm-ms 1500 --slots 512 | on loop
	over_memif conn --slots 512 | on memif
	bench conn --keepalive --runs "$REPS" --warm-ms 1500 --slots 512 | on loop.keepalive
	over_memif conn --keepalive --slots 512 | on memif.keepalive
}

# -c above the value at which the rate stops growing, and a core that stands still for 10 ms.
run_pause()
{
	local side slots
	for side in client server; do
		for slots in 512 4096; do
			bench conn --runs 2 --warm-ms 1500 --slots $slots --pause-ms 10 \
				--pause-side $side | grep pause | on "loop.$side.c$slots"
		done
	done
}

run_stream()
{
	bench stream --runs "$REPS" --warm-ms 1500 | on loop
	over_memif stream | on memif
}

run_idle()
{
	bench idle
}

run_records()
{
	bench records
}

run_vs_kernel()
{
	perf/vs_kernel.sh
}

run_vs_wrk()
{
	perf/vs_wrk.sh
}

run_cork_close()
{
	perf/cork_close.sh
}

run_vs_nginx()
{
	perf/vs_nginx.sh
}

run_knee()
{
	perf/knee.sh
}

run_bench()
{
	local name=$1 lines status=0
	lines=$(mktemp /tmp/corq-perf.XXXXXX)
	echo "== $name" >&2
	# a failure anywhere in the bench's pipes is the bench's failure
	(set -e -o pipefail && "run_$name") >"$lines" || status=1
	python3 perf/collect.py "$name" "$build" "$lines" "$RESULTS/$name.json" || status=1
	rm -f "$lines"
	if [ $status != 0 ]; then
		echo "== $name FAILED" >&2
		failed=1
	fi
}

for name in "$@"; do
	[[ " $all " = *" $name "* ]] || die "no bench '$name'; there are: $all"
done
[ "$(id -u)" = 0 ] || die "run as root"
build_all "$@"
pick_cpus
mkdir -p "$RESULTS"
# Other work of the machine disturbs both sides of a comparison alike; let it disturb less.
[ -w /proc/self/autogroup ] && echo -15 2>/dev/null >/proc/self/autogroup
for name in ${@:-$all}; do
	run_bench "$name"
done
if command -v gnuplot >/dev/null; then
	perf/plot.sh "$RESULTS" || failed=1
else
	echo "gnuplot is not installed: no plot" >&2
fi
exit $failed
