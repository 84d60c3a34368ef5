package model

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/flow"
)

// The halves of VRF-shadowing (Nakamura et al., "Exploiting SRv6"): End.SHADOW on the edge, which
// is the paper's shadow VRF in one SID, and End.DT4.COND, End.DT6.COND and End.DT46.COND on a host,
// its Algorithm 1.

// endShadow sends a stray to the owner that its bucket had before the latest change, marked as the
// last offer: the owner's SID is followed by LastOffer, where the owner decapsulates without
// asking. So a stray visits one more host at most.
func (e *Edge) endShadow(r Result, f *frame, outer *packet, ingress uint32) Result {
	inner, reason := e.ofDomain(outer)
	if reason != ReasonNone {
		return r.drop(reason)
	}
	service, ok := e.service(&r, &inner)
	if !ok && inner.problem != ReasonNone {
		return r.drop(inner.problem)
	}
	if !ok {
		return r.drop(ReasonNoService)
	}
	if reason := inner.combineECN(outer.trafficClass); reason != ReasonNone {
		return r.drop(reason)
	}
	hopLimit := outer.data[outer.start+ipv6HopLimitOffset]
	if hopLimit <= 1 || inner.hops() <= 1 {
		return r.drop(ReasonHopLimit)
	}
	path, ok := e.lastOffer(&r, service)
	if !ok {
		return r.drop(ReasonNoBackend)
	}
	return e.send(r, f, &inner, ingress, &path, e.nextHop(&r, &path), hopLimit-1)
}

// ofDomain is the packet inside one that a node of the infrastructure sent to a SID of this edge.
func (e *Edge) ofDomain(outer *packet) (inner packet, reason Reason) {
	if !containsAddr(e.Infrastructure, outer.src) {
		return packet{}, ReasonOutsideDomain
	}
	if reason := outer.walkExtensions(localSID); reason != ReasonNone {
		return packet{}, reason
	}
	if inner, reason = outer.last(); reason == ReasonNone {
		reason = inner.parseWhole(outer.end)
	}
	return inner, reason
}

// lastOffer returns the path to the previous owner, or to the present one if there was none.
func (e *Edge) lastOffer(r *Result, service uint32) (path, bool) {
	r.Hash = e.FlowHash.Hash(e.Secret, r.Flow)
	r.Bucket = flow.Bucket(r.Hash, e.Buckets(service))
	chain := e.Chains(service, r.Bucket)
	if chain.Shadow != 0 {
		r.Chain = []uint16{chain.Shadow}
	} else if chain.Length > 0 {
		r.Chain = []uint16{chain.IDs[0]}
	}
	p, ok := e.path(nil, r.Chain)
	if !ok {
		return path{}, false
	}
	const behindNode = 6 // bytes of block and node
	sid := p.destination.As16()
	binary.BigEndian.PutUint16(sid[behindNode:], uint16(e.LastOffer))
	return path{destination: netip.AddrFrom16(sid)}, true
}

// last returns the packet in an outer one whose last segment this is, not parsed yet.
func (p *packet) last() (packet, Reason) {
	if p.segmentsLeft() != 0 {
		return packet{}, ReasonSegmentsLeft
	}
	if p.protocol != protocolIPv4 && p.protocol != protocolIPv6 {
		return packet{}, ReasonUpperLayer
	}
	return packet{data: p.data, start: p.upper, ipv6: p.protocol == protocolIPv6}, ReasonNone
}

// parseWhole parses an inner packet up to its transport header; the first problem ends it.
func (p *packet) parseWhole(limit int) Reason {
	if reason := p.parseHeader(limit); reason != ReasonNone {
		return reason
	}
	return p.parseUpper(encapsulated)
}

// conditional is End.DT4.COND, End.DT6.COND and End.DT46.COND: what is no stray is decapsulated.
func (v *visit) conditional(r Result) Result {
	if v.argument() {
		return r.drop(ReasonSegmentsLeft)
	}
	inner, reason := v.outer.last()
	if reason == ReasonNone && !decapsulates(v.sid.Behavior, inner.ipv6) {
		reason = ReasonUpperLayer
	}
	if reason == ReasonNone {
		reason = inner.parseWhole(v.outer.end)
	}
	if reason != ReasonNone {
		return r.drop(reason)
	}
	r.Flow = inner.tuple()
	var mssLimit uint16
	if key, service, ok := findService(v.host.Services, inner.serviceKey()); ok &&
		inner.protocol == protocolTCP {
		r.Service, mssLimit = key, service.MSS
	}
	if inner.protocol == protocolTCP && !inner.transport.has(tcpFlagSYN) && !v.here(&r, &inner) {
		r.Offer = OfferStray
		return v.sendBack(r, &inner)
	}
	return v.take(r, &inner, mssLimit)
}

// sendBack encapsulates a stray for the backup SID. The outer traffic class and flow label stay;
// the hop limit goes on falling, and that of the packet inside with it: a kernel that decapsulates
// and encapsulates it counts no hop, and it would go round without end.
func (v *visit) sendBack(r Result, inner *packet) Result {
	p := v.outer
	if p.data[p.start+ipv6HopLimitOffset] <= 1 || inner.hops() <= 1 {
		return r.drop(ReasonHopLimit)
	}
	inner.countHop()
	choice := p.data[p.start+flowLabelEnd] % pathChoices
	hop := v.host.NextHop(v.sid.Backup, choice)
	length := inner.end - inner.start
	out := outgoing{ingress: v.ingress, frame: v.frame, length: ipv6HeaderLength + length}
	_, own := v.host.Interfaces[hop.Interface]
	verdict, reason := out.verdict(hop, own)
	if verdict == Drop {
		return r.drop(reason)
	}
	r.Verdict = verdict
	if verdict != HandToKernel {
		r.Interface = hop.Interface
	}
	b := out.appendLinkHeader(nil, verdict, hop)
	b = append(b, p.data[p.start:p.start+4]...) // version, traffic class, flow label
	b = append(b, byte(length>>8), byte(length), p.protocol, p.data[p.start+ipv6HopLimitOffset]-1)
	b = appendAddr(b, v.host.Source)
	b = appendAddr(b, v.sid.Backup)
	r.Frame = append(b, inner.data[inner.start:]...)
	return r
}
