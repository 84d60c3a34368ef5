package model_test

import (
	"fmt"
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/flow"
)

// TestEcho compares the whole frame.
func TestEcho(t *testing.T) {
	for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
		for _, size := range []int{0, 1, 56, 1400} {
			in := fromClient(vlans...)
			in.Padding = []byte("padding")
			back := in
			back.Src, back.Dst = in.Dst, in.Src
			for name, ip := range map[string][2][]byte{
				"IPv4": {
					packettest.ICMP(t, packettest.Client4, vip4, 8, 0, 7, make([]byte, size)),
					packettest.WithHopLimit(packettest.ICMP(t, vip4, packettest.Client4, 0, 0, 7,
						make([]byte, size)), 63),
				},
				"IPv6": {
					packettest.ICMP(t, packettest.Client6, vip6, 128, 0, 7, make([]byte, size)),
					packettest.WithHopLimit(packettest.ICMP(t, vip6, packettest.Client6, 129, 0,
						7, make([]byte, size)), 63),
				},
			} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, size, vlans), func(t *testing.T) {
					got := newEdge(t, chain(1, 1), internal).Process(external, in.Frame(t, ip[0]))
					if got.Verdict != model.Transmit || got.Interface != external ||
						got.Answer != model.AnswerEcho {
						t.Fatalf("%v by %d, answer %v", got.Verdict, got.Interface, got.Answer)
					}
					wantFrame(t, got.Frame, back.Frame(t, ip[1]))
				})
			}
		}
	}
}

// TestTooBig compares the whole frame: the client is told the MTU that is left inside, to the byte.
func TestTooBig(t *testing.T) {
	for name, encapsulation := range encapsulations {
		for _, packet := range []inner{web4("A"), web6("A"), web4("").To(vip4, 53).Of(udp)} {
			packet.Payload = make([]byte, 1500)
			ip := packet.Bytes(t)
			edge := newEdge(t, chain(1, 1, 2, 3), internal)
			edge.Encapsulation = encapsulation
			edge.NextHop = func(netip.Addr, uint8) model.NextHop {
				return model.NextHop{Interface: internal, MTU: 1400}
			}
			ids := []uint16{1, 2, 3}
			if packet.Protocol == udp {
				ids = ids[:1]
			}
			overhead := len(packettest.Encapsulated(t, name, ids, 1, 0, ip)) - len(ip)
			in := fromClient(100)
			back := in
			back.Src, back.Dst = in.Dst, in.Src
			got := edge.Process(external, in.Frame(t, ip))
			if got.Verdict != model.Transmit || got.Interface != external ||
				got.Answer != model.AnswerTooBig {
				t.Fatalf("%s: %v by %d, answer %v", name, got.Verdict, got.Interface, got.Answer)
			}
			wantFrame(t, got.Frame, back.Frame(t, packettest.ToldTooBig(t, ip, 1400-overhead, 63)))
		}
	}
}

// TestTooBigNobody: nobody is told who can't have sent the packet, nor by an error about an error.
func TestTooBigNobody(t *testing.T) {
	edge := newEdge(t, chain(1, 1), internal)
	edge.NextHop = func(netip.Addr, uint8) model.NextHop {
		return model.NextHop{Interface: internal, MTU: 1400}
	}
	large := func(p inner) inner {
		p.Payload = make([]byte, 1400)
		return p
	}
	for name, ip := range map[string][]byte{
		"from nobody":         large(web4("A").From(addr("0.0.0.0"))).Bytes(t),
		"from nobody, IPv6":   large(web6("A").From(addr("::"))).Bytes(t),
		"from a group":        large(web4("A").From(addr("224.0.0.1"))).Bytes(t),
		"from a group, IPv6":  large(web6("A").From(addr("ff02::1"))).Bytes(t),
		"from loopback":       large(web4("A").From(addr("127.0.0.1"))).Bytes(t),
		"from loopback, IPv6": large(web6("A").From(addr("::1"))).Bytes(t),
		"from the VIP":        large(web4("A").From(vip4)).Bytes(t),
		"from the VIP, IPv6":  large(web6("A").From(vip6)).Bytes(t),
		"from broadcast":      large(web4("A").From(addr("255.255.255.255"))).Bytes(t),
		"about an ICMP error": packettest.Unreachable(t, large(web4("").Reply("A")).Bytes(t),
			1280),
		"about an ICMPv6 error": packettest.Unreachable(t, large(web6("").Reply("A")).Bytes(t),
			1280),
	} {
		if got := outcome(edge.Process(external,
			fromClient().Frame(t, ip))); got != "packet_too_big" {
			t.Errorf("%s: %s, want packet_too_big", name, got)
		}
	}
}

// TestTranslatesTooBig: the client is told what a router of the SR domain tells the edge.
func TestTranslatesTooBig(t *testing.T) {
	for _, packet := range []inner{web4("A"), web6("A")} {
		packet.Payload = make([]byte, 1400)
		ip := packet.Bytes(t)
		for name, test := range packettest.TooBigCases(t, ip, 1400) {
			t.Run(fmt.Sprintf("%s/%v", name, packet.Dst), func(t *testing.T) {
				edge := newEdge(t, chain(1, 1), internal)
				in := fromClient(7)
				got := edge.Process(internal, in.Frame(t, test.Packet))
				if test.MTU < 0 {
					if got.Verdict != model.Pass {
						t.Errorf("%v, answer %v; want it to pass", got.Verdict, got.Answer)
					}
					return
				}
				if got.Verdict != model.HandToKernel || got.Answer != model.AnswerTranslated {
					t.Fatalf("%v, answer %v", got.Verdict, got.Answer)
				}
				about := ip[:min(len(ip), 1232-40-(1400-test.MTU-40))]
				wantFrame(t, got.Frame, in.Frame(t, packettest.ToldTooBig(t, about, test.MTU, 63)))
				if got := edge.Process(external,
					in.Frame(t, test.Packet)); got.Answer != model.AnswerNone {
					t.Error("told by somebody outside of the domain")
				}
			})
		}
	}
}

// TestTranslatesVIPsOnly: what is about a packet to another address is for somebody else.
func TestTranslatesVIPsOnly(t *testing.T) {
	packet := web6("A").To(addr("2001:db8:99::1"), 80)
	packet.Payload = make([]byte, 1400)
	edge := newEdge(t, chain(1, 1), internal)
	for name, test := range packettest.TooBigCases(t, packet.Bytes(t), 1400) {
		if got := edge.Process(internal,
			fromClient().Frame(t, test.Packet)); got.Verdict != model.Pass {
			t.Errorf("%s: %v, answer %v; want it to pass", name, got.Verdict, got.Answer)
		}
	}
}

// TestOfferQuoted: an ICMP error goes to the host that has the connection which it is about.
func TestOfferQuoted(t *testing.T) {
	for _, test := range []struct {
		name   string
		about  inner
		socket model.Socket
		want   model.Offer
	}{
		{"of a connection", web4("").Reply("A"), connected, model.OfferHere},
		{"of a connection over IPv6", web6("").Reply("A"), connected, model.OfferHere},
		{"of no connection", web4("").Reply("A"), model.Socket{}, model.OfferNotHere},
		{"of a listener", web4("").Reply("A"), vouching, model.OfferNotHere},
		{"of a request", web4("").Reply("SA").Numbered(serverISN, 1), requested, model.OfferHere},
		{"of another request", web4("").Reply("SA").Numbered(serverISN+1, 1), requested,
			model.OfferNotHere},
		{"of UDP", web6("").Of(udp).Reply(""), connected, model.OfferNotTCP},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := newHost(internal)
			host.Sockets = func(flow.Tuple) model.Socket { return test.socket }
			ip := packettest.Unreachable(t, test.about.Bytes(t), 1280)
			got := processHost(t, host, to(addr("fcbb:bb00:1:2::")).Around(t, ip))
			if got.Offer != test.want || got.Flow != test.about.Reply("").Flow() {
				t.Errorf("offer %v of %v; want %v", got.Offer, got.Flow, test.want)
			}
		})
	}
}
