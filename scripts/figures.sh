#!/usr/bin/env bash
# Draws docs/figures/*.dot as SVG beside them, in colours that follow the reader's light or dark mode. Each
# figure carries the checksum of its source, by which a test finds figures that are not up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

# rules INK LINE BOX PANEL LB HOST PATH BAD: colours of the classes that the sources use. Text and lines have a
# contrast of at least 4.5 to 1 in both modes.
rules() {
	cat <<-CSS
		text { fill: $1; font-family: system-ui, "DejaVu Sans", sans-serif; }
		.graph polygon { fill: $4; stroke: none; }
		.cluster polygon, .cluster path { fill: none; stroke: $2; stroke-dasharray: 3 3; }
		.node polygon, .node path, .node ellipse { fill: $3; stroke: $2; }
		.edge path { fill: none; stroke: $2; } .edge polygon { fill: $2; stroke: $2; }
		.plain polygon, .plain path { fill: none; stroke: none; }
		.lb polygon, .lb path { stroke: $5; stroke-width: 1.6; } .lb.edge polygon { fill: $5; }
		.srv polygon, .srv path { stroke: $6; stroke-width: 1.6; } .srv.edge polygon { fill: $6; }
		.te polygon, .te path { stroke: $7; stroke-width: 1.6; } .te.edge polygon { fill: $7; }
		.bad polygon, .bad path { stroke: $8; stroke-width: 1.6; } .bad.edge polygon { fill: $8; }
	CSS
}

style() {
	echo '<style>'
	rules '#1f2328' '#59636e' '#f6f8fa' '#ffffff' '#0550ae' '#116329' '#8250df' '#a40e26'
	echo '@media (prefers-color-scheme: dark) {'
	rules '#e6edf3' '#9198a1' '#21262d' '#0d1117' '#79c0ff' '#7ee787' '#d2a8ff' '#ff7b72'
	echo '}'
	echo '</style>'
}

draw() {
	local source=$1 svg=${1%.dot}.svg
	{
		echo '<?xml version="1.0" encoding="UTF-8"?>'
		echo "<!-- Drawn by make figures. Source: $(basename "$source"), SHA-256 $(sha256sum <"$source" | cut -c1-64) -->"
		dot -Tsvg -Gfontname='DejaVu Sans' -Nfontname='DejaVu Sans' -Efontname='DejaVu Sans' -Nfontsize=12 -Efontsize=11 \
			-Gfontsize=12 -Nshape=box -Nstyle=rounded -Nheight=0.4 -Gbgcolor=white -Gpad=0.2 "$source" |
			sed -e '1,/<svg/{/<svg/!d}' -e '/<!--/d' -e 's/ font-family="[^"]*"//' \
				-e 's/<svg width="\([0-9]*\)pt" height="\([0-9]*\)pt"/<svg role="img" width="\1" height="\2"/'
	} | awk -v style="$(style)" '{ print } /xmlns/ && !done { pending = 1 } pending && />$/ { print style; pending = 0; done = 1 }' >"$svg"
	echo "figures: $svg"
}

for source in docs/figures/*.dot; do
	draw "$source"
done
