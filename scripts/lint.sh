#!/usr/bin/env bash
# Formats and static checks of Go, C, shell and workflows. Runs all of them before it fails, so that one run shows everything.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# check NAME MEND COMMAND... keeps what the command prints, and the mend, if it fails.
check() {
	local name=$1 mend=$2
	shift 2
	"$@" >"$results/output-$name" 2>&1 || echo "$mend" >"$results/failed-$name"
}

# gofmt lists what it would change, and is content with itself.
formatted() {
	local files
	files=$(gofmt -l .) || return
	echo "$files"
	[ -z "$files" ]
}

mapfile -t c_files < <(find bpf -name '*.[ch]' | sort)
mapfile -t shell_files < <(
	find . -name .git -prune -o -name .cache -prune -o -name testdata -prune -o -name '*.sh' -print | sort
	find .ci -type f
)

# Checks of Go build the same packages and come one after the other; what takes one processor runs
# beside them.
check_go() {
	check vet 'see the lines above' go vet -tags packaging ./...
	check vet-kubernetes 'see the lines above' go -C controller/kubernetes vet ./...
	check staticcheck 'see staticcheck.dev/docs/checks for each code' \
		go tool staticcheck -tags packaging ./...
	check actionlint 'see the lines above' go tool actionlint .github/workflows/*.yaml
}

check_go &
check gofmt 'run make fmt' formatted
check clang-format 'run make fmt' clang-format-19 --dry-run -Werror "${c_files[@]}"
check shellcheck 'see the lines above' shellcheck "${shell_files[@]}"
check ansible-lint 'see the lines above' env -C packaging/ansible \
	ansible-lint --offline -q --nocolor site.yml
check mypy 'see the lines above' env -C python mypy --strict --cache-dir=/dev/null sextant tests
wait

failed=()
for mend in "$results"/failed-*; do
	[ -e "$mend" ] || continue
	name=${mend##*/failed-}
	printf '%s\nlint: %s: %s\n' "$(<"$results/output-$name")" "$name" "$(<"$mend")" >&2
	failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "lint: failed: ${failed[*]}" >&2
	exit 1
fi
echo 'lint: gofmt, vet, staticcheck, clang-format, shellcheck, ansible-lint, mypy, actionlint: clean'
