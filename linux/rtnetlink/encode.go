package rtnetlink

import (
	"fmt"
	"net/netip"
)

// Append writes the message behind b, as a request to the kernel that gets this number and these
// flags besides NLM_F_REQUEST. Next hops are put on the loopback interface: it is always there, and
// for packets that are encapsulated the first segment decides where they leave.
func (m Message) Append(b []byte, seq uint32, flags uint16) ([]byte, error) {
	w := begin(b, uint16(m.Kind), seq, flags)
	switch m.Kind {
	case NewRoute, DelRoute:
		m.Route.append(w)
	case NewNextHop, DelNextHop:
		if err := m.NextHop.append(w, m.Kind == NewNextHop); err != nil {
			return b, err
		}
	default:
		return b, fmt.Errorf("a message of kind %d can't be written", m.Kind)
	}
	return w.end(), nil
}

// AppendLocal writes a next hop that decapsulates what arrives: it looks the inner packet up in a
// table (RFC 8986 section 4.6, 4.8). With vrf the table is that of a VRF device, and inner packets
// may be of IPv4 too; without it they are of IPv6.
func AppendLocal(b []byte, seq uint32, flags uint16, id, table uint32, vrf bool,
	protocol uint8) []byte {
	w := begin(b, uint16(NewNextHop), seq, flags)
	w.bytes = append(w.bytes, familyIPv6, 0, protocol, 0, 0, 0, 0, 0)
	w.number(nhaID, id)
	w.number(nhaOIF, loopback)
	w.short(nhaEncapType, encapSeg6Local)
	w.nest(nhaEncap, func() {
		if vrf {
			w.number(localAction, actionDT46)
			w.number(localVRFTable, table)
			return
		}
		w.number(localAction, actionDT6)
		w.number(localTable, table)
	})
	return w.end()
}

// Attributes and actions of linux/seg6_local.h.
const (
	localAction, localTable, localVRFTable = 1, 3, 9
	actionDT6, actionDT46                  = 7, 16
	// index of the loopback interface in every network namespace
	loopback = 1
)

// writer appends one message to bytes.
type writer struct {
	bytes []byte
	start int
}

func begin(b []byte, kind uint16, seq uint32, flags uint16) *writer {
	w := &writer{bytes: b, start: len(b)}
	w.bytes = append(w.bytes, make([]byte, headerLength)...)
	header := w.bytes[w.start:]
	native.PutUint16(header[4:], kind)
	native.PutUint16(header[6:], flags|flagRequest)
	native.PutUint32(header[8:], seq)
	return w
}

func (w *writer) end() []byte {
	native.PutUint32(w.bytes[w.start:], uint32(len(w.bytes)-w.start))
	return w.bytes
}

func (w *writer) attribute(kind uint16, value []byte) {
	w.value(kind, func() { w.bytes = append(w.bytes, value...) })
}

// nest writes an attribute whose value is the attributes that f appends.
func (w *writer) nest(kind uint16, f func()) { w.value(kind|flagNested, f) }

// value writes an attribute whose value f appends.
func (w *writer) value(kind uint16, f func()) {
	at := len(w.bytes)
	w.bytes = append(w.bytes, 0, 0, 0, 0)
	f()
	native.PutUint16(w.bytes[at:], uint16(len(w.bytes)-at))
	native.PutUint16(w.bytes[at+2:], kind)
	for len(w.bytes)%4 != 0 {
		w.bytes = append(w.bytes, 0)
	}
}

func (w *writer) number(kind uint16, n uint32) { w.attribute(kind, native.AppendUint32(nil, n)) }

func (w *writer) short(kind, n uint16) { w.attribute(kind, native.AppendUint16(nil, n)) }

func (r Route) append(w *writer) {
	family, table := family(r.Prefix.Addr()), uint8(tableUnspecified)
	if r.Table <= tableLocal {
		table = uint8(r.Table)
	}
	w.bytes = append(w.bytes, family, uint8(r.Prefix.Bits()), 0, 0, table, r.Protocol,
		scopeUniverse, typeUnicast, 0, 0, 0, 0)
	w.attribute(rtaDestination, r.Prefix.Addr().AsSlice())
	w.number(rtaTable, r.Table)
	if r.Metric != 0 {
		w.number(rtaPriority, r.Metric)
	}
	if r.NextHopID != 0 {
		w.number(rtaNextHop, r.NextHopID)
	}
	if len(r.Hops) > 0 {
		w.value(rtaMultipath, func() {
			for _, hop := range r.Hops {
				at := len(w.bytes)
				w.bytes = append(w.bytes, 0, 0, 0, uint8(hop.Weight-1), loopback, 0, 0, 0)
				native.PutUint32(w.bytes[at+4:], loopback)
				hop.append(w, rtaEncapType, rtaEncap)
				native.PutUint16(w.bytes[at:], uint16(len(w.bytes)-at))
			}
		})
	}
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return familyIPv4
	}
	return familyIPv6
}

func (n NextHop) append(w *writer, create bool) error {
	family := uint8(familyIPv6) // routes of IPv4 may name it too
	if len(n.Group) > 0 || !create {
		family = familyAny
	}
	w.bytes = append(w.bytes, family, 0, n.Protocol, 0, 0, 0, 0, 0)
	w.number(nhaID, n.ID)
	switch {
	case !create:
	case len(n.Group) > 0:
		if n.Buckets > 0 {
			w.short(nhaGroupType, resilientGroup)
			w.nest(nhaResilient, func() { w.short(resilientBuckets, uint16(n.Buckets)) })
		}
		w.value(nhaGroup, func() {
			for _, leg := range n.Group {
				weight := leg.Weight - 1
				w.bytes = native.AppendUint32(w.bytes, leg.ID)
				w.bytes = append(w.bytes, uint8(weight), uint8(weight>>8), 0, 0)
			}
		})
	case len(n.Hop.Segments) == 0:
		return fmt.Errorf("next hop %d has no segments", n.ID)
	default:
		w.number(nhaOIF, loopback)
		n.Hop.append(w, nhaEncapType, nhaEncap)
	}
	return nil
}

// append writes the encapsulation, if there is one.
func (h Hop) append(w *writer, kind, encap uint16) {
	if len(h.Segments) == 0 {
		return
	}
	w.short(kind, encapSeg6)
	w.nest(encap, func() {
		w.value(seg6SRH, func() {
			last := len(h.Segments) - 1
			w.bytes = native.AppendUint32(w.bytes, uint32(h.Mode))
			w.bytes = append(w.bytes, 0, uint8(2*len(h.Segments)), routingTypeSRH, uint8(last),
				uint8(last), 0, 0, 0)
			for i := range h.Segments {
				segment := h.Segments[last-i].As16()
				w.bytes = append(w.bytes, segment[:]...)
			}
		})
	})
}

// routingTypeSRH is the segment routing header (RFC 8754 section 2).
const routingTypeSRH = 4
