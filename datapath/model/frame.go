package model

import "encoding/binary"

const (
	ethernetLength = 14
	vlanTagLength  = 4
	maxVLANTags    = 2

	etherTypeIPv4  = 0x0800
	etherTypeIPv6  = 0x86dd
	etherTypeVLAN  = 0x8100 // IEEE 802.1Q
	etherTypeQinQ  = 0x88a8 // IEEE 802.1ad
	etherTypeBytes = 2
)

// frame is an Ethernet frame, parsed up to its network header.
type frame struct {
	data      []byte
	network   int    // offset of the network header; the EtherType is right before
	etherType uint16 // what the network header is
}

// parseFrame walks over the Ethernet header and at most two VLAN tags. A third
// tag is left as the EtherType.
func parseFrame(data []byte) (frame, Reason) {
	if len(data) < ethernetLength {
		return frame{}, ReasonTruncated
	}
	f := frame{data: data, network: ethernetLength}
	f.etherType = binary.BigEndian.Uint16(data[f.network-etherTypeBytes:])
	for tags := 0; tags < maxVLANTags && isVLAN(f.etherType); tags++ {
		f.network += vlanTagLength
		if len(data) < f.network {
			return frame{}, ReasonTruncated
		}
		f.etherType = binary.BigEndian.Uint16(data[f.network-etherTypeBytes:])
	}
	return f, ReasonNone
}

// isUnicast reports whether the frame was for one node alone: the group bit of its destination is
// not set (IEEE 802).
func (f *frame) isUnicast() bool { return f.data[0]&1 == 0 }

// appendTurned is appendLinkHeader for a frame that goes back to where this one came from.
func (f *frame) appendTurned(b []byte, etherType uint16) []byte {
	const address = 6
	start := len(b)
	b = f.appendLinkHeader(b, etherType)
	copy(b[start:], f.data[address:2*address])
	copy(b[start+address:], f.data[:address])
	return b
}

func isVLAN(etherType uint16) bool {
	return etherType == etherTypeVLAN || etherType == etherTypeQinQ
}

// appendLinkHeader appends the frame's own addresses and VLAN tags with another
// EtherType.
func (f *frame) appendLinkHeader(b []byte, etherType uint16) []byte {
	b = append(b, f.data[:f.network-etherTypeBytes]...)
	return binary.BigEndian.AppendUint16(b, etherType)
}
