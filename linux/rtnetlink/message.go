package rtnetlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Kind is what a message does.
type Kind uint16

// The kinds of messages that Decode reads.
const (
	NewRoute   Kind = 24
	DelRoute   Kind = 25
	NewNextHop Kind = 104
	DelNextHop Kind = 105
)

// Message is a change of a route or of a next hop.
type Message struct {
	Kind    Kind
	Adds    bool // a next hop joins those that the route has (NLM_F_APPEND)
	Route   Route
	NextHop NextHop
}

// Route is a route without what is of no use here. Its hops may be shared with other routes: they
// are not to be changed.
type Route struct {
	Table     uint32
	Prefix    netip.Prefix
	Metric    uint32 // of several routes to a prefix, that with the lowest is used
	Protocol  uint8  // who made it (RTPROT_)
	Special   bool   // it leads nowhere, or to this machine: its type is not RTN_UNICAST
	NextHopID uint32 // of a next hop; 0: the hops are in the route
	Hops      []Hop
}

// Hop is one way of a route. Gateway and interface are not read where the packets are encapsulated:
// the segments decide.
type Hop struct {
	Weight   int // 1 to 65536
	Mode     Mode
	Segments []netip.Addr // none: packets are not encapsulated
}

// Mode is how packets are encapsulated (SEG6_IPTUN_MODE_).
type Mode uint32

// The modes that carry a whole packet to its segments.
const (
	Encap        Mode = 1 // RFC 8986 section 5.1
	EncapReduced Mode = 3 // RFC 8986 section 5.2
)

// NextHop is a next hop object: a hop, or a group of others.
type NextHop struct {
	ID       uint32
	Protocol uint8
	Hop      Hop
	Group    []Leg // not empty: the hop counts for nothing
	Buckets  int   // of a resilient group, else 0
}

// Leg is one next hop of a group.
type Leg struct {
	ID     uint32
	Weight int // 1 to 65536
}

// ErrMalformed is wrapped by all that Decode, Header and Frame say of bytes that break the rules.
var ErrMalformed = errors.New("malformed")

func malformed(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, arguments...))
}

// Header is what stands before a message.
type Header struct {
	Type  uint16
	Flags uint16
	Seq   uint32
	Port  uint32 // of the socket by which was asked for what is told of; 0: by none
}

// Next takes the first message off the bytes: its header, what it says, and the rest.
func Next(b []byte) (h Header, body, rest []byte, err error) {
	if len(b) < headerLength {
		return h, nil, nil, malformed("%d bytes are no header of netlink", len(b))
	}
	length := int(native.Uint32(b))
	if length < headerLength || length > len(b) {
		return h, nil, nil, malformed("length %d of a message in %d bytes", length, len(b))
	}
	h = Header{Type: native.Uint16(b[4:]), Flags: native.Uint16(b[6:]), Seq: native.Uint32(b[8:]),
		Port: native.Uint32(b[12:])}
	return h, b[headerLength:length], b[min(align(length), len(b)):], nil
}

var native = binary.NativeEndian

// align rounds up to the 4 bytes at which messages and attributes begin.
func align(n int) int { return (n + 3) &^ 3 }

// attributes calls f with type and value of each attribute.
func attributes(b []byte, f func(kind uint16, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < sizeofAttribute {
			return malformed("%d bytes are no attribute", len(b))
		}
		length := int(native.Uint16(b))
		if length < sizeofAttribute || length > len(b) {
			return malformed("length %d of an attribute in %d bytes", length, len(b))
		}
		if err := f(native.Uint16(b[2:])&^flagBits, b[sizeofAttribute:length]); err != nil {
			return err
		}
		b = b[min(align(length), len(b)):]
	}
	return nil
}

// flagBits of an attribute's type: NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const flagBits = 0xc000

func word(value []byte) (uint32, error) {
	if len(value) != 4 {
		return 0, malformed("%d bytes are no number of 32 bits", len(value))
	}
	return native.Uint32(value), nil
}

func half(value []byte) (uint16, error) {
	if len(value) != 2 {
		return 0, malformed("%d bytes are no number of 16 bits", len(value))
	}
	return native.Uint16(value), nil
}
