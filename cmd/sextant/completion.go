package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/packet/lists"
)

// completionLimit bounds how long a key press waits for the agent.
const completionLimit = 200 * time.Millisecond

// complete offers fixed words for a flag. It panics if the command has no such flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("no flag --" + flag + " to complete: " + err.Error())
	}
}

// first offers words for the first argument alone.
func first(words func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

// offers offers what an agent has for the first argument, each with a remark.
func offers[T any](a *app, list func(*api.Client, context.Context) ([]T, error),
	word func(T) (name, remark string)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.ask(cmd, func(ctx context.Context, agent *api.Client) ([]string, error) {
			all, err := list(agent, ctx)
			return lists.Map(all, func(one T) string {
				name, remark := word(one)
				return name + "\t" + remark
			}), err
		})
	}
}

// completeServices offers the names of services for the first argument.
func (a *app) completeServices(cmd *cobra.Command, args []string,
	typed string) ([]string, cobra.ShellCompDirective) {
	return offers(a, (*api.Client).ServiceNames, func(s api.ServiceName) (string, string) {
		return s.Name, s.Endpoint
	})(cmd, args, typed)
}

// completeBackends offers the names of services, then those of the service's backends.
func (a *app) completeBackends(cmd *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeServices(cmd, args, word)
	}
	return a.ask(cmd, func(ctx context.Context, agent *api.Client) ([]string, error) {
		backends, err := agent.Backends(ctx, args[0])
		return lists.Map(backends, func(b api.Backend) string {
			return b.Name + "\t" + b.SID.String() + " " + string(b.State)
		}), err
	})
}

func (a *app) ask(
	cmd *cobra.Command, question func(context.Context, *api.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	if a.settle(cmd) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completionLimit)
	defer cancel()
	// Without an agent there is nothing to offer, and nothing to say in the middle of a command
	// line.
	names, _ := question(ctx, a.agent())
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Print a completion script for a shell",
		Long: `Print a script that makes a shell complete commands, flags, and the names of services and backends, which it asks
the running agent for.`,
		Example: "  source <(sextant completion bash)\n  sextant completion zsh > " +
			"\"${fpath[1]}/_sextant\"",
		Annotations: seeAlso("sextant version"),
		Args:        takes("SHELL"),
		ValidArgs:   []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
			return usageErrorf("unknown shell %q; choose bash, zsh, fish or powershell", args[0])
		},
	}
}
