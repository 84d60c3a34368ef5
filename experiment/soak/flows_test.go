package soak

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"sextant/config"
	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// soakedEdge is a model of the lab's edge, whose only backend is the second host.
func soakedEdge(t *testing.T) *model.Edge {
	t.Helper()
	parsed, err := srv6.ParseBlock(block.String())
	if err != nil {
		t.Fatal(err)
	}
	infrastructure := []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")}
	chain := pool.Chain{IDs: [6]uint16{2}, Length: 1, Candidates: 1}
	return &model.Edge{
		Sides: map[uint32]model.Side{1: model.Mixed}, Block: parsed, Infrastructure: infrastructure,
		Secret:  flow.Secret{1},
		Buckets: func(uint32) uint32 { return 7 },
		Services: map[model.ServiceKey]uint32{
			{Addr: vip6, Port: webPort, Protocol: protocolTCP}:  0,
			{Addr: vip4, Port: webPort, Protocol: protocolTCP}:  1,
			{Addr: vip4, Port: dnsPort, Protocol: protocolUDP}:  2,
			{Addr: vip6, Port: quicPort, Protocol: protocolUDP}: 3,
		},
		VIPs: map[netip.Addr]struct{}{vip4: {}, vip6: {}},
		Learning: &model.Learning{
			SID: learning, Owner: func(uint64) uint16 { return 0 },
			Remember: func(uint64, uint16) {},
		},
		Chains: func(_, _ uint32) pool.Chain { return chain },
		Source: netip.MustParseAddr("fd00:5e::e1"), EdgeOuter: config.EdgeOuter{HopLimit: 64},
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Interface: 1, MTU: 1500}
		},
	}
}

// Each flow has another client, and all of its packets are forwarded, but for a later fragment
// whose first never comes; the edge sends them to a host that is found again.
func TestTraffic(t *testing.T) {
	traffic, edge := newTraffic(1), soakedEdge(t)
	seen := map[flow.Tuple]bool{}
	const flows = 16 * kinds
	lost, learned := 0, map[model.CacheEvent]int{}
	for number := range uint64(flows) {
		var packets [][]byte
		traffic.packets(number, func(frame []byte) {
			packets = append(packets,
				bytes.Clone(frame))
		})
		own := packets[:len(packets)-1] // without the wild one
		if len(own) < 2 || len(own) > 4 {
			t.Errorf("flow %d has %d packets", number, len(own))
		}
		tuples := map[flow.Tuple]bool{}
		for i, frame := range own {
			got := edge.Process(1, frame)
			if got.Reason == model.ReasonFragmentWithoutFirst && number%kinds == 7 &&
				number/kinds%16 == 0 {
				lost++
				continue
			}
			if answers := number%kinds < 6 && i == 1; answers {
				learned[got.Cache]++
				tuples[got.Flow] = true
				continue
			}
			if got.Verdict != model.Transmit {
				t.Fatalf("packet %d of flow %d: %v for %v\n%x", i, number, got.Verdict, got.Reason,
					frame)
			}
			if host, ok := hostOf(slices.Clone(got.Frame)); !ok || host != 1 {
				t.Errorf("packet %d of flow %d goes to host %d, %v; want the second", i, number,
					host, ok)
			}
			tuples[got.Flow] = true
		}
		for tuple := range tuples {
			if seen[tuple] || len(tuples) != 1 {
				t.Errorf("flow %d is %v, and another one too", number, tuples)
			}
			seen[tuple] = true
		}
	}
	if stored, refused := learned[model.CacheStored],
		learned[model.CacheRefusedStranger]; stored != 24 || refused != 72 {
		t.Errorf("of %v answers, %d were stored and %d refused; want 24, those of the second "+
			"host, and 72", learned, stored, refused)
	}
	if len(seen) != flows || lost != 1 {
		t.Errorf("%d flows, %d of them lost a fragment; want %d and 1", len(seen), lost, flows)
	}
}

// A frame goes to a host if it is IPv6 to a SID of one, and may go on.
func TestHostOf(t *testing.T) {
	frame := make([]byte, ethernetHeader+40)
	copy(frame[12:], []byte{0x86, 0xdd, 0x60})
	frame[ethernetHeader+7] = 64
	copy(frame[ethernetHeader+24:], []byte{0xfc, 0xbb, 0xbb, 0, 0, 3})
	tagged := slices.Concat(frame[:12], []byte{0x81, 0, 0, 7}, frame[12:])
	for name, test := range map[string]struct {
		frame []byte
		edit  func([]byte)
		want  bool
	}{
		"to the third":  {frame, func([]byte) {}, true},
		"with a tag":    {tagged, func([]byte) {}, true},
		"to nobody":     {frame, func(f []byte) { f[ethernetHeader+29] = hosts + 1 }, false},
		"another block": {frame, func(f []byte) { f[ethernetHeader+25] = 1 }, false},
		"used up":       {frame, func(f []byte) { f[ethernetHeader+7] = 1 }, false},
		"another type":  {frame, func(f []byte) { f[13] = 0xcc }, false},
		"no tag at all": {frame, func(f []byte) { f[12], f[13] = 0x88, 0xcc }, false},
	} {
		f := slices.Clone(test.frame)
		test.edit(f)
		host, ok := hostOf(f)
		if ok != test.want || ok && host != 2 {
			t.Errorf("%s: host %d, %v", name, host, ok)
		}
		if at := len(f) - 40 + 7; ok && f[at] != 63 {
			t.Errorf("%s: the hop limit is %d after a router", name, f[at])
		}
	}
}
