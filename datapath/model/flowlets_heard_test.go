package model_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/config"
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
		{"out of order, sent before", 0, 15 * time.Millisecond, 0, 0, true, false},
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

// A flow that goes on for longer than half of all sequence numbers stays on a path that brings all
// of it.
func TestFlowletsLongFlow(t *testing.T) {
	const octets, round = 60_000, 10 * time.Millisecond
	p := packettest.Packet{Src: netip.MustParseAddr("2001:db8:a::1"), SrcPort: 40000,
		Dst: netip.MustParseAddr("2001:db8:b::1"), DstPort: 80, Flags: "A"}
	frame := func(p packettest.Packet) []byte {
		return slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(t))
	}
	back := p
	back.Src, back.Dst, back.SrcPort, back.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	p.Payload = make([]byte, octets)
	segment, acknowledgement := frame(p), frame(back)
	host := model.Flowlets{Choice: model.FlowletByMeasure, Gap: time.Second,
		FlowletsOuter: config.FlowletsOuter{HopLimit: 64},
		Source:        netip.MustParseAddr("2001:db8:a::1"),
		Measures:      map[netip.Addr]*model.FlowletMeasure{},
		Flows:         map[model.FlowletEnds]*model.FlowletFlow{},
		Groups: []model.FlowletGroup{{Destinations: []netip.Prefix{
			netip.MustParsePrefix("2001:db8:b::/48")}}}}
	for _, sid := range []string{"fcbb:bb00:1::", "fcbb:bb00:2::"} {
		path := model.FlowletPath{SID: netip.MustParseAddr(sid), MTU: 1 << 16}
		host.Groups[0].Paths = append(host.Groups[0].Paths, path)
		host.Measures[path.SID] = &model.FlowletMeasure{}
	}
	now, sequence := uint64(time.Hour), uint32(0)
	var first netip.Addr
	for i := range 3 << 30 / octets {
		binary.BigEndian.PutUint32(segment[deadPathTCP+4:], sequence)
		sent := host.Send(segment, 0, now)
		sequence += octets
		if i == 0 {
			first = sent.Path
		}
		if now += uint64(round); i%2 == 0 { // one segment is always under way
			continue
		}
		binary.BigEndian.PutUint32(acknowledgement[deadPathTCP+8:], sequence-octets)
		host.Heard(acknowledgement, now)
		if measure := host.Measures[first]; sent.Path != first || measure.Left > 0 ||
			measure.Octets > 4*octets {
			t.Fatalf("octet %d is sent to %s, and the first to %s, which has %+v", sequence,
				sent.Path, first, measure)
		}
	}
}

// hostOf is a host with paths to one group.
func hostOf(sids ...netip.Addr) model.Flowlets {
	g := model.FlowletGroup{
		Destinations: []netip.Prefix{netip.MustParsePrefix("2001:db8:b::/48")}}
	for _, sid := range sids {
		g.Paths = append(g.Paths, model.FlowletPath{SID: sid, MTU: 1500})
	}
	return model.Flowlets{Choice: model.FlowletByMeasure, Gap: time.Second,
		FlowletsOuter: config.FlowletsOuter{HopLimit: 64},
		Source:        netip.MustParseAddr("2001:db8:a::1"),
		Measures:      map[netip.Addr]*model.FlowletMeasure{},
		Flows:         map[model.FlowletEnds]*model.FlowletFlow{},
		Groups:        []model.FlowletGroup{g}}
}

// A silent path is tried by what is acknowledged: nothing would come back of an acknowledgement or
// a reset, and the path would seem broken for longer.
func TestFlowletsTryByWhatIsAnswered(t *testing.T) {
	silent, other := netip.MustParseAddr("fcbb:bb00:1::"), netip.MustParseAddr("fcbb:bb00:2::")
	now := uint64(time.Hour)
	for _, c := range []struct {
		flags   string
		payload int
		tries   bool
	}{
		{"S", 0, true}, {"SA", 0, true}, {"A", 100, true}, {"FA", 0, true},
		{"A", 0, false}, {"R", 0, false}, {"RA", 0, false}, {"RA", 100, false},
	} {
		host := hostOf(silent, other)
		host.Measures[silent] = &model.FlowletMeasure{RoundTrip: uint64(20 * time.Millisecond),
			Silent: now - uint64(10*time.Second)}
		host.Measures[other] = &model.FlowletMeasure{RoundTrip: uint64(20 * time.Millisecond),
			Octets: 1e6, At: now, Measured: now} // it is full
		p := packettest.Packet{Src: host.Source, SrcPort: 40000, DstPort: 80, Flags: c.flags,
			Dst: netip.MustParseAddr("2001:db8:b::1"), Payload: make([]byte, c.payload)}
		sent := host.Send(slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(t)), 0, now)
		if tried := sent.Path == silent; tried != c.tries ||
			host.Measures[silent].Tries != uint32(map[bool]int{true: 1}[c.tries]) {
			t.Errorf("%s with %d octets: tries the path: %v, %+v", c.flags, c.payload, tried,
				host.Measures[silent])
		}
	}
}

// By hash of the flow alone, a flow's path is the same whether a path is silent or not, as by ECMP.
func TestFlowletsByFlowKnowNoSilence(t *testing.T) {
	sids := []netip.Addr{netip.MustParseAddr("fcbb:bb00:1::"), netip.MustParseAddr("fcbb:bb00:2::")}
	now, taken := uint64(time.Hour), map[netip.Addr]int{}
	for port := range uint16(100) {
		var paths []netip.Addr
		for _, silent := range []uint64{0, now - uint64(time.Second/10)} {
			host := hostOf(sids...)
			host.Choice = model.FlowletByFlow
			for _, sid := range sids {
				host.Measures[sid] = &model.FlowletMeasure{RoundTrip: uint64(20 * time.Millisecond)}
			}
			host.Measures[sids[0]].Silent = silent
			p := packettest.Packet{Src: host.Source, SrcPort: 40000 + port, DstPort: 80,
				Dst: netip.MustParseAddr("2001:db8:b::1"), Flags: "A"}
			frame := slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(t))
			paths = append(paths, host.Send(frame, 0, now).Path)
		}
		if paths[0] != paths[1] {
			t.Errorf("port %d: %s, and %s while the first is silent", port, paths[0], paths[1])
		}
		taken[paths[0]]++
	}
	if len(taken) != len(sids) {
		t.Errorf("100 flows take the paths %v", taken)
	}
}

// The kernel gives a flow another hash where it takes its path for broken. A reset has a hash of
// its own, and the flow stays where it is.
func TestFlowletsAreToldByHash(t *testing.T) {
	host := hostOf(netip.MustParseAddr("fcbb:bb00:1::"), netip.MustParseAddr("fcbb:bb00:2::"))
	for _, g := range host.Groups[0].Paths {
		host.Measures[g.SID] = &model.FlowletMeasure{}
	}
	var before netip.Addr
	for i, c := range []struct {
		flags string
		hash  uint32
		moves bool
	}{
		{"S", 7, true}, {"A", 7, false}, {"RA", 9, false}, {"A", 7, false}, {"A", 9, true},
		{"A", 0, false}, {"A", 9, false}, {"R", 0, false}, {"A", 7, true},
	} {
		p := packettest.Packet{Src: host.Source, SrcPort: 40000, DstPort: 80, Flags: c.flags,
			Dst: netip.MustParseAddr("2001:db8:b::1")}
		sent := host.Send(slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(t)), c.hash,
			uint64(time.Hour))
		if moves := sent.Path != before; moves != c.moves {
			t.Errorf("packet %d, %s with hash %d: moves: %v", i, c.flags, c.hash, moves)
		}
		before = sent.Path
	}
}

// A path that is silent is tried by one packet after four times the silence that makes it so, and
// each time after twice as long, at most a second, until it is heard.
func TestFlowletsTrySilentPath(t *testing.T) {
	const trip, silence = 20 * time.Millisecond, 25 * time.Millisecond
	silent, other := netip.MustParseAddr("fcbb:bb00:1::"), netip.MustParseAddr("fcbb:bb00:2::")
	began := uint64(time.Hour)
	m := &model.FlowletMeasure{RoundTrip: uint64(trip), Silent: began}
	host := hostOf(silent, other)
	host.Measures[silent] = m
	p := packettest.Packet{Src: host.Source, DstPort: 80,
		Dst: netip.MustParseAddr("2001:db8:b::1"), Flags: "S"}
	frame := func(p packettest.Packet) []byte {
		return slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(t))
	}
	last, now := began, began+uint64(silence)
	for _, waits := range []int{4, 7, 15, 31, 39, 39} {
		for range 1100 {
			now += uint64(time.Millisecond)
			host.Measures[other] = &model.FlowletMeasure{RoundTrip: uint64(trip), Octets: 1e6,
				At: now, Measured: now} // it is full
			p.SrcPort++
			if host.Send(frame(p), 0, now).Path == silent {
				break
			}
		}
		if got := time.Duration(now - last).Round(time.Millisecond); got > time.Duration(waits)*
			silence+time.Millisecond || got < time.Duration(waits)*silence-time.Millisecond {
			t.Errorf("tried after %s, want %s", got, time.Duration(waits)*silence)
		}
		last = now
	}
	p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	p.Flags, p.Ack = "SA", 1
	host.Heard(frame(p), now+uint64(trip))
	if m.Silent != 0 || m.Tries != 0 {
		t.Errorf("after an answer: silent since %d, tried %d times", m.Silent, m.Tries)
	}
}

// A path on which a segment is late is left only if nothing else has come over it for half a round
// trip: a queue that fills goes on bringing what was sent before.
func TestFlowletsStayOnFullQueue(t *testing.T) {
	const trip = 20 * time.Millisecond
	at := func(d time.Duration) uint64 { return uint64(time.Hour + d) }
	p := packettest.Packet{Src: netip.MustParseAddr("2001:db8:a::1"), SrcPort: 40000,
		Dst: netip.MustParseAddr("2001:db8:b::1"), DstPort: 80, Flags: "A", Seq: 9000,
		Payload: make([]byte, 1000)}
	frame := func(p packettest.Packet) []byte {
		return slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(t))
	}
	back := packettest.Packet{Src: p.Dst, SrcPort: p.DstPort, Dst: p.Src, DstPort: p.SrcPort,
		Flags: "A", Ack: 2000}
	full, other := netip.MustParseAddr("fcbb:bb00:1::"), netip.MustParseAddr("fcbb:bb00:2::")
	for _, c := range []struct {
		acknowledged, resent uint32
		stays                bool
	}{{2000, 0, true}, {1000, 0, false}, {2000, 2000, false}} {
		f := &model.FlowletFlow{TCP: true, Path: full, Last: at(0), Heard: at(0), End: 9000,
			Acknowledged: 1000, Since: 1000, Resent: max(c.resent, 1000)}
		m := &model.FlowletMeasure{RoundTrip: uint64(trip), Measured: at(0), Silent: at(0)}
		host := model.Flowlets{Choice: model.FlowletByMeasure, Gap: time.Second,
			FlowletsOuter: config.FlowletsOuter{HopLimit: 64},
			Source:        netip.MustParseAddr("2001:db8:a::1"),
			Measures: map[netip.Addr]*model.FlowletMeasure{full: m,
				other: {RoundTrip: uint64(trip)}},
			Flows: map[model.FlowletEnds]*model.FlowletFlow{{Local: p.Src, Remote: p.Dst,
				LocalPort: p.SrcPort, RemotePort: p.DstPort, Protocol: 6}: f},
			Groups: []model.FlowletGroup{{Paths: []model.FlowletPath{{SID: full, MTU: 1500},
				{SID: other, MTU: 1500}}, Destinations: []netip.Prefix{
				netip.MustParsePrefix("2001:db8:b::/48")}}}}
		back.Ack = c.acknowledged
		if back.Ack > 1000 {
			host.Heard(frame(back), at(30*time.Millisecond))
		}
		m.Silent = at(0) // another flow's segment is late, too
		if sent := host.Send(frame(p), 0, at(35*time.Millisecond)); sent.Path == full != c.stays {
			t.Errorf("%+v: sent to %s", c, sent.Path)
		}
	}
}
