#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh - the main job on a fresh machine: installs what is missing, builds, runs, reports.
#
#   apps/demo.sh [--no-huge]
#
# 1. `corq ab` loads a stock nginx across a veth pair, with and without keep-alive.
# 2. A stock `ab` loads `corq httpd` across the same pair; curl fetches a large file from it.
# 3. `corq ab` loads its embedded server on the loop device: no kernel in between.
# It ends with a table, and with 0 if nothing failed. It changes nothing on the machine but the
# installed packages and the folder build/. Huge pages are used if there are any; --no-huge does
# without.
set -u
cd "$(dirname "$0")/.." || exit 1

say()
{
	echo "demo: $*"
}

die()
{
	echo "demo: $*" >&2
	exit 1
}

no_huge=""
case "${1-}" in
"") ;;
--no-huge) no_huge=--no-huge ;;
*) die "unknown option '$1'; there is --no-huge" ;;
esac
[ "$(id -u)" = 0 ] || die "run as root: sudo apps/demo.sh"

# ---- install and build

apps/deps.sh demo || exit 1
if [ ! -f build/build.ninja ]; then
	meson setup build >build.log 2>&1 || {
		tail -n 20 build.log >&2
		die "meson failed, see build.log"
	}
	mv build.log build/setup.log
fi
say "building"
ninja -C build apps/corq >build/ninja.log 2>&1 || {
	tail -n 30 build/ninja.log >&2
	die "the build failed, see build/ninja.log"
}
corq=$PWD/build/apps/corq

# ---- run

. tests/interop/lab.sh
requests=20000
slots=50
rows=()

# Runs a load generator, shows its report from "Server Software:" on, and keeps a row of the table.
run_load()
{
	local title=$1 out rate failed complete
	shift
	out=$LAB_LOGS/report.$((${#rows[@]} + 1))
	say "$title"
	"$@" >"$out" 2>"$out.err" || {
		cat "$out" "$out.err" >&2
		die "'$title' ended with $?"
	}
	sed -n '/^Server Software:/,$p' "$out"
	echo
	rate=$(awk '/^Requests per second:/ { print $4 }' "$out")
	failed=$(awk '/^Failed requests:/ { print $3 }' "$out")
	complete=$(awk '/^Complete requests:/ { print $3 }' "$out")
	[ "$failed" = 0 ] || die "'$title': $failed of $complete requests failed"
	rows+=("$(printf '%-52s %12s requests/s  %s failed of %s' "$title" "$rate" "$failed" "$complete")")
}

veth_ab()
{
	# shellcheck disable=SC2086 # no_huge is empty or one word
	lab_in_b "$corq" ab $no_huge --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" -q "$@" \
		"http://$LAB_IP_A/page.bin"
}

lab_up
lab_file page.bin 612
lab_file large.bin 20000000
lab_nginx_start a
run_load "corq ab against nginx, veth" veth_ab -n $requests -c $slots
run_load "corq ab -k against nginx, veth" veth_ab -k -n $requests -c $slots
lab_nginx_stop

# shellcheck disable=SC2086
lab_spawn_b httpd "$corq" httpd $no_huge --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" "$LAB_WWW"
httpd=$LAB_PID httpd_log=$LAB_LOG
lab_wait_line "$httpd_log" '^corq httpd: listening' "$httpd" || die "corq httpd did not start"
run_load "stock ab against corq httpd, veth" \
	lab_in_a ab -q -n $requests -c $slots "http://$LAB_IP_B/page.bin"
run_load "stock ab -k against corq httpd, veth" \
	lab_in_a ab -q -k -n $requests -c $slots "http://$LAB_IP_B/page.bin"
digest=$(lab_sha256 a "http://$LAB_IP_B/large.bin") || die "curl failed against corq httpd"
[ "$digest" = "$(sha256sum <"$LAB_WWW/large.bin" | cut -d' ' -f1)" ] ||
	die "curl got other bytes than corq httpd was given"
rows+=("$(printf '%-52s %s' "curl, 20 MB from corq httpd" "digest equal")")
lab_stop "$httpd" INT || die "corq httpd ended with $?"
cat "$httpd_log"
echo

# shellcheck disable=SC2086
run_load "corq ab on loop, a connection a request" "$corq" ab $no_huge -q -n 1000000 -c 256
# shellcheck disable=SC2086
run_load "corq ab -k on loop" "$corq" ab $no_huge -q -k -n 1000000 -c 256

say "all done:"
printf '  %s\n' "${rows[@]}"
