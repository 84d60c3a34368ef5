package cflb

import (
	"fmt"
	"net/netip"
	"strings"
)

// Fields are the header fields in which a source can write what it wants: the controllable fields
// of a network. From the most significant bit they are the IPv6 flow label, the source port, the
// destination port, as far as they are in the set.
type Fields uint8

// The sets of controllable fields, with their numbers of bits.
const (
	NoFields            Fields = iota // 0: all packets are hashed
	SourcePort                        // 16
	FlowLabel                         // 20, IPv6
	BothPorts                         // 32
	FlowLabelSourcePort               // 36, IPv6
	FlowLabelBothPorts                // 52, IPv6
)

const (
	portBits  = 16
	labelBits = 20
)

var fieldsNames = []string{"none", "source-port", "flow-label", "ports", "flow-label+source-port",
	"flow-label+ports"}

// ParseFields returns the set with a name: none, source-port, flow-label, ports,
// flow-label+source-port or flow-label+ports.
func ParseFields(name string) (Fields, error) {
	for f := NoFields; f <= FlowLabelBothPorts; f++ {
		if fieldsNames[f] == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("controllable fields %q: they are one of %s", name,
		strings.Join(fieldsNames, ", "))
}

func (f Fields) valid() bool { return f <= FlowLabelBothPorts }

// String returns the name that ParseFields reads.
func (f Fields) String() string {
	if !f.valid() {
		return fmt.Sprintf("fields %d", uint8(f))
	}
	return fieldsNames[f]
}

// HasLabel reports whether the flow label is in the set, which IPv4 packets lack.
func (f Fields) HasLabel() bool {
	return f == FlowLabel || f == FlowLabelSourcePort || f == FlowLabelBothPorts
}

func (f Fields) hasSourcePort() bool { return f.valid() && f != NoFields && f != FlowLabel }

func (f Fields) hasDestinationPort() bool { return f == BothPorts || f == FlowLabelBothPorts }

// Bits returns X, the number of controllable bits.
func (f Fields) Bits() int {
	bits := 0
	if f.HasLabel() {
		bits += labelBits
	}
	if f.hasSourcePort() {
		bits += portBits
	}
	if f.hasDestinationPort() {
		bits += portBits
	}
	return bits
}

// A Packet is what a router reads of a packet to choose its next hop, and what a source fixes
// before it encodes a path.
type Packet struct {
	Src, Dst         netip.Addr
	Protocol         uint8 // of the upper layer
	HasPorts         bool  // TCP or UDP, and no fragment: the ports are there
	SrcPort, DstPort uint16
	FlowLabel        uint32 // 20 bits, IPv6
	HopLimit         uint8  // or time to live, as received
}

// Get returns the controllable fields of a packet as a number of Bits bits. ok is false if the
// packet lacks one of them: a port of a fragment, the flow label of an IPv4 packet. A flow label of
// 0, which means that the source gave none (RFC 6437 section 2), controls nothing alone.
func (f Fields) Get(p Packet) (value uint64, ok bool) {
	if f == NoFields {
		return 0, false
	}
	if f.HasLabel() {
		if p.Src.Is4() || f == FlowLabel && p.FlowLabel == 0 {
			return 0, false
		}
		value = uint64(p.FlowLabel)
	}
	if f.hasSourcePort() {
		if !p.HasPorts {
			return 0, false
		}
		value = value<<portBits | uint64(p.SrcPort)
	}
	if f.hasDestinationPort() {
		value = value<<portBits | uint64(p.DstPort)
	}
	return value, true
}

// Set returns the packet with the controllable fields of the value.
func (f Fields) Set(p Packet, value uint64) Packet {
	if f.hasDestinationPort() {
		p.DstPort = uint16(value)
		value >>= portBits
	}
	if f.hasSourcePort() {
		p.SrcPort, p.HasPorts = uint16(value), true
		value >>= portBits
	}
	if f.HasLabel() {
		p.FlowLabel = uint32(value) & (1<<labelBits - 1)
	}
	return p
}
