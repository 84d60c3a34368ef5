package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) configHistory() *cobra.Command {
	return &cobra.Command{
		Use: "history [NUMBER]", Short: "List the configurations that ran, or print one",
		Long: `List the configurations that ran on this node, the latest last: since when, who asked for it, by which command, and what it
changed against the one before. With a number, print that one as a node file, without its secrets. The latest 50 are kept,
as long as they take less than 64 MiB.`,
		Example:     "  sextant lab exec quickstart edge -- sextant config history",
		Annotations: seeAlso("sextant config rollback"),
		Args:        takes("[NUMBER]"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if len(args) == 1 {
				number, err := configNumber(args[0])
				if err != nil {
					return err
				}
				text, err := a.agent().PastConfig(ctx, number)
				if err == nil {
					_, err = a.stdout.Write(text)
				}
				return err
			}
			return answered(a, historyView)(a.agent().History(ctx))
		}),
	}
}

func historyView(list []api.Applied) view {
	t := table{columns: []string{"NUMBER", "TIME", "ACTION", "BY", "CHANGES", "STATE"},
		wide: []string{"FIRST-CHANGE"}}
	return listView(list, t, func(one api.Applied) (string, []any) {
		state, first := "", "-"
		if one.Current {
			state = "runs"
		}
		if until := one.ConfirmUntil; until != nil {
			state = "undone at " + until.UTC().Format(time.TimeOnly) + " UTC"
		}
		if len(one.Changes) > 0 {
			first = one.Changes[0]
		}
		number := strconv.Itoa(one.Number)
		return number, []any{number, one.Time.UTC().Format(time.RFC3339), one.Action, one.By,
			one.ChangeCount, orDash(state), first}
	})
}

func configNumber(text string) (int, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, usageErrorf("%q is no number of a configuration; sextant config history lists "+
			"them", text)
	}
	return number, nil
}

func (a *app) configRollback() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "rollback [NUMBER]", Short: "Run an earlier configuration again",
		Long: `Run an earlier configuration again: that of a number, or the previous one. It is applied as by "sextant apply": all
of it is checked first, and what would end connections is refused. A configuration that waits for a confirmation is undone.`,
		Example: "  sextant lab exec quickstart edge -- " +
			"sextant config rollback --dry-run",
		Annotations: seeAlso("sextant config history", "sextant apply"),
		Args:        takes("[NUMBER]"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			number := 0
			if len(args) == 1 {
				var err error
				if number, err = configNumber(args[0]); err != nil {
					return err
				}
			}
			changes, err := a.agent().Rollback(ctx, number, dryRun)
			if err != nil {
				return err
			}
			if len(changes.Items) == 0 && !a.quiet {
				a.say("nothing to change")
			}
			return a.showChanges(changes)
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check everything, change nothing")
	breakFlag(cmd, &a.breaks)
	return cmd
}

func (a *app) configConfirm() *cobra.Command {
	return &cobra.Command{
		Use: "confirm", Short: "Keep what was applied with --confirm",
		Long:        `Keep what "sextant apply --confirm TIME" has applied, and what is undone otherwise.`,
		Example:     "  sextant config confirm",
		Annotations: seeAlso("sextant apply", "sextant config history"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return a.agent().Confirm(ctx)
		}),
	}
}
