package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sextant/experiment"
)

func (a *app) experimentJobs() *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use: "jobs NAME FOLDER", Short: "Write a file for each part of an experiment, for many " +
			"machines",
		Long: `Write a file for each part of an experiment into FOLDER. "sextant experiment job FILE"
computes one, on any machine that has the folder; the outcome lies in FOLDER/parts (of --quick in
FOLDER/parts-quick). "sextant experiment merge" collects them. Experiments whose parts follow each
other have no jobs.`,
		Example: `  sextant experiment jobs fabric-baselines sweep
  ls sweep/*.json | parallel sextant experiment job
  sextant experiment merge fabric-baselines sweep`,
		Annotations:       seeAlso("sextant experiment job", "sextant experiment merge"),
		Args:              takes("NAME", "FOLDER"),
		ValidArgsFunction: completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			selected, err := chosen(args[:1])
			if err != nil {
				return err
			}
			n, err := experiment.WriteJobs(cmd.Context(), selected[0], args[1], quick)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "%d jobs in %s\n", n, args[1])
			return nil
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "take fewer cases, to see that it runs")
	return cmd
}

func (a *app) experimentJob() *cobra.Command {
	return &cobra.Command{
		Use: "job FILE", Short: "Compute one part of an experiment",
		Long: `Compute the part of an experiment that FILE names, and leave the outcome in the folder
"parts" beside it, or "parts-quick". A part that is there is not computed again.`,
		Example:     `  sextant experiment job sweep/00000-symmetric-web-search-0.2-ecmp.json`,
		Annotations: seeAlso("sextant experiment jobs", "sextant experiment merge"),
		Args:        takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := experiment.ReadJob(args[0])
			if err != nil {
				return err
			}
			selected, err := chosen([]string{j.Experiment})
			if err != nil {
				return err
			}
			return experiment.RunJob(cmd.Context(), selected[0], j, args[0])
		},
	}
}

func (a *app) experimentMerge() *cobra.Command {
	var o experiment.Options
	cmd := &cobra.Command{
		Use: "merge NAME FOLDER", Short: "Write the report of an experiment whose jobs are done",
		Example:           "  sextant experiment merge fabric-baselines sweep",
		Annotations:       seeAlso("sextant experiment jobs", "sextant experiment report"),
		Args:              takes("NAME", "FOLDER"),
		ValidArgsFunction: completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			selected, err := chosen(args[:1])
			if err != nil {
				return err
			}
			o.Version, o.Workers = version, 1
			report, err := experiment.Merge(cmd.Context(), selected[0], args[1], o)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, report)
			return nil
		},
	}
	folderFlag(cmd, &o.Folder)
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "the jobs were written with --quick")
	return cmd
}
