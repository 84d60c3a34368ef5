package reroute

import (
	"math"
	"slices"
	"time"

	"sextant/packet/flow"
	"sextant/te/topology"
)

// rates estimates how fast flows are, and which links they take, from how many of their packets
// telemetry tells of. A queue does not tell that: a transport that heeds ECN keeps it at the mark
// with two flows and with eight.
type rates struct {
	window time.Duration
	// unit is the rate of a flow of which one report comes in a window, as a part of the greatest
	// bandwidth.
	unit  float64
	waits float64     // occupied part of a queue from which on a link is congested
	links []linkState // for their scales
	flows map[flow.Tuple]*rated
	on    [][]*rated // by edge
	// due are flows in the order in which they are looked at, the first of them at next.
	due  []*rated
	next int

	others, here, there []float64 // scratch

	free []freeShare // by edge
}

// freeShare is what one more flow would get of a link, as it was computed last.
type freeShare struct {
	share float64
	until time.Duration // when it is computed again; 0: now
}

// rated is a flow that reports told of lately.
type rated struct {
	key     flow.Tuple
	path    []topology.Edge
	reports float64 // in a window, of which older ones count less
	at      time.Duration
	due     time.Duration // when it is looked at whether reports still come
	moving  time.Duration // until then reports can tell of the path that it had before
}

const (
	// telemetryPacket is the length of packets of fast flows, in bits.
	telemetryPacket = 1500 * 8
	// silentWindows is after how many windows without a report a flow has ended.
	silentWindows = 2
	// windowReports is how many reports of a full link a window has at least: fewer say little.
	windowReports = 8
	// silentReports is after how many times the mean time between its reports a flow that sends
	// none counts for less, as it has likely ended: of flows that go on, one of 55 pauses so long.
	silentReports = 4
	// sharesPerWindow is how often what a flow would get of a link is computed, at most.
	sharesPerWindow = 8
	// half of a queue is occupied, or half of a congested link used by what reports tell of: where
	// it is more, or less, there are others that no report tells of. Transports that heed ECN fill
	// less.
	half = 0.5
)

// newRates is nil if rates are not to be known, or the bandwidth of no link is.
func newRates(g *topology.Graph, links []linkState, s Settings) *rates {
	var most int64
	for e := range topology.Edge(g.Edges()) {
		most = max(most, g.Edge(e).CapacityKbps)
	}
	if most == 0 || s.Policy != Sextant || s.Sampling == 0 {
		return nil
	}
	reports := float64(most) * 1000 * s.Sampling / telemetryPacket // of a full link, per second
	window := max(s.Window, time.Duration(windowReports/reports*float64(time.Second)))
	return &rates{window: window, unit: 1 / (reports * window.Seconds()), links: links,
		waits: s.Threshold, flows: map[flow.Tuple]*rated{}, on: make([][]*rated, g.Edges()),
		free: make([]freeShare, g.Edges())}
}

// note counts a report of a packet that took a path.
func (r *rates) note(t flow.Tuple, path []topology.Edge, at time.Duration) {
	r.expire(at)
	f := r.flows[t]
	if f == nil {
		f = &rated{key: t, at: at, due: at + silentWindows*r.window}
		r.flows[t] = f
		r.due = append(r.due, f)
	}
	f.reports = 1 + r.left(f, at)
	f.at = max(f.at, at)
	if at >= f.moving && !slices.Equal(f.path, path) {
		r.put(f, path)
	}
}

// left is how many reports of a flow count at a time: about exp(-age/window) of each.
func (r *rates) left(f *rated, at time.Duration) float64 {
	age := float64(at-f.at) / float64(r.window)
	return f.reports / (1 + age + age*age/2)
}

// rate of a flow at a time, as a part of the greatest bandwidth.
func (r *rates) rate(f *rated, at time.Duration) float64 {
	reports := r.left(f, at)
	if missed := float64(at-f.at)/float64(r.window)*f.reports - silentReports; missed > 0 {
		reports /= 1 + missed + missed*missed/2 // about exp(-missed)
	}
	return reports * r.unit
}

// moved notes that a flow is to take a path; reports show it after half a window.
func (r *rates) moved(t flow.Tuple, path []topology.Edge, at time.Duration) {
	if f := r.flows[t]; f != nil {
		f.moving = at + r.window/2
		r.put(f, path)
	}
}

func (r *rates) put(f *rated, path []topology.Edge) {
	for _, e := range f.path {
		on := r.on[e]
		i, last := slices.Index(on, f), len(on)-1
		on[i], on[last] = on[last], nil
		r.on[e] = on[:last]
		r.free[e].until = 0
	}
	f.path = append(f.path[:0], path...)
	for _, e := range f.path {
		r.on[e] = append(r.on[e], f)
		r.free[e].until = 0
	}
}

// expire drops flows of which no report has come for some windows.
func (r *rates) expire(at time.Duration) {
	for ; r.next < len(r.due) && r.due[r.next].due <= at; r.next++ {
		f := r.due[r.next]
		if f.due = f.at + silentWindows*r.window; f.due > at {
			r.due = append(r.due, f)
			continue
		}
		r.put(f, nil)
		delete(r.flows, f.key)
	}
	if r.next > len(r.due)/2 {
		r.due = slices.Delete(r.due, 0, r.next)
		r.next = 0
	}
}

// share is the rate that one more flow beside those but one gets of a link, at max-min fairness, as
// a part of the greatest bandwidth. If it is full of other traffic, no more is left than what those
// have that are seen.
func (r *rates) share(e topology.Edge, but *rated, queue float64, at time.Duration) float64 {
	link := &r.links[e]
	if link.down {
		return 0
	}
	capacity, sum, others := 1/link.scale, 0.0, r.others[:0]
	for _, f := range r.on[e] {
		x := r.rate(f, at)
		if sum += x; f != but {
			others = append(others, x)
		}
	}
	r.others = others
	fresh := at-link.at < silentWindows*r.window
	if queue > half || queue > r.waits && fresh && sum < half*capacity {
		capacity = min(capacity, sum)
	}
	// Flows that are slower than an equal part leave the rest of it to the others.
	fair := capacity / float64(len(others)+1)
	for slow := 0; ; {
		left, below := capacity, 0
		for _, x := range others {
			if x < fair {
				left -= x
				below++
			}
		}
		if below == slow {
			return fair
		}
		slow, fair = below, left/float64(len(others)-below+1)
	}
}

// shareOfNext is share for one more flow, some time ago at most.
func (r *rates) shareOfNext(e topology.Edge, queue float64, at time.Duration) float64 {
	free := &r.free[e]
	if at >= free.until {
		*free = freeShare{r.share(e, nil, queue, at), at + r.window/sharesPerWindow}
	}
	return free.share
}

// shares appends what a flow would get of each link of a path, beside the others.
func (r *rates) shares(shares []float64, path []topology.Edge, links []Weight, f *rated,
	at time.Duration) []float64 {
	for i, e := range path {
		if contains(f.path, e) {
			shares = append(shares, r.share(e, f, links[i].Peak, at))
		} else {
			shares = append(shares, r.shareOfNext(e, links[i].Peak, at))
		}
	}
	return shares
}

// least is the least share of a path's links, those in except left out.
func least(shares []float64, path, except []topology.Edge) float64 {
	share := math.Inf(1)
	for i, e := range path {
		if !contains(except, e) {
			share = min(share, shares[i])
		}
	}
	return share
}

// faster moves a flow whose rate is known to the path on which its share is the greatest, if it is
// greater than on its own one. It is false if the rate is not known.
func (d *Decider) faster(out *Decision) bool {
	if d.rates == nil || len(out.Current.Path) == 0 || math.IsInf(out.Current.Weight.Value, 1) {
		return false // a flow whose path is down leaves it for any other
	}
	f := d.rates.flows[out.Flow]
	if f == nil {
		return false
	}
	r, current, s := d.rates, out.Current.Path, &d.settings
	r.here = r.shares(r.here[:0], current, d.current, f, out.At)
	most, best := 0.0, -1
	for i, c := range out.Candidates {
		r.there = r.shares(r.there[:0], c.Path, d.links[i], f, out.At)
		here, there := least(r.here, current, c.Path), least(r.there, c.Path, current)
		if gain := there - here*(1+s.Faster) - s.Margin; gain > most {
			most, best = gain, i
		}
	}
	if out.Verdict = NotLighter; best >= 0 {
		out.Verdict, out.Path = Moved, slices.Clone(out.Candidates[best].Path)
	}
	return true
}
