#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# deps.sh - installs what is missing to build, run and test corq.
#
#   apps/deps.sh [demo|test|vm]   demo: build and run (default); test: that and all test tools;
#                                 vm: the emulator, for tests/run.sh vm
#
# Called by apps/demo.sh and tests/run.sh before they build. Debian and its relatives only; on
# any other distribution it prints the package names and stops. It asks the network for nothing
# when nothing is missing, and leaves no service running: nginx is wanted as a program only.
set -u

demo_packages="meson ninja-build gcc libc6-dev pkg-config python3 libdpdk-dev libnuma-dev
	node-llhttp libjansson-dev libssl-dev libcmocka-dev
	nginx-light apache2-utils curl iproute2 ethtool util-linux"
test_packages="clang llvm libclang-rt-14-dev clang-format-14 dpdk tcpdump wrk tshark jq
	gnuplot-nox git chromium"

# The guest's kernel is no package to install: tests/vm/build_guest.sh only unpacks it.
vm_packages="qemu-system-x86 cpio"
# Debian's two busyboxes exclude each other: either will do.
command -v busybox >/dev/null || vm_packages+=" busybox-static"

say()
{
	echo "deps: $*" >&2
}

other_distribution()
{
	say "this is ${1:-unknown}; corq installs packages by itself on Debian 12 only." \
		"Install these, then build with meson:"
	case " $1 " in
	*" fedora "* | *" rhel "*)
		echo "meson ninja-build gcc pkgconf-pkg-config python3 dpdk-devel numactl-devel" \
			"llhttp-devel jansson-devel openssl-devel libcmocka-devel nginx httpd-tools curl iproute" \
			"ethtool tcpdump jq gnuplot clang llvm compiler-rt clang-tools-extra dpdk" \
			"wrk wireshark-cli git chromium"
		;;
	*" arch "*)
		echo "meson ninja gcc pkgconf python dpdk numactl llhttp jansson openssl cmocka nginx apache" \
			"curl iproute2 ethtool tcpdump jq gnuplot clang llvm compiler-rt wrk" \
			"wireshark-cli git chromium"
		;;
	*" alpine "*)
		echo "bash meson samurai gcc musl-dev pkgconf python3 dpdk-dev numactl-dev llhttp-dev" \
			"jansson-dev openssl-dev cmocka-dev nginx apache2-utils curl iproute2 ethtool tcpdump jq" \
			"gnuplot clang llvm compiler-rt clang-extra-tools dpdk wrk tshark git chromium"
		;;
	*)
		echo "(Debian's names)" $demo_packages $test_packages
		;;
	esac
}

missing_of()
{
	local package
	for package in "$@"; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
			printf '%s ' "$package"
	done
}

# Debian starts nginx as soon as it is installed. Where systemd runs it is masked for the time
# of the installation (in /run, taken away again) and not enabled afterwards; elsewhere
# RUNLEVEL=1 makes invoke-rc.d leave it alone.
install()
{
	local masked="" status=0 log
	log=$(mktemp) || return 1
	case " $* " in
	*" nginx-light "*)
		if [ -d /run/systemd/system ] && ! [ -e /usr/sbin/nginx ]; then
			systemctl mask --runtime --quiet nginx.service && masked=yes
		fi
		;;
	esac
	say "installing: $*"
	{
		apt-get -q -y -o DPkg::Lock::Timeout=300 update &&
			RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -q -y \
				-o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"
	} </dev/null >"$log" 2>&1 || status=1
	[ $status = 0 ] || tail -n 20 "$log" >&2
	rm -f "$log"
	if [ "$masked" ]; then
		systemctl unmask --runtime --quiet nginx.service
		systemctl disable --quiet nginx.service 2>/dev/null
	fi
	return $status
}

main()
{
	local packages missing ids
	case "${1-demo}" in
	demo) packages=$demo_packages ;;
	test) packages="$demo_packages $test_packages" ;;
	vm) packages=$vm_packages ;;
	*)
		say "unknown group '$1': demo, test or vm"
		exit 2
		;;
	esac
	ids=$(. /etc/os-release 2>/dev/null && echo "${ID-}${ID_LIKE:+ $ID_LIKE}")
	case " $ids " in
	*" debian "*) ;;
	*)
		other_distribution "$ids"
		exit 1
		;;
	esac
	# shellcheck disable=SC2086 # the lists are words
	missing=$(missing_of $packages)
	[ "$missing" ] || exit 0
	if [ "$(id -u)" != 0 ]; then
		say "run as root (sudo) to install: $missing"
		exit 1
	fi
	# shellcheck disable=SC2086
	install $missing || {
		say "apt-get could not install: $missing"
		exit 1
	}
}

main "$@"
