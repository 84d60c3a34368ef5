package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
)

// onNode are the commands that work on this machine itself, by what they need of it: they can't be
// done for another one by its API.
var onNode = map[string]string{
	"agent":            "runs programs in the kernel of this machine",
	"controller":       "runs a daemon on this machine",
	"unload":           "detaches programs from the kernel of this machine",
	"doctor":           "looks at the kernel, interfaces and processes of this machine",
	"support-bundle":   "collects files and the kernel's state of this machine",
	"token":            "changes a file of this machine",
	"path probe":       "sends packets from this machine",
	"path mptcp":       "opens subflows of this machine's connections",
	"telemetry listen": "listens on this machine",
}

// refuseElsewhere refuses an agent elsewhere for a command that works on this machine.
func (a *app) refuseElsewhere(cmd *cobra.Command) error {
	if a.address == "" && a.context == "" {
		return nil
	}
	name := strings.Join(strings.Fields(cmd.CommandPath())[1:], " ")
	if !worksHere(cmd) {
		return nil
	}
	noun, _, _ := strings.Cut(name, " ")
	return usageErrorf("%s does not work by --address or --context: it %s; run it on that node "+
		"(ssh NODE sextant %s)", name, cmp.Or(onNode[name], onNode[noun]), name)
}

// worksHere reports whether a command works on this machine itself.
func worksHere(cmd *cobra.Command) bool {
	name := strings.Join(strings.Fields(cmd.CommandPath())[1:], " ")
	_, here := onNode[name]
	return here || strings.HasPrefix(name, "token ")
}

// refuseAgentSocket refuses the flag of the agent's socket for a command that asks the controller
// alone. An agent's console is shown without --controller.
func refuseAgentSocket(cmd *cobra.Command) error {
	if cmd.Name() == "console" || cmd.Flags().Lookup("controller") == nil ||
		!cmd.Flags().Changed("socket") {
		return nil
	}
	return usageErrorf("--socket names an agent's socket, and this command asks the controller; " +
		"name its socket with --controller")
}
