#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh - installs what is missing, builds, runs the tests, counts them.
#
#   tests/run.sh [--long] [suite ...]      no suite: all of them, which is what CI runs
#
#   unit      units, and the checks of layers and format (gcc)
#   sim       the simulator (gcc)             scenario  scripted packets (gcc)
#   interop   stock programs across a veth pair: tests/interop/test_*.sh, one after the other
#   vm        corq on PCI NICs in an emulated guest: tests/vm/test_*.sh (installs QEMU)
#   mutants   each patch of tests/mutants breaks a rule: the scenarios must notice
#   explore   all interleavings of the handles' code in small (gcc), and planted bugs that it must find
#   clang     the whole tree with clang, warnings are errors: one test
#   asan      unit, scenario and half the seeds of sim again under address and undefined sanitizers
#             (clang; --long: all seeds)
#   tsan      the threaded units under the thread sanitizer (clang)
#   fuzz      every fuzz target for 30 s, or FUZZ_SECONDS (clang)
#   --long    the long form of each: CORQ_LONG=1 for the tests, 600 s a fuzz target
#
# BUILD is the folder of the main build (default build); the others stand beside it with the
# suite's name after it. Logs: BUILD/meson-logs, BUILD/interop-logs, BUILD/vm-logs, BUILD-fuzz/logs.
# Exit: 0 all passed, 1 something failed, 2 wrong usage. The last line is the sum.
set -u
cd "$(dirname "$0")/.." || exit 1

all_suites="unit sim scenario mutants explore interop vm clang asan tsan fuzz"
build=$(realpath -m "${BUILD:-build}")
long=""
passed=0 failed=0 skipped=0
child="" fuzzers=()

say()
{
	echo "== $*"
}

pass()
{
	passed=$((passed + 1))
	echo "ok    $*"
}

fail()
{
	failed=$((failed + 1))
	echo "FAIL  $*"
}

skip()
{
	skipped=$((skipped + 1))
	echo "skip  $*"
}

# Runs a command so that an interrupt ends it too, and it can clean up.
supervise()
{
	"$@" &
	child=$!
	wait "$child"
	local status=$?
	child=""
	return $status
}

on_interrupt()
{
	trap '' INT TERM
	local pid
	for pid in $child "${fuzzers[@]}"; do
		kill -TERM "$pid" 2>/dev/null
		wait "$pid"
	done
	echo "interrupted" >&3
	exit 130
}
exec 3>&2 # the trap may run inside a redirection
trap on_interrupt INT TERM

# ---- building

# Configures once, builds each time. A failure is one failed test, with the log's end shown.
build_in()
{
	local dir=$1 compiler=$2 log
	shift 2
	mkdir -p "$dir"
	log=$dir/build.log
	say "building $dir ($compiler)"
	if [ ! -f "$dir/build.ninja" ]; then
		CC=$compiler supervise meson setup "$dir" "$@" >"$log" 2>&1 || {
			tail -n 30 "$log"
			fail "configure $dir"
			return 1
		}
	fi
	supervise ninja -C "$dir" >"$log" 2>&1 || {
		grep -E -A5 'error:|FAILED:' "$log" | head -n 60
		fail "build $dir ($log)"
		return 1
	}
}

main_build_done=""
main_build()
{
	if [ ! "$main_build_done" ]; then
		main_build_done=failed
		build_in "$build" gcc -Ddpdk=enabled && main_build_done=ok
	fi
	[ "$main_build_done" = ok ]
}

sanitized_build()
{
	build_in "$build-$1" clang "-Db_sanitize=$2" -Db_lundef=false -Dbuildtype=debugoptimized \
		-Ddpdk=disabled -Dperf=false "${@:3}"
}

# ---- meson's tests

# One line a test of meson's JSON log: result, name, time, and for a skip its reason; after a
# failed one the last lines that it printed.
read_testlog()
{
	python3 - "$1" <<-'PYTHON'
		import json, sys
		for line in open(sys.argv[1], encoding="utf-8"):
		    test = json.loads(line)
		    text = (test.get("stdout") or "") + (test.get("stderr") or "")
		    last = [l.strip() for l in text.splitlines() if l.strip()][-1:] or ["no reason given"]
		    result = {"OK": "ok", "EXPECTEDFAIL": "ok", "SKIP": "skip"}.get(test["result"], "fail")
		    name = test["name"].split(" / ")[-1]
		    why = last[0] if result == "skip" else test["result"]
		    print(result, name, "%.1f s" % test["duration"], why, sep="\t")
		    if result == "fail":
		        for shown in text.splitlines()[-30:]:
		            print("text", "    " + shown.replace("\t", "  "), sep="\t")
	PYTHON
}

# meson_suite DIR SUITE [TIMEOUT-FACTOR [option of meson test ...]]
meson_suite()
{
	local dir=$1 suite=$2 factor=${3:-1} name base result time why
	base=testlog-$suite
	rm -f "$dir/meson-logs/$base.json"
	[ "$long" ] && factor=0
	say "suite $suite ($dir)"
	supervise $no_aslr meson test -C "$dir" --no-rebuild --suite "$suite" --logbase "$base" \
		--timeout-multiplier "$factor" "${@:4}" >"$dir/$base.out" 2>&1
	if [ ! -s "$dir/meson-logs/$base.json" ]; then
		if grep -q "No suitable tests defined" "$dir/$base.out"; then
			skip "$suite in $dir: no test in this suite yet"
		else
			tail -n 20 "$dir/$base.out"
			fail "meson test of $suite in $dir"
		fi
		return
	fi
	while IFS=$'\t' read -r result name time why; do
		case $result in
		ok) pass "$suite/$name ($time)" ;;
		skip) skip "$suite/$name: ${why#skip: }" ;;
		text) echo "$name" ;;
		*) fail "$suite/$name ($time, $why)" ;;
		esac
	done < <(read_testlog "$dir/meson-logs/$base.json")
}

suite_unit()
{
	main_build && meson_suite "$build" unit
}

suite_sim()
{
	main_build && meson_suite "$build" sim
}

# The sum of meson's JSON log: scripts, cases of the matrix, what failed of them.
scenario_sum()
{
	python3 - "$1" "$2" <<-'PYTHON'
		import json, re, sys
		scripts = cases = bad = 0
		for line in open(sys.argv[1], encoding="utf-8"):
		    test = json.loads(line)
		    name = test["name"].split(" / ")[-1]
		    found = re.search(r"^matrix: (\d+) cases, (\d+) failed", test.get("stdout") or "", re.M)
		    if found:
		        cases, bad = cases + int(found[1]), bad + int(found[2])
		    elif "/" in name:  # GROUP/NAME
		        scripts, bad = scripts + 1, bad + (test["result"] != "OK")
		held = "all held" if bad == 0 and cases else "%d failed" % bad if cases else "no matrix"
		print("scenario: %d scripts, %d matrix cases, %s in %s s" % (scripts, cases, held, sys.argv[2]))
	PYTHON
}

suite_scenario()
{
	local start
	main_build || return
	start=$(date +%s%N)
	meson_suite "$build" scenario
	[ ! -s "$build/meson-logs/testlog-scenario.json" ] ||
		scenario_sum "$build/meson-logs/testlog-scenario.json" \
			"$(awk -v a="$start" -v b="$(date +%s%N)" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')"
}

suite_clang()
{
	build_in "$build-clang" clang -Ddpdk=enabled && pass "clang builds the tree, warnings are errors"
}

suite_asan()
{
	local suite less=(--no-suite more-seeds)
	[ ! "$long" ] || less=()
	sanitized_build asan address,undefined || return
	for suite in unit scenario sim; do
		meson_suite "$build-asan" $suite 5 --no-suite tree "${less[@]}"
	done
}

suite_tsan()
{
	sanitized_build tsan thread && meson_suite "$build-tsan" tsan 10
}

# ---- interop, vm

# Each executable test_*.sh of tests/SUITE, one after the other.
script_suite()
{
	local suite=$1 script name log status start seconds found=""
	mkdir -p "$build/$suite-logs"
	say "suite $suite ($build/$suite-logs)"
	for script in tests/"$suite"/test_*.sh; do
		[ -x "$script" ] || continue
		found=yes
		name=$(basename "$script" .sh)
		log=$build/$suite-logs/$name.log
		rm -rf "${log%.log}"
		mkdir -p "${log%.log}"
		start=$SECONDS
		CORQ=$build/apps/corq LAB_LOGS=${log%.log} BUILD_DIR=$build \
			supervise timeout --kill-after=30 "$interop_seconds" "$script" >"$log" 2>&1
		status=$?
		seconds=$((SECONDS - start))
		case $status in
		0) pass "$suite/$name ($seconds s)" ;;
		77) skip "$suite/$name: $(sed -n 's/^skip: //p' "$log" | tail -n 1)" ;;
		*)
			tail -n 30 "$log"
			[ $status = 124 ] && status="$interop_seconds s are over"
			fail "$suite/$name ($seconds s, status $status, $log)"
			;;
		esac
	done
	[ "$found" ] || skip "$suite: no script"
}

suite_interop()
{
	main_build && script_suite interop
}

suite_vm()
{
	main_build || return
	apps/deps.sh vm || {
		fail "vm: its packages are missing"
		return
	}
	script_suite vm
}

# ---- mutants

# tests/SUITE/run.sh plants bugs, one line each, and counts them in its last line: without that it
# did not come to its end.
planted_suite()
{
	local suite=$1 log=$build/$1.log word name rest
	say "suite $suite"
	mkdir -p "$build"
	supervise "tests/$suite/run.sh" >"$log" 2>&1 || :
	while read -r word name rest; do
		case $word in
		noticed) pass "$suite/$name" ;;
		found) pass "$suite/$name (${rest%%:*})" ;;
		BAD | STALE | NO | SURVIVED | MISSED) fail "$suite/$name: $word $rest" ;;
		skip:) skip "$suite: $name $rest" ;;
		esac
	done <"$log"
	tail -n 1 "$log" | grep -qE '^([1-9][0-9]* (mutants noticed|bugs found), |skip: )' || {
		fail "$suite: not all were tried, or none found ($log)"
		tail -n 20 "$log" | sed 's/^/    /'
	}
}

suite_mutants()
{
	main_build && BUILD_DIR=$build planted_suite mutants
}

# ---- explorer

suite_explore()
{
	main_build || return
	meson_suite "$build" explore
	planted_suite explore
}

# ---- fuzz

# fuzz_one TARGET SECONDS: from its seeds in tests/fuzz/corpus/NAME, growing in BUILD-fuzz.
fuzz_one()
{
	local target=$1 seconds=$2 name
	name=$(basename "$target")
	mkdir -p "$build-fuzz/corpus/$name" "$build-fuzz/findings"
	local corpora=("$build-fuzz/corpus/$name")
	[ -d "tests/fuzz/corpus/$name" ] && corpora+=("tests/fuzz/corpus/$name")
	# The factor is for a target that gets stuck where libFuzzer's own clock cannot see it.
	exec timeout --kill-after=10 $((seconds * 2 + 60)) $no_aslr "$target" \
		-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$build-fuzz/findings/$name-" "${corpora[@]}"
}

fuzz_result()
{
	local name=$1 status=$2 log=$3 runs
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	if [ "$status" = 0 ] && [ "${runs:-0}" -gt 0 ]; then
		pass "fuzz/$name ($runs inputs)"
	else
		grep -E -A12 'ERROR:|runtime error|SUMMARY' "$log" | head -n 30
		tail -n 5 "$log"
		fail "fuzz/$name (status $status, $log)"
	fi
}

# As many at a time as there are CPUs.
suite_fuzz()
{
	local target i cpus
	local names=()
	sanitized_build fuzz address,undefined -Dfuzzers=true || return
	cpus=$(nproc)
	mkdir -p "$build-fuzz/logs"
	say "suite fuzz ($fuzz_seconds s each, $build-fuzz/logs)"
	for target in "$build-fuzz"/tests/fuzz/fuzz_*; do
		[ -f "$target" ] && [ -x "$target" ] && names+=("$(basename "$target")")
	done
	if [ ${#names[@]} = 0 ]; then
		skip "fuzz: no target yet"
		return
	fi
	for ((i = 0; i < ${#names[@]}; i++)); do
		target=$build-fuzz/tests/fuzz/${names[i]}
		fuzz_one "$target" "$fuzz_seconds" >"$build-fuzz/logs/${names[i]}.log" 2>&1 &
		fuzzers+=($!)
		if ((i >= cpus - 1)); then
			fuzz_wait $((i - cpus + 1))
		fi
	done
	for ((i = ${#names[@]} - cpus + 1; i < ${#names[@]}; i++)); do
		((i >= 0)) && fuzz_wait $i
	done
}

# Collects the target that was started as number $1 (names is suite_fuzz's).
fuzz_wait()
{
	local i=$1
	wait "${fuzzers[i]}"
	fuzz_result "${names[i]}" $? "$build-fuzz/logs/${names[i]}.log"
}

# ---- main

suites=()
for argument in "$@"; do
	case $argument in
	--long) long=yes ;;
	-h | --help)
		sed -n '3,21s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	*)
		case " $all_suites " in
		*" $argument "*) suites+=("$argument") ;;
		*)
			echo "tests/run.sh: unknown suite '$argument'; there are: $all_suites" >&2
			exit 2
			;;
		esac
		;;
	esac
done
if [ "$(id -u)" != 0 ]; then
	echo "tests/run.sh: run as root (sudo): it installs packages and makes network namespaces" >&2
	exit 1
fi
[ ${#suites[@]} = 0 ] && read -ra suites <<<"$all_suites"

fuzz_seconds=${FUZZ_SECONDS:-30} interop_seconds=300
if [ "$long" ]; then
	export CORQ_LONG=1
	fuzz_seconds=${FUZZ_SECONDS:-600} interop_seconds=3600
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-halt_on_error=1:abort_on_error=1:detect_leaks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:abort_on_error=1:print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
# Kernels with much address randomisation put memory where clang 14's sanitizers expect none.
no_aslr=""
setarch -R true 2>/dev/null && no_aslr="setarch -R"

apps/deps.sh test || exit 1
for suite in "${suites[@]}"; do
	"suite_$suite"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
