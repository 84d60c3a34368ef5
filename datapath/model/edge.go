package model

import (
	"net/netip"

	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Side says who is behind an interface of the edge.
type Side uint8

// The sides.
const (
	External Side = iota // clients: nothing of the SR domain may come from here
	Internal             // the SR domain
	Mixed                // both; who is who is told by the source address
)

// Edge is a node that spreads flows over backends: its tables, and the questions
// it asks the world. It remembers first fragments, so that packets are processed one
// at a time.
type Edge struct {
	// Sides holds the edge's interfaces, by index. Frames from another one pass,
	// as no program would run there.
	Sides          map[uint32]Side
	Block          srv6.Block
	Locators       []netip.Prefix // where SIDs are besides the block
	Infrastructure []netip.Prefix // sources that may send SRv6

	Services map[ServiceKey]uint32   // numbers of the services, for Chains
	VIPs     map[netip.Addr]struct{} // the addresses of Services
	Secret   flow.Secret             // of the flow hash
	FlowHash flow.Function
	// Buckets returns how many buckets a service has.
	Buckets func(service uint32) uint32
	// NewConnections takes a service's token for a new connection, if there is one; nil: services
	// get as many as come.
	NewConnections func(service uint32) bool
	// QUIC is about the services that are QUIC.
	QUIC map[uint32]*QUIC
	// Chains returns the backends of a bucket.
	Chains func(service, bucket uint32) pool.Chain

	// Paths returns the paths to a backend of a service, each as the ids of the SIDs on the way,
	// none for routing's own way; nil: all take that. Of several the flow's hash chooses.
	Paths func(service uint32, backend uint16) [][]uint16

	// Copies are the packets of a service that go over both of two paths; nil: none.
	Copies func(service uint32) Copies

	Former *FormerFlows // connections from before another secret or table; nil: none are known

	config.EdgeOuter
	Encapsulation Encapsulation
	HMAC          *srv6.HMACKey // signs each SRH; nil: none does
	Source        netip.Addr    // of the outer packets
	// SID returns the segment of a backend, the zero Addr for an unknown one. With
	// EncapsulationCarrier the id is the segment, and SID is not asked.
	SID func(id uint16) netip.Addr
	// NextHop asks routing for the way to dst. Of several equal ones, choice (0-7)
	// selects one that stays the same.
	NextHop func(dst netip.Addr, choice uint8) NextHop

	// Shadow is the SID to which hosts send strays (End.SHADOW), the zero Addr for none. LastOffer
	// is the local identifier behind a backend's SID with which they go on.
	Shadow    netip.Addr
	LastOffer srv6.CSID

	Learning *Learning // the flow cache; nil: none

	fragments fragments // first ones that were forwarded
}

// Process decides about a frame that came in by an interface.
func (e *Edge) Process(ingress uint32, data []byte) Result {
	var r Result
	side, own := e.Sides[ingress]
	if !own {
		return r.pass(data)
	}
	f, reason := parseFrame(data)
	if reason != ReasonNone {
		return r.drop(reason)
	}
	if f.etherType != etherTypeIPv4 && f.etherType != etherTypeIPv6 {
		return r.pass(data)
	}
	p := packet{data: data, start: f.network, ipv6: f.etherType == etherTypeIPv6}
	at, reason := e.parseHeader(&p, side)
	if reason != ReasonNone {
		return r.drop(reason)
	}
	if at == insideDomain && p.ipv6 && p.dst == e.Shadow {
		return e.endShadow(r, &f, &p, ingress)
	}
	if at == insideDomain && p.ipv6 && e.Learning != nil && p.dst == e.Learning.SID {
		return e.endLearn(r, &f, &p)
	}
	if at == insideDomain && p.dst == e.Source && p.protocol == protocolICMPv6 {
		if translated, ok := e.translateTooBig(r, &f, &p); ok {
			return translated
		}
		return r.pass(data)
	}
	if reason := p.parseUpper(at); reason != ReasonNone {
		return r.drop(reason)
	}
	service, ok := e.service(&r, &p)
	if !ok {
		return e.notServed(r, &f, &p, ingress)
	}
	return e.forward(r, &f, &p, ingress, service)
}

// parseHeader parses the IP header, and guards the domain on the way.
func (e *Edge) parseHeader(p *packet, side Side) (place, Reason) {
	if reason := p.parseHeader(len(p.data)); reason != ReasonNone {
		return insideDomain, reason
	}
	if reason := p.judgeIPv4(); reason != ReasonNone {
		return insideDomain, reason
	}
	border := border{e.Block, e.Locators, e.Infrastructure}
	if p.ipv6 && border.isOutside(side, p.src) {
		return outsideDomain, border.judge(p)
	}
	return insideDomain, ReasonNone
}

// service finds the packet's service, and notes it and the flow in the result.
func (e *Edge) service(r *Result, p *packet) (service uint32, ok bool) {
	if p.problem == ReasonNone && p.fragment.kind == fragmentLater {
		e.fragments.recall(p)
	}
	if p.problem != ReasonNone || p.protocol != protocolTCP && p.protocol != protocolUDP {
		return 0, false
	}
	r.Flow = p.tuple()
	key, service, ok := findService(e.Services, p.serviceKey())
	if ok {
		r.Service = key
		if p.fragment.kind == fragmentFirst {
			e.fragments.remember(p)
		}
	}
	return service, ok
}

// notServed decides about a packet that is for none of the services. Only on a
// VIP is that the edge's business: the kernel does not know the ports of a VIP and
// would answer in the backends' place.
func (e *Edge) notServed(r Result, f *frame, p *packet, ingress uint32) Result {
	if _, vip := e.VIPs[p.dst]; !vip {
		return r.pass(p.data)
	}
	if p.problem != ReasonNone {
		return r.drop(p.problem)
	}
	if !p.isICMP() {
		return r.drop(ReasonNoService)
	}
	// Without options or extension headers, which a reply would have to reverse.
	if header := p.upper - p.start; p.icmp == icmpEcho && (p.ipv6 && header == ipv6HeaderLength ||
		!p.ipv6 && header == ipv4HeaderLength) {
		return e.echo(r, f, p, ingress)
	}
	return r.pass(p.data)
}

// forward offers the packet to the backends of its flow's bucket.
func (e *Edge) forward(r Result, f *frame, p *packet, ingress, service uint32) Result {
	r.Hash = e.FlowHash.Hash(e.Secret, r.Flow)
	r.Bucket = flow.Bucket(r.Hash, e.Buckets(service))
	if p.hops() <= 1 {
		return e.timeExceeded(r, f, p, ingress)
	}
	if e.NewConnections != nil && p.protocol == protocolTCP && p.transport.opens() &&
		!e.NewConnections(service) {
		return r.drop(ReasonNewConnections)
	}
	chain := e.Former.join(service, r.Flow, e.Chains(service, r.Bucket))
	r.Chain = e.offered(service, e.cached(&r, chain, p), p)
	r.Path = e.waypoints(service, r.Hash, r.Chain)
	e.copy(&r, f, p, service)
	path, ok := e.path(r.Path, r.Chain)
	if !ok {
		return r.drop(ReasonNoBackend)
	}
	if r.Copy.IsValid() {
		path.destination = mark(path.destination, 0)
	}
	path.source = e.outerSource(p)
	hop := e.nextHop(&r, &path)
	if hop.Status != NextHopNoRoute && hop.MTU > 0 && path.headerLength()+p.end-p.start > hop.MTU {
		r.Copy = netip.Addr{}
		return e.tooBig(r, f, p, ingress, hop.MTU-path.headerLength())
	}
	return e.send(r, f, p, ingress, &path, hop, e.hopLimit())
}

// send encapsulates the packet for the path, and sends it to the first segment.
func (e *Edge) send(r Result, f *frame, p *packet, ingress uint32, path *path, hop NextHop,
	hopLimit uint8) Result {
	out := outgoing{ingress: ingress, frame: f, length: path.headerLength() + p.end - p.start}
	_, own := e.Sides[hop.Interface]
	verdict, reason := out.verdict(hop, own)
	if verdict == Drop {
		return r.drop(reason)
	}
	if r.Copy.IsValid() {
		verdict = HandToKernel // which sends both
	}
	r.Verdict = verdict
	if verdict != HandToKernel {
		r.Interface = hop.Interface
	}
	p.countHop()
	b := make([]byte, 0, f.network+path.headerLength()+len(p.data)-p.start)
	b = out.appendLinkHeader(b, verdict, hop)
	b = e.appendOuter(b, path, p, flow.Label(r.Hash), hopLimit)
	r.Frame = append(b, p.data[p.start:]...)
	return r
}

// nextHop asks for the way to the first segment.
func (e *Edge) nextHop(r *Result, path *path) NextHop {
	return e.NextHop(path.destination, uint8(r.Hash%pathChoices))
}

// offered returns the ids of the chain to which a packet is offered. Only a new
// connection can be refused by its candidates, only an old one can be with a past
// owner, and without connections there is nothing to ask for.
func (e *Edge) offered(service uint32, chain pool.Chain, p *packet) []uint16 {
	if quic, ok := e.QUIC[service]; ok {
		return quic.offered(chain, p)
	}
	switch {
	case p.protocol == protocolUDP:
		return visits(chain, 1)
	case p.transport.opens():
		return visits(chain, chain.Candidates)
	}
	return visits(chain, chain.Length)
}

// waypoints returns the ids of the SIDs on the way to the first of the backends ids. A path that
// does not fit before them into one SRH is left out: the connection counts more than its way. With
// carriers each path fits, in one of its own if need be.
func (e *Edge) waypoints(service uint32, hash uint64, ids []uint16) []uint16 {
	if e.Paths == nil || len(ids) == 0 {
		return nil
	}
	paths := e.Paths(service, ids[0])
	if len(paths) == 0 {
		return nil
	}
	path := PathOfFlow(paths, hash)
	if e.Encapsulation != EncapsulationCarrier && len(path)+len(ids) > srv6.MaxCarrierCSIDs {
		return nil
	}
	return path
}

// PathOfFlow is the one of the paths to a backend that a flow takes, by the bit of its hash behind
// those of the flow label.
func PathOfFlow[T any](paths []T, hash uint64) T {
	const labelBits = 20
	return paths[int(hash>>labelBits&1)%len(paths)]
}

// visits returns the first ids of a chain.
func visits(chain pool.Chain, count uint8) []uint16 {
	return append([]uint16(nil), chain.IDs[:min(int(chain.Length), int(count), len(chain.IDs))]...)
}
