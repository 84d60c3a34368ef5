#!/usr/bin/env bash
# Runs the tests of the module controller/kubernetes as root, as scripts/test.sh does for the others. Without the programs of
# scripts/kube-programs.sh, those that need an API server are skipped, and say so.
set -euo pipefail
cd "$(dirname "$0")/../controller/kubernetes"

run() {
	local status=0
	go test -v -count=1 -p 1 -tags "${TAGS:-}" -timeout "${TEST_TIMEOUT:-20m}" -exec "$PWD/../../scripts/as-root.sh" "$@" || status=$?
	echo "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
	return $status
}

packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(./...)
[ -z "${RUN:-}" ] || packages+=(-run "$RUN")
run "${packages[@]}" | RUN=${RUN:-} awk -f ../../scripts/summary.awk
