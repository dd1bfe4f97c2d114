#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build_guest.sh - the kernel and the file system of the emulated guest: Debian's, and corq.
#
#   build_guest.sh CORQ DIR [FILE...]     makes DIR/vmlinuz and DIR/initrd; FILEs go to /www there
#
# The kernel's package is downloaded into DIR and unpacked, never installed; what is there already
# is used again. The file system is one uncompressed cpio archive (an emulated CPU unpacks slowly):
# busybox, the binary, its libraries and DPDK's plugins, the few kernel modules, and init.sh.
#
# DPDK's plugin folder holds the plugins themselves, and the library folder links to them. The links
# stay links: loaded twice, from two files, a plugin registers twice and EAL aborts.
set -eu

corq=${1:?usage: build_guest.sh CORQ DIR [FILE...]}
dir=${2:?usage: build_guest.sh CORQ DIR [FILE...]}
shift 2
root=$dir/root
modules="uio uio_pci_generic e1000"
plugins="bus_pci bus_vdev mempool_ring net_virtio net_vmxnet3 net_e1000"

die()
{
	echo "build_guest.sh: $*" >&2
	exit 1
}

# ---- the kernel

# Debian's current kernel package, by way of the one that always depends on it.
kernel_package()
{
	apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }'
}

# As another user apt could not write here, and would say so.
download()
{
	local package
	package=$(kernel_package)
	[ "$package" ] || return 1
	(cd "$dir" && apt-get -qq -o APT::Sandbox::User=root download "$package") && echo "$package" >"$dir/package"
}

fetch_kernel()
{
	local deb
	[ -e "$dir/vmlinuz" ] && [ -e "$dir/modules/$(set -- $modules && echo $#)" ] && return
	rm -rf "$dir/modules" "$dir"/linux-image-*.deb
	download 2>"$dir/download.log" || {
		apt-get -qq update && download
	} 2>>"$dir/download.log" || {
		cat "$dir/download.log" >&2
		die "cannot download linux-image-amd64"
	}
	deb=$(ls "$dir"/linux-image-*.deb)
	mkdir -p "$dir/modules"
	unpack "$deb"
	rm -f "$deb"
	: >"$dir/modules/$(set -- $modules && echo $#)"
}

# Only what is wanted of the 400 MB in there.
unpack()
{
	local name wanted=('./boot/vmlinuz-*')
	for name in $modules; do
		wanted+=("*/$name.ko*")
	done
	mkdir -p "$dir/unpacked"
	dpkg-deb --fsys-tarfile "$1" | tar -x -C "$dir/unpacked" --wildcards "${wanted[@]}"
	for name in $modules; do
		find "$dir/unpacked" -name "$name.ko" -exec mv {} "$dir/modules/" \;
		[ -e "$dir/modules/$name.ko" ] || die "no module $name in $1"
	done
	mv "$dir"/unpacked/boot/vmlinuz-* "$dir/vmlinuz"
	rm -rf "$dir/unpacked"
}

# ---- the file system

# take FILE: into the guest at the same place; a link with all that it leads to.
take()
{
	local folder path target
	folder=$(realpath "$(dirname "$1")")
	path=$folder/$(basename "$1")
	[ -e "$root$path" ] || [ -L "$root$path" ] && return
	mkdir -p "$root$folder"
	cp -a "$path" "$root$path"
	[ -L "$path" ] || return 0
	target=$(readlink "$path")
	case $target in
	/*) take "$target" ;;
	*) take "$folder/$target" ;;
	esac
}

# The libraries of a binary, as the linker finds them; none of a static one.
take_libraries()
{
	local library
	for library in $(ldd "$1" 2>/dev/null | awk '/=> \// { print $3 } /^\t\// { print $1 }'); do
		take "$library"
	done
}

plugin_folder()
{
	local folder
	folder=$(pkg-config --variable=libdir libdpdk 2>/dev/null)
	folder=$(ls -d "$folder"/dpdk/pmds-* 2>/dev/null | tail -n 1)
	[ "$folder" ] || die "DPDK's plugin folder is not found"
	echo "$folder"
}

fill_root()
{
	local folder name file
	rm -rf "$root"
	mkdir -p "$root"/{usr/bin,usr/lib,usr/lib64,proc,sys,dev,tmp,run,var,modules,www}
	ln -s ../run "$root/var/run"
	for name in bin lib lib64; do
		ln -s "usr/$name" "$root/$name"
	done
	cp "$(command -v busybox)" "$root/usr/bin/busybox"
	cp "$corq" "$root/usr/bin/corq"
	take_libraries "$root/usr/bin/busybox"
	take_libraries "$corq"
	# a thread that ends asks for it by name
	take "$(gcc -print-file-name=libgcc_s.so.1)"
	folder=$(plugin_folder)
	for name in $plugins; do
		for file in "$folder/librte_$name".so.*; do
			take "$file"
		done
		take_libraries "$folder/librte_$name.so"
	done
	for name in $modules; do
		cp "$dir/modules/$name.ko" "$root/modules/"
	done
	install -m 755 "$(dirname "$0")/init.sh" "$root/init"
	[ $# = 0 ] || cp "$@" "$root/www/"
}

for program in busybox cpio dpkg-deb pkg-config ldd; do
	command -v $program >/dev/null || die "$program is not installed (apps/deps.sh vm)"
done
mkdir -p "$dir"
fetch_kernel
fill_root "$@"
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0) >"$dir/initrd.new"
mv "$dir/initrd.new" "$dir/initrd"
