package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/config"
	"sextant/lab"
	"sextant/packet/lists"
)

func (a *app) labCommand() *cobra.Command {
	return noun("lab", "Labs: networks of namespaces on this machine",
		seeAlso("sextant demo"),
		a.labUp(), a.labDown(), a.labRun(), a.labExec(), a.labLogs(), a.labList(),
		a.labExamples(), a.labLink(), a.labWire())
}

func (a *app) labUp() *cobra.Command {
	return a.labWithFile(&cobra.Command{
		Use: "up FILE", Short: "Bring a lab up; it stays until it is taken down",
		Long: `Bring up the lab that a file describes: namespaces, links, routes and processes. When the command ends the lab is
ready. It needs root. FILE is also the name of a lab that the program brings along: "sextant lab examples" lists them.`,
		Example:     "  sextant lab up quickstart\n  sextant lab up examples/quickstart.yaml",
		Annotations: seeAlso("sextant lab examples", "sextant lab exec", "sextant lab down"),
	}, func(ctx context.Context, spec *lab.Spec, options lab.Options) error {
		_, err := lab.Up(ctx, spec, options)
		return err
	})
}

// labFlags are how a lab is brought up.
type labFlags struct {
	wire        string
	readyWithin time.Duration
}

func (f *labFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.wire, "wire", string(lab.WireAuto),
		"what delays and loses the packets of links that don't say it: kernel (netem), user (a "+
			"process), or auto")
	cmd.Flags().DurationVar(&f.readyWithin, "ready-within", lab.DefaultReadyTimeout,
		"how long a process may take to be ready; emulated processors are slow")
}

func (a *app) labRun() *cobra.Command {
	return a.labWithFile(&cobra.Command{
		Use: "run FILE", Short: "Bring a lab up, run the steps of its file, take it down",
		Long: `Bring a lab up, run the steps that its file lists under "run", and take it down whatever happens. The exit code is 1
if a step failed.`,
		Example:     "  sextant lab run quickstart",
		Annotations: seeAlso("sextant lab up"),
	}, func(ctx context.Context, spec *lab.Spec, options lab.Options) error {
		return lab.Run(ctx, spec, options, nil)
	})
}

// labWithFile completes a command that brings up the lab of a file.
func (a *app) labWithFile(cmd *cobra.Command,
	bring func(context.Context, *lab.Spec, lab.Options) error) *cobra.Command {
	var f labFlags
	cmd.Args, cmd.ValidArgsFunction = takes("FILE"), completeLabFiles
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		spec, err := a.loadLab(args[0])
		if err != nil {
			return labError(err)
		}
		options, err := a.labOptionsWith(f)
		if err != nil {
			return err
		}
		return labError(bring(cmd.Context(), spec, options))
	}
	f.add(cmd)
	return cmd
}

func (a *app) labDown() *cobra.Command {
	return &cobra.Command{
		Use: "down NAME", Short: "Take a lab down, or what a crash left of it",
		Long: `Take a lab down, by its name or its file: its processes end, and nothing of it is left. A lab that is not there is
down.`,
		Example:           "  sextant lab down quickstart",
		Annotations:       seeAlso("sextant lab list", "sextant lab up"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completeLabs,
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := a.labName(args[0])
			if err != nil {
				return err
			}
			if _, err := lab.Open(name); errors.Is(err, os.ErrNotExist) && !a.quiet {
				a.say("there is no lab %q; what a crash may have left of it is removed", name)
			}
			return labError(lab.Down(name, a.labEvents()))
		},
	}
}

// labName takes the name out of a lab's file, if it is one.
func (a *app) labName(arg string) (string, error) {
	if ext := filepath.Ext(arg); ext != ".yaml" && ext != ".yml" {
		return arg, nil
	}
	spec, err := a.loadLab(arg)
	if err != nil {
		return "", err
	}
	return spec.Name, nil
}

func (a *app) labOptions() lab.Options {
	return lab.Options{
		CheckNode: func(node string, text []byte) error {
			_, err := config.Parse(node+".yaml", text)
			return err
		},
		Events: a.labEvents(),
		Stdout: behind(a.stdout),
		Stderr: a.stderr,
	}
}

func (a *app) labOptionsWith(f labFlags) (lab.Options, error) {
	o := a.labOptions()
	o.Wire, o.ReadyTimeout = lab.WireKind(f.wire), f.readyWithin
	if !o.Wire.Known() {
		return o, usageErrorf("%q is no wire; write auto, kernel or user", f.wire)
	}
	if f.readyWithin <= 0 {
		return o, usageErrorf("%v is no time; write --ready-within 30s or more", f.readyWithin)
	}
	return o, nil
}

// labEvents tells the milestones, or with -v each step.
func (a *app) labEvents() func(lab.Event) {
	return func(e lab.Event) {
		milestone := false
		switch e.(type) {
		case lab.LabUp, lab.LabDown, lab.Mounted, lab.LeftoversRemoved:
			milestone = true
		}
		if milestone && !a.quiet || a.verbose > 0 {
			a.say("%s", e)
		}
	}
}

// labError gives the kinds of a lab's errors their exit codes.
func labError(err error) error {
	if errors.Is(err, lab.ErrRunning) || errors.Is(err, lab.ErrBusy) {
		return coded{err, exitConflict}
	}
	if errors.Is(err, os.ErrNotExist) {
		return coded{err, exitNotFound}
	}
	return err
}

// completeLabs offers the labs that are there, then the nodes of one.
func (a *app) completeLabs(_ *cobra.Command, args []string,
	_ string) ([]string, cobra.ShellCompDirective) {
	labs, err := lab.List()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := lists.Map(labs, func(l lab.Summary) string { return l.Name + "\t" + string(l.Status) })
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeNodes(cmd *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeLabs(cmd, args, word)
	}
	l, err := lab.Open(args[0])
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	names := lists.Map(l.Nodes, func(n lab.Node) string { return n.Name })
	return names, cobra.ShellCompDirectiveNoFileComp
}

// labItem is a lab in a list.
type labItem struct {
	Name      string     `json:"name"`
	Status    lab.Status `json:"status"`
	Nodes     int        `json:"nodes"`
	Processes int        `json:"processes"` // that run now
	Created   time.Time  `json:"created"`
	File      string     `json:"file,omitempty"`
}

func (a *app) labList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the labs of this machine",
		Example:     "  sextant lab list",
		Annotations: seeAlso("sextant lab down"),
		RunE: func(*cobra.Command, []string) error {
			return answered(a, labsView)(lab.List())
		},
	}
}

func labsView(labs []lab.Summary) view {
	items := []labItem{}
	for _, l := range labs {
		items = append(items, labItem{l.Name, l.Status, len(l.Nodes), l.Processes, l.Created,
			l.File})
	}
	t := table{columns: []string{"NAME", "STATUS", "NODES", "PROCESSES", "CREATED", "FILE"}}
	return listView(items, t, func(l labItem) (string, []any) {
		return l.Name, []any{l.Name, l.Status, l.Nodes, l.Processes, l.Created.Format(time.RFC3339),
			orDash(l.File)}
	})
}

// openLab finds a lab, or says which there are.
func openLab(name string) (*lab.Lab, error) {
	l, err := lab.Open(name)
	if !errors.Is(err, os.ErrNotExist) {
		return l, err
	}
	labs, listErr := lab.List()
	if listErr != nil || len(labs) == 0 {
		return nil, notFoundf("there is no lab %q; bring one up: sextant lab up FILE", name)
	}
	names := lists.Map(labs, func(l lab.Summary) string { return l.Name })
	return nil, notFoundf("there is no lab %q; known: %s", name, strings.Join(names, ", "))
}

// nodeOf finds a node of a lab.
func nodeOf(name, node string) (*lab.Lab, *lab.Node, error) {
	l, err := openLab(name)
	if err != nil {
		return nil, nil, err
	}
	n, err := l.Node(node)
	if err != nil {
		return nil, nil, coded{err, exitNotFound}
	}
	return l, n, nil
}
