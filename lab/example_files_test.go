package lab_test

import (
	"testing"

	"sextant/config"
	"sextant/lab"
)

// TestExamples reads every example as a user would, down to the configurations
// of its nodes.
func TestExamples(t *testing.T) {
	each(t, "../examples/*.yaml", func(t *testing.T, path string) {
		spec, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lab.RouteText(spec); err != nil {
			t.Error(err)
		}
		files, err := lab.NodeFiles(spec)
		if err != nil {
			t.Fatal(err)
		}
		for node, text := range files {
			if _, err := config.Parse(node, []byte(text)); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	})
}
