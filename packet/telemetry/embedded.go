package telemetry

import "encoding/binary"

const (
	ipv4Header     = 20
	ipv6Header     = 40
	udpHeader      = 8
	protocolUDP    = 17
	hopByHop       = 0
	routing        = 43
	destinationOpt = 60
	maxExtensions  = 8 // of one packet; more are not looked behind
)

// EmbeddedMD finds the INT-MD in a packet, whole or truncated, whose UDP destination port says that
// INT follows: the inner contents of a report. InType is InIPv4 or InIPv6.
func EmbeddedMD(packet []byte, kind InType, port uint16) (MD, error) {
	udp, err := udpOf(packet, kind)
	if err != nil {
		return MD{}, err
	}
	if len(udp) < udpHeader {
		return MD{}, Truncated
	}
	if binary.BigEndian.Uint16(udp[2:]) != port {
		return MD{}, NotFound
	}
	md, _, err := ParseMD(udp[udpHeader:])
	return md, err
}

// udpOf returns the packet from its UDP header on.
func udpOf(packet []byte, kind InType) ([]byte, error) {
	switch kind {
	case InIPv4:
		return udpOfIPv4(packet)
	case InIPv6:
		return udpOfIPv6(packet)
	}
	return nil, BadType
}

func udpOfIPv4(packet []byte) ([]byte, error) {
	if len(packet) < ipv4Header {
		return nil, Truncated
	}
	size := word * int(packet[0]&15)
	switch {
	case packet[0]>>4 != 4:
		return nil, BadVersion
	case size < ipv4Header:
		return nil, BadLength
	case len(packet) < size:
		return nil, Truncated
	case packet[9] != protocolUDP || binary.BigEndian.Uint16(packet[6:])&0x1fff != 0:
		return nil, NotFound // another protocol, or a later fragment
	}
	return packet[size:], nil
}

func udpOfIPv6(packet []byte) ([]byte, error) {
	if len(packet) < ipv6Header {
		return nil, Truncated
	}
	if packet[0]>>4 != 6 {
		return nil, BadVersion
	}
	next, b := packet[6], packet[ipv6Header:]
	for range maxExtensions {
		if next == protocolUDP {
			return b, nil
		}
		if next != hopByHop && next != routing && next != destinationOpt {
			return nil, NotFound
		}
		if len(b) < 8 || len(b) < 8+8*int(b[1]) {
			return nil, Truncated
		}
		next, b = b[0], b[8+8*int(b[1]):]
	}
	return nil, NotFound
}
