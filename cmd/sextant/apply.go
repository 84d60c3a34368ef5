package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// perMiB is how much longer the agent gets for a node file, by its size: it parses, judges and
// writes the text before it answers, perhaps on a busy machine.
const perMiB = 20 * time.Second

// patience is how long to wait for an answer about a node file of so many bytes: what --timeout
// says, where it is given.
func (a *app) patience(cmd *cobra.Command, size int) time.Duration {
	if cmd.Flags().Changed("timeout") {
		return a.timeout
	}
	return a.timeout + time.Duration(size)*perMiB>>20
}

func (a *app) diffCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "diff -f FILE", Short: "Show what applying a node file would change",
		Long: `Show what applying a node file would change in the running agent: lines with + come, with - go, with ~ differ.
The exit code is 0 if nothing would, 1 if something would.`,
		Example: "  sextant lab exec quickstart edge -- sextant diff -f " +
			"/run/sextant/lab/quickstart/nodes/edge/node.yaml",
		Annotations: seeAlso("sextant apply", "sextant config show"),
		Args:        takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := a.readNodeFile(file)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), a.patience(cmd, len(f.text)))
			defer cancel()
			changes, err := a.agent().Diff(ctx, f.name, f.text)
			if err != nil {
				return err
			}
			if err := a.showChanges(changes); err != nil {
				return err
			}
			if len(changes.Items) > 0 {
				return silentExit(exitFailed)
			}
			return nil
		},
	}
	fileFlag(cmd, &file)
	return cmd
}

func (a *app) applyCommand() *cobra.Command {
	var file string
	var dryRun bool
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Make a node file the running configuration",
		Long: `Make a node file the running configuration. All of it is checked before anything changes, and no packet sees half
of the change. Applying the same file twice changes nothing.

A change that would end connections is refused, with how many those are: another number of buckets, another secret, a
backend that goes without having been drained. Name it with --break-connections if they may end.

The agent gets 20 seconds more for each MiB of the file, unless --timeout says how long to wait.`,
		Example: "  sextant lab exec quickstart edge -- sextant apply --dry-run -f " +
			"/run/sextant/lab/quickstart/nodes/edge/node.yaml",
		Annotations: seeAlso("sextant diff", "sextant check"),
		Args:        takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, faults := a.readNodeFile(file)
			if faults != nil && f.text == nil {
				return faults
			}
			// The agent is sent a file with faults too, so that its metrics tell of the failed
			// reload.
			ctx, cancel := context.WithTimeout(cmd.Context(), a.patience(cmd, len(f.text)))
			defer cancel()
			changes, err := a.agent().Apply(ctx, f.name, f.text, dryRun)
			switch {
			case err != nil && faults != nil:
				return faults
			case err != nil:
				return err
			}
			if len(changes.Items) == 0 && !a.quiet {
				a.say("nothing to change")
			}
			return a.showChanges(changes)
		},
	}
	fileFlag(cmd, &file)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check everything, change nothing")
	breakFlag(cmd, &a.breaks)
	return cmd
}
