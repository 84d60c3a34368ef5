package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/quiclb"
)

// TestEdgeQUIC: a connection ID leads to its server, in every cipher; others go along the chain.
func TestEdgeQUIC(t *testing.T) {
	quic := &model.QUIC{Backends: map[uint16]struct{}{11: {}, 0x203: {}}}
	for _, c := range packettest.QUICConfigs() {
		quic.Codecs = append(quic.Codecs, packettest.QUICCodec(t, c))
	}
	edge := newEdge(t, chain(2, 11, 12, 13), internal)
	edge.QUIC = map[uint32]*model.QUIC{anyV6: quic}
	for _, path := range packettest.QUICPaths(t) {
		want := []uint16{11, 12, 13}
		switch {
		case path.Owner != 0:
			want = []uint16{path.Owner}
		case path.Opens:
			want = want[:2]
		}
		packet := web6("").To(vip6, 443).Of(udp, path.Payload...)
		got := edge.Process(external, fromClient().Frame(t, packet.Bytes(t)))
		if diff := cmp.Diff(want, got.Chain); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path.Name, diff)
		}
	}
}

// TestHostQUIC follows connections of a QUIC service at a host.
func TestHostQUIC(t *testing.T) {
	v1 := [4]byte{3: 1}
	initial, early := packettest.QUICLong(0xc0, v1, packettest.ClientID),
		packettest.QUICLong(0xd0, v1, packettest.ClientID)
	config := quiclb.Config{ServerIDLength: 2, NonceLength: 6}
	short := packettest.QUICShort(packettest.ServerConnectionID(t, config, 1))
	type step struct {
		after   time.Duration
		port    uint16 // of the client
		payload []byte
		last    bool
		want    model.Offer
	}
	for name, test := range map[string]struct {
		busy   uint32
		server bool
		steps  []step
	}{
		"accepted, then here": {busy: 3, server: true, steps: []step{
			{port: 1, payload: early, want: model.OfferNotHere},
			{port: 1, payload: initial, want: model.OfferAccepted},
			{port: 1, payload: initial, want: model.OfferHere},
			{port: 1, payload: early, want: model.OfferHere},
			{port: 2, payload: early, want: model.OfferNotHere},
			{after: 9 * time.Second, port: 1, payload: early, want: model.OfferHere},
			{after: 9 * time.Second, port: 1, payload: early, want: model.OfferHere},
			{after: 10 * time.Second, port: 1, payload: early, want: model.OfferNotHere},
		}},
		"refused, then the last": {busy: 4, server: true, steps: []step{
			{port: 1, payload: initial, want: model.OfferRefused},
			{port: 1, payload: initial, want: model.OfferRefusedBefore},
			{port: 1, payload: early, want: model.OfferNotHere},
			{port: 1, payload: initial, last: true, want: model.OfferLast},
			{port: 1, payload: early, want: model.OfferHere},
		}},
		"by connection ID": {busy: 4, server: true, steps: []step{
			{port: 1, payload: short, last: true, want: model.OfferLast},
			{port: 1, payload: short, want: model.OfferNotHere}, // nothing is remembered of it
		}},
		"no server": {busy: 3, steps: []step{
			{port: 1, payload: initial, want: model.OfferNoService},
			{port: 1, payload: initial, last: true, want: model.OfferLast},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			host := newHost(internal)
			host.Services[model.ServiceKey{Addr: vip6, Port: 443,
				Protocol: 17}] = &model.HostService{
				Policy: acceptance.Policy{Kind: acceptance.Static, Threshold: 4}, QUIC: true,
			}
			host.Busy = func(model.ServiceKey) uint32 { return test.busy }
			host.HasServer = func(flow.Tuple) bool { return test.server }
			now := time.Minute
			for i, s := range test.steps {
				now += s.after
				packet := web6("").To(vip6, 443).Of(udp, s.payload...)
				packet.SrcPort = s.port
				sid := offerSID
				if !s.last {
					sid = addr("fcbb:bb00:1:9::") // another candidate
				}
				got := host.Process(external, now,
					fromClient().Frame(t, to(sid).Around(t, packet.Bytes(t))))
				if got.Offer != s.want {
					t.Errorf("step %d: %s, want %s", i, got.Offer, s.want)
				}
			}
		})
	}
}
