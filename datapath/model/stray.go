package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"sextant/packet/flow"
)

// Strays is a machine beside whose router strays are taken away: Algorithm 1 of VRF-shadowing for
// SIDs that the kernel decapsulates. It remembers fragments, so that packets are processed one at a
// time.
type Strays struct {
	// Interfaces holds those on which strays are looked for, by index.
	Interfaces     map[uint32]struct{}
	SIDs           []StraySID
	Infrastructure []netip.Prefix // sources from which SRv6 is accepted
	// Sockets asks the kernel for the TCP socket of a client's flow in the VRF of a SID.
	Sockets func(sid netip.Prefix, tuple flow.Tuple) Socket

	fragments fragments // first ones that are here
}

// StraySID is a SID that the kernel decapsulates into a VRF.
type StraySID struct {
	Prefix     netip.Prefix
	IPv4, IPv6 bool // what it decapsulates
	// Device says that the VRF is a device: whether a packet is astray is asked where it is
	// received.
	Device bool
}

// strayHops tells strays apart: one leaves with one hop less, so what comes with less has been a
// stray before, and goes round no more.
const strayHops = 16

// Process decides about a frame that came in by an interface. What concerns no VRF, and what is odd
// in any way, passes as it is; the result then says how far it got: the SID, the reason why it is
// left alone, the flow, and OfferHere if the connection is in the VRF, or OfferReturned if it is
// not and the packet was a stray before. Else the packet is taken out of its outer headers and
// received on the VRF's device (Taken), or on the backup device (Taken, OfferStray).
func (s *Strays) Process(ingress uint32, data []byte) Result {
	untouched := Result{}.pass(data)
	_, p, r, ok := outerIPv6(s.Interfaces, ingress, data)
	if !ok {
		return untouched
	}
	sid, ok := s.sid(p.dst)
	if !ok {
		return untouched
	}
	untouched.SID = sid.Prefix
	inner, reason := s.inner(sid, &p)
	if reason != ReasonNone {
		untouched.Reason = reason
		return untouched
	}
	untouched.Flow = inner.tuple()
	if inner.protocol != protocolTCP || inner.transport.has(tcpFlagSYN) {
		return untouched
	}
	r.Flow = untouched.Flow
	if !sid.Device {
		if s.here(sid, &r, &inner) {
			if inner.fragment.kind == fragmentFirst {
				s.fragments.remember(&inner)
			}
			untouched.Offer = OfferHere
			return untouched
		}
		if inner.hops() < strayHops {
			untouched.Offer = OfferReturned
			return untouched
		}
		r.Offer = OfferStray
	}
	if reason := inner.combineECN(p.trafficClass); reason != ReasonNone {
		untouched.Reason = reason
		return untouched
	}
	if r.Offer == OfferStray {
		inner.setHops(strayHops - 1)
	}
	// bytes in front of the EtherType; VLAN tags do not belong to the packet any more
	const addresses = 12
	b := binary.BigEndian.AppendUint16(slices.Clone(data[:addresses]), inner.etherType())
	r.Verdict, r.Frame, r.Taken, r.SID = HandToKernel, append(b, inner.data[inner.start:]...), true,
		sid.Prefix
	return r
}

// inner is the packet inside of one to a SID, or why that is left to the kernel.
func (s *Strays) inner(sid StraySID, p *packet) (packet, Reason) {
	if !containsAddr(s.Infrastructure, p.src) {
		return packet{}, ReasonOutsideDomain
	}
	if reason := p.walkExtensions(localSID); reason != ReasonNone {
		return packet{}, reason
	}
	inner, reason := p.last()
	switch {
	case reason != ReasonNone:
		return packet{}, reason
	case inner.ipv6 && !sid.IPv6 || !inner.ipv6 && !sid.IPv4:
		return packet{}, ReasonUpperLayer
	}
	return inner, inner.parseWhole(p.end)
}

func (s *Strays) here(sid StraySID, r *Result, inner *packet) bool {
	if inner.fragment.kind == fragmentLater {
		return s.fragments.knows(inner)
	}
	return s.Sockets(sid.Prefix, r.Flow).here(inner)
}

// sid returns the SID with the longest prefix that contains the address.
func (s *Strays) sid(addr netip.Addr) (best StraySID, ok bool) {
	for _, sid := range s.SIDs {
		if sid.Prefix.Contains(addr) && (!ok || sid.Prefix.Bits() > best.Prefix.Bits()) {
			best, ok = sid, true
		}
	}
	return best, ok
}

// hops is the packet's hop limit, or time to live.
func (p *packet) hops() uint8 {
	if p.ipv6 {
		return p.data[p.start+ipv6HopLimitOffset]
	}
	return p.data[p.start+ipv4TTLOffset]
}

// countHop counts one in a copy of a packet that has one left (RFC 8986 section 5.1).
func (p *packet) countHop() { p.setHops(p.hops() - 1) }

// setHops changes it in a copy of the packet.
func (p *packet) setHops(hops uint8) {
	p.data = slices.Clone(p.data)
	header := p.data[p.start:]
	if p.ipv6 {
		header[ipv6HopLimitOffset] = hops
		return
	}
	before := binary.BigEndian.Uint16(header[ipv4TTLOffset:])
	header[ipv4TTLOffset] = hops
	updateChecksum(header[ipv4ChecksumOffset:], before,
		binary.BigEndian.Uint16(header[ipv4TTLOffset:]))
}
