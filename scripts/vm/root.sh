#!/usr/bin/env bash
# Makes what a virtual machine boots from, out of Debian's packages alone: a kernel, and a root file system as a cpio archive that the
# kernel unpacks into memory. Kept in .cache/vm, since that takes minutes; boots take seconds.
#
#   scripts/vm/root.sh KERNEL        prints the folder: vmlinuz and root.cpio are in it
#
# KERNEL is a Debian package, like linux-image-6.1.0-50-amd64, or SUITE/PACKAGE. What a suite calls its newest is asked of latest.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly suite=bookworm mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
# What the tests in the machine call; frr brings the routing daemons of the paper's set-up.
readonly packages=frr,iproute2,curl,ethtool,iputils-ping,tcpdump,nginx-light,procps,kmod,netbase
# Of the kernel's modules, those about networks.
readonly modules='net lib crypto arch drivers/net/vrf.ko drivers/net/veth.ko drivers/net/dummy.ko drivers/net/tun.ko drivers/net/macvlan.ko drivers/net/ifb.ko'

readonly kernel=$1
readonly cache=$PWD/.cache/vm
readonly folder=$cache/$kernel

say() { echo "vm: $*" >&2; }

# A base of Debian with the packages, without what nobody reads in a virtual machine.
make_base() {
	[ -e "$cache/base/.made" ] && return
	say "fetching Debian $suite into .cache/vm, once"
	rm -rf "$cache/base"
	debootstrap --variant=minbase --include="$packages" "$suite" "$cache/base" "$mirror" >"$cache/debootstrap.log" 2>&1 ||
		{ tail -n 5 "$cache/debootstrap.log" >&2 && return 1; }
	rm -rf "$cache/base"/usr/share/{doc,man,locale,info,i18n} "$cache/base"/var/cache/apt/* "$cache/base"/var/lib/apt/lists/*
	touch "$cache/base/.made"
}

# Unpacks the kernel's package beside the base, and takes of it what a virtual machine needs.
take_kernel() {
	local unpacked=$folder/unpacked release module
	say "fetching $kernel"
	mkdir -p "$folder" "$unpacked"
	(cd "$folder" && apt-get download -qq "$kernel" 2>"$folder/apt.log") || { cat "$folder/apt.log" >&2 && return 1; }
	dpkg-deb -x "$folder"/linux-image-*.deb "$unpacked"
	release=$(basename "$unpacked"/lib/modules/*)
	cp "$unpacked/boot/vmlinuz-$release" "$folder/vmlinuz"
	mkdir -p "$folder/modules/lib/modules/$release/kernel"
	(
		cd "$unpacked/lib/modules/$release"
		cp modules.builtin modules.builtin.modinfo modules.order "$folder/modules/lib/modules/$release/"
		cd kernel
		for module in $modules; do
			cp -r --parents "$module" "$folder/modules/lib/modules/$release/kernel/"
		done
	)
	depmod -b "$folder/modules" "$release"
	rm -rf "$unpacked" "$folder"/linux-image-*.deb
}

archive() { (cd "$1" && find . -xdev -print0 | cpio --null --create --format newc --quiet --owner 0:0); }

mkdir -p "$cache"
make_base
if [ ! -e "$folder/root.cpio" ]; then
	take_kernel
	{ archive "$cache/base" && archive "$folder/modules"; } >"$folder/root.cpio.new"
	mv "$folder/root.cpio.new" "$folder/root.cpio"
fi
echo "$folder"
