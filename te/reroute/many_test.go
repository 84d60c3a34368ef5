package reroute

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"sextant/packet/flow"
	"sextant/te/topology"
)

// numbered is one of many flows.
func numbered(i int) flow.Tuple {
	var source [4]byte
	binary.BigEndian.PutUint32(source[:], 0x0a000000+uint32(i))
	return flow.Tuple{Src: netip.AddrFrom4(source), Dst: netip.MustParseAddr("10.255.0.1"),
		SrcPort: 1, DstPort: 2, Protocol: 6}
}

// More flows than fit take the place of others that rested: not of one that is pinned, nor of one
// that goes on. Each flow is known, or was said to be forgotten.
func TestFlowsGiveWay(t *testing.T) {
	const more = 50_000
	g := network(t, "a-b", "b-c", "a-c")
	d, err := NewDecider(g.All(), Defaults(Sextant), 1)
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[flow.Tuple]bool{}
	d.OnReplaced(func(t flow.Tuple) { replaced[t] = true })
	report := func(i int, at time.Duration) {
		d.Report(&Report{Flow: numbered(i), From: 0, To: 2, Pause: true, At: at})
	}
	const pinned, lively = FlowsMax + more, FlowsMax + more + 1
	if err := d.Pin(numbered(pinned), []topology.Edge{0}, 0); err != nil {
		t.Fatal(err)
	}
	for i := range FlowsMax + more {
		at := time.Duration(i) * time.Microsecond
		report(i, at)
		if i%100 == 0 {
			report(lively, at)
		}
	}
	if d.Known() != FlowsMax || len(replaced) != more+2 {
		t.Errorf("%d flows known, %d replaced", d.Known(), len(replaced))
	}
	for i := range lively + 1 {
		if _, known := d.Flow(numbered(i)); known == replaced[numbered(i)] ||
			i >= pinned && !known {
			t.Fatalf("flow %d of %d is known: %v, replaced: %v", i, lively, known,
				replaced[numbered(i)])
		}
	}
	if gone := d.Forget(time.Hour); gone != FlowsMax-1 || d.Known() != 1 {
		t.Errorf("%d are forgotten, %d are left", gone, d.Known())
	}
}
