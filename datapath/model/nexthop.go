package model

// NextHopStatus says what routing knows about a destination.
type NextHopStatus uint8

// What routing can know.
const (
	// NextHopForward: the route and the neighbour are known.
	NextHopForward NextHopStatus = iota
	// NextHopNoRoute: there is no route, or one that refuses (blackhole,
	// unreachable, prohibit).
	NextHopNoRoute
	// NextHopKernel: only the kernel can send this: the neighbour is not
	// resolved, or the route has an encapsulation of its own.
	NextHopKernel
)

// NextHop is where to send what goes to a destination.
type NextHop struct {
	Status         NextHopStatus
	Interface      uint32  // index of the egress interface
	SrcMAC, DstMAC [6]byte // that interface's, and the neighbour's
	MTU            int     // of the path, in bytes of the outer IP packet; 0 if not known
}

// pathChoices is how many next hops are remembered for one destination, so that a
// flow stays on one of several equal paths.
const pathChoices = 8

// outgoing is a rewritten packet on its way out of a node.
type outgoing struct {
	ingress uint32
	frame   *frame // as it came in
	length  int    // of the outer IP packet
}

// maxPayload is the greatest payload length of an IPv6 header (RFC 8200 section 3).
const maxPayload = 0xffff

// verdict says how the packet leaves by a next hop. own says whether that is by an
// interface of the node's programs.
func (o *outgoing) verdict(hop NextHop, own bool) (Verdict, Reason) {
	switch {
	case hop.Status == NextHopNoRoute:
		return Drop, ReasonNoRoute
	case o.length > ipv6HeaderLength+maxPayload, hop.MTU > 0 && o.length > hop.MTU:
		return Drop, ReasonPacketTooBig
	case hop.Status == NextHopKernel || !own:
		return HandToKernel, ReasonNone
	case hop.Interface == o.ingress:
		return Transmit, ReasonNone
	default:
		return Redirect, ReasonNone
	}
}

// appendLinkHeader appends the Ethernet header with which a verdict sends the
// packet, which is IPv6 by now. Only the kernel gets the old addresses, to route by
// itself; only on the interface by which they came do VLAN tags mean anything.
func (o *outgoing) appendLinkHeader(b []byte, verdict Verdict, hop NextHop) []byte {
	if verdict == Redirect {
		b = append(b, hop.DstMAC[:]...)
		b = append(b, hop.SrcMAC[:]...)
		return append(b, etherTypeIPv6>>8, etherTypeIPv6&0xff)
	}
	start := len(b)
	b = o.frame.appendLinkHeader(b, etherTypeIPv6)
	if verdict == Transmit {
		copy(b[start:], hop.DstMAC[:])
		copy(b[start+len(hop.DstMAC):], hop.SrcMAC[:])
	}
	return b
}
