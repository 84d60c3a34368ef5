#!/usr/bin/env bash
# Runs the tests that meet the kernel in virtual machines with Debian's kernels: they load the programs, compare them with the Go model,
# attach them, and bring a lab up. One line per package and kernel, and all that a failed one printed.
#
#   scripts/vm/test.sh [SUITE...]     the default is the oldest and the newest: bookworm bookworm-backports
set -euo pipefail
cd "$(dirname "$0")/../.."

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bookworm bookworm-backports)

job=$(mktemp -d)
trap 'rm -rf "$job"' EXIT
mkdir "$job/src"
cp -r datapath kernel examples "$job/src/"
for package in kernel datapath; do
	go test -c -o "$job/$package.test" "./$package"
done
go build -trimpath -o "$job/sextant" ./cmd/sextant
# Emulated processors are slow: few frames, and of the data plane's tests those that meet the verifier, the hooks and the helpers.
cat >"$job/run.sh" <<'EOF'
failed=0
log=$(mktemp)
run() {
	package=$1
	shift
	cd "/job/src/$package"
	if "/job/$package.test" -test.count=1 "$@" >"$log" 2>&1; then
		echo "ok	$package	$(uname -r)"
	else
		cat "$log"
		failed=1
	fi
}
# Linux 6.3 and newer tell which XDP features an interface has.
run kernel -test.skip 'TestFaultsAreNamed/(no_native_XDP|generic_mode$|fewer_receive_queues|peer_without_XDP)'
run datapath -frames 10000 -flood 2000 \
	-test.run 'Loads|EdgeAgrees|HeadendAgrees|MergeAgrees|Attach|TakeOver|Takes|Leaves|Shadow|Capture|Loops'
if /job/sextant lab up /job/src/examples/quickstart.yaml &&
	/job/sextant lab exec quickstart client -- curl -sf --max-time 10 "http://[2001:db8:80::80]/" &&
	/job/sextant lab down quickstart; then
	echo "ok	lab file	$(uname -r)"
else
	failed=1
fi
exit $failed
EOF
for suite in "${suites[@]}"; do
	scripts/vm/run.sh "$suite" "$job"
done
