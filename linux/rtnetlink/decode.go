package rtnetlink

import (
	"net/netip"
)

// Decoder reads messages. Hops of routes that are written alike are read once, and shared. The zero
// value is ready.
type Decoder struct {
	lists map[string][]Hop
}

// maxLists bounds what a decoder remembers.
const maxLists = 1 << 14

// Attributes of next hops (linux/nexthop.h), and the types of groups.
const (
	nhaID, nhaGroup, nhaGroupType                = 1, 2, 3
	nhaOIF, nhaEncapType, nhaEncap, nhaResilient = 5, 7, 8, 12
	resilientBuckets                             = 1
	resilientGroup                               = 1
	encapSeg6, encapSeg6Local                    = 5, 7 // LWTUNNEL_ENCAP_
	seg6SRH                                      = 1    // SEG6_IPTUNNEL_SRH
	// of a segment routing header before its segments (RFC 8754 section 2)
	srhLength   = 8
	sizeofNhMsg = 8
	sizeofLeg   = 8
)

// Decode reads what one message says. ok is false if it is of another kind, or of a family other
// than IPv4 and IPv6.
func (d *Decoder) Decode(h Header, body []byte) (m Message, ok bool, err error) {
	m = Message{Kind: Kind(h.Type), Adds: h.Flags&flagAppend != 0}
	switch m.Kind {
	case NewRoute, DelRoute:
		m.Route, ok, err = d.route(body)
	case NewNextHop, DelNextHop:
		m.NextHop, ok, err = nextHop(body)
	}
	return m, ok, err
}

func (d *Decoder) route(b []byte) (r Route, ok bool, err error) {
	if len(b) < sizeofRoute {
		return r, false, malformed("a route of %d bytes", len(b))
	}
	family, bits, flags := b[0], int(b[1]), native.Uint32(b[8:])
	if family != familyIPv4 && family != familyIPv6 || flags&routeCloned != 0 {
		return r, false, nil
	}
	destination := netip.IPv6Unspecified()
	if family == familyIPv4 {
		destination = netip.IPv4Unspecified()
	}
	r.Table, r.Protocol, r.Special = uint32(b[4]), b[5], b[7] != typeUnicast
	var kind uint16
	var encap []byte
	err = attributes(b[sizeofRoute:], func(attribute uint16, value []byte) (err error) {
		switch attribute {
		case rtaDestination:
			destination, err = address(family, value)
		case rtaTable:
			r.Table, err = word(value)
		case rtaPriority:
			r.Metric, err = word(value)
		case rtaNextHop:
			r.NextHopID, err = word(value)
		case rtaMultipath:
			r.Hops, err = d.multipath(value)
		case rtaEncapType:
			kind, err = half(value)
		case rtaEncap:
			encap = value
		}
		return err
	})
	if err != nil {
		return r, false, err
	}
	if r.Prefix = netip.PrefixFrom(destination, bits); !r.Prefix.IsValid() ||
		r.Prefix != r.Prefix.Masked() {
		return r, false, malformed("prefix %s/%d", destination, bits)
	}
	if r.Hops == nil && r.NextHopID == 0 {
		hop := Hop{Weight: 1}
		err = hop.encapsulate(kind, encap)
		r.Hops = []Hop{hop}
	}
	return r, err == nil, err
}

func address(family uint8, value []byte) (netip.Addr, error) {
	a, ok := netip.AddrFromSlice(value)
	if !ok || a.Is4() != (family == familyIPv4) {
		return a, malformed("%d bytes are no address of family %d", len(value), family)
	}
	return a, nil
}

// multipath reads the hops of a route: a struct rtnexthop with attributes for each.
func (d *Decoder) multipath(b []byte) ([]Hop, error) {
	if known, there := d.lists[string(b)]; there {
		return known, nil
	}
	text, hops := string(b), []Hop{}
	for len(b) > 0 {
		if len(b) < sizeofNextHop {
			return nil, malformed("%d bytes are no next hop", len(b))
		}
		length := int(native.Uint16(b))
		if length < sizeofNextHop || length > len(b) {
			return nil, malformed("length %d of a next hop in %d bytes", length, len(b))
		}
		hop := Hop{Weight: int(b[3]) + 1}
		var kind uint16
		var encap []byte
		err := attributes(b[sizeofNextHop:length],
			func(attribute uint16, value []byte) (err error) {
				switch attribute {
				case rtaEncapType:
					kind, err = half(value)
				case rtaEncap:
					encap = value
				}
				return err
			})
		if err == nil {
			err = hop.encapsulate(kind, encap)
		}
		if err != nil {
			return nil, err
		}
		hops, b = append(hops, hop), b[min(align(length), len(b)):]
	}
	if d.lists == nil || len(d.lists) >= maxLists {
		d.lists = map[string][]Hop{}
	}
	d.lists[text] = hops
	return hops, nil
}

// encapsulate reads how a hop's packets are encapsulated. Other ways than SRv6 leave the hop
// without segments.
func (h *Hop) encapsulate(kind uint16, b []byte) error {
	if kind != encapSeg6 {
		return nil
	}
	return attributes(b, func(attribute uint16, value []byte) error {
		if attribute != seg6SRH {
			return nil
		}
		if len(value) < 4+srhLength {
			return malformed("an encapsulation of %d bytes", len(value))
		}
		h.Mode = Mode(native.Uint32(value))
		header, count := value[4:], int(value[4+4])+1 // Last Entry counts from 0
		if length := int(header[1]+1) * 8; int(header[1]) < 2*count || length > len(header) {
			return malformed("%d segments in a segment routing header of %d bytes", count,
				len(header))
		}
		h.Segments = make([]netip.Addr, count)
		for i := range h.Segments { // the header has the last one first
			at := srhLength + (count-1-i)*16
			h.Segments[i] = netip.AddrFrom16([16]byte(header[at : at+16]))
		}
		return nil
	})
}

func nextHop(b []byte) (n NextHop, ok bool, err error) {
	if len(b) < sizeofNhMsg {
		return n, false, malformed("a next hop of %d bytes", len(b))
	}
	n.Protocol, n.Hop.Weight = b[2], 1
	var kind, group uint16
	var encap []byte
	err = attributes(b[sizeofNhMsg:], func(attribute uint16, value []byte) (err error) {
		switch attribute {
		case nhaID:
			n.ID, err = word(value)
		case nhaGroup:
			n.Group, err = legs(value)
		case nhaGroupType:
			group, err = half(value)
		case nhaResilient:
			err = attributes(value, func(attribute uint16, value []byte) (err error) {
				if attribute == resilientBuckets {
					var buckets uint16
					buckets, err = half(value)
					n.Buckets = int(buckets)
				}
				return err
			})
		case nhaEncapType:
			kind, err = half(value)
		case nhaEncap:
			encap = value
		}
		return err
	})
	if err == nil {
		err = n.Hop.encapsulate(kind, encap)
	}
	if err == nil && n.ID == 0 {
		err = malformed("a next hop without an id")
	}
	if group != resilientGroup {
		n.Buckets = 0
	}
	return n, err == nil, err
}

// legs reads a group: a struct nexthop_grp for each of its next hops. The weight is one less than
// it counts, its upper 8 bits are in a byte of their own since Linux 6.12.
func legs(b []byte) ([]Leg, error) {
	if len(b) == 0 || len(b)%sizeofLeg != 0 {
		return nil, malformed("a group of %d bytes", len(b))
	}
	list := make([]Leg, len(b)/sizeofLeg)
	for i := range list {
		leg := b[i*sizeofLeg:]
		list[i] = Leg{ID: native.Uint32(leg), Weight: int(leg[4]) + int(leg[5])<<8 + 1}
	}
	return list, nil
}
