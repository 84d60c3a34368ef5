package collector

import (
	"net/netip"

	"sextant/packet/telemetry"
)

// smoothie takes a report of SMOOTHIE's published program. What asks for another path there is a
// long queue here.
func (t *Table) smoothie(from netip.Addr, b []byte, nowNS int64) {
	r, err := telemetry.ParseSmoothieReport(b)
	if err != nil {
		t.Dropped[BadReport]++
		return
	}
	e := Exporter{Address: from, Node: r.Node, Hardware: r.Hardware}
	if !t.isNew(e, r.Sequence&(1<<telemetry.SequenceBits-1), nowNS) {
		return
	}
	t.Reports++
	t.seen.Has, t.seen.Segments, t.seen.Flow = telemetry.HasFlow, nil, r.Flow
	t.samples = r.AppendSamples(t.samples[:0], 0, t.options.SmoothiePacketBytes)
	t.add(r.Dropped, nowNS)
	if r.Dropped {
		t.addDrop(&e, nowNS)
	}
	if t.options.Watch != nil {
		t.report = Report{Exporter: e, Dropped: r.Dropped, Congested: r.Congested || r.Reroute}
		t.watch(nowNS)
	}
}
