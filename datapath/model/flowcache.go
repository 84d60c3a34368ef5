package model

import (
	"net/netip"

	"sextant/lb/pool"
	"sextant/packet/flow"
)

// Learning is the edge's flow cache: which backend took a connection, as SYN-ACKs tell that hosts
// send by way of the edge.
type Learning struct {
	SID netip.Addr // End.LEARN, from which SYNs come and to which their answers go
	// Owner returns the backend that is known for the flow of a hash, 0 for none.
	Owner func(hash uint64) uint16
	// Remember notes the backend of a flow.
	Remember func(hash uint64, owner uint16)
}

// CacheEvent is what the flow cache did for a packet. The zero value is nothing.
type CacheEvent uint8

// The events.
const (
	CacheUnused CacheEvent = iota
	CacheHit               // the packet goes to the backend that the cache names first
	CacheMiss              // nothing was known about its flow
	// the backend that the cache names is none of the bucket's any more
	CacheStale
	CacheStored          // the owner that a SYN-ACK names was noted
	CacheRefusedUnnamed  // the SYN-ACK names no owner
	CacheRefusedStranger // the SYN-ACK's owner is none of the bucket's backends
)

var cacheEventNames = [...]string{
	CacheUnused: "", CacheHit: "hit", CacheMiss: "miss", CacheStale: "stale", CacheStored: "stored",
	CacheRefusedUnnamed: "refused_unnamed", CacheRefusedStranger: "refused_stranger",
}

// String returns the event in lower snake case, as its counter is called.
func (c CacheEvent) String() string { return name(cacheEventNames[:], int(c)) }

// cached moves the backend that the flow cache names to the front of a chain, for packets that
// visit all of it. No host is left out: each that would be reached without the cache is reached
// with it, one hop later at most.
func (e *Edge) cached(r *Result, chain pool.Chain, p *packet) pool.Chain {
	if e.Learning == nil || chain.Length < 2 || p.protocol != protocolTCP || p.transport.opens() {
		return chain
	}
	owner := e.Learning.Owner(r.Hash)
	if owner == 0 {
		r.Cache = CacheMiss
		return chain
	}
	moved, ok := chain.WithFront(owner)
	r.Cache = CacheHit
	if !ok {
		r.Cache = CacheStale
	}
	return moved
}

// outerSource is where the outer packet of a client's comes from: that of a SYN from End.LEARN, so
// that its answer can go there.
func (e *Edge) outerSource(p *packet) netip.Addr {
	if e.Learning != nil && p.protocol == protocolTCP && p.transport.opens() {
		return e.Learning.SID
	}
	return e.Source
}

// endLearn is End.LEARN: a SYN-ACK that a host sent by way of the edge becomes one on the way to
// its client, for the kernel to route.
func (e *Edge) endLearn(r Result, f *frame, outer *packet) Result {
	inner, reason := e.ofDomain(outer)
	if reason == ReasonNone && !inner.isSYNACK() {
		reason = ReasonUpperLayer
	}
	if reason != ReasonNone {
		return r.drop(reason)
	}
	key := ServiceKey{Addr: inner.src, Port: inner.transport.srcPort, Protocol: protocolTCP}
	key, service, ok := findService(e.Services, key)
	r.Flow = turned(inner.tuple())
	if !ok {
		return r.drop(ReasonNoService)
	}
	r.Service = key
	if reason := inner.combineECN(outer.trafficClass); reason != ReasonNone {
		return r.drop(reason)
	}
	r.Hash = e.FlowHash.Hash(e.Secret, r.Flow)
	r.Bucket = flow.Bucket(r.Hash, e.Buckets(service))
	r.Cache = e.learn(r.Hash, e.Chains(service, r.Bucket), outer)
	b := f.appendLinkHeader(make([]byte, 0, f.network+len(inner.data)-inner.start),
		inner.etherType())
	r.Verdict, r.Frame = HandToKernel, append(b, inner.data[inner.start:]...)
	return r
}

// turned is the flow of the other side's packets.
func turned(t flow.Tuple) flow.Tuple {
	return flow.Tuple{Src: t.Dst, Dst: t.Src, SrcPort: t.DstPort, DstPort: t.SrcPort,
		Protocol: t.Protocol}
}

// isSYNACK reports whether a whole packet is the answer to a SYN.
func (p *packet) isSYNACK() bool {
	return p.protocol == protocolTCP && p.icmp == icmpNone && p.fragment.kind == fragmentNone &&
		p.transport.has(tcpFlagSYN|tcpFlagACK)
}

// learn notes the backend whose SID the outer packet names as the first segment of its path.
func (e *Edge) learn(hash uint64, chain pool.Chain, outer *packet) CacheEvent {
	const second = srhFixedLength + segmentLength // in the SRH, whose last entry is not 0
	if outer.srh == 0 || outer.data[outer.srh+srhLastEntry] == 0 {
		return CacheRefusedUnnamed
	}
	named := netip.AddrFrom16([16]byte(outer.data[outer.srh+second:]))
	for _, id := range visits(chain, chain.Length) {
		if path, ok := e.path(nil, []uint16{id}); ok && path.destination == named {
			e.Learning.Remember(hash, id)
			return CacheStored
		}
	}
	return CacheRefusedStranger
}

// flowWays is how many flows share a set.
const flowWays = 4

// FlowCache is the memory of a flow cache: a fixed number of sets of four flows, in which a newer
// one replaces the one that rested longest.
type FlowCache struct {
	// Now is the time, in steps of which each is one step of rest.
	Now  func() uint16
	sets [][flowWays]cachedFlow
}

type cachedFlow struct {
	tag   uint32 // upper half of the flow hash
	owner uint16
	time  uint16
}

// NewFlowCache returns a memory of so many sets, at least one.
func NewFlowCache(sets int, now func() uint16) *FlowCache {
	return &FlowCache{Now: now, sets: make([][flowWays]cachedFlow, sets)}
}

func (c *FlowCache) set(hash uint64) *[flowWays]cachedFlow {
	return &c.sets[uint64(uint32(hash))*uint64(len(c.sets))>>32]
}

// Owner returns the backend of the flow of a hash, 0 if none is known.
func (c *FlowCache) Owner(hash uint64) uint16 {
	set := c.set(hash)
	for i := range set {
		if f := &set[i]; f.owner != 0 && f.tag == uint32(hash>>32) {
			f.time = c.Now()
			return f.owner
		}
	}
	return 0
}

// Remember notes the backend of a flow: in its own place, else in an empty one, else where the rest
// was longest.
func (c *FlowCache) Remember(hash uint64, owner uint16) {
	const empty, own = 1 << 16, 1 << 17 // more than any rest
	set, now := c.set(hash), c.Now()
	place, longest := int(hash>>32%flowWays), 0
	for i, f := range set {
		rest := int(now - f.time)
		switch {
		case f.owner == 0:
			rest = empty
		case f.tag == uint32(hash>>32):
			rest = own
		}
		if rest > longest {
			place, longest = i, rest
		}
	}
	set[place] = cachedFlow{tag: uint32(hash >> 32), owner: owner, time: now}
}
