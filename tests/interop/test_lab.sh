#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The lab itself, with the kernel at both ends and no corq: if this fails, nothing that the other
# interop tests say is to be trusted.
#
# Checks: offloads are off at both ends (lab_up refuses otherwise) and congestion control is
# cubic on a live connection; ab and wrk against nginx without a failure, in both variants of
# sendfile and tcp_nopush; 20 MB arrive with an equal digest; nginx's own count agrees with ab's;
# captures hold every frame; check_pcap.py finds nothing wrong with the kernel's segments, counts
# what tshark counts, and does find the kernel's FIN that is not on the data where nginx sends it
# apart; IPv6 works; a jumbo MTU works; all is gone afterwards.
set -eu
cd "$(dirname "$0")"
. ./lab.sh

for program in nginx ab wrk curl tcpdump jq; do
	command -v $program >/dev/null || lab_skip "$program is not installed (apps/deps.sh test)"
done

# tshark_count CAPTURE FILTER: frames that it matches. 0xffff is zero's other form, and no error.
tshark_count()
{
	tshark -r "$1" -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -Y "$2" 2>/dev/null | wc -l
}

# A pause of a virtual machine makes the kernel retransmit (its tail-loss probe waits a few ms), so
# retransmissions are no failure here: they are compared, number against number.
check_capture()
{
	local capture=$1 n=$2 json=${1%.pcap}.json others repeated
	./check_pcap.py --json --no-reset --complete --min-connections "$n" "$capture" >"$json" || true
	others=$(jq -c '.violations | del(.retransmission)' "$json")
	[ "$others" = "{}" ] || lab_die "$capture: $others"
	repeated=$(jq .retransmissions "$json")
	lab_say "$(jq -r '"\(.segments) segments, \(.connections) connections"' "$json"), $repeated retransmissions"
	command -v tshark >/dev/null || return 0
	[ "$(tshark_count "$capture" '(tcp.checksum.status == 0 && tcp.checksum != 0xffff) ||
		ip.checksum.status == 0 || tcp.analysis.lost_segment')" = 0 ] ||
		lab_die "tshark sees what check_pcap.py does not in $capture"
	[ "$(tshark_count "$capture" 'tcp.analysis.retransmission || tcp.analysis.out_of_order')" = \
		"$repeated" ] || lab_die "tshark counts other retransmissions in $capture"
	# One SYN a connection, as clean wires have.
	[ "$(tshark_count "$capture" 'tcp.flags.syn == 1 && tcp.flags.ack == 0')" = \
		"$(jq .connections "$json")" ] || lab_die "tshark counts other connections in $capture"
}

variant()
{
	local name=$1 before
	shift
	lab_nginx_start b "$@"
	lab_capture_start a "$LAB_LOGS/$name.pcap" tcp
	lab_in_a ab -q -n 500 -c 20 "http://$LAB_IP_B/page" >"$LAB_LOGS/$name.ab"
	lab_in_a ab -q -k -n 500 -c 20 "http://$LAB_IP_B/page" >"$LAB_LOGS/$name.abk"
	lab_capture_stop
	lab_expect_ab "$LAB_LOGS/$name.ab" 500
	lab_expect_ab "$LAB_LOGS/$name.abk" 500 keepalive
	lab_nginx_requests b
	# ab may open a connection or two that it does not need at the end.
	[ "$LAB_COUNT" -ge 1000 ] && [ "$LAB_COUNT" -le 1040 ] || lab_die "nginx counted $LAB_COUNT requests"
	check_capture "$LAB_LOGS/$name.pcap" 520
	lab_in_a wrk -t 1 -c 20 -d 1 "http://$LAB_IP_B/page" >"$LAB_LOGS/$name.wrk"
	lab_expect_wrk "$LAB_LOGS/$name.wrk"
	[ "$(lab_sha256 a "http://$LAB_IP_B/big")" = "$(sha256sum <"$LAB_WWW/big" | cut -d' ' -f1)" ] ||
		lab_die "the download differs"
	before=$LAB_COUNT
	lab_nginx_requests b
	[ "$LAB_COUNT" -gt "$before" ] || lab_die "nginx counted nothing of wrk and curl"
}

lab_up --b kernel --ip6
ns_a=$LAB_NS_A tmp=$LAB_TMP
lab_file page 8704
lab_file big 20000000
variant nopush sendfile=on nopush=on

# A connection that stays open, to look at.
lab_spawn_a idle bash -c "exec 9<>/dev/tcp/$LAB_IP_B/80; exec sleep 60"
lab_poll 5 "$LAB_PID" sh -c "ip netns exec $LAB_NS_A ss -Htin dst $LAB_IP_B | grep -qw cubic" ||
	lab_die "congestion control is not cubic on side a"
ip netns exec "$LAB_NS_B" ss -Htin "dst $LAB_IP_A" | grep -qw cubic ||
	lab_die "congestion control is not cubic on side b"
lab_stop "$LAB_PID" || true

lab_in_a curl -sS --fail --max-time 10 -o /dev/null "http://[$LAB_IP6_B]/page"
# nginx without nopush sends the header, the body and the FIN apart: the strict rule must see it.
if ./check_pcap.py --addr "$LAB_IP_B" --fin strict "$LAB_LOGS/nopush.pcap" >"$LAB_LOGS/strict.txt"; then
	lab_die "a bare FIN after data was not found"
fi
grep -q "VIOLATION bare-fin" "$LAB_LOGS/strict.txt"
lab_nginx_stop
variant plain sendfile=off nopush=off
lab_nginx_stop
lab_down
[ ! -e "/run/netns/$ns_a" ] || lab_die "the namespace is still there"
[ ! -e "$tmp" ] || lab_die "the temporary folder is still there"

LAB_LOGS="" # went with the first one, unless the caller gave it
lab_up --b kernel --mtu 9000
lab_file page 60000
lab_nginx_start b
lab_in_a ab -q -n 200 -c 10 "http://$LAB_IP_B/page" >"$LAB_TMP/jumbo.ab"
lab_expect_ab "$LAB_TMP/jumbo.ab" 200
lab_say "all as it should be"
