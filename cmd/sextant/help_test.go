package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
			if len(words) < 5 || words[1] != "lab" {
				continue
			}
			there := true
			switch words[2] {
			case "exec", "logs":
				spec := specs[words[3]]
				there = spec != nil && slices.ContainsFunc(spec.Nodes,
					func(n lab.NodeSpec) bool { return n.Name == words[4] })
			case "link":
				spec := specs[words[4]]
				there = spec != nil && (len(words) < 6 || words[5][0] == '-' ||
					hasLink(spec, words[5]))
			}
			if !there {
				t.Errorf("%s: example %q: no example has such a lab, and node or link in it",
					cmd.CommandPath(), example)
			}
		}
	})
}

// hasLink tells that a lab has a link NODE--NODE, or an end NODE:INTERFACE.
func hasLink(spec *lab.Spec, name string) bool {
	return slices.ContainsFunc(spec.Links, func(l lab.LinkSpec) bool {
		a, b := l.Ends[0], l.Ends[1]
		return slices.Contains([]string{a.Node + ":" + a.Interface, b.Node + ":" + b.Interface,
			a.Node + "--" + b.Node, b.Node + "--" + a.Node}, name)
	})
}

// Examples about topologies of the data sets need nothing else, so they run.
func TestExamplesOfDataSetsRun(t *testing.T) {
	sets := regexp.MustCompile(`^(zoo|zoo-unary|paper-table3)/`)
	t.Chdir(t.TempDir()) // some write files
	ran := 0
	eachCommand(t, func(_, cmd *cobra.Command) {
		for _, example := range strings.Split(cmd.Example, "\n") {
			words := exampleWords(strings.NewReplacer("'", "", `"`, "").Replace(example))
			if !slices.ContainsFunc(words, sets.MatchString) {
				continue
			}
			ran++
			if out := newWorld(t, fakeNode).run(words...); !strings.HasSuffix(out, "[exit 0]\n") {
				t.Errorf("%s: example: %s", cmd.CommandPath(), out)
			}
		}
	})
	if ran == 0 {
		t.Error("no example is about a topology of the data sets")
	}
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
	app := &app{env: w.env()}
	app.root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(string(page), variableOf(f)) {
			t.Errorf("man pages do not name %s", variableOf(f))
		}
	})
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
