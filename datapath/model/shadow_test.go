package model_test

import (
	"fmt"
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

var (
	condSID   = packettest.CondSID
	shadowSID = packettest.ShadowSID
	hostAddr  = packettest.HostAddr
)

// newShadowHost is a host whose conditional SID sends strays to the edge.
func newShadowHost(egress uint32, socket model.SocketState) *model.Host {
	host := newHost(egress)
	host.Source = hostAddr
	host.SIDs = append(host.SIDs, model.LocalSID{Prefix: netip.PrefixFrom(condSID, 48),
		Behavior: srv6.EndDT46COND, Backup: shadowSID})
	host.Sockets = func(flow.Tuple) model.Socket { return model.Socket{State: socket} }
	return host
}

// A stray goes back to the edge in a new outer packet, whatever headers the old one had.
func TestStrayGoesBack(t *testing.T) {
	for _, packet := range []inner{web4("A"), web6("PA"), web4("R"), web6("FA")} {
		packet.TrafficClass, packet.Payload = 0x2b, []byte("payload")
		ip := packet.Bytes(t)
		packet.HopLimit = 56 // one less
		left := packet.Bytes(t)
		for name, outers := range packettest.StrayCases(ip) {
			for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
				t.Run(fmt.Sprintf("%s/%v %s/%d tags", name, packet.Dst, packet.Flags, len(vlans)),
					func(t *testing.T) {
						in := fromClient(vlans...)
						in.Padding = []byte("padding")
						frame := in.Frame(t, outers[0].Around(t, ip))
						for egress, want := range map[uint32]link{
							external: {Src: egressMAC, Dst: gatewayMAC, VLANs: vlans,
								Padding: in.Padding},
							internal: {Src: egressMAC, Dst: gatewayMAC, Padding: in.Padding},
							foreign:  in,
						} {
							got := newShadowHost(egress, model.SocketNone).Process(external,
								0, frame)
							if got.Offer != model.OfferStray || got.Taken {
								t.Fatalf("got %v, %v, %v", got.Verdict, got.Reason, got.Offer)
							}
							wantFrame(t, got.Frame, want.Frame(t, outers[1].Around(t, left)))
						}
					})
			}
		}
	}
}

// What is no stray is taken: Algorithm 1 of the paper, with "here" as the sockets say.
func TestConditionalTakes(t *testing.T) {
	udp6 := web6("").Of(udp, 1, 2, 3)
	for _, test := range []struct {
		name   string
		packet inner
		socket model.SocketState
		taken  bool
	}{
		{"a SYN", web4("S"), model.SocketNone, true},
		{"a SYN-ACK", web4("SA"), model.SocketNone, true},
		{"an ACK that is here", web4("A"), model.SocketOther, true},
		{"an ACK that is not", web4("A"), model.SocketNone, false},
		{"an ACK to a listener", web6("A"), model.SocketListen, false},
		{"UDP", udp6, model.SocketNone, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			ip := test.packet.Bytes(t)
			host := newShadowHost(internal, test.socket)
			got := processHost(t, host, to(condSID).Around(t, ip))
			if got.Taken != test.taken {
				t.Fatalf("got %v, %v, taken %v", got.Verdict, got.Reason, got.Taken)
			}
			if test.taken {
				wantFrame(t, got.Frame, fromClient().Frame(t, ip))
			}
		})
	}
}

func TestConditionalRefuses(t *testing.T) {
	ip := web4("A").Bytes(t)
	dying := to(condSID)
	dying.HopLimit = 1
	for name, test := range map[string]struct {
		outer outer
		ip    []byte
		want  model.Reason
	}{
		"argument": {to(addr("fcbb:bb00:c:1::")), ip, model.ReasonSegmentsLeft},
		"segments left": {to(condSID).With(rout, packettest.SRH(4, 1, 1, condSID, condSID)),
			ip, model.ReasonSegmentsLeft},
		"not IP": {to(condSID).With(hop, ext(59, 0)), nil, model.ReasonUpperLayer},
		"a fragment of ICMP": {to(condSID), packettest.Patched(packettest.Patched(ip, 6, 0x20), 9,
			1), model.ReasonFragment},
		"last hop":        {dying, ip, model.ReasonHopLimit},
		"last hop inside": {to(condSID), packettest.WithHopLimit(ip, 1), model.ReasonHopLimit},
	} {
		t.Run(name, func(t *testing.T) {
			if test.ip == nil {
				test.ip = make([]byte, 40)
			}
			got := processHost(t, newShadowHost(internal, model.SocketNone),
				test.outer.Around(t, test.ip))
			if got.Verdict != model.Drop || got.Reason != test.want {
				t.Errorf("got %v, %v; want %v", got.Verdict, got.Reason, test.want)
			}
		})
	}
}

// newShadowEdge is an edge that takes strays back.
func newShadowEdge(t *testing.T, current, before uint16) *model.Edge {
	t.Helper()
	c := chain(1, current)
	c.Shadow = before
	edge := newEdge(t, c, internal)
	edge.Shadow, edge.LastOffer = shadowSID, 0xe046
	return edge
}

// A stray goes to the previous owner, marked as the last offer, with a hop limit that goes on
// falling.
func TestEndShadow(t *testing.T) {
	for _, packet := range []inner{web4("A"), web6("PA")} {
		packet.Payload = []byte("payload")
		for _, ecn := range []struct{ outer, inner, want uint8 }{{0xb8, 0xb8, 0xb8},
			{0xb9, 0xba, 0xb9}, {0xbb, 0xba, 0xbb}} {
			packet.TrafficClass = ecn.want
			left := packet.Bytes(t)
			packet.TrafficClass = ecn.inner
			ip := packet.Bytes(t)
			for _, before := range []uint16{0x2b, 0} {
				edge := newShadowEdge(t, 0x1a, before)
				want := outer{Src: edgeAddr, Dst: addr("fcbb:bb00:2b:e046::"),
					TrafficClass: ecn.want, HopLimit: 58, FlowLabel: labelOf(edge, packet)}
				if before == 0 {
					want.Dst = addr("fcbb:bb00:1a:e046::")
				}
				for name, stray := range packettest.ShadowCases(ip) {
					stray.TrafficClass = ecn.outer
					for _, by := range []uint32{internal, mixed} {
						got := edge.Process(by, fromClient().Frame(t, stray.Around(t, ip)))
						if by == internal && got.Verdict != model.Transmit || by == mixed &&
							got.Verdict != model.Redirect {
							t.Fatalf("%s: %v, %v", name, got.Verdict, got.Reason)
						}
						wantFrame(t, got.Frame, link{Src: egressMAC, Dst: gatewayMAC}.Frame(t,
							want.Around(t, packettest.Forwarded(left))))
					}
				}
			}
		}
	}
}

func labelOf(edge *model.Edge, packet inner) uint32 {
	return flow.Label(edge.FlowHash.Hash(edge.Secret, packet.Flow()))
}

func TestEndShadowRefuses(t *testing.T) {
	ip := web4("A").Bytes(t)
	dying, stranger := to(shadowSID), to(shadowSID)
	dying.HopLimit = 1
	stranger.Src = packettest.Client6
	marked := to(shadowSID)
	marked.TrafficClass = 3
	for name, test := range map[string]struct {
		by     uint32
		outer  outer
		packet []byte
		want   model.Reason
	}{
		"from outside":        {external, stranger, ip, model.ReasonSRv6FromOutside},
		"of an edge, outside": {external, to(shadowSID), ip, model.ReasonSRv6FromOutside},
		"from a stranger":     {internal, stranger, ip, model.ReasonOutsideDomain},
		"segments left": {internal, to(shadowSID).With(rout,
			packettest.SRH(4, 1, 1, shadowSID, shadowSID)), ip, model.ReasonSegmentsLeft},
		"not IP": {internal, to(shadowSID).With(hop, ext(59, 0)), make([]byte, 40),
			model.ReasonUpperLayer},
		"no service": {internal, to(shadowSID), web4("A").To(packettest.VIP4, 81).Bytes(t),
			model.ReasonNoService},
		"no VIP": {internal, to(shadowSID),
			web4("A").To(packettest.Client4, 80).Bytes(t), model.ReasonNoService},
		"a fragment of ICMP": {internal, to(shadowSID),
			packettest.Patched(packettest.Patched(ip, 6, 0x20), 9, 1), model.ReasonFragment},
		"a later fragment": {internal, to(shadowSID), packettest.Patched(ip, 6, 0x20, 8),
			model.ReasonFragmentWithoutFirst},
		"cut off":    {internal, to(shadowSID), ip[:39], model.ReasonBadLength},
		"congestion": {internal, marked, ip, model.ReasonECN},
		"last hop":   {internal, dying, ip, model.ReasonHopLimit},
	} {
		t.Run(name, func(t *testing.T) {
			got := newShadowEdge(t, 1, 2).Process(test.by,
				fromClient().Frame(t, test.outer.Around(t, test.packet)))
			if got.Verdict != model.Drop || got.Reason != test.want {
				t.Errorf("got %v, %v; want %v", got.Verdict, got.Reason, test.want)
			}
		})
	}
	empty := newShadowEdge(t, 1, 2)
	empty.Chains = newEdge(t, chain(0), internal).Chains
	if got := empty.Process(internal,
		fromClient().Frame(t, to(shadowSID).Around(t, ip))); got.Reason != model.ReasonNoBackend {
		t.Errorf("without backends: %v, %v", got.Verdict, got.Reason)
	}
}
