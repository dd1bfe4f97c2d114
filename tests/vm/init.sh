#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# init.sh - process 1 of the emulated guest: runs the host's commands, one line each.
#
# Commands come over the second serial port; what they print goes to the first, behind each
# "=NUMBER= STATUS", as guest.sh expects. The end of the commands powers the guest off.
export PATH=/bin:/usr/bin

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
ip link set lo up
insmod /modules/uio.ko
insmod /modules/uio_pci_generic.ko
stty -F /dev/ttyS1 raw -echo
exec 3</dev/ttyS1

# give_to DRIVER PCI-ADDRESS
give_to()
{
	local device=/sys/bus/pci/devices/$2
	[ -e "$device/driver" ] && echo "$2" >"$device/driver/unbind"
	echo "$1" >"$device/driver_override"
	echo "$2" >/sys/bus/pci/drivers_probe
	[ "$(basename "$(readlink "$device/driver")")" = "$1" ]
}

# start COMMAND...: in the background; its id is in $child.
start()
{
	"$@" &
	child=$!
}

# stop SIGNAL: ends what `start` started; status is its own.
stop()
{
	kill "-$1" "$child"
	wait "$child"
}

number=0
echo "=ready="
while read -r line <&3; do
	number=$((number + 1))
	[ "$line" = off ] && break
	eval "$line"
	echo "=$number= $?"
done
poweroff -f
