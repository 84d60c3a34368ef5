#!/usr/bin/env bash
# Builds the package of the last commit twice, from nothing: in folders of unlike length, with another umask, time zone, language and
# number of processors, and at another time. Both must be the same bytes. Then the tests of the package: what is in it, how it lives on
# machines with systemd, and the commands of docs/tutorial/guide.md.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build FOLDER clones and builds there, and prints the package's digest. The cache is its own: nothing is taken from the other.
build() {
	git -c safe.directory='*' clone --quiet --no-hardlinks "$PWD" "$work/$1/sextant"
	GOCACHE=$work/$1/cache make --silent -C "$work/$1/sextant" deb >"$work/$1/log" 2>&1 || { cat "$work/$1/log" >&2 && return 1; }
	(cd "$work/$1/sextant/dist" && sha256sum ./*.deb)
	rm -rf "$work/$1/cache"
}

mkdir -p "$work/one" "$work/another/longer/place"
one=$(umask 022 && TZ=UTC LC_ALL=C build one)
export -f build
export work
another=$(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 taskset --cpu-list 0 bash -c 'build another/longer/place')
echo "$one"
if [ "$one" != "$another" ]; then
	echo "test-deb: the second build differs: $another" >&2
	exit 1
fi
echo 'test-deb: built twice, the same bytes'
go test -tags packaging -v -count=1 -timeout 30m -exec "$PWD/scripts/as-root.sh" ./test/deb | awk -f scripts/summary.awk
