package datapath

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"sextant/config"
	"sextant/datapath/model"
	"sextant/datapath/packettest"
)

// flowletWorld is the programs of flowlets beside their model.
type flowletWorld struct {
	t       testing.TB
	rng     *rand.Rand
	model   *model.Flowlets
	program *Flowlets
	ends    []packettest.Packet // of flows
	seen    map[string]int
}

var flowletSource = netip.MustParseAddr("fd00:c0de::a")

func newFlowletWorld(t testing.TB, seed uint64, choice model.FlowletChoice) *flowletWorld {
	t.Helper()
	w := &flowletWorld{t: t, rng: rand.New(rand.NewPCG(seed, 3)), seen: map[string]int{},
		model: &model.Flowlets{Source: flowletSource, Choice: choice,
			Gap:      500 * time.Microsecond,
			Measures: map[netip.Addr]*model.FlowletMeasure{},
			Flows:    map[model.FlowletEnds]*model.FlowletFlow{}}}
	w.model.FlowletsOuter = drawByName[config.FlowletsOuter]("flowlets.", seed)
	var err error
	w.program, err = OpenFlowlets(t.TempDir(), FlowletsConfig{Source: flowletSource,
		FlowletsOuter: w.model.FlowletsOuter, Gap: w.model.Gap, Choice: choice, Flows: 4096})
	must(t, err)
	t.Cleanup(w.program.Close)
	for i := range 12 {
		p := packettest.Packet{Src: netip.MustParseAddr("2001:db8:a::1"),
			Dst:     netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::%x", i%3, i+1)),
			SrcPort: uint16(40000 + i), DstPort: 80}
		switch {
		case i%4 == 3:
			p.Src, p.Dst = netip.MustParseAddr("192.0.2.1"),
				netip.MustParseAddr(fmt.Sprintf("198.51.%d.%d", i%2, i))
		case i == 8:
			p.Dst = netip.MustParseAddr("fd99::1") // no group's
		case i == 4:
			p.Src = flowletSource // no outer header yet
		}
		if i%6 == 5 {
			p.Protocol = layers.IPProtocolUDP
		}
		w.ends = append(w.ends, p)
	}
	return w
}

// groups makes other groups hold.
func (w *flowletWorld) groups() {
	w.t.Helper()
	var groups []model.FlowletGroup
	for _, to := range []string{"2001:db8::/48", "2001:db8:1::/48", "2001:db8::/32", "0.0.0.0/0",
		"198.51.1.0/24"} {
		g := model.FlowletGroup{Destinations: []netip.Prefix{netip.MustParsePrefix(to)}}
		for i := range w.rng.IntN(5) {
			p := model.FlowletPath{MTU: 1500,
				SID:  netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x:d6::", w.rng.IntN(4)*8+i)),
				Down: w.rng.IntN(6) == 0, Interface: uint32(w.rng.IntN(2))}
			if w.rng.IntN(4) == 0 {
				p.MTU = 200
			}
			if w.rng.IntN(4) == 0 {
				p.Delay = time.Duration(w.rng.IntN(5_000_000))
			}
			g.Paths = append(g.Paths, p)
		}
		groups = append(groups, g)
	}
	known := map[netip.Addr]model.FlowletPath{} // one path is the same in all groups
	for _, g := range groups {
		for i, p := range g.Paths {
			if before, ok := known[p.SID]; ok {
				g.Paths[i] = before
			}
			known[p.SID] = g.Paths[i]
		}
	}
	w.model.Groups = groups
	must(w.t, w.program.SetGroups(groups))
	for sid := range known {
		if w.model.Measures[sid] == nil {
			w.model.Measures[sid] = &model.FlowletMeasure{}
		}
	}
	maps.DeleteFunc(w.model.Measures, func(sid netip.Addr, _ *model.FlowletMeasure) bool {
		_, ok := known[sid]
		return !ok
	})
	for _, f := range w.model.Flows { // numbers of paths that are gone name none
		for _, path := range []*netip.Addr{&f.Path, &f.Former} {
			if _, ok := known[*path]; !ok {
				*path = netip.Addr{}
			}
		}
		w.put(f)
	}
}

const noFlowletPath = 0xffffffff

func (w *flowletWorld) number(sid netip.Addr) uint32 {
	if !sid.IsValid() {
		return noFlowletPath
	}
	return w.program.paths[sid]
}

func (w *flowletWorld) layout(f *model.FlowletFlow) flowletFlow {
	l := flowletFlow{Last: f.Last, TimedAt: f.TimedAt, NextAt: f.NextAt, Next: f.Next,
		Heard: f.Heard, Timed: f.Timed, End: f.End, Received: f.Received,
		Acknowledged: f.Acknowledged, KernelHash: f.KernelHash, Since: f.Since, Resent: f.Resent,
		Path: w.number(f.Path), Former: w.number(f.Former)}
	if f.TCP {
		l.Tcp = 1
	}
	if f.Receives {
		l.Receives = 1
	}
	return l
}

func measureLayout(m *model.FlowletMeasure) flowletMeasure {
	return flowletMeasure{Octets: m.Octets, At: m.At, RoundTrip: m.RoundTrip,
		Variation: m.Variation, Measured: m.Measured, Silent: m.Silent, Came: m.Came,
		Packets: m.Packets, Bytes: m.Bytes, Moves: m.Moves, Left: m.Left, Lost: m.Lost,
		Tries: m.Tries}
}

func (w *flowletWorld) put(f *model.FlowletFlow) {
	for ends, one := range w.model.Flows {
		if one == f {
			must(w.t, w.program.maps["flowlet_flows"].Put(flowletKeyOf(ends), w.layout(f)))
		}
	}
}

// age makes times of a flow and of the paths other ones.
func (w *flowletWorld) age(f *model.FlowletFlow) {
	back := func(at *uint64) {
		spans := []uint64{1_000, 400_000, 2_000_000, 80_000_000, 2_000_000_000}
		if *at != 0 && w.rng.IntN(3) == 0 {
			*at -= min(*at-1, w.rng.Uint64N(spans[w.rng.IntN(len(spans))]))
		}
	}
	if f != nil {
		back(&f.Last)
		back(&f.Heard)
		back(&f.TimedAt)
		back(&f.NextAt)
		w.put(f)
	}
	for sid, m := range w.model.Measures {
		if w.rng.IntN(4) > 0 {
			continue
		}
		back(&m.At)
		back(&m.Measured)
		back(&m.Silent)
		back(&m.Came)
		must(w.t, w.program.maps["flowlet_measures"].Put(w.program.paths[sid], measureLayout(m)))
	}
}

// packet makes one of a flow: most continue it.
func (w *flowletWorld) packet() (frame []byte, arrives bool, f *model.FlowletFlow) {
	p := w.ends[w.rng.IntN(len(w.ends))]
	protocol := uint8(6)
	if p.Protocol == layers.IPProtocolUDP {
		protocol = 17
	}
	f = w.model.Flows[model.FlowletEnds{Local: p.Src, Remote: p.Dst, LocalPort: p.SrcPort,
		RemotePort: p.DstPort, Protocol: protocol}]
	p.Seq, p.Ack, p.Flags = w.rng.Uint32(), w.rng.Uint32(), "A"
	if f != nil && w.rng.IntN(20) > 0 {
		p.Seq, p.Ack = f.End, f.Acknowledged+w.rng.Uint32N(f.End-f.Acknowledged+1)
		if w.rng.IntN(6) == 0 { // again
			p.Seq = f.Acknowledged
		}
		if w.rng.IntN(6) == 0 { // nothing new
			p.Ack = f.Acknowledged
		}
	}
	if w.rng.IntN(4) > 0 {
		p.Payload = make([]byte, w.rng.IntN(1500))
	}
	switch w.rng.IntN(16) {
	case 0:
		p.Flags, p.TCPOptions = "SA", []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS,
			OptionLength: 4, OptionData: []byte{byte(w.rng.IntN(8)), 0x40}}}
	case 1:
		p.Flags = "S"
	case 2:
		p.Flags = "FA"
	case 3:
		p.Flags = "RA"
	}
	p.TrafficClass = uint8(w.rng.Uint32())
	if arrives = w.rng.IntN(2) == 0; arrives {
		p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	}
	frame = slices.Concat(nearMAC, routerMAC, []byte{0x86, 0xdd}, p.Bytes(w.t))
	if p.Src.Is4() {
		frame[12], frame[13] = 8, 0
	}
	if arrives && w.rng.IntN(3) == 0 { // behind an outer header
		outer := packettest.Packet{Src: netip.MustParseAddr("fd00:c0de::b"), Dst: flowletSource}
		inner := layers.IPProtocolIPv6
		if p.Src.Is4() {
			inner = layers.IPProtocolIPv4
		}
		frame = slices.Concat(nearMAC, routerMAC, []byte{0x86, 0xdd},
			outer.Of(inner, frame[14:]...).Bytes(w.t))
	}
	if w.rng.IntN(50) == 0 && len(frame) > 60 {
		frame[20+w.rng.IntN(30)] ^= byte(w.rng.Uint32())
	}
	return frame, arrives, f
}

// run gives program and model one packet.
func (w *flowletWorld) run(frame []byte, arrives bool) {
	w.t.Helper()
	name := map[bool]string{false: "flowlet_send", true: "flowlet_heard"}[arrives]
	verdict, after, err := w.program.programs[name].Test(frame)
	if err != nil {
		return // the kernel makes no socket buffer of it: an IP header that is not whole
	}
	if arrives {
		w.heard(frame, verdict, after)
	} else {
		w.sent(frame, verdict, after)
	}
}

func (w *flowletWorld) read(ends model.FlowletEnds) (f flowletFlow) {
	w.t.Helper()
	if err := w.program.maps["flowlet_flows"].Lookup(flowletKeyOf(ends), &f); err != nil {
		w.t.Fatalf("flow %+v: %v", ends, err)
	}
	return f
}

func (w *flowletWorld) sent(frame []byte, verdict uint32, after []byte) {
	w.t.Helper()
	ends, _ := model.FlowletEndsOf(frame, false)
	before := w.model.Flows[ends]
	var was model.FlowletFlow
	if before != nil {
		was = *before
	}
	now := uint64(0)
	var l flowletFlow
	if w.program.maps["flowlet_flows"].Lookup(flowletKeyOf(ends), &l) == nil {
		now = l.Last
	}
	want := w.model.Send(frame, 0, now)
	expected := uint32(tcUnspec)
	if want.Path.IsValid() && want.Interface != 0 {
		expected = tcRedirect
	}
	if verdict != expected || !bytes.Equal(after, want.Frame) {
		w.t.Fatalf("verdict %d, want %d: %+v, flow before %+v, now %+v\nframe   %x\nprogram %x\n"+
			"model   %x", verdict, expected, want, was, want.Flow, frame, after, want.Frame)
	}
	if want.Flow == nil {
		w.seen["not theirs"]++
		return
	}
	if got, want := w.read(ends), w.layout(want.Flow); got != want {
		w.t.Fatalf("flow\nprogram %+v\nmodel   %+v\nbefore  %+v\nframe %x", got, want, was, frame)
	}
	switch {
	case want.TooLong:
		w.seen["too long"]++
	case want.Pathless:
		w.seen["pathless"]++
	case before != nil && was.Path.IsValid() && was.Path != want.Path:
		w.seen["moves"]++
	default:
		w.seen["stays"]++
	}
}

func (w *flowletWorld) heard(frame []byte, verdict uint32, after []byte) {
	w.t.Helper()
	ends, _ := model.FlowletEndsOf(frame, true)
	now := uint64(0)
	var l flowletFlow
	if w.program.maps["flowlet_flows"].Lookup(flowletKeyOf(ends), &l) == nil {
		now = l.Heard
	}
	want, f := w.model.Heard(frame, now)
	if verdict != tcUnspec || !bytes.Equal(after, want) {
		w.t.Fatalf("verdict %d\nframe   %x\nprogram %x\nmodel   %x", verdict, frame, after, want)
	}
	if !bytes.Equal(want, frame) {
		w.seen["clamped"]++
	}
	if f == nil {
		return
	}
	w.seen["heard"]++
	if got, want := w.read(ends), w.layout(f); got != want {
		w.t.Fatalf("flow\nprogram %+v\nmodel   %+v\nframe %x", got, want, frame)
	}
}

func (w *flowletWorld) compareMeasures() {
	w.t.Helper()
	for sid, m := range w.model.Measures {
		var got flowletMeasure
		must(w.t, w.program.maps["flowlet_measures"].Lookup(w.program.paths[sid], &got))
		if want := measureLayout(m); got != want {
			w.t.Fatalf("path %s\nprogram %+v\nmodel   %+v", sid, got, want)
		}
	}
}

// Program and model send the same frames over the same paths, and know the same of flows and paths
// afterwards.
func TestFlowletsDifferential(t *testing.T) {
	newWorld(t)
	packets := 50000
	if testing.Short() {
		packets /= 10
	}
	for choice, wanted := range map[model.FlowletChoice][]string{
		model.FlowletByFlow:    {"stays"},
		model.FlowletAtRandom:  {"moves", "stays"},
		model.FlowletByMeasure: {"moves", "stays"},
	} {
		w := newFlowletWorld(t, uint64(choice), choice)
		for i := range packets {
			if i%2000 == 0 {
				w.groups()
			}
			frame, arrives, f := w.packet()
			w.age(f)
			w.run(frame, arrives)
			w.compareMeasures()
		}
		for _, what := range append(wanted, "heard", "clamped", "too long", "pathless",
			"not theirs") {
			if w.seen[what] < packets/500 {
				t.Errorf("choice %d, %d packets: %s; the generator does not reach it: %v", choice,
					w.seen[what], what, w.seen)
			}
		}
	}
}

var _ = fuzzes(FuzzFlowletSend, "flowlet_send")

// FuzzFlowletSend and FuzzFlowletHeard give programs and model any frame.
func FuzzFlowletSend(f *testing.F) { fuzzFlowlets(f, false) }

var _ = fuzzes(FuzzFlowletHeard, "flowlet_heard")

func FuzzFlowletHeard(f *testing.F) { fuzzFlowlets(f, true) }

// forget takes a frame's flow from the model if others took its place in the program's table, which
// has less room than the fuzzer makes flows.
func (w *flowletWorld) forget(frame []byte, arrives bool) {
	var kept flowletFlow
	ends, _ := model.FlowletEndsOf(frame, arrives)
	if w.program.maps["flowlet_flows"].Lookup(flowletKeyOf(ends), &kept) != nil {
		delete(w.model.Flows, ends)
	}
}

func fuzzFlowlets(f *testing.F, arrives bool) {
	world := newWorld(f)
	w := newFlowletWorld(f, 9, model.FlowletByMeasure)
	w.groups()
	seed(f, 0, func() []byte {
		for {
			if frame, is, _ := w.packet(); is == arrives {
				return frame
			}
		}
	})
	z := &fuzzer{home: mainNamespace(f), world: world.netns}
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		w.t = t
		w.forget(frame, arrives)
		w.run(frame, arrives)
		w.compareMeasures()
	})
}
