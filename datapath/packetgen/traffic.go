package packetgen

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/flow"
)

// IP protocol numbers.
const (
	protocolHopByHop    = 0
	protocolICMP        = 1
	protocolIPv4        = 4
	protocolTCP         = 6
	protocolUDP         = 17
	protocolIPv6        = 41
	protocolRouting     = 43
	protocolFragment    = 44
	protocolICMPv6      = 58
	protocolDestination = 60
)

// TCP flags.
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagPSH = 0x08
	flagACK = 0x10
)

// segment is what an inner packet is about.
type segment struct {
	flow.Tuple
	flags    uint8
	seq, ack uint32
}

// flagChoices are TCP flags by how often they are seen; random ones come on top.
var flagChoices = [...]uint8{
	flagSYN, flagSYN, flagSYN, flagSYN, flagSYN, flagSYN,
	flagACK, flagACK, flagACK, flagPSH | flagACK,
	flagSYN | flagACK, flagFIN | flagACK, flagRST, flagRST | flagACK,
}

// flags returns TCP flags.
func (g *Generator) flags() uint8 {
	if g.oneIn(8) {
		return uint8(g.random.Uint32())
	}
	return flagChoices[g.below(len(flagChoices))]
}

// edgeSegment returns what a client, or an attacker, sends to an edge.
func (g *Generator) edgeSegment() segment {
	s := g.toService()
	switch g.below(16) {
	case 4:
		s.Protocol = icmpOf(s.Dst.Is6())
	case 0: // a VIP, but perhaps not a service
		s.DstPort = uint16(g.random.Uint32())
	case 1: // a VIP, but perhaps not a service's protocol
		s.Protocol = g.anyProtocol(s.Dst.Is6())
	case 2:
		s.Dst = g.anyAddr(s.Dst.Is6())
	case 3:
		s.Dst = g.unusualAddr(s.Dst)
	}
	if g.oneIn(12) {
		s.Src = g.unusualAddr(s.Src)
	}
	if g.oneIn(24) {
		s.Src = g.martian(s.Src.Is4())
	}
	return s
}

// hostSegment returns what an edge forwards to a host.
func (g *Generator) hostSegment() segment {
	if len(g.world.Connections) == 0 || g.percent(60) {
		s := g.toService()
		if g.oneIn(10) {
			s.DstPort = uint16(g.random.Uint32())
		}
		if g.oneIn(20) {
			s.Protocol = icmpOf(s.Dst.Is6())
		}
		return s
	}
	c := pick(g, g.world.Connections)
	s := segment{Tuple: c.Flow, flags: g.flags(), seq: g.random.Uint32(), ack: g.random.Uint32()}
	if g.percent(60) {
		s.ack = c.SndISN + 1
	}
	if g.percent(60) {
		s.seq = c.RcvISN + uint32(g.below(3))
	}
	if g.oneIn(8) {
		s.Protocol = icmpOf(s.Dst.Is6()) // about the connection
		if g.oneIn(2) {
			s.seq = c.SndISN
		}
	}
	return s
}

// toService returns a packet of some client to one of the services.
func (g *Generator) toService() segment {
	service := pick(g, g.world.Services)
	if !service.Addr.IsValid() {
		service = Service{Addr: g.anyAddr(g.oneIn(2)), Protocol: protocolTCP}
	}
	s := segment{
		Tuple: flow.Tuple{
			Src: g.client(service.Addr.Is6()), Dst: service.Addr,
			SrcPort: uint16(g.random.Uint32()), DstPort: service.Port,
			Protocol: service.Protocol,
		},
		flags: g.flags(), seq: g.random.Uint32(), ack: g.random.Uint32(),
	}
	if service.Port == 0 {
		s.DstPort = uint16(g.random.Uint32())
	}
	if g.oneIn(4) {
		s.SrcPort = uint16(1024 + g.below(8)) // flows that come again
	}
	return s
}

// client returns one of few clients or any.
func (g *Generator) client(ipv6 bool) netip.Addr {
	if g.oneIn(4) {
		return g.anyAddr(ipv6)
	}
	last := byte(1 + g.below(4))
	if ipv6 {
		return netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 4: 0xc1, 15: last})
	}
	return netip.AddrFrom4([4]byte{198, 51, 100, last})
}

// anyAddr returns a random address.
func (g *Generator) anyAddr(ipv6 bool) netip.Addr {
	var a [16]byte
	binary.BigEndian.PutUint64(a[:], g.random.Uint64())
	if !ipv6 {
		return netip.AddrFrom4([4]byte(a[:]))
	}
	binary.BigEndian.PutUint64(a[8:], g.random.Uint64())
	return netip.AddrFrom16(a)
}

// unusualAddr returns an address which a client's packet should not have: of the SID
// block, of the infrastructure, a SID, another VIP, or the IPv4 address mapped to IPv6,
// which is not the IPv4 address.
func (g *Generator) unusualAddr(usual netip.Addr) netip.Addr {
	if usual.Is4() {
		if g.oneIn(2) {
			return netip.AddrFrom16(usual.As16())
		}
		return pick(g, g.world.Services).Addr
	}
	switch g.below(4) {
	case 0:
		return g.inBlock()
	case 1:
		return pick(g, g.world.Infrastructure)
	case 2:
		return pick(g, g.world.Others)
	}
	return pick(g, g.world.Services).Addr
}

// martian returns an address that no host has, or the edge of what can be one.
func (g *Generator) martian(ipv4 bool) netip.Addr {
	if ipv4 {
		first := pick(g, []byte{0, 1, 10, 126, 127, 128, 223, 224, 239, 240, 255})
		return netip.AddrFrom4([4]byte{first, uint8(g.below(2)), 0, uint8(g.below(3))})
	}
	return netip.MustParseAddr(pick(g, []string{
		"::", "::1", "::ffff:192.0.2.1", "64:ff9b::1", "ff02::1", "feff::1", "0:0:0:1::1",
	}))
}

// inBlock returns a random address of the SID block, or of another prefix of SIDs.
func (g *Generator) inBlock() netip.Addr {
	a := g.anyAddr(true).As16()
	of := g.world.Block
	if len(g.world.Locators) > 0 && g.oneIn(2) {
		of = pick(g, g.world.Locators)
	}
	if of.IsValid() {
		block := of.Addr().As16()
		copy(a[:of.Bits()/8], block[:])
	}
	return netip.AddrFrom16(a)
}

// anyProtocol returns an upper layer: ICMP of the right family or the other, TCP, UDP,
// or a random one.
func (g *Generator) anyProtocol(ipv6 bool) uint8 {
	switch g.below(6) {
	case 0, 1:
		if ipv6 {
			return protocolICMPv6
		}
		return protocolICMP
	case 2:
		return protocolICMPv6
	case 3:
		return protocolTCP
	case 4:
		return protocolUDP
	}
	return uint8(g.random.Uint32())
}
