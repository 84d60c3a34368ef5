package model

import (
	"encoding/binary"

	"sextant/lb/pool"
	"sextant/packet/quiclb"
)

// QUIC is how connection IDs of a service name its backends.
type QUIC struct {
	Codecs   []*quiclb.Codec     // for each configuration
	Backends map[uint16]struct{} // those whose server IDs are known
}

// What is read of a QUIC packet (RFC 8999, RFC 9000 section 17, RFC 9369).
const (
	quicLongHeader = 0x80
	quicVersionEnd = 5
	quicLongIDAt   = 6 // behind its length
	quicVersion1   = 0x00000001
	quicVersion2   = 0x6b3343cf
)

// datagram is the payload of a UDP packet, as far as its UDP header says.
func (p *packet) datagram() []byte {
	length := int(binary.BigEndian.Uint16(p.data[p.upper+4:]))
	return p.data[p.upper+udpHeaderLength : p.upper+length]
}

// opensQUIC reports whether a UDP packet asks a QUIC server for a connection, or for the versions
// that it knows.
func (p *packet) opensQUIC() bool {
	if p.icmp != icmpNone || p.fragment.kind != fragmentNone {
		return false
	}
	b := p.datagram()
	if len(b) < quicVersionEnd || b[0]&quicLongHeader == 0 {
		return false
	}
	kind := b[0] >> 4 & 3
	switch binary.BigEndian.Uint32(b[1:]) {
	case quicVersion1:
		return kind == 0
	case quicVersion2:
		return kind == 1
	}
	return true
}

// owner returns the backend that a packet's connection ID names.
func (q *QUIC) owner(p *packet) (id uint16, ok bool) {
	if p.icmp != icmpNone {
		return 0, false
	}
	b := p.datagram()
	if len(b) == 0 {
		return 0, false
	}
	at, long := 1, b[0]&quicLongHeader != 0
	if long {
		at = quicLongIDAt
	}
	if len(b) <= at {
		return 0, false
	}
	for _, codec := range q.Codecs {
		if long && int(b[at-1]) != codec.Length() {
			continue
		}
		serverID, err := codec.Decode(b[at:])
		if err != nil {
			continue
		}
		id, ok = quiclb.Backend(serverID)
		_, known := q.Backends[id]
		return id, ok && known
	}
	return 0, false
}

// offered returns the ids of the chain to which a packet of the service is offered. A connection ID
// that a server gave out leads to that server alone, which takes it. Others are the client's own:
// they go along the chain, as TCP does.
func (q *QUIC) offered(chain pool.Chain, p *packet) []uint16 {
	if p.fragment.kind != fragmentNone {
		return visits(chain, 1)
	}
	if id, ok := q.owner(p); ok {
		return []uint16{id}
	}
	if p.opensQUIC() {
		return visits(chain, chain.Candidates)
	}
	return visits(chain, chain.Length)
}

// considerQUIC decides about the offer of a QUIC packet.
func (v *visit) considerQUIC(r *Result, inner *packet, service *HostService) Offer {
	left := v.left()
	hash := v.host.FlowHash.Hash(v.host.Secret, r.Flow)
	offer := OfferHere
	if !v.host.quicFlows.recent(hash, v.now, v.host.Refusal) {
		offer = v.offerQUIC(r, inner, service, left, hash)
	}
	opened := offer == OfferHere || inner.opensQUIC() && offer.takes()
	if opened && inner.icmp == icmpNone {
		v.host.quicFlows.remember(hash, v.now)
	}
	return offer
}

// offerQUIC decides about the offer of a packet of no connection that was taken lately.
func (v *visit) offerQUIC(r *Result, inner *packet, service *HostService, left bool,
	hash uint64) Offer {
	switch opens := inner.opensQUIC(); {
	case !left && opens:
		v.decide(r, service)
		return OfferLast
	case !left:
		return OfferLast
	case !opens:
		return OfferNotHere
	case !v.host.HasServer(r.Flow):
		return OfferNoService
	case v.host.refused.recent(hash, v.now, v.host.Refusal):
		return OfferRefusedBefore
	case v.decide(r, service):
		return OfferAccepted
	}
	v.host.refused.remember(hash, v.now)
	return OfferRefused
}
