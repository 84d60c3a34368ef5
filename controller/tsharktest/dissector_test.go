package tsharktest_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sextant/controller/tsharktest"
	"sextant/packet/telemetry"
)

const (
	dissector  = "../../packaging/wireshark/sextant-telemetry.lua"
	intPort    = 33122
	reportPort = 32766
)

// fields are what Wireshark shows of a frame: the values of a field, in their order.
type fields map[string][]string

func (f fields) add(name string, value any) { f[name] = append(f[name], fmt.Sprint(value)) }

func (f fields) hex(name string, v uint16) { f.add(name, fmt.Sprintf("0x%04x", v)) }

func (f fields) flag(name string, set bool) {
	f.add(name, map[bool]string{false: "0", true: "1"}[set])
}

const baseline = telemetry.NodeID | telemetry.Interfaces | telemetry.HopLatency | telemetry.Queue |
	telemetry.IngressTime | telemetry.EgressTime | telemetry.WideInterfaces |
	telemetry.Utilization | telemetry.Buffer

// node is metadata of a node that knows all, and what is shown of it.
func node(r *rand.Rand, f fields, prefix string, of telemetry.Instructions) []byte {
	m := telemetry.Metadata{Present: of, NodeID: r.Uint32(), Ingress: uint16(r.Uint32()),
		Egress: uint16(r.Uint32()), LatencyNS: r.Uint32(), QueueID: uint8(r.Uint32()),
		QueueBytes: r.Uint32() >> 8, IngressTimeNS: r.Uint64(), EgressTimeNS: r.Uint64(),
		WideIngress: r.Uint32(), WideEgress: r.Uint32(), Utilization: r.Uint32(),
		BufferID: uint8(r.Uint32()), BufferBytes: r.Uint32() >> 8}
	for _, field := range []struct {
		of    telemetry.Instructions
		name  string
		value any
	}{{telemetry.NodeID, "node", m.NodeID}, {telemetry.Interfaces, "ingress", m.Ingress},
		{telemetry.Interfaces, "egress", m.Egress}, {telemetry.HopLatency, "latency", m.LatencyNS},
		{telemetry.Queue, "queue", m.QueueID}, {telemetry.Queue, "queue_bytes", m.QueueBytes},
		{telemetry.IngressTime, "ingress_time", m.IngressTimeNS},
		{telemetry.EgressTime, "egress_time", m.EgressTimeNS},
		{telemetry.WideInterfaces, "wide_ingress", m.WideIngress},
		{telemetry.WideInterfaces, "wide_egress", m.WideEgress},
		{telemetry.Utilization, "utilization", m.Utilization},
		{telemetry.Buffer, "buffer", m.BufferID},
		{telemetry.Buffer, "buffer_bytes", m.BufferBytes}} {
		if of&field.of != 0 {
			f.add(prefix+field.name, field.value)
		}
	}
	return telemetry.AppendMetadata(nil, of, m)
}

// stack is INT-MD with random nodes in front of an inner IPv6 packet, and what is shown of it.
func stack(t *testing.T, r *rand.Rand, f fields) []byte {
	t.Helper()
	of := telemetry.Instructions(r.Uint32()) & (baseline | telemetry.ChecksumComplement)
	own := r.IntN(3) // domain-specific words of each node
	md := telemetry.MD{Shim: telemetry.Shim{NPT: 2, Value: 41}, Discard: r.IntN(2) == 0,
		HopsExceeded: r.IntN(2) == 0, MTUExceeded: r.IntN(2) == 0,
		HopWords: uint8(of.Words() + own), Remaining: uint8(r.Uint32()), Instructions: of,
		DSInstruction: uint16(r.Uint32()), DSFlags: uint16(r.IntN(4))}
	if r.IntN(2) == 0 {
		md.DomainID = telemetry.Domain
		f.add("int.free_slots", md.DSFlags&0xff)
	}
	hops := r.IntN(6)
	for i := range hops {
		if md.DomainID == telemetry.Domain && i < int(md.DSFlags) && md.HopWords > 0 {
			md.Stack = append(md.Stack, make([]byte, 4*int(md.HopWords))...)
			continue
		}
		md.Stack = append(md.Stack, node(r, f, "int.", of&baseline)...)
		for range own {
			md.Stack = binary.BigEndian.AppendUint32(md.Stack, r.Uint32())
		}
		if of&telemetry.ChecksumComplement != 0 {
			c := r.Uint32()
			f.add("int.checksum_complement", fmt.Sprintf("0x%08x", c))
			md.Stack = binary.BigEndian.AppendUint32(md.Stack, c)
		}
	}
	b, err := md.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.add("int.type", 1)
	f.add("int.npt", 2)
	f.add("int.words", 3+len(md.Stack)/4)
	f.add("int.original_protocol", 41)
	f.flag("int.discard", md.Discard)
	f.flag("int.hops_exceeded", md.HopsExceeded)
	f.flag("int.mtu_exceeded", md.MTUExceeded)
	f.add("int.hop_words", md.HopWords)
	f.add("int.remaining", md.Remaining)
	f.hex("int.instructions", uint16(of))
	f.hex("int.domain", md.DomainID)
	f.hex("int.ds_instruction", md.DSInstruction)
	f.hex("int.ds_flags", md.DSFlags)
	return b
}

// tcp is an IPv6 packet with TCP between two ports.
func tcp(r *rand.Rand) []byte {
	b := make([]byte, 60)
	copy(b, []byte{0x60, 0, 0, 0, 0, 20, 6, 64})
	for i := 8; i < 44; i++ {
		b[i] = byte(r.Uint32())
	}
	b[8], b[24] = 0x20, 0x20 // unicast
	b[52], b[53] = 0x50, 0x10
	return b
}

// carried is an IPv6 packet with a segment routing header, INT and TCP inside.
func carried(t *testing.T, r *rand.Rand, f fields) []byte {
	t.Helper()
	inner := tcp(r)
	inside := append(stack(t, r, f), inner...)
	segments := append([]byte{17, 2, 4, 0, 0, 0, 0, 0}, inner[8:24]...)
	udp := binary.BigEndian.AppendUint16([]byte{0x12, 0x34, intPort >> 8, intPort & 0xff},
		uint16(8+len(inside)))
	body := slices.Concat(segments, udp, []byte{0, 0}, inside)
	b := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, uint16(len(body)))
	return slices.Concat(b, []byte{43, 64}, inner[8:24], inner[8:24], body)
}

// report is one report with random contents, and what is shown of it.
func report(t *testing.T, r *rand.Rand, f fields) telemetry.Report {
	t.Helper()
	flag := func() bool { return r.IntN(2) == 0 }
	one := telemetry.Report{Type: telemetry.RepType(r.IntN(3)), Dropped: flag(),
		Congested: flag(), Tracked: flag(), Intermediate: flag()}
	if one.Type == telemetry.RepINT {
		one.Bits = telemetry.Instructions(r.Uint32()) & (baseline &^ telemetry.NodeID)
		one.Metadata = node(r, f, "telemetry_report.metadata.", one.Bits)
		one.DSStatus = uint16(r.Uint32())
		if flag() {
			one.DomainID = telemetry.Domain
			one.DSBits = telemetry.DSIdleGap | telemetry.DSFlowHash
			c := telemetry.Congestion{IdleGapUS: r.Uint32(), FlowHash: r.Uint32()}
			one.Metadata = telemetry.AppendCongestion(one.Metadata, c)
			f.add("telemetry_report.idle_gap", c.IdleGapUS)
			f.add("telemetry_report.flow_hash", fmt.Sprintf("0x%08x", c.FlowHash))
		}
		f.hex("telemetry_report.bits", uint16(one.Bits))
		f.hex("telemetry_report.domain", one.DomainID)
		f.hex("telemetry_report.ds_bits", one.DSBits)
		f.hex("telemetry_report.ds_status", one.DSStatus)
	}
	switch r.IntN(4) {
	case 0:
		one.InType, one.Inner = telemetry.InIPv6, carried(t, r, f)
	case 1: // cut off behind the ports
		inner := tcp(r)
		one.InType, one.Inner = telemetry.InIPv6, inner[:44]
		f.add("telemetry_report.inner_source_port", binary.BigEndian.Uint16(inner[40:]))
		f.add("telemetry_report.inner_destination_port", binary.BigEndian.Uint16(inner[42:]))
	case 2: // cut off within the TCP header behind INT
		b := carried(t, r, f)
		one.InType, one.Inner = telemetry.InIPv6, b[:len(b)-12]
		b = b[len(b)-20:]
		for _, x := range []struct {
			name string
			b    []byte
		}{{"source", binary.BigEndian.AppendUint16([]byte{}, 0x1234)}, {"source", b[:2]},
			{"destination", binary.BigEndian.AppendUint16([]byte{}, intPort)},
			{"destination", b[2:4]}} {
			f.add("telemetry_report.inner_"+x.name+"_port", binary.BigEndian.Uint16(x.b))
		}
	}
	f.add("telemetry_report.type", one.Type)
	f.add("telemetry_report.inner_type", one.InType)
	f.add("telemetry_report.metadata_words", len(one.Metadata)/4)
	f.flag("telemetry_report.dropped", one.Dropped)
	f.flag("telemetry_report.congested", one.Congested)
	f.flag("telemetry_report.tracked", one.Tracked)
	f.flag("telemetry_report.intermediate", one.Intermediate)
	return one
}

// group is a datagram with some reports, and what is shown of it.
func group(t *testing.T, r *rand.Rand, f fields) []byte {
	t.Helper()
	g := telemetry.Group{Hardware: uint8(r.IntN(64)), Sequence: r.Uint32() >> 10, Node: r.Uint32()}
	b, err := g.Append(nil)
	for range r.IntN(4) {
		if err == nil {
			b, err = report(t, r, f).Append(b)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	f.add("telemetry_report.version", 2)
	f.add("telemetry_report.hardware", g.Hardware)
	f.add("telemetry_report.sequence", g.Sequence)
	f.add("telemetry_report.node", g.Node)
	return b
}

// shown are the fields of frames that the dissector adds, of those that are named.
func shown(t *testing.T, frames [][]byte, names []string) []fields {
	t.Helper()
	arguments := []string{"-X", "lua_script:" + dissector, "-T", "fields", "-E", "separator=|"}
	for _, name := range names {
		arguments = append(arguments, "-e", name)
	}
	var all []fields
	for line := range strings.Lines(tsharktest.Read(t, frames, arguments...)) {
		f := fields{}
		for i, values := range strings.Split(strings.TrimSuffix(line, "\n"), "|") {
			if values != "" {
				f[names[i]] = strings.Split(values, ",")
			}
		}
		all = append(all, f)
	}
	return all
}

// What this program writes is shown by Wireshark with the same values, and nothing of it is
// malformed or contradicts itself.
func TestDissector(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var frames [][]byte
	var want []fields
	for i := range 300 {
		f := fields{}
		if i%3 == 0 {
			frames = append(frames, tsharktest.UDP(t, intPort, append(stack(t, r, f), tcp(r)...)))
		} else {
			frames = append(frames, tsharktest.UDP(t, reportPort, group(t, r, f)))
		}
		want = append(want, f)
	}
	compareFields(t, frames, want)
}

// compareFields fails unless Wireshark shows the fields of the frames, and nothing malformed. The
// order counts but for what is inside reports, which is shown behind them.
func compareFields(t *testing.T, frames [][]byte, want []fields) {
	t.Helper()
	names := map[string]bool{"_ws.malformed": true, "int.wrong": true, "int.cut": true,
		"telemetry_report.wrong": true, "telemetry_report.cut": true}
	for _, f := range want {
		for name := range f {
			names[name] = true
		}
	}
	all := slices.Sorted(maps.Keys(names))
	got := shown(t, frames, all)
	if len(got) != len(want) {
		t.Fatalf("%d frames, not %d", len(got), len(want))
	}
	for i := range want {
		for _, name := range all {
			if len(want[i]["telemetry_report.version"]) > 0 {
				slices.Sort(got[i][name])
				slices.Sort(want[i][name])
			}
			if !slices.Equal(got[i][name], want[i][name]) {
				t.Fatalf("frame %d, %s: %v, want %v", i, name, got[i][name], want[i][name])
			}
		}
	}
}

// Whatever lies on the ports, the dissector does not fail; a length that is wrong is said.
func TestDissectorOfDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var frames [][]byte
	for range 600 {
		f := fields{}
		port, b := uint16(reportPort), group(t, r, f)
		if r.IntN(2) == 0 {
			port, b = intPort, append(stack(t, r, f), tcp(r)...)
		}
		if r.IntN(2) == 0 {
			b = b[:r.IntN(len(b))]
		}
		for range min(r.IntN(4), len(b)) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		frames = append(frames, tsharktest.UDP(t, port, b))
	}
	text := tsharktest.Read(t, frames, "-X", "lua_script:"+dissector, "-V")
	if strings.Contains(text, "Lua Error") {
		t.Error("the dissector fails:", text[strings.Index(text, "Lua Error"):][:300])
	}
	if !strings.Contains(text, "A length contradicts another field") ||
		!strings.Contains(text, "The octets end before what the lengths announce") {
		t.Error("nothing is said of what is damaged")
	}
}
