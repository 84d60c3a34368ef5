package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

// drainInterval is the time between two questions for what is left.
const drainInterval = time.Second

func (a *app) backendDrain() *cobra.Command {
	cmd := a.backendState("drain", config.Draining,
		"Give a backend no new connections; those it has go on", "undrain")
	cmd.Long = `Give a backend no new connections; those it has go on.

With --wait the command prints how many connections the backend's host still has for the service, as often as the number changes,
and ends when none is left. The edge asks the host's agent for it: the host's node file needs "api: {metrics: ...}", and the
backend that address (sextant backend set SERVICE NAME --agent ADDRESS:PORT). UDP has no connections that could be counted.`
	cmd.Example += "\n  sextant lab exec quickstart edge -- sextant backend drain web web1 --wait"
	wait := false
	cmd.Flags().BoolVar(&wait, "wait", false, "print what is left, and end when nothing is")
	drain := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !wait {
			return drain(cmd, args)
		}
		asJSON, err := a.streams()
		if err != nil {
			return err
		}
		// Nothing is changed if nobody can say what is left.
		if _, err := a.connections(cmd, args); err != nil {
			return err
		}
		state := config.Draining
		ctx, cancel := a.withTimeout(cmd)
		defer cancel()
		changes, err := a.agent().PutBackend(ctx, api.Update, args[0], args[1],
			api.BackendSpec{State: &state})
		if err != nil {
			return err
		}
		for _, w := range changes.Warnings {
			a.say("warning: %s", w)
		}
		return a.awaitDrained(cmd, args, asJSON)
	}
	return cmd
}

func (a *app) connections(cmd *cobra.Command, args []string) (api.BackendConnections, error) {
	ctx, cancel := a.withTimeout(cmd)
	defer cancel()
	return a.agent().Connections(ctx, args[0], args[1])
}

// awaitDrained prints each change of what is left.
func (a *app) awaitDrained(cmd *cobra.Command, args []string, asJSON bool) error {
	for before := -1; cmd.Context().Err() == nil; a.sleep(cmd.Context(), drainInterval) {
		left, err := a.connections(cmd, args)
		if err != nil {
			return err
		}
		if left.Connections != before {
			if before = left.Connections; asJSON {
				err = json.NewEncoder(a.stdout).Encode(left)
			} else {
				_, err = fmt.Fprintf(a.stdout, "%s: %s left\n", left.Backend,
					plural(uint64(left.Connections), "connection"))
			}
		}
		if left.Connections == 0 || err != nil {
			return err
		}
	}
	return cmd.Context().Err()
}
