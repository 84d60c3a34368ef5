#!/usr/bin/env bash
# Builds the Debian package of a binary. The same commit gives the same bytes, wherever and whenever
# that is (scripts/test-deb.sh).
#
#   scripts/deb.sh VERSION FOLDER [BINARY]
#
# The default is ./sextant; LEVEL=0 makes a larger one sooner. For a binary of another architecture:
# ARCHITECTURE=arm64 HOST_BINARY=./sextant.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

readonly version=$1 folder=$2 package=sextant
binary=$(realpath "${3:-sextant}")
readonly binary
readonly architecture=${ARCHITECTURE:-$(dpkg --print-architecture)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 0755 "$stage"

changelog() {
	echo "$package ($version) stable; urgency=medium"
	printf '\n  * See /usr/share/doc/sextant/CHANGELOG.md.\n\n'
	echo " -- Sextant <sextant@example.org>  $(date --utc --date="@$SOURCE_DATE_EPOCH" --rfc-email)"
}

# Of what is installed, in KiB as Debian counts: each file rounded up, and one for each folder. What
# a disk needs differs from disk to disk.
size() {
	find "$stage" -mindepth 1 -printf '%y %s\n' |
		awk '{ sum += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print sum }'
}

control() {
	local size
	size=$(size)
	install -d "$stage/DEBIAN"
	sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@SIZE@/$size/" \
		packaging/debian/control >"$stage/DEBIAN/control"
	echo /etc/default/sextant >"$stage/DEBIAN/conffiles"
	install -m 0755 packaging/debian/{postinst,prerm,postrm} "$stage/DEBIAN/"
	(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$stage/DEBIAN/md5sums"
}

scripts/stage.sh "$stage" "$binary" "$architecture" debian
changelog | gzip -9n >"$stage/usr/share/doc/$package/changelog.gz"
control
mkdir -p "$folder"
find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
readonly deb=$folder/${package}_${version}_$architecture.deb
dpkg-deb --build --root-owner-group -Zxz -z"${LEVEL:-6}" "$stage" "$deb"
