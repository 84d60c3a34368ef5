package datapath

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// flowHeaders are lists that flows can have: on the way to all kinds of next hops.
func flowHeaders(t testing.TB, source srpolicy.Source) []srpolicy.Header {
	t.Helper()
	var headers []srpolicy.Header
	for _, p := range steerPolicies() {
		if p.Name != "one" && p.Name != "reduced" && p.Name != "plain" && p.Name != "packets" {
			continue
		}
		for i := range p.Paths[0].Lists {
			path := p.Paths[0]
			path.Action, path.Lists = srpolicy.Path, path.Lists[i:i+1]
			table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: p.Name}},
				[]srpolicy.Policy{{Name: p.Name, Paths: []srpolicy.CandidatePath{path}}}, source,
				nil)
			must(t, err)
			headers = append(headers, table[0].Lists[0])
		}
	}
	return headers
}

// Flows with paths of their own: the program and the model do the same with each frame, where one
// of three flows has a path, one of three had one whose time is over, and one has none; and the
// traffic of lists is that of the model.
func TestFlowPathsAgreeWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for _, side := range []Side{External, Internal} {
		compareFlowPaths(t, w, side, *frames/4+1)
	}
}

func compareFlowPaths(t *testing.T, w *world, side Side, count int) {
	t.Helper()
	ends := newTwoHeadends(t, w, side)
	headers := flowHeaders(t, ends.program.Source())
	arrival := newRunner(ends.program.programs[side], w.near)
	loop := newRunner(ends.program.programs[Internal], ends.program.loop.inner)
	bare := *ends.model // of which no question is remembered
	bare.Table = nil
	ends.model.Flows = map[flow.Tuple]srpolicy.Header{}
	generator, random := steerGenerator(9+uint64(side)), rand.New(rand.NewPCG(1, 2))
	var steered, over, bytes int
	known := map[flow.Tuple]int{}
	for i := range count {
		frame := generator.Next()
		if len(frame) < ethernetHeader {
			continue
		}
		tuple := bare.Process(uint32(w.near), 0, frame).Results[0].Flow
		if _, seen := known[tuple]; !seen && tuple.SrcPort != 0 && len(known) < 1<<14 {
			known[tuple] = random.IntN(3)
			header := headers[random.IntN(len(headers))]
			switch known[tuple] {
			case 0:
				must(t, ends.program.SetFlow(tuple, header, time.Hour))
				ends.model.Flows[tuple] = header
			case 1:
				must(t, ends.program.SetFlow(tuple, header, 0))
				over++
			}
		}
		want := ends.model.Process(uint32(w.near), 0, frame)
		verdict, after := arrival.run(t, frame)
		if want.Flow {
			steered++
			if r := want.Results[0]; r.Verdict == model.Transmit || r.Verdict == model.Redirect {
				bytes += len(frame)
			}
		}
		if !steeredAlike(t, frame, verdict, after, want, ends.model, loop) {
			t.Fatalf("frame %d, flow %v", i, tuple)
		}
	}
	if steered < count/50 || over < 10 || bytes == 0 {
		t.Errorf("%d frames took the path of their flow, %d flows were over, of %d frames: the "+
			"generator misses", steered, over, count)
	}
	flows, err := ends.program.Flows()
	must(t, err)
	left := 0
	for _, f := range flows {
		if f.Left > 0 {
			left++
		}
	}
	if left != len(ends.model.Flows) {
		t.Errorf("%d flows have paths, %d were given one", left, len(ends.model.Flows))
	}
}

// A frame of TCP, written octet by octet: without a path of its own no rule chooses it; with one it
// is encapsulated along it; another path takes its place in one step; removed, or when the time is
// over, it passes again.
func TestFlowPathPackets(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	ends := newTwoHeadends(t, w, Internal)
	must(t, ends.program.SetTable(nil))
	h := ends.program
	tuple := flow.Tuple{Src: netip.MustParseAddr("2001:db8::7"), SrcPort: 4000, DstPort: 443,
		Dst: netip.MustParseAddr("2001:db8:80::80"), Protocol: 6}
	frame := segmentFrame(tuple, 100)
	arrival := newRunner(h.programs[Internal], w.near)
	headers := flowHeaders(t, h.Source())
	check := func(what string, header *srpolicy.Header) {
		t.Helper()
		_, after := arrival.run(t, frame)
		outer := after[ethernetHeader:]
		if header == nil {
			if string(after) != string(frame) {
				t.Errorf("%s: the frame changed: %x", what, after)
			}
			return
		}
		inner := len(header.Octets)
		wantLength := len(frame) - ethernetHeader + inner - 40
		if len(outer) != wantLength+40 || string(outer[24:40]) != string(header.Octets[24:40]) ||
			int(binary.BigEndian.Uint16(outer[4:])) != wantLength {
			t.Errorf("%s: the outer header is %x", what, outer[:inner])
		}
		want := append([]byte(nil), frame[ethernetHeader:]...)
		want[7]-- // a hop
		if string(outer[inner:]) != string(want) {
			t.Errorf("%s: the inner packet is %x, not %x", what, outer[inner:], want)
		}
	}
	check("at first", nil)
	must(t, h.SetFlow(tuple, headers[0], time.Hour))
	check("with a path", &headers[0])
	reply := tuple
	reply.SrcPort++
	must(t, h.SetFlow(reply, headers[1], time.Hour))
	check("when another flow has one", &headers[0])
	must(t, h.SetFlow(tuple, headers[1], time.Hour))
	check("with another path", &headers[1])
	must(t, h.RemoveFlow(tuple))
	must(t, h.RemoveFlow(tuple)) // it is gone already
	check("without", nil)
	must(t, h.SetFlow(tuple, headers[0], 0))
	check("when its time is over", nil)
}

// segmentFrame is a frame of a TCP segment over IPv6.
func segmentFrame(f flow.Tuple, data int) []byte {
	b := make([]byte, ethernetHeader+40+20+data)
	b[12], b[13] = 0x86, 0xdd
	ip := b[ethernetHeader:]
	ip[0], ip[6], ip[7] = 0x60, 6, 64
	binary.BigEndian.PutUint16(ip[4:], uint16(20+data))
	copy(ip[8:], f.Src.AsSlice())
	copy(ip[24:], f.Dst.AsSlice())
	binary.BigEndian.PutUint16(ip[40:], f.SrcPort)
	binary.BigEndian.PutUint16(ip[42:], f.DstPort)
	ip[52] = 5 << 4
	return b
}

// Lists of which no flow is left give their places to others, and lists in use keep theirs: each
// flow has the list that it was given, however many there were.
func TestFlowListsAreUsedAgain(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	h := newTwoHeadends(t, w, Internal).program
	tuple := func(i int) flow.Tuple {
		return flow.Tuple{Src: netip.MustParseAddr("2001:db8::7"), SrcPort: uint16(i),
			DstPort: uint16(1 + i>>16), Dst: netip.MustParseAddr("2001:db8:80::80"), Protocol: 6}
	}
	header := func(i int) srpolicy.Header {
		first := netip.MustParseAddr("fcbb:bb00:1:e::").As16()
		binary.BigEndian.PutUint16(first[14:], uint16(i))
		list := srpolicy.List{Segments: []netip.Addr{netip.AddrFrom16(first),
			netip.MustParseAddr("fcbb:bb00:6:f::")}, Reduced: true}
		header, err := list.Header(h.Source())
		must(t, err)
		return header
	}
	const kept = 100
	for i := range kept {
		must(t, h.SetFlow(tuple(i), header(i), time.Hour))
	}
	for i := kept; i < flowLists+500; i++ {
		must(t, h.SetFlow(tuple(i), header(i), time.Nanosecond))
	}
	flows, err := h.Flows()
	must(t, err)
	found := 0
	for _, f := range flows {
		i := int(f.Flow.SrcPort)
		if i < kept {
			found++
		}
		if want := header(i); f.Left > 0 && string(f.Header.Octets) != string(want.Octets) {
			t.Errorf("flow %d has the list %x", i, f.Header.Octets)
		}
	}
	if found != kept {
		t.Errorf("%d flows of %d are left", found, kept)
	}
	var segments changeSegments
	var place uint32
	shown := h.maps["flow_places"].Iterate()
	for found = 0; shown.Next(&segments, &place); found++ {
		if own, _ := segmentsOf(h.flows.headers[place]); own != segments {
			t.Fatalf("changes find %x in place %d, which has %x", segments, place, own)
		}
	}
	must(t, shown.Err())
	if found != len(h.flows.places) || found < kept {
		t.Errorf("changes find %d lists, of %d", found, len(h.flows.places))
	}
}

func TestHeadendWithoutFlows(t *testing.T) {
	w := newWorld(t)
	h, err := OpenHeadend(w.dir, HeadendConfig{
		Domain:   Domain{Secret: testSecret, Source: netip.MustParseAddr("fd00:5e::1")},
		HopLimit: 63, Interfaces: []HeadendInterface{{Name: "near"}}})
	must(t, err)
	t.Cleanup(h.Close)
	tuple := flow.Tuple{Src: netip.IPv6Loopback(), Dst: netip.IPv6Loopback(), Protocol: 6}
	err = h.SetFlow(tuple, srpolicy.Header{}, time.Hour)
	if !errors.Is(err, ErrNoFlowPaths) || !errors.Is(h.RemoveFlow(tuple), ErrNoFlowPaths) {
		t.Errorf("%v", err)
	}
	flows, err := h.Flows()
	must(t, err)
	if len(flows) != 0 {
		t.Errorf("%v", flows)
	}
}
