package datapath

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/packettest"
)

// TestHostCases: frames of all kinds, broken ones too, meet the fate that the shared table says,
// and no other counter rises.
func TestHostCases(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	_, host := tableHost(t, w)
	for _, test := range packettest.HostCases(t) {
		w.run(t, test.Name, func(t *testing.T) { host.check(t, test) })
	}
}

// TestHostCut: packets of all kinds behind outer headers, cut everywhere.
func TestHostCut(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w)
	for kind, packet := range packettest.Kinds(packettest.Web4("A"), packettest.Web6("A")) {
		w.run(t, kind, func(t *testing.T) {
			for _, test := range packettest.HostCuts(t, packet) {
				host.check(t, test)
			}
		})
	}
}

// TestHostPassesOn compares the whole frame for both encodings, both families, each way out, and no
// to two VLAN tags. The hop limit ends at 1; what the kernel sends keeps its own for the kernel.
func TestHostPassesOn(t *testing.T) {
	w := newWorld(t)
	h, host := tableHost(t, w)
	for _, test := range []struct {
		out      way
		outcome  string
		hopLimit [2]uint8
	}{
		{wayBack, "transmitted", [2]uint8{60, 59}},
		{wayElsewhere, "redirected", [2]uint8{2, 1}},
		{wayUnknown, "handed", [2]uint8{60, 60}},
		{wayUnknown, "hop_limit", [2]uint8{1, 1}},
		{wayUnknown, "hop_limit", [2]uint8{0, 1}},
	} {
		test.out.lead(t, h)
		for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("A")} {
			packet.TrafficClass, packet.Payload = 0x2b, []byte("payload")
			ip := packet.Bytes(t)
			for name, outers := range packettest.PassOnCases(ip) {
				w.run(t, fmt.Sprintf("%s/%v/%s", test.outcome, packet.Dst, name),
					func(t *testing.T) {
						for i := range outers {
							outers[i].TrafficClass, outers[i].HopLimit = 0xb9, test.hopLimit[i]
						}
						checkPassOn(t, host, outers, ip, test.out, test.outcome)
					})
			}
		}
	}
}

func checkPassOn(t *testing.T, host subject, outers [2]packettest.Outer, ip []byte, out way,
	want string) {
	t.Helper()
	checkLeaves(t, host, outers, ip, ip, out, want)
}

// checkLeaves processes a packet, and compares what leaves with another one.
func checkLeaves(t *testing.T, host subject, outers [2]packettest.Outer, ip, left []byte, out way,
	want string) {
	t.Helper()
	for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
		in := packettest.FromClient(vlans...)
		in.Padding = []byte("padding")
		outcome, after := host.process(t, in.Frame(t, outers[0].Around(t, ip)))
		if outcome != want {
			t.Fatalf("%s, want %s", outcome, want)
		}
		packettest.WantFrame(t, after, out.out(in).Frame(t, outers[1].Around(t, left)))
	}
}

// TestHostPassOnRoutes: no route, and packets around the path MTU. Padding does not count.
func TestHostPassOnRoutes(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	_, host := tableHost(t, w)
	pass := func(next string, size int) string {
		packet := packettest.Web6("A")
		packet.Payload = make([]byte, size-40-40-20)
		in := packettest.FromClient()
		in.Padding = make([]byte, 20)
		outcome, _ := host.process(t, in.Frame(t, packettest.To(netip.MustParseAddr(next)).Around(t,
			packet.Bytes(t))))
		return outcome
	}
	for _, test := range []struct {
		next string
		size int
		want string
	}{
		{"fcbb:bb00:1:4::", 100, "no_route"},
		{"fcbb:bb00:1:5::", narrowMTU, "redirected"},
		{"fcbb:bb00:1:5::", narrowMTU + 1, "packet_too_big"},
		{"fcbb:bb00:1:2::", narrowMTU + 1, "redirected"},
	} {
		if got := pass(test.next, test.size); got != test.want {
			t.Errorf("%d bytes by %s: %s, want %s", test.size, test.next, got, test.want)
		}
	}
}

// TestHostTakes compares the whole frame for packets of all kinds behind outer headers of all
// kinds. What is behind the packets travels along.
func TestHostTakes(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w)
	for kind, packet := range packettest.Kinds(packettest.Web4("A"), packettest.Web6("A")) {
		ip := packet.Bytes(t)
		for name, around := range packettest.TakenCases(ip, packet.TrafficClass) {
			w.run(t, kind+"/"+name, func(t *testing.T) {
				for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
					wire := packettest.FromClient(vlans...)
					wire.Padding = []byte("padding")
					wantTaken(t, host, wire.Frame(t, around.Around(t, ip)), wire.Frame(t, ip))
				}
			})
		}
	}
}

func wantTaken(t *testing.T, host subject, frame, want []byte) {
	t.Helper()
	outcome, after := host.process(t, frame)
	if outcome != "taken" {
		t.Fatalf("%s, want it taken", outcome)
	}
	packettest.WantFrame(t, after, want)
}

// TestHostTakesECN compares the whole frame for all 16 combinations of the inner and the outer ECN
// field (RFC 6040 figure 4), both families and both behaviors, for all DSCPs and many
// identifications: the IPv4 checksum carries in every way.
func TestHostTakesECN(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w)
	for _, sid := range []netip.Addr{packettest.OfferSID, packettest.DT46SID} {
		for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("A")} {
			for in, row := range packettest.ECN {
				for out, want := range row {
					w.run(t, fmt.Sprintf("%v/%v/%d in %d", sid, packet.Dst, in, out),
						func(t *testing.T) {
							checkECN(t, host, packettest.To(sid), packet, uint8(in), uint8(out),
								want)
						})
				}
			}
		}
	}
}

func checkECN(t *testing.T, host subject, around packettest.Outer, packet packettest.Packet, in,
	out uint8, want int) {
	t.Helper()
	around.TrafficClass = 0xb8 | out
	wire := packettest.FromClient()
	for i := range 64 {
		dscp := uint8(i << 2)
		packet.ID, packet.TrafficClass = uint16(i*1031), dscp|in
		frame := wire.Frame(t, around.Around(t, packet.Bytes(t)))
		if want < 0 {
			host.check(t, packettest.Case{Name: "dropped", Frame: frame, Want: "ecn"})
			continue
		}
		packet.TrafficClass = dscp | uint8(want)
		wantTaken(t, host, frame, wire.Frame(t, packet.Bytes(t)))
	}
}

// TestHostTakesMSS compares the whole frame of SYNs with all kinds of options, both families and
// payloads of even and odd length.
func TestHostTakesMSS(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w)
	wire, around := packettest.FromClient(), packettest.To(packettest.OfferSID)
	behind := packettest.Web6("S").Behind(layers.IPProtocolIPv6Destination,
		packettest.Extension(layers.IPProtocolTCP, 0))
	for _, packet := range []packettest.Packet{packettest.Web4("S"), behind,
		packettest.Web6("SA")} {
		for _, test := range packettest.MSSCases(mssLimit(packet)) {
			w.run(t, fmt.Sprintf("%v/%s", packet.Dst, test.Name), func(t *testing.T) {
				for _, payload := range []string{"", "odd"} {
					packet.Payload, packet.TCPOptions = []byte(payload), test.Before
					frame := wire.Frame(t, around.Around(t, packet.Bytes(t)))
					packet.TCPOptions = test.After
					wantTaken(t, host, frame, wire.Frame(t, packet.Bytes(t)))
				}
			})
		}
	}
	for name, ip := range packettest.MSSMalformed(t) {
		w.run(t, name, func(t *testing.T) {
			wantTaken(t, host, wire.Frame(t, around.Around(t, ip)), wire.Frame(t, ip))
		})
	}
}

// TestHostKeepsMSS shows which packets keep a high MSS.
func TestHostKeepsMSS(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w)
	for name, test := range map[string]struct {
		sid    netip.Addr
		packet packettest.Packet
	}{
		"OFFER of an ACK": {packettest.OfferSID, packettest.Web4("A")},
		"OFFER of a RST":  {packettest.OfferSID, packettest.Web4("R")},
		"OFFER of a foreign service": {packettest.OfferSID,
			packettest.Web4("S").To(packettest.VIP4, 8080)},
		"DT46 of a SYN":               {packettest.DT46SID, packettest.Web4("S")},
		"DT4 of a SYN with a service": {packettest.DT4SID, packettest.Web4("S")},
	} {
		w.run(t, name, func(t *testing.T) {
			ip := test.packet.With(packettest.MSS(9000)).Bytes(t)
			wire := packettest.FromClient()
			wantTaken(t, host, wire.Frame(t, packettest.To(test.sid).Around(t, ip)),
				wire.Frame(t, ip))
		})
	}
}

// TestHostKeepsWrongChecksum: a checksum that was wrong stays wrong by as much, so that the
// receiver still sees it.
func TestHostKeepsWrongChecksum(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w)
	packet := packettest.Web4("S").With(packettest.MSS(1460))
	packet.TrafficClass = 2
	around := packettest.To(packettest.OfferSID)
	around.TrafficClass = 3
	spoil := func(ip []byte) []byte {
		ip[11]++
		ip[37]++
		return ip
	}
	wire := packettest.FromClient()
	frame := wire.Frame(t, around.Around(t, spoil(packet.Bytes(t))))
	packet = packet.With(packettest.MSS(tableMSSIPv4))
	packet.TrafficClass = 3
	wantTaken(t, host, frame, wire.Frame(t, spoil(packet.Bytes(t))))
}

// TestHostLeaves compares the whole frame of SYN-ACKs that leave, with all kinds of options.
func TestHostLeaves(t *testing.T) {
	w := newWorld(t)
	h, _ := tableHost(t, w)
	leave := func(t *testing.T, frame []byte) []byte {
		_, after, err := h.programs["host_leave"].Test(frame)
		must(t, err)
		return after
	}
	for _, packet := range []packettest.Packet{packettest.Web4("").Reply("SA"),
		packettest.Web6("").Reply("SA")} {
		for _, test := range packettest.MSSCases(mssLimit(packet)) {
			w.run(t, fmt.Sprintf("%v/%s", packet.Src, test.Name), func(t *testing.T) {
				for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
					wire := packettest.FromClient(vlans...)
					wire.Padding = []byte("padding")
					frame := wire.Frame(t, packet.With(test.Before...).Bytes(t))
					packettest.WantFrame(t, leave(t, frame),
						wire.Frame(t, packet.With(test.After...).Bytes(t)))
				}
			})
		}
	}
	high, wire := packettest.MSS(9000), packettest.FromClient()
	for name, packet := range map[string]packettest.Packet{
		"SYN":          packettest.Web4("").Reply("S"),
		"ACK":          packettest.Web4("").Reply("A"),
		"foreign port": packettest.Web4("").To(packettest.VIP4, 8080).Reply("SA"),
		"foreign address": packettest.Web4("").To(netip.MustParseAddr("192.0.2.1"),
			80).Reply("SA"),
		"extension header": packettest.Web6("").Reply("SA").Behind(layers.IPProtocolIPv6Destination,
			packettest.Extension(layers.IPProtocolTCP, 0)),
	} {
		w.run(t, name, func(t *testing.T) {
			frame := wire.Frame(t, packet.With(high).Bytes(t))
			packettest.WantFrame(t, leave(t, frame), frame)
		})
	}
}
