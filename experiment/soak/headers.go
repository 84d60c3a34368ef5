package soak

import (
	"encoding/binary"
	"slices"
)

// Headers without checksums of the transport: the programs look at none, and no packet gets
// farther.
const (
	ethernetHeader = 14
	ethernetIPv4   = 0x0800
	ethernetIPv6   = 0x86dd
	tcpHeader      = 20
	udpHeader      = 8
	protocolTCP    = 6
	protocolUDP    = 17

	protocolIPv4    = 4
	protocolIPv6    = 41
	protocolRouting = 43

	flagFIN = 0x01
	flagSYN = 0x02
	flagACK = 0x10

	// Clients have addresses by the number of the flow, 2^24 of them, and ports by the rest.
	clientBits = 24
)

// begin begins a frame of a flow, with Ethernet and IP headers of a packet of so many bytes behind
// them.
func (t *traffic) begin(number uint64, ethertype uint16, protocol byte, length int) {
	client := uint32(number) & (1<<clientBits - 1)
	t.link(ethertype)
	if ethertype == ethernetIPv4 {
		t.out = append(t.out, 0x45, 0)
		t.out = binary.BigEndian.AppendUint16(t.out, uint16(20+length))
		t.out = append(t.out, 0, 0, 0, 0, 64, protocol, 0, 0)
		// 100.0.0.0/8, of which no address is in the lab
		t.out = binary.BigEndian.AppendUint32(t.out, 100<<24|client)
		t.out = append(t.out, vip4.AsSlice()...)
		sealIPv4(t.out[ethernetHeader:])
		return
	}
	t.out = append(t.out, 0x60, 0, 0, 0)
	t.out = binary.BigEndian.AppendUint16(t.out, uint16(length))
	t.out = append(t.out, protocol, 64, 0x20, 0x01, 0x0d, 0xb8, 0, 0xc1, 0, 0, 0, 0, 0, 0)
	t.out = binary.BigEndian.AppendUint32(t.out, client)
	t.out = append(t.out, vip6.AsSlice()...)
}

// sealIPv4 computes the checksum of a header of 20 bytes (RFC 1071).
func sealIPv4(header []byte) {
	binary.BigEndian.PutUint16(header[10:], 0)
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum>>16+sum))
}

// link begins a frame with an Ethernet header.
func (t *traffic) link(ethertype uint16) {
	t.out = append(t.out[:0], 2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2)
	t.out = binary.BigEndian.AppendUint16(t.out, ethertype)
}

// byEdge appends the outer headers of a host's SYN-ACK to End.LEARN, of so many bytes: IPv6, and an
// SRH whose second segment is the owner.
func (t *traffic) byEdge(host byte, length int, ethertype uint16) {
	const srh = 8 + 2*16
	next := byte(protocolIPv6)
	if ethertype == ethernetIPv4 {
		next = protocolIPv4
	}
	t.out = append(t.out, 0x60, 0, 0, 0)
	t.out = binary.BigEndian.AppendUint16(t.out, uint16(srh+length))
	t.out = append(t.out, protocolRouting, 64, 0xfd, 0, 0, 0x5e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,
		host)
	t.out = append(t.out, learning.AsSlice()...)
	t.out = append(t.out, next, srh/8-1, 4, 0, 1, 0, 0, 0)
	t.out = append(t.out, learning.AsSlice()...)
	owner := block.Addr().As16()
	owner[5] = host
	t.out = append(t.out, owner[:]...)
}

// turn makes a TCP packet one that goes the other way.
func turn(packet []byte) {
	at, size := 8, 16
	if packet[0]>>4 == 4 {
		at, size = 12, 4
	}
	ports := at + 2*size
	for _, place := range []struct{ at, size int }{{at, size}, {ports, 2}} {
		pair := packet[place.at : place.at+2*place.size]
		copy(pair, slices.Concat(pair[place.size:], pair[:place.size]))
	}
}

// port is the client's.
func port(number uint64) uint16 { return 1024 + uint16(number>>clientBits) }

func (t *traffic) tcp(number uint64, flags byte, payload int) {
	t.out = binary.BigEndian.AppendUint16(t.out, port(number))
	t.out = binary.BigEndian.AppendUint16(t.out, webPort)
	t.out = binary.BigEndian.AppendUint64(t.out, number) // sequence and acknowledgement
	t.out = append(t.out, 5<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	t.out = append(t.out, make([]byte, payload)...)
}

func (t *traffic) udp(number uint64, destination uint16, payload int) {
	t.out = binary.BigEndian.AppendUint16(t.out, port(number))
	t.out = binary.BigEndian.AppendUint16(t.out, destination)
	t.out = binary.BigEndian.AppendUint16(t.out, uint16(udpHeader+payload))
	t.out = append(t.out, 0, 0)
}
