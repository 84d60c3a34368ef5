#!/usr/bin/env bash
# Fetches what a make target needs, and says what. Does nothing when all is there.
#
#   scripts/deps.sh GROUP...
#
# A need is PACKAGE=PROBE: the Debian package that brings the command or the file PROBE.
# A probe that is met needs no package, so the groups work without apt where the tools are there.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

readonly generate='clang-19=clang-19 llvm-19=llvm-strip-19
	libbpf-dev=/usr/include/bpf/bpf_helpers.h linux-libc-dev=/usr/include/linux/bpf.h'
readonly lint='clang-format-19=clang-format-19 shellcheck=shellcheck
	ansible-core=ansible-playbook ansible-lint=ansible-lint mypy=mypy'
readonly test='bpftool=bpftool ethtool=ethtool iproute2=ip tcpdump=tcpdump iputils-ping=ping
	nginx-light=nginx apache2=apache2 wrk=wrk netbase=/etc/services
	curl=curl ca-certificates=/etc/ssl/certs/ca-certificates.crt frr=/usr/lib/frr/bgpd bird2=bird
	lighttpd=lighttpd etcd-server=etcd
	rpm=rpm gnupg=gpg tshark=tshark prometheus=promtool python3=python3 gcc=cc libc6-dev=/usr/include/stdio.h
	python3-setuptools=/usr/lib/python3/dist-packages/setuptools/__init__.py
	python3-wheel=/usr/lib/python3/dist-packages/wheel/__init__.py'
readonly vm='qemu-system-x86=qemu-system-x86_64 debootstrap=debootstrap cpio=cpio kmod=depmod'
readonly deb='lintian=lintian dpkg-dev=dpkg-deb'
readonly figures='graphviz=dot fonts-dejavu-core=/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf'
readonly site='python3-venv=/usr/share/doc/python3-venv'
readonly machines='rpm=rpm ansible-core=ansible-playbook python3-apt=/usr/share/doc/python3-apt
	systemd=/lib/systemd/systemd init-system-helpers=/usr/bin/deb-systemd-helper'
# Packages that Debian starts, and enables at boot, when it installs them.
readonly services='nginx-light:nginx apache2:apache2 lighttpd:lighttpd frr:frr bird2:bird etcd-server:etcd prometheus:prometheus'

say() { echo "deps: $*"; }

die() {
	echo "sextant: $*" >&2
	exit 1
}

as_root() { scripts/as-root.sh "$@"; }

# Go is the one thing that is not fetched: which one to run is the reader's choice.
require_go() {
	local wanted
	wanted=$(awk '$1 == "go" { print $2 }' go.mod)
	command -v go >/dev/null ||
		die "Go $wanted or newer is needed: unpack it from https://go.dev/dl/ and put its bin directory into PATH"
	# In a module, an older go either switches to the wanted toolchain or says why it cannot.
	go env GOVERSION >/dev/null || die "this Go is too old: Go $wanted or newer is needed, see https://go.dev/dl/"
}

is_there() {
	case $1 in
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# missing NEED... prints the packages whose probe is not met.
missing() {
	local need
	for need in "$@"; do
		is_there "${need#*=}" || echo "${need%%=*}"
	done
}

# Installs quietly; what apt said is shown only if it failed.
apt_install() {
	local log
	log=$(mktemp)
	# A stale or unreachable list of some other repository is no reason to stop: the install decides.
	as_root apt-get update -qq >"$log" 2>&1 || true
	if ! as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get install -y -qq \
		--no-install-recommends -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::=--force-confold "$@" >>"$log" 2>&1; then
		cat "$log" >&2
		rm -f "$log"
		die "apt-get could not install $*; Debian 12 or newer has all of them, see apt's message above"
	fi
	rm -f "$log"
}

# Debian starts a freshly installed server. policy-rc.d is its own way to forbid that; one that is there already stays.
policy=/usr/sbin/policy-rc.d
forbid_starts() {
	[ -e $policy ] && return
	trap allow_starts EXIT
	printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
	as_root chmod 755 $policy
}

allow_starts() {
	trap - EXIT
	as_root rm -f $policy
}

# service_of PACKAGE prints the service that the package brings, if any.
service_of() {
	local pair
	for pair in $services; do
		[ "${pair%%:*}" != "$1" ] || echo "${pair#*:}"
	done
}

install_packages() {
	local package service started=()
	command -v apt-get >/dev/null ||
		die "$* missing, and there is no apt-get: install the equivalent of these Debian packages, then try again"
	say "fetching Debian packages: $*"
	for package in "$@"; do
		service=$(service_of "$package")
		[ -z "$service" ] || started+=("$service")
	done
	if [ ${#started[@]} -eq 0 ]; then
		apt_install "$@"
		return
	fi
	forbid_starts
	apt_install "$@"
	[ -z "$(trap -p EXIT)" ] || allow_starts
	for service in "${started[@]}"; do
		as_root update-rc.d "$service" disable >/dev/null 2>&1 || true
	done
	say "installed, but neither started nor enabled at boot: ${started[*]}"
}

# Pinned programs and maps live in the BPF file system, which systemd mounts at boot and containers often lack.
mount_bpffs() {
	if grep -q ' /sys/fs/bpf bpf ' /proc/mounts; then
		return
	fi
	[ -d /sys/fs/bpf ] || die "/sys/fs/bpf does not exist: this kernel has no eBPF, or sysfs is not mounted"
	say "mounting the BPF file system at /sys/fs/bpf (until the next boot)"
	as_root mount -t bpf bpf /sys/fs/bpf ||
		die "mounting the BPF file system at /sys/fs/bpf failed: root with CAP_SYS_ADMIN is needed"
}

# ensure NEED... installs the packages of the needs that are not met.
ensure() {
	local packages
	mapfile -t packages < <(missing "$@")
	[ ${#packages[@]} -gt 0 ] || return 0
	install_packages "${packages[@]}"
	mapfile -t packages < <(missing "$@")
	[ ${#packages[@]} -eq 0 ] || die "${packages[*]} installed, but what is needed of it is not in PATH ($PATH)"
}

needs=''
bpffs=false
for group in "$@"; do
	case $group in
	go) require_go ;;
	generate) needs+=" $generate" ;;
	lint) needs+=" $lint" ;;
	test) needs+=" $test" ;;
	vm)
		needs+=" $vm"
		[ "${VM_ARCH:-}" != arm64 ] || needs+=" qemu-system-arm=qemu-system-aarch64"
		;;
	deb) needs+=" $deb" ;;
	machines) needs+=" $machines" ;;
	figures) needs+=" $figures" ;;
	site) needs+=" $site" ;;
	bpffs) bpffs=true ;;
	*) die "deps.sh: unknown group \"$group\"; groups are go, generate, lint, test, vm, deb, machines, figures, site, bpffs" ;;
	esac
done
# shellcheck disable=SC2086 # a list of words
ensure $needs
if $bpffs; then
	mount_bpffs
fi
# The console is tested where a browser is: what drives it comes from npm.
case " $* " in
*" test "*)
	if [ ! -d agent/web/node_modules ] && command -v chromium >/dev/null && command -v npm >/dev/null; then
		say "fetching the packages of agent/web/package-lock.json"
		(cd agent/web && npm ci --ignore-scripts --no-audit --no-fund --silent) ||
			say "npm could not fetch them: the console's tests are skipped"
	fi
	;;
esac
say "all there ($*)"
