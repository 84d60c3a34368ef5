package lint

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// figures wants each drawing to be that of its source, and each source to be drawn.
func figures(r *repository) []finding {
	const folder = "docs/figures/"
	var findings []finding
	for _, name := range r.files {
		source, ok := strings.CutSuffix(name, ".dot")
		if !ok || !strings.HasPrefix(name, folder) {
			continue
		}
		drawn := string(r.texts[source+".svg"])
		if sum := fmt.Sprintf("%x", sha256.Sum256(r.texts[name])); !strings.Contains(drawn, sum) {
			findings = append(findings, finding{name, 1, source + ".svg is not drawn from it",
				"run make figures, and look at the figure"})
		}
	}
	return findings
}

func TestFigures(t *testing.T) { check(t, "figures", figures) }
