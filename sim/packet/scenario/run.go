package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"sextant/sim/packet"
	"sextant/te/topology"
)

// Result sums up one run.
type Result struct {
	Scheme string `json:"scheme"`
	Seed   uint64 `json:"seed"`

	// Of endless flows: goodput as a part of the sender's link, 1 if it carries nothing but data.
	Goodput      float64 `json:"goodput"`
	LeastGoodput float64 `json:"leastGoodput"`
	Fairness     float64 `json:"fairness"` // Jain's index of the goodputs

	// Of flows that end: completion times in ms.
	Flows      int     `json:"flows"`
	Unfinished int     `json:"unfinished"`
	MeanMs     float64 `json:"meanMs"`
	P50Ms      float64 `json:"p50Ms"`
	P99Ms      float64 `json:"p99Ms"`
	ShortMs    float64 `json:"shortMs"`    // mean of flows of less than 100 kB
	ShortP99Ms float64 `json:"shortP99Ms"` // and their 99th percentile
	LongMs     float64 `json:"longMs"`     // mean of flows of more than 1 MB

	Drops           uint64  `json:"drops"`
	Lost            uint64  `json:"lost"`
	Retransmissions uint64  `json:"retransmissions"`
	Timeouts        uint64  `json:"timeouts"`
	Reroutes        uint64  `json:"reroutes"`
	Packets         uint64  `json:"packets"`
	Hops            uint64  `json:"hops"`
	PeakLoad        float64 `json:"peakLoad"` // of the busiest link

	Times []float64 `json:"-"` // completion times in ms, ascending
	Moves []int     `json:"-"` // flows that ended, by how often they were rerouted
}

const (
	shortFlow = 100_000
	longFlow  = 1_000_000
)

// Run makes one run. Progress is told how much of the simulated time has passed, and ends the run
// by an error.
func (c *Scenario) Run(g *topology.Graph, scheme string, seed uint64,
	progress func(part float64) error) (*Result, error) {
	choice, err := named("paths.scheme", schemes, scheme)
	if err != nil {
		return nil, err
	}
	n, err := c.Network(g)
	if err != nil {
		return nil, err
	}
	m := &measure{result: &Result{Scheme: scheme, Seed: seed}}
	config := packet.Config{Network: n, Transport: c.transport(), Seed: seed, Done: m.done,
		Paths: packet.Paths{
			Scheme: choice, Capped: c.Paths.Capped,
			FlowletGap:  duration(c.Paths.FlowletGap.Nanoseconds()),
			Convergence: duration(c.Paths.Convergence.Nanoseconds()),
			Meter:       duration(c.Paths.Meter.Nanoseconds()),
			Probe:       duration(c.Paths.Probe.Nanoseconds()),
			Freeze:      duration(c.Paths.Freeze.Nanoseconds()),
			Cutoff:      duration(c.Paths.Cutoff.Nanoseconds())}}
	if choice == packet.Controlled {
		if config.Paths.Controller, err = c.Paths.Controller.policy(scheme); err != nil {
			return nil, err
		}
	}
	if config.Paths.Through, err = c.through(g); err != nil {
		return nil, err
	}
	if c.Paths.Parallel {
		config.Paths.List = n.ParallelBCube(c.Topology.N, c.Topology.K+1)
	}
	if choice == packet.Rerouted {
		config.Paths.RerouteEvery = duration(c.Paths.Reroute.Nanoseconds())
		if c.Mode != "flow" || config.Paths.RerouteEvery == 0 {
			return nil, fmt.Errorf("paths.scheme: rerouted needs mode: flow, and paths.reroute: " +
				"how often flows look at another path")
		}
	}
	if c.Mode == "flow" {
		return c.runFlows(config, m, progress)
	}
	s, err := packet.New(config)
	if err != nil {
		return nil, err
	}
	if err := c.constant(g, n, s); err != nil {
		return nil, err
	}
	if err := c.failures(g, s); err != nil {
		return nil, err
	}
	handles, err := c.traffic(n, s, seed, &m.started)
	if err != nil {
		return nil, err
	}
	end := duration(c.Duration.Nanoseconds())
	const steps = 200
	for i := range packet.Time(steps) {
		s.Run(end / steps * (i + 1))
		if err := progress(float64(i+1) / steps); err != nil {
			return nil, err
		}
	}
	s.Run(end)
	if err := s.Err(); err != nil {
		return nil, err
	}
	m.sum(s, n, handles, end)
	return m.result, nil
}

func (c *Scenario) transport() packet.Transport {
	t := packet.DefaultTransport()
	t.Control = controls[c.Transport.Control]
	t.ECN = t.Control == packet.DCTCP
	t.FreeAcks = c.Transport.FreeAcks
	if c.Transport.ECN != nil {
		t.ECN = *c.Transport.ECN
	}
	if c.Transport.MinRTO > 0 {
		t.MinRTO = duration(c.Transport.MinRTO.Nanoseconds())
	}
	if c.Transport.DelayedAck != nil {
		t.DelayedAck = packet.Time(*c.Transport.DelayedAck) * packet.Microsecond
	}
	if c.Transport.InitialWindow > 0 {
		t.InitialWindow = c.Transport.InitialWindow
	}
	if c.Transport.Reordering > 0 {
		t.Reordering = uint32(c.Transport.Reordering)
	}
	return t
}

func (c *Scenario) failures(g *topology.Graph, s *packet.Simulation) error {
	for _, f := range c.Failures {
		edges, err := both(g, f.From, f.To)
		if err != nil {
			return fmt.Errorf("failures: %w", err)
		}
		for _, e := range edges {
			if err := s.Schedule(packet.Change{At: duration(f.At.Nanoseconds()),
				Link: int(e)}); err != nil {
				return err
			}
			if f.Back == 0 {
				continue
			}
			if err := s.Schedule(packet.Change{At: duration(f.Back.Nanoseconds()), Link: int(e),
				Up: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// traffic adds flows; the handles are of endless ones.
func (c *Scenario) traffic(n *packet.Network, s *packet.Simulation, seed uint64,
	started *int) (handles []int, err error) {
	r := rand.New(rand.NewPCG(seed, 17))
	if c.Traffic.Pattern == "permutation" {
		for src, dst := range packet.Permutation(len(n.Hosts), r) {
			h, err := s.Add(packet.Flow{Src: src, Dst: dst, Bytes: packet.Endless,
				Subflows: c.Transport.Subflows})
			if err != nil {
				return nil, err
			}
			handles = append(handles, h)
		}
		return handles, nil
	}
	flows, err := c.flows(n)
	if err != nil {
		return nil, err
	}
	s.Feed(func() (packet.Flow, bool) {
		f, ok := flows.Next(r)
		if ok {
			*started++
		}
		return f, ok
	})
	return nil, nil
}

// flows is the stream of random flows.
func (c *Scenario) flows(n *packet.Network) (*packet.Poisson, error) {
	sizes, err := c.Traffic.sizes()
	if err != nil {
		return nil, err
	}
	until := c.Traffic.Until
	if until == 0 {
		until = c.Duration
	}
	rate := 0.0 // bytes per second of all hosts
	clients := c.Traffic.Pattern == "clients"
	for host := range n.Hosts {
		if !clients || host%2 == 0 {
			rate += n.HostRate(host)
		}
	}
	p := &packet.Poisson{Hosts: len(n.Hosts), Gap: sizes.Mean() / (c.Traffic.Load * rate),
		Sizes: sizes, Until: duration(until.Nanoseconds()), Subflows: c.Transport.Subflows}
	if clients {
		p.Pair = func(r *rand.Rand) (src, dst int) {
			return 2 * r.IntN((p.Hosts+1)/2), 2*r.IntN(p.Hosts/2) + 1
		}
	}
	return p, nil
}

// runFlows makes one run at flow level. Its flows are those that packets would make.
func (c *Scenario) runFlows(config packet.Config, m *measure,
	progress func(float64) error) (*Result, error) {
	x, err := packet.NewFlowLevel(config)
	if err != nil {
		return nil, err
	}
	flows, err := c.flows(config.Network)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(config.Seed, 17))
	var stopped error
	err = x.Run(func() (packet.Flow, bool) {
		f, ok := flows.Next(r)
		if ok {
			m.started++
		}
		const often = 1 << 10
		if m.started%often == 0 {
			stopped = progress(f.Start.Seconds() / c.Duration.Seconds())
		}
		return f, ok && stopped == nil
	}, flows.Until)
	if err == nil {
		err = stopped
	}
	if err != nil {
		return nil, err
	}
	m.completions()
	m.result.Reroutes = m.reroutes
	return m.result, progress(1)
}

// constant adds the streams that heed no congestion.
func (c *Scenario) constant(g *topology.Graph, n *packet.Network, s *packet.Simulation) error {
	host := func(name string) int {
		v, ok := g.Lookup(name)
		if !ok {
			return -1
		}
		return slices.Index(n.Hosts, packet.Node(v))
	}
	for _, stream := range c.Traffic.Constant {
		rate, err := ParseRate(stream.Rate)
		if err != nil {
			return fmt.Errorf("traffic.constant: %w", err)
		}
		source := packet.Source{Src: host(stream.From), Dst: host(stream.To),
			Next: packet.ConstantRate(rate, fullPacket)}
		if _, err := s.AddSource(source); err != nil {
			return fmt.Errorf("traffic.constant: from %q to %q: %w", stream.From, stream.To, err)
		}
	}
	return nil
}

// measure collects what flows tell when they end.
type measure struct {
	result              *Result
	started             int
	reroutes            uint64
	times, short        []float64
	longSum             float64
	longCount, finished int
}

func (m *measure) done(c packet.Completed) {
	ms := (c.Finish - c.Flow.Start).Seconds() * 1000
	m.times = append(m.times, ms)
	m.reroutes += uint64(c.Reroutes)
	for len(m.result.Moves) <= c.Reroutes {
		m.result.Moves = append(m.result.Moves, 0)
	}
	m.result.Moves[c.Reroutes]++
	m.finished++
	if c.Flow.Bytes < shortFlow {
		m.short = append(m.short, ms)
	}
	if c.Flow.Bytes > longFlow {
		m.longSum += ms
		m.longCount++
	}
}

// completions sums up the flows that ended.
func (m *measure) completions() {
	r := m.result
	slices.Sort(m.times)
	slices.Sort(m.short)
	r.Times, r.Flows, r.Unfinished = m.times, m.finished, m.started-m.finished
	r.MeanMs, r.P50Ms, r.P99Ms = mean(m.times), Quantile(m.times, 0.5), Quantile(m.times, 0.99)
	r.ShortMs, r.ShortP99Ms = mean(m.short), Quantile(m.short, 0.99)
	if m.longCount > 0 {
		r.LongMs = m.longSum / float64(m.longCount)
	}
}

// sum fills the result.
func (m *measure) sum(s *packet.Simulation, n *packet.Network, handles []int, end packet.Time) {
	m.completions()
	r := m.result
	t := s.Totals()
	r.Drops, r.Lost, r.Packets, r.Hops = t.Dropped.Packets, t.Lost.Packets, t.Sent.Packets, t.Hops
	r.Retransmissions, r.Timeouts, r.Reroutes = t.Retransmissions, t.Timeouts, t.Reroutes
	for l := range n.Graph.Edges() {
		sent := float64(s.Link(l).Bytes) - s.Waiting(l)
		r.PeakLoad = max(r.PeakLoad, sent/(n.Rate(l)*end.Seconds()))
	}
	if len(handles) == 0 {
		return
	}
	r.Flows, r.LeastGoodput = len(handles), math.Inf(1)
	squares := 0.0
	for host, h := range handles {
		part := float64(s.Delivered(h)) / (n.HostRate(host) * end.Seconds())
		r.Goodput += part / float64(len(handles))
		r.LeastGoodput = min(r.LeastGoodput, part)
		squares += part * part / float64(len(handles))
	}
	if squares > 0 {
		r.Fairness = r.Goodput * r.Goodput / squares
	}
}

func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Quantile is the smallest of sorted values that a part q of them does not exceed; 0 of none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}
