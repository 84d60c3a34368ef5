package rtnetlink

import "net/netip"

// RouterRoute is a route as a router that does not encapsulate reads it.
type RouterRoute struct {
	Table     uint32
	Prefix    netip.Prefix
	Metric    uint32
	Unicast   bool // its type is RTN_UNICAST: it leads to next hops
	Selective bool // it is for packets of one type of service or one source prefix alone
	NextHopID uint32
	Ways      []Way // in the kernel's order; those of an object are there if the kernel tells them
}

// Way is one next hop of a RouterRoute.
type Way struct {
	Interface uint32 // index
	Gateway   netip.Addr
	Weight    int  // 1 to 65536
	Dead      bool // the kernel does not use it (RTNH_F_DEAD)
}

// WayObject is a next hop object as a router reads it: a way, or a group of others.
type WayObject struct {
	ID        uint32
	Way       Way
	Blackhole bool
	Group     []Leg
	Resilient bool // the group gives buckets to its next hops, not ranges of the hash
}

// Attributes of routes and of next hop objects that say where packets go.
const (
	rtaOIF, rtaGateway, rtaVia = 4, 5, 18
	nhaBlackhole, nhaGateway   = 4, 6
	wayDead                    = 1 // RTNH_F_DEAD
	sizeofVia                  = 2 // of struct rtvia before the address
)

// RouterRouteIn reads a route. ok is false if the message is about something else, or about a
// family other than IPv4 and IPv6.
func RouterRouteIn(h Header, b []byte) (r RouterRoute, ok bool, err error) {
	if Kind(h.Type) != NewRoute {
		return r, false, nil
	}
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
	r.Table, r.Unicast, r.Selective = uint32(b[4]), b[7] == typeUnicast, b[2] != 0 || b[3] != 0
	one := Way{Weight: 1, Dead: flags&wayDead != 0}
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
			r.Ways, err = ways(value)
		default:
			err = one.read(attribute, value)
		}
		return err
	})
	if err != nil {
		return r, false, err
	}
	if r.Prefix = netip.PrefixFrom(destination, bits); !r.Prefix.IsValid() {
		return r, false, malformed("prefix %s/%d", destination, bits)
	}
	if r.Ways == nil && r.Unicast && one.Interface != 0 {
		r.Ways = []Way{one}
	}
	return r, true, nil
}

// read takes in an attribute of a route that says where packets go.
func (w *Way) read(attribute uint16, value []byte) (err error) {
	switch attribute {
	case rtaOIF:
		w.Interface, err = word(value)
	case rtaGateway:
		w.Gateway, err = gateway(value)
	case rtaVia:
		if len(value) < sizeofVia {
			return malformed("a gateway of %d bytes", len(value))
		}
		w.Gateway, err = gateway(value[sizeofVia:])
	}
	return err
}

func gateway(value []byte) (netip.Addr, error) {
	a, ok := netip.AddrFromSlice(value)
	if !ok {
		return a, malformed("%d bytes are no address of a gateway", len(value))
	}
	return a, nil
}

// ways reads the next hops of a route: a struct rtnexthop with attributes for each.
func ways(b []byte) (list []Way, err error) {
	for len(b) > 0 {
		if len(b) < sizeofNextHop {
			return nil, malformed("%d bytes are no next hop", len(b))
		}
		length := int(native.Uint16(b))
		if length < sizeofNextHop || length > len(b) {
			return nil, malformed("length %d of a next hop in %d bytes", length, len(b))
		}
		way := Way{Interface: native.Uint32(b[4:]), Weight: int(b[3]) + 1, Dead: b[2]&wayDead != 0}
		if err = attributes(b[sizeofNextHop:length], way.read); err != nil {
			return nil, err
		}
		list, b = append(list, way), b[min(align(length), len(b)):]
	}
	return list, nil
}

// WayObjectIn reads a next hop object; ok is false if the message is about something else.
func WayObjectIn(h Header, b []byte) (n WayObject, ok bool, err error) {
	if Kind(h.Type) != NewNextHop {
		return n, false, nil
	}
	if len(b) < sizeofNhMsg {
		return n, false, malformed("a next hop of %d bytes", len(b))
	}
	n.Way = Way{Weight: 1, Dead: native.Uint32(b[4:])&wayDead != 0}
	var group uint16
	err = attributes(b[sizeofNhMsg:], func(attribute uint16, value []byte) (err error) {
		switch attribute {
		case nhaID:
			n.ID, err = word(value)
		case nhaGroup:
			n.Group, err = legs(value)
		case nhaGroupType:
			group, err = half(value)
		case nhaBlackhole:
			n.Blackhole = true
		case nhaOIF:
			n.Way.Interface, err = word(value)
		case nhaGateway:
			n.Way.Gateway, err = gateway(value)
		}
		return err
	})
	n.Resilient = len(n.Group) > 0 && group == resilientGroup
	return n, err == nil, err
}
