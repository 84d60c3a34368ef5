package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sextant/config"
	"sextant/kernel"
)

// Options are how an agent is started.
type Options struct {
	Node         *config.Node // the node file, with its secret
	PinDirectory string       // on the bpf file system; "" is PinDirectory of the node's name
	Version      string       // of the binary
	Log          *slog.Logger
}

// Agent is a running node. Its methods may be called at the same time, from any goroutine.
type Agent struct {
	options Options
	started time.Time
	work    chan func() // for the owner goroutine
	done    chan struct{}

	// Only the owner goroutine touches what follows.
	store    *store
	node     *config.Node // what runs
	dir      string       // of pins
	cgroup   string       // root of the cgroup2 file system
	edge     *edgeRole    // nil: the node has no edge
	host     *hostRole    // nil: the node has no host
	warnings []string
	metrics  *metrics
}

// Run takes over the node's data plane and keeps it until ctx ends. It returns nil when ctx ended it; forwarding goes on
// then. An error before that means that nothing was changed.
func Run(ctx context.Context, options Options) error {
	a := &Agent{options: options, started: time.Now(), work: make(chan func()), done: make(chan struct{})}
	if err := a.start(); err != nil {
		return err
	}
	defer a.store.close()
	servers, err := a.listen()
	if err != nil {
		return err
	}
	defer servers.stop()
	changes, err := watchRoutes(ctx, options.Log)
	if err != nil {
		return err
	}
	options.Log.Info("node runs", "node", a.node.Name, "roles", a.node.Roles(), "socket", a.node.API.Socket)
	defer close(a.done)
	for {
		select {
		case <-ctx.Done():
			options.Log.Info("agent ends; packets are forwarded on", "node", a.node.Name)
			return nil
		case f := <-a.work:
			f()
		case <-changes:
			a.forgetNextHops()
		case err := <-servers.failed:
			return err
		}
	}
}

// start reads the configuration and puts it into the kernel.
func (a *Agent) start() error {
	file := a.options.Node
	if err := checkMachine(); err != nil {
		return err
	}
	var err error
	if a.store, err = openStore(file.State, file.Name); err != nil {
		return err
	}
	if err := a.takeOver(file); err != nil {
		a.store.close()
		return err
	}
	return nil
}

func (a *Agent) takeOver(file *config.Node) error {
	node, err := a.store.resume(file)
	if err != nil {
		return err
	}
	if err := a.prepareMachine(file.Name); err != nil {
		return err
	}
	a.metrics = newMetrics(a)
	if _, err := a.reconcile(node, false); err != nil {
		return err
	}
	return a.store.save(file, a.node)
}

// prepareMachine finds the file systems that the agent works on, and mounts those that are missing.
func (a *Agent) prepareMachine(node string) error {
	bpffs, mounted, err := kernel.BPFFS()
	if err != nil {
		return err
	}
	if mounted {
		a.options.Log.Info("mounted a bpf file system for pinned programs", "directory", bpffs)
	}
	if a.dir = a.options.PinDirectory; a.dir == "" {
		a.dir = PinDirectory(bpffs, node)
	}
	a.cgroup, mounted, err = kernel.CgroupRoot()
	if mounted {
		a.options.Log.Info("mounted a cgroup2 file system to count connections", "directory", a.cgroup)
	}
	return err
}

// do runs f in the owner goroutine and waits for it.
func (a *Agent) do(ctx context.Context, f func()) error {
	finished := make(chan struct{})
	select {
	case a.work <- func() { f(); close(finished) }:
		<-finished
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-a.done:
		return errors.New("the agent is ending")
	}
}

// Change is what api.Agent says.
func (a *Agent) Change(
	ctx context.Context, edit func(*config.Node) (*config.Node, error), dryRun bool,
) (changes []config.Change, err error) {
	if doErr := a.do(ctx, func() { changes, err = a.change(edit, dryRun) }); doErr != nil {
		return nil, doErr
	}
	return changes, err
}

func (a *Agent) change(edit func(*config.Node) (*config.Node, error), dryRun bool) ([]config.Change, error) {
	next, err := edit(a.node)
	if err != nil {
		return nil, err
	}
	if err := a.unchangeable(next); err != nil {
		return nil, err
	}
	before := a.node
	changes, err := a.reconcile(next, dryRun)
	if err != nil || dryRun || len(changes) == 0 {
		return changes, err
	}
	if err := a.store.save(nil, a.node); err != nil {
		// What is not on disk would be lost at the next start: take it back.
		_, back := a.reconcile(before, false)
		return nil, errors.Join(err, back)
	}
	for _, c := range changes {
		a.options.Log.Info("configuration changed", "change", c.String())
	}
	return changes, nil
}

// unchangeable refuses what only a restart can change.
func (a *Agent) unchangeable(next *config.Node) error {
	switch {
	case next.Name != a.node.Name:
		return fmt.Errorf("node name %q: this agent runs %q; %w, start another agent for another node",
			next.Name, a.node.Name, config.ErrConflict)
	case next.State != a.node.State || next.API != a.node.API:
		return fmt.Errorf("state and api of node %q change with a restart of the agent only: %w", next.Name, config.ErrConflict)
	}
	return nil
}

// Config is what api.Agent says.
func (a *Agent) Config(ctx context.Context) (node *config.Node, err error) {
	err = a.do(ctx, func() { node = a.node })
	return node, err
}

// forgetNextHops makes the programs look at routes and neighbours again.
func (a *Agent) forgetNextHops() {
	for _, forget := range []func() error{a.edge.forgetNextHops, a.host.forgetNextHops} {
		if err := forget(); err != nil {
			a.options.Log.Warn("next hops stay remembered for up to 100 ms", "error", err)
		}
	}
}
