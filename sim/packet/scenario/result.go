package scenario

import (
	"math"
	"slices"

	"sextant/sim/packet"
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

	Sizes []SizeBin `json:"sizes,omitempty"` // the same by size, ascending, as far as there are flows

	Drops           uint64  `json:"drops"`
	Lost            uint64  `json:"lost"`
	Retransmissions uint64  `json:"retransmissions"`
	Timeouts        uint64  `json:"timeouts"`
	Reroutes        uint64  `json:"reroutes"`
	Reordered       uint64  `json:"reordered"` // segments that others overtook
	Packets         uint64  `json:"packets"`
	Hops            uint64  `json:"hops"`
	PeakLoad        float64 `json:"peakLoad"` // of the busiest link

	// Of lossless queues: pauses of links, how long they lasted together, packets that they delayed
	// although the next link had no queue, and flows with such packets.
	Pauses      uint64    `json:"pauses,omitempty"`
	PausedMs    float64   `json:"pausedMs,omitempty"`
	Victims     uint64    `json:"victims,omitempty"`
	VictimFlows int       `json:"victimFlows,omitempty"`
	Deadlock    *Deadlock `json:"deadlock,omitempty"`

	Times    []float64          `json:"-"` // completion times in ms, ascending
	Moves    []int              `json:"-"` // flows that ended, by how often they were rerouted
	Ended    []packet.Completed `json:"-"` // in the order of their ends
	Goodputs []float64          `json:"-"` // of each host's endless flow
	Links    []LinkUse          `json:"-"` // of each edge of the topology
}

// SizeBin sums up the completion times of flows by their size.
type SizeBin struct {
	Bytes  int64   `json:"bytes"` // at most; 10 times those of the bin before
	Flows  int     `json:"flows"`
	MeanMs float64 `json:"meanMs"`
	P50Ms  float64 `json:"p50Ms"`
	P99Ms  float64 `json:"p99Ms"`
}

// LinkUse is what one direction of a link carried.
type LinkUse struct {
	Utilization float64 // part of its rate
	Bytes       uint64
	Drops       uint64
	Marks       uint64 // by ECN
	packet.PauseStats
}

const (
	shortFlow = 100_000
	longFlow  = 1_000_000
	leastBin  = 1_000 // bytes
)

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
	m.result.Ended = append(m.result.Ended, c)
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
	r.Sizes = BySize(r.Ended)
}

// BySize sums up flows by their size, in bins up to powers of ten, of which the first has 1 kB.
func BySize(ended []packet.Completed) (bins []SizeBin) {
	var times [][]float64
	for _, c := range ended {
		bin := 0
		for at := int64(leastBin); at < c.Flow.Bytes; at *= 10 {
			bin++
		}
		for len(times) <= bin {
			times = append(times, nil)
		}
		times[bin] = append(times[bin], (c.Finish-c.Flow.Start).Seconds()*1000)
	}
	most := int64(leastBin)
	for _, ms := range times {
		if slices.Sort(ms); len(ms) > 0 {
			bins = append(bins, SizeBin{Bytes: most, Flows: len(ms), MeanMs: mean(ms),
				P50Ms: Quantile(ms, 0.5), P99Ms: Quantile(ms, 0.99)})
		}
		most *= 10
	}
	return bins
}

// sum fills the result.
func (m *measure) sum(s *packet.Simulation, n *packet.Network, handles []int, end packet.Time) {
	m.completions()
	r := m.result
	t := s.Totals()
	r.Drops, r.Lost, r.Packets, r.Hops = t.Dropped.Packets, t.Lost.Packets, t.Sent.Packets, t.Hops
	r.Retransmissions, r.Timeouts, r.Reroutes = t.Retransmissions, t.Timeouts, t.Reroutes
	r.Reordered, r.VictimFlows = t.Reordered, s.VictimFlows()
	for l := range n.Graph.Edges() {
		given := s.Link(l)
		sent := float64(given.Bytes) - s.Waiting(l)
		use := LinkUse{Utilization: sent / (n.Rate(l) * end.Seconds()), Bytes: uint64(sent),
			Drops: given.Drops, Marks: given.Marks, PauseStats: s.Pauses(l)}
		r.Pauses += use.Pauses
		r.PausedMs += use.Paused.Seconds() * 1000
		r.Victims += use.Victims
		r.PeakLoad = max(r.PeakLoad, use.Utilization)
		r.Links = append(r.Links, use)
	}
	if len(handles) == 0 {
		return
	}
	r.Flows, r.LeastGoodput = len(handles), math.Inf(1)
	squares := 0.0
	for host, h := range handles {
		part := float64(s.Delivered(h)) / (n.HostRate(host) * end.Seconds())
		r.Goodputs = append(r.Goodputs, part)
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
