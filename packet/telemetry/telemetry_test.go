package telemetry_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/telemetry"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// written fails unless the octets are those wanted.
func written(t *testing.T, got []byte, err error, want []byte) {
	t.Helper()
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("written %x, %v\nwant    %x", got, err, want)
	}
}

const queues = telemetry.NodeID | telemetry.Queue

// stack writes nodes and queues, the newest first.
func stack(pairs ...uint32) (b []byte) {
	for i := 0; i < len(pairs); i += 2 {
		b = telemetry.AppendMetadata(b, queues, telemetry.Metadata{
			Present: queues, NodeID: pairs[i], QueueBytes: pairs[i+1]})
	}
	return b
}

func TestMD(t *testing.T) {
	for _, test := range []struct {
		name, hex string
		md        telemetry.MD
		samples   []uint64 // node, queue: the first on the way first
	}{
		{"TCP, DSCP 10, 2 hops",
			"10070028 20000206 90000000 00000000 00000002 00000025 00000001 00000005",
			telemetry.MD{Shim: telemetry.Shim{Type: 1, Words: 7, Value: 10 << 2}, HopWords: 2,
				Remaining: 6, Instructions: queues, Stack: stack(2, 37, 1, 5)},
			[]uint64{1, 5, 2, 37}},
		{"UDP of its own, IPv6 inside, 3 hops",
			`18090029 20000205 90000000 00000000
			 00000005 00000000 00000009 0000000c 00000001 00000040`,
			telemetry.MD{Shim: telemetry.Shim{Type: 1, NPT: 2, Words: 9, Value: 41}, HopWords: 2,
				Remaining: 5, Instructions: queues, Stack: stack(5, 0, 9, 12, 1, 64)},
			[]uint64{1, 64, 9, 12, 5, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := fromHex(t, test.hex)
			md, size, err := telemetry.ParseMD(append(b[:len(b):len(b)], 0xee))
			if diff := cmp.Diff(test.md, md); diff != "" || size != len(b) || err != nil {
				t.Fatalf("size %d, %v, difference %s", size, err, diff)
			}
			again, err := test.md.AppendBinary(nil)
			written(t, again, err, b)
			var got []uint64
			for i, s := range md.AppendSamples(nil, 3) {
				if int(s.Hop) != i || s.Path != 3 || s.Known != telemetry.FieldNode|
					telemetry.FieldQueue {
					t.Fatalf("sample %d is %+v", i, s)
				}
				got = append(got, s.Node, uint64(s.QueueBytes))
			}
			if diff := cmp.Diff(test.samples, got); diff != "" {
				t.Fatal(diff)
			}
			for cut := range len(b) {
				if _, _, err := telemetry.ParseMD(b[:cut]); !errors.Is(err, telemetry.Truncated) {
					t.Fatalf("cut to %d octets: %v", cut, err)
				}
			}
		})
	}
}

// Every bit, with domain-specific metadata and the checksum complement at the end; the second node
// cannot tell anything.
func TestMDAllInstructions(t *testing.T) {
	const all = telemetry.Instructions(0xffff)
	full := telemetry.Metadata{Present: 0xff80, NodeID: 1, Ingress: 2, Egress: 3, LatencyNS: 4,
		QueueID: 5, QueueBytes: 6, IngressTimeNS: 7 << 40, EgressTimeNS: 8 << 40, WideIngress: 9,
		WideEgress: 10, Utilization: 11, BufferID: 12, BufferBytes: 13}
	const before = all &^ telemetry.ChecksumComplement
	own, complement := []byte{1, 2, 3, 4}, []byte{255, 255, 255, 255}
	older := append(append(telemetry.AppendMetadata(nil, before, full), own...), complement...)
	newer := append(telemetry.AppendMetadata(nil, before, telemetry.Metadata{}), own...)
	newer = append(newer, complement...)
	md := telemetry.MD{Shim: telemetry.Shim{Type: 1}, HopWords: uint8(len(older) / 4),
		Instructions: all, Stack: append(newer, older...)}
	b, err := md.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	md, _, err = telemetry.ParseMD(b)
	if err != nil || md.Hops() != 2 || md.HopWords != 20 {
		t.Fatalf("%d hops of %d words, %v", md.Hops(), md.HopWords, err)
	}
	for i, want := range []telemetry.Metadata{full, {}} {
		got, domain := md.Hop(i)
		if got != want || !bytes.Equal(domain, own) {
			t.Fatalf("hop %d: %+v, %x\nwant %+v, %x", i, got, domain, want, own)
		}
	}
}

func TestMX(t *testing.T) {
	b := fromHex(t, "38040029 28000000 90000000 534d8000 40000001 00000007")
	b = b[:4+4*4]
	mx, size, err := telemetry.ParseMX(b)
	want := telemetry.MX{Shim: telemetry.Shim{Type: 3, NPT: 2, Words: 4, Value: 41}, Discard: true,
		Instructions: 0x9000, DomainID: 0, DSInstruction: 0x534d, DSFlags: 0x8000,
		Source: []byte{0x40, 0, 0, 1}}
	if diff := cmp.Diff(want, mx); diff != "" || size != 20 || err != nil {
		t.Fatalf("size %d, %v, %s", size, err, diff)
	}
}

func TestTrace(t *testing.T) {
	header := append(fromHex(t, "06040100 31220000 007b1006 82000000"), make([]byte, 24)...)
	const kind = telemetry.TraceNode | telemetry.TraceQueueDepth
	option, err := telemetry.FindOption(header, telemetry.OptionIOAM)
	if err != nil {
		t.Fatal(err)
	}
	trace, size, err := telemetry.ParseTrace(option)
	want := telemetry.Trace{Option: 0x31, Namespace: 123, RemainingWords: 6, Type: kind,
		Data: make([]byte, 24)}
	if diff := cmp.Diff(want, trace); diff != "" || size != 36 || err != nil {
		t.Fatalf("size %d, %v, %s", size, err, diff)
	}
	again, err := want.AppendBinary(header[:4:4])
	written(t, again, err, header)

	want.RemainingWords = 2
	copy(want.Data[8:], fromHex(t, "3f000002 000005dc 40000001 ffffffff"))
	samples, err := want.AppendSamples(nil, 9)
	none := ^uint32(0)
	if diff := cmp.Diff([]telemetry.Sample{
		{Path: 9, Node: 1, Hop: 0, Ingress: none, Egress: none, Known: telemetry.FieldNode},
		{Path: 9, Node: 2, Hop: 1, Ingress: none, Egress: none, QueueBytes: 1500,
			Known: telemetry.FieldNode | telemetry.FieldQueue},
	}, samples); diff != "" || err != nil {
		t.Fatal(err, diff)
	}
}

// Slots that the source left free, and no node has written, are no hops.
func TestFreeSlots(t *testing.T) {
	b := fromHex(t, `18090029 20000206 9000534d 00000000 ffffffff ffffffff 00000009 0000000c
		00000001 00000040`)
	for free, want := range []int{3, 2, 1, 0, 0} {
		b[15] = byte(free)
		md, _, err := telemetry.ParseMD(b)
		if err != nil {
			t.Fatal(err)
		}
		samples := md.AppendSamples(nil, 0)
		if md.Hops() != 3 || md.FreeSlots() != 3-want || len(samples) != want || want > 0 &&
			samples[0].Node != 1 {
			t.Errorf("%d free: %d hops, %+v", free, md.Hops(), samples)
		}
	}
	b[10] = 0 // of another domain, the flags mean something else
	if md, _, err := telemetry.ParseMD(b); err != nil || md.FreeSlots() != 0 {
		t.Error(md.FreeSlots(), err)
	}
}

// All ones in 16 bits is not interface 65535.
func TestUnknownInterface(t *testing.T) {
	const none = ^uint32(0)
	trace := telemetry.Trace{Option: 0x31, Type: telemetry.TraceInterfaces,
		Data: fromHex(t, "ffff0007 0008ffff")}
	samples, err := trace.AppendSamples(nil, 0)
	if err != nil || samples[0].Ingress != 8 || samples[0].Egress != none ||
		samples[1].Ingress != none || samples[1].Egress != 7 {
		t.Errorf("IOAM: %+v, %v", samples, err)
	}
	s := telemetry.Metadata{Present: telemetry.Interfaces, Ingress: 3, Egress: 0xffff}.Sample()
	if s.Ingress != 3 || s.Egress != none {
		t.Errorf("INT: %+v", s)
	}
}

func TestDirectExport(t *testing.T) {
	b := fromHex(t, "31120004 007b00c0 82000000 00000007 00000009")
	d, size, err := telemetry.ParseDirectExport(b)
	want := telemetry.DirectExport{Namespace: 123, Type: 0x820000, HasFlow: true, Flow: 7,
		HasSequence: true, Sequence: 9}
	if diff := cmp.Diff(want, d); diff != "" || size != 20 || err != nil {
		t.Fatal(size, err, diff)
	}
}

func TestPathTrace(t *testing.T) {
	p := make(telemetry.PathTrace, 9)
	hops := []telemetry.Midpoint{{Interface: 0xabc, Load: 5, Stamp: 1}, {Interface: 2, Stamp: 3}}
	for _, m := range hops {
		if err := p.Push(m); err != nil {
			t.Fatal(err)
		}
	}
	b := fromHex(t, "3209 002003 abc501 000000")
	again, err := p.AppendBinary(nil)
	written(t, again, err, b)
	read, size, err := telemetry.ParsePathTrace(b)
	if err != nil || size != len(b) || read.Hops() != 2 || read.Hop(0) != hops[0] ||
		read.Hop(1) != hops[1] {
		t.Fatalf("size %d, %v, %x", size, err, []byte(read))
	}
}

// VPP (src/vnet/srv6/sr_pt_node.c) swaps the octets of the interface, and then adds the load
// without a swap; with template 3, it shifts the clock as with template 0.
func vppMidpoint(p telemetry.PathTrace, id uint16, load uint8, ns uint64, template int) {
	shift := []uint{8, 12, 16, 8}[template]
	copy(p[3:], p[:len(p)-3])
	binary.BigEndian.PutUint16(p, id<<4)
	binary.LittleEndian.PutUint16(p, binary.LittleEndian.Uint16(p)|uint16(load))
	p[2] = uint8(ns >> shift)
}

func TestPathTraceOfVPP(t *testing.T) {
	const now uint64 = 1_700_000_000_123_456_789
	shifts := []uint{8, 12, 16, 8}
	for template, shift := range shifts {
		for _, load := range []uint8{0, 1, 9, 15} {
			p := make(telemetry.PathTrace, 36)
			ids := []uint32{1, 0xf0f, 0x100}
			for i, id := range ids {
				vppMidpoint(p, uint16(id), load, now%1e9+uint64(i)<<shift, template)
			}
			samples := p.AppendSamples(nil, 0, now+2<<shift,
				telemetry.PathTracing{Shift: shift, LoadSwapped: load > 0})
			if len(samples) != len(ids) {
				t.Fatalf("%d hops: %x", len(samples), []byte(p))
			}
			for i, s := range samples {
				want := (now%1e9>>shift+uint64(i))<<shift + now/1e9*1e9
				if s.Egress != ids[i] || s.TimeNS != want || s.Known&telemetry.FieldTime == 0 {
					t.Errorf("template %d, load %d, hop %d: %+v, want interface %#x at %d",
						template,
						load, i, s, ids[i], want)
				}
			}
		}
	}
}

// The oracle goes back tick by tick.
func TestMidpointTime(t *testing.T) {
	for _, shift := range []uint{8, 12, 16, 20} {
		for _, now := range []uint64{5e9, 5e9 + 1<<shift*3, 5e9 + 123456789, 6e9 - 1} {
			for stamp := range 256 {
				want := now
				for want%1e9>>shift&255 != uint64(stamp) {
					want -= min(want%1e9&(1<<shift-1)+1, want)
				}
				want = want/1e9*1e9 + want%1e9>>shift<<shift
				got, ok := telemetry.Midpoint{Stamp: uint8(stamp)}.TimeNS(now, shift)
				if !ok || got != want {
					t.Fatalf("shift %d, now %d, stamp %d: %d, %v; want %d", shift, now, stamp, got,
						ok, want)
				}
			}
		}
	}
}
