package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sextant/examples"
	"sextant/lab"
	"sextant/packet/lists"
)

// exampleItem is a lab that the program brings along.
type exampleItem struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

func (a *app) labExamples() *cobra.Command {
	return &cobra.Command{
		Use: "examples [NAME]", Short: "List the labs that the program brings along, or print one",
		Example:           "  sextant lab examples\n  sextant lab examples quickstart > mine.yaml",
		Annotations:       seeAlso("sextant lab up"),
		Args:              takes("[NAME]"),
		ValidArgsFunction: first(examples.Names),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.show(examplesView())
			}
			text, there := examples.Lab(args[0])
			if !there {
				return notFoundf("there is no example %q; known: %s", args[0],
					strings.Join(examples.Names(), ", "))
			}
			_, err := a.stdout.Write(text)
			return err
		},
	}
}

func examplesView() view {
	items := lists.Map(examples.Names(), func(name string) exampleItem {
		text, _ := examples.Lab(name)
		return exampleItem{name, examples.Summary(text)}
	})
	t := table{columns: []string{"NAME", "LAB"}}
	return listView(items, t, func(e exampleItem) (string, []any) {
		return e.Name, []any{e.Name, e.Summary}
	})
}

// loadLab reads a lab's file, or, if there is none of that name, what the program brings along:
// quickstart, or examples/quickstart.yaml as documents write it.
func (a *app) loadLab(arg string) (*lab.Spec, error) {
	spec, err := lab.Load(arg)
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(arg), "examples/"), ".yaml")
	text, there := examples.Lab(name)
	if !errors.Is(err, os.ErrNotExist) || !there {
		return spec, err
	}
	return lab.Parse(name+".yaml", text)
}

func completeLabFiles(_ *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range examples.Names() {
		if strings.HasPrefix(name, word) {
			return examples.Names(), cobra.ShellCompDirectiveDefault
		}
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
