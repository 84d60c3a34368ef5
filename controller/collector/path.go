package collector

import (
	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// Path is what the last reported packet of a flow met.
type Path struct {
	Packets uint64
	Hops    int

	recent PathDelta
	routed int // octets of routing

	// Samples and routing, of which a report touches what it has, are behind what each touches.
	Samples [MaxHops]telemetry.Sample
	routing [maxRouting]byte
}

// maxRouting is how much of a segment routing header is kept: one of 16 segments.
const maxRouting = 8 + 16*16

// PathDelta is what reports told of a flow since an earlier time.
type PathDelta struct {
	Packets, Drops  uint64
	FirstNS, LastNS int64 // when the first and the last report came, POSIX time
	// The time of a packet from the first node to the last that told its time, of packets for which
	// two nodes did. Their clocks are taken to agree; where the last is behind, nothing is added.
	DelayUS Extent
	MinUS   uint32 // the least of DelayUS
}

// addToPath makes the samples the last path of a flow. The least recent of a few flows gives way. A
// packet without telemetry of the way to the sink leaves a path that is known.
func (t *Table) addToPath(dropped bool, nowNS int64) {
	known := t.paths.find(t.seen.Flow, nowNS, 0)
	if known == nil {
		t.Dropped[PathsFull]++
		return
	}
	p := &known.value
	p.Packets++
	p.recent.add(t.samples, dropped, t.posixNS(nowNS))
	const onTheWay = telemetry.HasMD | telemetry.HasTrace | telemetry.HasPathTrace
	if len(t.samples) == 1 && t.seen.Has&onTheWay == 0 && p.Hops > 1 {
		return
	}
	p.Hops = copy(p.Samples[:], t.samples)
	if p.Hops < len(t.samples) {
		t.Dropped[TooManyHops] += uint64(len(t.samples) - p.Hops)
	}
	p.routed = 0
	if len(t.seen.Segments) <= maxRouting {
		p.routed = copy(p.routing[:], t.seen.Segments)
	}
}

func (d *PathDelta) add(samples []telemetry.Sample, dropped bool, nowNS int64) {
	if d.Packets == 0 {
		d.FirstNS = nowNS
	}
	d.LastNS = nowNS
	d.Packets++
	if dropped {
		d.Drops++
	}
	if us, ok := delayUS(samples); ok {
		if d.DelayUS.Count == 0 || us < d.MinUS {
			d.MinUS = us
		}
		d.DelayUS.Count++
		d.DelayUS.Sum += uint64(us)
		d.DelayUS.Max = max(d.DelayUS.Max, us)
	}
}

// delayUS returns the time from the first to the last of the samples that tell one, in
// microseconds; false if fewer than two do, or if it is negative or more than 32 bits.
func delayUS(samples []telemetry.Sample) (uint32, bool) {
	first, last := -1, -1
	for i := range samples {
		if samples[i].Known&telemetry.FieldTime == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first == last || samples[last].TimeNS < samples[first].TimeNS {
		return 0, false
	}
	us := (samples[last].TimeNS - samples[first].TimeNS) / 1000
	return uint32(us), us <= 1<<32-1
}

// Routing is the segment routing header of the last reported packet; empty if there is none, or if
// it has more than 16 segments.
func (p *Path) Routing() []byte { return p.routing[:p.routed] }

// TakeRecent returns what came since it was last called.
func (p *Path) TakeRecent() PathDelta {
	d := p.recent
	p.recent = PathDelta{}
	return d
}

// Path returns the last path of a flow and when it was reported; nil if there is none.
func (t *Table) Path(f flow.Tuple) (*Path, int64) {
	i, ok := t.paths.index[f]
	if !ok {
		return nil, 0
	}
	return &t.paths.slots[i].value, t.paths.slots[i].seenNS
}

// EachPathOf calls each with one of some parts of the flows whose path is known, and when one was
// last reported.
func (t *Table) EachPathOf(part, parts int, each func(f flow.Tuple, p *Path, seenNS int64)) {
	for i := part; i < len(t.paths.slots); i += parts {
		s := t.paths.slots[i]
		each(s.key, &s.value, s.seenNS)
	}
}

// Paths returns how many flows have a path.
func (t *Table) Paths() int { return len(t.paths.index) }

// PathsReplaced returns how many paths gave way to those of other flows.
func (t *Table) PathsReplaced() uint64 { return t.paths.replaced }
