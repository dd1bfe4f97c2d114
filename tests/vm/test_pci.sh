#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pci: on DPDK's drivers for PCI NICs, in an emulated guest; the host's kernel TCP is the peer.
#
# For virtio-net, e1000, e1000e and vmxnet3, each bound to uio_pci_generic: corq httpd serves 1 MB
# with an equal digest, and ab -n 2000 -c 20 with and without -k: no failure of any kind; captured
# at the host's end: no bad checksum, no retransmission and no RST of corq's, every connection
# closed by both sides. It ends on SIGTERM, status 0. Then corq ab, -n 1000 -c 20 with and without
# -k, with a hardware address of its own, against nginx on the host: none failed, and nginx counts
# as many; and 1 MB 10 times in frames of 9000 bytes. What cannot be used is refused in one line,
# each with its own reason: also a NIC that another process has, which goes on undisturbed.
set -eu
cd "$(dirname "$0")"
# shellcheck source=../interop/lab.sh
. ../interop/lab.sh
lab_need_corq ab nginx curl tcpdump python3
# shellcheck source=guest.sh
. ./guest.sh
guest_need

models=(virtio-net-pci e1000 e1000e vmxnet3)

# refused REGEX OPTIONS...: corq httpd ends with a status and one line that fits.
refused()
{
	local regex=$1 status=0
	shift
	guest_do 20 "corq httpd --ip 10.78.0.2/24 --size 1 $*" || status=$?
	[ $status != 0 ] && [ "$(grep -c . <<<"$GUEST_OUT")" = 1 ] && grep -qE -- "$regex" <<<"$GUEST_OUT" ||
		lab_die "corq httpd $*: status $status, not one line with '$regex' but: $GUEST_OUT"
	echo "$GUEST_OUT"
}

bad_input()
{
	local nic=${GUEST_PCI[1]}
	refused 'pci wants pci:ADDRESS' --dev pci:
	refused 'pci wants pci:ADDRESS' --dev pci:eth0
	refused 'pci wants pci:ADDRESS' --dev pci:00:10
	refused 'no device 0000:00:1e.0' --dev pci:00:1e.0
	refused '0000:00:00.0 is no network device' --dev pci:0000:00:00.0
	refused "$nic is bound to no driver; modprobe uio_pci_generic" --dev "pci:$nic"
	guest_do 20 "insmod /modules/e1000.ko" || lab_die "the guest's kernel has no e1000: $GUEST_OUT"
	refused "$nic is bound to the kernel's e1000 \(eth0\).*--force" --dev "pci:$nic"
	guest_do 20 "rmmod e1000; give_to uio_pci_generic $nic" || lab_die "cannot bind $nic: $GUEST_OUT"
	refused 'leave out --no-huge' --dev "pci:$nic" --no-huge
	refused 'leave out --iova-mode=va' --dev "pci:$nic" -- --iova-mode=va
	guest_do 20 "echo 0 >/proc/sys/vm/nr_hugepages" || lab_die "nr_hugepages: $GUEST_OUT"
	refused 'huge pages.*echo [0-9]+ > /proc/sys/vm/nr_hugepages' --dev "pci:$nic"
	guest_do 20 "echo 256 >/proc/sys/vm/nr_hugepages" || lab_die "nr_hugepages: $GUEST_OUT"
}

# loaded NAME URL [-k]: stock ab.
loaded()
{
	local name=$1 url=$2 keep=${3-}
	lab_in_a timeout 60 ab -q $keep -n 2000 -c 20 "$url" >"$LAB_LOGS/$name.txt" 2>&1 || {
		tail -n 5 "$LAB_LOGS/$name.txt" >&2
		lab_die "ab ended with a status ($name)"
	}
	lab_expect_ab "$LAB_LOGS/$name.txt" 2000 ${keep:+keepalive}
	sed -n "s/^Requests per second/$name: &/p" "$LAB_LOGS/$name.txt"
}

# serves MODEL I: corq httpd on NIC I.
serves()
{
	local model=$1 i=$2 url=http://${GUEST_NET[$2]}.2
	guest_do 20 "start corq httpd --dev pci:${GUEST_PCI[i]} --ip ${GUEST_NET[i]}.2/24 /www"
	guest_wait '^corq httpd: '
	guest_shows '^corq httpd: listening on' || lab_die "corq httpd does not start on $model"
	[ "$i" != 0 ] || refused 'is in use: process [0-9]+ has /dev/uio[0-9]+ open' --dev "pci:${GUEST_PCI[i]}"
	LAB_IF_A=${GUEST_TAP[i]} lab_capture_start a "$LAB_LOGS/$model.pcap" tcp
	[ "$(lab_sha256 a "$url/big")" = "$digest" ] || lab_die "1 MB by $model: the digest differs"
	loaded "$model-close" "$url/page"
	loaded "$model-keep" "$url/page" -k
	lab_capture_stop
	guest_do 20 "stop TERM" || lab_die "corq httpd ended with status $? on SIGTERM ($model)"
	grep -E ' 4001 requests \(4001 ok, .*; 0 of them cut short\)' <<<"$GUEST_OUT" ||
		lab_die "corq httpd counts otherwise: $GUEST_OUT"
	../interop/check_pcap.py --addr "${GUEST_NET[i]}.2" --no-reset --complete --min-connections 2021 \
		--peer-retransmissions 500 "$LAB_LOGS/$model.pcap"
}

# asks NAME I PATH N C OPTIONS...: corq ab on NIC I.
asks()
{
	local name=$1 i=$2 path=$3 n=$4 c=$5 before keep=""
	shift 5
	[ "${1-}" = -k ] && keep=keepalive
	lab_nginx_requests a
	before=$LAB_COUNT
	guest_do 90 "corq ab -q -n $n -c $c $* --seed 7 --dev pci:${GUEST_PCI[i]} --gw none" \
		"--ip ${GUEST_NET[i]}.2/24 --mac 02:00:00:00:00:1$i http://${GUEST_NET[i]}.1$path" ||
		lab_die "corq ab ended with status $? ($name): $GUEST_OUT"
	echo "$GUEST_OUT" >"$LAB_LOGS/$name.txt"
	lab_expect_ab "$LAB_LOGS/$name.txt" "$n" $keep
	sed -n "s/^Requests per second/$name: &/p" "$LAB_LOGS/$name.txt"
	lab_nginx_requests a
	[ $((LAB_COUNT - before)) = "$n" ] || lab_die "nginx counted $((LAB_COUNT - before)) requests ($name)"
}

lab_up
for model in "${models[@]}"; do
	guest_nic "$model"
done
lab_file big 1000000
lab_file page 3000
digest=$(sha256sum <"$LAB_WWW/big" | cut -d' ' -f1)
guest_boot "$LAB_WWW/big" "$LAB_WWW/page"
echo "booted after $SECONDS s"
lab_nginx_start a
bad_input
for i in "${!models[@]}"; do
	guest_do 20 "give_to uio_pci_generic ${GUEST_PCI[i]}" || lab_die "cannot bind ${models[i]}: $GUEST_OUT"
	serves "${models[i]}" "$i"
	asks "${models[i]}-ab-close" "$i" /page 1000 20
	asks "${models[i]}-ab-keep" "$i" /page 1000 20 -k
	ip -n "$LAB_NS_A" link set "${GUEST_TAP[i]}" mtu 9000
	asks "${models[i]}-ab-jumbo" "$i" /big 10 2 --mtu 9000
	grep -qE '^HTML transferred: +10000000 bytes$' "$LAB_LOGS/${models[i]}-ab-jumbo.txt" ||
		lab_die "10 times 1 MB are not 10 MB (${models[i]})"
	echo "${models[i]}: done after $SECONDS s"
done
guest_off
lab_say "all as it should be"
