package forward_test

import (
	"net/netip"
	"testing"

	"sextant/flow"
	"sextant/forward"
	"sextant/pool"
	"sextant/srv6"
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
	vip4     = addr("192.0.2.80")
	vip6     = addr("2001:db8:80::80")
	client4  = addr("198.51.100.7")
	client6  = addr("2001:db8:c1::7")
	edgeAddr = addr("fd00:5e::e1")
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

// sid returns the SID of a backend, when SIDs are not compressed.
func sid(id uint16) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x00, 2: 0xc0, 3: 0xde, 14: byte(id >> 8), 15: byte(id)})
}

// newEdge returns an edge whose buckets all have the chain, and whose routes all go
// by one interface.
func newEdge(t testing.TB, chain pool.Chain, egress uint32) *forward.Edge {
	t.Helper()
	return &forward.Edge{
		Sides:          map[uint32]forward.Side{external: forward.External, internal: forward.Internal, mixed: forward.Mixed},
		Block:          mustBlock(t),
		Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
		Services: map[forward.ServiceKey]uint32{
			{Addr: vip4, Port: 80, Protocol: 6}:  webV4,
			{Addr: vip6, Port: 80, Protocol: 6}:  webV6,
			{Addr: vip6, Protocol: 17}:           anyV6,
			{Addr: vip4, Port: 53, Protocol: 17}: dnsV4,
		},
		VIPs:     map[netip.Addr]struct{}{vip4: {}, vip6: {}},
		Buckets:  65537,
		Secret:   mustSecret(t),
		Chains:   func(uint32, uint32) pool.Chain { return chain },
		Source:   edgeAddr,
		HopLimit: 63,
		SID:      sid,
		NextHop: func(netip.Addr, uint8) forward.NextHop {
			return forward.NextHop{
				Interface: egress, SrcMAC: [6]byte(egressMAC), DstMAC: [6]byte(gatewayMAC), MTU: 9000,
			}
		},
	}
}

// web4 and web6 are packets to the web services.
func web4(flags string) inner {
	return inner{Src: client4, Dst: vip4, SrcPort: 40000, DstPort: 80, Flags: flags}
}

func web6(flags string) inner {
	return inner{Src: client6, Dst: vip6, SrcPort: 40000, DstPort: 80, Flags: flags}
}
