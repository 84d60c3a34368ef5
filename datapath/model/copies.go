package model

import (
	"encoding/binary"
	"fmt"
	"time"

	"sextant/packet/srv6"
)

// copyTime is how long a host tells copies of a packet by the paths that brought them; those of a
// SYN for as long as it stays refused.
const copyTime = 100 * time.Millisecond

// copies remembers how many packets of a kind each path has brought. The zero value remembers none.
type copies struct {
	seen map[string]*copySeen
}

// copySeen is what is known of packets that are alike in all that tells packets apart.
type copySeen struct {
	at       time.Duration // when one was judged last
	brought  [srv6.Copies]int
	judged   int
	passedOn bool // the one judged last
}

// copyCountMax is how many are counted of each path before all starts again.
const copyCountMax = 15

// judge counts a copy of a packet. It reports whether it is the first of its packet, which is to be
// judged, and what is known of the packet; nil: it has no copies, or can't be told apart.
func (v *visit) judge(inner *packet) (seen *copySeen, first bool) {
	copy, marked := v.copy()
	told := inner.protocol == protocolTCP || inner.protocol == protocolUDP || inner.icmp != icmpNone
	if !marked || !told || inner.fragment.kind != fragmentNone {
		return nil, true
	}
	all, window := &v.host.copies, copyTime
	if inner.protocol == protocolTCP && inner.transport.opens() {
		window = v.host.Refusal
	}
	if all.seen == nil {
		all.seen = map[string]*copySeen{}
	}
	key := inner.identity()
	s := all.seen[key]
	if s == nil || v.now-s.at >= window || s.brought[copy] == copyCountMax {
		s = &copySeen{}
		all.seen[key] = s
	}
	s.brought[copy]++
	if s.brought[copy] <= s.judged {
		return s, false
	}
	s.judged++
	s.at, s.passedOn = v.now, false
	return s, true
}

// copy returns which copy of its packet an offer is, if its argument ends with such a mark.
func (v *visit) copy() (n int, marked bool) {
	ids := v.argumentIDs()
	if v.sid.Behavior != srv6.EndOFFER || len(ids) == 0 {
		return 0, false
	}
	return srv6.CopyOf(ids[len(ids)-1])
}

// left reports whether there are candidates behind this host.
func (v *visit) left() bool { return v.candidates() > 0 || v.outer.segmentsLeft() != 0 }

// candidates counts those that a carrier names after this host.
func (v *visit) candidates() int {
	count := len(v.argumentIDs())
	if _, marked := v.copy(); marked {
		count--
	}
	return count
}

// argumentIDs are the identifiers in the SID's argument.
func (v *visit) argumentIDs() (ids []srv6.CSID) {
	address, own := v.outer.dst.As16(), v.sid.Prefix.Masked().Addr().As16()
	for i := 0; i < len(address); i += 2 {
		id := binary.BigEndian.Uint16(address[i:]) ^ binary.BigEndian.Uint16(own[i:])
		if id != 0 {
			ids = append(ids, srv6.CSID(id))
		}
	}
	return ids
}

// identity is what tells a packet apart: its flow, length and transport header, and the
// identification of IPv4.
func (p *packet) identity() string {
	header := 8
	if p.protocol == protocolTCP && p.icmp != icmpQuotes {
		header = 20
	}
	key := fmt.Sprint(p.tuple(), p.end-p.start)
	if !p.ipv6 {
		key += string(p.data[p.start+4 : p.start+8])
	}
	return key + string(p.data[p.upper:p.upper+header])
}
