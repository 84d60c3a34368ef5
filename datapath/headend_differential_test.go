package datapath

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// twoHeadends is the program and its model, on the same table.
type twoHeadends struct {
	program *Headend
	model   *model.Headend
}

// steerPolicies are of all actions and forms, on the way to all kinds of next hops.
func steerPolicies() []srpolicy.Policy {
	sid := func(text string) netip.Addr { return netip.MustParseAddr(text) }
	near, far := []netip.Addr{sid("fcbb:bb00:1:e::"), sid("fcbb:bb00:6:f::")},
		[]netip.Addr{sid("fcbb:bb00:2:e::"), sid("fcbb:bb00:6:f::")}
	unresolved, narrow := []netip.Addr{sid("fcbb:bb00:3::"), near[1]},
		[]netip.Addr{sid("fcbb:bb00:5::"), near[1]}
	blackhole := []netip.Addr{sid("fcbb:bb00:4::")}
	path := func(action srpolicy.Action, lists ...srpolicy.List) []srpolicy.CandidatePath {
		return []srpolicy.CandidatePath{{Name: "only", Action: action, Lists: lists}}
	}
	long := slices.Repeat(near[:1], 8)
	return []srpolicy.Policy{
		{Name: "one", Index: 0, Paths: path(srpolicy.Path, srpolicy.List{Segments: near}),
			MTU: 1400},
		{Name: "reduced", Index: 1, Paths: path(srpolicy.Path,
			srpolicy.List{Segments: far[:1], Reduced: true})},
		{Name: "flows", Index: 2, Paths: path(srpolicy.SplitFlow,
			srpolicy.List{Segments: near, Weight: 3}, srpolicy.List{Segments: far, Reduced: true},
			srpolicy.List{Segments: narrow, Weight: 2, Redundancy: srpolicy.TLV, Flow: 77})},
		{Name: "packets", Index: 3, Paths: path(srpolicy.SplitPacket, srpolicy.List{Segments: near,
			Weight: 3}, srpolicy.List{Segments: unresolved, Weight: 2},
			srpolicy.List{Segments: blackhole, Reduced: true})},
		{Name: "tlv", Index: 4, Paths: path(srpolicy.Mirror,
			srpolicy.List{Segments: near, Redundancy: srpolicy.TLV, Flow: 1},
			srpolicy.List{Segments: far, Reduced: true, Redundancy: srpolicy.TLV, Flow: 2},
			srpolicy.List{Segments: long, Redundancy: srpolicy.TLV, Flow: 3})},
		{Name: "sid", Index: 255, Paths: path(srpolicy.Mirror,
			srpolicy.List{Segments: near, Redundancy: srpolicy.SID, Flow: 1},
			srpolicy.List{Segments: far[1:], Redundancy: srpolicy.SID, Flow: 2},
			srpolicy.List{Segments: far[1:], Reduced: true, Redundancy: srpolicy.SID, Flow: 3},
			srpolicy.List{Segments: unresolved, Reduced: true, Redundancy: srpolicy.SID,
				Flow: 0xfffff})},
		{Name: "plain", Index: 5, Paths: path(srpolicy.Mirror, srpolicy.List{Segments: narrow},
			srpolicy.List{Segments: blackhole, Reduced: true})},
		{Name: "none", Index: 6, DropIfInvalid: true},
	}
}

// steerRules choose by all that rules can look at.
func steerRules() []srpolicy.Rule {
	prefix := netip.MustParsePrefix
	return []srpolicy.Rule{
		{Match: srpolicy.Match{DSCP: 46, ByDSCP: true}, Policy: "one"},
		{Match: srpolicy.Match{Destination: prefix("2001:db8:80::80/128"), Protocol: 6,
			DestinationPorts: srpolicy.Ports{First: 80, Last: 80}}, Policy: "tlv"},
		{Match: srpolicy.Match{Destination: prefix("2001:db8:80::/64"), Protocol: 17,
			DestinationPorts: srpolicy.Ports{First: 50, Last: 60}}, Policy: "flows"},
		{Match: srpolicy.Match{Destination: prefix("198.51.100.80/32"), Protocol: 6,
			SourcePorts: srpolicy.Ports{First: 0, Last: 40000}}, Policy: "sid"},
		{Match: srpolicy.Match{Destination: prefix("198.51.100.80/32"), Protocol: 6},
			Policy: "packets"},
		{Match: srpolicy.Match{Destination: prefix("198.51.100.80/32"), Protocol: 17},
			Policy: "plain"},
		{Match: srpolicy.Match{Destination: prefix("2001:db8:80::81/128"), Protocol: 6},
			Policy: "reduced"},
		{Match: srpolicy.Match{Source: prefix("fd00:5e::/32")}, Policy: "one"},
		{Match: srpolicy.Match{Destination: prefix("198.51.100.81/32"),
			Source: prefix("0.0.0.0/0")}, Policy: "none"},
		{Match: srpolicy.Match{Destination: prefix("2001:db8:80::/48")}, Policy: "flows"},
	}
}

func newTwoHeadends(t testing.TB, w *world, side Side) twoHeadends {
	t.Helper()
	config := HeadendConfig{
		Domain: Domain{
			Secret:         testSecret,
			Block:          block(t),
			Locators:       testLocators,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")},
			Source:         netip.MustParseAddr("fd00:5e::1"),
		},
		HopLimit:   63,
		Epoch:      9,
		AnswerRate: 1e9,
		Flows:      1 << 16,
		Spread:     1 << 16,
		Interfaces: []HeadendInterface{{Name: "near", Side: side}, {Name: "far", Side: Internal}},
	}
	if side == Mixed {
		config.FlowHash = flow.ByNH
	}
	program, err := OpenHeadend(w.dir, config)
	must(t, err)
	t.Cleanup(program.Close)
	table, err := srpolicy.Compile(steerRules(), steerPolicies(), program.Source(), nil)
	must(t, err)
	must(t, program.SetTable(table))
	must(t, program.setPorts([]Attachment{{On: "near", Index: w.near, Mode: Native},
		{On: "far", Index: w.far, Mode: Native}}))
	model := &model.Headend{
		Sides: map[uint32]model.Side{uint32(w.near): side,
			uint32(w.far): model.Internal},
		Block: config.Block, Locators: config.Locators, Infrastructure: config.Infrastructure,
		Table: table, Secret: testSecret, FlowHash: config.FlowHash,
		HopLimit: 64, NextHop: w.modelNextHop, Loop: uint32(program.loop.inner),
	}
	copy(model.LoopLink[:], append(slices.Clone(program.loop.address), loopSource...))
	return twoHeadends{program: program, model: model}
}

// TestHeadendAgreesWithModel feeds the same generated frames to the program and to its Go model:
// same verdict, same bytes, same reasons, and of a mirrored packet the same for each copy that
// comes out of the loop; on each side of the domain.
func TestHeadendAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for _, side := range []Side{External, Internal, Mixed} {
		compareHeadends(t, w, side, *frames/3+1)
	}
}

func compareHeadends(t *testing.T, w *world, side Side, count int) {
	t.Helper()
	ends := newTwoHeadends(t, w, side)
	world := packetgen.World{
		Block: netip.MustParsePrefix("fcbb:bb00::/32"), Locators: testLocators,
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::77")},
	}
	for _, key := range edgeServices {
		world.Services = append(world.Services, packetgen.Service{Addr: key.VIP, Port: key.Port,
			Protocol: key.Protocol})
	}
	generator := packetgen.New(3+uint64(side), world)
	arrival, loop := newRunner(ends.program.programs[side], w.near),
		newRunner(ends.program.programs[Internal], ends.program.loop.inner)
	reasons, entries := tally{}, map[int]int{}
	for i := range count {
		frame := generator.Next()
		if len(frame) < ethernetHeader {
			continue // the kernel's test run refuses frames without an Ethernet header
		}
		want := ends.model.Process(uint32(w.near), 0, frame)
		entries[want.Entry]++
		verdict, after := arrival.run(t, frame)
		for _, r := range want.Results {
			reasons.add(r)
		}
		if len(want.Results) > 1 {
			reasons[model.ReasonNoPath.String()]++ // the copy too many
		}
		if !steeredAlike(t, frame, verdict, after, want, ends.model, loop) {
			t.Fatalf("frame %d, entry %d, lists %v", i, want.Entry, want.Lists)
		}
	}
	for entry, e := range ends.model.Table {
		if side == External && e.Match.Source == netip.MustParsePrefix("fd00:5e::/32") {
			continue // nothing from there comes in
		}
		if entries[entry] < count/1000 {
			t.Errorf("only %d frames met rule %d: the generator misses", entries[entry], entry+1)
		}
	}
	drops, err := ends.program.Drops()
	must(t, err)
	reasons.matches(t, drops, nil)
}

// steeredAlike compares the program with the model. Of a mirrored packet, the program leaves what
// goes into the loop; it is given what comes out as often as there are copies.
func steeredAlike(t *testing.T, frame []byte, verdict uint32, after []byte, want model.Steering,
	model *model.Headend, loop *runner) bool {
	t.Helper()
	if want.Entry < 0 || model.Table[want.Entry].Action != srpolicy.Mirror || want.Lists == nil {
		return agree(t, frame, verdict, after, timed(t, want, 0, model, after))
	}
	if verdict != xdpRedirect {
		t.Errorf("program returned %d for a packet to be copied", verdict)
		return false
	}
	inside := slices.Clone(after)
	for list := range want.Results {
		verdict, after := loop.run(t, inside)
		if !agree(t, frame, verdict, after, timed(t, want, list, model, after)) {
			return false
		}
	}
	verdict, _ = loop.run(t, inside) // one copy too many
	if verdict != xdpDrop {
		t.Errorf("a copy without a list was not dropped, but %d", verdict)
		return false
	}
	return true
}

// timed returns a result of the model with the time at which the program numbered the packet, which
// must be now.
func timed(t *testing.T, s model.Steering, result int, model *model.Headend,
	after []byte) model.Result {
	t.Helper()
	r := s.Results[result]
	if s.Lists == nil || r.Frame == nil {
		return r
	}
	header := model.Table[s.Entry].Lists[s.Lists[result]]
	at := ethernetHeader // of the outer packet, behind up to two tags
	for at < len(r.Frame) && r.Frame[at-2] != 0x86 {
		at += 4
	}
	at += header.NumberAt[0] + 4
	if header.Redundancy != srpolicy.TLV || at+4 > len(after) || at+4 > len(r.Frame) {
		return r
	}
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_TAI, &now))
	ago := uint32(now.Nano()/1000) - binary.BigEndian.Uint32(after[at:])
	if ago > 10_000_000 {
		t.Errorf("numbered %d us ago", ago)
	}
	r.Frame = slices.Clone(r.Frame)
	copy(r.Frame[at:at+4], after[at:])
	return r
}
