#!/usr/bin/env bash
# Builds the documentation as a site of static pages with a search, into a folder. Fails if a link
# of a page leads nowhere, or if a page would have a browser fetch something from elsewhere.
#
#   scripts/site.sh BINARY FOLDER
#
# BINARY writes the pages of its commands. Sphinx comes from PyPI into .cache/site.
set -euo pipefail
shopt -s extglob
cd "$(dirname "$0")/.."
readonly binary=$1 folder=$2 tools=.cache/site

if ! cmp -s packaging/site/requirements.txt "$tools/requirements.txt"; then
	echo "site: fetching Sphinx from PyPI into $tools"
	rm -rf "$tools"
	python3 -m venv "$tools"
	"$tools/bin/pip" install --quiet --disable-pip-version-check -r packaging/site/requirements.txt
	cp packaging/site/requirements.txt "$tools/"
fi

source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git ls-files -z '*.md' ':!*/testdata/*' 'docs/*' 'examples/*.yaml' LICENSE 'packaging/monitoring/*' scripts/deps.sh \
	te/topology/generate/random.go agent/southbound/southboundpb/southbound.proto controller/schedulerpb/scheduler.proto |
	xargs -0 cp --parents -t "$source"
cp packaging/site/conf.py "$source/"
install -D packaging/site/site.css "$source/_static/site.css"
"$binary" man --markdown "$source/docs/commands"
sed -i 's/^##/#/' "$source"/docs/commands/*.md # a page begins with its title

# contents CAPTION PAGE... is a part of the navigation.
contents() {
	printf '\n```{toctree}\n:hidden:\n:caption: %s\n' "$1"
	shift
	printf '%s\n' "${@%.md}"
	printf '```\n'
}

(
	cd "$source"
	contents 'Begin' docs/README.md docs/tutorial/*.md docs/howto/install.md
	contents 'How to' docs/howto/!(install).md
	contents 'Explanation' docs/explanation/*.md docs/glossary.md
	contents 'Reference' docs/commands/sextant.md docs/reference/*.md
	contents 'Results' docs/results/*.md
	contents 'The project' ARCHITECTURE.md CONTRIBUTING.md SECURITY.md CHANGELOG.md
) >"$source/contents"
cat "$source/contents" >>"$source/README.md"
(
	cd "$source/docs/commands"
	printf '\n```{toctree}\n:hidden:\n'
	printf '%s\n' sextant_*.md | sed 's/\.md$//'
	printf '```\n'
) >>"$source/docs/commands/sextant.md"

rm -rf "$folder"
"$tools/bin/sphinx-build" --quiet --fail-on-warning --keep-going -b dirhtml "$source" "$folder"
rm -rf "$folder/.doctrees" "$folder/.buildinfo" "$folder/_sources"
echo '<!doctype html><title>Sextant</title><meta http-equiv="refresh" content="0; url=README/">' \
	>"$folder/index.html"

# Links that a reader follows may lead elsewhere; what a browser fetches by itself may not.
fetches='<(script|img|iframe)[^>]+src="(https?:)?//'
fetches+='|<link[^>]+rel="(stylesheet|preload|icon)"[^>]+href="(https?:)?//'
if grep -rEn --include='*.html' "$fetches" "$folder"; then
	echo "site: the pages above fetch from elsewhere" >&2
	exit 1
fi
echo "site: $(find "$folder" -name '*.html' | wc -l) pages in $folder; read it: python3 -m http.server -d $folder"
