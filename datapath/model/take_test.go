package model_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"pgregory.net/rapid"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
)

// TestTakeECN compares the whole frame for all 16 combinations of the inner and the outer
// ECN field (RFC 6040 figure 4), both families and both behaviors.
func TestTakeECN(t *testing.T) {
	for _, sid := range []netip.Addr{offerSID, dt46SID} {
		for _, packet := range []inner{web4("A"), web6("A")} {
			packet.Payload = []byte("payload")
			for in, row := range packettest.ECN {
				for out, want := range row {
					t.Run(fmt.Sprintf("%v/%v/%d in %d", sid, packet.Dst, in, out),
						func(t *testing.T) {
							checkECN(t, sid, packet, uint8(in), uint8(out), want)
						})
				}
			}
		}
	}
}

func checkECN(t *testing.T, sid netip.Addr, packet inner, in, out uint8, want int) {
	// All DSCPs and many identifications, so that the IPv4 checksum carries in every way.
	for i := range 256 {
		dscp := uint8(i << 2)
		packet.ID = uint16(i * 257)
		packet.TrafficClass = dscp | in
		around := to(sid)
		around.TrafficClass = 0xb8 | out
		got := processHost(t, newHost(internal), around.Around(t, packet.Bytes(t)))
		if want < 0 {
			if got.Verdict != model.Drop || got.Reason != model.ReasonECN || got.Frame != nil {
				t.Fatalf("got %v, %v; want a drop for ecn", got.Verdict, got.Reason)
			}
			continue
		}
		if got.Verdict != model.HandToKernel || !got.Taken {
			t.Fatalf("got %v, %v; want it taken", got.Verdict, got.Reason)
		}
		expected := packet
		expected.TrafficClass = dscp | uint8(want)
		wantFrame(t, got.Frame, fromClient().Frame(t, expected.Bytes(t)))
	}
}

// TestTakeECNCarry: a checksum of 0, where one more carries twice.
func TestTakeECNCarry(t *testing.T) {
	packet := web4("A")
	packet.TrafficClass = 2
	ip := packet.Bytes(t)
	packet.ID = binary.BigEndian.Uint16(ip[10:])
	if ip = packet.Bytes(t); ip[10] != 0 || ip[11] != 0 {
		t.Fatalf("the checksum of %x is not 0", ip[:20])
	}
	around := to(offerSID)
	around.TrafficClass = 3
	got := processHost(t, newHost(internal), around.Around(t, ip))
	packet.TrafficClass = 3
	wantFrame(t, got.Frame, fromClient().Frame(t, packet.Bytes(t)))
}

// TestTake compares the whole frame for packets of all kinds behind outer headers of all
// kinds. What is behind the packets travels along.
func TestTake(t *testing.T) {
	for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
		t.Run(kind, func(t *testing.T) {
			ip := packet.Bytes(t)
			for name, around := range packettest.TakenCases(ip, packet.TrafficClass) {
				for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
					wire := fromClient(vlans...)
					wire.Padding = []byte("padding")
					got := newHost(internal).Process(internal, 0,
						wire.Frame(t, around.Around(t, ip)))
					if !got.Taken || got.Verdict != model.HandToKernel ||
						got.Reason != model.ReasonNone || got.Interface != 0 {
						t.Fatalf("%s: %v, %v", name, got.Verdict, got.Reason)
					}
					wantFrame(t, got.Frame, wire.Frame(t, ip))
				}
			}
		})
	}
}

// TestTakeBetween: bytes between the ends of the inner and the outer packet stay.
func TestTakeBetween(t *testing.T) {
	ip := append(web4("A").Bytes(t), "trailer"...)
	got := processHost(t, newHost(internal), to(offerSID).Around(t, ip))
	wantFrame(t, got.Frame, fromClient().Frame(t, ip))
}

// TestTakeMSS compares the whole frame of SYNs with all kinds of options, both families
// and payloads of even and odd length.
func TestTakeMSS(t *testing.T) {
	for _, test := range packettest.MSSCases(hostMSS) {
		t.Run(test.Name, func(t *testing.T) {
			for _, packet := range []inner{web4("S"), web6("S").Behind(dst, ext(tcp, 0)),
				web6("SA")} {
				for _, payload := range []string{"", "odd"} {
					packet.Payload, packet.TCPOptions = []byte(payload), test.Before
					got := processHost(t, newHost(internal),
						to(offerSID).Around(t, packet.Bytes(t)))
					packet.TCPOptions = test.After
					wantFrame(t, got.Frame, fromClient().Frame(t, packet.Bytes(t)))
				}
			}
		})
	}
}

// TestTakeMSSLeft shows which packets keep a high MSS.
func TestTakeMSSLeft(t *testing.T) {
	with := func(packet inner) []byte {
		packet.TCPOptions = []layers.TCPOption{mss(9000)}
		return packet.Bytes(t)
	}
	elsewhere := web4("S")
	elsewhere.DstPort = 8080
	for name, ip := range map[string][]byte{
		"OFFER of an ACK":             to(offerSID).Around(t, with(web4("A"))),
		"OFFER of a RST":              to(offerSID).Around(t, with(web4("R"))),
		"OFFER of a foreign service":  to(offerSID).Around(t, with(elsewhere)),
		"DT46 of a SYN":               to(dt46SID).Around(t, with(web4("S"))),
		"DT4 of a SYN with a service": to(dt4SID).Around(t, with(web4("S"))),
	} {
		got := processHost(t, newHost(internal), ip)
		if want := fromClient().Frame(t, ip[40:]); !got.Taken {
			t.Errorf("%s: %v, %v", name, got.Verdict, got.Reason)
		} else {
			wantFrame(t, got.Frame, want)
		}
	}
	host := newHost(internal)
	for _, service := range host.Services {
		service.MSS = 0
	}
	ip := with(web4("S"))
	wantFrame(t, processHost(t, host, to(offerSID).Around(t, ip)).Frame, fromClient().Frame(t, ip))
}

// TestMSSMalformed: options which cannot be right end the search for the MSS, and nothing
// is written.
func TestMSSMalformed(t *testing.T) {
	for name, ip := range packettest.MSSMalformed(t) {
		t.Run(name, func(t *testing.T) {
			got := processHost(t, newHost(internal), to(offerSID).Around(t, ip))
			wantFrame(t, got.Frame, fromClient().Frame(t, ip))
		})
	}
}

// TestMSSChecksum: with any options, addresses and limit, the checksum is that of the new
// header, as if it were computed anew.
func TestMSSChecksum(t *testing.T) {
	kinds := []layers.TCPOption{{OptionType: 1}, option(4), option(3, 7),
		option(8, 1, 2, 3, 4, 5, 6, 7, 8)}
	rapid.Check(t, func(rt *rapid.T) {
		packet := rapid.SampledFrom([]inner{web4("S"), web6("S")}).Draw(rt, "packet")
		before := rapid.SliceOfN(rapid.SampledFrom(kinds), 0, 3).Draw(rt, "options before")
		after := rapid.SliceOfN(rapid.SampledFrom(kinds[:3]), 0, 2).Draw(rt, "options after")
		size := rapid.Uint16().Draw(rt, "mss")
		limit := rapid.Uint16Min(1).Draw(rt, "limit")
		packet.SrcPort, packet.Seq = rapid.Uint16().Draw(rt, "port"), rapid.Uint32().Draw(rt, "seq")
		packet.Payload = rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(rt, "payload")
		options := func(size uint16) []layers.TCPOption {
			return append(append(append([]layers.TCPOption{}, before...), mss(size)), after...)
		}
		host := newHost(internal)
		for _, service := range host.Services {
			service.MSS = limit
		}
		packet.TCPOptions = options(size)
		got := processHost(t, host, to(offerSID).Around(t, packet.Bytes(t)))
		packet.TCPOptions = options(min(size, limit))
		wantFrame(t, got.Frame, fromClient().Frame(t, packet.Bytes(t)))
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// TestTakeWrongChecksum: a checksum that was wrong stays wrong by as much, so that the
// receiver still sees it.
func TestTakeWrongChecksum(t *testing.T) {
	packet := web4("S")
	packet.TrafficClass, packet.TCPOptions = 2, []layers.TCPOption{mss(1460)}
	ip := packet.Bytes(t)
	ip[11]++
	ip[37]++
	around := to(offerSID)
	around.TrafficClass = 3
	got := processHost(t, newHost(internal), around.Around(t, ip))
	packet.TrafficClass, packet.TCPOptions = 3, []layers.TCPOption{mss(hostMSS)}
	want := packet.Bytes(t)
	want[11]++
	want[37]++
	wantFrame(t, got.Frame, fromClient().Frame(t, want))
}
