#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Frames that come while corq does not run and find no room are in its figures: rx_missed.
#
# corq httpd is stopped (SIGSTOP), 5000 datagrams are sent to it, more than any of the rings has room
# for, and it goes on and answers. Checks, on veth, on AF_PACKET's driver by its own name and on xdp:
# rx_missed is what was sent without what the ring held, 2048 frames at most; without a stop it is 0.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq curl python3 jq

sent=5000

flood()
{
	lab_in_a python3 - "$LAB_IP_B" $sent <<-'PYTHON'
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for _ in range(int(sys.argv[2])):
		    s.sendto(b"x", (sys.argv[1], 9))
	PYTHON
}

page()
{
	lab_in_a curl -sS --fail --max-time 20 -o /dev/null "http://$LAB_IP_B/" || lab_die "$LAB_DEV: no answer"
}

# missed DEVICE: rx_missed without a stop and with one
missed()
{
	local json=$LAB_LOGS/missed.json n before
	LAB_DEV=$1
	lab_httpd_start --json "$json" --size 100
	page
	lab_httpd_stop INT
	jq -e '.tcp.rx_missed == 0' "$json" >/dev/null || lab_die "$1: missed without a stop: $(jq -c .tcp "$json")"
	lab_httpd_start --json "$json" --size 100
	page
	before=$(lab_count "$LAB_NS_A" "$LAB_IF_A" tx dropped)
	kill -STOP "$lab_httpd_pid"
	flood
	kill -CONT "$lab_httpd_pid"
	page
	lab_httpd_stop INT
	n=$(jq .tcp.rx_missed "$json")
	before=$(($(lab_count "$LAB_NS_A" "$LAB_IF_A" tx dropped) - before))
	lab_say "$1: of $sent frames $n were missed, $before did not leave side A"
	[ "$((n + before))" -ge $((sent - 2048)) ] && [ "$n" -gt 0 ] && [ "$n" -le $((sent + 100)) ] ||
		lab_die "$1: rx_missed is $n: $(jq -c .tcp "$json")"
}

lab_up
missed "veth:$LAB_IF_B"
missed "vdev:net_af_packet0,iface=$LAB_IF_B"
if lab_has_xdp; then
	missed "xdp:$LAB_IF_B"
else
	lab_say "this kernel has no AF_XDP sockets: xdp was left out"
fi
