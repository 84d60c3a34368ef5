package main

import (
	"strings"
	"testing"
)

// A role that does not exist is no role without services.
func TestServicesOfUnknownRole(t *testing.T) {
	for _, arguments := range [][]string{{"list"}, {"show", "web"}, {"show", "none"}} {
		w := newWorld(t, fakeNode)
		arguments = append(append([]string{"service"}, arguments...), "--role", "hots")
		if out := w.run(arguments...); !strings.Contains(out, `unknown role "hots"`) ||
			!strings.HasSuffix(out, "[exit 2]\n") {
			t.Errorf("%v:\n%s", arguments, out)
		}
	}
}
