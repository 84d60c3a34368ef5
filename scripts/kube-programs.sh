#!/usr/bin/env bash
# Builds the API server of Kubernetes and etcd, with which tests run, into the user's cache. It takes about 15 minutes the
# first time, and nothing while controller/kubernetes/testserver/go.mod is as it was.
set -euo pipefail
cd "$(dirname "$0")/../controller/kubernetes/testserver"

cache=${SEXTANT_KUBE_PROGRAMS:-${XDG_CACHE_HOME:-$HOME/.cache}/sextant/kube}
stamp=$(sha256sum go.mod | cut -d' ' -f1)
if [ -x "$cache/kube-apiserver" ] && [ -x "$cache/etcd" ] && [ "$(cat "$cache/stamp" 2>/dev/null)" = "$stamp" ]; then
	exit 0
fi
mkdir -p "$cache"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
package=k8s.io/component-base/version
echo "kube-programs: building etcd and kube-apiserver $version in $cache; about 15 minutes the first time"
CGO_ENABLED=0 go build -ldflags '-s -w' -o "$cache/etcd" go.etcd.io/etcd/server/v3
CGO_ENABLED=0 go build -ldflags "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}" \
	-o "$cache/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
echo "$stamp" >"$cache/stamp"
