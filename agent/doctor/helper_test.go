package doctor_test

import (
	"strings"
	"testing"

	"sextant/agent/doctor"
	"sextant/config"
	"sextant/linux/facts"
)

// diagnosed lists severity, code and place of each finding; all of them say all that they should.
func diagnosed(t *testing.T, node *config.Node, facts facts.Facts) (list []string) {
	t.Helper()
	for _, f := range doctor.Diagnose(node, facts, "v1") {
		list = append(list, strings.Join([]string{string(f.Severity), f.Code, f.On}, " "))
		if f.What == "" || f.Cause == "" || f.Mend == "" {
			t.Errorf("%s does not say all: %+v", f.Code, f)
		}
	}
	return list
}

func parseText(t *testing.T, text string) *config.Node {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return node
}
