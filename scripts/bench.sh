#!/bin/bash
# bench.sh AGAINST [FLAG...]: the bench of the programs beside another build, in alternating passes.
# AGAINST is a test binary of ./datapath, or a commit, whose rows are then measured by this tree's
# method. AS_ROOT is what makes a command root's.
set -euo pipefail
cd "$(dirname "$0")/.."

against=$1 commit=
shift
if [ ! -f "$against" ] || [ ! -x "$against" ]; then
	commit=$(git rev-parse --verify --quiet "$against^{commit}") || {
		echo "bench: AGAINST=$against is neither an executable file nor a commit" >&2
		exit 1
	}
fi
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree" 2>/dev/null || true; rm -rf "$dir"' EXIT
go test -c -o "$dir/this.test" ./datapath
# A flag that does not exist is refused before the other build is made.
said=$("$dir/this.test" -test.run '^$' "$@" 2>&1) || {
	printf '%s\n' "${said%%$'\n'*}" >&2
	exit 1
}
if [ -n "$commit" ]; then
	git worktree add --quiet --detach "$dir/tree" "$commit"
	there=$dir/tree/datapath
	if ! grep -q '^func allRows' "$there/bench_test.go"; then # from before there was this script
		rows=$(sed -n 's/^\trows := \(slices.Concat(.*\)/\1/p' "$there/bench_test.go")
		printf 'package datapath\n\nimport (\n"slices"\n"testing"\n)\n\n%s\n\treturn %s\n}\n' \
			'func allRows(b testing.TB, w *world) []benchRow {' "$rows" >"$there/bench_test.go"
	fi
	for part in measure table against driver bpfel; do
		cp datapath/bench_${part}_test.* "$there/"
	done
	against=$dir/other.test
	go -C "$dir/tree" test -c -o "$against" ./datapath
fi
cd datapath
# At real-time priority: other work of the machine does not interrupt a pass.
${AS_ROOT:-} chrt -r 10 "$dir/this.test" -test.run '^$' -test.bench '^BenchmarkPrograms$' -test.benchtime 1x \
	-against "$(realpath "$against")" "$@"
