package collector_test

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sextant/controller/collector"
	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

var from = netip.MustParseAddr("2001:db8::7")

func fromHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inner is TCP from port 40000 to 443, and its flow.
const inner = `60000000 00140640
	20010db8000100000000000000000001 20010db8000200000000000000000002
	9c40 01bb 00000000 00000000 50020000 00000000`

var innerFlow = flow.Tuple{Src: netip.MustParseAddr("2001:db8:1::1"),
	Dst: netip.MustParseAddr("2001:db8:2::2"), SrcPort: 40000, DstPort: 443, Protocol: 6}

// stack is the INT-MD of nodes 1, 9 and 5 with queues 64, 12 and 0.
const stack = `18090029 20000205 90000000 00000000
	00000005 00000000 00000009 0000000c 00000001 00000040`

// carried is inner in SRv6 with INT-MD.
const carried = `60000000 006c1140
	fc000000000000000000000000000001 fc000000000000000000000000000002` +
	` 1234 8162 006c 0000` + stack + inner

// worked is the example of a report that this program publishes: node 12, hardware 3, sequence
// number 0xabcd, interfaces 7 and 1, queue 37.
const worked = `20c0abcd 0000000c 15130260 50000000 00000000 00070001 00000025`

func report(t testing.TB, g telemetry.Group, rs ...telemetry.Report) []byte {
	t.Helper()
	b, err := g.Append(nil)
	for _, r := range rs {
		if err == nil {
			b, err = r.Append(b)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func links(table *collector.Table) map[collector.Link][3]uint64 {
	out := map[collector.Link][3]uint64{}
	table.EachLink(func(l collector.Link, s *collector.LinkState, _ int64) {
		out[l] = [3]uint64{s.Samples, uint64(s.QueueBytes.Last), s.Drops}
	})
	return out
}

const unknown = ^uint32(0)

// Each source of samples ends in the same table.
func TestSources(t *testing.T) {
	md := fromHex(t, carried)
	if _, err := telemetry.EmbeddedMD(md, telemetry.InIPv6, collector.DefaultINTPort); err != nil {
		t.Fatal(err)
	}
	traced := fromHex(t, `60000000 00340040
		20010db8000100000000000000000001 20010db8000200000000000000000002
		06030100 311a0000 007b1000 82000000 3e000009 0000000c 3f000005 00000040
		`+inner[strings.Index(inner, "9c40"):])
	slots := telemetry.PathTrace(make([]byte, 6))
	for _, m := range []telemetry.Midpoint{{Interface: 1, Stamp: 2}, {Interface: 2, Stamp: 3}} {
		if err := slots.Push(m); err != nil {
			t.Fatal(err)
		}
	}
	probed := fromHex(t, `60000000 00240040
		20010db8000100000000000000000001 20010db8000200000000000000000002
		06010100 3206`+hex.EncodeToString(slots)+`01020000`+inner[strings.Index(inner, "9c40"):])
	queue := telemetry.AppendMetadata(nil, telemetry.Queue, telemetry.Metadata{
		Present: telemetry.Queue, QueueBytes: 99})
	for _, test := range []struct {
		name  string
		b     []byte
		links map[collector.Link][3]uint64
		nodes []uint64
	}{
		{"worked example", append(fromHex(t, worked), fromHex(t, inner)...),
			map[collector.Link][3]uint64{{Node: 12, Egress: 1}: {1, 37, 0}}, []uint64{12}},
		{"INT-MD in an inner-only report", report(t, telemetry.Group{Node: 12},
			telemetry.Report{InType: telemetry.InIPv6, Inner: md}),
			map[collector.Link][3]uint64{{Node: 1, Egress: unknown}: {1, 64, 0},
				{Node: 9, Egress: unknown}: {1, 12, 0}, {Node: 5, Egress: unknown}: {1, 0, 0}},
			[]uint64{1, 9, 5}},
		{"INT-MD, and the sink's own queue", report(t, telemetry.Group{Node: 12},
			telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6,
				Bits: telemetry.Queue, Metadata: queue, Inner: md, Dropped: true}),
			map[collector.Link][3]uint64{{Node: 1, Egress: unknown}: {1, 64, 0},
				{Node: 9, Egress: unknown}: {1, 12, 0}, {Node: 5, Egress: unknown}: {1, 0, 0},
				{Node: 12, Egress: unknown}: {1, 99, 1}}, []uint64{1, 9, 5, 12}},
		{"INT-MD with the sink's own hop", report(t, telemetry.Group{Node: 5},
			telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6,
				Bits: telemetry.Queue, Metadata: queue, Inner: md}),
			map[collector.Link][3]uint64{{Node: 1, Egress: unknown}: {1, 64, 0},
				{Node: 9, Egress: unknown}: {1, 12, 0}, {Node: 5, Egress: unknown}: {1, 0, 0}},
			[]uint64{1, 9, 5}},
		{"IOAM trace", report(t, telemetry.Group{Node: 12}, telemetry.Report{
			Type: telemetry.RepIOAM, InType: telemetry.InIPv6, Inner: traced}),
			map[collector.Link][3]uint64{{Node: 5, Egress: unknown}: {1, 64, 0},
				{Node: 9, Egress: unknown}: {1, 12, 0}}, []uint64{5, 9}},
		{"Path Tracing", report(t, telemetry.Group{Node: 12}, telemetry.Report{
			InType: telemetry.InIPv6, Inner: probed}), map[collector.Link][3]uint64{},
			[]uint64{0, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := collector.NewTable(collector.Options{})
			table.Datagram(from, test.b, 7e18)
			if table.Dropped != (collector.NewTable(collector.Options{}).Dropped) {
				t.Fatal("dropped", table.Dropped)
			}
			if diff := cmp.Diff(test.links, links(table)); diff != "" {
				t.Fatal(diff)
			}
			p, _ := table.Path(innerFlow)
			if p == nil {
				t.Fatal("the flow has no path")
			}
			var nodes []uint64
			for i, s := range p.Samples[:p.Hops] {
				nodes = append(nodes, s.Node)
				if int(s.Hop) != i {
					t.Errorf("hop %d says it is %d", i, s.Hop)
				}
			}
			if !slices.Equal(nodes, test.nodes) {
				t.Fatal(nodes)
			}
		})
	}
}

// Coalesced reports are all taken; a broken one ends the datagram and is counted.
func TestCoalesced(t *testing.T) {
	one := telemetry.Report{InType: telemetry.InIPv6, Inner: fromHex(t, inner)}
	b := report(t, telemetry.Group{Node: 1}, one, one, one)
	table := collector.NewTable(collector.Options{})
	table.Datagram(from, b, 1)
	if table.Reports != 3 {
		t.Fatalf("%d reports", table.Reports)
	}
	b[3]++ // the sequence number
	table.Datagram(from, b[:len(b)-1], 1)
	if table.Dropped[collector.BadPacket] != 0 || table.Reports != 5 ||
		table.Dropped[collector.BadReport] != 1 {
		t.Fatalf("%d reports, %v", table.Reports, table.Dropped)
	}
}

// TLVs are walked; broken ones are counted, and the rest of the report is taken.
func TestTLVs(t *testing.T) {
	tlv, err := telemetry.TLV{Type: 3, Template: 0x2000, Value: make([]byte, 8)}.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	table := collector.NewTable(collector.Options{})
	for i, inner := range [][]byte{tlv, tlv[:8]} {
		table.Datagram(from, report(t, telemetry.Group{Sequence: uint32(i)}, telemetry.Report{
			Type: telemetry.RepInnerOnly, InType: telemetry.InTLV, Inner: inner}), 1)
	}
	if table.Reports != 2 || table.Dropped[collector.BadPacket] != 1 {
		t.Fatalf("%d reports, %v", table.Reports, table.Dropped)
	}
}

// What watchers see of a flow that paused.
func TestCongestion(t *testing.T) {
	want := telemetry.Congestion{IdleGapUS: 300, FlowHash: 7}
	var got []telemetry.Congestion
	table := collector.NewTable(collector.Options{Watch: func(r *collector.Report) {
		if r.Congested && r.Congestion != nil {
			got = append(got, *r.Congestion)
		}
	}})
	table.Datagram(from, report(t, telemetry.Group{Node: 1}, telemetry.Report{
		Type: telemetry.RepINT, Congested: true, DomainID: telemetry.Domain,
		DSBits:   telemetry.DSIdleGap | telemetry.DSFlowHash,
		Metadata: telemetry.AppendCongestion(nil, want)}), 1)
	if !slices.Equal(got, []telemetry.Congestion{want}) {
		t.Fatal(got)
	}
}

// A datagram that comes twice, or from elsewhere, changes nothing but counters.
func TestRepeatedAndForeign(t *testing.T) {
	seen := 0
	table := collector.NewTable(collector.Options{
		Exporters: []netip.Prefix{netip.PrefixFrom(from, from.BitLen())},
		Watch:     func(*collector.Report) { seen++ }})
	b := append(fromHex(t, worked), fromHex(t, inner)...)
	table.Datagram(from.Next(), b, 1)
	if seen != 0 || table.Dropped[collector.Foreign] != 1 || len(links(table)) != 0 {
		t.Errorf("from elsewhere: %d reports seen, %v", seen, table.Dropped)
	}
	table.Datagram(from, b, 2)
	before := links(table)
	for range 3 {
		table.Datagram(from, b, 3)
	}
	if diff := cmp.Diff(before, links(table)); seen != 1 || diff != "" ||
		table.Dropped[collector.Repeated] != 3 {
		t.Errorf("repeated: %d reports seen, %v, links %s", seen, table.Dropped, diff)
	}
}

// A report of SMOOTHIE's program, by hand (packet/telemetry has its parts), is taken if its packets
// have a size, and only once.
func TestSmoothieReport(t *testing.T) {
	b := fromHex(t, "14000043 0000000c 00000001 00bc614e 020000000002 020000000001 86dd "+
		"60000000 0050 11 3f 20010db8000000010000000000000001 20010db8000000050000000000000005 "+
		"9c40 01bb 0058 0000 01 01 00 07 00 10 00 02 06 9000 0000 "+
		"00000009 00800003 00000001 0000000c")
	var seen []collector.Report
	for _, bytes := range []uint32{0, 1500} {
		table := collector.NewTable(collector.Options{SmoothiePacketBytes: bytes,
			Watch: func(r *collector.Report) { seen = append(seen, *r) }})
		table.Datagram(from, b, 1)
		table.Datagram(from, b, 2)
		table.Datagram(from, b[:len(b)-1], 3)
		got := links(table)
		switch {
		case bytes == 0 && (len(got) != 0 || table.Dropped[collector.BadGroup] != 3):
			t.Errorf("without a size: %v, %v", got, table.Dropped)
		case bytes > 0 && (len(got) != 2 || table.Dropped[collector.Repeated] != 1 ||
			table.Dropped[collector.BadReport] != 1):
			t.Errorf("with a size: %v, %v", got, table.Dropped)
		}
	}
	if len(seen) != 1 || !seen[0].Congested || seen[0].Flow.DstPort != 443 ||
		seen[0].Samples[0].QueueBytes != 12*1500 {
		t.Errorf("seen are %+v", seen)
	}
}

// A packet that paused without telemetry says nothing of its way: the path stays the one that the
// last packet with telemetry took.
func TestPathOfPacketsWithoutTelemetry(t *testing.T) {
	table := collector.NewTable(collector.Options{})
	md := telemetry.AppendMetadata(nil, telemetry.Interfaces, telemetry.Metadata{
		Present: telemetry.Interfaces, Egress: 9})
	for i, packet := range [][]byte{fromHex(t, carried), fromHex(t, inner)} {
		table.Datagram(from, report(t, telemetry.Group{Node: 77, Sequence: uint32(i)},
			telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6, Inner: packet,
				Bits: telemetry.Interfaces, Metadata: md}), 1)
		if p, _ := table.Path(innerFlow); p == nil || p.Hops < 3 || p.Packets != uint64(i+1) {
			t.Fatalf("after packet %d: %+v", i, p)
		}
	}
}

// A storm of exporters, links and flows that are made up stays within the bounds, and what was
// there before goes on.
func TestStorm(t *testing.T) {
	table := collector.NewTable(collector.Options{})
	honest := append(fromHex(t, worked), fromHex(t, inner)...)
	table.Datagram(from, honest, 1)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 3 * collector.MaxPaths {
		packet := fromHex(t, inner)
		packet[23], packet[22], packet[21] = byte(i), byte(i>>8), byte(i>>16)
		md := telemetry.AppendMetadata(nil, telemetry.Interfaces, telemetry.Metadata{
			Present: telemetry.Interfaces, Egress: uint16(r.IntN(1 << 16))})
		table.Datagram(from, report(t, telemetry.Group{Node: r.Uint32N(1 << 20)},
			telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6, Inner: packet,
				Bits: telemetry.Interfaces, Metadata: md}), int64(i))
	}
	exporters, known := 0, false
	table.EachExporter(func(e collector.Exporter, _ *collector.Sequence, _ int64) {
		exporters++
		known = known || e.Node == 12 && e.Hardware == 3
	})
	if exporters != collector.MaxExporters || !known ||
		len(links(table)) > collector.MaxLinks || table.Paths() > collector.MaxPaths {
		t.Fatalf("%d exporters, %d links, %d paths, honest one known: %v", exporters,
			len(links(table)), table.Paths(), known)
	}
	if table.Dropped[collector.ExportersFull] == 0 {
		t.Fatal("nothing was refused")
	}
	before := links(table)[collector.Link{Node: 12, Egress: 1}]
	honest[3]++
	table.Datagram(from, honest, 1e9)
	after := links(table)[collector.Link{Node: 12, Egress: 1}]
	if after[0] != before[0]+1 {
		t.Fatalf("the honest exporter's link: %v, then %v", before, after)
	}
	// after five idle minutes a new one replaces what is idle
	refused := table.Dropped[collector.ExportersFull]
	table.Datagram(from, report(t, telemetry.Group{Node: 1 << 30}), 1e12)
	if table.Dropped[collector.ExportersFull] != refused {
		t.Fatal("a new exporter is refused although others are idle")
	}
}

func TestTableAllocatesNothing(t *testing.T) {
	table := collector.NewTable(collector.Options{})
	md := fromHex(t, carried)
	one := telemetry.Report{InType: telemetry.InIPv6, Inner: md}
	b := report(t, telemetry.Group{Node: 1}, one, one, one)
	n := testing.AllocsPerRun(1000, func() {
		if b[3]++; b[3] == 0 {
			b[2]++
		}
		table.Datagram(from, b, 5)
	})
	if n != 0 || table.Reports != 3003 {
		t.Fatalf("%v allocations, %d reports", n, table.Reports)
	}
}

// Whatever comes, each hop of each report is counted once, and memory stays bounded.
func FuzzDatagram(f *testing.F) {
	f.Add(append(fromHex(f, worked), fromHex(f, inner)...))
	f.Add(report(f, telemetry.Group{}, telemetry.Report{InType: telemetry.InIPv6,
		Inner: fromHex(f, carried)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		samples, reports := uint64(0), uint64(0)
		table := collector.NewTable(collector.Options{Watch: func(r *collector.Report) {
			samples += uint64(len(r.Samples))
			reports++
		}})
		table.Datagram(from, b, 1)
		if samples != table.Samples || reports != table.Reports ||
			samples > uint64(len(b)) {
			t.Fatalf("%d samples, %d reports; %d, %d counted", samples, reports, table.Samples,
				table.Reports)
		}
	})
}

func TestHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, bits := range []int{1, 3, 10, 20, 32} {
		var h collector.Histogram
		var values []uint32
		for range 5000 {
			v := uint32(r.Uint64N(1 << bits))
			h.Add(v)
			values = append(values, v)
		}
		slices.Sort(values)
		for _, q := range []float64{0.01, 0.5, 0.99, 1} {
			want := values[int(q*5000+0.9999)-1]
			if got := h.Quantile(q); got < want || float64(got) > 1.25*float64(want)+1 {
				t.Errorf("%d bits, quantile %v: %d, want %d", bits, q, got, want)
			}
		}
		for upper, n := range h.Cumulative() {
			want := uint64(0)
			for _, v := range values {
				if float64(v) <= upper {
					want++
				}
			}
			if n != want {
				t.Errorf("%d bits: %d values are at most %v, not %d", bits, want, upper, n)
			}
		}
	}
}

// The samples of a stack are what reading each node's metadata field by field gives.
func TestSamplesAreMetadata(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var got []telemetry.Sample
	table := collector.NewTable(collector.Options{Watch: func(r *collector.Report) {
		got = slices.Clone(r.Samples)
	}})
	for n := range uint32(3000) {
		md := telemetry.MD{Shim: telemetry.Shim{NPT: 2, Value: 59}, DomainID: telemetry.Domain,
			Instructions: telemetry.Instructions(r.Uint32()), DSFlags: uint16(r.IntN(3))}
		md.HopWords = uint8(md.Instructions.Words() + r.IntN(3))
		for range r.IntN(5) * int(md.HopWords) {
			v := []uint32{0, 1, ^uint32(0), r.Uint32(), 0xffff, 0xffff0000}[r.IntN(6)]
			md.Stack = binary.BigEndian.AppendUint32(md.Stack, v)
		}
		b, err := md.AppendBinary(fromHex(t, `60000000 00001140
			fc000000000000000000000000000001 fc000000000000000000000000000002
			1234 8162 0000 0000`))
		if err != nil {
			t.Fatal(err)
		}
		table.Datagram(from, report(t, telemetry.Group{Sequence: n}, telemetry.Report{
			InType: telemetry.InIPv6, Inner: b}), 1)
		var want []telemetry.Sample
		for i := range md.Hops() - md.FreeSlots() {
			node, _ := md.Hop(i)
			s := node.Sample()
			s.Hop = uint8(i)
			want = append(want, s)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%+v: %s", md, diff)
		}
	}
}
