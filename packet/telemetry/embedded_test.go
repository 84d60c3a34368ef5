package telemetry_test

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

const intPort = 33122

// outer is IPv6 with an SRH of one segment, and UDP to intPort; then the INT of two hops.
const outer = `60000000 00482b40` + `
	fc000000000000000000000000000001 fc000000000000000000000000000002
	11020400 00000000 fc000000000000000000000000000002
	1234 8162 0030 0000
	18070029 20000206 90000000 00000000 00000002 00000025 00000001 00000005`

func TestEmbeddedMD(t *testing.T) {
	v6 := fromHex(t, outer)
	v4 := slices.Concat(fromHex(t, "45000048 00000000 40110000 0a000001 0a000002"), v6[40+24:])
	for kind, packet := range map[telemetry.InType][]byte{
		telemetry.InIPv4: v4, telemetry.InIPv6: v6,
	} {
		md, err := telemetry.EmbeddedMD(packet, kind, intPort)
		if err != nil || md.Hops() != 2 || md.Remaining != 6 {
			t.Fatalf("type %d: %+v, %v", kind, md, err)
		}
		if _, err := telemetry.EmbeddedMD(packet, kind, intPort+1); !errors.Is(err,
			telemetry.NotFound) {
			t.Fatalf("type %d, another port: %v", kind, err)
		}
		for cut := range len(packet) {
			if _, err := telemetry.EmbeddedMD(packet[:cut], kind, intPort); !errors.Is(err,
				telemetry.Truncated) {
				t.Fatalf("type %d cut to %d octets: %v", kind, cut, err)
			}
		}
	}
	later := slices.Clone(v4)
	later[7] = 1
	if _, err := telemetry.EmbeddedMD(later, telemetry.InIPv4, intPort); !errors.Is(err,
		telemetry.NotFound) {
		t.Fatalf("a later fragment: %v", err)
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add(fromHex(f, outer+inner), uint8(telemetry.InIPv6))
	f.Add(fromHex(f, traced+inner[80:]), uint8(telemetry.InIPv6))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		p, err := telemetry.ParsePacket(b, telemetry.InType(kind), intPort)
		if p.Segments != nil {
			list, active := telemetry.SegmentList(p.Segments)
			if len(list)%16 != 0 || len(list) > len(b) || len(active) != 16 ||
				!bytes.Contains(list, active) {
				t.Fatalf("segments %x, active %x", list, active)
			}
		}
		// a packet that was used before becomes the same
		again := telemetry.Packet{Flow: flow.Tuple{SrcPort: 1, Protocol: 2}, Segments: b}
		if e := again.Parse(b, telemetry.InType(kind), intPort); e != err || again.Has != p.Has ||
			again.Flow != p.Flow || !bytes.Equal(again.Segments, p.Segments) {
			t.Fatalf("%+v, %v; %+v, %v", p, err, again, e)
		}
		if len(p.MD.Stack)+len(p.Trace.Data)+len(p.PathTrace)+len(p.MX.Source) > len(b) {
			t.Fatalf("%+v of %d octets", p, len(b))
		}
		md, mdErr := telemetry.EmbeddedMD(b, telemetry.InType(kind), intPort)
		if found := p.Has&telemetry.HasMD != 0; found != (mdErr == nil) ||
			!slices.Equal(md.Stack, p.MD.Stack) {
			t.Fatalf("%v, %v: %+v, %+v", err, mdErr, p.MD, md)
		}
	})
}

// inner is a TCP packet from port 40000 to 443, cut off behind the ports.
const inner = `60000000 00140640
	20010db8000100000000000000000001 20010db8000200000000000000000002
	9c40 01bb`

// traced is IPv6 with an IOAM trace of one node and a Path Tracing option in hop-by-hop options,
// the same flow as inner.
const traced = `60000000 00140040
	20010db8000100000000000000000001 20010db8000200000000000000000002
	06030100 310e0000 007b0800 80000000 3f000005 32060022 03000000 01020000`

// The flow is that of the packet inside, and what carries it is found on the way.
func TestParsePacket(t *testing.T) {
	want := flow.Tuple{Src: netip.MustParseAddr("2001:db8:1::1"),
		Dst: netip.MustParseAddr("2001:db8:2::2"), SrcPort: 40000, DstPort: 443, Protocol: 6}
	frame := fromHex(t, "02000000000102000000000281000007 86dd"+outer+inner)
	for _, test := range []struct {
		name string
		b    []byte
		kind telemetry.InType
		has  telemetry.Carried
	}{
		{"INT-MD", fromHex(t, outer+inner), telemetry.InIPv6,
			telemetry.HasFlow | telemetry.HasMD},
		{"INT-MD in a frame", frame, telemetry.InEthernet,
			telemetry.HasFlow | telemetry.HasMD},
		{"IOAM and Path Tracing", append(fromHex(t, traced), 0x9c, 0x40, 0x01, 0xbb),
			telemetry.InIPv6,
			telemetry.HasFlow | telemetry.HasTrace | telemetry.HasPathTrace},
		{"no INT", fromHex(t, inner), telemetry.InIPv6, telemetry.HasFlow},
	} {
		p, err := telemetry.ParsePacket(test.b, test.kind, intPort)
		if err != nil || p.Has != test.has || p.Flow != want {
			t.Errorf("%s: %b, %+v, %v", test.name, p.Has, p.Flow, err)
		}
		for cut := range len(test.b) {
			if _, err := telemetry.ParsePacket(test.b[:cut], test.kind,
				intPort); !errors.Is(err, telemetry.Truncated) {
				t.Errorf("%s cut to %d octets: %v", test.name, cut, err)
			}
		}
	}
}
