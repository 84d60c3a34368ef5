#!/usr/bin/env bash
# Builds the Debian package of a binary: with its unit, man pages, completions, examples, documentation and bill of materials.
# The same commit gives the same bytes, wherever and whenever that is (scripts/test-deb.sh).
#
#   scripts/deb.sh VERSION FOLDER [BINARY]     the default is ./sextant; LEVEL=0 makes a larger one sooner
set -euo pipefail
cd "$(dirname "$0")/.."
# Nothing of who builds may get into the package.
umask 022
export LC_ALL=C TZ=UTC

readonly version=$1 folder=$2
binary=$(realpath "${3:-sextant}")
readonly binary
architecture=$(dpkg --print-architecture)
readonly architecture package=sextant
case $architecture in # where Wireshark looks for plugins of all users
amd64) multiarch=x86_64-linux-gnu ;;
arm64) multiarch=aarch64-linux-gnu ;;
*) multiarch=$architecture-linux-gnu ;;
esac
readonly multiarch
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 0755 "$stage"

put() { install -D -m 0644 "$1" "$stage/$2"; }

program() {
	install -D -m 0755 "$binary" "$stage/usr/bin/sextant"
	put packaging/sextant.service usr/lib/systemd/system/sextant.service
	put packaging/debian/default etc/default/sextant
	put config/node.schema.json usr/share/sextant/node.schema.json
	install -d -m 0755 "$stage/etc/sextant"
	put packaging/wireshark/sextant-telemetry.lua "usr/lib/$multiarch/wireshark/plugins/sextant-telemetry.lua"
}

completions() {
	install -d "$stage"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
	"$binary" completion bash >"$stage/usr/share/bash-completion/completions/sextant"
	"$binary" completion zsh >"$stage/usr/share/zsh/vendor-completions/_sextant"
	"$binary" completion fish >"$stage/usr/share/fish/vendor_completions.d/sextant.fish"
}

# Section 8 is the commands' help; sections 5 and 7 are pages of docs/.
manual() {
	local man=$stage/usr/share/man
	install -d "$man/man5" "$man/man7"
	"$binary" man "$man/man8"
	page docs/reference/node-file.md sextant-node 5 >"$man/man5/sextant-node.5"
	page docs/explanation/concepts.md sextant 7 >"$man/man7/sextant.7"
	find "$man" -type f -exec gzip -9n {} +
}

# page FILE NAME SECTION writes a page of docs/ as a man page: its title is what the page is about.
page() {
	{
		echo "# $2 $3 \"\" Sextant"
		printf '\n# NAME\n%s - %s\n' "$2" "$(sed -n '1s/^# //p' "$1")"
		sed 1d "$1"
	} | go tool go-md2man
}

documents() {
	local share=$stage/usr/share/doc/$package page
	for page in README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md docs/*/*.md docs/figures/*.svg; do
		put "$page" "usr/share/doc/$package/$page"
	done
	for page in examples/*.yaml; do
		put "$page" "usr/share/doc/$package/$page"
	done
	for page in packaging/monitoring/*; do
		put "$page" "usr/share/doc/$package/monitoring/${page##*/}"
	done
	put packaging/debian/copyright "usr/share/doc/$package/copyright"
	"$binary" version --sbom >"$share/sbom.cdx.json"
	{
		echo "$package ($version) stable; urgency=medium"
		printf '\n  * The changes are in the log of the repository.\n\n'
		echo " -- Sextant <sextant@example.org>  $(date --utc --date="@$SOURCE_DATE_EPOCH" --rfc-email)"
	} | gzip -9n >"$share/changelog.gz"
}

# Of what is installed, in KiB as Debian counts: each file rounded up, and one for each folder. What a disk needs differs from disk to disk.
size() { find "$stage" -mindepth 1 -printf '%y %s\n' | awk '{ sum += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print sum }'; }

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

program
completions
manual
documents
control
mkdir -p "$folder"
find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
readonly deb=$folder/${package}_${version}_$architecture.deb
dpkg-deb --build --root-owner-group -Zxz -z"${LEVEL:-6}" "$stage" "$deb"
