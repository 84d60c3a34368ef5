package model_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
)

// TestPassOn compares the whole frame for both encodings, both families, each way out, and
// no to two VLAN tags. Only what is at the end of the kernel's way keeps its hop limit.
func TestPassOn(t *testing.T) {
	for _, packet := range []inner{web4("A"), web6("A")} {
		packet.TrafficClass, packet.Payload = 0x2b, []byte("payload")
		ip := packet.Bytes(t)
		for name, outers := range packettest.PassOnCases(ip) {
			t.Run(fmt.Sprintf("%s/%v", name, packet.Dst), func(t *testing.T) {
				for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
					checkPassOn(t, outers[0], outers[1], ip, vlans)
				}
			})
		}
	}
}

func checkPassOn(t *testing.T, before, after outer, ip []byte, vlans []uint16) {
	before.TrafficClass, after.TrafficClass = 0xb9, 0xb9
	in := fromClient(vlans...)
	in.Padding = []byte("padding")
	for _, test := range []struct {
		verdict  model.Verdict
		egress   uint32
		out      link
		hopLimit [2]uint8
		reason   model.Reason
		iface    uint32
	}{
		{verdict: model.Transmit, egress: external, out: link{Src: egressMAC, Dst: gatewayMAC,
			VLANs: vlans, Padding: in.Padding}, hopLimit: [2]uint8{60, 59}, iface: external},
		{verdict: model.Redirect, egress: internal, out: link{Src: egressMAC, Dst: gatewayMAC,
			Padding: in.Padding}, hopLimit: [2]uint8{2, 1}, iface: internal},
		{verdict: model.HandToKernel, egress: foreign, out: in, hopLimit: [2]uint8{60, 60}},
		{verdict: model.HandToKernel, egress: internal, out: in, hopLimit: [2]uint8{1, 1},
			reason: model.ReasonHopLimit},
		{verdict: model.HandToKernel, egress: external, out: in, hopLimit: [2]uint8{0, 1},
			reason: model.ReasonHopLimit},
	} {
		before.HopLimit, after.HopLimit = test.hopLimit[0], test.hopLimit[1]
		host := newHost(test.egress)
		nextHop := host.NextHop
		host.NextHop = func(dst netip.Addr, choice uint8) model.NextHop {
			if dst != after.Dst || choice != 5 { // the label 0x12345 modulo 8
				t.Errorf("asked for the next hop of %v, %d; want %v, 5", dst, choice, after.Dst)
			}
			return nextHop(dst, choice)
		}
		got := host.Process(external, 0, in.Frame(t, before.Around(t, ip)))
		if got.Verdict != test.verdict || got.Reason != test.reason ||
			got.Interface != test.iface || got.Taken {
			t.Fatalf("got %v, %v by %d, taken %v; want %v, %v by %d", got.Verdict, got.Reason,
				got.Interface, got.Taken,
				test.verdict, test.reason, test.iface)
		}
		wantFrame(t, got.Frame, test.out.Frame(t, after.Around(t, ip)))
	}
}

// TestPassOnNextHop shows what becomes of a packet that cannot go on.
func TestPassOnNextHop(t *testing.T) {
	ip := to(addr("fcbb:bb00:1:2::")).Around(t, web4("A").Bytes(t)) // 80 bytes
	for _, test := range []struct {
		name    string
		hop     model.NextHop
		verdict model.Verdict
		reason  model.Reason
	}{
		{name: "no route", hop: model.NextHop{Status: model.NextHopNoRoute}, verdict: model.Drop,
			reason: model.ReasonNoRoute},
		{name: "just fits", hop: model.NextHop{Interface: internal, MTU: 80},
			verdict: model.Redirect},
		{name: "too big", hop: model.NextHop{Interface: internal, MTU: 79},
			verdict: model.HandToKernel, reason: model.ReasonPacketTooBig},
		{name: "neighbour not resolved", hop: model.NextHop{Status: model.NextHopKernel,
			Interface: internal}, verdict: model.HandToKernel},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := newHost(internal)
			host.NextHop = func(netip.Addr, uint8) model.NextHop { return test.hop }
			wire := fromClient()
			wire.Padding = make([]byte, 20) // does not count
			got := host.Process(external, 0, wire.Frame(t, ip))
			if diff := cmp.Diff([]any{test.verdict, test.reason},
				[]any{got.Verdict, got.Reason}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
