package model_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
)

// A path is waited for since time 0. Segments of the other end that acknowledge nothing new make it
// whole only if what a flow has sent over it since then must have arrived.
func TestFlowletsHearOtherEnd(t *testing.T) {
	const trip = 20 * time.Millisecond
	for _, c := range []struct {
		name           string
		sent, came     time.Duration // when the flow sent last, and when the segment came
		octets, before int           // of the segment, and of the same ones that came before
		waits          bool          // for an acknowledgement
		whole          bool
	}{
		{"new octets", time.Millisecond, 25 * time.Millisecond, 100, 0, false, true},
		{"within a round trip", time.Millisecond, 15 * time.Millisecond, 100, 0, false, false},
		{"sent before", -time.Millisecond, 25 * time.Millisecond, 100, 0, false, false},
		{"the same octets", time.Millisecond, 25 * time.Millisecond, 100, 100, false, false},
		{"while it waits", time.Millisecond, 25 * time.Millisecond, 100, 0, true, false},
		{"out of order", time.Millisecond, 25 * time.Millisecond, 0, 0, true, true},
		{"nothing at all", time.Millisecond, 25 * time.Millisecond, 0, 0, false, false},
	} {
		at := func(d time.Duration) uint64 { return uint64(time.Hour + d) }
		sid := netip.MustParseAddr("fcbb:bb00:1::")
		p := packettest.Packet{Src: netip.MustParseAddr("2001:db8:b::1"), SrcPort: 80,
			Dst: netip.MustParseAddr("2001:db8:a::1"), DstPort: 40000, Flags: "A", Seq: 1000,
			Ack: 5000, Payload: make([]byte, c.octets)}
		f := &model.FlowletFlow{TCP: true, Path: sid, Last: at(c.sent), End: p.Ack,
			Acknowledged: p.Ack, Since: p.Ack, Resent: p.Ack}
		if c.waits {
			f.End += 100
		}
		if c.before > 0 {
			f.Received, f.Receives = p.Seq+uint32(c.before), true
		}
		m := &model.FlowletMeasure{RoundTrip: uint64(trip), Silent: at(0)}
		host := model.Flowlets{Choice: model.FlowletByMeasure,
			Measures: map[netip.Addr]*model.FlowletMeasure{sid: m},
			Flows: map[model.FlowletEnds]*model.FlowletFlow{{Local: p.Dst, Remote: p.Src,
				LocalPort: p.DstPort, RemotePort: p.SrcPort, Protocol: 6}: f}}
		_, heard := host.Heard(slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(t)),
			at(c.came))
		if heard != f || m.Silent == 0 != c.whole {
			t.Errorf("%s: waited for since %v, want whole: %v", c.name, m.Silent, c.whole)
		}
	}
}
