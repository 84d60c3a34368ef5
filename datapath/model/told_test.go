package model_test

import (
	"bytes"
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/te/srpolicy"
)

// TestTimeExceeded compares the whole frame with which a client is told that its packet has no hop
// left.
func TestTimeExceeded(t *testing.T) {
	for _, packet := range []inner{web4("S"), web6("S"), web4("A"), web6("A"), web6("").Of(udp)} {
		packet.Payload = make([]byte, 1300)
		for _, hops := range []uint8{0, 1} {
			ip := packettest.WithHopLimit(packet.Bytes(t), hops)
			in := fromClient(100)
			back := in
			back.Src, back.Dst = in.Dst, in.Src
			got := newEdge(t, chain(1, 1), internal).Process(external, in.Frame(t, ip))
			if got.Verdict != model.Transmit || got.Interface != external ||
				got.Reason != model.ReasonHopLimit {
				t.Fatalf("%v by %d for %v", got.Verdict, got.Interface, got.Reason)
			}
			wantFrame(t, got.Frame, back.Frame(t, packettest.ToldExceeded(t, ip, 63)))
		}
	}
}

// TestBelowMinMTU compares the whole frame: no IPv6 client is told less than 1,280 bytes.
func TestBelowMinMTU(t *testing.T) {
	for _, test := range packettest.NarrowCases(t) {
		edge := newEdge(t, chain(1, 1), internal)
		edge.NextHop = func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Interface: internal, MTU: 1300}
		}
		in := fromClient()
		back := in
		back.Src, back.Dst = in.Dst, in.Src
		got := edge.Process(external, in.Frame(t, test.Packet))
		if want := map[string]string{"redirected": "redirect"}[test.Want]; outcome(
			got) != test.Want && outcome(got) != want {
			t.Errorf("%s: %s, want %s", test.Name, outcome(got), test.Want)
		}
		if test.Told != nil {
			wantFrame(t, got.Frame, back.Frame(t, test.Told))
		}
	}
}

// TestTranslatesBelowMinMTU: neither is one told so of what a router says.
func TestTranslatesBelowMinMTU(t *testing.T) {
	for _, test := range packettest.NarrowCases(t) {
		if test.Told == nil {
			continue
		}
		edge := newEdge(t, chain(1, 1), internal)
		in := fromClient()
		got := edge.Process(internal, in.Frame(t, packettest.RouterSays(t, test.Packet, 1300)))
		if got.Verdict != model.HandToKernel {
			t.Fatalf("%s: %v", test.Name, got.Verdict)
		}
		wantFrame(t, got.Frame, in.Frame(t, packettest.ToldAsQuoted(t, test.Told)))
	}
}

// TestHeadendIsAHop: what a policy takes loses a hop, and what has none left is the kernel's to
// answer; but not what
// comes out of the loop, as it starts here.
func TestHeadendIsAHop(t *testing.T) {
	const loop = 77
	for _, packet := range []inner{web4("A"), web6("A")} {
		for hops, want := range []string{"hop_limit", "hop_limit", "redirect"} {
			for _, action := range []srpolicy.Action{srpolicy.Path, srpolicy.Mirror} {
				h := newHeadend(t, internal, action,
					0, srpolicy.List{Name: "a", Segments: []netip.Addr{offerSID}})
				h.Loop, h.Sides[loop] = loop, model.Internal
				ip := packettest.WithHopLimit(packet.Bytes(t), uint8(hops))
				frame := fromClient().Frame(t, ip)
				got := h.Process(external, 0, frame).Results[0]
				if outcome(got) != want || want == "hop_limit" &&
					string(got.Frame) != string(frame) {
					t.Errorf("%v, %d hops left: %s, %v", packet.Dst, hops, outcome(got),
						got.Verdict)
				}
				if want == "redirect" && !bytes.HasSuffix(got.Frame, packettest.Forwarded(ip)) {
					t.Errorf("%v, %d hops left: %x", packet.Dst, hops, got.Frame)
				}
				if got := h.Process(loop, 0, frame).Results[0]; !bytes.HasSuffix(got.Frame, ip) ||
					len(got.Frame) == len(frame) {
					t.Errorf("%v from here, %d hops left: %s, %x", packet.Dst, hops, outcome(got),
						got.Frame)
				}
			}
		}
	}
}

// TestHeadendAnswersHosts: a head-end says nothing in the name of a group, nor to what is no host,
// as it leaves these to the kernel; nor to an address in its own name.
func TestHeadendAnswersHosts(t *testing.T) {
	for _, test := range []struct{ src, dst, want string }{
		{"198.51.100.7", "192.0.2.80", "too_big_answered"},
		{"198.51.100.7", "198.51.100.7", "packet_too_big"},
		{"198.51.100.7", "239.1.2.3", "pass"},
		{"198.51.100.7", "255.255.255.255", "pass"},
		{"127.0.0.1", "192.0.2.80", "pass"},
		{"2001:db8:c1::7", "2001:db8:80::80", "too_big_answered"},
		{"2001:db8:c1::7", "2001:db8:c1::7", "packet_too_big"},
		{"2001:db8:c1::7", "ff0e::1", "pass"},
		{"::1", "2001:db8:80::80", "pass"},
	} {
		packet := web4("A").From(addr(test.src)).To(addr(test.dst), 80)
		packet.Payload = make([]byte, 1400)
		h := newHeadend(t, internal, srpolicy.Path, 1300,
			srpolicy.List{Name: "a", Segments: []netip.Addr{offerSID}})
		if got := outcome(h.Process(external, 0,
			fromClient().Frame(t, packet.Bytes(t))).Results[0]); got != test.want {
			t.Errorf("%s to %s: %s, want %s", test.src, test.dst, got, test.want)
		}
	}
}

// TestHeadendRefusesOptions: a source route is refused, whether the policy's rule looks at ports or
// not.
func TestHeadendRefusesOptions(t *testing.T) {
	h := newHeadend(t, internal, srpolicy.Path, 0,
		srpolicy.List{Name: "a", Segments: []netip.Addr{offerSID}})
	for want, options := range map[string][]byte{
		"redirect": {148, 4, 0, 0}, "ip_options": {131, 3, 4, 0},
	} {
		frame := fromClient().Frame(t, packettest.WithIPv4Options(web4("A").Bytes(t), options))
		if got := outcome(h.Process(external, 0, frame).Results[0]); got != want {
			t.Errorf("options %v: %s, want %s", options, got, want)
		}
	}
}
