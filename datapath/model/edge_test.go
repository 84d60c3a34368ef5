package model_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/pool"
)

// outcome names what became of a frame, as the shared tables do.
func outcome(r model.Result) string {
	switch {
	case r.Reason != model.ReasonNone:
		return r.Reason.String()
	case r.Taken:
		return "take"
	case r.Answer != model.AnswerNone:
		return r.Answer.String()
	}
	return r.Verdict.String()
}

// TestEdgeCases gives frames of all kinds, broken ones too, to an edge with routes by another
// interface.
func TestEdgeCases(t *testing.T) {
	ways := map[string][2]uint32{
		packettest.External: {external, internal}, packettest.Mixed: {mixed, internal},
		packettest.Internal: {internal, external},
	}
	for _, test := range packettest.EdgeCases(t) {
		t.Run(test.Name, func(t *testing.T) {
			way := ways[test.Side]
			got := outcome(checkEdge(t, newEdge(t, chain(2, 1, 2, 3), way[1]), way[0], test.Frame))
			if got != test.Want {
				t.Errorf("got %s, want %s", got, test.Want)
			}
		})
	}
}

// TestEdgeForeignInterface: an interface that is not the edge's.
func TestEdgeForeignInterface(t *testing.T) {
	got := checkEdge(t, newEdge(t, chain(2, 1, 2, 3), internal), foreign,
		fromClient().Frame(t, web4("S").Bytes(t)))
	if got.Verdict != model.Pass {
		t.Errorf("got %v, %v; want it to pass", got.Verdict, got.Reason)
	}
}

// TestEdgeChain shows to whom of a chain a packet is offered.
func TestEdgeChain(t *testing.T) {
	six := chain(2, 11, 12, 13, 14, 15, 16)
	datagram := web6("")
	datagram.Protocol = udp
	for _, test := range []struct {
		name   string
		chain  pool.Chain
		packet inner
		want   []uint16
		reason model.Reason
	}{
		{name: "SYN", chain: six, packet: web4("S"), want: []uint16{11, 12}},
		{name: "SYN and FIN", chain: six, packet: web6("SF"), want: []uint16{11, 12}},
		{name: "SYN-ACK", chain: six, packet: web4("SA"), want: six.IDs[:]},
		{name: "ACK", chain: six, packet: web6("A"), want: six.IDs[:]},
		{name: "RST", chain: six, packet: web6("R"), want: six.IDs[:]},
		{name: "no flags", chain: six, packet: web6(""), want: six.IDs[:]},
		{name: "UDP", chain: six, packet: datagram, want: []uint16{11}},
		{name: "nobody", packet: web4("A"), reason: model.ReasonNoBackend},
		{name: "nobody for UDP", packet: datagram, reason: model.ReasonNoBackend},
		{name: "SYN without a candidate", chain: chain(0, 15), packet: web4("S"),
			reason: model.ReasonNoBackend},
		{name: "ACK without a candidate", chain: chain(0, 15), packet: web4("A"),
			want: []uint16{15}},
		{name: "UDP without a candidate", chain: chain(0, 15), packet: datagram,
			want: []uint16{15}},
	} {
		t.Run(test.name, func(t *testing.T) {
			edge := newEdge(t, test.chain, internal)
			got := edge.Process(external, fromClient().Frame(t, test.packet.Bytes(t)))
			if got.Reason != test.reason {
				t.Errorf("reason %v, want %v", got.Reason, test.reason)
			}
			if diff := cmp.Diff(test.want, got.Chain); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEdgeAsks shows that the tables are asked for the right things.
func TestEdgeAsks(t *testing.T) {
	edge := newEdge(t, pool.Chain{}, internal)
	packet := web6("A")
	hash := edge.FlowHash.Hash(edge.Secret, packet.Flow())
	var asked, hops []any
	edge.Chains = func(service, bucket uint32) pool.Chain {
		asked = append(asked, service, bucket)
		return chain(1, 5, 6)
	}
	nextHop := edge.NextHop
	edge.NextHop = func(dst netip.Addr, choice uint8) model.NextHop {
		hops = append(hops, dst, choice)
		return nextHop(dst, choice)
	}
	got := edge.Process(mixed, fromClient().Frame(t, packet.Bytes(t)))
	bucket := uint32((hash >> 32) * 65537 >> 32)
	if diff := cmp.Diff([]any{uint32(webV6), bucket}, asked); diff != "" {
		t.Errorf("asked for a chain (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{addr("fcbb:bb00:5:6::"), uint8(hash & 7)}, hops,
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("asked for a next hop (-want +got):\n%s", diff)
	}
	want := model.Result{
		Verdict: model.Redirect, Interface: internal, Frame: got.Frame, Flow: packet.Flow(),
		Service: model.ServiceKey{Addr: vip6, Port: 80, Protocol: 6},
		Hash:    hash, Bucket: bucket, Chain: []uint16{5, 6},
	}
	equal := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, got, equal,
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// TestEdgeNextHop shows what becomes of a packet by what routing knows.
func TestEdgeNextHop(t *testing.T) {
	ip := web4("S").Bytes(t) // 40 bytes, and as many around it
	for _, test := range []struct {
		name    string
		hop     model.NextHop
		verdict model.Verdict
		reason  model.Reason
		egress  uint32
	}{
		{name: "out by the way it came", hop: model.NextHop{Interface: external},
			verdict: model.Transmit, egress: external},
		{name: "out by another", hop: model.NextHop{Interface: mixed}, verdict: model.Redirect,
			egress: mixed},
		{name: "out by a foreign interface", hop: model.NextHop{Interface: foreign},
			verdict: model.HandToKernel},
		{name: "neighbour not resolved", hop: model.NextHop{Status: model.NextHopKernel,
			Interface: internal}, verdict: model.HandToKernel},
		{name: "no route", hop: model.NextHop{Status: model.NextHopNoRoute, MTU: 20},
			verdict: model.Drop, reason: model.ReasonNoRoute},
		{name: "just fits", hop: model.NextHop{Interface: internal, MTU: 80},
			verdict: model.Redirect, egress: internal},
		{name: "too big", hop: model.NextHop{Interface: internal, MTU: 79}, verdict: model.Transmit,
			egress: external},
		{name: "too big for the kernel's way", hop: model.NextHop{Status: model.NextHopKernel,
			MTU: 79}, verdict: model.Transmit, egress: external},
	} {
		t.Run(test.name, func(t *testing.T) {
			edge := newEdge(t, chain(1, 1), internal)
			edge.NextHop = func(netip.Addr, uint8) model.NextHop { return test.hop }
			wire := fromClient()
			wire.Padding = make([]byte, 20) // does not count
			got := edge.Process(external, wire.Frame(t, ip))
			if got.Verdict != test.verdict || got.Reason != test.reason ||
				got.Interface != test.egress {
				t.Errorf("got %v, %v by %d; want %v, %v by %d",
					got.Verdict, got.Reason, got.Interface, test.verdict, test.reason, test.egress)
			}
		})
	}
}

// TestEdgeJumbo shows that no payload length is written that does not fit its field.
func TestEdgeJumbo(t *testing.T) {
	for _, test := range []struct {
		payload int
		reason  model.Reason
	}{
		{payload: 65535 - 40 - 20, reason: model.ReasonNone},
		{payload: 65535 - 40 - 20 + 1, reason: model.ReasonPacketTooBig},
	} {
		packet := web6("A")
		packet.Payload = make([]byte, test.payload)
		edge := newEdge(t, chain(1, 1), internal)
		edge.NextHop = func(netip.Addr,
			uint8) model.NextHop {
			return model.NextHop{Interface: internal}
		}
		got := edge.Process(external, fromClient().Frame(t, packet.Bytes(t)))
		if got.Reason != test.reason {
			t.Errorf("payload of %d bytes: %v, want %v", test.payload, got.Reason, test.reason)
		}
	}
}

// TestEdgeUnknownBackend shows that an id without a SID is no backend.
func TestEdgeUnknownBackend(t *testing.T) {
	edge := newEdge(t, chain(2, 1, 2), internal)
	edge.Encapsulation = model.EncapsulationSRH
	edge.SID = func(id uint16) netip.Addr {
		if id == 2 {
			return netip.Addr{}
		}
		return sid(id)
	}
	got := edge.Process(external, fromClient().Frame(t, web4("S").Bytes(t)))
	if got.Verdict != model.Drop || got.Reason != model.ReasonNoBackend {
		t.Errorf("got %v, %v; want a drop for no_backend", got.Verdict, got.Reason)
	}
}
