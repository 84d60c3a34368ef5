package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"sextant/agent/api"
	"sextant/agent/edge"
	"sextant/agent/httpserver"
	"sextant/agent/metrics"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/linux"
)

// Options are how an agent is started.
type Options struct {
	Node         *config.Node // the node file, with its secret
	PinDirectory string       // on the bpf file system; "" is PinDirectory of the node's name
	Version      string       // of the binary
	Log          *slog.Logger
	// BreakConnections lets the node file differ from what ran before in a way that ends
	// connections.
	BreakConnections bool
	more             []role.Kind // of roles, beside kinds
}

// Agent is a running node. Its methods may be called at the same time, from any goroutine.
type Agent struct {
	*role.Core
	*role.Roles
	*answers
	*captures
	*routing
	*peering
	// What only some roles can answer.
	steerer
	merger
	tracer
	chooser
	subflowLister

	options  Options
	servers  *httpserver.Servers // set before requests are served
	warnings []string
	// of the node that runs: those who look do not compute it
	fingerprint string
	metrics     *metrics.Metrics
	watch       *attachWatch
	solicitor   solicitor
}

// Rooms that answer for a role what no other has.
type (
	steerer interface {
		Policies(context.Context) ([]api.Policy, error)
		MarkList(ctx context.Context, policy, list string, down bool) ([]config.Change, error)
		FlowPaths(context.Context) ([]api.FlowPath, error)
		SetFlowPath(context.Context, api.FlowPath) error
		RemoveFlowPath(context.Context, api.Flow) error
		Protections(context.Context) ([]api.Protection, error)
		Protect(ctx context.Context, name string, spec api.ProtectionSpec, dryRun bool) (
			api.Protection, error)
		Topology(context.Context) (api.Topology, error)
	}
	merger interface {
		Merge(context.Context) ([]api.MergedFlow, error)
	}
	chooser interface {
		NextHops(context.Context) ([]api.NextHops, error)
	}
	subflowLister interface {
		Subflows(context.Context) ([]api.MPTCPConnection, error)
	}
	tracer interface {
		Trace(context.Context, api.Flow) (api.Trace, error)
		// ChainsHandler answers other edges.
		ChainsHandler() http.Handler
	}
)

// newAgent makes the parts of an agent, which do nothing yet.
func newAgent(ctx context.Context, options Options) (*Agent, error) {
	a := &Agent{Core: role.NewCore(ctx, options.Version, options.Log), options: options}
	var err error
	if a.Store, err = state.Open(options.Node.State, options.Node.Name, options.Log); err != nil {
		return nil, err
	}
	a.Store.Await = a.Await
	a.Rewarn = a.collectWarnings
	found := &role.Discoveries{Core: a.Core}
	a.watch = &attachWatch{Core: a.Core}
	a.peering = &peering{Core: a.Core, found: found}
	a.Announce = a.peering.learnOrWarn
	a.routing = &routing{Core: a.Core, found: found}
	a.peering.routing = a.routing
	a.Roles = role.OpenRooms(append(kinds(), options.more...), role.Parts{
		Core: a.Core, Found: found, Attached: a.watch, Change: a.Change,
		Speaker: a.peering.inner, Reload: a.reload,
	})
	a.watch.Roles, a.peering.Roles = a.Roles, a.Roles
	a.answers = &answers{Core: a.Core, Roles: a.Roles}
	a.captures = &captures{Core: a.Core, Roles: a.Roles}
	a.steerer, a.merger, a.tracer = role.TheRoom[steerer](a.Roles), role.TheRoom[merger](a.Roles),
		role.TheRoom[tracer](a.Roles)
	a.subflowLister = role.TheRoom[subflowLister](a.Roles)
	a.chooser = role.TheRoom[chooser](a.Roles)
	a.solicitor = solicitor{Core: a.Core, Roles: a.Roles}
	return a, nil
}

// heapRoom is by how many percent the heap grows beyond what is in use before it is collected: an
// agent keeps much, allocates seldom, and shares the machine with the programs' tables.
const heapRoom = 40

// startRoom is the same while an agent starts, which reads much that it does not keep.
const startRoom = 200

// setHeapRoom lets the heap grow by so many percent, unless GOGC says by how many.
func setHeapRoom(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Run takes over the node's data plane and keeps it until ctx ends. It returns nil when ctx ended
// it; forwarding goes on then. If it can't take over, what was pinned before it began is what runs
// after it.
func Run(ctx context.Context, options Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := checkMachine(options.Node); err != nil {
		return err
	}
	a, err := newAgent(ctx, options)
	if err != nil {
		return err
	}
	defer a.Store.Close()
	for _, room := range role.Having[role.Ender](a.Roles) {
		defer room.End()
	}
	for _, room := range role.Having[role.Opener](a.Roles) {
		room.Opened(options.Node)
	}
	// Whatever can refuse is asked before the data plane is touched.
	manager, err := newSupervisor(options.Log)
	if err != nil {
		return err
	}
	servers, err := httpserver.Listen("agent", "api.socket", options.Node.API.Socket,
		options.Node.API.Metrics, options.Log)
	if err != nil {
		return err
	}
	defer servers.Stop()
	if err := servers.ListenTLS(options.Node.API.Listen); err != nil {
		return err
	}
	a.servers = servers
	changes, err := watchRoutes(ctx)
	if err != nil {
		return err
	}
	interfaces, err := watchLinks(ctx)
	if err != nil {
		return err
	}
	defer a.peering.end()
	defer a.routing.close()
	if err := a.takeOver(options.Node); err != nil {
		return err
	}
	defer close(a.Done)
	servers.Serve(api.NewHandler(a), a.metricsPort())
	options.Log.Info("node runs", "node", a.Node.Name, "roles", a.Node.Roles(), "socket",
		a.Node.API.Socket)
	manager.ready(a.Node.Name)
	defer manager.stop()
	a.hear(changes, interfaces)
	return a.live(ctx, manager, servers)
}

// hear gives the owner goroutine all that comes up.
func (a *Agent) hear(changes, interfaces <-chan struct{}) {
	for _, room := range role.Having[role.Server](a.Roles) {
		room.Serve()
	}
	role.Follow(a.Life, &a.Loop, changes, func(struct{}) {
		for _, room := range role.Having[role.RouteWatcher](a.Roles) {
			room.RoutesChanged()
		}
		a.ForgetNextHops(a.Log)
	})
	attach := func() { _ = a.watch.look() } // it has warned
	role.Follow(a.Life, &a.Loop, interfaces, func(struct{}) { attach() })
	role.Every(a.Life, &a.Loop, attachInterval, attach)
	role.Every(a.Life, &a.Loop, solicitInterval, a.solicitor.solicit)
	role.Every(a.Life, &a.Loop, role.LearnInterval, func() {
		a.Announce()
		a.routing.tick()
		a.Store.Retry(a.Log)
	})
	a.peering.hear()
	a.routing.hear()
}

// live is the event loop: it runs one piece of work after the other until ctx ends. No other
// goroutine touches the state.
func (a *Agent) live(ctx context.Context, manager *supervisor, servers *httpserver.Servers) error {
	for {
		a.Note()
		select {
		case f := <-a.Work:
			f()
		case f := <-a.Looks:
			f()
		case <-a.DueTime():
			a.Act()
		case <-manager.signDue():
			manager.alive()
		case <-ctx.Done():
			a.Note()
			a.Log.Info("agent ends; packets are forwarded on", "node", a.Node.Name)
			return nil
		case err := <-servers.Failed():
			return err
		}
	}
}

// takeOver puts the configuration into the kernel, in place of what an earlier agent left
// there.
func (a *Agent) takeOver(file *config.Node) error {
	setHeapRoom(startRoom)
	node, err := a.Store.Resume(file, a.Log)
	if err != nil {
		return err
	}
	if err := a.prepareMachine(file); err != nil {
		return err
	}
	if err := a.Store.TrustPins(a.Dir, node.Domain.Block); err != nil {
		a.Log.Warn("numbers of services are those on the disk alone", "error", err)
	}
	a.metrics = metrics.New(a.options.Version, a.Updates, a,
		append(append([]metrics.Collector{a.peering,
			a.routing}, role.Having[metrics.Collector](a.Roles)...), a.servers)...)
	if err := a.peering.open(node); err != nil {
		return err
	}
	if err := a.routing.open(node); err != nil {
		return err
	}
	_, err = a.reconcile(node, file, terms{
		breaks: a.options.BreakConnections || a.Store.Undone})
	a.metrics.Reload(err)
	if err != nil {
		return err
	}
	a.remember("the agent", "start", nil)
	a.awaitConfirmation()
	a.Announce()
	setHeapRoom(heapRoom)
	debug.FreeOSMemory() // reading and building left several times what is kept
	return nil
}

// prepareMachine finds the file systems that the agent works on, and mounts those that are missing.
func (a *Agent) prepareMachine(n *config.Node) error {
	bpffs, mounted, err := linux.BPFFS()
	if err != nil && needsMachine(n) {
		return err
	}
	if mounted {
		a.Log.Info("mounted a bpf file system for pinned programs", "directory", bpffs)
	}
	if a.Dir = a.options.PinDirectory; a.Dir == "" {
		a.Dir = PinDirectory(bpffs, n.Name)
	}
	if a.watch.bpffs, err = linux.BPFFSOf(a.Dir); err != nil || a.watch.bpffs == "" {
		a.watch.bpffs = bpffs
	}
	a.Cgroup, mounted, err = linux.CgroupRoot()
	if mounted {
		a.Log.Info("mounted a cgroup2 file system to count connections", "directory",
			a.Cgroup)
	}
	if err != nil && !needsMachine(n) {
		return nil
	}
	return err
}

// Change is what api.Agent says.
func (a *Agent) Change(
	ctx context.Context, edit func(*config.Node) (*config.Node, error),
) (changes []config.Change, err error) {
	doErr := a.Do(ctx, func() {
		var next *config.Node
		if next, err = edit(a.Node); err == nil {
			changes, err = a.changeAsked(next, termsOf(ctx, "change", false))
		}
	})
	if doErr != nil {
		return nil, doErr
	}
	return changes, edge.Counted(ctx, err)
}

// Replace is what api.Agent says.
func (a *Agent) Replace(ctx context.Context, read func() (*config.Node, error),
	dryRun bool) (changes []config.Change, err error) {
	next, err := read()
	if err == nil {
		on := termsOf(ctx, "apply", dryRun)
		on.isFile = true
		if doErr := a.Do(ctx, func() { changes, err = a.changeAsked(next, on) }); doErr != nil {
			return nil, doErr
		}
		err = edge.Counted(ctx, err)
	}
	if !dryRun {
		a.metrics.Reload(err)
	}
	return changes, err
}

// terms are on what a change is asked for.
type terms struct {
	dryRun bool // all is checked, nothing changed
	breaks bool // connections may end
	isFile bool // a node file is applied
	// who asked for what, for the log and the history
	by, action string
	only       string          // fingerprint of the configuration that may be changed; "": any
	confirm    time.Duration   // in which it is to be confirmed, or it is undone; 0: it is final
	trace      context.Context // of the request, whose trace has the steps; nil: none
}

func termsOf(ctx context.Context, action string, dryRun bool) terms {
	return terms{dryRun: dryRun, breaks: api.MayBreakConnections(ctx), by: api.CallerOf(ctx),
		action: action, confirm: api.ConfirmWithin(ctx), only: api.OnlyChanges(ctx), trace: ctx}
}

// changeAsked is change for those who must not change what waits for a confirmation.
func (a *Agent) changeAsked(next *config.Node, on terms) ([]config.Change, error) {
	if err := a.isMeant(on.only); err != nil {
		return nil, err
	}
	switch u := a.Store.Kept.Unconfirmed; {
	case on.dryRun:
		return a.change(next, on)
	case u != nil:
		return nil, errUnconfirmed(u)
	case on.confirm > 0:
		return a.changeUnconfirmed(next, on)
	}
	return a.change(next, on)
}

// isMeant refuses a request that is for another configuration than the one that runs; "": it is
// for any.
func (a *Agent) isMeant(only string) error {
	if only == "" {
		return nil
	}
	is, err := a.Store.FingerprintOf(a.Node)
	if err == nil && is != only {
		err = &api.Error{Code: api.Stale, Message: fmt.Sprintf("the configuration that runs is "+
			"%s, not %s of If-Match; read it anew, and change that", is, only)}
	}
	return err
}

func (a *Agent) change(next *config.Node, on terms) ([]config.Change, error) {
	if err := a.unchangeable(next); err != nil {
		return nil, err
	}
	if err := a.peering.speaker.check(next); err != nil {
		return nil, err
	}
	changes, err := a.reconcile(next, nil, on)
	if on.dryRun {
		return changes, errors.Join(err, lackInterfaces(a.Node, next))
	}
	if err != nil {
		return changes, err
	}
	a.peering.spoken = false // also without changes: a password file may have another one
	a.Announce()
	a.logChanges(changes, on)
	if len(changes) > 0 {
		a.remember(on.by, on.action, changes)
	}
	return changes, nil
}

// unchangeable refuses what only a restart can change.
func (a *Agent) unchangeable(next *config.Node) error {
	restart := "restart the agent with this file (packets are forwarded on meanwhile), or write "
	for _, fixed := range []struct{ path, is, wanted, mend string }{
		{"node", a.Node.Name, next.Name, "apply the file of node " + a.Node.Name +
			", or start another agent for node " + next.Name},
		{"state", a.Node.State, next.State, restart + a.Node.State},
		{"api.socket", a.Node.API.Socket, next.API.Socket, restart + a.Node.API.Socket},
		{"edge.etcd", etcdText(a.Node), etcdText(next), restart + etcdText(a.Node)},
		{"api.metrics", listener(a.Node.API), listener(next.API), restart + listener(a.Node.API)},
		{"api.listen", a.Node.API.Listen.String(), next.API.Listen.String(),
			restart + a.Node.API.Listen.String()},
	} {
		if fixed.is != fixed.wanted {
			return &config.Problem{
				Kind: config.ErrConflict, Path: fixed.path, Mend: fixed.mend,
				Text: fmt.Sprintf("%s can't change from %s to %s while the agent runs", fixed.path,
					fixed.is, fixed.wanted),
			}
		}
	}
	if err := unchangeableRouting(a.Node.Routing, next.Routing); err != nil {
		return err
	}
	return unchangeableBGP(a.Node.BGP, next.BGP)
}

// etcdText says how etcd is reached.
func etcdText(n *config.Node) string {
	if n.Edge == nil || n.Edge.Etcd == nil {
		return "none"
	}
	return n.Edge.Etcd.String()
}

// listener names where metrics are served.
func listener(a config.API) string {
	if !a.Metrics.IsValid() {
		return "none"
	}
	return a.Metrics.String()
}

// Config is what api.Agent says.
func (a *Agent) Config(ctx context.Context) (node *config.Node, err error) {
	err = a.Look(ctx, func() { node = a.Node })
	return node, err
}
