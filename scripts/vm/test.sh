#!/usr/bin/env bash
# Runs the tests that meet the kernel in virtual machines with Debian's kernels: they load the programs, compare them with the Go model,
# attach them, bring a lab up, and let FRRouting run on every machine of a network with real VRFs. One line per part and kernel, and all
# that a failed one printed.
#
#   scripts/vm/test.sh [SUITE...]     the default is the oldest and the newest: bookworm bookworm-backports
#
# VM_ARCH=arm64 is a machine of that kind, whatever this one is: it takes several times as long.
# VM_TESTS names the parts: program linux doctor datapath telemetry lab frr router; bench, which prints what ways to a VRF's sockets
# cost; and forwarding, which prints packets per second, beside IPVS, and with VM_CABLES=1 through virtio
# (VM_FLAGS: those of the bench).
set -euo pipefail
cd "$(dirname "$0")/../.."

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bookworm bookworm-backports)

job=$(mktemp -d)
trap 'rm -rf "$job"' EXIT
mkdir "$job/src"
cp -r --parents agent/doctor datapath linux examples scripts/vm test/e2e/testdata "$job/src/"
export GOARCH=${VM_ARCH:-$(go env GOARCH)}
for package in linux agent/doctor datapath test/e2e; do
	go test -c -o "$job/${package##*/}.test" "./$package"
done
go build -trimpath -o "$job/sextant" ./cmd/sextant
parts=${VM_TESTS:-program linux doctor datapath telemetry lab frr router}
printf 'VM_TESTS="%s" VM_FLAGS="%s" exec sh /job/src/scripts/vm/guest.sh\n' "$parts" "${VM_FLAGS:-}" >"$job/run.sh"
status=0
for suite in "${suites[@]}"; do
	scripts/vm/run.sh "$suite" "$job" || status=1
done
exit $status
