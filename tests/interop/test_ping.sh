#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The kernel finds corq by ARP, and pings it.
#
# Checks, with the device's MAC and with --mac, on one core and on two: echoes of 0, 1, 56 and 1472
# bytes with the DF bit come back, once each, with their bytes, checksum and TTL; so do those to each
# address of a range; a burst beyond the limit on ICMP is answered in part and disturbs nobody: HTTP is
# served afterwards. An address of the link that is not ours gets neither echo nor ARP reply. The
# capture has one ARP reply for each request to one of ours, from the right MAC, unicast, and no other
# ARP from us but for what we ask ourselves.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3 tcpdump curl

# pinged COUNT SIZE ADDRESS [OPTION...]
pinged()
{
	local count=$1 size=$2 address=$3
	shift 3
	lab_in_a python3 ping.py "$address" "$count" "$size" "$@" >"$LAB_LOGS/ping.txt" ||
		lab_die "$count pings of $size bytes to $address: $(cat "$LAB_LOGS/ping.txt")"
}

# count FILTER: packets of the capture
count()
{
	tcpdump -n -r "$LAB_LOGS/ping.pcap" "$@" 2>/dev/null | wc -l
}

# run NAME MAC OPTION...
run()
{
	local name=$1 own=$2 last asked answered
	shift 2
	ip -n "$LAB_NS_A" neigh flush dev "$LAB_IF_A"
	lab_capture_start a "$LAB_LOGS/ping.pcap" arp or icmp
	lab_httpd_start --size 100 --ip "$LAB_IP_B-$LAB_NET.4/$LAB_LEN" "$@"
	for last in 2 3 4; do
		pinged 5 56 "$LAB_NET.$last"
	done
	for size in 0 1 1472; do
		pinged 5 $size "$LAB_IP_B"
	done
	lab_in_a python3 ping.py "$LAB_NET.5" 1 56 --wait 0.5 >"$LAB_LOGS/other.txt" &&
		lab_die "$LAB_NET.5 is not ours, and answered"
	lab_in_a curl -sS --fail --max-time 10 -o /dev/null "http://$LAB_IP_B/" || lab_die "no HTTP"
	lab_capture_stop
	for last in 2 3 4; do
		asked=$(count "arp[6:2] = 1 and arp[24:4] = 0x0a4d000$last and arp[14:4] = 0x0a4d0001")
		answered=$(count "arp[6:2] = 2 and arp[14:4] = 0x0a4d000$last and ether src $own and ether dst $mac_a")
		[ "$asked" -ge 1 ] && [ "$asked" = "$answered" ] ||
			lab_die "$name: $asked ARP requests for $LAB_NET.$last, $answered replies from $own"
	done
	[ "$(count "arp[6:2] = 1 and arp[24:4] = 0x0a4d0005")" -ge 1 ] ||
		lab_die "$name: the kernel did not ask for $LAB_NET.5"
	[ "$(count "arp[6:2] = 2 and not ether src $own and not ether src $mac_a")" = 0 ] &&
		[ "$(count "arp[6:2] = 2 and arp[14:4] = 0x0a4d0005")" = 0 ] ||
		lab_die "$name: an ARP reply in another's name"
	[ "$(count "icmp[0] = 0 and ether src $own and ether dst $mac_a")" = 30 ] ||
		lab_die "$name: not 30 echo replies from $own"
	lab_httpd_stop INT
	lab_say "$name: $(count "arp[6:2] = 2 and ether src $own") ARP replies, 30 echo replies"
}

lab_up
mac_a=$(ip netns exec "$LAB_NS_A" cat "/sys/class/net/$LAB_IF_A/address")
mac_b=$(ip netns exec "$LAB_NS_B" cat "/sys/class/net/$LAB_IF_B/address")
run "the device's MAC" "$mac_b"
run "a MAC of its own" 02:c0:12:34:56:78 --mac 02:c0:12:34:56:78
run "two cores" "$mac_b" --cores 2 --share-cpus

# More at once than a second's worth (1000): some are answered, and the rest harms nobody.
lab_httpd_start --size 100
lab_in_a python3 ping.py "$LAB_IP_B" 5000 56 --burst 5000 --wait 1 >"$LAB_LOGS/burst.txt" || true
grep -q " 0 twice, 0 wrong" "$LAB_LOGS/burst.txt" || lab_die "the burst: $(cat "$LAB_LOGS/burst.txt")"
answered=$(sed 's/.*sent, \([0-9]*\) received.*/\1/' "$LAB_LOGS/burst.txt")
[ "$answered" -ge 100 ] && [ "$answered" -lt 4000 ] || lab_die "the burst: $(cat "$LAB_LOGS/burst.txt")"
lab_in_a curl -sS --fail --max-time 10 -o /dev/null "http://$LAB_IP_B/" || lab_die "no HTTP after the burst"
lab_httpd_stop INT
lab_say "a burst: $(cat "$LAB_LOGS/burst.txt")"
lab_say "all as it should be"
