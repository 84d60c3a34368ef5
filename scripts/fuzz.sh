#!/usr/bin/env bash
# Runs each fuzz target of the repository for a short time (FUZZTIME, 10s by default). A target that finds something
# leaves its input in the package's testdata/fuzz, where it is a test from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t targets < <(grep -rno --include='*_test.go' --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]*' . |
	sed -E 's|^(.*)/[^/]*:[0-9]+:func (.*)$|\1 \2|' | sort)

failed=()
for target in "${targets[@]}"; do
	read -r package name <<<"$target"
	echo "fuzz: $package $name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-10s}" "$package" || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "fuzz: ${#failed[@]} of ${#targets[@]} targets failed: ${failed[*]}" >&2
	exit 1
fi
echo "fuzz: ${#targets[@]} targets, nothing found"
