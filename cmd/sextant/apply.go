package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
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
The exit code is 0 if nothing would, 1 if something would, 2 if the file has faults or can't be read, 5 if no agent answers.`,
		Example: "  sextant lab exec quickstart edge -- sextant diff -f " +
			"/run/sextant/lab/quickstart/nodes/edge/node.yaml",
		Annotations: seeAlso("sextant apply", "sextant config show"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := a.readNodeText(cmd.Context(), file)
			if err != nil {
				return trouble(err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), a.patience(cmd, len(f.text)))
			defer cancel()
			changes, err := a.agent().Diff(ctx, f.name, f.text)
			if err != nil {
				return trouble(f.refused(err))
			}
			if err := a.showChanges(changes); err != nil {
				return err
			}
			return failedIf(len(changes.Items) > 0)
		},
	}
	fileFlag(cmd, &file)
	return cmd
}

// trouble gives an error of a comparison an exit code of its own: that of failures says that both
// sides differ.
func trouble(err error) error {
	if exitCode(err) == exitFailed {
		return coded{err, exitTrouble}
	}
	return err
}

func (a *app) applyCommand() *cobra.Command {
	var file string
	var dryRun bool
	var within time.Duration
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Make a node file the running configuration",
		Long: `Make a node file the running configuration. All of it is checked before anything changes, and no packet sees half
of the change. Applying the same file twice changes nothing.

A change that would end connections is refused, with how many those are: another number of buckets, another secret, a
backend that goes without having been drained. Name it with --break-connections if they may end.

With --confirm the change is undone after that time unless "sextant config confirm" comes before, also by an agent that was
restarted meanwhile: for changes that may cut you off. Whatever was applied can be undone: "sextant config rollback".

The agent gets 20 seconds more for each MiB of the file, unless --timeout says how long to wait.`,
		Example: "  sextant lab exec quickstart edge -- sextant apply --dry-run -f " +
			"/run/sextant/lab/quickstart/nodes/edge/node.yaml",
		Annotations: seeAlso("sextant diff", "sextant check", "sextant config"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if within != 0 && (dryRun || within < time.Second || within%time.Second != 0) {
				return usageErrorf("--confirm takes whole seconds, and no --dry-run beside it")
			}
			f, err := a.readNodeText(cmd.Context(), file)
			if err != nil {
				return err
			}
			// The agent is sent a file with faults too, so that its metrics tell of the failed
			// reload.
			ctx, cancel := context.WithTimeout(cmd.Context(), a.patience(cmd, len(f.text)))
			defer cancel()
			var changes api.Changes
			if within > 0 {
				changes, err = a.agent().ApplyUnconfirmed(ctx, f.name, f.text, within)
			} else {
				changes, err = a.agent().Apply(ctx, f.name, f.text, dryRun)
			}
			if err != nil {
				return f.refused(err)
			}
			if len(changes.Items) == 0 && !a.quiet {
				a.say("nothing to change")
			} else if within > 0 {
				a.say("this is undone in %s unless you say: sextant config confirm", within)
			}
			return a.showChanges(changes)
		},
	}
	fileFlag(cmd, &file)
	cmd.Flags().DurationVar(&within, "confirm", 0,
		"undo the change after this time unless it is confirmed; 0: keep it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check everything, change nothing")
	breakFlag(cmd, &a.breaks)
	return cmd
}
