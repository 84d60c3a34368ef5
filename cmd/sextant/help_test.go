package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sextant/lab"
)

// eachCommand visits all commands of the product.
func eachCommand(t *testing.T, visit func(root, cmd *cobra.Command)) {
	t.Helper()
	root := (&app{env: newWorld(t, fakeNode).env()}).root()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		visit(root, cmd)
		for _, c := range cmd.Commands() {
			if c.Name() != "help" {
				walk(c)
			}
		}
	}
	walk(root)
}

func TestEveryCommandIsExplained(t *testing.T) {
	eachCommand(t, func(_, cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || strings.Contains(cmd.Short,
			"\n") {
			t.Errorf("%s: the summary %q is not one line without a full stop", path, cmd.Short)
		}
		if cmd.Example == "" && !cmd.HasSubCommands() {
			t.Errorf("%s: no example", path)
		}
		if cmd.Annotations["see also"] == "" {
			t.Errorf("%s: no See also", path)
		}
	})
}

// What help refers to is there, and examples are command lines that can be parsed.
func TestHelpIsTrue(t *testing.T) {
	eachCommand(t, func(root, cmd *cobra.Command) {
		for _, also := range strings.Split(cmd.Annotations["see also"], ", ") {
			if found, _, err := root.Find(strings.Fields(also)[1:]); err != nil ||
				found.CommandPath() != also {
				t.Errorf("%s: see also %q: there is no such command", cmd.CommandPath(), also)
			}
		}
		for _, example := range strings.Split(cmd.Example, "\n") {
			if words := exampleWords(example); len(words) > 0 {
				parses(t, cmd, words)
			}
		}
	})
}

// Examples that run inside a lab name nodes of a lab among the examples.
func TestExamplesFitTheLab(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]*lab.Spec{}
	for _, file := range files {
		spec, err := lab.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		specs[spec.Name] = spec
	}
	eachCommand(t, func(_, cmd *cobra.Command) {
		for _, example := range strings.Split(cmd.Example, "\n") {
			words := strings.Fields(example)
			if len(words) < 5 || words[1] != "lab" || words[2] != "exec" && words[2] != "logs" {
				continue
			}
			spec := specs[words[3]]
			there := spec != nil && slices.ContainsFunc(spec.Nodes,
				func(n lab.NodeSpec) bool { return n.Name == words[4] })
			if !there {
				t.Errorf("%s: example %q: no example has such a lab and node", cmd.CommandPath(),
					example)
			}
		}
	})
}

// exampleWords returns the arguments of sextant in an example, without what the shell takes. An
// example that runs inside a lab is judged by the command there.
func exampleWords(example string) []string {
	if _, inner, ok := strings.Cut(example, " -- "); ok {
		example = inner
	}
	words := strings.Fields(strings.Trim(strings.TrimSpace(example), ")"))
	for i, w := range words {
		if w == ">" {
			words = words[:i]
			break
		}
	}
	if len(words) > 1 && words[0] == "source" {
		words[1] = strings.TrimPrefix(words[1], "<(")
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "sextant" {
		return nil
	}
	return words[1:]
}

func parses(t *testing.T, cmd *cobra.Command, words []string) {
	t.Helper()
	root := (&app{env: newWorld(t, fakeNode).env()}).root()
	found, args, err := root.Find(words)
	if err != nil {
		t.Errorf("%s: example %q: %v", cmd.CommandPath(), words, err)
		return
	}
	if err := found.ParseFlags(args); err != nil {
		t.Errorf("%s: example %q: %v", cmd.CommandPath(), words, err)
		return
	}
	if err := found.ValidateArgs(found.Flags().Args()); err != nil {
		t.Errorf("%s: example %q: %v", cmd.CommandPath(), words, err)
	}
}

func TestHelpText(t *testing.T) {
	w := newWorld(t, fakeNode)
	golden(t, "help", w.run("service", "delete", "--help")+w.run("--help"))
}

func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0") // the date in the footer of the pages
	w := newWorld(t, fakeNode)
	folder := filepath.Join(t.TempDir(), "man8")
	if out := w.run("man", folder); !strings.Contains(out, "[exit 0]") {
		t.Fatal(out)
	}
	eachCommand(t, func(_, cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd.HasParent() {
			return
		}
		if _, err := os.Stat(filepath.Join(folder, pageName(cmd.CommandPath())+".8")); err != nil {
			t.Errorf("%s has no page: %v", cmd.CommandPath(), err)
		}
	})
	page, err := os.ReadFile(filepath.Join(folder, "sextant-backend-delete.8"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "man", string(page))
}

func TestCompletionScripts(t *testing.T) {
	w := newWorld(t, fakeNode)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := w.run("completion", shell); !strings.Contains(out, "sextant") ||
			!strings.HasSuffix(out,
				"[exit 0]\n") {
			t.Errorf("completion %s: %.200s", shell, out)
		}
	}
}
