#!/usr/bin/env bash
# Runs each fuzz target of the repository, as root: some give their input to programs in the kernel. A target that finds
# something leaves its input in the package's testdata/fuzz, where it is a test from then on.
#
#   scripts/fuzz.sh           with coverage guidance, each for FUZZTIME (10s, or a number of inputs like 5000x)
#   scripts/fuzz.sh --brief   each a fixed number of inputs, without guidance, which spares compiling all anew: for "make test"
#
# PACKAGE=./datapath/model runs the targets of one package.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t targets < <(grep -rno --include='*_test.go' --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]*' "${PACKAGE:-.}" |
	sed -E 's|^(.*)/[^/]*:[0-9]+:func (.*)$|\1 \2|' | sort)
# A package of the module controller/kubernetes is known inside that module alone.
module_of() { [[ $1/ != ./controller/kubernetes/* ]] && echo . || echo controller/kubernetes; }
root=$PWD/scripts/as-root.sh
failed=()
# An input that covers something new is made smaller first, by default for up to a minute, in which nothing else is tried; and a
# target whose time ends meanwhile counts as failed.
smaller=100x

# ran_out reports whether a target failed only because its time ended: Go 1.26 says so, now and then, on a busy machine
# (golang.org/issue/75804; Go 1.27 does not). Whatever an input has found is told besides.
ran_out() {
	grep -qE '^ +context deadline exceeded$' "$1" && ! grep -qE '_test\.go:[0-9]+|Failing input|panic|fuzzing process' "$1"
}

# A package's targets are in one test program. As many run at once as there are processors.
brief() {
	local package name last='' dir program log
	dir=$(mktemp -d)
	# shellcheck disable=SC2064 # now
	trap "rm -rf '$dir'" EXIT
	try() {
		log=$dir/log/${program##*/}.$name
		(cd "$package" && "$root" "$program" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "${FUZZTIME:-2000x}" \
			-test.parallel 1 -test.fuzzminimizetime "$smaller" -test.fuzzcachedir "$dir/cache/${log##*/}" >"$log" 2>&1) ||
			ran_out "$log" || return
		rm "$log"
	}
	mkdir "$dir/log"
	for target in "${targets[@]}"; do
		read -r package name <<<"$target"
		program=$dir/${package//\//_}
		[ "$package" = "$last" ] || go -C "$(module_of "$package")" test -c -o "$program" "$PWD/$package"
		last=$package
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
		try &
	done
	wait
	for log in "$dir"/log/*; do
		[ -e "$log" ] || continue # none failed
		failed+=("${log##*/}")
		cat "$log"
	done
}

guided() {
	local package name log
	log=$(mktemp)
	# shellcheck disable=SC2064 # now
	trap "rm -f '$log'" EXIT
	for target in "${targets[@]}"; do
		read -r package name <<<"$target"
		echo "fuzz: $package $name"
		go -C "$(module_of "$package")" test -exec "$root" -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-10s}" \
			-fuzzminimizetime "$smaller" "$PWD/$package" 2>&1 | tee "$log" || ran_out "$log" || failed+=("$name")
	done
}

if [ "${1:-}" = --brief ]; then brief; else guided; fi
if [ ${#failed[@]} -gt 0 ]; then
	echo "fuzz: ${#failed[@]} of ${#targets[@]} targets failed: ${failed[*]}" >&2
	exit 1
fi
echo "fuzz: ${#targets[@]} targets, nothing found"
