#!/usr/bin/env bash
# Runs the Go tests as root: one line per package, all that a failed package printed, and a summary with what was
# skipped and why. Arguments are packages; the default is all but the house rules, which need no root.
# RUN names the tests, as `go test -run` takes them; that none has the name is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=("$@")
if [ ${#packages[@]} -eq 0 ]; then
	# Those that take longest begin first, so that none is left alone in the end.
	module=$(go list -m)
	longest=("$module"/{test/e2e,datapath,agent})
	mapfile -t others < <(go list ./... |
		grep -vxF -f <(printf '%s\n' "${longest[@]}" "$module/test/lint"))
	packages=("${longest[@]}" "${others[@]}")
fi

run() {
	local status=0
	# Vet is part of scripts/lint.sh. Tests wait a quarter of their time: for packages on all
	# processors and those of one more, and for four tests of a package that are parallel.
	go test -v -count=1 -vet=off -p $(($(nproc) + 1)) -parallel 4 -timeout "${TEST_TIMEOUT:-30m}" \
		-exec "$PWD/scripts/as-root.sh" "$@" || status=$?
	echo "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
	return $status
}

[ -z "${RUN:-}" ] || packages+=(-run "$RUN")
run "${packages[@]}" | RUN=${RUN:-} awk -f scripts/summary.awk
