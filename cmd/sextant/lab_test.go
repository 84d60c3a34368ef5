package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestLabsThatAreNotThere(t *testing.T) {
	w := newWorld(t, fakeNode)
	for _, line := range []string{"lab exec no-such-lab edge1 -- sextant status",
		"lab logs no-such-lab edge1"} {
		out := w.run(strings.Fields(line)...)
		if !strings.Contains(out, `edge1: there is no lab "no-such-lab"; `) ||
			!strings.HasSuffix(out, "[exit 3]\n") {
			t.Errorf("%s", out)
		}
	}
}

func TestNodeCommand(t *testing.T) {
	for _, c := range []struct {
		words []string
		shell string
		want  []string
	}{
		{[]string{"--", "ip", "-6", "route"}, "", []string{"ip", "-6", "route"}},
		{[]string{"ip", "--", "x"}, "", []string{"ip", "--", "x"}},
		{nil, "/bin/bash", []string{"/bin/bash"}},
		{[]string{"--"}, "", []string{"/bin/sh"}},
	} {
		got, err := nodeCommand(c.words, c.shell)
		if err != nil || !slices.Equal(got.Args, c.want) {
			t.Errorf("nodeCommand(%q, %q) = %q, %v; want %q", c.words, c.shell, got.Args, err,
				c.want)
		}
	}
	self, err := nodeCommand([]string{"sextant", "status"}, "")
	if err != nil || self.Args[0] == "sextant" || self.Args[1] != "status" {
		t.Errorf("sextant on a node is %q, %v", self.Args, err)
	}
}

func TestExitCodesPass(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": exitFailed} {
		if got := exitCode(exitOf(exec.Command("/bin/sh", "-c", script).Run())); got != want {
			t.Errorf("after %q: exit code %d, want %d", script, got, want)
		}
	}
}

// A file is preferred to an example of its name; examples are found under all names that documents
// give them.
func TestExamplesByName(t *testing.T) {
	a := &app{}
	t.Chdir(t.TempDir())
	for _, arg := range []string{"quickstart", "examples/quickstart.yaml", "quickstart.yaml"} {
		spec, err := a.loadLab(arg)
		if err != nil || spec.Name != "quickstart" {
			t.Errorf("%s: %v", arg, err)
		}
	}
	if _, err := a.loadLab("none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := os.WriteFile("quickstart.yaml", []byte("name: [\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := a.loadLab("quickstart.yaml"); err == nil {
		t.Error("a broken file of an example's name is not read")
	}
}
