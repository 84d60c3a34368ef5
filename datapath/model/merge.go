package model

import (
	"net/netip"
	"time"

	"sextant/packet/srv6"
	"sextant/te/frer"
)

// Merge is a node where the copies of packets come together. It remembers their numbers, so that
// packets are processed one at a time.
type Merge struct {
	// Interfaces holds those of the node, by index. Frames from another one pass, as no program
	// would run there.
	Interfaces map[uint32]struct{}
	SIDs       []netip.Prefix // with behaviour End.MERGE
	// SIDs of the domain; the zero value: only the node's own are guarded
	Block          srv6.Block
	Locators       []netip.Prefix // where SIDs are besides the block
	Infrastructure []netip.Prefix // sources from which SRv6 is accepted
	Members        map[Member]*frer.Recovery
}

// Member is a path of a protected flow, as packets name it.
type Member struct {
	SID  netip.Prefix
	Flow uint32
}

// Process decides at the time now about a frame that came in by an interface. Time is measured from
// any fixed moment, and never goes back.
func (m *Merge) Process(ingress uint32, now time.Duration, data []byte) Result {
	f, p, r, ok := outerIPv6(m.Interfaces, ingress, data)
	if !ok {
		return r
	}
	sid, ok := m.sid(p.dst)
	if !ok {
		return r.transit(border{m.Block, m.Locators, m.Infrastructure}, &p)
	}
	r.SID = sid
	if !containsAddr(m.Infrastructure, p.src) {
		return r.drop(ReasonOutsideDomain)
	}
	if reason := p.walkExtensions(localSID); reason != ReasonNone {
		return r.drop(reason)
	}
	if p.segmentsLeft() != 0 {
		return r.drop(ReasonSegmentsLeft)
	}
	v := visit{frame: &f, outer: &p}
	return m.merge(r, &v, now)
}

// sid returns the SID with the longest prefix that contains the address.
func (m *Merge) sid(addr netip.Addr) (best netip.Prefix, ok bool) {
	for _, sid := range m.SIDs {
		if sid.Contains(addr) && (!ok || sid.Bits() > best.Bits()) {
			best, ok = sid, true
		}
	}
	return best, ok
}

// merge decides about a packet at its last segment, before anything is stripped. The number is
// entered when all else was checked: else the other copies would be dropped as duplicates of one
// that did not pass.
func (m *Merge) merge(r Result, v *visit, now time.Duration) Result {
	inner, ok := v.inner()
	if !ok {
		return r.drop(ReasonUpperLayer)
	}
	if reason := inner.checkVersion(v.outer.end); reason != ReasonNone {
		return r.drop(reason)
	}
	if combinedECN[inner.ecn()][v.outer.ecn()] == ecnDrop {
		return r.drop(ReasonECN)
	}
	if number, numbered := v.outer.number(r.SID); numbered {
		r.Number = &number
		if reason := m.eliminate(number, r.SID, now); reason != ReasonNone {
			return r.drop(reason)
		}
	}
	return v.take(r, &inner, 0)
}

// number returns the number that a packet to the SID has, in the SID's argument or in its SRH.
func (p *packet) number(sid netip.Prefix) (srv6.Redundancy, bool) {
	if srv6.HasArgument(sid, p.dst) {
		_, flow, sequence := srv6.ParseRedundancySID(p.dst)
		return srv6.Redundancy{Flow: flow, Sequence: uint32(sequence)}, true
	}
	if p.srh == 0 {
		return srv6.Redundancy{}, false
	}
	header := p.data[p.srh:]
	header = header[:extensionUnit*(1+int(header[1]))]
	return findNumber(header[srhFixedLength+segmentLength*(1+int(header[srhLastEntry])):])
}

// maxTLVs is how many TLVs are looked at for the one with the number.
const maxTLVs = 8

// findNumber finds the redundancy TLV. Others are not judged: they are skipped by their length.
func findNumber(tlvs []byte) (srv6.Redundancy, bool) {
	for range maxTLVs {
		switch {
		case len(tlvs) < 2:
			return srv6.Redundancy{}, false
		case tlvs[0] == srv6.TLVPad1:
			tlvs = tlvs[1:]
		case tlvs[0] == srv6.TLVRedundancy:
			value := tlvs[2:]
			tlv := srv6.TLV{Type: srv6.TLVRedundancy, Value: value[:min(int(tlvs[1]), len(value))]}
			number, err := srv6.ParseRedundancy(tlv)
			return number, err == nil && int(tlvs[1]) == len(tlv.Value)
		case 2+int(tlvs[1]) > len(tlvs):
			return srv6.Redundancy{}, false
		default:
			tlvs = tlvs[2+int(tlvs[1]):]
		}
	}
	return srv6.Redundancy{}, false
}

// eliminate asks whether this is the first copy.
func (m *Merge) eliminate(n srv6.Redundancy, sid netip.Prefix, now time.Duration) Reason {
	recovery := m.Members[Member{SID: sid, Flow: n.Flow}]
	if recovery == nil {
		return ReasonUnknownFlow
	}
	switch recovery.Receive(n.Sequence, n.Epoch, now) {
	case frer.Duplicate:
		return ReasonDuplicate
	case frer.Rogue:
		return ReasonRogue
	case frer.OldEpoch:
		return ReasonOldEpoch
	}
	return ReasonNone
}
