package fabric

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/lab"
	"sextant/sim/packet"
	"sextant/te/topology"
)

// plainRate stands for links of the lab without a rate.
const plainRate = 10_000_000 // kbit/s

// A full frame of the lab: the Ethernet header counts for rates, and TCP has timestamps.
const (
	frameBytes   = 1514
	segmentBytes = 1428
	headerBytes  = frameBytes - segmentBytes
)

// networkOf makes the simulator's network of a lab whose links have the same queue, if they have a
// rate.
func networkOf(spec *lab.Spec) (*packet.Network, error) {
	b := topology.NewBuilder(spec.Name, time.Nanosecond)
	nodes := map[string]topology.Node{}
	for _, n := range spec.Nodes {
		v, err := b.AddNode(topology.NodeSpec{Name: n.Name})
		if err != nil {
			return nil, err
		}
		nodes[n.Name] = v
	}
	config := packet.NetworkConfig{Delay: -1, HostQueue: &packet.Queue{}}
	for _, l := range spec.Links {
		for side, end := range l.Ends {
			e := topology.EdgeSpec{From: nodes[end.Node], To: nodes[l.Ends[1-side].Node],
				Weight: max(1, l.Weights[side]), Delay: l.Impair[side].Delay.Nanoseconds(),
				CapacityKbps: int64(l.RateBits / 1000)}
			if l.RateBits == 0 {
				e.CapacityKbps = plainRate
			} else {
				config.Queue.Wait = packet.Time(l.Impair[side].QueueTime+l.Latency) *
					packet.Nanosecond
			}
			if _, err := b.AddEdge(e); err != nil {
				return nil, err
			}
		}
	}
	return packet.NewNetwork(b.Build(), config)
}

// labTransport is TCP as the lab's hosts speak it.
func labTransport(control packet.Control) packet.Transport {
	t := packet.DefaultTransport()
	t.Control, t.Linux = control, true
	t.Payload, t.Header, t.AckSize = segmentBytes, headerBytes, headerBytes
	return t
}

// Runs of the simulator differ by a moment in when flows begin. The lab connects endless flows one
// after the other, each in a round trip, so that none begins in an empty network but the first.
const (
	simulatedRuns = 20
	moment        = packet.Millisecond
	connects      = 17 * packet.Millisecond
)

// simulated plays flows on the simulator's network until all have ended, again and again, and
// returns how long each took in each run, in ms.
func simulated(n *packet.Network, control packet.Control, flows []packet.Flow) (
	times []float64, err error) {
	for seed := range uint64(simulatedRuns) {
		ended := 0
		s, err := shifted(n, control, flows, seed, moment, func(c packet.Completed) {
			times = append(times, (c.Finish-c.Flow.Start).Seconds()*1000)
			ended++
		}, nil)
		if err != nil {
			return nil, err
		}
		const patience = 1000 * packet.Second
		for until := packet.Second; ended < len(flows); until += packet.Second {
			if until > patience {
				return nil, fmt.Errorf("the simulator: %d of %d flows did not end",
					len(flows)-ended, len(flows))
			}
			s.Run(until)
		}
	}
	return times, nil
}

// simulatedGoodputs are those of endless flows between two times, in Mbit/s, in the mean of the
// runs.
func simulatedGoodputs(n *packet.Network, control packet.Control, flows []packet.Flow,
	w window) ([]float64, error) {
	rates := make([]float64, len(flows))
	for seed := range uint64(simulatedRuns) {
		handles := make([]int, len(flows))
		begin := slices.Clone(flows)
		for i := range begin {
			begin[i].Start += packet.Time(i) * connects
		}
		s, err := shifted(n, control, begin, seed, moment, nil, handles)
		if err != nil {
			return nil, err
		}
		s.Run(packet.Time(w.after) * packet.Nanosecond)
		before := make([]int64, len(flows))
		for i, h := range handles {
			before[i] = s.Delivered(h)
		}
		s.Run(packet.Time(w.after+w.lasts) * packet.Nanosecond)
		for i, h := range handles {
			rates[i] += float64(s.Delivered(h)-before[i]) * 8 / 1e6 / w.lasts.Seconds() /
				simulatedRuns
		}
	}
	return rates, nil
}

// shifted prepares a run whose flows begin up to a time later. It notes their handles, if there is
// room.
func shifted(n *packet.Network, control packet.Control, flows []packet.Flow, seed uint64,
	by packet.Time, done func(packet.Completed), handles []int) (*packet.Simulation, error) {
	s, err := packet.New(packet.Config{Network: n, Transport: labTransport(control), Seed: seed,
		Done: done})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, labSeed))
	for i, f := range flows {
		f.Start += packet.Time(r.Int64N(int64(by)))
		h, err := s.Add(f)
		if err != nil {
			return nil, err
		}
		if handles != nil {
			handles[i] = h
		}
	}
	return s, nil
}

// window is a part of a run.
type window struct{ after, lasts time.Duration }
