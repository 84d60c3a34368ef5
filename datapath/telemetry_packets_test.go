package datapath

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/telemetry"
	"sextant/te/srpolicy"
)

// octetsOf reads octets written by hand.
func octetsOf(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	must(t, err)
	return b
}

// telemetryPath is an SRv6 packet by its encapsulation, at a node whose telemetry INT carries.
type telemetryPath struct {
	name  string
	inner []byte
	build func(t testing.TB, protocol layers.IPProtocol, behind []byte) []byte
}

// telemetryPaths have an SRH, none, one behind hop-by-hop options, and one with options.
func telemetryPaths(t testing.TB) []telemetryPath {
	inner4 := packettest.Packet{Src: netip.MustParseAddr("192.0.2.1"),
		Dst: netip.MustParseAddr("192.0.2.2"), SrcPort: 7, DstPort: 80, Flags: "A"}.Bytes(t)
	inner6 := packettest.Packet{Src: netip.MustParseAddr("2001:db8::1"), SrcPort: 7, DstPort: 80,
		Dst: netip.MustParseAddr("2001:db8::2"), Flags: "A", Payload: make([]byte, 99)}.Bytes(t)
	last, middle := netip.MustParseAddr("fcbb:bb00:5:d46::"), netip.MustParseAddr("fcbb:bb00:2::1")
	outer := packettest.Outer{Src: netip.MustParseAddr("fd00:5e::e1"), Dst: last, HopLimit: 61,
		TrafficClass: 0xb9, FlowLabel: 0x95235}
	with := func(headers func(next layers.IPProtocol) []byte, first layers.IPProtocol) func(
		testing.TB, layers.IPProtocol, []byte) []byte {
		return func(t testing.TB, next layers.IPProtocol, behind []byte) []byte {
			o := outer
			if headers == nil {
				o.Extensions, o.ExtensionNow = behind, next
				return o.Around(t, nil6)[:40+len(behind)]
			}
			return o.With(first, headers(next), behind).Around(t, nil6)[:40+len(headers(next))+
				len(behind)]
		}
	}
	routing, hops := layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6HopByHop
	srh := func(next layers.IPProtocol) []byte {
		return packettest.SRH(next, 0, 1, last, middle)
	}
	return []telemetryPath{
		{"SRH", inner6, with(srh, routing)},
		{"no SRH", inner4, with(nil, 0)},
		{"hop-by-hop options", inner4, with(func(next layers.IPProtocol) []byte {
			return slices.Concat(packettest.Extension(routing, 0), srh(next))
		}, hops)},
	}
}

// nil6 is an empty IPv6 header that Around wants to see.
var nil6 = append([]byte{0x60}, make([]byte, 39)...)

// sized makes the payload length right.
func sized(ip []byte) []byte {
	binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
	return ip
}

// TestTelemetryPackets takes packets from source over transit to sink, and compares each of them
// with one that is written by hand.
func TestTelemetryPackets(t *testing.T) {
	w := newTelemetryWorld(t, model.EncodingINT)
	queues := telemetry.NodeID | telemetry.Queue
	hop := "5e000001 00000000 "
	if !KnowsQueues() {
		hop = "5e000001 ffffffff "
	}
	for _, path := range telemetryPaths(t) {
		w.world.run(t, path.name, func(t *testing.T) {
			protocol := packettest.ProtocolOf(path.inner)
			frame := func(next layers.IPProtocol, headers ...[]byte) []byte {
				behind := slices.Concat(append(headers, path.inner)...)
				return benchLink.Frame(t, sized(path.build(t, next, behind)))
			}
			plain := frame(protocol)
			udp := func(words int, stack string) []byte { // 0xd210 is made of label 0x95235
				b := octetsOf(t, "d210 8162 0000 0000 1800 0000"+stack)
				binary.BigEndian.PutUint16(b[4:], uint16(12+4*words+len(path.inner)))
				b[9], b[11] = byte(words), byte(protocol)
				return b
			}
			one := udp(5, "20000207 90000000 00000000 "+hop)
			two := udp(7, "20000206 90000000 00000000 "+hop+hop)
			free := udp(9, "20000207 9000534d 00000002 ffffffff ffffffff "+
				"ffffffff ffffffff "+hop)
			filled := udp(9, "20000206 9000534d 00000001 ffffffff ffffffff "+hop+hop)
			class := TelemetryClass{OneIn: 1, InTurn: true, Instructions: queues, Hops: 8}
			w.setClasses(t, class)
			w.becomes(t, "telemetry_source", plain, frame(17, one))
			w.becomes(t, "telemetry_source", frame(17, one), frame(17, one))
			w.becomes(t, "telemetry_transit", plain, plain)
			w.becomes(t, "telemetry_transit", frame(17, one), frame(17, two))
			w.becomes(t, "telemetry_sink", frame(17, two), plain)
			class.Slots = 2
			w.setClasses(t, class)
			w.becomes(t, "telemetry_source", plain, frame(17, free))
			w.becomes(t, "telemetry_transit", frame(17, free), frame(17, filled))
			w.becomes(t, "telemetry_sink", frame(17, filled), plain)
			w.becomes(t, "telemetry_sink", plain, plain)
		})
	}
}

// TestTelemetryOctets has a packet that telemetry makes as long as the MTU pass a source and two
// transits. Of what one in 50 such packets has more, the goal is a thousandth of all octets.
func TestTelemetryOctets(t *testing.T) {
	const packet, mtu, oneIn = 1452, 1500, 50
	queues := telemetry.NodeID | telemetry.Queue
	for encoding, want := range map[model.TelemetryEncoding]int{model.EncodingINT: 24 + 3*8,
		model.EncodingIOAM: 16 + 3*8, model.EncodingPathTracing: 16} {
		w := newTelemetryWorld(t, encoding)
		w.setClasses(t, TelemetryClass{OneIn: 1, InTurn: true, Instructions: queues, Hops: 3})
		path := telemetryPaths(t)[1]
		outer := path.build(t, packettest.ProtocolOf(path.inner), path.inner)
		ip := sized(append(outer, make([]byte, packet-len(outer))...))
		frame := benchLink.Frame(t, ip)
		for _, role := range []string{"telemetry_source", "telemetry_transit",
			"telemetry_transit"} {
			before := frame
			if _, frame, _ = w.run(role, slices.Clone(before)); bytes.Equal(frame, before) {
				t.Errorf("%d: %s leaves the packet as it is", encoding, role)
			}
		}
		octets := len(frame) - ethernetHeader - packet
		if octets != want || packet+octets > mtu || 1000*octets > oneIn*packet {
			t.Errorf("%d: %d octets of three nodes, want %d", encoding, octets, want)
		}
		t.Logf("encoding %d: %d octets in one of %d packets of %d: %.3f %%", encoding, octets,
			oneIn, packet, 100*float64(octets)/oneIn/packet)
	}
}

// becomes fails unless the program makes the one frame of the other.
func (w *telemetryWorld) becomes(t *testing.T, role string, frame, want []byte) {
	t.Helper()
	verdict, after, taken := w.run(role, frame)
	if verdict != tcUnspec || !taken {
		t.Errorf("%s: verdict %d", role, verdict)
	}
	packettest.WantFrame(t, after, want)
}

// TestTelemetryLimits: a packet that the interface's MTU has no room for goes without, one at the
// limit does not; M and E are set; broken telemetry is left alone; what the kernel cuts later is.
func TestTelemetryLimits(t *testing.T) {
	w := newTelemetryWorld(t, model.EncodingINT)
	w.setClasses(t, TelemetryClass{OneIn: 1, InTurn: true, Hops: 8,
		Instructions: telemetry.NodeID | telemetry.Queue})
	path := telemetryPaths(t)[0]
	outer := len(path.build(t, 41, nil))
	fitting := benchLink.Frame(t, sized(path.build(t, 41, make([]byte, 1500-32-outer))))
	_, after, _ := w.run("telemetry_source", fitting)
	if len(after) != ethernetHeader+1500 {
		t.Errorf("%d octets became %d", len(fitting), len(after))
	}
	w.becomes(t, "telemetry_source", append(fitting[:18:18], sized(path.build(t, 41,
		make([]byte, 1500-31-outer)))[4:]...), benchLink.Frame(t, sized(path.build(t, 41,
		make([]byte, 1500-31-outer)))))
	full := bytes.Clone(after)
	at := ethernetHeader + outer
	w.becomes(t, "telemetry_transit", full, packettest.Patched(full, at+12, 0x22))
	short := benchLink.Frame(t, sized(path.build(t, 17, slices.Concat(octetsOf(t,
		`d210 8162 0074 0000 18030029 20000200 90000000 00000000`),
		make([]byte, 92)))))
	w.becomes(t, "telemetry_transit", short, packettest.Patched(short, at+12, 0x24))
	for _, lie := range []struct {
		name string
		at   int
		to   byte
	}{
		{"UDP length", 5, 0x73}, {"a UDP checksum", 7, 1}, {"type of shim", 8, 0x28},
		{"NPT", 8, 0x14}, {"too few words", 9, 2}, {"words beyond the packet", 9, 27},
		{"inner protocol", 11, 6}, {"version", 12, 0x10}, {"no words of a hop", 14, 0},
		{"fewer words than instructions", 14, 1},
	} {
		frame := packettest.Patched(short, at+lie.at, lie.to)
		for _, role := range telemetryRoles[1:] {
			if _, after, _ := w.run(role, frame); !bytes.Equal(after, frame) {
				t.Errorf("%s, %s: %x became %x", role, lie.name, frame, after)
			}
		}
	}
	binary.NativeEndian.PutUint32(w.context[skbGSOSize:], 100)
	w.becomes(t, "telemetry_source", benchLink.Frame(t, sized(path.build(t, 41, path.inner))),
		benchLink.Frame(t, sized(path.build(t, 41, path.inner))))
	outcomes, err := w.program.Outcomes()
	must(t, err)
	for outcome, want := range map[model.TelemetryOutcome]uint64{model.TelemetryBroken: 20,
		model.TelemetryHops: 1, model.TelemetryMTU: 2, model.TelemetrySegmented: 1} {
		if outcomes[outcome].Packets != want {
			t.Errorf("counted %+v, want %d", outcomes[outcome], want)
		}
	}
}

// TestTelemetryClassesAtOnce changes the classes while packets pass that each list of them gives
// telemetry: none may meet a part of one list and a part of the other.
func TestTelemetryClassesAtOnce(t *testing.T) {
	w := newTelemetryWorld(t, model.EncodingINT)
	all := TelemetryClass{OneIn: 1, InTurn: true, Instructions: telemetry.NodeID, Hops: 3}
	none := TelemetryClass{Match: srpolicy.Match{Protocol: unix.IPPROTO_UDP}}
	lists := [][]TelemetryClass{{all}, slices.Concat(slices.Repeat([]TelemetryClass{none},
		TelemetryClasses-1), []TelemetryClass{all})}
	must(t, w.program.SetClasses(lists[0]))
	inner := packettest.Packet{Src: netip.MustParseAddr("192.0.2.1"),
		Dst: netip.MustParseAddr("192.0.2.2"), SrcPort: 7, DstPort: 80, Flags: "A"}.Bytes(t)
	frame := benchCarried(t, layers.IPProtocolIPv4, inner, len(inner)).octets
	ended := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-ended:
				return
			default:
				if err := w.program.SetClasses(lists[i%2]); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	const packets = 20000
	for range packets {
		if _, _, taken := w.run("telemetry_source", frame); !taken {
			t.Error("the program took no packet")
			break
		}
	}
	close(ended)
	changes.Wait()
	w.counts[model.TelemetryInserted] = packets
	w.counted(t)
}

// TestTelemetryOptionPackets takes packets with telemetry in hop-by-hop options from source over
// transits to sink, and compares each with one that is written by hand.
func TestTelemetryOptionPackets(t *testing.T) {
	const ioamHop = "3d000001 00000000 "
	hop := ioamHop
	if !KnowsQueues() {
		hop = "3d000001 ffffffff "
	}
	for _, path := range telemetryPaths(t)[:2] {
		first := byte(packettest.ProtocolOf(path.inner))
		if path.name == "SRH" {
			first = unix.IPPROTO_ROUTING
		}
		plain := benchLink.Frame(t, sized(path.build(t, packettest.ProtocolOf(path.inner),
			path.inner)))
		with := func(options string) []byte {
			header := octetsOf(t, options)
			header[0] = first
			frame := slices.Concat(plain[:ethernetHeader+ipv6Header], header,
				plain[ethernetHeader+ipv6Header:])
			frame[ethernetHeader+6] = 0
			sized(frame[ethernetHeader:])
			return frame
		}
		w := newTelemetryWorld(t, model.EncodingIOAM)
		w.world.run(t, "IOAM, "+path.name, func(t *testing.T) {
			head := "0003 0100 311a 0000 5e00 "
			one := with(head + "1002 820000 00 0000000000000000" + hop)
			two := with(head + "1000 820000 00" + hop + hop)
			full := with(head + "1400 820000 00" + hop + hop)
			w.setClasses(t, TelemetryClass{OneIn: 1, InTurn: true, Hops: 2,
				Instructions: telemetry.NodeID | telemetry.Queue})
			w.becomes(t, "telemetry_source", plain, one)
			w.becomes(t, "telemetry_source", one, one)
			w.becomes(t, "telemetry_transit", one, two)
			w.becomes(t, "telemetry_transit", two, full)
			w.becomes(t, "telemetry_sink", full, plain)
			other := with("0003 0100 311a 0000 5e01 1002 820000 00 0000000000000000" + hop)
			w.becomes(t, "telemetry_transit", other, other) // another namespace
			beside := with("0004 0502 0000 0100 311a 0000 5e00 1000 820000 00" + hop + hop +
				"0102 0000")
			alert := with("0000 0502 0000 0100")
			w.becomes(t, "telemetry_sink", beside, alert) // the router alert stays
		})
		w = newTelemetryWorld(t, model.EncodingPathTracing)
		w.world.run(t, "path tracing, "+path.name, func(t *testing.T) {
			w.setClasses(t, TelemetryClass{OneIn: 1, InTurn: true, Hops: 3,
				Instructions: telemetry.NodeID})
			_, one, _ := w.run("telemetry_source", plain)
			_, two, _ := w.run("telemetry_transit", one)
			at := ethernetHeader + ipv6Header + 6
			midpoint := fmt.Sprintf("%03x0", w.far)
			first, second := fmt.Sprintf("%02x", one[at+2]), fmt.Sprintf("%02x", two[at+2])
			packettest.WantFrame(t, one, with("0001 0100 3209"+midpoint+first+
				"000000 000000 00"))
			packettest.WantFrame(t, two, with("0001 0100 3209"+midpoint+second+midpoint+first+
				"000000 00"))
			w.becomes(t, "telemetry_sink", two, plain)
		})
	}
}
