#!/usr/bin/env bash
# Prints the version of this tree: what VERSION says, and the commit behind a plus sign unless the
# commit has the tag v<VERSION>. A tree without git, such as a release archive, is that version.
#
#   scripts/version.sh             0.1.0+0830c2b51234, with .dirty if files differ from the commit
#   scripts/version.sh --debian    0.1.0+git20261123042436.0830c2b51234: later commits sort higher
#   scripts/version.sh --revision  0830c2b51234: the commit alone; nothing without git
set -euo pipefail
cd "$(dirname "$0")/.."

# A clone that belongs to another user, as in a container, is fine to read.
in_git() { git -c safe.directory='*' "$@" 2>/dev/null; }

readonly form=${1:-}
version=$(cat VERSION)
dirty=''
if top=$(in_git rev-parse --show-toplevel) && [ "$top" -ef . ] && commit=$(in_git rev-parse --short=12 HEAD); then
	if [ "$form" = --revision ]; then
		echo "$commit"
		exit
	fi
	[ -z "$(in_git status --porcelain --untracked-files=no)" ] || dirty=.dirty
	if [ "$form" = --debian ]; then
		when=$(TZ=UTC in_git log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd)
		commit=git$when.$commit dirty=''
	fi
	if [ -n "$dirty" ] || ! in_git tag --points-at HEAD | grep -qxF "v$version"; then
		version+=+$commit$dirty
	fi
fi
[ "$form" = --revision ] || echo "$version"
