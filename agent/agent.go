package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"sextant/agent/api"
	"sextant/agent/httpserver"
	"sextant/agent/serverload"
	"sextant/config"
	"sextant/lb/pool"
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
	more             []kind // of roles, beside kinds
}

// Agent is a running node. Its methods may be called at the same time, from any goroutine.
type Agent struct {
	options Options
	started time.Time
	work    chan func() // for the owner goroutine
	done    chan struct{}
	adding  sync.Mutex          // of protections
	servers *httpserver.Servers // set before anybody is served

	// Only the owner goroutine touches what follows.
	store  *store
	node   *config.Node // what runs
	dir    string       // of pins
	cgroup string       // root of the cgroup2 file system
	roles
	kinds     []kind    // of roles
	ordering  *ordering // nil: no protected flow is put in order
	warnings  []string
	metrics   *metrics
	journal   *journal
	etcd      *archivist                           // nil: the node file names none
	noted     map[config.Endpoint]*pool.Generation // what the journal was told last
	silent    map[netip.AddrPort]bool              // peers that did not answer in time
	askLater  []question                           // that peers did not answer at the start
	pending   map[question]bool                    // of these, those that are still not answered
	lateTold  chan late                            // answers to them
	speaker   *speaker                             // nil: the node speaks no BGP
	withdrawn map[learnedKey]bool                  // of these, whom nobody tells of any more
	// that BGP told of: what the store keeps, by service
	learned map[config.Endpoint][]config.Backend
	startup startup
	routing routing
	// Decisions on what backends are, so far and when it was last written down who is away.
	effects, awayNoted uint64
	strays             string // why the kernel may answer for VIPs; "": it does not
	ignored            uint64 // places in chains of the past that named nobody this node can know
	checks             checks
	captures           *capturing  // nil: nobody captures
	own                *selfChecks // by which a host finds out whether it serves
	// of services whose load is not that of their connections
	loads       *serverload.Monitor
	protections protections
	routesMoved bool                // since strayRole has looked
	events      []api.Event         // the latest
	faults      map[placeKey]string // programs that are not attached, and why
	solicitor   solicitor
	uplinks     string // why the head-end can't send on them; "": it can
	bpffs       string // where the file system of the pins is mounted
	// on the clock of now: when chains are tried again that could not be brought up to date; 0:
	// they could
	retryAt time.Duration
}

// heapRoom is by how many percent the heap grows beyond what is in use before it is collected: an
// agent keeps much, allocates seldom, and shares the machine with the programs' tables.
const heapRoom = 40

// Run takes over the node's data plane and keeps it until ctx ends. It returns nil when ctx ended
// it; forwarding goes on then. If it can't take over, what was pinned before it began is what runs
// after it.
func Run(ctx context.Context, options Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &Agent{
		options: options, started: time.Now(), work: make(chan func()), done: make(chan struct{}),
		silent: map[netip.AddrPort]bool{},
	}
	err := checkMachine(options.Node)
	if err != nil {
		return err
	}
	if a.store, err = openStore(options.Node.State, options.Node.Name, options.Log); err != nil {
		return err
	}
	defer a.store.close()
	a.journal = openJournal(options.Node.State, options.Node.Name, options.Log)
	defer a.journal.close()
	a.etcd = openArchivist(options.Node, options.Log)
	defer a.etcd.close()
	// Whatever can refuse is asked before the data plane is touched.
	manager, err := newSupervisor(options.Log)
	if err != nil {
		return err
	}
	servers, err := httpserver.Listen("agent", options.Node.API.Socket,
		options.Node.API.Metrics, options.Log)
	if err != nil {
		return err
	}
	defer servers.Stop()
	a.servers = servers
	changes, err := watchRoutes(ctx, options.Log)
	if err != nil {
		return err
	}
	interfaces, err := watchLinks(ctx, options.Log)
	if err != nil {
		return err
	}
	defer a.endListening()
	a.checks = newChecks(ctx)
	defer a.checks.monitor.Stop()
	defer a.checks.signals.Stop()
	a.own = newSelfChecks(ctx)
	defer a.own.monitor.Stop()
	a.loads = serverload.NewMonitor(ctx)
	defer a.loads.Stop()
	a.protections.life = ctx
	defer func() { a.ordering.end(); a.protections.end(a) }()
	if err := a.takeOver(options.Node); err != nil {
		return err
	}
	defer close(a.done)
	a.askOn(ctx)
	servers.Serve(api.NewHandler(a), a.metricsPort())
	options.Log.Info("node runs", "node", a.node.Name, "roles", a.node.Roles(), "socket",
		a.node.API.Socket)
	manager.ready(a.node.Name)
	defer manager.stop()
	return a.live(ctx, manager, servers, changes, interfaces)
}

// live does what comes up, one thing at a time, until ctx ends: the state belongs to this
// goroutine.
func (a *Agent) live(ctx context.Context, manager *supervisor, servers *httpserver.Servers,
	changes, interfaces <-chan struct{}) error {
	routing := time.NewTicker(learnInterval)
	defer routing.Stop()
	watching := time.NewTicker(watchInterval)
	defer watching.Stop()
	soliciting := time.NewTicker(solicitInterval)
	defer soliciting.Stop()
	attaching := time.NewTicker(attachInterval)
	defer attaching.Stop()
	for {
		a.noteChains()
		a.noteAway()
		select {
		case <-a.refreshTime():
			a.refreshOrWarn()
		case r := <-a.checks.monitor.Results():
			a.checkEnded(r)
		case r := <-a.checks.signals.Results():
			a.signalEnded(r)
		case r := <-a.own.monitor.Results():
			a.selfCheckEnded(r)
		case r := <-a.loads.Results():
			a.loadTold(r)
		case <-a.speaker.changes():
			a.learnOrWarn()
			a.topologyMayHaveChanged()
		case told := <-a.etcd.lateNews():
			a.takeLate(told)
		case told := <-a.lateTold:
			a.takeLate(told)
		case <-a.routing.fpmChanges():
			a.routing.news()
		case <-a.routing.kernelChanges():
			a.routing.news()
		case <-a.routing.due:
			a.takeRoutes()
		case <-routing.C:
			a.followRouter()
			a.tickRoutes()
			a.store.retry(a.options.Log)
		case <-watching.C:
			a.watchMerges()
		case <-soliciting.C:
			a.solicit()
		case <-attaching.C:
			_ = a.watchAttached() // it has warned
		case <-interfaces:
			_ = a.watchAttached()
		case <-manager.signDue():
			manager.alive()
		case <-ctx.Done():
			a.noteAway()
			a.options.Log.Info("agent ends; packets are forwarded on", "node", a.node.Name)
			return nil
		case f := <-a.work:
			f()
		case <-changes:
			a.routesMoved = true
			a.forgetNextHops()
		case err := <-servers.Failed():
			return err
		}
	}
}

// takeOver puts the configuration into the kernel, in the place of what an earlier agent left
// there.
func (a *Agent) takeOver(file *config.Node) error {
	a.kinds = append(kinds(), a.options.more...)
	node, err := a.store.resume(file, a.options.Log)
	if err != nil {
		return err
	}
	if err := a.prepareMachine(file); err != nil {
		return err
	}
	if err := a.store.trustPins(a.dir); err != nil {
		a.options.Log.Warn("numbers of services are those on the disk alone", "error", err)
	}
	a.metrics = newMetrics(a)
	if err := a.openSpeaker(node); err != nil {
		return err
	}
	if err := a.openRouting(node); err != nil {
		return err
	}
	_, err = a.reconcile(node, file, terms{breaks: a.options.BreakConnections})
	a.metrics.reload(err)
	if err != nil {
		return err
	}
	a.learnOrWarn()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapRoom)
	}
	debug.FreeOSMemory() // reading and building left several times what is kept
	return nil
}

// prepareMachine finds the file systems that the agent works on, and mounts those that are missing.
func (a *Agent) prepareMachine(n *config.Node) error {
	bpffs, mounted, err := linux.BPFFS()
	if err != nil && loadsPrograms(n) {
		return err
	}
	if mounted {
		a.options.Log.Info("mounted a bpf file system for pinned programs", "directory", bpffs)
	}
	if a.dir = a.options.PinDirectory; a.dir == "" {
		a.dir = PinDirectory(bpffs, n.Name)
	}
	if a.bpffs, err = linux.BPFFSOf(a.dir); err != nil || a.bpffs == "" {
		a.bpffs = bpffs
	}
	a.cgroup, mounted, err = linux.CgroupRoot()
	if mounted {
		a.options.Log.Info("mounted a cgroup2 file system to count connections", "directory",
			a.cgroup)
	}
	if err != nil && !loadsPrograms(n) {
		return nil
	}
	return err
}

// errEnding answers those who come too late.
var errEnding = &api.Error{Code: api.Internal,
	Message: "the agent is ending; ask again when it runs"}

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
		return errEnding
	}
}

// Change is what api.Agent says.
func (a *Agent) Change(
	ctx context.Context, edit func(*config.Node) (*config.Node, error),
) (changes []config.Change, err error) {
	doErr := a.do(ctx, func() {
		var next *config.Node
		if next, err = edit(a.node); err == nil {
			changes, err = a.change(next, terms{breaks: api.MayBreakConnections(ctx)})
		}
	})
	if doErr != nil {
		return nil, doErr
	}
	return changes, a.counted(ctx, err)
}

// Replace is what api.Agent says.
func (a *Agent) Replace(ctx context.Context, read func() (*config.Node, error),
	dryRun bool) (changes []config.Change, err error) {
	next, err := read()
	if err == nil {
		on := terms{dryRun: dryRun, breaks: api.MayBreakConnections(ctx)}
		if doErr := a.do(ctx, func() { changes, err = a.change(next, on) }); doErr != nil {
			return nil, doErr
		}
		err = a.counted(ctx, err)
	}
	if !dryRun {
		a.metrics.reload(err)
	}
	return changes, err
}

// terms are on what a change is asked for.
type terms struct {
	dryRun bool // all is checked, nothing changed
	breaks bool // connections may end
}

func (a *Agent) change(next *config.Node, on terms) ([]config.Change, error) {
	if err := a.unchangeable(next); err != nil {
		return nil, err
	}
	if !on.dryRun {
		if err := a.speaker.speakTo(next); err != nil {
			return nil, fmt.Errorf("bgp: %w", err)
		}
	}
	changes, err := a.reconcile(next, nil, on)
	if on.dryRun {
		return changes, err
	}
	if err != nil {
		return changes, errors.Join(err, a.speaker.speakTo(a.node))
	}
	a.learnOrWarn()
	for _, c := range changes {
		a.options.Log.Info("configuration changed", "change", c.String())
	}
	return changes, nil
}

// unchangeable refuses what only a restart can change.
func (a *Agent) unchangeable(next *config.Node) error {
	restart := "restart the agent with this file (packets are forwarded on meanwhile), or write "
	for _, fixed := range []struct{ path, is, wanted, mend string }{
		{"node", a.node.Name, next.Name, "apply the file of node " + a.node.Name +
			", or start another agent for node " + next.Name},
		{"state", a.node.State, next.State, restart + a.node.State},
		{"api.socket", a.node.API.Socket, next.API.Socket, restart + a.node.API.Socket},
		{"edge.etcd", etcdText(a.node), etcdText(next), restart + etcdText(a.node)},
		{"api.metrics", listener(a.node.API), listener(next.API), restart + listener(a.node.API)},
	} {
		if fixed.is != fixed.wanted {
			return &config.Problem{
				Kind: config.ErrConflict, Path: fixed.path, Mend: fixed.mend,
				Text: fmt.Sprintf("%s can't change from %s to %s while the agent runs", fixed.path,
					fixed.is, fixed.wanted),
			}
		}
	}
	if err := unchangeableRouting(a.node.Routing, next.Routing); err != nil {
		return err
	}
	return unchangeableBGP(a.node.BGP, next.BGP)
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
	err = a.do(ctx, func() { node = a.node })
	return node, err
}

// forgetNextHops makes the programs look at routes and neighbours again.
func (a *Agent) forgetNextHops() {
	for _, r := range a.running() {
		if !r.resolves() {
			continue
		}
		if err := r.uses().ForgetNextHops(); err != nil {
			a.options.Log.Warn("next hops stay remembered for up to 100 ms", "error", err)
		}
	}
}
