#!/usr/bin/env bash
# Lays out what a package installs: binary, unit, man pages, completions, examples, documentation
# and bill of materials.
#
#   scripts/stage.sh FOLDER BINARY ARCHITECTURE LAYOUT
#
# LAYOUT is debian, rpm or tar: where zsh and Wireshark look. HOST_BINARY writes help and man pages
# for a binary of another architecture.
set -euo pipefail
cd "$(dirname "$0")/.."
# Nothing of who builds may get into the package.
umask 022
export LC_ALL=C TZ=UTC

readonly stage=$1 binary=$2 architecture=$3 layout=$4
readonly tool=${HOST_BINARY:-$binary} share=$stage/usr/share
zsh=usr/share/zsh/vendor-completions wireshark=usr/lib/wireshark/plugins
case $layout-$architecture in
debian-amd64) wireshark=usr/lib/x86_64-linux-gnu/wireshark/plugins ;;
debian-arm64) wireshark=usr/lib/aarch64-linux-gnu/wireshark/plugins ;;
debian-*) wireshark=usr/lib/$architecture-linux-gnu/wireshark/plugins ;;
rpm-*) zsh=usr/share/zsh/site-functions wireshark=usr/lib64/wireshark/plugins ;;
esac
readonly zsh wireshark

put() { install -D -m 0644 "$1" "$stage/$2"; }

program() {
	install -D -m 0755 "$binary" "$stage/usr/bin/sextant"
	put packaging/sextant.service usr/lib/systemd/system/sextant.service
	put packaging/debian/default etc/default/sextant
	put config/node.schema.json usr/share/sextant/node.schema.json
	put agent/web/api.d.ts usr/share/sextant/api.d.ts
	install -d -m 0755 "$stage/etc/sextant"
	(cd packaging && find ansible -type f -exec install -D -m 0644 {} "$share/sextant/{}" \;)
	put packaging/wireshark/sextant-telemetry.lua "$wireshark/sextant-telemetry.lua"
}

completions() {
	install -d "$share"/{bash-completion/completions,fish/vendor_completions.d} "$stage/$zsh"
	"$tool" completion bash >"$share/bash-completion/completions/sextant"
	"$tool" completion zsh >"$stage/$zsh/_sextant"
	"$tool" completion fish >"$share/fish/vendor_completions.d/sextant.fish"
}

# Section 8 is the commands' help; sections 5 and 7 are pages of docs/.
manual() {
	install -d "$share/man/man5" "$share/man/man7"
	"$tool" man "$share/man/man8"
	page docs/reference/node-file.md sextant-node 5 >"$share/man/man5/sextant-node.5"
	page docs/explanation/concepts.md sextant 7 >"$share/man/man7/sextant.7"
	find "$share/man" -type f -exec gzip -9n {} +
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
	local page doc=usr/share/doc/sextant
	for page in README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md \
		docs/*/*.md docs/figures/*.svg examples/*.yaml; do
		put "$page" "$doc/$page"
	done
	for page in packaging/monitoring/*; do
		put "$page" "usr/share/sextant/monitoring/${page##*/}"
	done
	put packaging/debian/copyright "$doc/copyright"
	"$tool" version --sbom --of "$binary" >"$stage/$doc/sbom.cdx.json"
}

program
completions
manual
documents
