#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq without root: user 65534, no capability but those that a device is said to need.
#
# Checks: loop, memif, vdev:net_ring, vdev:net_null and virtio-user to vhost work with none; veth, xdp
# and tap each say in one line which capabilities they want, status 1, and work with exactly those;
# so do not a tap that root made before, and vdev:net_tap: one line too.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq curl setpriv

# user CAPABILITIES: the words before a command that make it that user's, with those (or none)
user()
{
	prefix=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set "-all$1"
		--inh-caps "-all$1" --ambient-caps "-all$1" env "XDG_RUNTIME_DIR=$home")
}

# as CAPABILITIES COMMAND...: in side B's namespace
as()
{
	user "$1"
	shift
	lab_in_b "${prefix[@]}" "$@"
}

# serve CAPABILITIES DEVICE ADDRESS
serve()
{
	user "$1"
	lab_spawn_b httpd "${prefix[@]}" "$corq" httpd --name "s$$" --no-huge --dev "$2" --ip "$3/24" --size 1000
	server=$LAB_PID
	lab_wait_line "$LAB_LOG" '^corq httpd: listening on' "$server" 20 || lab_die "$2 does not start"
}

stop()
{
	lab_stop "$server" INT || lab_die "corq httpd ended with status $?"
}

# asks DEVICE: the server at 10.0.0.1, by a second corq
asks()
{
	as "" timeout 60 "$corq" ab --name "c$$" --no-huge --dev "$1" --ip 10.0.0.2/24 -q -n 1000 -c 10 http://10.0.0.1/ \
		>"$LAB_LOGS/corq.txt" 2>"$LAB_LOGS/corq.err" || lab_die "corq ab on $1: $(cat "$LAB_LOGS/corq.err")"
	lab_expect_ab "$LAB_LOGS/corq.txt" 1000
}

# refuses CAPABILITIES REGEX DEVICE
refuses()
{
	local status=0
	as "$1" timeout 20 "$corq" httpd --no-huge --size 10 --ip 10.81.0.2/24 --dev "$3" >"$LAB_LOGS/wrong.txt" 2>&1 || status=$?
	[ $status = 1 ] || [ $status = 2 ] || lab_die "$3: status $status"
	[ "$(wc -l <"$LAB_LOGS/wrong.txt")" = 1 ] && grep -qE "^corq httpd: .*($2)" "$LAB_LOGS/wrong.txt" ||
		lab_die "$3: $(cat "$LAB_LOGS/wrong.txt")"
	cat "$LAB_LOGS/wrong.txt"
}

lab_up
tap=cqn$$
home=$LAB_TMP/home
mkdir "$home"
chown 65534:65534 "$home"
chmod 711 "$LAB_TMP"
# the build may lie where that user may not go
corq=$home/corq
cp "$CORQ" "$corq"
sock=$home/memif

as "" "$corq" ab -q -n 1000 -c 10 --no-huge --share-cpus >"$LAB_LOGS/corq.txt" 2>"$LAB_LOGS/corq.err" ||
	lab_die "loop: $(cat "$LAB_LOGS/corq.err")"
lab_expect_ab "$LAB_LOGS/corq.txt" 1000
serve "" "memif:server,$sock" 10.0.0.1
asks "memif:client,$sock"
stop
serve "" "vdev:net_vhost0,iface=$home/vhost" 10.0.0.1
asks "vdev:virtio_user0,path=$home/vhost,queue_size=1024"
stop
for device in vdev:net_null0 vdev:net_ring0; do
	serve "" $device 10.0.0.1
	stop
done
lab_say "no capability: loop, memif, virtio-user and vhost, net_null, net_ring"

refuses "" "veth:$LAB_IF_B needs CAP_NET_ADMIN, CAP_NET_RAW: run as root, or setcap cap_net_admin,cap_net_raw\+ep" "veth:$LAB_IF_B"
refuses "" "xdp:$LAB_IF_B needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN, CAP_IPC_LOCK: run as root, or setcap" "xdp:$LAB_IF_B"
refuses ",+net_raw" "xdp:$LAB_IF_B needs CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_IPC_LOCK: " "xdp:$LAB_IF_B"
refuses "" "tap:$tap needs CAP_NET_ADMIN: run as root, or setcap cap_net_admin\+ep" "tap:$tap"
refuses "" "Unable to create TAP" "vdev:net_tap0,iface=$tap"
ip -n "$LAB_NS_B" tuntap add name "$tap" mode tap multi_queue user 65534
refuses "" "vdev \(net_tap0\) cannot be made" "vdev:net_tap0,iface=$tap"
ip -n "$LAB_NS_B" link del "$tap"

serve ,+net_raw,+net_admin "veth:$LAB_IF_B" "$LAB_IP_B"
lab_in_a curl -sS --fail --max-time 10 -o /dev/null "http://$LAB_IP_B/" || lab_die "veth does not serve"
stop
serve ,+net_raw,+net_admin,+sys_admin,+ipc_lock "xdp:$LAB_IF_B" "$LAB_IP_B"
lab_in_a curl -sS --fail --max-time 10 -o /dev/null "http://$LAB_IP_B/" || lab_die "xdp does not serve"
stop
serve ,+net_admin "tap:$tap" 10.82.0.2
lab_in_b curl -sS --fail --max-time 10 -o /dev/null http://10.82.0.2/ || lab_die "tap does not serve"
stop
lab_say "all as it should be"
