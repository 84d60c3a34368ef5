#!/usr/bin/env bash
# Boots a kernel in QEMU, with software emulation, and runs a folder's run.sh in it. What that prints is printed; its exit status is
# this one's.
#
#   scripts/vm/run.sh SUITE FOLDER
#
# The machine has the folder as /job, two processors, no network, and nothing of this machine's disk. With VM_CABLES=1 it has four
# interfaces of virtio, and cables from the first to the second, and from the third to the fourth. With VM_COUNT=1 it has one, and its
# clock is the count of instructions: a nanosecond each, whatever else this machine has to do. VM_ARCH is amd64 or arm64, by default what
# this machine is.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly suite=$1 job=$2
slowness=$(SLOWNESS_COUNT=1000000 scripts/vm/slowness.sh)
readonly memory_mib=${VM_MEMORY_MIB:-3072} timeout_s=${VM_TIMEOUT_S:-$((540 * slowness))}

arch=${VM_ARCH:-$(dpkg --print-architecture)}
case $arch in
amd64) machine_type=(qemu-system-x86_64 -M q35) console=ttyS0 ;;
arm64) machine_type=(qemu-system-aarch64 -M virt) console=ttyAMA0 ;;
*) echo "vm: no machine is known of $arch; VM_ARCH is amd64 or arm64" >&2 && exit 1 ;;
esac
processors=(-accel 'tcg,thread=multi' -smp 2)
[ -z "${VM_COUNT:-}" ] || processors=(-accel 'tcg,thread=single' -smp 1 -icount 'shift=0,sleep=off')
readonly processors
nics=(-nic none)
if [ -n "${VM_CABLES:-}" ]; then
	# The addresses are those of the bench: sender, machine under test twice, receiver. A cable delivers what was sent every half a
	# millisecond, as network cards with interrupt moderation do: else each frame would be an interrupt.
	nics=()
	for nic in 0:02:00:00:00:01:02 0:02:00:00:00:01:01 1:02:00:00:00:02:01 1:02:00:00:00:02:02; do
		nics+=(-netdev "hubport,id=nic${#nics[@]},hubid=${nic%%:*}"
			-device "virtio-net-pci,netdev=nic${#nics[@]},mac=${nic#*:}"
			-object "filter-buffer,id=cable${#nics[@]},netdev=nic${#nics[@]},queue=tx,interval=500")
	done
fi
readonly nics

folder=$(scripts/vm/root.sh "$suite")
readonly folder
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Archives one behind the other are one to the kernel.
mkdir "$work/guest"
cp -r "$job" "$work/guest/job"
install -m 0755 scripts/vm/init "$work/guest/init"
{
	cat "$folder/root.cpio"
	(cd "$work/guest" && find . -print0 | cpio --null --create --format newc --quiet --owner 0:0)
} >"$work/all.cpio"

# no_timer_check: on a busy machine the emulated timer ticks late, and the kernel would give up.
timeout "$timeout_s" "${machine_type[@]}" "${processors[@]}" -cpu max -m "$memory_mib" \
	"${nics[@]}" -display none -monitor none -serial "file:$work/console" -no-reboot \
	-kernel "$folder/vmlinuz" -initrd "$work/all.cpio" -append "console=$console panic=-1 quiet no_timer_check" &
readonly machine=$!

# The console is followed while the machine runs, and to its end.
touch "$work/console"
tail --pid="$machine" -n +1 -f "$work/console" | sed -u -n 's/\r//g; /^vm: Linux/,/^vm: exit status/p'
grep -q '^vm: Linux' "$work/console" || tail -n 20 "$work/console" >&2
wait "$machine" || {
	hung=$(tr -d '\r' <"$work/console" | sed -n 's/^begin\t\([^\t]*\).*/\1/p' | tail -n 1)
	echo "vm: the machine ($suite) did not end within $timeout_s s; it was at ${hung:-its start}" >&2
	exit 1
}
status=$(sed -n 's/^vm: exit status \([0-9]*\).*/\1/p' <(tr -d '\r' <"$work/console") | tail -n 1)
exit "${status:-1}"
