package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/sim/packet"
	"sextant/te/topology"
)

// Run makes one run. Progress is told how much of the simulated time has passed, and ends the run
// by an error.
func (c *Scenario) Run(g *topology.Graph, scheme string, seed uint64,
	progress func(part float64) error) (*Result, error) {
	if err := c.CheckScheme(scheme); err != nil {
		return nil, err
	}
	choice := schemes[scheme]
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
	if choice == packet.Rerouted || choice == packet.BestResponse {
		config.Paths.RerouteEvery = duration(c.Paths.Reroute.Nanoseconds())
	}
	if c.Mode == "flow" {
		return c.runFlows(g, config, m, progress)
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
	handles, err := c.traffic(g, n, s, seed, &m.started)
	if err != nil {
		return nil, err
	}
	end := duration(c.Duration.Nanoseconds())
	// Deadlocks are looked for less often than whether the run is to end: some steps have nearly
	// all of the packets.
	const steps, looks = 20_000, 200
	for i := range packet.Time(steps) {
		now := end / steps * (i + 1)
		s.Run(now)
		if (i+1)%(steps/looks) == 0 {
			m.result.watch(s, g, now)
		}
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
	t.FreeAcks, t.Linux = c.Transport.FreeAcks, c.Transport.Linux
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
	t.InitialSSThresh = c.Transport.SSThresh
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
func (c *Scenario) traffic(g *topology.Graph, n *packet.Network, s *packet.Simulation,
	seed uint64, started *int) (handles []int, err error) {
	if c.Traffic.Pattern == "permutation" {
		r := rand.New(rand.NewPCG(seed, 17))
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
	next, err := c.flows(g, n, seed)
	if err != nil {
		return nil, err
	}
	s.Feed(func() (packet.Flow, bool) {
		f, ok := next()
		if ok {
			*started++
		}
		return f, ok
	})
	return nil, nil
}

// until is the time until which flows start.
func (c *Scenario) until() time.Duration {
	if c.Traffic.Until == 0 {
		return c.Duration
	}
	return c.Traffic.Until
}

// flows is the stream of flows that end.
func (c *Scenario) flows(g *topology.Graph, n *packet.Network,
	seed uint64) (next func() (packet.Flow, bool), err error) {
	if c.Traffic.Pattern == "trace" {
		return c.traced(g, n)
	}
	rate := 0.0 // bytes per second of all hosts
	clients := c.Traffic.Pattern == "clients"
	for host := range n.Hosts {
		if !clients || host%2 == 0 {
			rate += n.HostRate(host)
		}
	}
	sizes := c.Traffic.drawn
	p := &packet.Poisson{Hosts: len(n.Hosts), Gap: sizes.Mean() / (c.Traffic.Load * rate),
		Sizes: sizes, Until: duration(c.until().Nanoseconds()), Subflows: c.Transport.Subflows}
	if clients {
		p.Pair = func(r *rand.Rand) (src, dst int) {
			return 2 * r.IntN((p.Hosts+1)/2), 2*r.IntN(p.Hosts/2) + 1
		}
	}
	r := rand.New(rand.NewPCG(seed, 17))
	return func() (packet.Flow, bool) { return p.Next(r) }, nil
}

// runFlows makes one run at flow level. Its flows are those that packets would make.
func (c *Scenario) runFlows(g *topology.Graph, config packet.Config, m *measure,
	progress func(float64) error) (*Result, error) {
	x, err := packet.NewFlowLevel(config)
	if err != nil {
		return nil, err
	}
	next, err := c.flows(g, config.Network, config.Seed)
	if err != nil {
		return nil, err
	}
	var stopped error
	err = x.Run(func() (packet.Flow, bool) {
		f, ok := next()
		if ok {
			m.started++
		}
		const often = 1 << 10
		if m.started%often == 0 {
			stopped = progress(f.Start.Seconds() / c.Duration.Seconds())
		}
		return f, ok && stopped == nil
	}, duration(c.Duration.Nanoseconds()))
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
		for _, name := range []string{stream.From, stream.To} {
			if host(name) < 0 {
				return fmt.Errorf("traffic.constant: %q is no host of topology %s; \"sextant "+
					"topology show\" lists its nodes", name, g.Name())
			}
		}
		source := packet.Source{Src: host(stream.From), Dst: host(stream.To),
			Next: packet.ConstantRate(rate, fullPacket)}
		if _, err := s.AddSource(source); err != nil {
			return fmt.Errorf("traffic.constant: from %q to %q: %w", stream.From, stream.To, err)
		}
	}
	return nil
}
