package datapath

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

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
	// telemetryPlain are hosts, some of which are a part of the sink's destinations.
	telemetryPlain = []netip.Prefix{netip.MustParsePrefix("2001:db8:5e::/48"),
		netip.MustParsePrefix("fcbb:bb00:5:8000::/49")}
)

const (
	telemetryNamespace = 0x5e00
	telemetryShift     = 16
	telemetryUsed      = 654321 // ppm, of the egress link
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
	begun   time.Time
}

func newTelemetryWorld(t testing.TB, encoding model.TelemetryEncoding) *telemetryWorld {
	w := &telemetryWorld{world: newWorld(t), context: make([]byte, skbSize),
		counts: map[model.TelemetryOutcome]uint64{}, reasons: map[model.TelemetryReasons]uint64{},
		drops: map[string]uint64{}, begun: time.Now(),
		ages: rand.New(rand.NewPCG(3, 3))}
	var err error
	config := TelemetryConfig{Node: telemetryNode, Port: telemetryPort, Encoding: encoding,
		Namespace: telemetryNamespace, Shift: telemetryShift,
		SIDs: []netip.Prefix{telemetrySID}, Infrastructure: telemetryInside}
	if encoding != model.EncodingINT {
		config.Plain = telemetryPlain
	}
	w.program, err = OpenTelemetry(w.dir, config)
	must(t, err)
	t.Cleanup(w.program.Close)
	must(t, w.program.SetUtilization(map[uint32]uint32{1 << 20: 1, uint32(w.near): 5}))
	must(t, w.program.SetUtilization(map[uint32]uint32{uint32(w.far): telemetryUsed}))
	w.events, err = w.program.Events()
	must(t, err)
	t.Cleanup(func() { w.events.Close() })
	w.flows = model.TelemetryFlows{Flows: map[flow.Tuple]*model.TelemetryFlow{}}
	w.setWatch(t, telemetryWatchTried)
	w.model = model.TelemetryNode{Port: telemetryPort, SIDs: []netip.Prefix{telemetrySID},
		MTU: 1500, Infrastructure: telemetryInside, Encoding: encoding,
		Namespace: telemetryNamespace, Plain: config.Plain}
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

// now is the time of the model, which goes on as the program's does: what has to be older than a
// threshold becomes so for both.
func (w *telemetryWorld) now() uint64 { return 1<<60 + uint64(time.Since(w.begun)) }

// age makes the flow of a packet older, for program and model alike.
func (w *telemetryWorld) age(t testing.TB, frame []byte) {
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
	known.LastNs, known.OpeningNs = known.LastNs-by, known.OpeningNs-by
	if known.ReportNs != 0 {
		known.ReportNs -= by
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
			telemetry.WideInterfaces | telemetry.EgressTime | telemetry.Utilization,
		Utilization: telemetryUsed,
		NodeID:      telemetryNode, Ingress: uint16(w.near), Egress: uint16(w.far),
		WideIngress: uint32(w.near), WideEgress: uint32(w.far),
	}
	if !KnowsQueues() {
		m.Present &^= telemetry.Queue
	}
	if stamp, ok := stampIn(after); ok {
		// the stamp is of a time at which the program ran, or as old as stamps are apart
		if age := uint8(to%1e9>>telemetryShift) - stamp; uint64(age) <= (to-from)>>telemetryShift+
			1 ||
			from/1e9 != to/1e9 {
			m.EgressTimeNS = uint64(stamp)
		}
		return m
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

// stampIn is what the newest node of Path Tracing wrote of the time.
func stampIn(frame []byte) (stamp uint8, ok bool) {
	if len(frame) < ethernetHeader+ipv6Header+2 || frame[ethernetHeader+6] != 0 {
		return 0, false
	}
	option, err := telemetry.FindOption(frame[ethernetHeader+ipv6Header:],
		telemetry.OptionPathTracing)
	if err != nil || len(option) < 5 {
		return 0, false
	}
	return option[4], true
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
	if !w.model.IsTelemetryCandidate(frame) {
		return model.TelemetryResult{Frame: frame}
	}
	var matches []srpolicy.Match
	for _, c := range w.classes {
		matches = append(matches, c.Match)
	}
	number := w.model.TelemetryClassOf(frame, matches)
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
	if role == "telemetry_sink" {
		w.age(t, frame)
	}
	from, now := taiNow(t), w.now()
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
	w.reports(t, frame, want.Seen, w.flows.See(want.Seen, now))
	return want
}

// reports fails unless the sink says about a frame what the model does.
func (w *telemetryWorld) reports(t testing.TB, frame []byte, seen model.TelemetrySeen,
	want model.TelemetryReport) {
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
	if !bytes.Equal(event.Packet, packet[:min(len(packet), len(telemetryEvent{}.Octets))]) ||
		event.Flow != tuple || event.Interface != w.far || event.Reasons != want.Reasons ||
		late < -1000e9 || late > 1000e9 {
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
	telemetryFieldsTried,
	telemetryNetworksTried,
	{{OneIn: 2, InTurn: true, Instructions: 0xffff, Hops: 255, Slots: 1}},
	{{OneIn: 1, InTurn: true, Instructions: telemetry.EgressTime, Hops: 3, Slots: 31}},
	{},
}

// telemetryFieldsTried are matches of single values, some beside what takes more to compare.
var telemetryFieldsTried = []TelemetryClass{
	{OneIn: 2, InTurn: true, Instructions: telemetry.NodeID, Hops: 3, Match: srpolicy.Match{
		Protocol: unix.IPPROTO_UDP, SourcePorts: srpolicy.Ports{First: 1, Last: 1}, DSCP: 46,
		ByDSCP: true}},
	{OneIn: 1, InTurn: true, Instructions: telemetry.Queue, Hops: 4, Match: srpolicy.Match{
		Source:           netip.MustParsePrefix("::2/127"),
		DestinationPorts: srpolicy.Ports{First: 80, Last: 80}, DSCP: 0, ByDSCP: true}},
	{OneIn: 3, InTurn: true, Instructions: telemetry.NodeID, Hops: 2, Match: srpolicy.Match{
		Destination: netip.MustParsePrefix("0.0.0.0/0"), Protocol: unix.IPPROTO_TCP,
		SourcePorts: srpolicy.Ports{First: 1, Last: 1}}},
	{OneIn: 2, InTurn: true, Instructions: telemetry.NodeID, Hops: 5, Match: srpolicy.Match{
		Destination: netip.MustParsePrefix("::/0")}},
	{OneIn: 1, InTurn: true, Instructions: telemetry.Queue, Hops: 6, Match: srpolicy.Match{
		Protocol: unix.IPPROTO_TCP, DestinationPorts: srpolicy.Ports{First: 79, Last: 81}}},
}

// telemetryNetworksTried are prefixes of either half of an address, alone and beside other values.
var telemetryNetworksTried = []TelemetryClass{
	{OneIn: 2, InTurn: true, Instructions: telemetry.NodeID, Hops: 3, Match: srpolicy.Match{
		Destination: netip.MustParsePrefix("0:5::/32")}},
	{OneIn: 1, InTurn: true, Instructions: telemetry.Queue, Hops: 4, Match: srpolicy.Match{
		Source: netip.MustParsePrefix("0:5::/48"), Protocol: unix.IPPROTO_TCP}},
	{OneIn: 3, InTurn: true, Instructions: telemetry.NodeID, Hops: 2, Match: srpolicy.Match{
		Destination: netip.MustParsePrefix("0.0.0.0/24")}},
	{OneIn: 2, InTurn: true, Instructions: telemetry.NodeID, Hops: 5, Match: srpolicy.Match{
		Destination:      netip.MustParsePrefix("::/64"),
		DestinationPorts: srpolicy.Ports{First: 80, Last: 80}}},
}

// optionClassesTried are for encodings whose header has at most 264 octets.
var optionClassesTried = [][]TelemetryClass{
	{{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID | telemetry.Queue, Hops: 8}},
	{{OneIn: 3, InTurn: true, Instructions: 0xff80, Hops: 1}},
	{
		{OneIn: 2, InTurn: true, Instructions: telemetry.Queue, Hops: 61, Match: srpolicy.Match{
			Source: netip.MustParsePrefix("2001:db8:5e::/48"), Protocol: unix.IPPROTO_TCP,
			DestinationPorts: srpolicy.Ports{First: 80, Last: 81}}},
		{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID, Hops: 3, Match: srpolicy.Match{
			DSCP: 46, ByDSCP: true}},
		{OneIn: 2, InTurn: true, Instructions: telemetry.NodeID | telemetry.Queue, Hops: 1},
	},
	{{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID | telemetry.Interfaces |
		telemetry.HopLatency | telemetry.Queue | telemetry.IngressTime | telemetry.WideInterfaces,
		Hops: 7}},
	{},
}

// TestTelemetryAgreesWithModel feeds generated packets to each program and to the model.
func TestTelemetryAgreesWithModel(t *testing.T) {
	option := []model.TelemetryOutcome{model.TelemetryInserted, model.TelemetryCarries,
		model.TelemetryMTU}
	for _, one := range []struct {
		name     string
		encoding model.TelemetryEncoding
		classes  [][]TelemetryClass
		reached  map[string][]model.TelemetryOutcome
	}{
		{"int", model.EncodingINT, telemetryClassesTried, map[string][]model.TelemetryOutcome{
			"telemetry_source": option,
			"telemetry_transit": {model.TelemetryPushed, model.TelemetryInPlace,
				model.TelemetryMTU, model.TelemetryHops, model.TelemetryBroken,
				model.TelemetryOutside},
			"telemetry_sink": {model.TelemetryRemoved, model.TelemetryDiscarded,
				model.TelemetryBroken, model.TelemetryOutside},
		}},
		{"ioam", model.EncodingIOAM, optionClassesTried, map[string][]model.TelemetryOutcome{
			"telemetry_source":  option,
			"telemetry_transit": {model.TelemetryInPlace, model.TelemetryHops},
			"telemetry_sink":    {model.TelemetryRemoved},
		}},
		{"path-tracing", model.EncodingPathTracing, optionClassesTried,
			map[string][]model.TelemetryOutcome{"telemetry_source": option}},
	} {
		t.Run(one.name, func(t *testing.T) {
			w := newTelemetryWorld(t, one.encoding)
			for number, role := range telemetryRoles {
				if reached := one.reached[role]; len(reached) > 0 {
					w.world.run(t, role, func(t *testing.T) {
						w.compareMany(t, role, uint64(number), one.classes, reached)
					})
				}
			}
			w.counted(t)
			w.reasonsCounted(t)
			t.Log(w.reasons)
			for bit := range model.TelemetryReasonBits {
				if reason := model.TelemetryReasons(1) << bit; len(one.reached) > 1 &&
					w.reasons[reason] < uint64(*frames/2000) {
					t.Errorf("only %d packets: %s; the generator misses", w.reasons[reason],
						reason)
				}
			}
		})
	}
}

// compareMany gives generated frames to a program and to the model, and fails unless each of the
// outcomes is reached.
func (w *telemetryWorld) compareMany(t *testing.T, role string, seed uint64,
	classes [][]TelemetryClass, reached []model.TelemetryOutcome) {
	oneCPU(t) // whose turn it is, each processor counts for itself
	g := telemetryGenerator{rand.New(rand.NewPCG(1, seed))}
	seen := map[model.TelemetryOutcome]int{}
	for i := range *frames {
		if i%(1+*frames/len(classes)) == 0 {
			w.setClasses(t, classes[i*len(classes) / *frames]...)
		}
		frame := g.frame()
		if w.model.Encoding != model.EncodingINT {
			frame = g.frameWithOption()
		}
		if r := w.compare(t, role, frame); r.Counted {
			seen[r.Outcome]++
		}
	}
	t.Log(seen)
	for _, outcome := range reached {
		if seen[outcome] < *frames/200 {
			t.Errorf("only %d of %d frames: %s; the generator misses", seen[outcome], *frames,
				outcome)
		}
	}
}
