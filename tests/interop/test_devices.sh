#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The devices beside veth and memif: vdev (AF_PACKET by its own name; virtio-user to vhost), xdp, tap.
#
# Checks, where the kernel is the peer: corq httpd serves a file of 1 MB with an equal digest, and 200
# requests of ab with -k and without; corq ab asks nginx for 1 MB files and small ones; no failure.
# vdev: two processes, virtio-user and vhost, the same by corq ab. xdp: no program stays on the
# interface after an end, and after kill -9; the next start serves. tap: the kernel's end has the
# address that the line on standard error says, whatever the offloads of the kernel are; the
# interface is gone after an end, and after kill -9. veth and xdp: an interface that goes down and
# comes back in mid-run is told once each, and serves again; one that is deleted ends nothing.
# What is wrong with a device, and what the system does not grant, gives one line and status 1 or 2.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq ab curl nginx

# serve DEVICE ADDRESS [OPTION...]: corq httpd in side B's namespace
serve()
{
	local device=$1 ip=$2
	shift 2
	lab_spawn_b "httpd.${device%%[:,]*}" "$CORQ" httpd --dev "$device" --ip "$ip/24" "$@"
	server=$LAB_PID server_log=$LAB_LOG
	lab_wait_line "$server_log" '^corq httpd: listening on' "$server" 20 || lab_die "$device does not start"
}

# served SIDE ADDRESS: what curl and ab get there
served()
{
	local side=$1 ip=$2
	[ "$(lab_sha256 "$side" "http://$ip/big")" = "$digest" ] || lab_die "$LAB_DEV: the download differs"
	lab_in "$side" timeout 60 ab -q -n 200 -c 10 -k "http://$ip/big" >"$LAB_LOGS/ab.txt"
	lab_expect_ab "$LAB_LOGS/ab.txt" 200 keepalive
	lab_in "$side" timeout 60 ab -q -n 200 -c 10 "http://$ip/small" >"$LAB_LOGS/ab.txt"
	lab_expect_ab "$LAB_LOGS/ab.txt" 200
}

# asks DEVICE OUR-ADDRESS URL N [OPTION...]: corq ab in side B's namespace
asks()
{
	local device=$1 ip=$2 url=$3 n=$4
	shift 4
	lab_in_b timeout --kill-after=5 60 "$CORQ" ab --dev "$device" --ip "$ip/24" -q -n "$n" -c 10 "$@" "$url" \
		>"$LAB_LOGS/corq.txt" 2>"$LAB_LOGS/corq.err" ||
		lab_die "corq ab on $device: $(cat "$LAB_LOGS/corq.err")"
	lab_expect_ab "$LAB_LOGS/corq.txt" "$n"
}

stop()
{
	lab_stop "$server" INT || lab_die "corq httpd on $LAB_DEV ended with status $?"
}

killed()
{
	kill -9 "$server"
	wait "$server" 2>/dev/null || true
	lab_forget "$server"
}

no_program()
{
	! ip -n "$LAB_NS_B" link show "$LAB_IF_B" | grep -q xdp
}

no_interface()
{
	! ip -n "$LAB_NS_B" link show "$tap" >/dev/null 2>&1
}

# refuses REGEX DEVICE [OPTION...]: one line, status 1 or 2
refuses()
{
	local expect=$1 status=0 lines
	shift
	lab_in_b timeout 20 "$CORQ" httpd --size 10 --ip 10.78.0.2/24 --no-huge --dev "$@" \
		>"$LAB_LOGS/wrong.txt" 2>&1 || status=$?
	sed -i '/^corq: warning: /d' "$LAB_LOGS/wrong.txt"
	lines=$(wc -l <"$LAB_LOGS/wrong.txt")
	[ $status = 1 ] || [ $status = 2 ] || lab_die "--dev $*: status $status"
	[ "$lines" = 1 ] && grep -qE "^corq httpd: .*($expect)" "$LAB_LOGS/wrong.txt" ||
		lab_die "--dev $*: $(cat "$LAB_LOGS/wrong.txt")"
	[ "$(wc -c <"$LAB_LOGS/wrong.txt")" -le 250 ] || lab_die "--dev $*: a long line"
}

lab_up
tap=cqt$$
lab_file big 1000000
lab_file small 100
digest=$(sha256sum <"$LAB_WWW/big" | cut -d' ' -f1)
lab_nginx_start a

for LAB_DEV in "vdev:net_af_packet0,iface=$LAB_IF_B" "xdp:$LAB_IF_B"; do
	serve "$LAB_DEV" "$LAB_IP_B" "$LAB_WWW"
	served a "$LAB_IP_B"
	stop
	asks "$LAB_DEV" "$LAB_IP_B" "http://$LAB_IP_A/big" 100 -k
	asks "$LAB_DEV" "$LAB_IP_B" "http://$LAB_IP_A/small" 500
	no_program || lab_die "an XDP program stays on the interface"
	lab_say "$LAB_DEV: served and asked"
done

# ---- xdp: kill -9, and an interface that is taken
serve "xdp:$LAB_IF_B" "$LAB_IP_B" --size 100
no_program && lab_die "there is no XDP program: the test is blind"
refuses 'has an XDP program already' "xdp:$LAB_IF_B"
killed
lab_poll 5 0 no_program || lab_die "an XDP program stays after kill -9"
ip netns add "$LAB_NS_B-x"
ip -n "$LAB_NS_B" link add cqx type veth peer name cqy
ip -n "$LAB_NS_B" link set cqx mtu 9000 up
ip -n "$LAB_NS_B" link set cqy mtu 9000 up
refuses 'MTU 9000, XDP takes at most' xdp:cqx
ip netns del "$LAB_NS_B-x"
ip -n "$LAB_NS_B" link del cqx
lab_say "xdp: nothing stays after kill -9"

# ---- an interface that goes away in mid-run
for LAB_DEV in "veth:$LAB_IF_B" "xdp:$LAB_IF_B"; do
	serve "$LAB_DEV" "$LAB_IP_B" "$LAB_WWW"
	lab_spawn_a gone ab -q -k -n 1000000 -c 10 "http://$LAB_IP_B/small"
	lab_poll 10 0 grep -q . "$server_log"
	ip -n "$LAB_NS_B" link set "$LAB_IF_B" down
	lab_wait_line "$server_log" "${LAB_DEV%%:*}:$LAB_IF_B lost its link" "$server" 10 ||
		lab_die "$LAB_DEV: a link that is down is not told"
	ip -n "$LAB_NS_B" link set "$LAB_IF_B" up
	lab_wait_line "$server_log" "${LAB_DEV%%:*}:$LAB_IF_B is back" "$server" 10 ||
		lab_die "$LAB_DEV: a link that is back is not told"
	lab_stop "$LAB_PID" || true # ab, which waits for answers that nobody will give
	served a "$LAB_IP_B"
	[ "$(grep -c 'lost its link' "$server_log")" = 1 ] || lab_die "$LAB_DEV: told more than once"
	stop
done
lab_say "veth, xdp: a link goes and comes"

# ---- tap: the kernel's end is in side B's namespace, its offloads as the kernel likes them
lab_nginx_stop
lab_nginx_start b
LAB_DEV=tap:$tap
serve "$LAB_DEV" 10.78.0.2 "$LAB_WWW"
grep -qx "corq: tap $tap: the host is 10.78.0.1; try: curl http://10.78.0.2/" "$server_log" ||
	lab_die "tap: no such line: $(cat "$server_log")"
ip -n "$LAB_NS_B" -4 addr show "$tap" | grep -q 'inet 10.78.0.1/24' || lab_die "tap: no address"
served b 10.78.0.2
refuses "interface $tap already" "$LAB_DEV"
stop
no_interface || lab_die "$tap stays"
serve "$LAB_DEV,10.78.0.77/24" 10.78.0.2 --cores 2 --share-cpus "$LAB_WWW"
ip -n "$LAB_NS_B" -4 addr show "$tap" | grep -q 'inet 10.78.0.77/24' || lab_die "tap: not the address asked for"
served b 10.78.0.2
killed
lab_poll 5 0 no_interface || lab_die "$tap stays after kill -9"
asks "$LAB_DEV" 10.78.0.2 http://10.78.0.1/big 100 -k
asks "$LAB_DEV" 10.78.0.2 http://10.78.0.1/small 500
lab_say "$LAB_DEV: served and asked"

# ---- two processes, no kernel between
LAB_DEV=vdev:net_vhost0,iface=$LAB_TMP/vhost.sock
serve "$LAB_DEV" 10.79.0.1 --name "vh-$$" --no-huge "$LAB_WWW"
for option in "" -k; do
	# shellcheck disable=SC2086
	asks "vdev:virtio_user0,path=$LAB_TMP/vhost.sock,queue_size=1024" 10.79.0.2 http://10.79.0.1/small 2000 \
		--name "vu-$$" --no-huge $option
	# shellcheck disable=SC2086
	asks "vdev:virtio_user0,path=$LAB_TMP/vhost.sock,queue_size=1024" 10.79.0.2 http://10.79.0.1/big 100 \
		--name "vu-$$" --no-huge $option
done
stop
lab_say "virtio-user and vhost: asked"

# ---- one line each
ip -n "$LAB_NS_B" addr add 10.80.0.1/24 dev lo
refuses 'no such interface: nowhere' xdp:nowhere
refuses 'wants xdp:IF' xdp:
refuses 'loopback' xdp:lo
refuses '1 queue for XDP, 2 cores' "xdp:$LAB_IF_B" --cores 2 --share-cpus --ip "$LAB_IP_B/24"
refuses 'wants tap:NAME' tap:
refuses 'at most 15' tap:aninterfacewithalongname
refuses 'is no address' tap:x,10.78.0
refuses 'not two addresses of one network' tap:x,10.78.0.2
refuses 'not two addresses of one network' tap:x,10.90.0.1/24
refuses 'leaves the host no address' tap:x --ip 10.78.0.2/32
refuses 'overlaps that of lo' tap:x --ip 10.80.0.2/24
refuses 'interface lo already' tap:lo
refuses 'wants vdev:NAME' vdev:
refuses 'DPDK has no driver of that name' vdev:nosuch0
refuses 'No such device' vdev:net_af_packet0,iface=nowhere
refuses 'are its arguments right' vdev:net_af_packet0,nonsense=1
refuses 'No such file' vdev:virtio_user0,path=/nowhere/x.sock
refuses 'wants pci:ADDRESS' pci:nonsense
refuses 'no device 00ff:ff:1f.7 here' pci:00ff:ff:1f.7
refuses "unknown device 'nosuch:x'; there are loop, memif, veth, xdp, tap, vdev, pci" nosuch:x
for limit in "-v 200000" "-n 8"; do
	status=0
	# shellcheck disable=SC2086
	(ulimit $limit && exec "$CORQ" ab -q -n 10 -c 1 --no-huge) >"$LAB_LOGS/wrong.txt" 2>&1 || status=$?
	[ $status = 1 ] && [ "$(wc -l <"$LAB_LOGS/wrong.txt")" = 1 ] && grep -q "^corq ab: too .*ulimit" "$LAB_LOGS/wrong.txt" ||
		lab_die "ulimit $limit: status $status: $(cat "$LAB_LOGS/wrong.txt")"
done
lab_say "what is wrong is said in one line"

# ---- deleted under a server: the last, for there is no pair afterwards
LAB_DEV=veth:$LAB_IF_B
serve "$LAB_DEV" "$LAB_IP_B" "$LAB_WWW"
ip -n "$LAB_NS_A" link del "$LAB_IF_A"
lab_wait_line "$server_log" 'lost its link' "$server" 10 || lab_die "a deleted interface is not told"
stop
lab_say "all as it should be"
