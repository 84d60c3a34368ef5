package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/httpserver"
	"sextant/controller/collector"
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
	seed     uint64
	problem  string   // of reading the topology; "": none
	absent   []string // what the file names and the topology does not have
	journal  *journal
	repeats  repeats
	reports  uint64
	refused  uint64
	observed uint64 // reports that nothing is decided on
	replaced uint64 // flows that were forgotten for others
	verdicts map[reroute.Verdict]uint64
	down     map[topology.Edge]bool
	work     chan func()
	ended    chan struct{}
	failed   chan error
	servers  *httpserver.Servers

	epoch        uint64
	lead         *lead
	standby      StandbyStatus
	segments     *segments
	places       *places
	sink         *sink
	gifts        *gifts
	spreading    spreading
	elephants    *elephants // nil: sources choose no paths
	applySeconds prometheus.Histogram
}

// forgetInterval is how often flows that no report mentions are looked for.
const forgetInterval = 10 * time.Second

// renewInterval is how often paths that are to be renewed are looked for.
const renewInterval = 250 * time.Millisecond

// Run runs a controller until the context ends. The error says what kept it from starting, or what
// ended it.
func Run(ctx context.Context, o Options) error {
	from, err := o.openSource()
	if err != nil {
		return err
	}
	defer from.close()
	c, err := from.begin(ctx, o)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer c.journal.close()
	c.servers, err = httpserver.Listen("controller", "api.socket", o.Config.API.Socket,
		o.Config.API.Metrics, o.Log)
	if err != nil {
		return err
	}
	defer c.servers.Stop()
	if err := c.servers.ListenTLS(o.Config.API.Listen); err != nil {
		return err
	}
	defer close(c.ended)
	c.servers.HTTP2 = true
	metrics := c.metrics()
	c.servers.Serve(c.handler(metrics), c.metricsPort(metrics))
	if err := c.listenTelemetry(); err != nil {
		return err
	}
	defer c.sink.close()
	port, south, err := c.listenSouthbound(ctx)
	if err != nil {
		return err
	}
	if south != nil {
		go func() { c.failed <- south.Serve(port) }()
		defer south.Stop()
	}
	o.Log.Info("controller runs", "topology", c.graph.Name(), "nodes", c.graph.Nodes(), "links",
		c.graph.Edges(), "policy", o.Config.Policy.Name, "socket", o.Config.API.Socket)
	if o.Config.follows() {
		go c.watchTopology(ctx, from)
	}
	if o.Config.Standby.stands() {
		standing, end := context.WithCancel(ctx)
		stood := make(chan struct{})
		go func() { defer close(stood); c.stand(standing) }()
		defer func() { end(); <-stood }()
	}
	return c.run(ctx)
}

// newController makes a controller of a topology.
func newController(o Options, g *topology.Graph) (*Controller, error) {
	seed := o.Config.Seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	c := &Controller{options: o, begun: time.Now(), graph: g, seed: seed,
		verdicts: map[reroute.Verdict]uint64{}, repeats: repeats{}, work: make(chan func()),
		ended: make(chan struct{}), failed: make(chan error, 1), epoch: o.Config.Southbound.Epoch,
		gifts: newGifts(), applySeconds: newApplySeconds(), sink: newSink()}
	switch {
	case o.Config.Standby.stands():
		c.standby.Name = o.Config.Standby.Name
	case c.epoch == 0:
		c.epoch = uint64(c.begun.UnixMilli())
	}
	c.lead = newLead()
	c.lead.set(c.epoch)
	if err := c.takeGraph(); err != nil {
		return nil, err
	}
	c.decider.OnReplaced(c.forgotten)
	var err error
	c.journal, err = openJournal(o.Config.Journal, o.Log)
	return c, err
}

// run is the event loop. It is the only goroutine that touches the state.
func (c *Controller) run(ctx context.Context) error {
	forgetting := time.NewTicker(forgetInterval)
	defer forgetting.Stop()
	renewing := time.NewTicker(renewInterval)
	defer renewing.Stop()
	var spreading <-chan time.Time
	if every := c.options.Config.Policy.Groups; every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		spreading = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			c.options.Log.Info("controller ends; flows keep the paths that they have")
			return nil
		case err := <-c.servers.Failed():
			return err
		case err := <-c.failed:
			return err
		case err := <-c.sink.failed:
			return err
		case b := <-c.sink.batches:
			c.sink.take(b, collector.Now())
		case f := <-c.work:
			f()
		case <-forgetting.C:
			c.decider.Forget(c.now())
		case now := <-spreading:
			c.spread(now)
		case now := <-renewing.C:
			c.renew(now)
			c.elephants.expire(now)
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
	for _, r := range reports {
		c.decider.Note(r.Flow, r.At)
	}
	decisions := []Decision{}
	reports = slices.DeleteFunc(reports, c.onlyObserved)
	c.decider.Batch(reports, func(d reroute.Decision) {
		decisions = append(decisions, c.decided(d))
	})
	return decisions
}

// onlyObserved takes the queues of a report, and no more, if the head-end of its flow does not
// follow this controller: another one decides, or which paths flows have is not known yet.
func (c *Controller) onlyObserved(r *reroute.Report) bool {
	if !c.options.Config.Southbound.serves() {
		return false
	}
	if h := c.gifts.heads[c.graph.Node(r.From).Name]; h != nil && h.followed {
		return false
	}
	c.decider.Observe(r)
	c.observed++
	return true
}

// decided notes a decision.
func (c *Controller) decided(d reroute.Decision) Decision {
	c.verdicts[d.Verdict]++
	if d.Verdict == reroute.Moved {
		c.give(d.Flow, d.Path)
	}
	out := c.names.decision(d, c.begun.Add(d.At))
	if d.Verdict != reroute.BackingOff && !c.repeats.again(&d) {
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
	if c.options.Config.follows() {
		return nil, &api.Error{Code: api.Conflict, Message: "which links are up is told by " +
			c.options.Config.Topology}
	}
	for _, e := range links {
		decisions = append(decisions, c.setUp(e, s.Up)...)
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
	c.give(t, path)
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
		Refused: c.refused + c.sink.unplaced, Observed: c.observed, Telemetry: c.sink.status(),
		JournalLost: c.journal.lost.Load(), Flows: c.decider.Known(), FlowsReplaced: c.replaced,
		Verdicts: []Verdict{}, HeadEnds: c.headEnds(),
		Warnings: []string{}}
	for _, v := range sortedVerdicts() {
		s.Verdicts = append(s.Verdicts, Verdict{v.String(), c.verdicts[v]})
	}
	for _, down := range c.down {
		if down {
			s.LinksDown++
		}
	}
	if t := s.Telemetry; t != nil && t.Unplaced > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d reports name routers or links that the "+
			"topology does not have, or no way at all; compare routers[].node with the numbers "+
			"that \"sextant telemetry links\" would show", t.Unplaced))
	}
	if c.reports == 0 {
		s.Warnings = append(s.Warnings, "no report has come yet: weights are not known")
	}
	if c.elephants != nil {
		s.Elephants = len(c.elephants.named)
	}
	if c.options.Config.Southbound.serves() {
		s.Epoch = c.epoch
		if c.epoch != 0 || !c.options.Config.Standby.stands() {
			s.Warnings = append(s.Warnings, c.headWarnings(s.HeadEnds)...)
		}
	}
	if c.options.Config.Standby.stands() {
		standby := c.standby
		s.Standby = &standby
		if standby.Problem != "" {
			s.Warnings = append(s.Warnings, "which controller leads can't be agreed on: "+
				standby.Problem)
		}
	}
	if c.problem != "" {
		s.Warnings = append(s.Warnings, c.problem)
	}
	s.Warnings = append(s.Warnings, c.absent...)
	if warning := c.journal.warning(); warning != "" {
		s.Warnings = append(s.Warnings, warning)
	}
	return s
}

func addrPort(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }
