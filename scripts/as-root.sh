#!/usr/bin/env bash
# Runs a command as root: directly when we are root, else through sudo.
# go test -exec takes it too, so that tests are built by the user and run by root.
set -euo pipefail

if [ "$(id -u)" -eq 0 ]; then
	exec "$@"
fi
if ! command -v sudo >/dev/null; then
	echo "sextant: $(basename "$1") needs root; run make as root, or install sudo" >&2
	exit 1
fi
exec sudo env "PATH=$PATH" "GOFLAGS=${GOFLAGS-}" "CGO_ENABLED=${CGO_ENABLED-0}" "CI=${CI-}" "$@"
