package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"sextant/lb/acceptance"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Offer says what End.OFFER decided, and on what ground.
type Offer uint8

// What can become of an offer.
const (
	OfferNone          Offer = iota // the packet was not offered
	OfferLast                       // taken: there is nobody left to pass it on to
	OfferHere                       // taken: the connection is here
	OfferAccepted                   // taken: a new connection, and the policy accepts it
	OfferRefused                    // passed on: the policy refuses it
	OfferRefusedBefore              // passed on: it was refused a moment ago
	OfferNoService                  // passed on: a new connection to a service that is not here
	OfferNotHere                    // passed on: the connection is not here
	OfferNotTCP                     // passed on: nothing to be known about it
	OfferStray                      // sent back to the edge: the connection is not here
	OfferPassedBefore               // passed on: another copy of it was, a moment ago
	// left to the kernel: the connection is not here, and the packet was sent back before
	OfferReturned
)

var offerNames = [...]string{
	OfferNone:          "none",
	OfferLast:          "last",
	OfferHere:          "here",
	OfferAccepted:      "accepted",
	OfferRefused:       "refused",
	OfferRefusedBefore: "refused_before",
	OfferNoService:     "no_service",
	OfferNotHere:       "not_here",
	OfferNotTCP:        "not_tcp",
	OfferStray:         "stray",
	OfferPassedBefore:  "passed_before",
	OfferReturned:      "returned",
}

// String returns the outcome in lower snake case.
func (o Offer) String() string { return name(offerNames[:], int(o)) }

// takes reports whether the packet stays on this host.
func (o Offer) takes() bool { return o == OfferLast || o == OfferHere || o == OfferAccepted }

// offer is End.OFFER: the inner packet is taken or passed on to the next candidate.
func (v *visit) offer(r Result) Result {
	inner, ok := v.inner()
	if !ok {
		return r.drop(ReasonUpperLayer)
	}
	reason := inner.parseHeader(v.outer.end)
	if reason == ReasonNone {
		reason = inner.parseUpper(encapsulated)
	}
	if reason != ReasonNone {
		return r.drop(reason)
	}
	r.Flow = inner.tuple()
	var service *HostService
	if inner.protocol == protocolTCP || inner.protocol == protocolUDP {
		key, found, ok := findService(v.host.Services, inner.serviceKey())
		if ok {
			r.Service, service = key, found
		}
	}
	copies, first := v.judge(&inner)
	switch {
	case !first && !copies.passedOn:
		return r.drop(ReasonDuplicate)
	case !first && v.left():
		r.Offer = OfferPassedBefore
	default:
		r.Offer = v.consider(&r, &inner, service)
	}
	if !r.Offer.takes() && v.passToSelf() {
		r.SID = v.sid.Prefix
		r.Offer = v.consider(&r, &inner, service)
	}
	if !r.Offer.takes() {
		if copies != nil {
			copies.passedOn = true
		}
		return v.passOn(r)
	}
	if service == nil {
		return v.take(r, &inner, 0)
	}
	taken := v.take(r, &inner, service.MSS)
	if taken.Taken && len(v.host.Learners) > 0 && inner.protocol == protocolTCP &&
		inner.transport.opens() {
		v.ask(&taken)
	}
	return taken
}

// consider decides about the offer.
func (v *visit) consider(r *Result, inner *packet, service *HostService) Offer {
	switch {
	case service != nil && service.QUIC:
		return v.considerQUIC(r, inner, service)
	case !v.left():
		if service != nil && inner.protocol == protocolTCP && inner.transport.opens() {
			v.decide(r, service)
		}
		return OfferLast
	case inner.protocol != protocolTCP:
		return OfferNotTCP
	case v.here(r, inner):
		return OfferHere
	case !inner.transport.opens():
		return OfferNotHere
	case service == nil:
		return OfferNoService
	}
	hash := v.host.FlowHash.Hash(v.host.Secret, r.Flow)
	if v.host.refused.recent(hash, v.now, v.host.Refusal) {
		return OfferRefusedBefore
	}
	if v.decide(r, service) {
		return OfferAccepted
	}
	// The SYN goes to another host now. Were its retransmission accepted here, there
	// would be two half-open connections, and an ACK that fits only one of them.
	v.host.refused.remember(hash, v.now)
	return OfferRefused
}

// decide asks the service's policy about a new connection. A note for the next candidate is left in
// the outer flow label.
func (v *visit) decide(r *Result, service *HostService) bool {
	told := v.note(r.Flow)
	answer, next := service.Policy.Decide(service.State, acceptance.Offer{
		Busy: v.host.Busy(r.Service), Left: uint32(v.candidates() + v.outer.segmentsLeft()),
		Told: told, Now: v.now,
	})
	service.State = next
	if !answer.Accept && answer.Tell != 0 && v.outer.flowLabel()>>noteLabelShift != 0 {
		v.tell = uint32(answer.Tell^told) << noteLabelShift
	}
	return answer.Accept
}

// noteLabelShift is where a note begins in the outer flow label. The bits below choose among equal
// paths, and stay.
const noteLabelShift = 8

// note reads what the candidate before has told: by how much the outer flow label differs from that
// of the flow. Labels whose upper bits are 0, as those of health checks, have no note and get none.
func (v *visit) note(t flow.Tuple) acceptance.Note {
	label := v.outer.flowLabel()
	difference := label ^ flow.Label(v.host.FlowHash.Hash(v.host.Secret, t))
	if label>>noteLabelShift == 0 || difference&(1<<noteLabelShift-1) != 0 {
		return 0 // the label is of another making
	}
	return acceptance.Note(difference >> noteLabelShift)
}

// here reports whether the connection of a TCP packet is on this host. Of a later fragment, that is
// known if the first was taken.
func (v *visit) here(r *Result, inner *packet) bool {
	if inner.fragment.kind == fragmentLater {
		return v.host.fragments.knows(inner)
	}
	return v.host.Sockets(r.Flow).here(inner)
}

// here reports whether the connection of a TCP packet is that of the socket.
func (s Socket) here(p *packet) bool {
	t := &p.transport
	switch s.State {
	case SocketOther:
		return true
	case SocketNewSynRecv:
		return s.fitsRequest(t, p.icmp == icmpQuotes)
	case SocketTimeWait:
		return p.icmp != icmpQuotes && s.fitsTimeWait(t)
	case SocketListen:
		return t.has(tcpFlagACK) && !t.has(tcpFlagSYN) && !t.has(tcpFlagRST) && s.CookieOK
	}
	return false
}

// fitsRequest reports whether a packet belongs to a connection request. Another
// host may hold one for the same flow, with another sequence number of ours.
func (s Socket) fitsRequest(t *transport, quoted bool) bool {
	switch {
	case quoted:
		return t.seq == s.SndISN // of our SYN-ACK
	case t.has(tcpFlagACK):
		return t.ack == s.SndISN+1
	case t.has(tcpFlagSYN):
		return true
	case t.has(tcpFlagRST):
		return t.seq == s.RcvISN+1
	}
	return false
}

// fitsTimeWait reports whether a segment is one that the peer of a socket in TIME_WAIT can still
// send. The port may be in use again, by a connection of another host. Our FIN has been
// acknowledged, so each segment with ACK acknowledges just that; a FIN may be one beyond the
// window. A SYN opens another connection (RFC 6191).
func (s Socket) fitsTimeWait(t *transport) bool {
	switch {
	case t.has(tcpFlagSYN):
		return false
	case t.has(tcpFlagRST) && t.seq == s.RcvNxt: // RFC 5961 section 3.2
		return true
	case t.has(tcpFlagACK):
		return t.ack == s.SndNxt && int32(t.seq-(s.RcvNxt+s.RcvWnd)) <= 1
	}
	return false
}

// passOn sends the packet to the next candidate.
func (v *visit) passOn(r Result) Result {
	destination, left := v.next()
	hopLimit := v.outer.hopLimit()
	if hopLimit <= 1 {
		r.Verdict, r.Reason = HandToKernel, ReasonHopLimit
		r.Frame = v.rewrite(v.frame.appendLinkHeader(nil, etherTypeIPv6), destination, left, 1)
		return r
	}
	hop := v.host.NextHop(destination, v.outer.data[v.outer.start+flowLabelEnd]%pathChoices)
	out := outgoing{ingress: v.ingress, frame: v.frame, length: v.outer.end - v.outer.start}
	_, own := v.host.Interfaces[hop.Interface]
	verdict, reason := out.verdict(hop, own)
	if reason == ReasonPacketTooBig { // the kernel says so
		verdict, r.Reason = HandToKernel, reason
	}
	if verdict == Drop {
		return r.drop(reason)
	}
	r.Verdict = verdict
	if verdict != HandToKernel {
		r.Interface = hop.Interface
		hopLimit--
	}
	b := make([]byte, 0, len(v.outer.data))
	r.Frame = v.rewrite(out.appendLinkHeader(b, verdict, hop), destination, left, hopLimit)
	return r
}

// next returns the next candidate, and the segments left then. The rest of a carrier
// (RFC 9800 section 4.1.1) comes before the next segment (RFC 8986 section 4.1).
func (v *visit) next() (destination netip.Addr, left int) {
	left = v.outer.segmentsLeft()
	if v.candidates() > 0 {
		destination, _ = srv6.Shift(v.outer.dst)
		return destination, left
	}
	left--
	segment := v.outer.data[v.outer.srh+srhFixedLength+segmentLength*left:]
	return netip.AddrFrom16([16]byte(segment[:segmentLength])), left
}

// passToSelf passes the packet on to this host for as long as the next candidate is another
// End.OFFER SID of it. It reports whether that was the last one.
func (v *visit) passToSelf() bool {
	for range pool.MaxChain - 1 {
		if !v.left() {
			return false
		}
		destination, left := v.next()
		sid, ok := v.host.localSID(destination)
		if !ok || sid.Behavior != srv6.EndOFFER {
			return false
		}
		data := slices.Clone(v.outer.data[:v.outer.start])
		v.outer.data = v.rewrite(data, destination, left, v.outer.hopLimit())
		v.outer.dst, v.sid, v.tell = destination, sid, 0
		if !v.left() {
			return true
		}
	}
	return false
}

// rewrite appends the outer packet to a link header, on its way to destination.
func (v *visit) rewrite(b []byte, destination netip.Addr, left int, hopLimit uint8) []byte {
	start := len(b)
	b = append(b, v.outer.data[v.outer.start:]...)
	header := b[start:]
	header[ipv6HopLimitOffset] = hopLimit
	binary.BigEndian.PutUint32(header, binary.BigEndian.Uint32(header)^v.tell)
	address := destination.As16()
	copy(header[ipv6AddressOffset:], address[:])
	if v.outer.srh != 0 {
		header[v.outer.srh-v.outer.start+srhSegmentsLeft] = uint8(left)
	}
	return b
}
