package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ownTerms are words that the project uses in a sense of its own.
var ownTerms = []string{"backend", "bucket", "candidate", "CFLB", "chain", "controller", "drain",
	"edge", "egress", "elimination", "exporter", "flow cache", "generation", "head-end", "host",
	"hunting", "lab", "offer", "PCC", "previous owner", "protection", "RIB", "service", "SID",
	"sink", "spare", "SR policy", "stray", "trial", "VIP"}

func TestGlossary(t *testing.T) { check(t, "glossary", glossary) }

// glossary wants its rows in order, each once, and one for each own term that the metrics' page or
// the command line's help uses.
func glossary(r *repository) []finding {
	const name = "docs/glossary.md"
	used := strings.ToLower(string(r.texts["docs/reference/metrics.md"]) +
		string(r.texts["cmd/sextant/testdata/help.txt"]))
	var findings []finding
	var terms []string
	for i, line := range strings.Split(string(r.texts[name]), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || cells[0] == "| term" || strings.HasPrefix(line, "| ---") {
			continue
		}
		term := strings.ToLower(strings.TrimPrefix(cells[0], "| "))
		if len(terms) > 0 && terms[len(terms)-1] >= term {
			findings = append(findings, finding{name, i + 1,
				fmt.Sprintf("%q is out of order", term), "sort the rows, each term once"})
		}
		terms = append(terms, term)
	}
	for _, term := range ownTerms {
		lower := strings.ToLower(term)
		if strings.Contains(used, lower) && !slices.Contains(terms, lower) {
			findings = append(findings, finding{name, 1, fmt.Sprintf("%q has no row", term),
				"say in one line what it means"})
		}
	}
	return findings
}
