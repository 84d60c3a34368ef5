package model_test

import (
	"slices"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/flow"
)

// TestEdgeFragments gives sequences of fragments to an edge: later ones take the way of the first.
func TestEdgeFragments(t *testing.T) {
	edge := newEdge(t, chain(2, 1, 2, 3), internal)
	for _, sequence := range packettest.EdgeFragments(t) {
		t.Run(sequence.Name, func(t *testing.T) {
			var first model.Result
			for i, step := range sequence.Steps {
				got := checkEdge(t, edge, external, fromClient().Frame(t, step.Packet))
				if outcome(got) != step.Want {
					t.Errorf("fragment %d: %s, want %s", i, outcome(got), step.Want)
				}
				if got.Verdict != model.Redirect {
					continue
				}
				if first.Frame == nil {
					first = got
				}
				if got.Flow != first.Flow || got.Hash != first.Hash || !slices.Equal(got.Chain,
					first.Chain) {
					t.Errorf("fragment %d goes to %v by the hash %x, the first one to %v by %x",
						i, got.Chain, got.Hash, first.Chain, first.Hash)
				}
			}
		})
	}
}

// TestEdgeFragmentsOfSYN: later fragments of a SYN are offered to the same candidates.
func TestEdgeFragmentsOfSYN(t *testing.T) {
	edge := newEdge(t, chain(2, 1, 2, 3), internal)
	syn := web4("S")
	syn.Payload = make([]byte, 100)
	for _, part := range [][]byte{packettest.Part(syn.Bytes(t), 9, 0, 24),
		packettest.Part(syn.Bytes(t), 9, 24, 120)} {
		if got := edge.Process(external, fromClient().Frame(t, part)); !slices.Equal(got.Chain,
			[]uint16{1, 2}) {
			t.Errorf("offered to %v, want the two candidates", got.Chain)
		}
	}
}

// TestHostFragments: a host takes the later fragments of which it took the first, and passes the
// others on.
func TestHostFragments(t *testing.T) {
	for name, packet := range map[string]inner{"IPv4": web4("A"), "IPv6": web6("A")} {
		t.Run(name, func(t *testing.T) {
			packet.Payload = make([]byte, 100)
			ip := packet.Bytes(t)
			host := newHost(internal)
			socket := model.Socket{}
			host.Sockets = func(flow.Tuple) model.Socket { return socket }
			offer := func(id uint32, from, to int) model.Offer {
				return processHost(t, host, packettest.To(addr("fcbb:bb00:1:2::")).Around(t,
					packettest.Part(ip, id, from, to))).Offer
			}
			for _, test := range []struct {
				what     string
				here     bool
				id       uint32
				from, to int
				want     model.Offer
			}{
				{"a first one of another host", false, 1, 0, 48, model.OfferNotHere},
				{"a later one of another host", true, 1, 48, 96, model.OfferNotHere},
				{"a first one", true, 2, 0, 48, model.OfferHere},
				{"a later one", false, 2, 48, 96, model.OfferHere},
				{"the last one", false, 2, 96, 120, model.OfferHere},
				{"a later one of another packet", true, 3, 48, 96, model.OfferNotHere},
			} {
				if socket.State = model.SocketNone; test.here {
					socket.State = model.SocketOther
				}
				if got := offer(test.id, test.from, test.to); got != test.want {
					t.Errorf("%s: %v, want %v", test.what, got, test.want)
				}
			}
			last := processHost(t, host, packettest.To(offerSID).Around(t,
				packettest.Part(ip, 7, 48, 96)))
			if last.Offer != model.OfferLast {
				t.Errorf("the last candidate: %v", last.Offer)
			}
		})
	}
}
