package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

// probe is how long a service or backend is watched to learn whether it carries traffic: packets
// come of connections that are not idle.
const probe = 500 * time.Millisecond

func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// confirmServiceDeletion asks before a service goes that carries traffic.
func (a *app) confirmServiceDeletion(cmd *cobra.Command, name string, role api.Role,
	yes bool) error {
	return a.confirm(cmd, yes, "drain its backends at the edge first",
		func(ctx context.Context) (carried, error) {
			services, err := a.findServices(ctx, name, role)
			var sum carried
			for _, s := range services {
				sum.packets += s.Packets
				if s.Host != nil {
					sum.busy += s.Host.Connections
				}
				if s.Edge != nil {
					sum.busy += a.openAt(ctx, s.Name, s.Edge.Backends...)
				}
			}
			return sum, err
		})
}

// confirmBackendDeletion asks before a backend goes that carries traffic.
func (a *app) confirmBackendDeletion(cmd *cobra.Command, service, name string, yes bool) error {
	return a.confirm(cmd, yes, fmt.Sprintf("drain it first (sextant backend drain %s %s)", service,
		name),
		func(ctx context.Context) (carried, error) {
			b, err := a.findBackend(ctx, service, name)
			return carried{b.Packets, a.openAt(ctx, service, b)}, err
		})
}

// What asking for connections takes at most: the time for all, and backends at once.
const (
	askPatience = time.Second
	askedAtOnce = 16
)

// openAt is how many connections of a service are open at backends, as far as their hosts' agents
// tell in time. Of others, packets are all that is known.
func (a *app) openAt(ctx context.Context, service string, backends ...api.Backend) int {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var open atomic.Int64
	for some := range slices.Chunk(backends, askedAtOnce) {
		var asked sync.WaitGroup
		for _, b := range some {
			if b.Agent.IsValid() && ctx.Err() == nil {
				asked.Go(func() {
					if c, err := a.agent().Connections(ctx, service, b.Name); err == nil {
						open.Add(int64(c.Connections))
					}
				})
			}
		}
		asked.Wait()
	}
	return int(open.Load())
}

// carried is what a service or backend has carried so far.
type carried struct {
	packets uint64
	busy    int // connections that are open now
}

// confirm looks twice; what changes meanwhile, or is open, is traffic.
func (a *app) confirm(cmd *cobra.Command, yes bool, gentler string,
	look func(context.Context) (carried, error)) error {
	if yes {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout+probe)
	defer cancel()
	before, err := look(ctx)
	if err != nil {
		return err
	}
	a.sleep(ctx, probe)
	after, err := look(ctx)
	if err != nil {
		return err
	}
	traffic := after.since(before)
	switch {
	case traffic == "":
		return nil
	case !a.interactive:
		return &api.Error{Code: api.Conflict,
			Message: fmt.Sprintf("it carries traffic (%s); %s, or say --yes", traffic,
				gentler)}
	case !a.agrees("%s: it carries traffic (%s); delete it?", subjectOf(cmd), traffic):
		return &api.Error{Code: api.Conflict, Message: "not deleted; " + gentler}
	}
	return nil
}

func subjectOf(cmd *cobra.Command) string {
	text := subject(cmd)
	return text[:len(text)-len(": ")]
}

func (c carried) since(before carried) string {
	switch {
	case c.busy > 0:
		return plural(uint64(c.busy), "open connection")
	case c.packets > before.packets:
		return fmt.Sprintf("%s in %g s", plural(c.packets-before.packets, "packet"),
			probe.Seconds())
	}
	return ""
}
