#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The devices beside veth and memif: vdev (AF_PACKET by its own name; virtio-user to vhost), xdp, tap.
#
# Checks, where the kernel is the peer: corq httpd serves a file of 1 MB with an equal digest, and 200
# requests of ab without -k, 100 with; corq ab asks nginx for 1 MB files and small ones; no failure.
# vdev: two processes, virtio-user and vhost, the same by corq ab. xdp: no program stays on the
# interface after an end, and after kill -9; the next start serves. tap: the kernel's end has the
# address that the line on standard error says, whatever the offloads of the kernel are; the
# interface is gone after an end, and after kill -9. veth and xdp: an interface that goes down and
# comes back in mid-run is told once each, and serves again, under a new name too, whatever bears the
# old one; one that is moved away or deleted is told as gone, and ends nothing. Two servers with one
# address on one interface are one too many, ranges that share some too.
# Frames that are no packets, at full rate, harm nobody.
# What is wrong with a device, and what the system does not grant, gives one line and status 1 or 2.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq ab curl nginx python3

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
	lab_in "$side" timeout 60 ab -q -n 100 -c 10 -k "http://$ip/big" >"$LAB_LOGS/ab.txt"
	lab_expect_ab "$LAB_LOGS/ab.txt" 100 keepalive
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
	local expect=$1 status=0 file=$LAB_TMP/wrong.$BASHPID
	shift
	ip netns exec "$LAB_NS_B" timeout 20 "$CORQ" httpd --size 10 --ip 10.78.0.2/24 --no-huge --dev "$@" \
		>"$file" 2>&1 || status=$?
	sed -i '/^corq: warning: /d' "$file"
	[ $status = 1 ] || [ $status = 2 ] || lab_die "--dev $*: status $status: $(cat "$file")"
	[ "$(wc -l <"$file")" = 1 ] && grep -qE "^corq httpd: .*($expect)" "$file" ||
		lab_die "--dev $*: $(cat "$file")"
	[ "$(wc -c <"$file")" -le 260 ] || lab_die "--dev $*: a long line"
}

# The same beside what comes next, a few at a time; all_refused waits for them.
refuse_jobs=()
also_refuses()
{
	[ ${#refuse_jobs[@]} -lt 6 ] || all_refused
	refuses "$@" &
	refuse_jobs+=($!)
}

all_refused()
{
	local job
	for job in "${refuse_jobs[@]}"; do
		wait "$job" || lab_die "that was wrong"
	done
	refuse_jobs=()
}

# told REGEX: the server says so
told()
{
	lab_wait_line "$server_log" "$1" "$server" 10 || lab_die "$LAB_DEV: no word '$1'"
}

came()
{
	lab_count "$LAB_NS_B" "$LAB_IF_B" rx packets
}

# more_came N: than N frames, to side B
more_came()
{
	[ "$(came)" -gt "$1" ]
}

# fetched SIDE ADDRESS: one request is answered
fetched()
{
	lab_in "$1" curl -sS --fail --max-time 10 -o /dev/null "http://$2/small"
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
	asks "$LAB_DEV" "$LAB_IP_B" "http://$LAB_IP_A/big" 50 -k
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
ip -n "$LAB_NS_B" link add cqx type veth peer name cqy
ip -n "$LAB_NS_B" link set cqx mtu 9000 up
ip -n "$LAB_NS_B" link set cqy mtu 9000 up
refuses 'MTU 9000, XDP takes at most' xdp:cqx
ip -n "$LAB_NS_B" link del cqx
lab_say "xdp: nothing stays after kill -9"

# ---- an interface that goes away in mid-run
for LAB_DEV in "veth:$LAB_IF_B" "xdp:$LAB_IF_B"; do
	serve "$LAB_DEV" "$LAB_IP_B" "$LAB_WWW"
	lab_spawn_a gone ab -q -k -n 1000000 -c 10 "http://$LAB_IP_B/small"
	lab_poll 10 "$LAB_PID" more_came $(($(came) + 1000)) || lab_die "$LAB_DEV: no load"
	ip -n "$LAB_NS_B" link set "$LAB_IF_B" down
	told "${LAB_DEV%%:*}:$LAB_IF_B lost its link"
	ip -n "$LAB_NS_B" link set "$LAB_IF_B" name "$tap"
	ip -n "$LAB_NS_B" link add "$LAB_IF_B" type veth peer name "$tap.x"
	ip -n "$LAB_NS_B" link set "$tap" up
	told "${LAB_DEV%%:*}:$LAB_IF_B is back"
	lab_stop "$LAB_PID" || true # ab, which waits for answers that nobody will give
	fetched a "$LAB_IP_B" || lab_die "$LAB_DEV: renamed, it serves no more"
	[ "$(grep -c 'lost its link' "$server_log")" = 1 ] || lab_die "$LAB_DEV: told more than once"
	stop
	ip -n "$LAB_NS_B" link del "$LAB_IF_B"
	ip -n "$LAB_NS_B" link set "$tap" down
	ip -n "$LAB_NS_B" link set "$tap" name "$LAB_IF_B" up
	lab_poll 5 0 lab_has_carrier "$LAB_NS_B" "$LAB_IF_B" || lab_die "$LAB_IF_B has no carrier"
done
lab_say "veth, xdp: a link goes and comes"

# ---- two servers, and one that nobody lets work
LAB_DEV=veth:$LAB_IF_B
serve "$LAB_DEV" 10.77.0.8-10.77.0.11 --size 100
refuses '10.77.0.10-10.77.0.20/24 on .* is in use: another corq' "$LAB_DEV" --ip 10.77.0.10-10.77.0.20/24
refuses '10.77.0.11/24 on .* is in use' "$LAB_DEV" --ip 10.77.0.11/24
stop
lab_say "veth: one server an address"

# ---- frames of all kinds that are no packets, at full rate
for LAB_DEV in "veth:$LAB_IF_B" "xdp:$LAB_IF_B"; do
	serve "$LAB_DEV" "$LAB_IP_B" "$LAB_WWW"
	fetched a "$LAB_IP_B" || lab_die "$LAB_DEV does not serve"
	lab_in_a ./junk_frames.py "$LAB_IF_A" --to "$LAB_IP_B" --from "$LAB_IP_A" >"$LAB_LOGS/junk.txt"
	fetched a "$LAB_IP_B" || lab_die "$LAB_DEV: frames that are no packets stop it: $(cat "$server_log")"
	stop
done
lab_say "veth, xdp: $(cat "$LAB_LOGS/junk.txt"), no harm"

# ---- tap: the kernel's end is in side B's namespace, its offloads as the kernel likes them
lab_nginx_stop
lab_nginx_start b
LAB_DEV=tap:$tap
serve "$LAB_DEV" 10.78.0.2 "$LAB_WWW"
grep -qx "corq: tap $tap: the host is 10.78.0.1, we are 10.78.0.2" "$server_log" ||
	lab_die "tap: no such line: $(cat "$server_log")"
ip -n "$LAB_NS_B" -4 addr show "$tap" | grep -q 'inet 10.78.0.1/24' || lab_die "tap: no address"
served b 10.78.0.2
refuses "interface $tap already" "$LAB_DEV"
lab_in_b ./junk_frames.py "$tap" --to 10.78.0.2 --from 10.78.0.1 >"$LAB_LOGS/junk.txt"
fetched b 10.78.0.2 || lab_die "tap: frames that are no packets stop it"
ip -n "$LAB_NS_B" link set "$tap" down
told "tap:$tap lost its link"
ip -n "$LAB_NS_B" link set "$tap" up
told "tap:$tap is back"
fetched b 10.78.0.2 || lab_die "tap: it serves no more"
stop
no_interface || lab_die "$tap stays"
serve "$LAB_DEV,10.78.0.77/24" 10.78.0.2 --cores 2 --share-cpus "$LAB_WWW"
ip -n "$LAB_NS_B" -4 addr show "$tap" | grep -q 'inet 10.78.0.77/24' || lab_die "tap: not the address asked for"
served b 10.78.0.2
killed
lab_poll 5 0 no_interface || lab_die "$tap stays after kill -9"
asks "$LAB_DEV" 10.78.0.2 http://10.78.0.1/big 50 -k
asks "$LAB_DEV" 10.78.0.2 http://10.78.0.1/small 500
lab_say "$LAB_DEV: served and asked"

# ---- two processes, no kernel between
LAB_DEV=vdev:net_vhost0,iface=$LAB_TMP/vhost.sock
serve "$LAB_DEV" 10.79.0.1 --name "vh-$$" --no-huge "$LAB_WWW"
for option in "" -k; do
	# shellcheck disable=SC2086
	asks "vdev:virtio_user0,path=$LAB_TMP/vhost.sock,queue_size=1024" 10.79.0.2 http://10.79.0.1/small 1000 \
		--name "vu-$$" --no-huge $option
	# shellcheck disable=SC2086
	asks "vdev:virtio_user0,path=$LAB_TMP/vhost.sock,queue_size=1024" 10.79.0.2 http://10.79.0.1/big 50 \
		--name "vu-$$" --no-huge $option
done
stop
lab_say "virtio-user and vhost: asked"

# ---- one line each
ip -n "$LAB_NS_B" addr add 10.80.0.1/24 dev lo
ip -n "$LAB_NS_B" tuntap add name cqtun mode tun
ip -n "$LAB_NS_B" link set cqtun up
ip -n "$LAB_NS_B" link add "$tap.s" mtu 100 type veth peer name "$tap.t"
ip -n "$LAB_NS_B" link set "$tap.s" up
also_refuses 'no such interface: nowhere' xdp:nowhere
also_refuses 'wants xdp:IF' xdp:
also_refuses 'loopback' xdp:lo
also_refuses '1 queue for XDP, 2 cores' "xdp:$LAB_IF_B" --cores 2 --share-cpus --ip "$LAB_IP_B/24"
also_refuses 'wants tap:NAME' tap:
also_refuses 'wants tap:NAME' 'tap:a%d'
also_refuses 'wants tap:NAME' tap:..
also_refuses 'without any of' 'veth:a=b'
also_refuses 'without any of' 'xdp:a[b'
also_refuses 'without any of =' "memif:server,$LAB_TMP/a=b"
also_refuses 'without any of =' memif:server,@
also_refuses 'carries no Ethernet frames' veth:cqtun
also_refuses 'has MTU 100, at least 576' "veth:$tap.s"
also_refuses 'at most 15' tap:aninterfacewithalongname
also_refuses 'is no address' tap:x,10.78.0
also_refuses 'not two addresses of hosts in one network' tap:x,10.78.0.2
also_refuses 'not two addresses of hosts in one network' tap:x,10.90.0.1/24
also_refuses 'not two addresses of hosts' tap:x,10.78.0.0
also_refuses 'not two addresses of hosts' tap:x,10.78.0.255/24
also_refuses 'at most 4 queues: --cores 4' tap:x --cores 5 --share-cpus
also_refuses 'at most 4 queues: --cores 4' vdev:net_tap0,iface=x --cores 5 --share-cpus
also_refuses 'leaves the host no address' tap:x --ip 10.78.0.2/32
also_refuses 'overlaps that of lo' tap:x --ip 10.80.0.2/24
also_refuses 'interface lo already' tap:lo
also_refuses 'wants vdev:NAME' vdev:
also_refuses 'DPDK has no driver of that name' vdev:nosuch0
also_refuses 'No such device' vdev:net_af_packet0,iface=nowhere
also_refuses 'are its arguments right' vdev:net_af_packet0,nonsense=1
also_refuses 'No such file' vdev:virtio_user0,path=/nowhere/x.sock
also_refuses 'wants pci:ADDRESS' pci:nonsense
also_refuses 'no device 00ff:ff:1f.7 here' pci:00ff:ff:1f.7
also_refuses "unknown device 'nosuch:x'; there are loop, memif, veth, xdp, tap, vdev, pci" nosuch:x
also_refuses "unrecognized option '--nonsense'" vdev:net_null0 -- --nonsense
also_refuses 'requires an argument' vdev:net_null0 -- -m
also_refuses 'Main lcore is not enabled' vdev:net_null0 -- -l 0 --main-lcore 1
also_refuses 'invalid parameters for --iova-mode' vdev:net_null0 -- --iova-mode=x
also_refuses '"junk" is no option of EAL' vdev:net_null0 -- junk
also_refuses '--eal-log makes it visible' vdev:net_null0 -- -h
all_refused
for limit in "-v 200000" "-n 8" "-f 0"; do
	status=0
	# shellcheck disable=SC2086
	wrong=$( (ulimit $limit && exec "$CORQ" ab -q -n 10 -c 1 --no-huge --share-cpus) 2>&1) || status=$?
	[ $status = 1 ] && [ "$(wc -l <<<"$wrong")" = 1 ] && [[ $wrong == "corq ab: "*ulimit* ]] ||
		lab_die "ulimit $limit: status $status: $wrong"
done
lab_say "what is wrong is said in one line"

# ---- deleted under a server: the last, for there is no pair afterwards
LAB_DEV=veth:$LAB_IF_B
serve "$LAB_DEV" "$LAB_IP_B" "$LAB_WWW"
ip -n "$LAB_NS_A" link del "$LAB_IF_A"
told "veth:$LAB_IF_B is gone"
ip -n "$LAB_NS_B" link add "$LAB_IF_B" type veth peer name "$tap.x"
sleep 0.5 # it looks at its link five times a second; nothing can be waited for
! grep -q "is back" "$server_log" || lab_die "a new interface is taken for the old one: $(cat "$server_log")"
stop
lab_say "all as it should be"
