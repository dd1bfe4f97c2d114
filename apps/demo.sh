#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh - the main job on a fresh machine: installs what is missing, builds, runs, reports.
#
# `apps/demo.sh --help` lists its steps and options. It ends with a table, and with 0 if nothing
# failed; the first report is shown whole, the others with --verbose. It changes nothing on the
# machine but the installed packages and the folder build/.
set -u
cd "$(dirname "$0")/.." || exit 1

usage()
{
	cat <<'TEXT'
usage: sudo apps/demo.sh [--verbose] [--no-huge]
Takes about two minutes:
  1  installs the packages that are missing (Debian)
  2  builds corq in build/
  3  makes two network namespaces, joined by a veth pair (gone again at the end)
  4  corq ab loads a stock nginx across the pair: a connection a request, then keep-alive
  5  stock ab and curl load corq httpd across the pair
  6  corq ab loads its own server on the loop device: no kernel in between
  --verbose  show every report, not only the first
  --no-huge  do without huge pages
TEXT
}

step()
{
	echo "[$1/6] $2"
}

die()
{
	echo "demo: $*" >&2
	exit 1
}

no_huge="" verbose=""
for option in "$@"; do
	case $option in
	--no-huge) no_huge=--no-huge ;;
	--verbose) verbose=yes ;;
	--help)
		usage
		exit 0
		;;
	*)
		echo "demo: unknown option '$option'; --help lists all" >&2
		exit 2
		;;
	esac
done
[ "$(id -u)" = 0 ] || die "run as root: sudo apps/demo.sh"

# ---- install and build

step 1 "packages: installing what is missing"
apps/deps.sh demo || exit 1
step 2 "building corq in build/ (the first time about a minute)"
if [ ! -f build/build.ninja ]; then
	meson setup build >build.log 2>&1 || {
		tail -n 20 build.log >&2
		die "meson failed, see build.log"
	}
	mv build.log build/setup.log
fi
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

# Runs a load generator and keeps a row of the table. Its report is shown from "Server Software:"
# on if it is the first, or with --verbose.
run_load()
{
	local title=$1 out rate failed complete
	shift
	out=$LAB_LOGS/report.$((${#rows[@]} + 1))
	echo "      $title"
	"$@" >"$out" 2>"$out.err" || {
		cat "$out" "$out.err" >&2
		die "'$title' ended with $?"
	}
	if [ ${#rows[@]} = 0 ] || [ "$verbose" ]; then
		echo
		sed -n '/^Server Software:/,$p' "$out"
		echo
	fi
	rate=$(awk '/^Requests per second:/ { print $4 }' "$out")
	failed=$(awk '/^Failed requests:/ { print $3 }' "$out")
	complete=$(awk '/^Complete requests:/ { print $3 }' "$out")
	[ "$failed" = 0 ] || die "'$title': $failed of $complete requests failed"
	rows+=("$(printf '%-50s %10.0f %10d %8d' "$title" "$rate" "$complete" "$failed")")
}

veth_ab()
{
	# shellcheck disable=SC2086 # no_huge is empty or one word
	lab_in_b "$corq" ab $no_huge --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" -q "$@" \
		"http://$LAB_IP_A/page.bin"
}

step 3 "two network namespaces and a veth pair"
lab_up
lab_file page.bin 612
lab_file large.bin 20000000

step 4 "corq ab loads a stock nginx: $requests requests of 612 bytes, $slots at a time"
lab_nginx_start a
run_load "corq ab against nginx, veth" veth_ab -n $requests -c $slots
run_load "corq ab -k against nginx, veth" veth_ab -k -n $requests -c $slots
lab_nginx_stop

step 5 "stock ab and curl load corq httpd: the same page"
# shellcheck disable=SC2086
lab_spawn_b httpd "$corq" httpd $no_huge --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" "$LAB_WWW"
httpd=$LAB_PID httpd_log=$LAB_LOG
lab_wait_line "$httpd_log" '^corq httpd: listening' "$httpd" || die "corq httpd did not start"
run_load "stock ab against corq httpd, veth" \
	lab_in_a ab -q -n $requests -c $slots "http://$LAB_IP_B/page.bin"
run_load "stock ab -k against corq httpd, veth" \
	lab_in_a ab -q -k -n $requests -c $slots "http://$LAB_IP_B/page.bin"
echo "      curl, 20 MB from corq httpd"
digest=$(lab_sha256 a "http://$LAB_IP_B/large.bin") || die "curl failed against corq httpd"
[ "$digest" = "$(sha256sum <"$LAB_WWW/large.bin" | cut -d' ' -f1)" ] ||
	die "curl got other bytes than corq httpd was given"
lab_stop "$httpd" INT || die "corq httpd ended with $?"
[ "$verbose" ] && cat "$httpd_log"

one_core=""
[ "$(nproc)" -gt 1 ] || one_core=--loop-one-core
step 6 "corq ab loads its own server, a million requests${one_core:+, both ends on the one CPU}"
# shellcheck disable=SC2086
run_load "corq ab on loop" "$corq" ab $no_huge $one_core -q -n 1000000 -c 256
# shellcheck disable=SC2086
run_load "corq ab -k on loop" "$corq" ab $no_huge $one_core -q -k -n 1000000 -c 256

echo
echo "All done, nothing failed:"
echo
printf '%-50s %10s %10s %8s\n' "run" "requests/s" "complete" "failed"
printf '%s\n' "${rows[@]}"
echo "curl, 20 MB from corq httpd: every byte as it should be"
