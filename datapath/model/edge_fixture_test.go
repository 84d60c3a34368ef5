package model_test

import (
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// The edge's interfaces.
const (
	external = 1
	internal = 2
	mixed    = 3
	foreign  = 4 // not the edge's
)

const (
	webV4 = 1
	webV6 = 2
	anyV6 = 3 // UDP on any port
	dnsV4 = 4
)

var (
	vip4     = packettest.VIP4
	vip6     = packettest.VIP6
	edgeAddr = packettest.EdgeAddr

	web4 = packettest.Web4
	web6 = packettest.Web6
	sid  = packettest.SID
)

func mustSecret(t testing.TB) flow.Secret {
	t.Helper()
	secret, err := flow.ParseSecret("00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func mustBlock(t testing.TB) srv6.Block {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return block
}

// chain returns a chain of ids, the first of them current.
func chain(candidates int, ids ...uint16) pool.Chain {
	c := pool.Chain{Length: uint8(len(ids)), Candidates: uint8(candidates)}
	copy(c.IDs[:], ids)
	return c
}

// newEdge returns an edge whose buckets all have the chain, and whose routes all go
// by one interface.
func newEdge(t testing.TB, chain pool.Chain, egress uint32) *model.Edge {
	t.Helper()
	return &model.Edge{
		Sides: map[uint32]model.Side{external: model.External, internal: model.Internal,
			mixed: model.Mixed},
		Block:          mustBlock(t),
		Locators:       []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")},
		Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
		Services: map[model.ServiceKey]uint32{
			{Addr: vip4, Port: 80, Protocol: 6}:  webV4,
			{Addr: vip6, Port: 80, Protocol: 6}:  webV6,
			{Addr: vip6, Protocol: 17}:           anyV6,
			{Addr: vip4, Port: 53, Protocol: 17}: dnsV4,
		},
		VIPs:      map[netip.Addr]struct{}{vip4: {}, vip6: {}},
		Buckets:   func(uint32) uint32 { return 65537 },
		Secret:    mustSecret(t),
		Chains:    func(uint32, uint32) pool.Chain { return chain },
		Source:    edgeAddr,
		EdgeOuter: packettest.EdgeOuter(t, 63),
		SID:       sid,
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{
				Interface: egress, SrcMAC: [6]byte(egressMAC), DstMAC: [6]byte(gatewayMAC),
				MTU: 9000,
			}
		},
	}
}
