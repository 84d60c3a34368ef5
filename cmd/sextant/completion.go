package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
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

// completeServices offers the names of services for the first argument.
func (a *app) completeServices(cmd *cobra.Command, args []string,
	_ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.ask(cmd, func(ctx context.Context, agent *api.Client) ([]string, error) {
		services, err := agent.Services(ctx, "", "")
		var names []string
		for _, s := range services {
			names = append(names, s.Name+"\t"+s.Endpoint().String())
		}
		return names, err
	})
}

// completeBackends offers the names of services, then those of the service's backends.
func (a *app) completeBackends(cmd *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeServices(cmd, args, word)
	}
	return a.ask(cmd, func(ctx context.Context, agent *api.Client) ([]string, error) {
		backends, err := agent.Backends(ctx, args[0])
		var names []string
		for _, b := range backends {
			names = append(names, b.Name+"\t"+b.SID.String()+" "+string(b.State))
		}
		return names, err
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
