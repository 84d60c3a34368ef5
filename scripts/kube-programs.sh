#!/usr/bin/env bash
# Builds the API server of Kubernetes, etcd and helm, with which tests run, into the user's cache. It takes about 20 minutes
# the first time, and nothing while controller/kubernetes/testserver/go.mod and the version of helm are as they were.
set -euo pipefail
cd "$(dirname "$0")/../controller/kubernetes/testserver"

readonly helm=v4.3.1
cache=${SEXTANT_KUBE_PROGRAMS:-${XDG_CACHE_HOME:-$HOME/.cache}/sextant/kube}
mkdir -p "$cache"

# fresh NAME FILE STAMP: program NAME is there, and was built from what FILE says.
fresh() { [ -x "$cache/$1" ] && [ "$(cat "$cache/$2.stamp" 2>/dev/null)" = "$3" ]; }

stamp=$(sha256sum go.mod | cut -d' ' -f1)
if ! { fresh kube-apiserver server "$stamp" && fresh etcd server "$stamp"; }; then
	version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${version#v1.}
	package=k8s.io/component-base/version
	echo "kube-programs: building etcd and kube-apiserver $version in $cache; about 15 minutes the first time"
	CGO_ENABLED=0 go build -ldflags '-s -w' -o "$cache/etcd" go.etcd.io/etcd/server/v3
	CGO_ENABLED=0 go build -ldflags "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}" \
		-o "$cache/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
	echo "$stamp" >"$cache/server.stamp"
fi
if ! fresh helm helm "$helm"; then
	echo "kube-programs: building helm $helm in $cache; about 5 minutes the first time"
	CGO_ENABLED=0 GOBIN=$cache go install -ldflags '-s -w' "helm.sh/helm/v4/cmd/helm@$helm"
	echo "$helm" >"$cache/helm.stamp"
fi
