#!/usr/bin/env bash
# Builds the files of a release for amd64 and arm64: Debian packages, RPMs, archives, OCI images of
# both (one with the programs for Kubernetes), the chart, bills of materials, and checksums of all,
# which the key of gpg signs if there is one.
# The same commit gives the same bytes; signatures differ.
#
#   LDFLAGS=... scripts/release.sh VERSION DEB_VERSION FOLDER [KEY]
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

readonly version=$1 deb_version=$2 folder=$3 key=${4:-}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -c safe.directory='*' log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
# ARCHITECTURES=amd64 makes a part of a release sooner; that of the builder is always built.
read -ra architectures <<<"${ARCHITECTURES:-amd64 arm64}"
host=$(go env GOHOSTARCH)
readonly architectures host

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 0755 "$work"

say() { echo "release: $*"; }

# Fails before the long part if the key cannot sign.
if [ -n "$key" ]; then
	echo | gpg --batch --local-user "$key" --detach-sign --output "$work/probe" || {
		echo "sextant: release: gpg cannot sign with key $key; gpg --list-secret-keys lists keys" >&2
		exit 1
	}
fi

build() {
	say "building for $1"
	GOARCH=$1 go build -trimpath -ldflags "$LDFLAGS" -o "$work/$1/sextant" ./cmd/sextant
	GOARCH=$1 CGO_ENABLED=0 go build -C controller/kubernetes -trimpath -ldflags "$LDFLAGS" \
		-o "$work/$1/sextant-kubernetes" ./cmd/sextant-kubernetes
}

# A path of its own does not get into a binary: -trimpath.
build "$host"
export HOST_BINARY=$work/$host/sextant
go build -o "$work/pack" ./packaging/release
mkdir -p "$folder"
rm -f "$folder"/sextant[-_]* "$folder"/SHA256SUMS*

images=() kubernetes=()
for architecture in "${architectures[@]}"; do
	[ -e "$work/$architecture/sextant" ] || build "$architecture"
	say "packing for $architecture"
	binary=$work/$architecture/sextant name=sextant-$version-linux-$architecture
	ARCHITECTURE=$architecture scripts/deb.sh "$deb_version" "$folder" "$binary" >"$work/log" ||
		{ cat "$work/log" >&2 && exit 1; }
	for layout in rpm tar; do
		scripts/stage.sh "$work/$layout-$architecture" "$binary" "$architecture" "$layout"
	done
	"$work/pack" --version "$version" --key "$key" --out "$folder/$name.rpm" \
		rpm "$architecture=$work/rpm-$architecture"
	"$work/pack" --version "$version" --out "$folder/$name.tar.gz" \
		tar "$architecture=$work/tar-$architecture"
	"$HOST_BINARY" version --sbom --of "$binary" >"$folder/$name.cdx.json"
	images+=("$architecture=$work/tar-$architecture")
	cp -a "$work/tar-$architecture" "$work/kubernetes-$architecture"
	install -m 0755 "$work/$architecture/sextant-kubernetes" "$work/kubernetes-$architecture/usr/bin"
	kubernetes+=("$architecture=$work/kubernetes-$architecture")
done
"$work/pack" --version "$version" --out "$folder/sextant-$version-oci.tar" image "${images[@]}"
"$work/pack" --version "$version" --out "$folder/sextant-kubernetes-$version-oci.tar" image \
	"${kubernetes[@]}"
tar -C controller/kubernetes/deploy --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	--mtime="@$SOURCE_DATE_EPOCH" --transform 's,^chart,sextant-kubernetes,' -cf - chart |
	gzip -9n >"$folder/sextant-kubernetes-$version.tgz"

(cd "$folder" && sha256sum sextant[-_]* >SHA256SUMS)
if [ -n "$key" ]; then
	gpg --batch --yes --local-user "$key" --armor --detach-sign "$folder/SHA256SUMS"
	gpg --batch --armor --export "$key" >"$folder/sextant-signing-key.asc"
fi
say "in $folder:"
(cd "$folder" && ls -s --block-size=1k)
