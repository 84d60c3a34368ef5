package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/config"
)

// agent makes a client for the agent of this machine, of --socket, or of one elsewhere.
func (a *app) agent() *api.Client {
	client := a.distant(access.Agent, "socket")
	if client == nil {
		client = a.connect(a.socket)
	}
	if a.breaks {
		return client.BreakingConnections()
	}
	return client
}

// agentFor is agent, for commands that are made of their parts.
func (a *app) agentFor(*cobra.Command) *api.Client { return a.agent() }

// lister is a client of the agent for lists: --timeout is for each page of them.
func (a *app) lister() *api.Client { return a.agent().EachWithin(a.timeout) }

// breakFlag lets a command end connections.
func breakFlag(cmd *cobra.Command, breaks *bool) {
	cmd.Flags().BoolVar(breaks, "break-connections", false,
		"go on although connections end, which is refused else")
}

// showChanges prints what a write did: lines with +, - and ~.
func (a *app) showChanges(changes api.Changes) error {
	for _, w := range changes.Warnings {
		a.say("warning: %s", w)
	}
	switch a.output {
	case formatJSON, formatYAML:
		return a.show(view{value: changes})
	case formatName:
		for _, c := range changes.Items {
			fmt.Fprintln(a.stdout, c.Object)
		}
		return nil
	}
	for _, c := range changes.Items {
		if !a.quiet || changes.DryRun {
			fmt.Fprintln(a.stdout, a.colourChange(c))
		}
	}
	return nil
}

// changed shows the answer to a write.
func (a *app) changed(changes api.Changes, err error) error {
	if err != nil {
		return err
	}
	return a.showChanges(changes)
}

// Colours of a terminal (ECMA-48, SGR).
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

func (a *app) colourChange(c config.Change) string {
	if !a.coloured() {
		return c.String()
	}
	colour := map[config.Operation]string{config.Add: green, config.Remove: red,
		config.Modify: yellow}[c.Operation]
	return colour + c.String() + plain
}
