package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"sextant/agent/api"
	"sextant/agent/httpserver"
	"sextant/te/reroute"
	"sextant/te/topology"
)

// Options are what a controller needs.
type Options struct {
	Config  *Config
	Version string
	Log     *slog.Logger
	// Open reads the topology that the file names.
	Open func(name string) (*topology.Graph, error)
}

// Controller is a running controller. Its state belongs to the goroutine of Run.
type Controller struct {
	options  Options
	begun    time.Time
	graph    *topology.Graph
	names    *names
	decider  *reroute.Decider
	journal  *journal
	reports  uint64
	refused  uint64
	verdicts map[reroute.Verdict]uint64
	down     map[topology.Edge]bool
	work     chan func()
	ended    chan struct{}
	servers  *httpserver.Servers
}

// forgetInterval is how often flows that no report mentions are looked for.
const forgetInterval = 10 * time.Second

// Run runs a controller until the context ends. The error says what kept it from starting, or what
// ended it.
func Run(ctx context.Context, o Options) error {
	c, err := newController(o)
	if err != nil {
		return err
	}
	defer c.journal.close()
	c.servers, err = httpserver.Listen("controller", o.Config.API.Socket, o.Config.API.Metrics,
		o.Log)
	if err != nil {
		return err
	}
	defer c.servers.Stop()
	defer close(c.ended)
	metrics := c.metrics()
	c.servers.Serve(c.handler(metrics), metrics)
	o.Log.Info("controller runs", "topology", c.graph.Name(), "nodes", c.graph.Nodes(), "links",
		c.graph.Edges(), "policy", o.Config.Policy.Name, "socket", o.Config.API.Socket)
	return c.run(ctx)
}

func newController(o Options) (*Controller, error) {
	g, err := o.Open(o.Config.Topology)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	settings, err := o.Config.Policy.settings()
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	seed := o.Config.Seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	c := &Controller{options: o, begun: time.Now(), graph: g,
		verdicts: map[reroute.Verdict]uint64{}, down: map[topology.Edge]bool{},
		work: make(chan func()), ended: make(chan struct{})}
	if c.names, err = newNames(g, o.Config); err != nil {
		return nil, err
	}
	if c.decider, err = reroute.NewDecider(g.All(), settings, seed); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	c.journal, err = openJournal(o.Config.Journal, o.Log)
	return c, err
}

// run is the event loop. It is the only goroutine that touches the state.
func (c *Controller) run(ctx context.Context) error {
	forgetting := time.NewTicker(forgetInterval)
	defer forgetting.Stop()
	for {
		select {
		case <-ctx.Done():
			c.options.Log.Info("controller ends; flows keep the paths that they have")
			return nil
		case err := <-c.servers.Failed():
			return err
		case f := <-c.work:
			f()
		case <-forgetting.C:
			c.decider.Forget(c.now())
		}
	}
}

// now is the time of the decider: since the controller began.
func (c *Controller) now() time.Duration { return time.Since(c.begun) }

var errEnded = errors.New("the controller ends")

// do runs a function in the event loop.
func (c *Controller) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case c.work <- func() { f(); close(done) }:
		<-done
		return nil
	case <-c.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take decides on reports that came together.
func (c *Controller) take(reports []*reroute.Report) []Decision {
	c.reports += uint64(len(reports))
	decisions := []Decision{}
	c.decider.Batch(reports, func(d reroute.Decision) {
		decisions = append(decisions, c.decided(d))
	})
	return decisions
}

// decided notes a decision.
func (c *Controller) decided(d reroute.Decision) Decision {
	c.verdicts[d.Verdict]++
	out := c.names.decision(d, c.begun.Add(d.At))
	if d.Verdict != reroute.BackingOff {
		c.journal.add(&out)
	}
	return out
}

func (c *Controller) setLink(s LinkState) ([]Decision, error) {
	links, err := c.names.links(s.From, s.To)
	if err != nil {
		return nil, err
	}
	decisions := []Decision{}
	for _, e := range links {
		if c.down[e] == !s.Up {
			continue
		}
		c.down[e] = !s.Up
		c.decider.SetUp(e, s.Up, c.now(), func(d reroute.Decision) {
			decisions = append(decisions, c.decided(d))
		})
		c.options.Log.Info("link", "from", s.From, "to", s.To, "up", s.Up, "decisions",
			len(decisions))
	}
	return decisions, nil
}

func (c *Controller) pin(p Pin) error {
	t, err := tupleOf(p.Flow)
	if err != nil {
		return err
	}
	path, err := c.names.path(p.Path)
	if err != nil {
		return err
	}
	if err := c.decider.Pin(t, path, c.now()); err != nil {
		return &api.Error{Code: api.Invalid, Message: err.Error()}
	}
	return nil
}

func (c *Controller) unpin(p Pin) error {
	t, err := tupleOf(p.Flow)
	if err != nil {
		return err
	}
	if !c.decider.Unpin(t) {
		return &api.Error{Code: api.NotFound, Message: "the flow is not pinned"}
	}
	return nil
}

func (c *Controller) status() Status {
	s := Status{Version: c.options.Version, StartedAt: c.begun,
		UptimeSeconds: int64(c.now().Seconds()), Topology: c.graph.Name(), Nodes: c.graph.Nodes(),
		Links: c.graph.Edges(), Policy: c.options.Config.Policy.Name, Reports: c.reports,
		Refused: c.refused, JournalLost: c.journal.lost.Load(), Flows: c.decider.Known(),
		Verdicts: []Verdict{},
		Warnings: []string{}}
	for _, v := range sortedVerdicts() {
		s.Verdicts = append(s.Verdicts, Verdict{v.String(), c.verdicts[v]})
	}
	for _, down := range c.down {
		if down {
			s.LinksDown++
		}
	}
	if c.reports == 0 {
		s.Warnings = append(s.Warnings, "no report has come yet: weights are not known")
	}
	if warning := c.journal.warning(); warning != "" {
		s.Warnings = append(s.Warnings, warning)
	}
	return s
}

func addrPort(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }
