package pathtrace

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"sextant/packet/cflb"
)

// PathsMax bounds the paths of a plan.
const PathsMax = 256

// Plan is a destination and the paths to it.
type Plan struct {
	Codec    *cflb.Codec
	Src, Dst netip.Addr
	Port     uint16 // of TCP, at the destination
	Choices  []int  // how many next hops each router has, the first one's first
	Seed     uint64 // of numbers and selectors: chance, so that no answer of another trace is taken
}

// Paths lists every path as the index of the next hop at each router.
func (p Plan) Paths() ([][]int, error) {
	paths := [][]int{nil}
	for _, choices := range p.Choices {
		if p.Codec != nil && choices > int(p.Codec.Parts().Radix) {
			return nil, fmt.Errorf("a router has %d next hops, and selectors of radix %d name "+
				"%[2]d: the radix of all routers and sources has to be as great as that", choices,
				p.Codec.Parts().Radix)
		}
		var longer [][]int
		for _, path := range paths {
			for i := range choices {
				longer = append(longer, append(path[:len(path):len(path)], i))
			}
		}
		if len(longer) == 0 || len(longer) > PathsMax {
			return nil, fmt.Errorf("%d paths: there can be 1 to %d", len(longer), PathsMax)
		}
		paths = longer
	}
	return paths, nil
}

// Packet is a probe that leaves with this hop limit. Variants have other selectors of the path.
func (p Plan) Packet(path []int, hopLimit uint8, variant uint64) (cflb.Packet, error) {
	packet := cflb.Packet{Src: p.Src, Dst: p.Dst, Protocol: protocolTCP, HasPorts: true,
		SrcPort: uint16(32768 + variant%28000), DstPort: p.Port, HopLimit: hopLimit}
	var hops []cflb.Hop
	for i, index := range path {
		if at := int(hopLimit) - i; at > 1 && p.Choices[i] > 1 { // with 1 it goes no further
			hops = append(hops, cflb.Hop{HopLimit: uint8(at), Index: index})
		}
	}
	packets, err := p.Codec.Selectors(packet, hops, variant*0x9e3779b97f4a7c15)
	if err != nil {
		return packet, err
	}
	for one := range packets {
		if one.DstPort == p.Port {
			return one, nil
		}
	}
	return packet, fmt.Errorf("no selector of the path has destination port %d: let the source "+
		"port or the flow label be what the network controls", p.Port)
}

const (
	protocolICMP   = 1
	protocolTCP    = 6
	protocolICMPv6 = 58
	tcpHeader      = 20
	flagSYN        = 2
	flagRST        = 4
	flagACK        = 16
)

// octets is an IP packet with a SYN whose sequence number is that of the probe.
func octets(p cflb.Packet, number uint32) []byte {
	tcp := make([]byte, tcpHeader)
	binary.BigEndian.PutUint16(tcp, p.SrcPort)
	binary.BigEndian.PutUint16(tcp[2:], p.DstPort)
	binary.BigEndian.PutUint32(tcp[4:], number)
	tcp[12], tcp[13] = tcpHeader/4<<4, flagSYN
	binary.BigEndian.PutUint16(tcp[14:], 1024)
	binary.BigEndian.PutUint16(tcp[16:], checksum(p, tcp))
	ip := make([]byte, 20, 60)
	if p.Src.Is6() {
		ip = ip[:8]
		binary.BigEndian.PutUint32(ip, 6<<28|p.FlowLabel)
		binary.BigEndian.PutUint16(ip[4:], tcpHeader)
		ip[6], ip[7] = protocolTCP, p.HopLimit
		ip = append(append(ip, p.Src.AsSlice()...), p.Dst.AsSlice()...)
		return append(ip, tcp...)
	}
	ip[0], ip[8], ip[9] = 0x45, p.HopLimit, protocolTCP
	binary.BigEndian.PutUint16(ip[2:], 20+tcpHeader)
	copy(ip[12:], p.Src.AsSlice())
	copy(ip[16:], p.Dst.AsSlice())
	return append(ip, tcp...) // the kernel fills in the header's checksum
}

// checksum is that of TCP with its pseudo-header.
func checksum(p cflb.Packet, tcp []byte) uint16 {
	sum := uint32(protocolTCP + len(tcp))
	for _, part := range [][]byte{p.Src.AsSlice(), p.Dst.AsSlice(), tcp} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum + sum>>16)
}

// Answer is what came back for a probe.
type Answer struct {
	Number  uint32
	From    netip.Addr
	Arrived bool // the probe came to the destination
}

// read reads what a raw socket of a protocol has received, behind the IP header.
func (p Plan) read(from netip.Addr, protocol uint8, b []byte) (a Answer, ok bool) {
	a.From = from
	if protocol == protocolTCP {
		if from != p.Dst || len(b) < tcpHeader || b[13]&(flagRST|flagSYN) == 0 ||
			b[13]&flagACK == 0 {
			return a, false
		}
		a.Number, a.Arrived = binary.BigEndian.Uint32(b[8:])-1, true
		return a, true
	}
	timeExceeded, unreachable, header, at := byte(11), byte(3), 20, 16
	if protocol == protocolICMPv6 {
		timeExceeded, unreachable, header, at = 3, 1, 40, 24
	}
	const icmpHeader = 8
	if len(b) < icmpHeader+header+8 || b[0] != timeExceeded && b[0] != unreachable {
		return a, false
	}
	quoted := b[icmpHeader:]
	if header == 20 {
		header = int(quoted[0]&0xf) * 4
	}
	to, _ := netip.AddrFromSlice(quoted[at : at+p.Dst.BitLen()/8])
	if to != p.Dst || header < 20 || len(quoted) < header+8 {
		return a, false
	}
	a.Number, a.Arrived = binary.BigEndian.Uint32(quoted[header+4:]), from == p.Dst
	return a, true
}
