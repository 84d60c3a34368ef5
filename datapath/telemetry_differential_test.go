package datapath

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/telemetry"
	"sextant/te/srpolicy"
)

const (
	telemetryPort = 33122
	telemetryNode = 0x5e000001

	skbIngress = 36 // offsets in struct __sk_buff
	skbGSOSize = 176
)

var (
	telemetrySID    = netip.MustParsePrefix("fcbb:bb00:5::/48")
	telemetryInside = []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48"),
		netip.MustParsePrefix("fd00:5f:8000::/33")}
)

// telemetryRoles are the programs, by the names of their entry points.
var telemetryRoles = []string{"telemetry_source", "telemetry_transit", "telemetry_sink"}

// telemetryWorld is the programs with their model. Packets leave by far, whose MTU it is.
type telemetryWorld struct {
	*world
	program *Telemetry
	model   model.TelemetryNode
	classes []TelemetryClass
	left    [TelemetryClasses]uint32 // packets until the source chooses one of a class
	context []byte
	events  *TelemetryEvents
	counts  map[model.TelemetryOutcome]uint64
	flows   model.TelemetryFlows
	drops   map[string]uint64
	reasons map[model.TelemetryReasons]uint64
	ages    *rand.Rand
}

func newTelemetryWorld(t testing.TB) *telemetryWorld {
	w := &telemetryWorld{world: newWorld(t), context: make([]byte, skbSize),
		counts: map[model.TelemetryOutcome]uint64{}, reasons: map[model.TelemetryReasons]uint64{},
		drops: map[string]uint64{},
		ages:  rand.New(rand.NewPCG(3, 3))}
	var err error
	w.program, err = OpenTelemetry(w.dir, TelemetryConfig{Node: telemetryNode, Port: telemetryPort,
		SIDs: []netip.Prefix{telemetrySID}, Infrastructure: telemetryInside})
	must(t, err)
	t.Cleanup(w.program.Close)
	w.events, err = w.program.Events()
	must(t, err)
	t.Cleanup(func() { w.events.Close() })
	w.flows = model.TelemetryFlows{Flows: map[flow.Tuple]*model.TelemetryFlow{}}
	w.setWatch(t, telemetryWatchTried)
	w.model = model.TelemetryNode{Port: telemetryPort, SIDs: []netip.Prefix{telemetrySID},
		MTU: 1500, Infrastructure: telemetryInside}
	binary.NativeEndian.PutUint32(w.context[skbInterface:], uint32(w.far))
	binary.NativeEndian.PutUint32(w.context[skbIngress:], uint32(w.near))
	return w
}

// setClasses makes the classes of packets others.
func (w *telemetryWorld) setClasses(t testing.TB, classes ...TelemetryClass) {
	t.Helper()
	must(t, w.program.SetClasses(classes))
	w.classes = classes
}

// telemetryWatchTried has times that a test does not reach unless it makes a flow older: the
// program's clock goes on.
var telemetryWatchTried = model.TelemetryWatch{
	GapNS: 1000e9, GapRTTs: 2, QueueBytes: 0x800000, QueueChange: 0x400000, Limit: 1 << 31,
	Reasons: 1<<model.TelemetryReasonBits - 1, FlowIntervalNS: 3000e9,
}

// setWatch makes what is reported something else.
func (w *telemetryWorld) setWatch(t testing.TB, watch model.TelemetryWatch) {
	t.Helper()
	must(t, w.program.SetWatch(watch))
	w.flows.Watch = watch
}

// telemetryNow is the time of the model.
const telemetryNow = 1 << 60

// age makes the flow of a packet older, for program and model alike.
func (w *telemetryWorld) age(t testing.TB, frame []byte) {
	t.Helper()
	seen := w.model.TelemetrySink(frame).Seen
	tuple, _, ok := seen.Flow()
	f := w.flows.Flows[tuple]
	if !ok || f == nil {
		return
	}
	// the last is of another processor, whose packet was later and is noted already
	by := []uint64{0, 0, 0, 5000e9, 17000e9, 1<<64 - 7001e9}[w.ages.IntN(6)]
	if by != 0 { // no sum of some is a multiple of others: the program's clock goes on meanwhile
		by += w.ages.Uint64N(1000e9)
	}
	f.LastNS, f.OpeningNS, f.ReportNS = f.LastNS-by, f.OpeningNS-by, f.ReportNS-by
	key := telemetryFlowKey{Source: tuple.Src.As16(), Destination: tuple.Dst.As16(),
		Protocol: tuple.Protocol, Version: 6}
	if tuple.Src.Is4() {
		key.Version = 4
	}
	binary.BigEndian.PutUint16(key.SourcePort[:], tuple.SrcPort)
	binary.BigEndian.PutUint16(key.DestinationPort[:], tuple.DstPort)
	var known telemetryFlow
	must(t, w.program.maps["telemetry_flows"].Lookup(key, &known))
	known.LastNS, known.OpeningNS = known.LastNS-by, known.OpeningNS-by
	if known.ReportNS != 0 {
		known.ReportNS -= by
	}
	must(t, w.program.maps["telemetry_flows"].Put(key, known))
}

// run gives the frame to a program. It is not taken if it is a part of an IP header.
func (w *telemetryWorld) run(role string, frame []byte) (verdict uint32, after []byte, taken bool) {
	options := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+1024),
		Context: w.context}
	verdict, err := w.program.programs[role].Run(&options)
	return verdict, options.DataOut, err == nil
}

// sees is what the node writes about a packet that became after: the time is taken from there, and
// must be one at which the program ran.
func (w *telemetryWorld) sees(t testing.TB, after []byte, from, to uint64) telemetry.Metadata {
	m := telemetry.Metadata{
		Present: telemetry.NodeID | telemetry.Interfaces | telemetry.Queue |
			telemetry.WideInterfaces | telemetry.EgressTime,
		NodeID: telemetryNode, Ingress: uint16(w.near), Egress: uint16(w.far),
		WideIngress: uint32(w.near), WideEgress: uint32(w.far),
	}
	if !KnowsQueues() {
		m.Present &^= telemetry.Queue
	}
	md, err := mdIn(after)
	if err != nil || md.Instructions&telemetry.EgressTime == 0 {
		return m
	}
	md.DomainID = 0 // a node writes in front of free slots that are none
	for i := range md.Hops() {
		if hop, _ := md.Hop(i); from <= hop.EgressTimeNS && hop.EgressTimeNS <= to {
			m.EgressTimeNS = hop.EgressTimeNS
		}
	}
	return m
}

// mdIn is the telemetry behind the extension headers, whatever these contain.
func mdIn(frame []byte) (telemetry.MD, error) {
	const hopByHop, routing, options, udp = 0, 43, 60, 8
	at := ethernetHeader + ipv6Header
	if len(frame) < at {
		return telemetry.MD{}, telemetry.Truncated
	}
	next := frame[ethernetHeader+6]
	for at+2 <= len(frame) && (next == hopByHop || next == routing || next == options) {
		next, at = frame[at], at+8+8*int(frame[at+1])
	}
	if at+udp > len(frame) {
		return telemetry.MD{}, telemetry.Truncated
	}
	md, _, err := telemetry.ParseMD(frame[at+udp:])
	return md, err
}

func taiNow(t testing.TB) uint64 {
	var now unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_TAI, &now))
	return uint64(now.Nano())
}

// want is what the model makes of the frame.
func (w *telemetryWorld) want(role string, frame []byte,
	seen telemetry.Metadata) model.TelemetryResult {
	switch role {
	case "telemetry_transit":
		return w.model.TelemetryTransit(frame, seen)
	case "telemetry_sink":
		return w.model.TelemetrySink(frame)
	}
	if !model.IsTelemetryCandidate(frame) {
		return model.TelemetryResult{Frame: frame}
	}
	var matches []srpolicy.Match
	for _, c := range w.classes {
		matches = append(matches, c.Match)
	}
	number := model.TelemetryClassOf(frame, matches)
	if number < 0 || w.classes[number].Instructions == 0 {
		return model.TelemetryResult{Frame: frame}
	}
	class, left := w.classes[number], &w.left[number]
	if *left == 0 || *left > class.OneIn {
		*left = class.OneIn
	}
	if *left--; *left != 0 {
		return model.TelemetryResult{Frame: frame}
	}
	return w.model.TelemetrySource(frame, model.TelemetryClass{
		Instructions: class.Instructions, Hops: class.Hops, Slots: class.Slots}, seen)
}

// compare gives one frame to program and model.
func (w *telemetryWorld) compare(t testing.TB, role string, frame []byte) model.TelemetryResult {
	t.Helper()
	if role == "telemetry_sink" {
		w.age(t, frame)
	}
	from := taiNow(t)
	verdict, after, taken := w.run(role, frame)
	if !taken {
		return model.TelemetryResult{Frame: frame}
	}
	want := w.want(role, frame, w.sees(t, after, from, taiNow(t)))
	expected := uint32(tcUnspec)
	if want.Counted {
		w.counts[want.Outcome]++
		switch {
		case want.Outcome == model.TelemetryDiscarded:
			expected = tcShot
			w.drops["telemetry_probe"]++
		case want.Outcome == model.TelemetryOutside && role == "telemetry_sink":
			expected = tcShot
			w.drops["outside_domain"]++
		}
	}
	if verdict != expected || !bytes.Equal(after, want.Frame) {
		t.Fatalf("%s: verdict %d, want %d (%s)\nframe   %x\nprogram %x\nmodel   %x", role, verdict,
			expected, want.Outcome, frame, after, want.Frame)
	}
	w.reports(t, frame, want.Seen, w.flows.See(want.Seen, telemetryNow))
	return want
}

// reports fails unless the sink says about a frame what the model does.
func (w *telemetryWorld) reports(t testing.TB, frame []byte, seen model.TelemetrySeen,
	want model.TelemetryReport) {
	t.Helper()
	if want.Silent {
		if want.Limited != 0 {
			w.counts[want.Limited]++
		}
		return
	}
	event, err := w.events.Next()
	must(t, err)
	packet := frame[ethernetHeader:]
	tuple, _, _ := seen.Flow()
	late := int64(event.GapNS - want.GapNS)
	if !bytes.Equal(event.Packet, packet[:min(len(packet), telemetryCapture)]) ||
		event.Flow != tuple || event.Interface != w.far || event.Reasons != want.Reasons ||
		late < 0 || late > 1000e9 {
		t.Fatalf("reported %+v\nwant %+v of\n%x", event, want, packet)
	}
	for reason := model.TelemetryReasons(1); reason != 1<<model.TelemetryReasonBits; reason <<= 1 {
		if event.Reasons&reason != 0 {
			w.reasons[reason]++
		}
	}
}

// counted fails unless the programs counted what the model did.
func (w *telemetryWorld) counted(t testing.TB) {
	t.Helper()
	outcomes, err := w.program.Outcomes()
	must(t, err)
	for outcome := range model.TelemetryOutcomes {
		if got := outcomes[outcome]; got.Packets != w.counts[outcome] ||
			got.Name != outcome.String() {
			t.Errorf("%s: counted %+v, want %d", outcome, got, w.counts[outcome])
		}
	}
	drops, err := w.program.Drops()
	must(t, err)
	for _, got := range drops {
		if got.Packets != w.drops[got.Name] {
			t.Errorf("dropped %+v, want %d", got, w.drops[got.Name])
		}
	}
}

// reasonsCounted fails unless the sink counted the reasons that it told.
func (w *telemetryWorld) reasonsCounted(t testing.TB) {
	t.Helper()
	got, err := w.program.Reasons()
	must(t, err)
	for bit, counted := range got {
		if reason := model.TelemetryReasons(1) << bit; counted.Packets != w.reasons[reason] ||
			counted.Name != reason.String() {
			t.Errorf("%s: counted %+v, want %d", reason, counted, w.reasons[reason])
		}
	}
}

var telemetryClassesTried = [][]TelemetryClass{
	{{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID | telemetry.Queue, Hops: 8}},
	{{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID | telemetry.Queue, Hops: 8, Slots: 3}},
	{{OneIn: 3, InTurn: true, Instructions: 0xff80, Hops: 1}},
	{
		{OneIn: 2, InTurn: true, Instructions: telemetry.Queue, Hops: 2, Match: srpolicy.Match{
			Source: netip.MustParsePrefix("::4/126"), Protocol: unix.IPPROTO_TCP,
			DestinationPorts: srpolicy.Ports{First: 80, Last: 81}}},
		{Match: srpolicy.Match{Source: netip.MustParsePrefix("0.0.0.0/31")}},
		{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID, Hops: 3, Match: srpolicy.Match{
			DSCP: 46, ByDSCP: true}},
		{OneIn: 2, InTurn: true, Instructions: telemetry.EgressTime, Hops: 3, Slots: 2,
			Match: srpolicy.Match{Destination: netip.MustParsePrefix("0.0.0.1/32"),
				Protocol: unix.IPPROTO_UDP, SourcePorts: srpolicy.Ports{First: 1, Last: 9}}},
		{OneIn: 3, InTurn: true, Instructions: telemetry.NodeID | telemetry.Queue, Hops: 4},
	},
	{{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID, Hops: 3, Match: srpolicy.Match{
		Destination: netip.MustParsePrefix("::1/128")}}},
	{{OneIn: 2, InTurn: true, Instructions: 0xffff, Hops: 255, Slots: 1}},
	{{OneIn: 1, InTurn: true, Instructions: telemetry.EgressTime, Hops: 3, Slots: 31}},
	{},
}

// TestTelemetryAgreesWithModel feeds generated packets to each program and to the model.
func TestTelemetryAgreesWithModel(t *testing.T) {
	w := newTelemetryWorld(t)
	reached := map[string][]model.TelemetryOutcome{
		"telemetry_source": {model.TelemetryInserted, model.TelemetryCarries, model.TelemetryMTU},
		"telemetry_transit": {model.TelemetryPushed, model.TelemetryInPlace, model.TelemetryMTU,
			model.TelemetryHops, model.TelemetryBroken, model.TelemetryOutside},
		"telemetry_sink": {model.TelemetryRemoved, model.TelemetryDiscarded,
			model.TelemetryBroken, model.TelemetryOutside},
	}
	for number, role := range telemetryRoles {
		w.world.run(t, role, func(t *testing.T) {
			oneCPU(t) // whose turn it is, each processor counts for itself
			g := telemetryGenerator{rand.New(rand.NewPCG(1, uint64(number)))}
			seen := map[model.TelemetryOutcome]int{}
			for i := range *frames {
				if i%(1+*frames/len(telemetryClassesTried)) == 0 {
					w.setClasses(t,
						telemetryClassesTried[i*len(telemetryClassesTried) / *frames]...)
				}
				if r := w.compare(t, role, g.frame()); r.Counted {
					seen[r.Outcome]++
				}
			}
			t.Log(seen)
			for _, outcome := range reached[role] {
				if seen[outcome] < *frames/200 {
					t.Errorf("only %d of %d frames: %s; the generator misses", seen[outcome],
						*frames, outcome)
				}
			}
		})
	}
	w.counted(t)
	w.reasonsCounted(t)
	t.Log(w.reasons)
	for bit := range model.TelemetryReasonBits {
		if reason := model.TelemetryReasons(1) << bit; w.reasons[reason] < uint64(*frames/2000) {
			t.Errorf("only %d packets: %s; the generator misses", w.reasons[reason], reason)
		}
	}
}

// telemetryGenerator makes packets with and without telemetry, right and wrong ones.
type telemetryGenerator struct{ *rand.Rand }

func (g telemetryGenerator) octets(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g telemetryGenerator) pick(from ...int) int { return from[g.IntN(len(from))] }

// inner is a packet of one of few flows, or of none.
func (g telemetryGenerator) inner() (packet []byte, protocol uint8) {
	b := g.octets(g.pick(0, 20, 40, 60, 600, 1200+g.IntN(300)))
	transport := slices.Concat([]byte{0, byte(g.IntN(2)), 0, 80}, g.octets(9),
		[]byte{byte(g.pick(16, 16, 16, 16, 2, 18, 17, 4, 0))}, b)
	l4, host := byte(g.pick(6, 6, 6, 17, 1)), byte(g.IntN(8))
	class := g.pick(0, 0, 46<<2, 46<<2|1, 10<<2)
	switch g.IntN(8) {
	case 0, 1, 2:
		header := append(make([]byte, 40), transport...)
		header[0], header[6], header[23], header[39] = 0x60|byte(class>>4), l4, host, 1
		header[1] = byte(class << 4)
		return header, 41
	case 3, 4, 5:
		ihl := g.pick(5, 5, 5, 6, 15)
		header := append(make([]byte, 4*ihl), transport...)
		header[0], header[9], header[15], header[19] = byte(0x40|ihl), l4, host, 1
		header[1], header[6] = byte(class), byte(g.pick(0, 0, 0, 0x20, 1))
		return header, 4
	}
	return append([]byte{0}, b...), uint8(g.pick(41, 4, 143, 6, 17))
}

// frame is a frame with an Ethernet header.
func (g telemetryGenerator) frame() []byte {
	inner, next := g.inner()
	if g.IntN(4) > 0 {
		inner, next = g.carrying(inner, next), 17
	}
	var extensions []byte
	first := next
	for range g.pick(0, 1, 1, 1, 2, 3, 4) {
		units := g.pick(0, 2, 4, 6, 15, 31)
		extension := append([]byte{first, byte(units)}, g.octets(6+8*units)...)
		extensions = append(extension, extensions...)
		first = uint8(g.pick(43, 43, 43, 0, 60))
	}
	ip := binary.BigEndian.AppendUint32(nil, 6<<28|g.Uint32()>>4)
	ip = binary.BigEndian.AppendUint16(ip, uint16(len(extensions)+len(inner)))
	ip = append(ip, first, 64)
	from := telemetryInside[g.IntN(2)].Addr().As16()
	if copy(from[8:], g.octets(8)); g.IntN(8) == 0 {
		from[4] ^= 0x80
	}
	ip = append(ip, from[:]...)
	to := telemetrySID.Addr().As16()
	if copy(to[8:], g.octets(8)); g.IntN(8) == 0 {
		to[5]++
	}
	ip = slices.Concat(ip, to[:], extensions, inner)
	frame := slices.Concat(nearMAC, routerMAC, []byte{0x86, 0xdd}, ip)
	switch g.IntN(16) {
	case 0:
		frame[ethernetHeader+g.IntN(len(ip))] ^= 1 << g.IntN(8)
	case 1:
		frame = frame[:ethernetHeader+g.IntN(len(ip))]
	case 2:
		frame = append(frame, g.octets(g.IntN(30))...)
	case 3:
		frame[13] = byte(g.Uint32())
	}
	return frame
}

// carrying puts INT in front of an inner packet, with lies now and then.
func (g telemetryGenerator) carrying(inner []byte, next uint8) []byte {
	instructions := telemetry.Instructions(g.pick(0x8000, 0x9000, 0xff80, 0x0400, 0xffff, 0))
	words := instructions.Words() + g.pick(0, 0, 1, 5)
	md := telemetry.MD{Shim: telemetry.Shim{NPT: uint8(g.pick(2, 2, 2, 2, 2, 2, 1)),
		Value: uint16(next)}, Discard: g.IntN(8) == 0, HopWords: uint8(words),
		Remaining: uint8(g.pick(0, 1, 7, 255)), Instructions: instructions,
		DSFlags: uint16(g.pick(0, 1, 2, 3, 60, 0x101))}
	if g.IntN(2) == 0 {
		md.DomainID = telemetry.Domain
	}
	hops := min(g.pick(0, 1, 2, 3, 8, 250), 250/max(1, words))
	md.Stack = bytes.Repeat([]byte{0xff}, 4*words*hops)
	if g.IntN(2) == 0 {
		md.Stack = g.octets(4 * (words*hops + g.pick(0, 0, 1)))
	}
	behind, err := md.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	udp := binary.BigEndian.AppendUint16(nil, uint16(g.Uint32()))
	udp = binary.BigEndian.AppendUint16(udp, uint16(telemetryPort-g.pick(0, 0, 0, 0, 0, 0, 1)))
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(behind)+len(inner)))
	udp = append(udp, 0, 0)
	all := slices.Concat(udp, behind, inner)
	if g.IntN(8) == 0 {
		all[g.IntN(24)] ^= 1 << g.IntN(8)
	}
	return all
}
