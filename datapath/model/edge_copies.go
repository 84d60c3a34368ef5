package model

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/srv6"
)

// Copies are the packets of a service that go over both paths to backends that have two.
type Copies struct {
	All  bool
	SYN  bool // of TCP that open a connection
	Data bool // of TCP with payload
}

// wants reports whether a packet is to be copied.
func (c Copies) wants(p *packet) bool {
	tcp := p.protocol == protocolTCP && p.icmp == icmpNone
	switch {
	case p.fragment.kind != fragmentNone:
		return false
	case c.All, c.SYN && tcp && p.transport.opens():
		return true
	}
	return c.Data && tcp && p.end > p.upper+p.transport.headerLength
}

// copy gives a packet its first path, and the second copy its destination, if the packet is to go
// over two paths, and behind either of them one address has room for the chain and a mark. A frame
// with VLAN tags goes once.
func (e *Edge) copy(r *Result, f *frame, p *packet, service uint32) {
	if e.Copies == nil || e.Paths == nil || len(r.Chain) == 0 ||
		e.Encapsulation != EncapsulationCarrier || f.network > ethernetLength ||
		!e.Copies(service).wants(p) {
		return
	}
	paths := e.Paths(service, r.Chain[0])
	if len(paths) < srv6.Copies {
		return
	}
	for _, path := range paths {
		if len(path)+len(r.Chain) >= srv6.MaxCarrierCSIDs {
			return
		}
	}
	second, _ := e.path(paths[1], r.Chain)
	r.Path, r.Copy = paths[0], mark(second.destination, 1)
}

// mark puts that of a copy behind the SIDs of a carrier.
func mark(carrier netip.Addr, copy int) netip.Addr {
	b := carrier.As16()
	binary.BigEndian.PutUint16(b[14:], uint16(srv6.CopyMark(copy)))
	return netip.AddrFrom16(b)
}
