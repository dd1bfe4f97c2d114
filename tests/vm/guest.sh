#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest.sh - an emulated guest with PCI NICs, whose peers are the kernel's taps in side A of lab.sh.
#
# Source lab.sh first, and lab_up. Names of its own start with guest_; limits: one guest a script.
#
#   guest_need                          skips the test when a program is missing
#   guest_nic MODEL                     before the boot: a NIC in the next PCI slot, and its tap
#   guest_boot [FILE...]                builds the guest, FILEs in its /www, and waits until it is up
#   guest_do SECONDS COMMAND            runs a line of its shell (see init.sh); its status;
#                                       what it printed is in GUEST_OUT
#   guest_wait REGEX [SECONDS]          until the console shows such a line after the last guest_do
#   guest_off                           powers it off; fails unless QEMU ends by itself, status 0
#
# NIC number i (from 0): GUEST_PCI[i] its address in the guest, GUEST_TAP[i] the tap,
# GUEST_NET[i] the first three numbers of their /24: the host is .1, the guest .2.
#
# CPUs are emulated (KVM needs hardware that test machines lack). The console is
# LAB_LOGS/console.log. The whole guest is killed after GUEST_SECONDS.

: "${GUEST_SECONDS:=280}"
GUEST_PCI=() GUEST_TAP=() GUEST_NET=() GUEST_OUT=""
guest_dir="" guest_pid="" guest_console="" guest_from=1 guest_number=0 guest_args=()

guest_need()
{
	local program
	for program in qemu-system-x86_64 busybox cpio; do
		command -v $program >/dev/null || lab_skip "$program is not installed (apps/deps.sh vm)"
	done
	[ -c /dev/net/tun ] || lab_skip "no /dev/net/tun: the kernel has no tap interfaces"
}

guest_nic()
{
	local i=${#GUEST_PCI[@]} tap
	tap=cqt$$.$i
	GUEST_TAP[i]=$tap
	GUEST_NET[i]=10.78.$i
	GUEST_PCI[i]=$(printf '0000:00:%02x.0' $((i + 16)))
	ip -n "$LAB_NS_A" tuntap add "$tap" mode tap || lab_die "cannot make the tap $tap"
	lab_quiet_side "$LAB_NS_A" "$tap" ""
	ip -n "$LAB_NS_A" addr add "10.78.$i.1/24" dev "$tap"
	ip -n "$LAB_NS_A" link set "$tap" up
	guest_args+=(-netdev "tap,id=net$i,ifname=$tap,script=no,downscript=no,vhost=off"
		-device "$1,netdev=net$i,addr=$(printf '%x' $((i + 16))),mac=52:54:00:00:00:0$i,romfile=")
}

guest_boot()
{
	local channel=$LAB_TMP/channel
	guest_dir=${BUILD_DIR:-$LAB_TMP}/vm
	"$(dirname "${BASH_SOURCE[0]}")/build_guest.sh" "$CORQ" "$guest_dir" "$@" ||
		lab_die "cannot build the guest"
	guest_console=$LAB_LOGS/console.log
	: >"$guest_console"
	mkfifo "$channel.in" "$channel.out"
	exec {guest_out}<>"$channel.out" {guest_in}<>"$channel.in"
	lab_spawn "$LAB_NS_A" "$LAB_CPU_A,$LAB_CPU_B" qemu timeout --kill-after=5 "$GUEST_SECONDS" \
		qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none -monitor none \
		-accel tcg,thread=multi -cpu max -smp 2 -m 2048 \
		-kernel "$guest_dir/vmlinuz" -initrd "$guest_dir/initrd" \
		-append "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable hugepages=256" \
		-serial "file:$guest_console" -chardev "pipe,id=channel,path=$channel" -serial chardev:channel \
		"${guest_args[@]}"
	guest_pid=$LAB_PID
	lab_wait_line "$guest_console" '^=ready=' "$guest_pid" 90 || {
		cat "$LAB_LOG" >&2
		lab_die "the guest did not boot"
	}
}

guest_lines()
{
	tail -n "+$guest_from" "$guest_console" | tr -d '\r'
}

guest_do()
{
	local seconds=$1 status
	shift
	guest_number=$((guest_number + 1))
	guest_from=$(($(wc -l <"$guest_console") + 1))
	echo "$*" >&"$guest_in"
	lab_wait_line "$guest_console" "^=$guest_number= " "$guest_pid" "$seconds" ||
		lab_die "the guest did not end this within $seconds s: $*"
	status=$(guest_lines | sed -n "s/^=$guest_number= //p")
	GUEST_OUT=$(guest_lines | sed "/^=$guest_number= /,\$d")
	return "$status"
}

guest_shows()
{
	guest_lines | grep -qE -- "$1"
}

guest_wait()
{
	lab_poll "${2:-30}" "$guest_pid" guest_shows "$1" && return
	guest_lines | tail -n 20 >&2
	lab_die "the guest's console shows no line '$1'"
}

guest_off()
{
	local status=0
	echo off >&"$guest_in"
	lab_poll 20 0 guest_ended || lab_die "the guest did not power off"
	wait "$guest_pid" || status=$?
	lab_forget "$guest_pid"
	[ $status = 0 ] || lab_die "QEMU ended with status $status: $(tail -n 3 "$LAB_LOGS/qemu.log")"
}

guest_ended()
{
	! kill -0 "$guest_pid" 2>/dev/null
}
