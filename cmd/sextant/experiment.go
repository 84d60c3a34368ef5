package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/experiment"
	"sextant/experiment/cflb"
	"sextant/experiment/churn"
	"sextant/experiment/disjoint"
	"sextant/experiment/fabric"
	duplication "sextant/experiment/protection"
	"sextant/experiment/soak"
	"sextant/experiment/srlb"
	"sextant/experiment/together"
	"sextant/packet/lists"
)

func (a *app) experimentCommand() *cobra.Command {
	return noun("experiment", "Experiments of the literature, run again",
		seeAlso("sextant demo", "sextant path"),
		a.experimentList(), a.experimentRun(), a.experimentReport(),
		a.experimentJobs(), a.experimentJob(), a.experimentMerge())
}

// experiments are all that there are, in the order of the list.
func experiments() []experiment.Experiment {
	return slices.Concat(disjoint.All(), churn.All(), duplication.All(), srlb.All(), soak.All(),
		fabric.All(), cflb.All(), together.All())
}

func (a *app) experimentList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the experiments by paper: what each needs and how long it takes",
		Long: `List the experiments by paper. NEEDS names what the machine must have: "root" for network namespaces
and eBPF, and Debian packages to install (apt-get install). Without apache2, srlb leaves out the part on Apache.
LASTS is the time on two cores; --quick takes less.`,
		Example:     "  sextant experiment list\n  sextant experiment list -o wide",
		Annotations: seeAlso("sextant experiment run"),
		RunE: func(*cobra.Command, []string) error {
			return a.show(experimentsView())
		},
	}
}

// experimentItem is an experiment in JSON.
type experimentItem struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Paper  string   `json:"paper"`
	Source string   `json:"source"`
	Shows  string   `json:"shows"`
	Needs  []string `json:"needs"`
	Lasts  string   `json:"lasts"`
}

// titleColumns is what the other columns leave of 80.
const titleColumns = 34

// experimentsView has a table for each paper.
func experimentsView() view {
	var items struct {
		Items []experimentItem `json:"items"`
	}
	v := view{}
	of := map[experiment.Paper]*table{}
	for _, e := range experiments() {
		t := of[e.Paper]
		if t == nil {
			t = &table{title: string(e.Paper), columns: []string{"NAME", "LASTS", "NEEDS", "TITLE"},
				wide: []string{"SOURCE"}}
			of[e.Paper] = t
		}
		items.Items = append(items.Items, experimentItem{e.Name, e.Title, string(e.Paper),
			e.Source, e.Shows, slices.Concat([]string{}, e.Needs), e.Lasts})
		lines := folded(e.Title, titleColumns)
		t.add(e.Name, e.Lasts, orDash(strings.Join(e.Needs, ", ")), lines[0], e.Source)
		for _, line := range lines[1:] {
			t.add("", "", "", line, "")
		}
		v.names = append(v.names, e.Name)
	}
	v.value = items
	for _, paper := range experiment.Papers() {
		if t := of[paper]; t != nil {
			v.tables = append(v.tables, *t)
		}
	}
	return v
}

func (a *app) experimentRun() *cobra.Command {
	var o experiment.Options
	var all bool
	cmd := &cobra.Command{
		Use: "run NAME...", Short: "Run experiments and write reports with the source's numbers " +
			"beside ours",
		Long: `Run experiments. Each writes a folder: report.md, result.json, and its tables and charts as CSV and SVG. A run that is
interrupted resumes where it was; --fresh starts again. With -o json it prints what result.json of each has.`,
		Example: "  sextant experiment run disjoint-fig8\n  sextant experiment run " +
			"--all --quick --folder results-quick\n  sextant experiment run cflb-fig6 -o json",
		Annotations:       seeAlso("sextant experiment list", "sextant experiment report"),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !all {
				return usageErrorf("missing NAME, or --all; known: %s",
					strings.Join(experimentNames(), ", "))
			}
			o.Version = version
			if a.progress {
				o.Progress = a.progressLine
			}
			return a.runExperiments(cmd.Context(), o, args)
		},
	}
	folderFlag(cmd, &o.Folder)
	cmd.Flags().BoolVar(&all, "all", false, "run all experiments")
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "take fewer cases, to see that it runs")
	cmd.Flags().BoolVar(&o.Fresh, "fresh", false, "start again instead of resuming")
	cmd.Flags().IntVar(&o.Requests, "requests", 0,
		"of experiments that make requests, or iterations: how many in each setting, instead of "+
			"the source's number")
	cmd.Flags().StringVar(&o.Capture, "capture", "",
		"of cflb-fig6 and cflb-fig7: the packets of a pcap or pcapng `file` in place of "+
			"synthetic ones")
	cmd.Flags().IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0),
		"how many processors to use; results do not depend on it, times do")
	return cmd
}

func folderFlag(cmd *cobra.Command, folder *string) {
	cmd.Flags().StringVar(folder, "folder", "results", "where the folders of results are")
}

func completeExperiments(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return experimentNames(), cobra.ShellCompDirectiveNoFileComp
}

func experimentNames() []string {
	return lists.Map(experiments(), func(e experiment.Experiment) string { return e.Name })
}

// chosen are the experiments of these names, all without a name.
func chosen(names []string) ([]experiment.Experiment, error) {
	if len(names) == 0 {
		return experiments(), nil
	}
	var found []experiment.Experiment
	for _, name := range names {
		i := slices.IndexFunc(experiments(),
			func(e experiment.Experiment) bool { return e.Name == name })
		if i < 0 {
			return nil, notFoundf("there is no experiment %q; known: %s", name,
				strings.Join(experimentNames(), ", "))
		}
		found = append(found, experiments()[i])
	}
	return found, nil
}

func (a *app) runExperiments(ctx context.Context, o experiment.Options, names []string) error {
	selected, err := chosen(names)
	if err != nil {
		return err
	}
	structured := a.output == formatJSON || a.output == formatYAML
	for _, e := range selected {
		if !a.quiet {
			a.say("%s: %s (lasts about %s)", e.Name, e.Title, e.Lasts)
		}
		report, err := experiment.Conduct(ctx, e, o)
		if err != nil {
			return err
		}
		if !structured {
			fmt.Fprintln(a.stdout, report)
		}
	}
	if structured {
		return a.printResults(o.Folder, selected)
	}
	return nil
}

// printResults prints what experiments found: their files result.json as one list.
func (a *app) printResults(folder string, of []experiment.Experiment) error {
	list := api.List[json.RawMessage]{Items: []json.RawMessage{}}
	for _, e := range of {
		text, err := os.ReadFile(filepath.Join(folder, e.Name, experiment.ResultFile))
		if err != nil {
			return fmt.Errorf("read the result of %s: %w", e.Name, withoutPath(err))
		}
		list.Items = append(list.Items, text)
	}
	return a.show(view{value: list})
}

func (a *app) experimentReport() *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use: "report [NAME...]", Short: "Print the reports of experiments that were run",
		Example: "  sextant experiment report disjoint-fig8\n  sextant experiment " +
			"report > report.md",
		Annotations:       seeAlso("sextant experiment run"),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeExperiments,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.reportExperiments(folder, args)
		},
	}
	folderFlag(cmd, &folder)
	return cmd
}

// reportExperiments prints the reports of the named experiments, or of all that were run.
func (a *app) reportExperiments(folder string, names []string) error {
	selected, err := chosen(names)
	if err != nil {
		return err
	}
	printed := 0
	for _, e := range selected {
		text, err := os.ReadFile(filepath.Join(folder, e.Name, experiment.ReportFile))
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(names) == 0:
			continue
		case errors.Is(err, fs.ErrNotExist):
			return notFoundf("%s has no report in %s; run it first: sextant experiment "+
				"run %s", e.Name, folder, e.Name)
		case err != nil:
			return fmt.Errorf("read the report of %s: %w", e.Name, withoutPath(err))
		}
		if printed > 0 {
			fmt.Fprintln(a.stdout)
		}
		fmt.Fprint(a.stdout, string(text))
		printed++
	}
	if printed == 0 {
		return notFoundf("no experiment has a report in %s; run one first: sextant "+
			"experiment run NAME", folder)
	}
	return nil
}
