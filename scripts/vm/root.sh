#!/usr/bin/env bash
# Makes what a virtual machine boots from, out of Debian's packages alone: a kernel, and a root file system as a cpio archive that the
# kernel unpacks into memory. Kept in .cache/vm, since that takes minutes; boots take seconds.
#
#   scripts/vm/root.sh SUITE        prints the folder of the suite's newest kernel: vmlinuz and root.cpio are in it
#
# SUITE is bookworm (Linux 6.1) or bookworm-backports (the newest that Debian 12 can run). VM_ARCH is amd64 or arm64.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin

readonly suite=$1 release=bookworm
arch=${VM_ARCH:-$(dpkg --print-architecture)}
readonly arch
# The mirror is the one that this machine has, unless DEBIAN_MIRROR names another.
# shellcheck disable=SC2016 # apt's variable
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' | head -n 1)}
readonly mirror
# What the tests in the machine call; frr brings the routing daemons, ipvsadm what is measured beside.
readonly packages=frr,iproute2,curl,ethtool,iputils-ping,tcpdump,nginx-light,procps,kmod,netbase,ipvsadm
# Of the kernel's modules, those about networks, and what its own network interfaces need.
readonly modules='net lib crypto arch drivers/net/vrf.ko* drivers/net/veth.ko* drivers/net/dummy.ko* drivers/net/tun.ko*
	drivers/net/macvlan.ko* drivers/net/ifb.ko* drivers/net/bonding drivers/net/virtio_net.ko* drivers/net/net_failover.ko*
	drivers/virtio'
cache=$PWD/.cache/vm own=true
[ "$arch" = "$(dpkg --print-architecture)" ] || own=false cache+=/$arch
readonly cache own

say() { echo "vm: $*" >&2; }

# apt COMMAND... with lists of its own, so that this machine's are as they were, and have the suite.
apt() {
	local program=$1 state=$cache/apt
	shift
	mkdir -p "$state"/{lists,cache,etc/sources.list.d,etc/preferences.d}
	printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
		"$mirror" "$release" "$mirror" "$release-backports" >"$state/etc/sources.list"
	"$program" -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache" -o "Dir::Etc::sourcelist=$state/etc/sources.list" \
		-o "Dir::Etc::sourceparts=$state/etc/sources.list.d" -o "Dir::Etc::preferencesparts=$state/etc/preferences.d" \
		-o APT::Sandbox::User=root -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -qq "$@"
}

# Programs of another architecture can't run here: their packages are unpacked, and what their scripts would make is made here: users.
unpack_base() {
	local package
	for package in "$cache"/base/var/cache/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$cache/base"
	done
	# debootstrap leaves a link of /proc to itself where it can't mount
	[ ! -L "$cache/base/proc" ] || { rm "$cache/base/proc" && mkdir "$cache/base/proc"; }
	[ -e "$cache/base/bin/sh" ] || ln -s dash "$cache/base/bin/sh"
	cp "$cache/base/usr/share/base-passwd/passwd.master" "$cache/base/etc/passwd"
	cp "$cache/base/usr/share/base-passwd/group.master" "$cache/base/etc/group"
	echo 'frr:x:101:101::/nonexistent:/usr/sbin/nologin' >>"$cache/base/etc/passwd"
	printf '%s\n' 'frrvty:x:100:frr' 'frr:x:101:' >>"$cache/base/etc/group"
	chown -R 101:101 "$cache/base/etc/frr"
}

# A base of Debian with the packages, without what nobody reads in a virtual machine.
make_base() {
	[ "$(cat "$cache/base/.made" 2>/dev/null)" = "$packages" ] && return
	say "fetching Debian $release, once"
	rm -rf "$cache/base"
	local flags=()
	$own || flags=(--foreign)
	debootstrap "${flags[@]}" --arch="$arch" --variant=minbase --include="$packages" "$release" "$cache/base" "$mirror" \
		>"$cache/debootstrap.log" 2>&1 || { tail -n 5 "$cache/debootstrap.log" >&2 && return 1; }
	$own || unpack_base
	rm -rf "$cache/base"/usr/share/{doc,man,locale,info,i18n} "$cache/base"/var/cache/apt/* "$cache/base"/var/lib/apt/lists/*
	echo "$packages" >"$cache/base/.made"
}

# The package that the suite's linux-image-amd64, or -arm64, stands for.
newest_kernel() {
	apt apt-get update
	apt apt-cache depends "linux-image-$arch=$(apt apt-cache madison "linux-image-$arch" |
		awk -v suite="$suite/main" '$0 ~ suite { print $3; exit }')" | awk '/Depends: linux-image-/ { print $2; exit }'
}

# take_kernel PACKAGE FOLDER unpacks the kernel, and keeps of it what a virtual machine needs.
take_kernel() {
	local unpacked=$2/unpacked version module
	say "fetching $1"
	mkdir -p "$unpacked"
	(cd "$2" && apt apt-get download "$1/$suite")
	dpkg-deb -x "$2"/linux-image-*.deb "$unpacked"
	version=$(basename "$unpacked"/lib/modules/*)
	cp "$unpacked/boot/vmlinuz-$version" "$2/vmlinuz"
	mkdir -p "$2/modules/lib/modules/$version/kernel"
	(
		cd "$unpacked/lib/modules/$version"
		cp modules.builtin modules.builtin.modinfo modules.order "$2/modules/lib/modules/$version/"
		cd kernel
		for module in $modules; do
			cp -r --parents "$module" "$2/modules/lib/modules/$version/kernel/"
		done
	)
	depmod -b "$2/modules" "$version"
	# The base has /lib as a link to /usr/lib, which a folder in the archive would replace.
	mkdir "$2/modules/usr" && mv "$2/modules/lib" "$2/modules/usr/lib"
	rm -rf "$unpacked" "$2"/linux-image-*.deb
}

archive() { (cd "$1" && find . -xdev -print0 | cpio --null --create --format newc --quiet --owner 0:0); }

mkdir -p "$cache"
make_base
kernel=$(newest_kernel)
[ -n "$kernel" ] || { say "the mirror $mirror has no linux-image in $suite" && exit 1; }
readonly kernel folder=$cache/$kernel
# A root that was made of other lists than these is made anew.
if [ "$(cat "$folder/.made" 2>/dev/null)" != "$packages $modules" ]; then
	rm -rf "$folder"
	take_kernel "$kernel" "$folder"
	{ archive "$cache/base" && archive "$folder/modules"; } >"$folder/root.cpio.new"
	mv "$folder/root.cpio.new" "$folder/root.cpio"
	echo "$packages $modules" >"$folder/.made"
fi
echo "$folder"
