#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The devices of lib/port, without an engine: what goes in comes out, on every one of them.
#
# Checks, each with huge pages and without: loop across two cores, on one core, and across 8 cores
# that share the CPUs; memif between two processes; veth across a pair in a namespace of ours: every
# frame back, once, with its bytes, no buffer leaked; the same with borrowed second parts where the
# port takes chains, each released once. Then: ends of memif with different numbers of cores do not
# connect; a memif end outlives the other's death, again and again, and serves the next; a stale
# socket file does not matter; frames above the MTU are counted; the line about a peer's offloads
# names it when it is near; what is wrong with a device gives one line and status 1.
# A run sends for 1.5 s at most. Prints the rates. None is checked: they say as much about the machine.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh

echo_bin=${PORT_ECHO:-${BUILD_DIR:-../../build}/tests/interop/port_echo}
[ -x "$echo_bin" ] || lab_skip "port_echo is not built ($echo_bin)"
[ "$(id -u)" = 0 ] || lab_skip "root only"

ns=corq-port-$$
tmp=$(mktemp -d)
huge_file=/proc/sys/vm/nr_hugepages
huge_before=$(cat $huge_file)
peer="" victim=""

cleanup()
{
	[ -z "$peer" ] || kill -9 "$peer" 2>/dev/null || true
	[ -z "$victim" ] || kill -9 "$victim" 2>/dev/null || true
	ip netns del $ns 2>/dev/null || true
	ip netns del $ns-2 2>/dev/null || true
	[ "$(cat $huge_file)" = "$huge_before" ] || echo "$huge_before" >$huge_file
	rm -rf "$tmp"
}
trap cleanup EXIT

die()
{
	echo "test_port: $*" >&2
	tail -n 5 "$tmp"/*.log >&2 || true
	exit 1
}

# Empty directories of EAL: what was killed before this test (others' too) is not ours to judge.
left_behind()
{
	find /run/dpdk /var/run/dpdk -maxdepth 1 -name 'corq-*' -empty 2>/dev/null | sort -u
}
left_behind >"$tmp/left.before"

lab_pick_cpus
[ "$LAB_CPU_A" != "$LAB_CPU_B" ] && share="" || share=--share
pages=""

# one NAME OPTION...: a run in one process
one()
{
	local name=$1
	shift
	# shellcheck disable=SC2086
	timeout 60 "$echo_bin" $pages --for 1500 "$@" >"$tmp/gen.log" 2>&1 || die "$name $pages failed"
	echo "$name ${pages:-huge}: $(tail -n 1 "$tmp/gen.log")"
}

peer_start()
{
	# shellcheck disable=SC2086
	ip netns exec $ns taskset -c "$LAB_CPU_A" "$echo_bin" $pages --mode echo "$@" >"$tmp/echo.log" 2>&1 &
	peer=$!
	lab_poll 5 $peer grep -q queue "$tmp/echo.log" || die "the echo side does not start"
}

peer_stop()
{
	local status=0
	kill -TERM "$peer"
	wait "$peer" || status=$?
	peer=""
	[ $status = 0 ] || die "the echo side ended with status $status"
}

# two NAME ECHO-DEVICE GEN-DEVICE OPTION...: a run in two processes
two()
{
	local name=$1 device=$3
	peer_start --dev "$2"
	shift 3
	# shellcheck disable=SC2086
	ip netns exec $ns timeout 60 taskset -c "$LAB_CPU_B" "$echo_bin" $pages --for 1500 --dev "$device" "$@" \
		>"$tmp/gen.log" 2>&1 || die "$name $pages failed"
	peer_stop
	grep -q "out 0" "$tmp/echo.log" || die "$name: the echo side leaks"
	echo "$name ${pages:-huge}: $(tail -n 1 "$tmp/gen.log")"
}

# wrong REGEX DEVICE OPTION...: refused with one line, and status 1
wrong()
{
	local expect=$1 status=0
	shift
	ip netns exec $ns timeout 30 "$echo_bin" --no-huge --dev "$@" >"$tmp/wrong.log" 2>&1 || status=$?
	grep -v "warning:" "$tmp/wrong.log" >"$tmp/wrong.lines" || true
	[ $status = 1 ] || die "--dev $*: status $status"
	[ "$(wc -l <"$tmp/wrong.lines")" = 1 ] || die "--dev $*: not one line"
	grep -qE "$expect" "$tmp/wrong.lines" || die "--dev $*: $(cat "$tmp/wrong.lines")"
}

ip netns add $ns
ip -n $ns link set lo up
ip netns exec $ns sysctl -qw net.ipv6.conf.default.disable_ipv6=1
ip -n $ns link add pA mtu 9000 type veth peer name pB mtu 9000
ip -n $ns link set pA up
ip -n $ns link set pB up
sock=$tmp/memif.sock

devices()
{
	# shellcheck disable=SC2086
	one "loop" --dev loop --count 5000000 $share
	# shellcheck disable=SC2086
	one "loop, bytes" --dev loop --check --size 1514 --count 500000 $share
	one "loop, one core" --dev loop --self --check --count 5000000
	one "loop, 8 cores" --dev loop --cores 4 --share --check --count 100000
	two "memif" "memif:server,$sock" "memif:client,$sock" --count 2000000
	two "memif, bytes" "memif:server,$sock" "memif:client,$sock" --check --size 1514 --count 300000
	two "memif, borrowed" "memif:server,$sock" "memif:client,$sock" --check --ext --count 300000
	two "veth" veth:pA veth:pB --check --mtu 1500 --count 100000
	two "veth, borrowed" veth:pA veth:pB --check --mtu 1500 --ext --count 50000
	two "veth, jumbo" veth:pA veth:pB --check --size 8900 --count 20000
}

# Enough free for two processes, or reserve them for the while of this test.
[ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" -ge 400 ] || echo $((huge_before + 400)) >$huge_file || true
if [ "$(awk '/HugePages_Free/ { print $2 }' /proc/meminfo)" -ge 400 ]; then
	devices
else
	echo "no huge pages to be had: only without them"
fi
pages=--no-huge
devices

# A peer that is killed is no reason to die, from either end; the socket file stays behind.
for role in server client; do
	[ $role = server ] && other=client || other=server
	for i in 1 2 3 4 5; do
		if [ $role = server ]; then
			[ $i = 1 ] && peer_start --dev "memif:server,$sock"
			ip netns exec $ns taskset -c "$LAB_CPU_B" "$echo_bin" --no-huge --dev "memif:client,$sock" \
				--count 1000000000 >"$tmp/gen.log" 2>&1 &
			victim=$!
			lab_poll 5 $victim grep -q queue "$tmp/gen.log" || die "the generator does not start ($i)"
		else
			ip netns exec $ns taskset -c "$LAB_CPU_B" "$echo_bin" --no-huge --mode echo \
				--dev "memif:server,$sock" >"$tmp/gen.log" 2>&1 &
			victim=$!
			lab_poll 5 $victim grep -q queue "$tmp/gen.log" || die "the echo side does not start ($i)"
			ip netns exec $ns taskset -c "$LAB_CPU_A" "$echo_bin" --no-huge --dev "memif:client,$sock" \
				--count 1000000000 >"$tmp/echo.log" 2>&1 &
			peer=$!
			lab_poll 5 $peer grep -q queue "$tmp/echo.log" || die "the generator does not start ($i)"
		fi
		sleep 0.2 # of traffic, which has no word of its own
		kill -9 $victim 2>/dev/null || die "the $other of memif is gone before its time"
		wait $victim 2>/dev/null || true
		victim=""
		if [ $role = server ]; then
			sleep 0.1 # a death of its own needs time too
			kill -0 "$peer" 2>/dev/null || die "the server died with its client ($i)"
		else
			status=0
			wait "$peer" || status=$?
			peer=""
			# 1: frames are missing, of course; a signal would be above 128
			[ $status -le 1 ] || die "the client died with its server ($i): $status"
		fi
	done
	if [ $role = server ]; then
		ip netns exec $ns timeout 60 taskset -c "$LAB_CPU_B" "$echo_bin" --no-huge \
			--dev "memif:client,$sock" --check --count 100000 >"$tmp/gen.log" 2>&1 ||
			die "after 5 deaths the server does not serve the next client"
		peer_stop
	fi
	echo "memif: the $role outlives the $other"
done

peer_start --dev "memif:server,$sock"
wrong 'no server on .*another number of cores' "memif:client,$sock" --cores 2 --share --wait 1000
wrong 'in use by another server' "memif:server,$sock"
peer_stop
echo "memif: unequal numbers of cores do not connect"

peer_start --dev veth:pA --mtu 1500
ip netns exec $ns timeout 30 "$echo_bin" --no-huge --dev veth:pB --mtu 9000 --size 4000 --count 64 \
	>"$tmp/gen.log" 2>&1 || true
peer_stop
grep -qE 'oversize 64$' "$tmp/echo.log" || die "frames above the MTU are not counted"
echo "veth: frames above the MTU are counted"

ip netns exec $ns "$echo_bin" --hint pA | grep -q 'ethtool -K pB tx off' || die "the near peer is not named"
ip netns add $ns-2
ip -n $ns link add pC type veth peer name pB netns $ns-2
ip netns exec $ns "$echo_bin" --hint pC | grep -q 'in its network namespace: ethtool -K IF' ||
	die "a foreign peer is named"
echo "veth: the hint names a near peer, and no foreign one"

wrong 'unknown device "xyz".*known: loop, memif' xyz
wrong 'no such interface: nowhere' veth:nowhere
wrong 'wants veth:IF' veth:
wrong 'pC is down: ip link set pC up' veth:pC
wrong 'loopback' veth:lo
wrong 'MTU 9500 is above that of pA: ip link set pA mtu 9500' veth:pA --mtu 9500
wrong 'MTU 100: 576' loop --mtu 100
wrong 'wants memif:server,SOCKET' memif:server
wrong 'directory /nowhere of the socket' memif:server,/nowhere/x
wrong 'exists and is no socket' "memif:server,$tmp/gen.log"
wrong 'too few cores: 12 wanted' loop --cores 6
wrong "unrecognized option '--nonsense'" loop -- --nonsense
ip -n $ns link set pC up
wrong 'pC has no carrier' veth:pC
echo "what is wrong is said in one line"
left_behind >"$tmp/left.after"
[ -z "$(comm -13 "$tmp/left.before" "$tmp/left.after")" ] || die "EAL's directories are left behind"
echo ok
